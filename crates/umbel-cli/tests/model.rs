//! `umbel model`: exact keys, reference values, and every bad value in one line.

use crate::run::{Case, assert_keys, assert_near, json, number, printed, refused};

#[test]
fn standard_answers_with_its_keys_and_reference_values() {
    let keys = ["fill", "false_positive", "best_hashes", "best_false_positive"];
    let answer = json("model standard --bits 8000 --hashes 6 --items 1000", &keys);
    assert_near(&answer, "fill", 0.5276, 5e-5);
    assert_near(&answer, "false_positive", 0.0216, 5e-5);
    assert_near(&answer, "best_hashes", 5.545, 5e-4);
    assert_near(&answer, "best_false_positive", 0.0214, 5e-5);
}

#[test]
fn standard_keeps_its_digits_at_the_longest_length() {
    let keys = ["fill", "false_positive", "best_hashes", "best_false_positive"];
    let answer = json("model standard --bits 1099511627776 --hashes 1 --items 1", &keys);
    assert_near(&answer, "false_positive", 0.5_f64.powi(40), 1e-24);
    let full = json("model standard --bits 1 --hashes 64 --items 1099511627776", &keys);
    assert_near(&full, "false_positive", 1.0, 0.0);
}

#[test]
fn replica_answers_with_its_keys_and_the_rows_of_table_2() {
    let keys = ["replica_items", "false_positive", "false_negative", "overall", "host"];
    for (k, n, zeros, ones, percent) in [
        (6, 240, 0.01, 0.1705, 46.22),
        (6, 150, 0.1165, 0.13, 15.42),
        (8, 100, 0.1377, 0.1732, 2.2),
    ] {
        let answer = json(
            &format!(
                "model replica --bits 1200 --hashes {k} --items {n} --dirty-ones {ones} \
                 --dirty-zeros {zeros} --hosts 5"
            ),
            &keys,
        );
        assert_keys(&answer["host"], &["false_positive", "false_negative", "overall"], "host");
        assert_near(&answer, "host/overall", percent / 100.0, 5e-5);
        let sum = number(&answer, "false_positive") + number(&answer, "false_negative");
        assert_near(&answer, "overall", sum, 1e-15);
    }
}

#[test]
fn replica_has_two_hosts_and_equal_weights_unless_told() {
    let keys = ["replica_items", "false_positive", "false_negative", "overall", "host"];
    let line = "model replica --bits 9593 --hashes 7 --items 1000 --dirty-ones 0.1 --dirty-zeros 0";
    let plain = json(line, &keys);
    let stderr = json(
        &format!("{line} --hosts 2 --weight-false-positive 1 --weight-false-negative 1"),
        &keys,
    );
    assert_eq!(plain, stderr);
    let weighted =
        json(&format!("{line} --weight-false-positive 2 --weight-false-negative 5"), &keys);
    let (f_plus, f_minus) = (number(&plain, "false_positive"), number(&plain, "false_negative"));
    assert_near(&weighted, "overall", 2.0 * f_plus + 5.0 * f_minus, 1e-15);
}

