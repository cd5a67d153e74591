//! `umbel plan`: exact keys, reference values, and every bad value in one line.

use std::io::Write as _;

use crate::run::{Case, assert_keys, assert_near, json, number, printed, refused};

const DYNAMIC: [&str; 11] = [
    "components",
    "bits",
    "hashes",
    "capacity",
    "false_positive",
    "papers_components",
    "papers_bits",
    "papers_hashes",
    "expected_bits",
    "standard_bits",
    "ratio",
];

const STANDARD: [&str; 6] =
    ["bits", "hashes", "bits_per_item", "false_positive", "papers_bits", "papers_hashes"];

const DISTRIBUTED: [&str; 11] = [
    "components",
    "bits",
    "hashes",
    "capacity",
    "false_positive",
    "papers_components",
    "papers_bits",
    "papers_hashes",
    "total_bits",
    "standard_total_bits",
    "ratio",
];

const REPLICA: [&str; 22] = [
    "bits",
    "hashes",
    "rung",
    "takes",
    "replica_false_positive",
    "seconds_between_updates",
    "bytes_per_update",
    "sent_bytes_per_second_per_host",
    "received_bytes_per_second_per_host",
    "full_broadcast_sent_bytes_per_second_per_host",
    "wire_bytes_per_second_per_host",
    "quiet_bytes_per_second_per_host",
    "join_bytes_per_host",
    "join_seconds",
    "processor_share_per_host",
    "memory_bytes_per_host",
    "copies_bytes_per_host",
    "rows_bytes_per_host",
    "home_bytes_per_host",
    "false_hosts_per_lookup",
    "vain_probes_per_second",
    "reserve",
];

#[test]
fn standard_answers_with_its_keys_and_reference_values() {
    for (items, rate, bits, hashes) in
        [(1000, 0.01, 9593, 7), (1_000_000, 0.001, 14_377_640, 10), (12_345, 0.03, 90_104, 5)]
    {
        let line = format!("plan standard --items {items} --false-positive {rate}");
        let answer = json(&line, &STANDARD);
        assert_eq!((&answer["bits"], &answer["hashes"]), (&bits.into(), &hashes.into()));
        assert!(number(&answer, "false_positive") <= rate);
        assert_near(&answer, "bits_per_item", f64::from(bits) / f64::from(items), 1e-12);
    }
    let papers = json("plan standard --items 1330 --false-positive 0.0098", &STANDARD);
    assert_eq!((&papers["papers_bits"], &papers["papers_hashes"]), (&12_805.into(), &7.into()));
}

#[test]
fn standard_keeps_the_smallest_rate() {
    let answer = json("plan standard --items 1e10 --false-positive 1e-15", &STANDARD);
    assert!((0.999e-15..=1e-15).contains(&number(&answer, "false_positive")));
}

#[test]
fn dynamic_answers_with_its_keys_and_the_savings_of_paper_4() {
    for (distribution, ratio, components) in [
        ("zipf-min:0.4", 0.644, 8),
        ("zipf-max:0.4", 0.946, 3),
        ("uniform", 0.808, 6),
        ("normal:665,20", 0.802, 6),
    ] {
        let answer = dynamic(distribution);
        assert_near(&answer, "ratio", ratio, 5e-3);
        assert_eq!(answer["papers_components"], components, "{distribution}");
        assert!(number(&answer, "false_positive") <= 0.0098, "{answer}");
    }
    assert_near(&dynamic("zipf-random:0.4,1"), "ratio", 0.81, 0.02);
    assert_eq!(dynamic("zipf-random:0.4,1"), dynamic("zipf-random:0.4,1"));
}

