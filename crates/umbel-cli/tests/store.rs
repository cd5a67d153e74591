//! `umbel store`: every command, its exit code and its one line of complaint.

use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

fn umbel(folder: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("umbel").expect("the binary is built");
    command.current_dir(folder).arg("store").args(arguments).assert()
}

fn says(folder: &Path, arguments: &[&str], expected: &str) {
    umbel(folder, arguments).code(0).stdout(expected.to_owned());
}

fn refuses(folder: &Path, arguments: &[&str], part: &str) {
    let output = umbel(folder, arguments).code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).expect("messages are text");
    assert!(stderr.contains(part) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn what_is_put_can_be_got_scanned_and_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (key, value) in [("b/2", "two"), ("a/1", "one"), ("b/3", "three"), ("empty", "")] {
        says(folder, &["put", "s", key, value], "");
    }
    says(folder, &["get", "s", "a/1"], "one\n");
    says(folder, &["get", "s", "empty"], "\n");
    umbel(folder, &["get", "s", "absent"]).code(1).stdout("").stderr("");
    says(folder, &["scan", "s"], "a/1\tone\nb/2\ttwo\nb/3\tthree\nempty\t\n");
    says(folder, &["scan", "s", "--prefix", "b/"], "b/2\ttwo\nb/3\tthree\n");
    says(folder, &["scan", "s", "--from", "b/2", "--to", "b/3"], "b/2\ttwo\n");
    says(folder, &["scan", "s", "--from", "b/3"], "b/3\tthree\nempty\t\n");
    says(folder, &["delete", "s", "a/1", "absent", "b/2"], "deleted 2 of 3\n");
    says(folder, &["integrate", "s"], "2 records in a master of 8448 bytes\n");
    says(folder, &["put", "s", "b/3", "again"], "");
    says(folder, &["scan", "s"], "b/3\tagain\nempty\t\n");
    let verified = umbel(folder, &["verify", "s"]).code(0).get_output().stdout.clone();
    assert!(String::from_utf8_lossy(&verified).contains("2 records in 3 files"));
}

#[test]
fn every_answer_is_there_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let json = |arguments: &[&str]| -> Vec<Value> {
        let output = umbel(folder, arguments).code(0).get_output().stdout.clone();
        let text = String::from_utf8(output).expect("JSON is text");
        text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
    };
    std::fs::write(folder.join("records"), b"a\tone\nb\t\xFF\nc\tthree\n").expect("a file");
    assert_eq!(json(&["load", "s", "records", "--json"]), [json!({ "loaded": 3 })]);
    assert_eq!(json(&["get", "s", "a", "--json"]), [json!({ "key": "a", "value": "one" })]);
    let all = json(&["scan", "s", "--json"]);
    assert_eq!((all.len(), &all[1]), (3, &json!({ "key": "b", "value": { "hex": "ff" } })));
    let deleted = json!({ "deleted": 1, "asked": 2 });
    assert_eq!(json(&["delete", "s", "c", "d", "--json"]), [deleted]);
    assert_eq!(json(&["integrate", "s", "--json"])[0]["records"], 2);
    assert_eq!(json(&["backup", "s", "copy", "--json"])[0]["records"], 2);
    assert_eq!(json(&["restore", "copy", "again", "--json"])[0]["records"], 2);
    assert_eq!(json(&["verify", "again", "--json"])[0]["records"], 2);
}

#[test]
fn a_file_is_loaded_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..2500).map(|i| format!("key {i:04}\tvalue\t{i}\n")).collect();
    std::fs::write(folder.join("good"), &lines).expect("a file");
    std::fs::write(folder.join("bad"), lines + "no tab here\n").expect("a file");
    refuses(folder, &["load", "s", "bad"], "line 2501 has no tab");
    assert!(!folder.join("s").exists(), "nothing was made");
    says(folder, &["load", "s", "good"], "loaded 2500 records\n");
    says(folder, &["get", "s", "key 0007"], "value\t7\n");
    refuses(folder, &["load", "s", "none"], "none");
    let mut load = Command::cargo_bin("umbel").expect("the binary is built");
    load.current_dir(folder).args(["store", "load", "s"]).write_stdin("x\t1\ny\t2\nbad\n");
    let stderr = load.assert().code(2).get_output().stderr.clone();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(stderr.contains("2 records are loaded") && stderr.contains("line 3"), "{stderr}");
    says(folder, &["get", "s", "y"], "2\n");
}

