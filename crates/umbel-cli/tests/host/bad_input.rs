//! Whatever is wrong is told in one line, with exit status 2.

use std::net::TcpListener;

use super::fake::{Fake, array, bulk, error, map};
use super::real::Real;
use super::refused;

/// Every command that asks a host, with arguments that would work.
const COMMANDS: [&[&str]; 20] = [
    &["add", "s", "k"],
    &["add", "s", "k", "--lifetime", "5"],
    &["remove", "s", "k"],
    &["has", "s", "k"],
    &["who", "s", "k"],
    &["chain", "s", "k"],
    &["missing", "s", "k"],
    &["locate", "s", "k"],
    &["announce", "s", "/k"],
    &["withdraw", "s", "/k"],
    &["match", "s", "/k"],
    &["match", "s", "/k", "--confirm"],
    &["hosts"],
    &["sets"],
    &["info"],
    &["info", "s"],
    &["publish", "s"],
    &["policy", "s"],
    &["reserve", "s", "--false-positive", "0.01", "--capacity", "5"],
    &["reserve", "s", "--chains", "8", "--capacity", "5"],
];

/// All of them say this of a host that answers so.
fn all_report(fake: &Fake, message: &str) {
    for command in COMMANDS {
        let stderr = refused(&fake.at, command, "");
        assert!(stderr.contains(&fake.at) && stderr.contains(message), "{command:?}: {stderr}");
    }
}

#[test]
fn nobody_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for command in COMMANDS.iter().chain([&&["sync", "s", "-"][..]]) {
        let stderr = refused(&free, command, "k\n");
        assert!(
            stderr.contains(&free) && stderr.contains("is `umbel serve` running there?"),
            "{stderr}"
        );
    }
}

#[test]
fn what_the_host_refuses_is_told() {
    all_report(&Fake::start(|_| Some(error("no such set 's'"))), ": no such set 's'\n");
}

#[test]
fn a_connection_that_is_cut_is_told() {
    all_report(&Fake::start(|_| None), "umbel serve");
}

#[test]
fn answers_of_another_kind_are_told() {
    all_report(&Fake::start(|_| Some(b":5\r\n".to_vec())), "different versions");
    let too_many = Fake::start(|_| Some(array([bulk(b"x"), bulk(b"y")].into_iter())));
    for command in [&["add", "s", "k"], &["has", "s", "k"], &["who", "s", "k"]] {
        assert!(refused(&too_many.at, command, "").contains("different versions"));
    }
}

/// Text that a terminal takes for more than text, of every kind.
const HOSTILE: &str =
    "\u{1b}[2Jx\u{9b}31m\u{202e}y\u{2066}\r\u{7f}\u{2028}z\n2026 INFO all is well";