/// By the papers' numbers, 2.47 %, 1.84 % and 1.48 % of absent keys are claimed.
#[test]
fn small_sets_keep_the_rate_that_was_asked_for() {
    for items in [1, 2, 7, 50, 100, 1000] {
        let plan = format!("--max-items {items} --false-positive 1% --distribution uniform");
        for (answer, one) in [
            (json(&format!("plan dynamic {plan}"), &DYNAMIC), "standard_bits"),
            (
                json(&format!("plan distributed --hosts 1 {plan}"), &DISTRIBUTED),
                "standard_total_bits",
            ),
        ] {
            let [s, m, k, c] = ["components", "bits", "hashes", "capacity"]
                .map(|name| number(&answer, name) as u64);
            assert!(s * c >= items, "{answer}");
            let shape = umbel::Shape::new(m, k as u32).unwrap();
            let component = umbel::model::dynamic::Component::new(shape, c);
            let rate = umbel::model::dynamic::false_positive(component, items);
            assert!(rate <= 0.01, "{items} keys: {rate}");
            assert_near(&answer, "false_positive", rate, 1e-12);
            let short = 1.0 - (1.0 - umbel::design::average_rate(shape, c)).powf(s as f64);
            assert!(short <= 0.01 * 1.002, "{items} keys: {short} on average");
            // One component is a standard filter.
            let line = format!("plan standard --items {items} --false-positive 1%");
            assert_near(&answer, one, number(&json(&line, &STANDARD), "bits"), 0.0);
        }
    }
}

fn dynamic(distribution: &str) -> serde_json::Value {
    let line = format!(
        "plan dynamic --max-items 1330 --false-positive 0.0098 --distribution {distribution}"
    );
    json(&line, &DYNAMIC)
}

#[test]
fn dynamic_reads_observed_sizes_from_a_file() {
    let path = |text: &str| {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("a line is written");
        file
    };
    let file = path("# sizes and weights\n1330\n\n1330 2\n");
    let answer = dynamic(&format!("file:{}", file.path().display()));
    assert_eq!((&answer["components"], &answer["papers_bits"]), (&1.into(), &12_805.into()));
    assert_eq!(answer["bits"], answer["standard_bits"]);
    assert_near(&answer, "ratio", 1.0, 0.0);
    for (text, stderr) in [
        ("12\nmany\n", "line 2"),
        ("1331\n", "between 0 and 1330"),
        ("", "at least one"),
        ("5 0\n", "at least one"),
        ("5 -1\n", "weight"),
    ] {
        let file = path(text);
        let distribution = format!("file:{}", file.path().display());
        let line = format!(
            "plan dynamic --max-items 1330 --false-positive 0.01 --distribution {distribution}"
        );
        refused(&line.split(' ').collect::<Vec<_>>(), "--distribution", stderr);
    }
}

#[test]
fn dynamic_refuses_distributions_that_cannot_be() {
    let huge = "plan dynamic --max-items 1e9 --false-positive 0.1 --distribution zipf-random:1,1";
    refused(&huge.split(' ').collect::<Vec<_>>(), "--distribution", "between 1 and 10000000");
    for (distribution, stderr) in [
        ("normal:0,20", "the mean lies between 1 and 1330"),
        ("normal:665,-1", "the standard deviation lies between"),
        ("zipf-min:11", "the Zipf parameter lies between 0 and 10"),
        ("zipf-max:-1", "the Zipf parameter lies between 0 and 10"),
        ("file:/no/such/file", "/no/such/file"),
        ("poisson:3", "zipf-random:A,SEED"),
    ] {
        let line = format!(
            "plan dynamic --max-items 1330 --false-positive 0.01 --distribution {distribution}"
        );
        refused(&line.split(' ').collect::<Vec<_>>(), "--distribution", stderr);
    }
}

#[test]
fn unbounded_answers_with_the_true_limits_beside_the_papers() {
    let keys = [
        "bits",
        "hashes",
        "standard_rebuild_at",
        "dynamic_rebuild_at",
        "papers_standard_rebuild_at",
        "papers_dynamic_rebuild_at",
        "better",
    ];
    let answer = json("plan unbounded --items 1000 --left 0.01 --right 0.1", &keys);
    assert_near(&answer, "standard_rebuild_at", 1740.0, 5.0);
    assert_near(&answer, "papers_standard_rebuild_at", 2000.0, 1.0);
    assert_eq!(answer["dynamic_rebuild_at"], 10_000);
    assert_eq!(answer["papers_dynamic_rebuild_at"], 11_000);
    assert_eq!(answer["better"], "dynamic");
    let stderr = printed("plan unbounded --items 1000 --left 0.01 --right 0.1");
    assert!(stderr.contains("past the limit") && stderr.contains("15."), "{stderr}");
    // Limits that are close: one component is all that a dynamic filter keeps.
    let close = json("plan unbounded --items 1000 --left 0.01 --right 0.011", &keys);
    assert_eq!(
        (&close["better"], &close["dynamic_rebuild_at"]),
        (&"standard".into(), &1000.into())
    );
    assert!(number(&close, "standard_rebuild_at") > 1000.0, "{close}");
    let stderr = printed("plan unbounded --items 1000 --left 0.01 --right 0.011");
    assert!(
        stderr.contains("umbel plan dynamic --max-items 1000 --false-positive 0.011"),
        "{stderr}"
    );
    for right in ["0.01", "0.001"] {
        let line = ["plan", "unbounded", "--items", "9", "--left", "0.01", "--right", right];
        refused(&line, "--right", "above the left limit 0.01");
    }
}

