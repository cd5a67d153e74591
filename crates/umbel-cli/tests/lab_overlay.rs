//! `umbel lab overlay`: exact keys, the same digits every time, and every mistake in one line.

use crate::run::{Case, assert_near, json, number, printed, refused};

const KEYS: [&str; 7] = [
    "success",
    "hops_mean",
    "messages_per_query",
    "wrong_forwards",
    "flood_messages_per_query",
    "advertisement_bytes",
    "memory_bytes_per_node",
];

const SMALL: &str = "lab overlay --topology random-regular --nodes 200 --depth 3 --entry cubf \
                     --items 10 --queries 100";

#[test]
fn an_overlay_answers_with_its_keys_whatever_its_kind() {
    for topology in ["line", "grid", "random-regular", "scale-free", "small-world"] {
        for entry in ["cubf", "abf", "attenuated"] {
            let line = format!(
                "lab overlay --topology {topology} --nodes 100 --depth 2 --entry {entry} \
                 --items 5 --queries 20"
            );
            let answer = json(&line, &KEYS);
            assert!((0.0..=1.0).contains(&number(&answer, "success")), "{line}: {answer}");
            assert!(number(&answer, "advertisement_bytes") > 0.0, "{line}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_digits_and_a_walk_finds_more() {
    let answer = json(SMALL, &KEYS);
    assert_eq!(json(SMALL, &KEYS), answer);
    assert_ne!(json(&format!("{SMALL} --seed 2"), &KEYS), answer);
    let still = json(&format!("{SMALL} --walk 0"), &KEYS);
    assert!(number(&answer, "success") > number(&still, "success"));
    assert_near(&still, "flood_messages_per_query", 800.0 - 199.0, 0.0);
    let noisy = json(&format!("{SMALL} --traditional --false-positive 0.05"), &KEYS);
    assert!(number(&noisy, "wrong_forwards") > number(&answer, "wrong_forwards"));
    let text = printed(SMALL);
    assert!(
        text.contains("200 nodes, random-regular") && text.contains("wrong decisions"),
        "{text}"
    );
}

#[test]
fn mistakes_are_told_in_one_line() {
    let case = Case {
        command: "lab overlay --topology line --entry abf",
        options: &[
            ("--nodes", "20", "1", "2 to 1000000"),
            ("--depth", "2", "256", "1 to 255"),
            ("--items", "5", "0", "1 to 1000000"),
            ("--queries", "5", "0", "1 to 2^40"),
            ("--degree", "4", "0", "1 to 1000000"),
            ("--false-positive", "0.01", "1", "1e-15"),
            ("--walk", "3", "2000000", "0 to 1000000"),
            ("--filters", "3", "0", "1 to 1000000"),
        ],
    };
    case.refuses_bad_values();
    case.needs(&["--nodes", "--depth", "--items", "--queries"]);
    let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    refused(&line("lab overlay --topology star"), "--topology", "star");
    refused(&line("lab overlay --entry bloom"), "--entry", "bloom");
    let odd = "lab overlay --topology random-regular --nodes 5 --degree 3 --depth 2 --entry abf --items 5 --queries 5";
    refused(&line(odd), "no network", "even");
    let deep = "lab overlay --topology random-regular --nodes 100000 --depth 9 --entry abf --items 5 --queries 5";
    refused(&line(deep), "--depth", "filters would travel");
}
