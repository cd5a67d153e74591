//! `umbel sync` makes a set equal to a listing.

use super::real::Real;
use super::{refused, run};

/// Which of the keys the host holds.
fn held(at: &str, keys: &[&str]) -> Vec<String> {
    let input: String = keys.iter().map(|key| format!("{key}\n")).collect();
    run(at, &["has", "s", "-"], &input).1.lines().map(str::to_owned).collect()
}

#[test]
fn a_set_becomes_equal_to_lines() {
    let host = Real::start();
    let at = &host.at;
    assert_eq!(run(at, &["sync", "s", "-"], "a\nb\n").1, "s: 2 keys listed, 2 added, 0 removed\n");
    assert_eq!(run(at, &["sync", "s", "-"], "b\nc\n").1, "s: 2 keys listed, 1 added, 1 removed\n");
    assert_eq!(held(at, &["a", "b", "c"]), ["b", "c"]);
    let many: String = (0..7500).map(|n| format!("{n}\n")).collect();
    run(at, &["sync", "s", "-"], &many);
    let few: String = (5000..7600).map(|n| format!("{n}\n")).collect();
    let (_, printed) = run(at, &["sync", "s", "-", "--json"], &few);
    let done: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        done,
        serde_json::json!({"set": "s", "listed": 2600, "added": 100, "removed": 5000})
    );
}

#[test]
fn a_set_becomes_equal_to_a_folder() {
    let host = Real::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("sub/deep")).unwrap();
    for file in ["one", "sub/two", "sub/deep/three"] {
        std::fs::write(path(file), "").unwrap();
    }
    let sync = ["sync", "s", "--dir", folder.path().to_str().unwrap()];
    assert_eq!(run(&host.at, &sync, "").1, "s: 3 keys listed, 3 added, 0 removed\n");
    std::fs::remove_file(path("sub/two")).unwrap();
    assert_eq!(run(&host.at, &sync, "").1, "s: 2 keys listed, 0 added, 1 removed\n");
    assert_eq!(held(&host.at, &["one", "sub/two", "sub/deep/three"]), ["one", "sub/deep/three"]);
}

#[test]
fn an_empty_listing_empties_a_set_only_if_that_is_meant() {
    let host = Real::start();
    let at = &host.at;
    run(at, &["add", "s", "a"], "");
    assert!(refused(at, &["sync", "s", "-"], "").contains("--allow-empty"));
    assert_eq!(held(at, &["a"]), ["a"]);
    let emptied = run(at, &["sync", "s", "-", "--allow-empty"], "\n");
    assert_eq!(emptied.1, "s: 0 keys listed, 0 added, 1 removed\n");
}