#[test]
fn routing_answers_with_its_keys_and_reference_values() {
    let keys = ["traditional", "cubf", "abf", "exact"];
    for (rate, cubf, abf) in [(0.005, (619, 15), (33_084, 8)), (0.001, (719, 17), (43_133, 10))] {
        let line = format!("plan routing --items 30 --filters 100 --false-positive {rate}");
        let answer = json(&line, &keys);
        assert_keys(&answer["traditional"], &["bits", "hashes"], "traditional");
        assert_keys(&answer["exact"], &["cubf", "abf"], "exact");
        for designs in [&answer, &answer["exact"]] {
            assert_keys(&designs["cubf"], &["bits", "hashes"], "cubf");
            assert_keys(&designs["abf"], &["bits", "hashes", "wire_bits"], "abf");
        }
        assert_eq!(
            (&answer["cubf"]["bits"], &answer["cubf"]["hashes"]),
            (&cubf.0.into(), &cubf.1.into())
        );
        assert_eq!(
            (&answer["abf"]["bits"], &answer["abf"]["hashes"]),
            (&abf.0.into(), &abf.1.into())
        );
    }
    let answer = json("plan routing --items 30 --filters 100 --false-positive 0.001", &keys);
    let ratio = number(&answer, "abf/wire_bits") / number(&answer, "traditional/bits");
    assert!((ratio - 5.96).abs() < 0.01, "{ratio}");
}

#[test]
fn replica_answers_with_its_keys_and_figures_that_fit_together() {
    let line = "plan replica --items 100000 --adds-per-second 10 --removes-per-second 10 \
                --hosts 32 --miss 1% --false-positive 0.01 --longest none";
    let answer = json(line, &REPLICA);
    assert_near(&answer, "seconds_between_updates", 100.5, 1.0);
    let (bits, seconds) = (number(&answer, "bits"), number(&answer, "seconds_between_updates"));
    let sent = 31.0 * number(&answer, "bytes_per_update") / seconds;
    assert_near(&answer, "sent_bytes_per_second_per_host", sent, 1e-6 * sent);
    assert_near(&answer, "received_bytes_per_second_per_host", sent, 1e-6 * sent);
    let whole = 31.0 * bits / 8.0 / seconds;
    assert_near(&answer, "full_broadcast_sent_bytes_per_second_per_host", whole, 1e-3 * whole);
    assert!(number(&answer, "replica_false_positive") <= 0.01 / 31.0);
    let wrong = 31.0 * number(&answer, "replica_false_positive");
    assert_near(&answer, "false_hosts_per_lookup", wrong, 1e-12);
    assert_near(&answer, "vain_probes_per_second", 0.0, 0.0);
    assert_eq!((number(&answer, "rung"), bits), (21.0, f64::from(1 << 21)));
    let parts = ["copies_bytes_per_host", "rows_bytes_per_host", "home_bytes_per_host"];
    let memory: f64 = parts.iter().map(|part| number(&answer, part)).sum();
    assert_near(&answer, "memory_bytes_per_host", memory, 3.0);
    assert_near(&answer, "memory_bytes_per_host", (31.0 + 32.0 + 6.0) * bits / 8.0, 3.0);
    let reserve = answer["reserve"].as_str().unwrap();
    assert!(reserve.contains("--capacity 100000 --hosts 32"), "{reserve}");
    assert!(reserve.contains("--policy miss:0.01,ghost=0.05 --all"), "{reserve}");
    let wire = sent + number(&answer, "quiet_bytes_per_second_per_host");
    assert!(number(&answer, "wire_bytes_per_second_per_host") > wire);
    let asked = json(&format!("{line} --lookups-per-second 1000"), &REPLICA);
    assert_near(&asked, "vain_probes_per_second", 1000.0 * wrong, 1e-9);
}

