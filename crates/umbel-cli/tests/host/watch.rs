//! `umbel watch` keeps a set equal to a directory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::real::Real;
use super::{refused, run};

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
    let (_, printed) = run(at, &["keys", "s"], "");
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