#[test]
fn replica_refuses_dirty_bits_that_cannot_be() {
    let line = |ones: &str, zeros: &str, items: &str| {
        let line = format!(
            "model replica --bits 1200 --hashes 6 --items {items} --dirty-ones {ones} --dirty-zeros {zeros}"
        );
        line.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    // The fill of 240 keys is 0.6988.
    refused(&line("0.7", "0", "240"), "--dirty-ones", "between 0 and the fill 0.698");
    refused(&line("0", "0.31", "240"), "--dirty-zeros", "between 0 and the share of zeros 0.301");
    refused(&line("0", "0", "1000000000"), "--items", "all ones");
}

#[test]
fn dynamic_answers_with_its_keys_and_reference_values() {
    let keys = [
        "components",
        "false_positive",
        "standard_false_positive",
        "rebuilt_false_positive",
        "several_components_bound",
    ];
    let answer = json("model dynamic --bits 1280 --hashes 7 --capacity 133 --items 1330", &keys);
    assert_eq!(answer["components"], 10);
    let full = 0.009_847_18;
    assert_near(&answer, "false_positive", 9.57 * full, 0.01 * full);
    assert_near(&answer, "standard_false_positive", 101.0 * full, 0.5 * full);
    assert_near(&answer, "rebuilt_false_positive", full, 1e-8);
    assert_near(&answer, "several_components_bound", 0.0852, 5e-5);
}

#[test]
fn routing_answers_with_its_keys_and_reference_values() {
    let answer = json(
        "model routing --bits 33 --hashes 3 --items 3 --filters 7",
        &["single", "cubf", "abf"],
    );
    assert_near(&answer, "single", 0.0136, 5e-5);
    assert_near(&answer, "cubf", 0.0914, 5e-5);
    assert_near(&answer, "abf", 0.618, 5e-4);
}

#[test]
fn differential_answers_with_its_keys_and_reference_values() {
    let keys = ["filter_error", "filter_error_exact", "best_hashes"];
    for (bits, hashes, best, error) in [(1_000_000, 1, 1, 0.3743), (2_000_000, 3, 3, 0.1397)] {
        let answer = json(
            &format!(
                "model differential --bits {bits} --hashes {hashes} --records 10000000 --updates 500000"
            ),
            &keys,
        );
        assert_eq!(answer["best_hashes"], best);
        assert_near(&answer, "filter_error", error, 5e-5);
        assert_near(&answer, "filter_error_exact", error, 5e-5);
    }
}

#[test]
fn intersection_answers_with_its_key() {
    let line = "model intersection --bits 1000 --hashes 2 --only-a 10 --only-b 5";
    let answer = json(line, &["probability_exact"]);
    assert_near(&answer, "probability_exact", 0.999_f64.powi(200), 1e-12);
    let same = json(
        "model intersection --bits 1 --hashes 1 --only-a 0 --only-b 0",
        &["probability_exact"],
    );
    assert_near(&same, "probability_exact", 1.0, 0.0);
}

#[test]
fn tables_say_what_the_numbers_are() {
    let table = printed("model standard --bits 9593 --hashes 7 --items 1000");
    assert!(table.starts_with("Filter of 9,593 bits and 7 hashes with 1,000 keys\n"), "{table}");
    assert!(table.contains("false positive") && table.contains("1 %"), "{table}");
}

const M: (&str, &str, &str, &str) = ("--bits", "1200", "1099511627777", "from 1 to 2^40");
const K: (&str, &str, &str, &str) = ("--hashes", "6", "65", "from 1 to 64");
const N: (&str, &str, &str, &str) = ("--items", "100", "0", "from 1 to 2^40");

#[test]
fn bad_values_are_refused_in_one_line() {
    for case in [
        Case { command: "model standard", options: &[M, K, N] },
        Case {
            command: "model dynamic",
            options: &[M, K, N, ("--capacity", "133", "0", "from 1 to 2^40")],
        },
        Case {
            command: "model routing",
            options: &[M, K, N, ("--filters", "7", "1000001", "from 1 to 1000000")],
        },
        Case {
            command: "model differential",
            options: &[
                M,
                K,
                ("--records", "100", "0", "from 1 to 2^40"),
                ("--updates", "50", "0", "from 1 to 2^40"),
            ],
        },
        Case {
            command: "model intersection",
            options: &[
                M,
                K,
                ("--only-a", "3", "1099511627777", "from 0 to 2^40"),
                ("--only-b", "0", "1.5", "from 0 to 2^40"),
            ],
        },
    ] {
        case.refuses_bad_values();
        case.needs(&case.options.iter().map(|option| option.0).collect::<Vec<_>>());
    }
}

#[test]
fn bad_values_of_a_replica_are_refused_in_one_line() {
    let replica = Case {
        command: "model replica",
        options: &[
            M,
            K,
            N,
            ("--dirty-ones", "0.1", "1.1", "from 0 to 1"),
            ("--dirty-zeros", "0.1", "1.1", "from 0 to 1"),
            ("--hosts", "5", "0", "from 1 to 1000000"),
            ("--weight-false-positive", "2", "1e7", "from 0 to 1000000"),
            ("--weight-false-negative", "2", "1e7", "from 0 to 1000000"),
        ],
    };
    replica.refuses_bad_values();
    replica.needs(&["--bits", "--hashes", "--items", "--dirty-ones", "--dirty-zeros"]);
}

#[test]
fn mistakes_in_names_are_refused_in_one_line() {
    refused(&["model", "standrad"], "standrad", "'standard'");
    refused(&["modle"], "modle", "'model'");
    refused(&["model", "standard", "--bitz", "5"], "--bitz", "'--bits'");
}

#[test]
fn help_and_version_are_answers() {
    assert!(printed("--version").starts_with("umbel "));
    assert!(printed("model replica --help").contains("Example"));
    assert!(printed("model --help").contains("intersection"));
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    for arguments in [
        &["model", "standard", "--bits", "9593", "--hashes", "7", "--items", "1000"][..],
        &["model", "standard", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("umbel"))
            .args(arguments)
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn chain_answers_with_its_keys_and_the_bound() {
    let keys = ["over_estimate", "run", "one_step_more", "keys_read", "rounds", "keys_walked"];
    let answer = json(
        "model chain --false-positive 10% --hashes 3 --window 12 --step 8 --length 8192 --workers 64",
        &keys,
    );
    assert_near(&answer, "run", 1e-12 * (1.0 + 8180.0 * 0.9), 1e-15);
    assert_near(&answer, "over_estimate", number(&answer, "run") + 1e-9, 1e-15);
    assert_near(&answer, "one_step_more", 0.1111 / 8.0, 1e-5);
    assert!(number(&answer, "keys_read") < 80.0);
}

#[test]
fn bad_values_of_a_chain_are_refused_in_one_line() {
    let chain = Case {
        command: "model chain",
        options: &[
            ("--false-positive", "0.1", "1", "from 1e-15 to below 1"),
            ("--hashes", "3", "0", "from 1 to 64"),
            ("--window", "12", "0", "from 1 to 2^24"),
            ("--step", "8", "1e9", "from 1 to 2^24"),
            ("--length", "100", "0", "from 1 to 2^24"),
            ("--workers", "64", "0", "from 1 to 1000000"),
        ],
    };
    chain.refuses_bad_values();
    chain.needs(&["--false-positive", "--hashes", "--window", "--step", "--length", "--workers"]);
}