#[test]
fn replica_publishes_every_add_within_a_second_unless_told_otherwise() {
    let line = "plan replica --items 100000 --adds-per-second 10 --removes-per-second 10 \
                --hosts 7 --miss 1% --false-positive 1%";
    let answer = json(line, &REPLICA);
    assert_near(&answer, "seconds_between_updates", 1.1, 0.01);
    let reserve = answer["reserve"].as_str().unwrap();
    assert!(reserve.contains("--policy miss:0.01,ghost=0.05,longest=1s --all"), "{reserve}");
    let later = json(&format!("{line} --longest 10s"), &REPLICA);
    assert_near(&later, "seconds_between_updates", 10.1, 0.01);
    assert!(number(&later, "bytes_per_update") > number(&answer, "bytes_per_update"));
    let share = |answer: &serde_json::Value| number(answer, "processor_share_per_host");
    assert!(0.0 < share(&later) && share(&later) < share(&answer), "fewer updates take less");
    let joins = 0.7 + number(&answer, "join_bytes_per_host") / 30e6;
    assert_near(&answer, "join_seconds", joins, 1e-9);
    assert!(printed(line).contains("on the wire"));
}

#[test]
fn replica_plans_sets_that_only_grow_or_only_shrink() {
    let line = |adds, removes| {
        format!(
            "plan replica --items 1e6 --adds-per-second {adds} --removes-per-second {removes} \
             --hosts 5 --miss 0.01 --false-positive 0.01 --longest none"
        )
    };
    assert_near(&json(&line(100, 0), &REPLICA), "seconds_between_updates", 101.0, 1.0);
    // 5 % of those who stay.
    assert_near(&json(&line(0, 100), &REPLICA), "seconds_between_updates", 476.2, 1.0);
    let still = line(0, 0);
    refused(&still.split(' ').collect::<Vec<_>>(), "--adds-per-second", "from 1e-9 to 1e12");
}

#[test]
fn differential_answers_with_its_keys_and_reference_values() {
    let keys = [
        "bits",
        "hashes",
        "filter_error",
        "filter_error_of_changed",
        "changed_records",
        "reads_without_differential_index",
        "reads_without_filter",
        "reads_with_filter",
    ];
    let answer = json("plan differential --records 10M --updates 500000 --bits 2M", &keys);
    assert_eq!((&answer["bits"], &answer["hashes"]), (&2_000_000.into(), &3.into()));
    assert_near(&answer, "filter_error", 0.1397, 5e-5);
    assert_near(&answer, "reads_without_filter", 2.951, 1e-3);
    assert_near(
        &answer,
        "reads_with_filter",
        2.0 + number(&answer, "filter_error_of_changed"),
        1e-12,
    );
    let again = json("plan differential --records 1M --updates 1.5M --bits 10485760", &keys);
    assert_near(&again, "changed_records", 776_870.0, 1.0);
    assert!(number(&again, "filter_error") > 5.0 * number(&again, "filter_error_of_changed"));
    let planned = json("plan differential --records 10M --updates 500000 --filter-error 1%", &keys);
    assert!(number(&planned, "filter_error") <= 0.01, "{planned}");
    for (line, stderr) in [
        ("plan differential --records 10 --updates 5", "--bits"),
        ("plan differential --records 10 --updates 5 --bits 0", "--bits"),
        (
            "plan differential --records 10 --updates 5 --bits 9 --filter-error 0.1",
            "--filter-error",
        ),
    ] {
        refused(&line.split(' ').collect::<Vec<_>>(), stderr, "");
    }
}

