//! `umbel lab policies`: exact keys, small histories that can be checked by hand, and every
//! mistake in one line.

use std::io::Write as _;

use crate::run::{Case, assert_keys, assert_near, json, number, printed, refused};

const POLICY: [&str; 12] = [
    "policy",
    "updates",
    "bytes",
    "full_broadcast_bytes",
    "mean_miss",
    "max_miss",
    "mean_false_positive",
    "lookups",
    "remote_hits",
    "missed_remote_hits",
    "lookups_missed",
    "false_probes",
];

const SMALL: &str = "lab policies --hosts 2 --items 500 --adds 3 --removes 3 --steps 100";

/// A file of these lines that goes with the test.
fn file(contents: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(contents.as_bytes()).expect("written");
    file
}

#[test]
fn churn_answers_with_its_keys_for_every_policy() {
    let answer = json(SMALL, &["policies"]);
    let rows = answer["policies"].as_array().expect("rows");
    let given: Vec<_> = rows.iter().map(|row| row["policy"].as_str().expect("text")).collect();
    assert_eq!(
        given,
        ["miss:0.01,longest=1s", "miss:0.01", "overall:0.1", "dirty:0.1", "interval:60s"]
    );
    for row in rows {
        assert_keys(row, &POLICY, "a row");
        assert_eq!(row["lookups"], 200);
    }
    assert!(number(&rows[0], "max_miss") <= 0.01);
    assert!(number(&rows[0], "bytes") < number(&rows[0], "full_broadcast_bytes"));
    assert_eq!(rows[4]["updates"], 2);
    assert_eq!(json(SMALL, &["policies"]), answer, "the same seed, the same digits");
    assert_ne!(json(&format!("{SMALL} --seed 2"), &["policies"]), answer);
    let table = printed(SMALL);
    assert!(table.starts_with("policy ") && table.contains("\nmiss:0.01  "), "{table}");
}

#[test]
fn a_history_of_ones_own_is_replayed() {
    let history = file("+ a x\n? b x\n? c y\n- a x\n? b x\n");
    let line = format!("lab policies --history {} --policy miss:0", history.path().display());
    let answer = json(&line, &["policies"]);
    let row = &answer["policies"][0];
    assert_eq!((&row["lookups"], &row["remote_hits"]), (&3.into(), &1.into()));
    assert_near(row, "max_miss", 0.0, 0.0);
}

#[test]
fn requests_are_dealt_to_caches_that_ask_each_other() {
    let requests = file(&"a\nb\nb\na\n".repeat(10));
    let line = format!(
        "lab policies --requests {} --hosts 2 --cache-items 2 --policy miss:0",
        requests.path().display()
    );
    let answer = json(&line, &["policies"]);
    // Each host has both from its second turn on, the second object from the other.
    let row = &answer["policies"][0];
    assert_eq!((&row["lookups"], &row["remote_hits"]), (&4.into(), &2.into()));
}

/// The rate says how long a second is for a policy that waits for one: what is asked for again
/// within it is missed, what is asked for later is not.
#[test]
fn lookups_are_missed_that_come_faster_than_updates() {
    let requests = file(&(0..100).map(|key| format!("{key}\n{key}\n")).collect::<String>());
    let missed = |rate: &str, policy: &str| {
        let line = format!(
            "lab policies --requests {} --hosts 2 --cache-items 1000 --rate {rate} --policy {policy}",
            requests.path().display()
        );
        let answer = json(&line, &["policies"]);
        answer["policies"][0]["lookups_missed"].as_f64().expect("a share")
    };
    assert_eq!(missed("100", "miss:0"), 0.0);
    assert_eq!(missed("100", "miss:1,longest=1s"), 1.0, "asked 10 ms after the add");
    assert_eq!(missed("0.5", "miss:1,longest=1s"), 0.0, "asked 2 s after the add");
    let line = format!("lab policies --requests {} --cache-items 9", requests.path().display());
    assert!(printed(&line).contains("lookups missed"));
}

#[test]
fn coded_updates_stand_beside_whole_filters() {
    let line = "lab policies --hosts 1 --items 1000 --adds 5 --removes 5 --steps 200 \
                --policy dirty:0.05 --equal-miss";
    let answer = json(line, &["equal_miss"]);
    let row = &answer["equal_miss"][0];
    assert!(number(row, "ratio") > 1.0 && number(row, "bytes") > 0.0, "{row}");
    assert!(printed(line).contains("times less"));
}

#[test]
fn a_file_that_is_no_history_is_named_with_its_line() {
    for (contents, option, stderr) in [
        ("+ a x\n+ a\n", "--history", "line 2: '+ host key'"),
        ("", "--history", "no lines"),
        ("", "--requests", "no lines"),
        ("a\n\nb\n", "--requests", "line 2: a key is needed"),
    ] {
        let file = file(contents);
        let path = file.path().to_str().expect("a path that is text");
        let mut arguments = vec!["lab", "policies", option, path];
        if option == "--requests" {
            arguments.extend(["--cache-items", "10"]);
        }
        refused(&arguments, path, stderr);
    }
    refused(&["lab", "policies", "--history", "nowhere.txt"], "nowhere.txt", "No such file");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let line = |text: &'static str| text.split(' ').collect::<Vec<_>>();
    refused(&line("lab policies --policy often"), "--policy", "unknown policy 'often'");
    refused(&line("lab policies --policy miss:2"), "--policy", "a number from 0 to 1");
    refused(&line("lab policies --history x --hosts 3"), "--hosts", "cannot be used");
    refused(&line("lab policies --history x --requests y"), "--requests", "cannot be used");
    let caches = Case {
        command: "lab policies --requests x",
        options: &[("--cache-items", "10", "0", "1 to 2^40")],
    };
    caches.needs(&["--cache-items"]);
    refused(&line("lab policies --cache-items 5"), "--requests", "");
    refused(&line("lab policies --rate 5 --items 5"), "--items", "cannot be used");
    refused(&line("lab policies --hosts 1e6 --items 1e6"), "too many", "");
}

#[test]
fn numbers_outside_their_range_are_refused() {
    let case = Case {
        command: "lab policies --policy manual",
        options: &[
            ("--hosts", "2", "0", "1 to 1000000"),
            ("--items", "50", "0", "1 to 2^40"),
            ("--adds", "1", "1e13", "1e-9"),
            ("--removes", "1", "1e13", "1e-9"),
            ("--lookups", "1", "1e13", "1e-9"),
            ("--steps", "5", "0", "1 to 2^40"),
            ("--false-positive", "0.01", "1", "1e-15"),
            ("--capacity", "100", "0", "1 to 2^40"),
        ],
    };
    case.refuses_bad_values();
}

/// A million hosts were simulated for days without a word.
#[test]
fn a_comparison_that_takes_long_says_so_before_it_begins() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let arguments = "lab policies --hosts 60000 --items 1 --steps 1 --policy manual";
    let mut long = Command::new(env!("CARGO_BIN_EXE_umbel"));
    let mut long = long.args(arguments.split(' ')).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stderr = String::new();
    let read = BufReader::new(long.stderr.take().expect("a pipe")).read_line(&mut stderr);
    long.kill().expect("it runs still");
    long.wait().expect("it ran");
    read.expect("a line");
    assert!(stderr.contains("this takes about 37 seconds"), "{stderr}");
}