/// What a command printed holds nothing that moves a cursor, turns text around or forges lines.
fn is_safe(command: &[&str], printed: &[u8], lines: usize) {
    let text = str::from_utf8(printed).expect("text");
    let is_plain = |c: char| !umbel::text::is_unsafe(c) || c == '\n' || c == '\t';
    assert!(text.chars().all(is_plain), "{command:?}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("2026")), "{command:?}: {text}");
    assert!(text.lines().count() <= lines, "{command:?}: {text}");
}

#[test]
fn text_of_a_hostile_host_is_shown_as_text() {
    let hostile = || bulk(HOSTILE.as_bytes());
    let fields = move || {
        let value = String::from_utf8(hostile()).expect("text");
        map(&[(HOSTILE, &value), ("name", &value), ("resp", &value)])
    };
    let hosts = Fake::start(move |words| {
        Some(match &words[0][..] {
            b"UMBEL.HOSTS" => array([fields(), fields()].into_iter()),
            b"UMBEL.SETS" => array([hostile()].into_iter()),
            b"UMBEL.INFO" => fields(),
            b"UMBEL.POLICY" => hostile(),
            _ => error(&HOSTILE.replace(['\r', '\n'], " ")),
        })
    });
    let all_hosts: &[&str] = &["publish", "s", "--all-hosts"];
    for command in COMMANDS.iter().chain([&all_hosts]) {
        for json in [&[][..], &["--json"]] {
            let arguments = [command, json].concat();
            let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("built");
            let output = umbel.env("UMBEL_AT", &hosts.at).args(&arguments).output();
            let output = output.expect("the binary runs");
            is_safe(&arguments, &output.stdout, if json.is_empty() { 3 } else { 40 });
            is_safe(&arguments, &output.stderr, 1);
        }
    }
}

#[test]
fn text_of_files_and_arguments_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("umbel.toml");
    let path = file.to_str().unwrap();
    let quoted: String = HOSTILE.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
    let texts = [
        format!("name = \"{quoted}\""),
        format!("name = \"a\"\nadvertise = \"{quoted}\""),
        format!("\"{quoted}\" = 1"),
        format!("name = \"a\"\nmemory = true\npeers = [\"{quoted}\"]"),
        format!("name = \"a\"\nmemory = true\nusers = \"{quoted}\""),
        format!("name = {HOSTILE}"),
    ];
    let arguments: [&[&str]; 5] = [
        &["config", "check", path],
        &["config", "show", "--config", path],
        &["doctor", "--config", path],
        &["serve", "--config", path],
        &["doctor", "--config", HOSTILE],
    ];
    for text in texts {
        std::fs::write(&file, text).unwrap();
        for command in arguments {
            if command[0] == "serve" && std::fs::read_to_string(&file).unwrap().contains("peers") {
                continue;
            }
            let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("built");
            let output = umbel.args(command).output().expect("the binary runs");
            is_safe(command, &output.stdout, 100);
            is_safe(command, &output.stderr, 2);
        }
    }
    for command in [&["add", HOSTILE, "k"][..], &["filter", "info", HOSTILE], &[HOSTILE]] {
        let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("built");
        let output = umbel.args(command).output().expect("the binary runs");
        is_safe(command, &output.stderr, 1);
    }
}

/// The log of a host names files and hosts: here its data folder, which others can read.
#[test]
fn text_in_the_log_of_a_host_is_one_line() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join(HOSTILE);
    std::fs::create_dir(&data).expect("a folder");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).expect("changed");
    for format in ["text", "json"] {
        let mut umbel = assert_cmd::Command::cargo_bin("umbel").expect("built");
        umbel.args(["serve", "--name", "a", "--log-format", format, "--stop-with-input"]);
        umbel.args(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0"]);
        // Its input ends at once, and so does the host.
        let output = umbel.arg("--data").arg(&data).write_stdin("").output();
        let log = output.expect("the binary runs").stderr;
        let text = String::from_utf8_lossy(&log).into_owned();
        let named = text.lines().find(|line| line.contains("chmod 700"));
        assert!(named.is_some_and(|line| line.contains("all is well")), "{text}");
        let is_plain = |c: char| !umbel::text::is_unsafe(c) || c == '\n';
        assert!(text.chars().all(is_plain), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("2026 INFO")), "{text}");
    }
}

#[test]
fn garbage_is_told() {
    all_report(&Fake::start(|_| Some(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())), "RESP port");
}