/// The comparison of paper 2 from the terminal: changes that outgrow the memory budget, with the
/// filter and without.
#[test]
fn the_filter_spares_reads_of_changes_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..20_000).map(|i| format!("{i:024}\t{i:016}\n")).collect();
    std::fs::write(folder.join("records"), lines).expect("a file");
    // Each of 2,000 records is changed twice.
    let changes: String = (0..4_000).map(|i| format!("{:024}\tchanged {i}\n", i % 2_000)).collect();
    std::fs::write(folder.join("changes"), changes).expect("a file");
    umbel(folder, &["load", "s", "records"]).code(0);
    umbel(folder, &["integrate", "s"]).code(0);
    umbel(folder, &["load", "s", "changes", "--memory-budget", "64k"]).code(0);
    let stat = |more: &[&str]| -> Value {
        let arguments = [&["stat", "s", "--json"], more].concat();
        let output = umbel(folder, &arguments).code(0).get_output().stdout.clone();
        serde_json::from_slice(&output).expect("JSON")
    };
    let number = |stat: &Value, key: &str| stat[key].as_f64().expect("a number");
    let (with, without) = (stat(&[]), stat(&["--no-filter"]));
    assert_eq!(number(&with, "differential_records"), 4000.0);
    assert!(number(&with, "differential_keys") < 4000.0, "{with}");
    assert!(number(&with, "spared_reads") > 10_000.0, "{with}");
    assert!(number(&with, "index_reads") < 0.2 * number(&without, "index_reads"), "{with}");
    assert_eq!((number(&without, "spared_reads"), number(&without, "filter_errors")), (0.0, 0.0));
    refuses(folder, &["stat", "s", "--filter-bits", "0"], "--filter-bits");
    refuses(folder, &["load", "s", "changes", "--memory-budget", "9G"], "8 GiB");
}

#[test]
fn stat_has_the_keys_that_scripts_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..5000).map(|i| format!("{i:024}\t{i:016}\n")).collect();
    std::fs::write(folder.join("lines"), lines).expect("a file");
    says(folder, &["load", "s", "lines"], "loaded 5000 records\n");
    umbel(folder, &["integrate", "s"]).code(0);
    says(folder, &["put", "s", "more", "1"], "");
    let output = umbel(folder, &["stat", "s", "--json"]).code(0).get_output().stdout.clone();
    let stat: Value = serde_json::from_slice(&output).expect("JSON");
    let keys: Vec<&str> = stat.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut expected = vec![
        "records",
        "master_bytes",
        "differential_records",
        "differential_keys",
        "differential_bytes",
        "filter_bits",
        "filter_errors",
        "filter_error_expected",
        "index_reads",
        "spared_reads",
        "bytes_per_record",
        "generation",
    ];
    expected.sort_unstable();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(stat["records"], 5001);
    assert_eq!(stat["differential_records"], 1);
    assert!(stat["filter_error_expected"].as_f64().expect("a number") < 1.0);
    umbel(folder, &["stat", "s"]).code(0);
}

#[test]
fn backups_are_made_added_to_and_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    says(folder, &["put", "s", "a", "1"], "");
    umbel(folder, &["integrate", "s"]).code(0);
    umbel(folder, &["backup", "s", "copy"]).code(0);
    says(folder, &["put", "s", "b", "2"], "");
    refuses(folder, &["backup", "s", "copy"], "empty folder");
    umbel(folder, &["backup", "s", "copy", "--incremental"]).code(0);
    refuses(folder, &["backup", "s", "other", "--incremental"], "no backup");
    says(folder, &["restore", "copy", "again"], "2 records restored\n");
    says(folder, &["scan", "again"], "a\t1\nb\t2\n");
    refuses(folder, &["restore", "copy", "again"], "empty folder");
    refuses(folder, &["restore", "nothing", "more"], "no store");
}

#[test]
fn mistakes_are_one_line_and_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for command in ["get", "delete"] {
        refuses(folder, &[command, "none", "key"], "there is no store here");
    }
    for command in ["scan", "integrate", "verify", "stat"] {
        refuses(folder, &[command, "none"], "there is no store here");
    }
    refuses(folder, &["scan", "s", "--prefix", "a", "--from", "b"], "--prefix");
    refuses(folder, &["delete", "s"], "KEY");
    refuses(folder, &["put", "s", "key"], "VALUE");
    refuses(folder, &["put", "s", &"k".repeat(70_000), "v"], "at most 65535 bytes");
    assert_eq!(std::fs::read_dir(folder).expect("the folder").count(), 0, "nothing was made");

    std::fs::write(folder.join("file"), "no folder").expect("a file");
    for arguments in [&["stat", "file"][..], &["put", "file", "a", "1"]] {
        let stderr = umbel(folder, arguments).code(2).get_output().stderr.clone();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert_eq!(stderr.matches("os error").count(), 1, "the reason is said once: {stderr}");
    }

    says(folder, &["put", "s", "a", "1"], "");
    let held = umbel_store::Store::open(folder.join("s"), umbel_store::Options::new());
    refuses(folder, &["get", "s", "a"], "another process has it open");
    drop(held);
    says(folder, &["get", "s", "a"], "1\n");
    let manifest = folder.join("s").join("MANIFEST");
    let mut bytes = std::fs::read(&manifest).expect("a manifest");
    bytes[20] ^= 1;
    std::fs::write(&manifest, bytes).expect("a manifest");
    refuses(folder, &["get", "s", "a"], "MANIFEST is damaged at byte");
}

