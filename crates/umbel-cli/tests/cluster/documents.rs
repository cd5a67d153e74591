//! What the documents tell people to type does what they say, against real hosts.
//!
//! Lines are run as they stand, but for addresses: a test may not take everybody's ports.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::hosts::{Cluster, eventually, network};

/// A line that a document says to type, and what it says will be printed.
#[derive(Debug)]
struct Line {
    typed: String,
    printed: String,
}

/// The blocks of a kind in a document.
fn blocks(document: &str, kind: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = std::fs::read_to_string(path).expect("the document");
    let fence = format!("```{kind}\n");
    let opened = text.split(&fence).skip(1);
    opened.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// What a document says to type, in its order.
fn lines(document: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in blocks(document, "console").iter().flat_map(|block| block.lines()) {
        match (line.strip_prefix("$ "), lines.last_mut()) {
            (Some(typed), _) => {
                lines.push(Line { typed: typed.to_owned(), printed: String::new() });
            }
            (None, Some(last)) => last.printed += &format!("{line}\n"),
            (None, None) => panic!("{document} prints before anything is typed: {line}"),
        }
    }
    lines
}

/// Whether this machine has a program; if not, that is said.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed, so nothing was tried with it");
    }
    found
}

/// A shell that runs one line in a folder, in which curl says each answer's status on stderr
/// and never waits for ever.
fn shell(line: &str, folder: &str) -> Command {
    let settings = "silent\nmax-time = 20\nwrite-out = \"%{stderr}status %{http_code}\\n\"\n";
    std::fs::write(format!("{folder}/.curlrc"), settings).expect("written");
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("CURL_HOME", folder);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// The status that an answer should have, from what the document prints of it.
fn is_expected(status: &str, line: &Line) -> bool {
    let problem = serde_json::from_str::<serde_json::Value>(&line.printed).ok();
    match problem.as_ref().and_then(|problem| problem["status"].as_u64()) {
        Some(stderr) => status == stderr.to_string(),
        None if line.printed.starts_with("location:") => status == "307",
        None => status.starts_with('2'),
    }
}

#[test]
fn the_lines_of_http_md_do_what_they_say() {
    if !has("curl") {
        return;
    }
    let mut lines = lines("http.md").into_iter();
    let serve = lines.next().expect("a host first").typed;
    let flags = serve.strip_prefix("umbel serve ").expect("a host first");
    let mut cluster = Cluster::named(&["cache-1", "cache-2"]);
    cluster.start_with(0, &flags.split(' ').collect::<Vec<_>>());
    let (at, folder) = (cluster.http(0).to_owned(), cluster.path(""));
    let mut tried = 0;
    for line in lines {
        let mut shell = shell(&line.typed.replace("localhost:7441", &at), &folder);
        if line.typed.contains("/v1/events") {
            watch(shell, &line, &mut cluster);
            continue;
        }
        let output = shell.output().expect("a shell");
        let [printed, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
        let status =
            stderr.lines().find_map(|line| line.strip_prefix("status ")).unwrap_or_default();
        assert!(is_expected(status, &line), "{}: status {status}\n{printed}", line.typed);
        if !line.printed.is_empty() {
            assert_eq!(printed.trim(), line.printed.trim(), "{}", line.typed);
        }
        tried += 1;
    }
    assert!(tried > 20, "only {tried} lines were found");
}

/// Reads events while what the document shows comes to pass: another host comes up.
fn watch(mut shell: Command, line: &Line, cluster: &mut Cluster) {
    let mut child = shell.spawn().expect("a shell");
    // Events are told from the moment on at which the answer has begun.
    eventually("somebody listens", || {
        let metrics = format!("http://{}/metrics", cluster.http(0));
        let answer = Command::new("curl").args(["-s", &metrics]).output().expect("curl");
        String::from_utf8_lossy(&answer.stdout).contains("route=\"/v1/events\"")
    });
    let first = cluster.peer(0);
    cluster.start_with(1, &["--memory", "--peer", &first]);
    let mut printed = Vec::new();
    let stdout = child.stdout.as_mut().expect("piped");
    while !String::from_utf8_lossy(&printed).contains(&line.printed) {
        let mut some = [0; 1024];
        let read = stdout.read(&mut some).expect("events");
        assert!(read > 0, "never printed: {}", line.printed);
        printed.extend_from_slice(&some[..read]);
    }
    let _ = child.kill();
    let _ = child.wait();
    eventually("its sets are known", || cluster.status_number(0, "hosts_known") == 2);
}

/// A process that ends with the test.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PASSWORD: &str = "a good password";

/// The folder in which docs/security.md is followed, and where its three hosts live.
struct Followed {
    folder: tempfile::TempDir,
    /// What stands for `10.0.0.` of the document: addresses of this machine that nobody else has.
    network: String,
    hosts: Vec<Process>,
}

impl Followed {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(".umbel-password"), PASSWORD).expect("written");
        Self { folder, network: network(), hosts: Vec::new() }
    }

    fn etc(&self, host: usize) -> String {
        format!("{}/etc/cache-{host}", self.folder.path().display())
    }

    /// What the document says, for a host of this machine.
    fn here(&self, text: &str, host: usize) -> String {
        let data = format!("{}/data-{host}", self.folder.path().display());
        let text = text.replace("10.0.0.", &self.network).replace("/etc/umbel", &self.etc(host));
        text.replace("/var/lib/umbel", &data).replace("PASSWORD=…", "PASSWORD=$UMBEL_PASSWORD")
    }

    /// The files that each host is given, and the document's configuration with its own name
    /// and address.
    fn hand_out(&self) {
        let toml = &blocks("security.md", "toml")[0];
        for host in 1..=3 {
            let etc = self.etc(host);
            std::fs::create_dir_all(&etc).expect("a folder");
            let own = [format!("cache-{host}.pem"), format!("cache-{host}.key")];
            let shared = ["ca.pem", "hash-key", "peers", "users.toml"].map(str::to_owned);
            for file in own.iter().chain(&shared) {
                let from = self.folder.path().join("certs").join(file);
                std::fs::copy(from, format!("{etc}/{file}")).expect("the step before made it");
            }
            let toml = toml.replace("cache-1", &format!("cache-{host}"));
            let toml = toml.replace("10.0.0.1", &format!("10.0.0.{host}"));
            std::fs::write(format!("{etc}/umbel.toml"), self.here(&toml, host)).expect("written");
        }
    }

    fn command(&self, line: &str) -> Command {
        let folder = self.folder.path();
        let mut shell = shell(line, folder.to_str().expect("text"));
        let binaries = Path::new(env!("CARGO_BIN_EXE_umbel")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", binaries.display())).env("HOME", folder);
        shell.env("UMBEL_PASSWORD", PASSWORD);
        shell
    }

    /// Types a line, and the password if it is asked for.
    fn types(&self, line: &str, host: usize) -> (bool, String) {
        use std::io::Write as _;
        let mut command = self.command(&self.here(line, host));
        let mut child = command.stdin(Stdio::piped()).spawn().expect("a shell");
        let _ = child.stdin.take().expect("piped").write_all(PASSWORD.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr)
    }

    fn serves(&mut self, line: &str) {
        for host in 1..=3 {
            let mut command = self.command(&format!("exec {}", self.here(line, host)));
            command.stdout(Stdio::null()).stderr(Stdio::null());
            self.hosts.push(Process(command.spawn().expect("the binary runs")));
        }
    }
}

/// Whether what was printed is what the document shows: what is asked at a terminal is not
/// there, and `…` stands for anything.
fn is_shown(printed: &str, shown: &str) -> bool {
    let shown = shown.lines().filter(|line| !line.ends_with(':'));
    let mut printed = printed.lines();
    shown.into_iter().all(|line| {
        let begins = line.split('…').next().unwrap_or_default();
        printed.next().is_some_and(|printed| match begins.len() == line.len() {
            true => printed == line,
            false => printed.starts_with(begins),
        })
    })
}

#[test]
fn three_hosts_are_secured_by_following_security_md() {
    let mut followed = Followed::new();
    let mut tried = 0;
    for Line { typed, printed: shown } in lines("security.md") {
        if typed.starts_with("cargo ") {
            continue;
        }
        if typed.starts_with("umbel doctor") {
            followed.hand_out();
            for host in 1..=3 {
                let (is_valid, printed) = followed.types(&typed, host);
                assert!(is_valid && !printed.contains("WRONG"), "{typed}: {printed}");
            }
        } else if typed.starts_with("umbel serve") {
            followed.serves(&typed);
        } else {
            // Hosts take a moment to start and to hear of each other; what is made is made once.
            let mut last = String::new();
            let waits = typed.contains("--at ");
            let mut is_so = || {
                let (done, printed) = followed.types(&typed, 1);
                last = printed;
                done && is_shown(&last, &shown)
            };
            let start = std::time::Instant::now();
            let mut done = is_so();
            while !done && waits && start.elapsed().as_secs() < 30 {
                std::thread::sleep(std::time::Duration::from_millis(200));
                done = is_so();
            }
            assert!(done, "{typed}: {last}");
        }
        tried += 1;
    }
    assert!(tried >= 12, "only {tried} lines were found");
}

/// All text of the Rust files below a folder.
fn sources(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text += &std::fs::read_to_string(&path).expect("text");
        }
    }
    text
}

#[test]
fn the_tests_that_documents_name_are_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&root.join("crates"));
    let is_test = |word: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        // Metrics have underscores, too.
        let is_metric = word.starts_with("umbel_");
        word.matches('_').count() > 2 && word.chars().all(plain) && !is_metric
    };
    for (document, min) in [("security.md", 25), ("reliability.md", 5)] {
        let text = std::fs::read_to_string(root.join("docs").join(document)).expect("text");
        let named: Vec<&str> = text.split('`').filter(is_test).collect();
        assert!(named.len() >= min, "{document} names {}", named.len());
        for name in named {
            assert!(sources.contains(&format!("fn {name}()")), "{document}: {name}");
        }
    }
}
