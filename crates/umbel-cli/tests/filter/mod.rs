//! `umbel filter` as a person or a script meets it: every subcommand, and every mistake.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod bad_input;
mod scratch;

use scratch::Scratch;
use serde_json::{Value, json};

const INFO: [&str; 14] = [
    "kind",
    "bits",
    "hashes",
    "digest_bits",
    "hash",
    "seed_fingerprint",
    "items",
    "ones",
    "fill",
    "false_positive",
    "components",
    "bytes_in_memory",
    "bytes_on_disk",
    "stuck_counters",
];

fn keys_of(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn sorted(groups: &[&[&'static str]]) -> Vec<&'static str> {
    let mut keys = groups.concat();
    keys.sort_unstable();
    keys
}

#[test]
fn every_kind_prints_the_keys_it_claims_and_the_keys_that_are_absent() {
    let scratch = Scratch::with_filters();
    for filter in ["standard.umbel", "counting.umbel", "dynamic.umbel"] {
        assert_eq!(scratch.succeeds(&["query", filter, "more"]), "banana\n");
        assert_eq!(scratch.succeeds(&["query", filter, "more", "--absent"]), "date\n");
        assert_eq!(scratch.succeeds(&["query", filter, "more", "--count"]), "1\n");
        assert_eq!(scratch.succeeds(&["query", filter, "more", "--count", "--absent"]), "1\n");
        assert_eq!(scratch.succeeds(&["query", filter, "fruit", "more", "--count"]), "4\n");
    }
}

#[test]
fn query_exits_as_grep_does() {
    let scratch = Scratch::with_filters();
    let codes = |input: &[u8], args: &[&str]| {
        let output = scratch.run(&[&["query", "standard.umbel"], args].concat(), input);
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(codes(b"apple\nfig\n", &[]), (0, "apple\n".to_owned()));
    assert_eq!(codes(b"fig\n", &[]), (1, String::new()));
    assert_eq!(codes(b"fig\n", &["--count"]), (1, "0\n".to_owned()));
    assert_eq!(codes(b"apple\n", &["--absent", "-"]), (1, String::new()));
    assert_eq!(codes(b"fig", &["--absent", "-"]), (0, "fig\n".to_owned()));
    assert_eq!(codes(b"", &[]), (2, String::new()));
}

#[test]
fn query_answers_in_json_without_loss() {
    let scratch = Scratch::with_filters();
    let asked = |args: &[&str]| scratch.json(&[&["query", "standard.umbel"], args].concat());
    assert_eq!(asked(&["more"]), json!({"keys": ["banana"], "asked": 2, "count": 1}));
    assert_eq!(asked(&["more", "--count"]), json!({"asked": 2, "count": 1}));
    scratch.write("bytes", b"\xff\x00\nsay \"hi\"\n");
    let keys = json!([{"hex": "ff00"}, "say \"hi\""]);
    assert_eq!(asked(&["bytes", "--absent"]), json!({"keys": keys, "asked": 2, "count": 2}));
    let none = scratch.run(&["query", "standard.umbel", "--json"], b"fig\n").stdout;
    let none: Value = serde_json::from_slice(&none).unwrap();
    assert_eq!(none, json!({"keys": [], "asked": 1, "count": 0}));
}

#[test]
fn keys_are_bytes_and_lines_end_with_or_without_carriage_return() {
    let scratch = Scratch::new();
    scratch.write("dos", b"one\r\n\r\n\xff\xfe\r\nlast");
    scratch.build("standard", "f", "dos", &[]);
    assert_eq!(scratch.json(&["info", "f"])["items"], 3);
    let found = scratch.run(&["query", "f"], b"\xff\xfe\n\none\nlast\r\nother\n");
    assert_eq!(found.stdout, b"\xff\xfe\none\nlast\n");
}

#[test]
fn build_reads_standard_input_and_several_files() {
    let scratch = Scratch::with_filters();
    let args = ["build", "--bits", "4096", "--hashes", "5", "-o", "f", "fruit", "-", "more"];
    assert_eq!(scratch.run(&args, b"elder\n").status.code(), Some(0));
    let info = scratch.json(&["info", "f"]);
    assert_eq!(
        (&info["items"], &info["bits"], &info["hashes"]),
        (&json!(6), &json!(4096), &json!(5))
    );
    assert_eq!(info["digest_bits"], 64);
}

#[test]
fn more_keys_than_fit_into_a_block_are_all_found() {
    let scratch = Scratch::new();
    let keys: String =
        (0..200_000).map(|n| format!("a key of some length, number {n}\n")).collect();
    scratch.write("keys", &keys);
    for kind in ["standard", "blocked", "counting", "dynamic"] {
        let size = ["--items", "2e5", "--false-positive", "1%", "-o", "f", "keys"];
        scratch.succeeds(&[&["build", "--kind", kind], &size[..]].concat());
        assert!(scratch.succeeds(&["query", "f", "keys"]) == keys, "{kind}");
    }
}

#[test]
fn a_blocked_filter_is_built_asked_joined_and_sent_as_a_delta() {
    let scratch = Scratch::with_filters();
    let build = |file: &str, keys: &str| {
        let size = ["--items", "1000", "--false-positive", "1%", "-o", file, keys];
        scratch.succeeds(&[&["build", "--kind", "blocked"], &size[..]].concat())
    };
    assert!(build("old", "fruit").contains("blocked filter of 3 items"));
    build("more.umbel", "more");
    scratch.succeeds(&["union", "old", "more.umbel", "-o", "new"]);
    assert_eq!(scratch.succeeds(&["query", "new", "fruit", "more", "--count"]), "5\n");
    scratch.succeeds(&["delta", "old", "new", "-o", "change"]);
    scratch.succeeds(&["apply", "old", "change", "-o", "applied"]);
    assert_eq!(scratch.read("applied"), scratch.read("new"));
    let info = scratch.json(&["info", "new"]);
    assert_eq!((&info["kind"], &info["hashes"]), (&json!("blocked"), &json!(8)));
    assert_eq!(info["bits"].as_u64().unwrap() % 256, 0);
}

#[test]
fn what_a_blocked_filter_cannot_do_is_refused() {
    let scratch = Scratch::with_filters();
    let sized = |bits: &'static str, hashes: &'static str| {
        ["build", "--kind", "blocked", "--bits", bits, "--hashes", hashes, "-o", "f", "fruit"]
    };
    let why = ["8 hashes", "multiple of 256"];
    scratch.refuses(&sized("1000", "8"), &why);
    scratch.refuses(&sized("1024", "7"), &why);
    scratch.succeeds(&sized("1024", "8"));
    scratch.refuses(&["remove", "f", "more"], &["a blocked filter", "--kind counting"]);
    scratch.refuses(
        &["intersect", "f", "f", "-o", "out"],
        &["cannot be intersected", "--kind standard"],
    );
    scratch.refuses(
        &["union", "f", "standard.umbel", "-o", "out"],
        &["a blocked filter", "a standard"],
    );
}

#[test]
fn info_has_exactly_the_promised_fields() {
    let scratch = Scratch::with_filters();
    for kind in ["standard", "counting", "dynamic"] {
        let file = format!("{kind}.umbel");
        let info = scratch.json(&["info", &file]);
        assert_eq!(keys_of(&info), sorted(&[&INFO]));
        assert_eq!(info["kind"], kind);
        assert_eq!(info["items"], 3);
        assert_eq!(info["hash"], "xxh3");
        assert_eq!(info["components"], 1);
        assert_eq!(info["bytes_on_disk"], scratch.read(&file).len());
        assert_eq!(info["seed_fingerprint"].as_str().unwrap().len(), 16);
        let text = scratch.succeeds(&["info", &file]);
        assert!(text.contains(kind) && text.contains("false positive"), "{text}");
    }
}

#[test]
fn commands_that_write_report_what_they_did() {
    let scratch = Scratch::with_filters();
    let size = ["--items", "9", "--false-positive", "0.1"];
    let built = scratch.json(&[&["build", "-o", "f", "fruit"], &size[..]].concat());
    assert_eq!(keys_of(&built), sorted(&[&INFO, &["file", "added", "empty_lines"]]));
    assert_eq!((&built["file"], &built["added"]), (&json!("f"), &json!(3)));
    let added = scratch.json(&["add", "f", "more"]);
    assert_eq!((&added["added"], &added["items"]), (&json!(2), &json!(5)));
    let removed = scratch.json(&["remove", "counting.umbel", "more"]);
    let counts = ["file", "removed", "absent", "kept", "empty_lines"];
    assert_eq!(keys_of(&removed), sorted(&[&INFO, &counts]));
    let joined = scratch.json(&["union", "f", "f", "-o", "both"]);
    assert_eq!(keys_of(&joined), sorted(&[&INFO, &["file", "estimated_items"]]));
    let delta = scratch.json(&["delta", "f", "both", "-o", "d"]);
    assert_eq!(keys_of(&delta), sorted(&[&["file", "kind", "bytes_on_disk", "bytes_of_new"]]));
    assert_eq!(delta["bytes_on_disk"], scratch.read("d").len());
    assert_eq!(delta["bytes_of_new"], scratch.read("both").len());
    for line in [
        scratch.succeeds(&["add", "f", "more"]),
        scratch.succeeds(&["remove", "dynamic.umbel", "more"]),
        scratch.succeeds(&["apply", "f", "d", "-o", "g"]),
    ] {
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_key_can_be_added_and_removed_again() {
    let scratch = Scratch::with_filters();
    for filter in ["counting.umbel", "dynamic.umbel"] {
        let before = scratch.read(filter);
        scratch.write("new", "fig\ngrape\n");
        scratch.succeeds(&["add", filter, "new"]);
        assert_eq!(scratch.succeeds(&["query", filter, "new", "--count"]), "2\n");
        scratch.write("gone", "fig\ngrape\nnever there\n");
        let removed = scratch.json(&["remove", filter, "gone"]);
        let counts = [&removed["removed"], &removed["absent"], &removed["kept"]];
        assert_eq!(counts, [2, 1, 0]);
        assert_eq!(scratch.read(filter), before, "{filter}");
    }
}

#[test]
fn removing_from_stuck_counters_warns_that_keys_may_stay() {
    let scratch = Scratch::with_filters();
    scratch.write("often", "fig\n".repeat(20));
    scratch.succeeds(&["add", "counting.umbel", "often"]);
    let output = scratch.run(&["remove", "counting.umbel", "often"], b"");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr.contains("stuck at 15: a removed key may still be claimed"), "{stderr}");
    assert_eq!(scratch.succeeds(&["query", "counting.umbel", "often", "--count"]), "20\n");
}

#[test]
fn a_key_that_two_components_claim_is_kept() {
    let scratch = Scratch::with_filters();
    let plan = ["--items", "4", "--capacity", "1", "--false-positive", "0.0001"];
    scratch.write("twice", "apple\napple\nbanana\n");
    scratch.succeeds(&[&["build", "--kind", "dynamic", "-o", "f", "twice"], &plan[..]].concat());
    assert_eq!(scratch.json(&["info", "f"])["components"], 3);
    let removed = scratch.json(&["remove", "f", "fruit"]);
    let counts = [&removed["removed"], &removed["absent"], &removed["kept"]];
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn a_dynamic_filter_grows_past_its_first_component_and_warns_past_its_plan() {
    let scratch = Scratch::with_filters();
    let plan = ["--items", "2", "--capacity", "1", "--false-positive", "0.01"];
    let args = [&["build", "--kind", "dynamic", "-o", "f", "fruit"], &plan[..]].concat();
    let output = scratch.run(&args, b"");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr.starts_with("umbel: warning: f: 3 components, planned for 2"), "{stderr}");
    assert_eq!(scratch.json(&["info", "f"])["components"], 3);
    assert_eq!(scratch.succeeds(&["query", "f", "fruit", "--count"]), "3\n");
}

#[test]
fn a_dynamic_filter_of_given_length_takes_the_keys_that_fill_half_of_it() {
    let scratch = Scratch::with_filters();
    let size = ["--bits", "1000", "--hashes", "7"];
    scratch.succeeds(&[&["build", "--kind", "dynamic", "-o", "f", "fruit"], &size[..]].concat());
    assert!(scratch.succeeds(&["info", "f"]).contains("of 99 items each"));
}

#[test]
fn a_filter_given_more_keys_than_planned_says_so() {
    let scratch = Scratch::new();
    scratch.write("keys", (0..100).map(|n| format!("{n}\n")).collect::<String>());
    let args = ["build", "--items", "10", "--false-positive", "0.01", "-o", "f", "keys"];
    let output = scratch.run(&args, b"");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr.contains("f: 100 keys, planned for 10"), "{stderr}");
}

#[test]
fn union_claims_the_keys_of_all_and_intersection_the_common_ones() {
    let scratch = Scratch::with_filters();
    for kind in ["standard", "counting", "dynamic"] {
        let own = format!("{kind}.umbel");
        scratch.build(kind, "other", "more", &[]);
        let joined = scratch.json(&["union", &own, "other", "-o", "both"]);
        // Both have a banana: five items, four distinct.
        let distinct = if kind == "dynamic" { Value::Null } else { json!(4) };
        assert_eq!(joined.get("estimated_items").unwrap_or(&Value::Null), &distinct, "{kind}");
        let info = scratch.json(&["info", "both"]);
        assert_eq!((&info["kind"], &info["items"]), (&json!(kind), &json!(5)));
        assert_eq!(scratch.succeeds(&["query", "both", "fruit", "more", "--count"]), "5\n");
    }
    scratch.build("counting", "other", "more", &[]);
    for first in ["standard.umbel", "counting.umbel"] {
        scratch.succeeds(&["intersect", first, "other", "-o", "common"]);
        assert_eq!(scratch.json(&["info", "common"])["kind"], "standard");
        assert_eq!(scratch.succeeds(&["query", "common", "fruit", "more"]), "banana\nbanana\n");
    }
}

#[test]
fn a_delta_leads_to_the_new_file_byte_for_byte() {
    let scratch = Scratch::with_filters();
    for kind in ["standard", "counting", "dynamic"] {
        let old = format!("{kind}.umbel");
        scratch.build(kind, "new", "fruit", &[]);
        scratch.succeeds(&["add", "new", "more"]);
        scratch.succeeds(&["delta", &old, "new", "-o", "change"]);
        scratch.succeeds(&["apply", &old, "change", "-o", "result"]);
        assert!(scratch.read("result") == scratch.read("new"), "{kind}");
    }
}

#[test]
fn a_delta_tells_which_filters_it_connects() {
    let scratch = Scratch::with_filters();
    scratch.write("old", scratch.read("counting.umbel"));
    scratch.succeeds(&["add", "counting.umbel", "more"]);
    scratch.succeeds(&["delta", "old", "counting.umbel", "-o", "change"]);
    let stderr = scratch.json(&["info", "change"]);
    assert_eq!((&stderr["kind"], &stderr["of"]), (&json!("delta"), &json!("counting")));
    let shown = scratch.succeeds(&["info", "change"]);
    for (file, end) in [("old", "base"), ("counting.umbel", "result")] {
        let checksum = stderr[end].as_str().expect("a checksum");
        let info = scratch.succeeds(&["info", file]);
        assert!(info.contains(checksum) && shown.contains(checksum), "{file}: {info}");
    }
}

#[test]
fn a_seed_given_as_a_number_is_never_asked_for_again() {
    let scratch = Scratch::with_filters();
    scratch.build("standard", "decimal", "fruit", &["--seed", "42", "--hash", "siphash-1-3"]);
    scratch.build("standard", "hex", "fruit", &["--seed", "0x2A", "--hash", "siphash-1-3"]);
    assert_eq!(scratch.read("decimal"), scratch.read("hex"));
    assert_eq!(scratch.json(&["info", "hex"])["hash"], "siphash-1-3");
    assert_eq!(scratch.succeeds(&["query", "hex", "more"]), "banana\n");
    scratch.refuses(&["union", "hex", "standard.umbel", "-o", "x"], &["different hash"]);
}

#[test]
fn a_secret_seed_is_needed_to_hash_and_only_to_hash() {
    let scratch = Scratch::with_filters();
    scratch.write("secret", b"\x00 only for us");
    scratch.write("guess", "only for them");
    for kind in ["standard", "counting", "dynamic"] {
        scratch.build(kind, "f", "fruit", &["--seed-file", "secret"]);
        let info = scratch.json(&["info", "f"]);
        assert_eq!(info["hash"], "siphash-1-3");
        let fingerprint = info["seed_fingerprint"].as_str().unwrap().to_owned();
        for command in ["add", "query"] {
            scratch.refuses(&[command, "f", "more"], &["f: ", &fingerprint, "--seed-file"]);
            let wrong = [command, "f", "more", "--seed-file", "guess"];
            scratch.refuses(&wrong, &["f: ", "made with the seed", &fingerprint]);
        }
        assert_eq!(scratch.succeeds(&["query", "f", "more", "--seed-file", "secret"]), "banana\n");
        scratch.succeeds(&["union", "f", "f", "-o", "g"]);
        scratch.succeeds(&["add", "g", "more", "--seed-file", "secret"]);
        scratch.succeeds(&["delta", "f", "g", "-o", "d"]);
        scratch.succeeds(&["apply", "f", "d", "-o", "h"]);
        assert_eq!(scratch.read("g"), scratch.read("h"));
        let text = scratch.succeeds(&["info", "h"]);
        assert!(text.contains(&format!("secret, fingerprint {fingerprint}")), "{text}");
    }
    scratch.refuses(&["remove", "f", "more"], &["--seed-file"]);
    scratch.succeeds(&["remove", "f", "more", "--seed-file", "secret"]);
    scratch.build("standard", "f", "fruit", &["--seed-file", "secret"]);
    scratch.succeeds(&["intersect", "f", "f", "-o", "g"]);
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions_and_links_stay_links() {
    use std::fs::{Permissions, metadata, set_permissions, symlink_metadata};
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scratch = Scratch::with_filters();
    let mode = |name: &str| metadata(scratch.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("standard.umbel"), mode("fruit"), "as any new file");
    set_permissions(scratch.path("standard.umbel"), Permissions::from_mode(0o640)).unwrap();
    symlink("standard.umbel", scratch.path("link")).unwrap();
    scratch.succeeds(&["add", "link", "more"]);
    assert_eq!(mode("standard.umbel"), 0o640);
    assert!(symlink_metadata(scratch.path("link")).unwrap().is_symlink());
    assert_eq!(scratch.json(&["info", "standard.umbel"])["items"], 5);
}

#[cfg(unix)]
#[test]
fn a_filter_can_be_written_to_standard_output_alone() {
    let scratch = Scratch::with_filters();
    let args = ["union", "standard.umbel", "standard.umbel", "-o"];
    let piped = scratch.run(&[&args[..], &["/dev/stdout"]].concat(), b"");
    scratch.succeeds(&[&args[..], &["file"]].concat());
    assert_eq!(piped.stdout, scratch.read("file"));
}

/// Pipes hold 64 KiB: the answers must be more, so that the command meets the closed end.
#[cfg(unix)]
#[test]
fn a_reader_who_has_seen_enough_ends_a_query_quietly() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let scratch = Scratch::new();
    scratch.write("keys", (0..100_000).map(|n| format!("key {n}\n")).collect::<String>());
    let size = ["--items", "1e5", "--false-positive", "0.1"];
    scratch.succeeds(&[&["build", "-o", "f", "keys"], &size[..]].concat());
    let mut query = Command::new(assert_cmd::cargo::cargo_bin!("umbel"))
        .arg("filter")
        .args(["query".as_ref(), scratch.path("f").as_os_str(), scratch.path("keys").as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 6];
    query.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = query.wait_with_output().unwrap();
    assert_eq!((&start, output.status.code()), (b"key 0\n", Some(0)));
    assert_eq!(output.stderr, b"");
}

#[test]
fn the_empty_set_has_a_filter() {
    let scratch = Scratch::with_filters();
    scratch.write("empty", "");
    scratch.write("blank", "\n\r\n\n");
    for kind in ["standard", "counting", "dynamic"] {
        for keys in [&["empty"][..], &["blank"], &["-"], &[]] {
            let size = ["--items", "100", "--false-positive", "0.01", "--kind", kind];
            let output = scratch.run(&[&["build", "-o", "out"], &size[..], keys].concat(), b"");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{kind} {keys:?}: {stderr}");
            assert!(stderr.contains("there were no keys"), "{kind} {keys:?}: {stderr}");
            assert_eq!(scratch.json(&["info", "out"])["items"], 0);
            let asked = scratch.run(&["query", "out", "fruit"], b"");
            assert_eq!((asked.status.code(), asked.stdout), (Some(1), Vec::new()));
        }
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_yet_stays_a_link() {
    use std::os::unix::fs::symlink;

    let scratch = Scratch::with_filters();
    std::fs::create_dir(scratch.path("there")).unwrap();
    symlink("there/next", scratch.path("link")).unwrap();
    symlink("filter.umbel", scratch.path("there/next")).unwrap();
    scratch.build("standard", "link", "fruit", &[]);
    assert!(scratch.path("link").is_symlink() && scratch.path("there/next").is_symlink());
    assert_eq!(scratch.read("there/filter.umbel"), scratch.read("standard.umbel"));
    // Written again through the link, and refused where there is no directory.
    scratch.build("standard", "link", "more", &[]);
    assert_ne!(scratch.read("there/filter.umbel"), scratch.read("standard.umbel"));
    symlink("nowhere/filter.umbel", scratch.path("lost")).unwrap();
    let size = ["--items", "100", "--false-positive", "0.01"];
    let output = scratch.run(&[&["build", "-o", "lost", "fruit"], &size[..]].concat(), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(scratch.path("lost").is_symlink());
    symlink("circle", scratch.path("circle")).unwrap();
    let output = scratch.run(&[&["build", "-o", "circle", "fruit"], &size[..]].concat(), b"");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}