fn with_input(folder: &Path, arguments: &[&str], input: Vec<u8>) -> std::process::Output {
    let mut command = Command::cargo_bin("umbel").expect("the binary is built");
    command.current_dir(folder).arg("store").args(arguments).write_stdin(input);
    command.output().expect("it runs")
}

/// `k<tab>x` became the key `k`, without a word.
#[test]
fn what_is_scanned_is_loaded_as_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let plain = [("a", "1\twith a tab"), ("b", ""), ("", "no key"), ("{\"key\"", "a brace")];
    for (key, value) in plain {
        says(folder, &["put", "plain", key, value], "");
    }
    let scanned = umbel(folder, &["scan", "plain"]).code(0).get_output().stdout.clone();
    let loaded = with_input(folder, &["load", "again"], scanned.clone());
    assert_eq!(loaded.stdout, b"loaded 4 records\n");
    umbel(folder, &["scan", "again"]).code(0).stdout(scanned);

    let hard = [("k\tx", "1"), ("line\nbreak", "2"), ("v", "two\nlines"), ("w", "ends so\r")];
    for (key, value) in hard {
        let store = format!("hard-{}", &key[..1]);
        for store in [&store, "all"] {
            says(folder, &["put", store, key, value], "");
        }
        let refused = umbel(folder, &["scan", &store]).code(2).get_output().clone();
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(stderr.contains("use --json") && stderr.lines().count() == 1, "{stderr}");
        assert!(refused.stdout.is_empty());
    }
    let scanned = umbel(folder, &["scan", "all", "--json"]).code(0).get_output().stdout.clone();
    assert_eq!(
        with_input(folder, &["load", "whole"], scanned.clone()).stdout,
        b"loaded 4 records\n"
    );
    umbel(folder, &["scan", "whole", "--json"]).code(0).stdout(scanned.clone());
    std::fs::write(folder.join("lines.json"), scanned).expect("a file");
    says(folder, &["load", "file", "lines.json", "--format", "json"], "loaded 4 records\n");
    refuses(folder, &["load", "none", "lines.json", "--format", "text"], "line 1 has no tab");
}

#[test]
fn lines_may_end_as_on_other_systems() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("dos"), "a\t1\r\nb\t\r\n").expect("a file");
    says(folder, &["load", "s", "dos"], "loaded 2 records\n");
    says(folder, &["scan", "s"], "a\t1\nb\t\n");
    std::fs::write(folder.join("gone"), "a\r\n\r\nabsent\r\n").expect("a file");
    says(folder, &["delete", "s", "--file", "gone"], "deleted 1 of 2\n");
}

#[test]
fn many_keys_are_deleted_by_file_and_by_standard_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..5000).map(|i| format!("key {i:04}\t{i}\n")).collect();
    std::fs::write(folder.join("records"), lines).expect("a file");
    says(folder, &["load", "s", "records"], "loaded 5000 records\n");
    let keys: String = (0..2500).map(|i| format!("key {i:04}\n")).collect();
    std::fs::write(folder.join("bad"), keys.clone() + &"k".repeat(70_000)).expect("a file");
    refuses(folder, &["delete", "s", "--file", "bad"], "line 2501: the key has over 65535 bytes");
    says(folder, &["get", "s", "key 0000"], "0\n");
    std::fs::write(folder.join("keys"), keys).expect("a file");
    says(folder, &["delete", "s", "--file", "keys"], "deleted 2500 of 2500\n");
    says(folder, &["delete", "s", "--file", "keys"], "deleted 0 of 2500\n");

    // What a scan prints may be deleted.
    let old = umbel(folder, &["scan", "s", "--prefix", "key 3", "--json"]);
    let old = old.code(0).get_output().stdout.clone();
    let deleted = with_input(folder, &["delete", "s", "--file", "-", "--format", "json"], old);
    assert_eq!(deleted.stdout, b"deleted 1000 of 1000\n");
    let verified = umbel(folder, &["verify", "s", "--json"]).code(0).get_output().stdout.clone();
    let verified: Value = serde_json::from_slice(&verified).expect("JSON");
    assert_eq!(verified["records"], 1500);

    refuses(folder, &["delete", "s", "key 2600", "--file", "keys"], "--file");
    refuses(folder, &["delete", "none", "--file", "keys"], "there is no store here");
    refuses(folder, &["delete", "s", "--file", "nothing"], "nothing");
    let bad = [&b"key 2600\n"[..], &[b'k'; 70_000]].concat();
    let stderr = with_input(folder, &["delete", "s", "--file", "-"], bad);
    let text = String::from_utf8_lossy(&stderr.stderr).into_owned();
    assert!(text.contains("1 keys are deleted, then: line 2"), "{text}");
    assert_eq!(stderr.status.code(), Some(2));
}