#[test]
fn bad_arguments_ask_nobody() {
    let host = Fake::start(|_| Some(error("it was asked")));
    let long = "k".repeat(40_000);
    for (arguments, message) in [
        (&["add", "s"][..], "KEY"),
        (&["add"], "SET"),
        (&["add", "a b", "k"], "a set's name"),
        (&["add", "s", ""], "empty key"),
        (&["add", "s", &long], "at most 32768 bytes"),
        (&["add", "s", "k", "--file", "f"], "--file"),
        (&["add", "s", "--file", "/no/such/file"], "/no/such/file"),
        (&["add", "s", "--file", "/"], "directory"),
        (&["add", "s", "k", "--lifetime", "0"], "above 0"),
        (&["add", "s", "k", "--lifetime", "soon"], "or 'none'"),
        (&["has", "s"], "KEY"),
        (&["who", "s"], "KEY"),
        (&["missing", "s"], "KEY"),
        (&["chain", "s"], "KEY"),
        (&["chain", "s", "k", "--step", "0"], "--step"),
        (&["chain", "s", "k", "--limit", "0"], "--limit"),
        (&["chain", "s", "1.5", "--numbers"], "'1.5'"),
        (&["chain", "s", "18446744073709551616", "--numbers"], "2^64"),
        (&["chain", "s", "", "--step", "1"], "empty key"),
        (&["reserve", "s", "--capacity", "5", "--chains", "0"], "--chains"),
        (&["locate", "s"], "KEY"),
        (&["locate", "s", "k", "--timeout", "0"], "--timeout"),
        (&["announce", "s"], "NAME"),
        (&["announce", "s", "/k", "k"], "'k': a name begins with '/'"),
        (&["announce", "s", "/a//b"], "'/a//b': a name has no empty component"),
        (&["withdraw", "s", "/a/../b"], "'.' or '..'"),
        (&["withdraw", "s"], "NAME"),
        (&["match", "s"], "NAME"),
        (&["match", "s", "/a b"], "white space"),
        (&["match", "s", &long], "a name begins with '/'"),
        (&["match", "s", "/k", "--confirm=0"], "--confirm"),
        (&["match", "s", "/k", "--file", "f"], "--file"),
        (&["locate", "s", "k", "--hops", "0"], "--hops"),
        (&["locate", "s", "k", "--hops", "256"], "--hops"),
        (&["policy", "s", "often"], "unknown policy 'often'"),
        (&["policy", "s", "--all-hosts"], "POLICY"),
        (&["reserve", "s", "--capacity", "5"], "--false-positive"),
        (
            &["reserve", "s", "--false-positive", "0.1", "--capacity", "5", "--confirm", "ask"],
            "'none' is needed, or a URL",
        ),
        (&["reserve", "s", "--false-positive", "2", "--capacity", "5"], "1e-15"),
        (&["reserve", "s", "--false-positive", "0.1", "--capacity", "0"], "2^40"),
        (&["sync", "s"], "--dir"),
        (&["sync", "s", "x"], "-"),
        (&["sync", "s", "-", "--every", "5"], "only once"),
        (&["sync", "s", "--dir", "/no/such/folder"], "/no/such/folder"),
        (&["sync", "s", "--dir", "/etc/passwd"], "not a directory"),
        (&["sync", "s", "--file", "/no/such/file"], "/no/such/file"),
        (&["sync", "s", "--dir", "/etc", "--every", "0"], "above 0"),
        (&["hosts", "--at", "here"], "a host and its port"),
    ] {
        let stderr = refused(&host.at, arguments, "");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    assert_eq!(host.asked(), Vec::<Vec<Vec<u8>>>::new());
}

#[test]
fn a_bad_line_of_a_file_changes_nothing() {
    let host = Fake::start(|_| Some(error("it was asked")));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, format!("good\n\n{}\n", "k".repeat(40_000))).unwrap();
    let stderr = refused(&host.at, &["add", "s", "--file", file.to_str().unwrap()], "");
    assert!(stderr.contains("line 3: a key has at most 32768 bytes, not 40000"), "{stderr}");
    let names = folder.path().join("names");
    std::fs::write(&names, "/good\n\n/ä/\n/a//b\n").unwrap();
    for command in ["announce", "withdraw", "match"] {
        let stderr = refused(&host.at, &[command, "s", "--file", names.to_str().unwrap()], "");
        assert!(stderr.contains("line 4: '/a//b': a name has no empty component"), "{stderr}");
    }
    std::fs::write(&names, b"/good\n/\xff\n").unwrap();
    let stderr = refused(&host.at, &["announce", "s", "--file", names.to_str().unwrap()], "");
    assert!(stderr.contains("line 2: a name must be UTF-8"), "{stderr}");
    assert_eq!(host.asked(), Vec::<Vec<Vec<u8>>>::new());
    let input = std::fs::read_to_string(&file).unwrap();
    let real = Real::start();
    let stderr = refused(&real.at, &["add", "s", "-"], &input);
    assert!(stderr.contains("standard input, line 3"), "{stderr}");
}

#[test]
fn an_error_in_the_middle_says_how_far_it_came() {
    let answered = std::sync::atomic::AtomicUsize::new(0);
    let host = Fake::start(move |words| {
        let before = answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Some(match before {
            0 => array(words[2..].iter().map(|_| b":1\r\n".to_vec())),
            _ => error("disk full"),
        })
    });
    let lines: String = (0..5000).map(|n| format!("{n}\n")).collect();
    let stderr = refused(&host.at, &["add", "s", "-"], &lines);
    assert!(stderr.contains("disk full"), "{stderr}");
}
