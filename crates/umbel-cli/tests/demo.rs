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
        let said = String::from_utf8(refused.get_output().stderr.clone()).expect("text");
        assert!(said.contains(option) && said.lines().count() == 1, "{said}");
    }
}