#[test]
fn prefix_takes_counts_by_length() {
    let keys = [
        "lengths",
        "items",
        "bits",
        "expected_probes",
        "expected_probes_at_worst",
        "probes_without_filters",
    ];
    let line = "plan prefix --counts 16:1000,24:3000 --false-positive 0.01";
    let answer = json(line, &keys);
    assert_eq!((&answer["lengths"], &answer["items"]), (&2.into(), &4000.into()));
    assert_near(&answer, "expected_probes", 1.0025, 1e-4);
    assert_near(&answer, "probes_without_filters", 1.25, 1e-12);
    for counts in ["24", "24:0", "129:5", "x:5"] {
        let line = ["plan", "prefix", "--false-positive", "0.01", "--counts", counts];
        refused(&line, "--counts", "");
    }
}

#[test]
fn prefix_answers_with_its_keys_and_the_expected_probes() {
    let keys = ["bits", "hashes", "expected_probes"];
    let answer = json("plan prefix --lengths 33 --items 1000 --false-positive 0.01", &keys);
    assert_eq!((&answer["bits"], &answer["hashes"]), (&9593.into(), &7.into()));
    assert_near(&answer, "expected_probes", 1.32, 1e-4);
}

#[test]
fn filters_beyond_the_limit_are_refused_in_one_line() {
    for (line, option) in [
        ("plan standard --items 1e12 --false-positive 1e-15", "--items"),
        (
            "plan dynamic --max-items 1e12 --false-positive 1e-9 --distribution uniform",
            "--max-items",
        ),
        ("plan unbounded --items 1e12 --left 1e-9 --right 0.1", "--items"),
        ("plan routing --items 1e9 --filters 1e6 --false-positive 0.1", "--filters"),
        ("plan prefix --lengths 2 --items 1e12 --false-positive 1e-9", "--items"),
        (
            "plan replica --items 1e12 --adds-per-second 1 --removes-per-second 1 --hosts 9 \
             --miss 0.01 --false-positive 0.01",
            "--items",
        ),
    ] {
        refused(&line.split(' ').collect::<Vec<_>>(), option, " to ");
    }
}

const N: (&str, &str, &str, &str) = ("--items", "100", "0", "from 1 to 2^40");
const E: (&str, &str, &str, &str) = ("--false-positive", "0.01", "1", "from 1e-15 to below 1");

#[test]
fn bad_values_are_refused_in_one_line() {
    for case in [
        Case { command: "plan standard", options: &[N, E] },
        Case {
            command: "plan dynamic",
            options: &[
                ("--max-items", "100", "0", "from 1 to 2^40"),
                E,
                ("--distribution", "uniform", "normal:1", "normal:MEAN,SD"),
            ],
        },
        Case {
            command: "plan unbounded",
            options: &[
                N,
                ("--left", "0.01", "1e-16", "from 1e-15 to below 1"),
                ("--right", "0.1", "0", "from 1e-15 to below 1"),
            ],
        },
        Case {
            command: "plan routing",
            options: &[N, ("--filters", "9", "0", "from 1 to 1000000"), E],
        },
        Case {
            command: "plan prefix",
            options: &[("--lengths", "32", "0", "from 1 to 1000000"), N, E],
        },
    ] {
        case.refuses_bad_values();
        case.needs(&case.options.iter().map(|option| option.0).collect::<Vec<_>>());
    }
}

#[test]
fn bad_values_of_a_replica_are_refused_in_one_line() {
    let replica = Case {
        command: "plan replica",
        options: &[
            N,
            ("--adds-per-second", "1", "1e13", "0 or a number from 1e-9 to 1e12"),
            ("--removes-per-second", "1", "1e13", "0 or a number from 1e-9 to 1e12"),
            ("--hosts", "5", "0", "from 1 to 1000000"),
            ("--miss", "0.01", "60%", "above 0 and at most 0.5"),
            ("--longest", "1s", "soon", "such as 500ms, 1s or 10m"),
            E,
            ("--lookups-per-second", "10", "1e13", "0 or a number from 1e-9 to 1e12"),
        ],
    };
    replica.refuses_bad_values();
    replica.needs(&[
        "--items",
        "--adds-per-second",
        "--removes-per-second",
        "--hosts",
        "--miss",
        "--false-positive",
    ]);
}

