//! `umbel config`, `umbel completions`, `umbel man`, and the flags of `umbel serve`.

use std::path::Path;

use assert_cmd::Command;
use umbel_node::settings::{KEYS, WATCH_KEYS};

/// Exit status, standard output, standard error.
fn umbel(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut umbel = Command::cargo_bin("umbel").expect("the binary is built");
    let output = umbel.current_dir(folder).args(arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("a status"), text(output.stdout), text(output.stderr))
}

fn says(folder: &Path, arguments: &[&str]) -> String {
    let (code, printed, stderr) = umbel(folder, arguments);
    assert!(code == 0 && stderr.is_empty(), "{arguments:?}: {stderr}");
    printed
}

fn refuses(folder: &Path, arguments: &[&str], message: &str) {
    let (code, printed, stderr) = umbel(folder, arguments);
    assert!(code == 2 && printed.is_empty(), "{arguments:?}: {printed}{stderr}");
    assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    // One per mistake.
    assert!(stderr.lines().all(|line| line.starts_with("umbel: ")), "{arguments:?}: {stderr}");
}

#[test]
fn a_file_is_written_checked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let written = says(folder, &["config", "init", "--name", "cache-1"]);
    assert_eq!(written, "umbel.toml is written: umbel serve --config umbel.toml\n");
    let text = std::fs::read_to_string(folder.join("umbel.toml")).unwrap();
    assert_eq!(text, says(folder, &["config", "init", "-", "--name", "cache-1"]));
    let checked = says(folder, &["config", "check", "umbel.toml"]);
    assert_eq!(checked, "umbel.toml is valid: host cache-1 of cluster local\n");
    let checked = says(folder, &["config", "check", "umbel.toml", "--json"]);
    assert_eq!(checked, "{\"cluster\":\"local\",\"file\":\"umbel.toml\",\"name\":\"cache-1\"}\n");
    refuses(folder, &["config", "init"], "there already");
    refuses(folder, &["config", "init", "x", "--name", "a b"], "letters, digits");
    refuses(folder, &["config", "init", "no/such/folder/x"], "no/such/folder/x");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing else was made");
}

#[test]
fn a_secret_is_no_flag() {
    let folder = tempfile::tempdir().unwrap();
    let secret = ["--hash-key", "a secret of many bytes"];
    for command in [&["serve"][..], &["doctor"], &["config", "show"]] {
        let all = [command, &["--name", "a", "--memory"], &secret].concat();
        let (code, _, stderr) = umbel(folder.path(), &all);
        assert!(code == 2 && stderr.contains("--hash-key-file"), "{stderr}");
        assert!(!stderr.contains(secret[1]), "{stderr}");
    }
}

#[test]
fn what_holds_is_shown_with_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("c"), "name = 'f'\nhash_key = 'a secret of many bytes'\n").unwrap();
    let mut umbel = Command::cargo_bin("umbel").unwrap();
    let shown = umbel
        .current_dir(folder)
        .env("UMBEL_SET_CAPACITY", "5")
        .args(["config", "show", "--config", "c", "--memory", "--peer", "a:1", "--peer", "b:2"])
        .arg("--json")
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert!(names.iter().copied().eq(KEYS.iter().map(|key| key.name)));
    let of = |key: &str| {
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        [row["value"].clone(), row["from"].clone()]
    };
    assert_eq!(of("name"), ["f", "c, line 1"]);
    assert_eq!(of("hash_key"), ["(hidden)", "c, line 2"]);
    assert_eq!(of("set.capacity"), ["5", "environment, UMBEL_SET_CAPACITY"]);
    assert_eq!(of("memory"), ["true", "--memory"]);
    assert_eq!(of("peers"), ["a:1, b:2", "--peer"]);
    assert_eq!(of("cluster"), ["local", "default"]);
    let text = says(folder, &["config", "show"]);
    assert_eq!(text.lines().count(), KEYS.len());
}