/// A backup that shared the master with its store was damaged with it.
#[test]
fn a_backup_survives_damage_to_its_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    says(folder, &["put", "s", "a", "1"], "");
    umbel(folder, &["integrate", "s"]).code(0);
    let linked = |arguments: &[&str]| -> u64 {
        let output = umbel(folder, arguments).code(0).get_output().stdout.clone();
        let json: Value = serde_json::from_slice(&output).expect("JSON");
        json["linked_bytes"].as_u64().expect("a number")
    };
    assert_eq!(linked(&["backup", "s", "copy", "--json"]), 0);
    assert!(linked(&["backup", "s", "link", "--link", "--json"]) > 0);
    refuses(folder, &["backup", "s", "copy", "--link", "--incremental"], "--incremental");
    let files = std::fs::read_dir(folder.join("s")).expect("a folder");
    let master = files.map(|entry| entry.expect("an entry").path());
    let master = master.into_iter().find(|path| path.extension() == Some("master".as_ref()));
    let master = master.expect("a master");
    let mut bytes = std::fs::read(&master).expect("a master");
    bytes[4200] ^= 1;
    // In place, as a disk damages it.
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().write(true).open(master).expect("a master");
    file.write_all(&bytes).expect("a master");
    for damaged in ["s", "link"] {
        umbel(folder, &["verify", damaged]).code(2);
    }
    says(folder, &["get", "copy", "a"], "1\n");
    umbel(folder, &["verify", "copy"]).code(0);
}

/// Reading leaves the folder as it is: no mark of closing, no file for the lock where it is there.
#[test]
fn commands_that_read_write_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    says(folder, &["put", "s", "a", "1"], "");
    std::fs::write(folder.join("s/00000099.unfinished"), "left by a crash").expect("a file");
    let all = || -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let files = std::fs::read_dir(folder.join("s")).expect("a folder");
        let paths = files.map(|entry| entry.expect("an entry").path());
        let mut all: Vec<_> =
            paths.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
        all.sort();
        all
    };
    let before = all();
    says(folder, &["get", "s", "a"], "1\n");
    says(folder, &["scan", "s"], "a\t1\n");
    umbel(folder, &["verify", "s"]).code(0);
    umbel(folder, &["stat", "s"]).code(0);
    assert_eq!(all(), before);
    // Several may read at a time.
    let reader = umbel_store::Reader::open(folder.join("s")).expect("a store");
    says(folder, &["get", "s", "a"], "1\n");
    refuses(folder, &["put", "s", "a", "2"], "another process has it open");
    drop(reader);
    says(folder, &["put", "s", "a", "2"], "");
}

/// On a file system that is mounted read-only. Needs root and unshare; umbel-store tests the same with a
/// disk in memory.
#[cfg(target_os = "linux")]
#[test]
fn a_backup_on_write_protected_media_is_read_and_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    says(folder, &["put", "s", "a", "1"], "");
    umbel(folder, &["integrate", "s"]).code(0);
    says(folder, &["put", "s", "b", "2"], "");
    umbel(folder, &["backup", "s", "backup"]).code(0);
    assert!(!folder.join("backup/LOCK").exists(), "nothing has opened it");
    let script =
        "mount --bind backup backup && mount -o remount,bind,ro backup || { echo cannot; exit; }
                  \"$0\" store get backup a && \"$0\" store scan backup \\
                  && \"$0\" store verify backup && \"$0\" store stat backup > statistics \\
                  && \"$0\" store restore backup restored && ! \"$0\" store put backup c 3";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(env!("CARGO_BIN_EXE_umbel"));
    let output = command.current_dir(folder).output().expect("unshare runs");
    let stderr = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if stderr == "cannot\n" || error.starts_with("unshare:") {
        println!("skipped: read-only mounts need root and unshare");
        return;
    }
    assert!(stderr.starts_with("1\na\t1\nb\t2\n2 records in "), "{stderr}{error}");
    assert!(stderr.ends_with("all valid\n2 records restored\n"), "{stderr}{error}");
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("Read-only file system") && error.lines().count() == 1, "{error}");
    assert!(!folder.join("backup/LOCK").exists());
}
