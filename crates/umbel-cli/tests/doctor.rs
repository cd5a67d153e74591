//! `umbel doctor` finds what is wrong, says what to do, and changes nothing.

use std::net::TcpListener;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn doctor(arguments: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let mut command = Command::cargo_bin("umbel").expect("the binary is built with its tests");
    let output = command.arg("doctor").args(arguments).arg("--json").output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.is_empty(), "{stderr}");
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a JSON list");
    let text = |finding: &Value, name: &str| finding[name].as_str().expect("text").to_owned();
    let findings = found.iter().map(|f| (text(f, "state"), text(f, "what"), text(f, "detail")));
    (output.status.code().expect("an exit code"), findings.collect())
}

/// What was found of one thing.
fn of<'a>(findings: &'a [(String, String, String)], what: &str) -> (&'a str, &'a str) {
    let found = findings.iter().find(|(_, named, _)| named == what);
    let (state, _, stderr) = found.unwrap_or_else(|| panic!("nothing of {what}: {findings:?}"));
    (state, stderr)
}

const PORTS: [&str; 6] =
    ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0"];

fn with_ports<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    PORTS.iter().copied().chain(arguments.iter().copied()).collect()
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("text")
}

#[test]
fn a_host_that_would_run_is_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (code, found) = doctor(&with_ports(&["--name", "a", "--data", path(&data)]));
    assert_eq!(code, 0, "{found:?}");
    assert!(found.iter().all(|(state, ..)| state == "ok"), "{found:?}");
    assert!(!data.exists(), "nothing was made");

    // Backups need a directory that exists.
    let backups = folder.path().join("backups");
    let flags = ["--name", "a", "--data", path(&data), "--backups", path(&backups)];
    let (code, found) = doctor(&with_ports(&flags));
    let (state, detail) = of(&found, "backups");
    assert_eq!((code, state), (0, "warning"), "{detail}");
    assert!(detail.contains("No such file") && !backups.exists(), "{detail}");
    std::fs::create_dir(&backups).expect("made");
    assert_eq!(of(&doctor(&with_ports(&flags)).1, "backups").0, "ok");
}

#[test]
fn what_is_wrong_is_named() {
    let (code, found) = doctor(&with_ports(&["--name", "a b", "--memory"]));
    assert_eq!((code, of(&found, "configuration").0), (1, "wrong"));

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken_at = taken.local_addr().expect("bound").to_string();
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let (code, found) = doctor(&[
        "--name",
        "a",
        "--memory",
        "--resp",
        &taken_at,
        "--http",
        "off",
        "--listen",
        "127.0.0.1:0",
        "--peer",
        &nobody.to_string(),
    ]);
    assert_eq!((code, of(&found, "port for Redis clients").0), (1, "wrong"));
    let (state, stderr) = of(&found, &format!("peer tcp/{nobody}"));
    assert!(state == "warning" && stderr.contains("not reached"), "{stderr}");
}

#[test]
fn a_damaged_folder_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalogue = folder.path().join("catalogue");
    let store = umbel_store::Store::open(&catalogue, umbel_store::Options::new()).expect("made");
    for number in 0..2000u32 {
        store.put(&number.to_be_bytes(), &[7; 40]).expect("written");
    }
    store.integrate().expect("a master file");
    drop(store);
    let flags = ["--name", "a", "--data", path(folder.path())];
    let (code, found) = doctor(&with_ports(&flags));
    assert_eq!((code, of(&found, "catalogue").0), (0, "ok"), "{found:?}");

    let largest = std::fs::read_dir(&catalogue)
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .max_by_key(|file| file.metadata().map_or(0, |about| about.len()))
        .expect("some file");
    let mut bytes = std::fs::read(&largest).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&largest, bytes).expect("written");
    let (code, found) = doctor(&with_ports(&flags));
    assert_eq!((code, of(&found, "catalogue").0), (1, "wrong"), "{found:?}");
}

#[test]
fn secrets_that_others_can_read_are_found() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("hash-key"), "0123456789abcdef").expect("written");
    std::fs::write(file("users"), "").expect("written");
    std::fs::create_dir(file("data")).expect("made");
    let (data, key, users) = (file("data"), file("hash-key"), file("users"));
    let flags = ["--name", "a", "--data", path(&data), "--hash-key-file", path(&key)];
    let flags = [&with_ports(&flags)[..], &["--users", path(&users)]].concat();
    for (folder_mode, file_mode, state) in [(0o755, 0o644, "warning"), (0o700, 0o600, "ok")] {
        for (path, mode) in [(&data, folder_mode), (&key, file_mode), (&users, file_mode)] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("changed");
        }
        let (code, found) = doctor(&flags);
        assert_eq!(code, 0, "{found:?}");
        for (what, path) in [("data", &data), ("hash key", &key), ("users", &users)] {
            let (found, stderr) = of(&found, what);
            assert!(found == state && stderr.contains(self::path(path)), "{what}: {stderr}");
        }
    }
}

#[test]
fn certificates_are_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let certs = folder.path().join("certs");
    let mut command = Command::cargo_bin("umbel").expect("the binary is built with its tests");
    command.args(["config", "certs", "--hosts", "a,b", "--out", path(&certs)]).assert().success();
    let file = |name: &str| path(&certs.join(name)).to_owned();
    let flags = |host: &str| {
        let ca = file("ca.pem");
        let (cert, key) = (file(&format!("{host}.pem")), file(&format!("{host}.key")));
        ["--peer-ca".into(), ca, "--peer-cert".into(), cert, "--peer-key".into(), key]
    };
    let run = |host: &str| {
        let flags = flags(host);
        let mut all = with_ports(&["--name", "a", "--memory"]);
        all.extend(flags.iter().map(String::as_str));
        doctor(&all)
    };
    let (code, found) = run("a");
    assert_eq!((code, of(&found, "host certificate").0), (0, "ok"), "{found:?}");
    let (code, found) = run("b");
    let (state, stderr) = of(&found, "host certificate");
    assert!((code, state) == (1, "wrong") && stderr.contains("it is of 'b'"), "{stderr}");
}

#[test]
fn watched_directories_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, dir) = (folder.path().join("umbel.toml"), folder.path().join("cache"));
    std::fs::create_dir(&dir).expect("made");
    let text = "name = 'a'\nmemory = true\n[[watch]]\nset = 's'\ndir = 'cache'\n\
                [[watch]]\nset = 't'\ndir = 'gone'\n";
    std::fs::write(&file, text).expect("written");
    let (code, found) = doctor(&with_ports(&["--config", path(&file)]));
    let (state, detail) = of(&found, "watch of 's'");
    assert!(state == "warning" && detail.contains("allow_empty"), "{detail}");
    let (state, detail) = of(&found, "watch of 't'");
    assert!(state == "wrong" && detail.contains("No such file"), "{detail}");
    assert_eq!(code, 1);
    std::fs::write(dir.join("a"), "").expect("written");
    assert_eq!(of(&doctor(&with_ports(&["--config", path(&file)])).1, "watch of 's'").0, "ok");
}