#[test]
fn each_mistake_in_a_configuration_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (text, message) in [
        ("", "needs a name"),
        ("name = 'a'", "--data DIR"),
        (
            "name = 'a'\nmemory = true\nclutser = 'x'",
            "c, line 3: there is no key 'clutser'; did you mean 'cluster'?",
        ),
        ("name = 'a'\nmemory = true\nresp = '0.0.0.0:1'", "allow_remote"),
        ("name = 'a'\nmemory = true\npeers = ['far:1']", "secret hash key"),
        ("name = ", "c, line 1: "),
        ("name = 'a'\u{0}", "c, line 1: "),
    ] {
        std::fs::write(folder.join("c"), text).unwrap();
        refuses(folder, &["config", "check", "c"], message);
        refuses(folder, &["serve", "--config", "c"], message);
    }
    std::fs::write(folder.join("c"), b"\xff\xfe").unwrap();
    refuses(folder, &["config", "check", "c"], "c: ");
    refuses(folder, &["config", "check", "none"], "none: ");
    refuses(folder, &["config", "show", "--config", "none"], "none: ");
    refuses(folder, &["config", "check"], "FILE");
    for (flag, value, message) in [
        ("--name", "a/b", "--name: name: letters, digits"),
        ("--resp", "7440", "--resp: resp: an address with a port"),
        ("--listen", "0.0.0.0:1", "concrete"),
        ("--listen", "192.0.2.1:1", "allow_remote"),
        ("--peer", "far", "--peer: peers: a host and a port"),
        ("--set-capacity", "0", "2^40"),
        ("--set-policy", "often", "unknown policy"),
        ("--clutser", "x", "--cluster"),
        ("--traces-share", "2", "a number from 0 to 1"),
        #[cfg(not(feature = "otel"))]
        ("--traces-endpoint", "http://127.0.0.1:4318", "built without the feature 'otel'"),
        #[cfg(feature = "otel")]
        ("--traces-endpoint", "127.0.0.1:4318", "the URL of a collector"),
        ("--print-ports", "xml", "json"),
    ] {
        let arguments = ["serve", "--name", "a", "--memory", flag, value];
        let arguments = if flag == "--name" { &arguments[..1] } else { &arguments[..4] };
        refuses(
            folder,
            &[arguments, &["--memory"][..usize::from(flag == "--name")], &[flag, value]].concat(),
            message,
        );
    }
    refuses(folder, &["serve", "--name", "a", "--memory", "--data", "d"], "'data' or 'memory'");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing was made");
}

#[test]
fn the_documentation_names_every_key_with_its_default() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let text = std::fs::read_to_string(path).expect("docs/configuration.md");
    for key in KEYS.iter().chain(WATCH_KEYS) {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", key.name)));
        let row =
            row.unwrap_or_else(|| panic!("docs/configuration.md has no row for {}", key.name));
        if let Some(default) = key.default {
            assert!(row.contains(&format!("`{default}`")), "{row}");
        }
    }
}

#[test]
fn completions_know_every_command() {
    let here = Path::new(".");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = says(here, &["completions", shell]);
        assert!(text.contains("locate") && text.contains("set-capacity"), "{shell}");
    }
    refuses(here, &["completions", "csh"], "bash");
    refuses(here, &["completions"], "SHELL");
}

#[test]
fn the_manual_has_a_page_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(says(folder, &["man"]).contains(".TH umbel 1"));
    says(folder, &["man", "--out", "pages"]);
    for page in ["umbel", "umbel-serve", "umbel-config-show", "umbel-who", "umbel-filter-build"] {
        let text = std::fs::read_to_string(folder.join(format!("pages/{page}.1"))).expect(page);
        assert!(text.contains(&format!(".TH {page} 1")), "{page}");
    }
    std::fs::write(folder.join("file"), "").unwrap();
    refuses(folder, &["man", "--out", "file"], "file: ");
}
