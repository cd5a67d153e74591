//! `umbel watch` keeps a set equal to a directory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::real::Real;
use super::{refused, run, umbel};

/// A watch that ends with the test.
struct Watch(Child);

impl Watch {
    fn start(at: &str, arguments: &[&str], errors: &Path) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("umbel"));
        let errors = std::fs::File::create(errors).expect("a file");
        command.args(["watch", "s"]).args(arguments).env("UMBEL_AT", at);
        Self(command.stdout(Stdio::null()).stderr(errors).spawn().expect("it runs"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn keys(at: &str) -> Vec<String> {
    keys_of(at, "s")
}

/// The keys of a set; none while there is no such set yet.
fn keys_of(at: &str, set: &str) -> Vec<String> {
    let printed = String::from_utf8(umbel(at, &["keys", set], "").stdout).expect("text");
    let mut keys: Vec<String> = printed.lines().map(str::to_owned).collect();
    keys.sort();
    keys
}

fn eventually(at: &str, expected: &[&str]) {
    let start = Instant::now();
    while keys(at) != expected {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?} is not {expected:?}", keys(at));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_set_follows_a_directory() {
    let (host, folder) = (Real::start(), tempfile::tempdir().unwrap());
    let (dir, errors) = (folder.path().join("cache"), folder.path().join("errors"));
    let path = |name: &str| dir.join(name);
    std::fs::create_dir_all(path("sub")).unwrap();
    std::fs::write(path("one"), "").unwrap();
    run(&host.at, &["add", "s", "stale"], "");
    let arguments = ["--dir", dir.to_str().unwrap(), "--exclude", "*.log"];
    let _watch = Watch::start(&host.at, &arguments, &errors);
    eventually(&host.at, &["one"]);
    std::fs::write(path("sub/two"), "").unwrap();
    std::fs::write(path("x.log"), "").unwrap();
    std::fs::write(path("y.tmp"), "").unwrap();
    eventually(&host.at, &["one", "sub/two"]);
    std::fs::create_dir_all(path("new/deep")).unwrap();
    std::fs::write(path("new/deep/three"), "").unwrap();
    std::fs::remove_file(path("one")).unwrap();
    eventually(&host.at, &["new/deep/three", "sub/two"]);
    // A directory that is emptied, or gone, changes nothing.
    std::fs::remove_dir_all(&dir).unwrap();
    let said = |text: &str| std::fs::read_to_string(&errors).unwrap().contains(text);
    let start = Instant::now();
    while !said("No such file or directory") && !said("no files left") {
        assert!(start.elapsed() < Duration::from_secs(30), "nothing was said");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(keys(&host.at).contains(&"sub/two".to_owned()));
    // When it is back, so is the watch.
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(path("back"), "").unwrap();
    eventually(&host.at, &["back"]);
}

/// A cache that has just been set up is empty, and so is its set: nothing would be emptied.
#[test]
fn a_watch_of_an_empty_directory_waits_for_files() {
    let (host, folder) = (Real::start(), tempfile::tempdir().unwrap());
    let (dir, errors) = (folder.path().join("cache"), folder.path().join("errors"));
    std::fs::create_dir(&dir).unwrap();
    let synced = run(&host.at, &["sync", "s", "--dir", dir.to_str().unwrap()], "");
    assert_eq!(synced.1, "s: 0 keys listed, 0 added, 0 removed\n");
    let _watch = Watch::start(&host.at, &["--dir", dir.to_str().unwrap()], &errors);
    std::fs::write(dir.join("one"), "").unwrap();
    eventually(&host.at, &["one"]);
    assert_eq!(std::fs::read_to_string(&errors).unwrap(), "");
}

#[test]
fn bad_input_ends_a_watch_and_changes_nothing() {
    let (host, folder) = (Real::start(), tempfile::tempdir().unwrap());
    let dir = folder.path().to_str().unwrap();
    run(&host.at, &["add", "s", "a"], "");
    for (arguments, said) in [
        (&["watch", "s", "--dir", "/nowhere/at/all"][..], "No such file"),
        (&["watch", "s", "--dir", "/etc/passwd"], "not a directory"),
        (&["watch", "s", "--dir", dir], "--allow-empty"),
        (&["watch", "s", "--dir", dir, "--key", "name"], "'path', 'basename' or 'stem' is needed"),
        (&["watch", "s", "--dir", dir, "--min-age", "soon"], "--min-age"),
        (&["sync", "s", "-", "--key", "stem"], "need --dir"),
    ] {
        let error = refused(&host.at, arguments, "");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert_eq!(keys(&host.at), ["a"]);
}

#[test]
fn sync_takes_the_same_options() {
    let (host, folder) = (Real::start(), tempfile::tempdir().unwrap());
    for name in ["cat.png", "dog.png", "notes.txt", ".hidden.png", "cat2.png"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let dir = folder.path().to_str().unwrap();
    let sync =
        ["sync", "s", "--dir", dir, "--include", "*.png", "--exclude", "cat2*", "--key", "stem"];
    assert_eq!(run(&host.at, &sync, "").1, "s: 2 keys listed, 2 added, 0 removed\n");
    assert_eq!(keys(&host.at), ["cat", "dog"]);
    let young = ["sync", "s", "--dir", dir, "--min-age", "1h"];
    assert!(refused(&host.at, &young, "").contains("--allow-empty"));
}

/// The configuration of a host that watches these directories.
fn tables(file: &Path, watches: &[(&str, &Path, &str)]) {
    let table = |(set, dir, more): &(&str, &Path, &str)| {
        format!("[[watch]]\nset = '{set}'\ndir = '{}'\n{more}\n", dir.display())
    };
    std::fs::write(file, watches.iter().map(table).collect::<String>()).expect("a file");
}

fn info(host: &Real, field: &str) -> serde_json::Value {
    let (_, printed) = run(&host.at, &["info", "--json"], "");
    serde_json::from_str::<serde_json::Value>(&printed).expect("JSON")[field].clone()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "not {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_host_follows_the_directories_of_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, gone, file] =
        ["one", "two", "gone", "umbel.toml"].map(|name| folder.path().join(name));
    std::fs::create_dir_all(one.join("sub")).unwrap();
    std::fs::create_dir(&two).unwrap();
    (0..3000).for_each(|number| std::fs::write(one.join(format!("sub/{number}")), "").unwrap());
    tables(&file, &[("s", &one, "key = 'basename'"), ("t", &gone, "")]);
    let host = Real::with_flags(&["--config", file.to_str().unwrap()]);
    until("scanned", || keys(&host.at).len() == 3000);
    std::fs::write(one.join("new"), "").unwrap();
    std::fs::remove_file(one.join("sub/7")).unwrap();
    until("followed", || {
        let keys = keys(&host.at);
        keys.contains(&"new".to_owned()) && !keys.contains(&"7".to_owned())
    });
    // A directory that is not there is reported, and changes nothing else.
    let failures = || info(&host, "watch_failures").to_string();
    assert!(failures().contains("t: ") && failures().contains("No such file"), "{}", failures());
    // A directory that disappears removes nothing. It is moved, because files that are deleted one by
    // one are gone one by one.
    std::fs::rename(&one, folder.path().join("elsewhere")).unwrap();
    until("refused", || failures().contains("s: "));
    assert!(keys(&host.at).contains(&"new".to_owned()));
    // After a reload other directories are followed; the keys of the first stay.
    tables(&file, &[("t", &two, "")]);
    std::fs::write(two.join("x"), "").unwrap();
    host.reload();
    until("followed", || keys_of(&host.at, "t") == ["x"]);
    assert_eq!((failures().as_str(), info(&host, "watches").as_u64()), ("[]", Some(1)));
    assert!(keys(&host.at).contains(&"new".to_owned()));
    // A mistake in the file changes nothing.
    std::fs::write(&file, "[[watch]]\nset = 't'\n").unwrap();
    host.reload();
    std::fs::write(two.join("y"), "").unwrap();
    until("followed", || keys_of(&host.at, "t").len() == 2);
}

#[test]
fn a_watch_of_a_host_starts_from_what_its_catalogue_has() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, file) = (folder.path().join("cache"), folder.path().join("umbel.toml"));
    std::fs::create_dir(&dir).unwrap();
    tables(&file, &[("s", &dir, "")]);
    let host = Real::with_flags(&["--config", file.to_str().unwrap()]);
    // An empty directory and an empty set agree; a set with keys would be emptied.
    assert_eq!(info(&host, "watch_failures").to_string(), "[]");
    run(&host.at, &["add", "s", "by hand"], "");
    std::fs::create_dir(dir.join("sub")).unwrap();
    until("refused", || info(&host, "watch_failures").to_string().contains("allow_empty"));
    assert_eq!(keys(&host.at), ["by hand"]);
    std::fs::write(dir.join("a"), "").unwrap();
    eventually(&host.at, &["a"]);
}
