//! `umbel lab`: what is listed, run, saved and refused.

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

fn lab(arguments: &[&str]) -> std::process::Output {
    let mut umbel = Command::cargo_bin("umbel").expect("the binary is built with its tests");
    umbel.arg("lab").args(arguments).output().expect("the binary runs")
}

fn printed(arguments: &[&str]) -> String {
    let output = lab(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && stderr.is_empty(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("answers are text")
}

#[test]
fn the_list_names_every_experiment_with_source_and_title() {
    let text = printed(&["list"]);
    let listed: Value = serde_json::from_str(&printed(&["list", "--json"])).expect("JSON");
    let listed = listed.as_array().expect("an array");
    assert_eq!(listed.len(), text.lines().count());
    for (experiment, line) in listed.iter().zip(text.lines()) {
        for key in ["name", "source", "title"] {
            assert!(line.contains(experiment[key].as_str().expect("a text")), "{line}");
        }
        assert_eq!(experiment.as_object().expect("an object").len(), 3);
    }
    assert!(text.contains("zhu-table-2"));
}

#[test]
fn a_run_prints_and_saves_the_same_digits_every_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let out = directory.path().join("made").join("here");
    let out = out.to_str().expect("a name");
    let json = printed(&["run", "zhu-table-1", "--json", "--out", out]);
    let saved = |ending: &str| {
        fs::read_to_string(format!("{out}/zhu-table-1.{ending}")).expect("a file was written")
    };
    assert_eq!(json, saved("json"));
    let report: Value = serde_json::from_str(&json).expect("one object");
    assert_eq!(report["rows"].as_array().expect("an array").len(), 24);
    assert_eq!(report["claims"][0]["verdict"], "holds");
    assert!(saved("svg").starts_with("<svg "));
    assert_eq!(saved("csv").lines().count(), 25);
    assert_eq!(printed(&["run", "zhu-table-1", "--seed", "1"]), saved("txt") + "\n");
    assert_ne!(json, printed(&["run", "zhu-table-1", "--seed", "2", "--json"]));
    let left: Vec<_> = fs::read_dir(out).expect("a directory").collect();
    assert_eq!(left.len(), 4, "nothing but the four files: {left:?}");
}

#[test]
fn an_unknown_name_is_one_line_with_a_suggestion() {
    let output = lab(&["run", "zhu-table-3"]);
    let stderr = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("zhu-table-3") && stderr.contains("similar"), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_directory_that_cannot_be_made_is_refused_before_anything_runs() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let inside = file.path().join("inside");
    let output = lab(&["run", "all", "--out", inside.to_str().expect("a name")]);
    let stderr = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("inside") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn worlds_of_faults_break_no_promise_and_repeat_from_their_seed() {
    let arguments = ["faults", "--seeds", "20", "--seed", "5", "--steps", "80", "--json"];
    let json = printed(&arguments);
    let tally: Value = serde_json::from_str(&json).expect("one object");
    let keys: Vec<&String> = tally.as_object().expect("an object").keys().collect();
    let mut expected = vec![
        "worlds",
        "steps",
        "messages",
        "dropped",
        "duplicated",
        "reordered",
        "corrupted",
        "crashes",
        "partitions",
        "queries",
        "parts",
        "violations",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!((&tally["worlds"], &tally["violations"]), (&Value::from(20), &Value::from(0)));
    assert!(tally["messages"].as_u64() > Some(1000));
    assert_eq!(json, printed(&arguments), "the same seed, the same world");
}

#[test]
fn overlays_in_worlds_of_faults_end_their_queries() {
    let json = printed(&["faults", "--overlay", "--seeds", "5", "--steps", "80", "--json"]);
    let tally: Value = serde_json::from_str(&json).expect("one object");
    assert_eq!((&tally["worlds"], &tally["violations"]), (&Value::from(5), &Value::from(0)));
    assert!(tally["queries"].as_u64() > Some(100), "{json}");
}

#[test]
fn worlds_of_faults_refuse_numbers_out_of_range() {
    for (option, value) in [("--seeds", "0"), ("--hosts", "1"), ("--steps", "0"), ("--seed", "x")] {
        let output = lab(&["faults", option, value]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(option) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn a_mesh_of_some_hosts_costs_what_the_model_says() {
    let json = printed(&["scale", "--hosts", "9", "--keys", "100", "--json"]);
    let answer: Value = serde_json::from_str(&json).expect("one object");
    let number = |field: &str| answer[field].as_f64().unwrap_or_else(|| panic!("{field}: {json}"));
    assert_eq!(number("replica_bytes"), number("replica_bytes_model"), "{json}");
    assert!((number("quiet_messages_per_second") - 8.0 / 3.0).abs() < 0.01, "{json}");
    assert!(number("join_bytes") < number("join_bytes_model"), "{json}");
    assert!(printed(&["scale", "--hosts", "3", "--keys", "10"]).contains("by the model"));
    for (option, value) in [("--hosts", "1"), ("--keys", "0"), ("--changes", "0")] {
        let output = lab(&["scale", option, value]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(option) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn a_report_refuses_what_it_cannot_write_before_anything_runs() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let inside = file.path().join("inside");
    for arguments in [
        vec!["report"],
        vec!["report", "--out"],
        vec!["report", "--quick", "--out", inside.to_str().expect("a name")],
        vec!["report", "--out", "x", "--seed", "many"],
    ] {
        let output = lab(&arguments);
        let stderr = String::from_utf8(output.stderr).expect("messages are text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.lines().count() == 1 && output.stdout.is_empty(), "{stderr}");
    }
}

#[test]
fn the_quick_report_is_one_page_that_counts_its_claims() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let out = directory.path().join("made");
    let out = out.to_str().expect("a name");
    let json = printed(&["report", "--quick", "--seed", "3", "--json", "--out", out]);
    let answer: Value = serde_json::from_str(&json).expect("one object");
    let html = fs::read_to_string(answer["file"].as_str().expect("a path")).expect("a page");
    let number = |value: &Value| value.as_u64().expect("a number");
    for (whose, words) in [("papers", "claims of the papers"), ("ours", "of ours")] {
        let counts = &answer[whose];
        let of = |key: &str| number(&counts[key]);
        let verdicts = ["hold", "fail", "too_rare", "unverifiable"];
        assert_eq!(of("claims"), verdicts.map(of).iter().sum::<u64>());
        let counted = format!(
            "{} {words}:</strong> {} hold, {} do not",
            of("claims"),
            of("hold"),
            of("fail")
        );
        assert!(html.contains(&counted), "{counted}");
    }
    assert_eq!(html.matches("<article ").count() as u64, number(&answer["experiments"]));
    assert_eq!(fs::read_dir(out).expect("a directory").count(), 1, "the page and nothing else");
}
