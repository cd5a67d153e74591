//! `umbel lab chain`: exact keys, the same digits every time, and every mistake in one line.

use crate::run::{Case, json, number, printed, refused};

const KEYS: [&str; 13] = [
    "hit_rate",
    "exact_hit_rate",
    "blind_hit_rate",
    "delay_ms",
    "exact_delay_ms",
    "bytes_per_second",
    "bytes_per_change",
    "bits_per_block",
    "blocks",
    "depths",
    "too_large",
    "too_small",
    "restarts",
];

const SMALL: &str = "lab chain --workers 4 --cache-parts 300 --blocks-per-part 8 --requests 120";

#[test]
fn requests_are_routed_with_the_same_digits_every_time() {
    let answer = json(SMALL, &KEYS);
    assert!(number(&answer, "hit_rate") > 0.0, "{answer}");
    assert!(number(&answer, "bytes_per_change") > 0.0, "{answer}");
    assert_eq!(json(SMALL, &KEYS), answer);
    // Enough requests that some come after each restart.
    let table = printed(&format!("{SMALL}0 --loss 0.01 --restarts"));
    assert!(table.contains("router restart") && table.contains("worker restart"), "{table}");
}

#[test]
fn mistakes_are_one_line() {
    let line = format!("{SMALL} --step 1");
    refused(&line.split(' ').collect::<Vec<_>>(), "--step", "a step of 1 keys");
    refused(&["lab", "chain", "--trace", "/nowhere/trace"], "cannot read trace", "/nowhere/trace");
    let chain = Case {
        command: "lab chain",
        options: &[
            ("--workers", "4", "0", "from 1 to 1000000"),
            ("--cache-parts", "10", "0", "from 1 to 2^40"),
            ("--blocks-per-part", "8", "0", "from 1 to 2^24"),
            ("--requests", "10", "0", "from 1 to 1000000"),
            ("--copies", "1", "101", "from 1 to 100"),
            ("--step", "8", "0", "from 1 to 2^24"),
            ("--over-estimate", "1e-7", "2", "from 1e-15 to below 1"),
            ("--loss", "0.1", "2", "from 0 to 1"),
        ],
    };
    chain.refuses_bad_values();
}