#[test]
fn tables_say_what_the_numbers_are() {
    let table = printed(
        "plan replica --items 100000 --adds-per-second 10 --removes-per-second 10 --hosts 32 \
         --miss 0.01 --false-positive 0.01",
    );
    for part in [
        "32 hosts",
        "100,000 keys",
        "2^21",
        "update every",
        "kB/s",
        "full broadcast",
        "umbel reserve",
    ] {
        assert!(table.contains(part), "{part} is missing in:\n{table}");
    }
}

#[test]
fn distributed_minimises_the_bits_of_all_hosts() {
    let of = |hosts: u64| {
        let line = format!(
            "plan distributed --hosts {hosts} --max-items 1330 --false-positive 0.0098 --distribution zipf-min:0.4"
        );
        json(&line, &DISTRIBUTED)
    };
    let answer = of(200);
    assert_eq!(answer["papers_components"], 8);
    assert_near(&answer, "ratio", 0.644, 5e-3);
    let standard = json("plan standard --items 1330 --false-positive 0.0098", &STANDARD);
    assert_near(&answer, "standard_total_bits", 200.0 * number(&standard, "bits"), 1e-6);
    assert_near(&answer, "total_bits", 200.0 * number(&of(1), "total_bits"), 1e-6);
    let text = printed(
        "plan distributed --hosts 3 --max-items 10 --false-positive 0.1 --distribution uniform",
    );
    assert!(text.contains("of all hosts together"), "{text}");
}

#[test]
fn distributed_refuses_bad_values() {
    let case = Case {
        command: "plan distributed",
        options: &[
            ("--hosts", "200", "1e12", "1 to 1000000"),
            ("--max-items", "1330", "0", ""),
            ("--false-positive", "0.01", "1", "below 1"),
            ("--distribution", "uniform", "poisson:3", "zipf-random:A,SEED"),
        ],
    };
    case.refuses_bad_values();
    case.needs(&["--hosts", "--max-items", "--false-positive", "--distribution"]);
}

#[test]
fn the_scenarios_of_paper_4_have_their_names() {
    let same = |one: &str, other: &str| assert_eq!(printed(one), printed(other));
    same(
        "plan static --items 1000 --false-positive 0.01",
        "plan standard --items 1000 --false-positive 0.01",
    );
    same(
        "plan bounded --max-items 1330 --false-positive 0.01 --distribution uniform",
        "plan dynamic --max-items 1330 --false-positive 0.01 --distribution uniform",
    );
}

#[test]
fn a_chain_is_planned_with_its_keys_and_within_the_goals() {
    let keys = [
        "key_false_positive",
        "hashes",
        "window",
        "bits",
        "takes",
        "bits_per_block",
        "memory_bytes",
        "memory_bits_per_block",
        "over_estimate",
        "one_step_more",
        "keys_read",
        "rounds",
        "cache_lines_read",
        "lookup_ns",
    ];
    let full = json("plan chain --workers 64 --blocks 214000 --length 8192", &keys);
    assert!(number(&full, "memory_bits_per_block") < 12.0, "{full}");
    assert!(number(&full, "over_estimate") <= 1e-8, "{full}");
    let worst = json("plan chain --workers 64 --blocks 216000 --length 8192", &keys);
    assert!(number(&worst, "memory_bits_per_block") < 20.0, "{worst}");
    assert_eq!(number(&worst, "bits"), 2.0 * number(&full, "bits"));
}

#[test]
fn chains_that_cannot_be_planned_are_refused_in_one_line() {
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let short = words("plan chain --workers 64 --blocks 1000 --step 1");
    refused(&short, "--step", "a step of 1 keys");
    refused(&words("plan chain --workers 64 --blocks 1e12"), "--blocks", "so many blocks");
    let chain = Case {
        command: "plan chain",
        options: &[
            ("--workers", "64", "0", "from 1 to 1000000"),
            ("--blocks", "1000", "0", "from 1 to 2^40"),
            ("--length", "100", "0", "from 1 to 2^24"),
            ("--step", "8", "0", "from 1 to 2^24"),
            ("--over-estimate", "1e-7", "1", "from 1e-15 to below 1"),
        ],
    };
    chain.refuses_bad_values();
    chain.needs(&["--workers", "--blocks"]);
}
