//! `umbel demo` keeps the promises it shows.

use assert_cmd::Command;
use serde_json::Value;

fn umbel() -> Command {
    Command::cargo_bin("umbel").expect("the binary is built with its tests")
}

#[test]
fn the_demo_shows_that_promises_are_kept() {
    let output = umbel()
        .args(["demo", "--offline", "--keys", "50000", "--hosts", "20", "--json"])
        .output()
        .expect("the demo runs");
    assert!(output.status.success());
    let shown: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(shown["filter"]["false_negatives"], 0);
    assert_eq!(shown["bank"]["holders_missed"], 0);
    let measured = shown["filter"]["measured_false_positive"].as_f64().expect("a number");
    assert!(measured < 0.0105, "{measured}");
}

#[test]
fn the_demo_speaks_to_people() {
    let demo =
        umbel().args(["demo", "--offline", "--keys", "1000", "--hosts", "3"]).assert().success();
    let text = String::from_utf8(demo.get_output().stdout.clone()).expect("text");
    assert!(text.contains("0 present keys denied (promised: none)"), "{text}");
    assert!(text.contains("0 holders missed (promised: none)"), "{text}");
}

#[test]
fn numbers_out_of_range_are_one_line_and_exit_2() {
    for (option, value) in [("--hosts", "0"), ("--keys", "0"), ("--false-positive", "1")] {
        let refused = umbel().args(["demo", "--offline", option, value]).assert().code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("text");
        assert!(message.contains(option) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn hosts_that_cannot_be_started_are_refused() {
    for (arguments, message) in [
        (&["--hosts", "1"][..], "2 to 32"),
        (&["--hosts", "33"], "2 to 32"),
        (&["--hosts", "five"], "--hosts"),
        (&["--minutes", "0"], "0.05"),
        (&["--minutes", "nan"], "0.05"),
        (&["--keys", "2000000"], "at most 1000000"),
        (&["--churn", "1000000"], "--churn"),
        (&["--offline", "--minutes", "1"], "--offline"),
        (&["--offline", "--hosts", "5000"], "1 to 4096"),
    ] {
        let refused = umbel().arg("demo").args(arguments).assert().code(2);
        let all_reported = String::from_utf8(refused.get_output().stderr.clone()).expect("text");
        assert!(
            all_reported.contains(message) && all_reported.lines().count() == 1,
            "{all_reported}"
        );
    }
}

#[test]
fn the_demo_ends_with_a_summary() {
    let demo = umbel()
        .args(["demo", "--hosts", "2", "--minutes", "0.05", "--keys", "500", "--churn", "10"])
        .assert()
        .success();
    let text = String::from_utf8(demo.get_output().stdout.clone()).expect("text");
    for expected in ["promised", "host-2 was killed", "while host-2 was gone", "updates: sent"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn real_hosts_keep_what_they_promise() {
    let output = umbel()
        .args(["demo", "--hosts", "3", "--minutes", "0.15", "--keys", "5000", "--json"])
        .output()
        .expect("the demo runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    let shown: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let number = |name: &str| shown[name].as_f64().expect("a number");
    assert!(number("members_asked") > 2000.0 && number("absent_asked") > 2000.0, "{shown}");
    assert!(number("miss_rate") <= number("miss_target"), "{shown}");
    assert!(number("false_positive_rate") <= number("false_positive_promised"), "{shown}");
    // There was something to miss: keys came and went all the while.
    let hosts = shown["hosts"].as_array().expect("a list");
    assert!(hosts.iter().all(|host| host["updates"].as_f64() >= Some(3.0)), "{shown}");
    assert_eq!(shown["hosts"].as_array().map(Vec::len), Some(3));
    // One of them was killed and came back; the others' answers stayed right.
    let outage = &shown["outage"];
    let [asked, missed] = ["members_asked", "missed"].map(|name| outage[name].as_f64());
    assert_eq!(outage["host"], "host-3", "{outage}");
    // A small sample: twice the target leaves room for chance.
    assert!(asked > Some(100.0) && missed <= asked.map(|asked| asked * 0.02), "{outage}");
    assert!(["named_seconds", "back_seconds"].iter().all(|time| outage[time].is_number()));
}

/// Processes whose command line has this text, but for zombies.
fn running(text: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("a system with /proc");
    let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let lines = processes.flatten().filter_map(line);
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_of_a_demo_that_is_told_to_end() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    for signal in ["-INT", "-TERM", "-KILL"] {
        let folder = tempfile::tempdir().expect("a folder");
        // A name of its own, by which its hosts are told from those of other tests.
        let binary = folder.path().join("umbel-demo-under-test");
        std::fs::copy(assert_cmd::cargo::cargo_bin("umbel"), &binary).expect("a copy");
        let name = binary.to_str().expect("text");
        let mut demo = Command::new(&binary)
            .args(["demo", "--hosts", "2", "--minutes", "5", "--keys", "100"])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the demo starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        let wait_for = |processes: usize| {
            while running(name) != processes && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(running(name), processes, "{signal}");
        };
        wait_for(3);
        let id = demo.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
        demo.wait().expect("it ends");
        wait_for(0);
        let left = std::fs::read_dir(folder.path()).expect("the folder").count();
        // Nobody can clean up after being killed outright; its folder holds logs and catalogues.
        assert_eq!(left, if signal == "-KILL" { 2 } else { 1 }, "{signal}");
    }
}
