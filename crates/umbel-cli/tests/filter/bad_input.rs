//! Mistakes: one clear line, exit 2, nothing changed.

use super::scratch::Scratch;

const SIZE: [&str; 4] = ["--items", "100", "--false-positive", "0.01"];

fn with_size<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &SIZE[..]].concat()
}

/// Every file that is neither a filter nor a delta, with a word of what is wrong with it.
fn for_bad_files(refuses: impl Fn(&Scratch, &str, &str)) {
    let scratch = Scratch::with_filters();
    let whole = scratch.read("standard.umbel");
    refuses(&scratch, "nosuch", "No such file");
    scratch.write("empty", "");
    refuses(&scratch, "empty", "not an umbel file");
    refuses(&scratch, "fruit", "not an umbel file");
    for cut in [3, 4, 9, 30, whole.len() - 1] {
        scratch.write("cut", &whole[..cut]);
        refuses(&scratch, "cut", if cut < 5 { "truncated" } else { "cut short" });
    }
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    scratch.write("damaged", damaged);
    refuses(&scratch, "damaged", "damaged");
    let mut newer = whole;
    newer[4] = 2;
    scratch.write("newer", newer);
    refuses(&scratch, "newer", "version 2");
    std::fs::create_dir(scratch.path("directory")).unwrap();
    refuses(&scratch, "directory", "directory");
}

/// Every way to name one filter file wrongly, for a command that reads it.
fn refuses_bad_filters(command: impl Fn(&str) -> Vec<String>) {
    let refuses = |scratch: &Scratch, file: &str, why: &str| {
        let args = command(file);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        scratch.refuses(&args, &[&format!("umbel: {file}: "), why]);
    };
    for_bad_files(refuses);
    let scratch = Scratch::with_filters();
    scratch.build("standard", "larger", "fruit", &["--seed", "1"]);
    scratch.succeeds(&["delta", "larger", "larger", "-o", "change"]);
    refuses(&scratch, "change", "this is a delta");
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn add_refuses_what_is_not_a_filter() {
    refuses_bad_filters(|file| words(&format!("add {file} more")));
}

#[test]
fn remove_refuses_what_is_not_a_filter() {
    refuses_bad_filters(|file| words(&format!("remove {file} more")));
}

#[test]
fn query_refuses_what_is_not_a_filter() {
    refuses_bad_filters(|file| words(&format!("query {file} more")));
}

#[test]
fn info_refuses_what_is_not_a_filter_or_a_delta() {
    for_bad_files(|scratch, file, why| scratch.refuses(&["info", file], &[why]));
}

#[test]
fn union_and_intersect_refuse_what_is_not_a_filter_on_either_side() {
    for command in ["union", "intersect"] {
        refuses_bad_filters(|file| words(&format!("{command} {file} standard.umbel -o out")));
        refuses_bad_filters(|file| words(&format!("{command} standard.umbel {file} -o out")));
    }
}

#[test]
fn delta_and_apply_refuse_what_is_not_a_filter() {
    refuses_bad_filters(|file| words(&format!("delta {file} standard.umbel -o out")));
    refuses_bad_filters(|file| words(&format!("delta standard.umbel {file} -o out")));
    refuses_bad_filters(|file| words(&format!("apply {file} standard.umbel -o out")));
}

#[test]
fn keys_that_are_not_there_are_an_error() {
    let scratch = Scratch::with_filters();
    scratch.write("empty", "");
    scratch.write("blank", "\n\r\n\n");
    for command in [vec!["add", "standard.umbel"], vec!["remove", "counting.umbel"]] {
        let with = |keys: &[&'static str]| [&command[..], keys].concat();
        scratch.refuses(&with(&["empty"]), &["empty: there are no keys"]);
        scratch.refuses(&with(&["fruit", "blank"]), &["blank: there are no keys"]);
        scratch.refuses(&with(&["fruit", "nosuch"]), &["nosuch: No such file"]);
        scratch.refuses(&with(&["fruit", "."]), &["directory"]);
        scratch.refuses(&with(&[]), &["standard input: there are no keys"]);
        scratch.refuses(&with(&["-"]), &["standard input: there are no keys"]);
    }
    scratch.refuses(&["query", "standard.umbel", "empty"], &["empty: there are no keys"]);
    scratch.refuses(&["query", "standard.umbel", "blank"], &["blank: there are no keys"]);
    scratch.refuses(&["query", "standard.umbel", "fruit", "nosuch"], &["nosuch: No such"]);
}

#[test]
fn umbel_files_are_no_keys() {
    let scratch = Scratch::with_filters();
    scratch.build("blocked", "blocked.umbel", "fruit", &[]);
    scratch.succeeds(&["delta", "standard.umbel", "standard.umbel", "-o", "change"]);
    scratch.write("table", b"UMBL\x01\x20 and more");
    for (file, what) in [
        ("standard.umbel", "a filter"),
        ("counting.umbel", "a filter"),
        ("dynamic.umbel", "a filter"),
        ("blocked.umbel", "a filter"),
        ("change", "a delta"),
        ("table", "a table of prefixes"),
    ] {
        let why = format!("{file}: this is {what}, not a key file");
        scratch.refuses(&with_size(&["build", "-o", "out", file]), &[&why]);
        scratch.refuses(&with_size(&["build", "-o", "out", "fruit", file]), &[&why]);
        scratch.refuses(&["add", "dynamic.umbel", file], &[&why]);
        scratch.refuses(&["remove", "dynamic.umbel", file], &[&why]);
        scratch.refuses(&["query", "dynamic.umbel", file], &[&why]);
    }
    // Of standard input, too.
    let before = scratch.files();
    let output = scratch.run(&with_size(&["build", "-o", "out"]), &scratch.read("standard.umbel"));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard input: this is a filter"));
    assert_eq!(scratch.files(), before);
}

#[test]
fn a_file_is_not_read_and_written_by_one_command() {
    let scratch = Scratch::with_filters();
    let why = &["the file is read and written"];
    scratch.refuses(&with_size(&["build", "-o", "standard.umbel", "standard.umbel"]), why);
    scratch.refuses(&with_size(&["build", "-o", "standard.umbel", "./standard.umbel"]), why);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("standard.umbel", scratch.path("link")).unwrap();
        scratch.refuses(&with_size(&["build", "-o", "link", "fruit", "standard.umbel"]), why);
        scratch.refuses(&with_size(&["build", "-o", "standard.umbel", "link"]), why);
    }
    // A key file is not replaced by a filter, whatever it is called.
    scratch.refuses(&with_size(&["build", "-o", "fruit", "fruit"]), &["not an umbel file"]);
}

#[test]
fn json_that_was_begun_is_ended_when_a_later_key_is_bad() {
    let scratch = Scratch::with_filters();
    let long = [&b"apple\nbanana\n"[..], &vec![b'x'; (16 << 20) + 1], b"\n"].concat();
    scratch.write("long", long);
    let output = scratch.run(&["query", "standard.umbel", "long", "--json"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a line is longer than 16 MiB"));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer, serde_json::json!({ "keys": ["apple", "banana"], "asked": 2, "count": 2 }));
}

#[test]
fn build_refuses_numbers_that_make_no_filter() {
    let scratch = Scratch::with_filters();
    let refuses = |args: &[&str], why: &[&str]| {
        scratch.refuses(&[&["build", "-o", "out", "fruit"], args].concat(), why);
    };
    refuses(&["--items", "0", "--false-positive", "0.01"], &["--items", "from 1 to 2^40"]);
    refuses(&["--bits", "0", "--hashes", "3"], &["--bits", "from 1 to 2^40"]);
    refuses(&["--bits", "100", "--hashes", "65"], &["--hashes", "from 1 to 64"]);
    refuses(&["--items", "1e12", "--false-positive", "0.01"], &["1 to 2^40 bits"]);
    refuses(&["--items", "-5", "--false-positive", "0.01"], &["--items", "from 1 to 2^40"]);
    refuses(&["--items", "5", "--false-positive", "-0.1"], &["--false-positive", "below 1"]);
    refuses(&["--bits", "-1", "--hashes", "-1"], &["from 1 to"]);
    refuses(&with_size(&["--seed", "-1"]), &["--seed", "42 or 0x2a"]);
    refuses(&with_size(&["--capacity", "10"]), &["--kind dynamic"]);
    refuses(&with_size(&["--kind", "dynamic", "--capacity", "0"]), &["--capacity", "from 1"]);
    let many =
        ["--kind", "dynamic", "--capacity", "1", "--items", "1e6", "--false-positive", "0.1"];
    refuses(&many, &["1 to 65536 components"]);
}

#[test]
fn arguments_that_do_not_fit_together_are_refused() {
    let scratch = Scratch::with_filters();
    for args in [
        "build -o out fruit",
        "build -o out fruit --items 5",
        "build -o out fruit --false-positive 0.1",
        "build -o out fruit --bits 5",
        "build -o out fruit --items 5 --false-positive 0.1 --bits 100 --hashes 3",
        "build -o out fruit --bits 100 --hashes 3 --false-positive 0.1",
        "build -o out fruit --items 5 --false-positive 0.1 --hashes 3",
        "build -o out fruit --items 5 --false-positive 0.1 --bits 100",
        "build -o out fruit --items 5 --false-positive 1.5",
        "build -o - fruit --items 5 --false-positive 0.1",
        "query standard.umbel - -",
        "build -o out fruit --items 5 --false-positive 0.1 --seed 1 --seed-file fruit",
        "build -o out fruit --items 5 --false-positive 0.1 --seed x",
        "build -o out fruit --items 5 --false-positive 0.1 --hash md5",
        "build -o out fruit --items 5 --false-positive 0.1 --kind cuckoo",
        "build fruit --items 5 --false-positive 0.1",
        "union standard.umbel -o out",
        "union standard.umbel standard.umbel",
        "delta standard.umbel -o out",
        "info",
        "info standard.umbel --max-memory much",
        "info standard.umbel counting.umbel",
    ] {
        scratch.refuses(&args.split(' ').collect::<Vec<_>>(), &[]);
    }
}

#[test]
fn a_filter_that_does_not_fit_into_memory_is_refused_in_time() {
    let scratch = Scratch::with_filters();
    let huge = ["build", "--bits", "1099511627776", "--hashes", "3", "-o", "out", "fruit"];
    scratch
        .refuses(&[&huge[..], &["--max-memory", "100G"]].concat(), &["128.00 GiB", "--max-memory"]);
    let counting = with_size(&["build", "--kind", "counting", "-o", "out", "fruit"]);
    scratch.refuses(&[&counting[..], &["--max-memory", "100"]].concat(), &["limit is 100 B"]);
    let info = ["info", "counting.umbel", "--max-memory", "1000"];
    scratch.refuses(&info, &["counting.umbel: the filter takes", "--max-memory"]);
    let add = ["add", "standard.umbel", "more", "--max-memory", "1"];
    scratch.refuses(&add, &["standard.umbel: the filter takes", "--max-memory"]);
}

/// Before, a file of 83 bytes kept its reader busy for as long as it takes to fill all memory.
#[test]
fn a_short_file_that_claims_a_huge_filter_is_refused() {
    let scratch = Scratch::with_filters();
    let sparse = ["build", "--bits", "4294967296", "--hashes", "3", "-o", "sparse", "fruit"];
    scratch.succeeds(&sparse);
    let limit = ["sparse: the filter takes 512.00 MiB", "limit is 256.00 MiB", "--max-memory"];
    scratch.refuses(&["info", "sparse"], &limit);
    scratch.refuses(&["query", "sparse", "fruit"], &limit);
    scratch.refuses(&["union", "-o", "out", "sparse", "sparse"], &limit);
    scratch.succeeds(&["info", "sparse", "--max-memory", "1G"]);
}

#[test]
fn what_is_built_within_a_memory_limit_can_be_read_within_it() {
    let scratch = Scratch::with_filters();
    let keys: String = (0..2000).map(|key| format!("{key}\n")).collect();
    scratch.write("keys", keys);
    for kind in ["standard", "blocked", "counting", "dynamic"] {
        let mut built = 0;
        for kilobytes in 1..40 {
            let limit = format!("{kilobytes}K");
            let hashes = if kind == "blocked" { "8" } else { "3" };
            let size = ["--bits", "40192", "--hashes", hashes, "--max-memory", &limit];
            let args = [&["build", "--kind", kind, "-o", "f", "keys"], &size[..]].concat();
            if scratch.run(&args, b"").status.success() {
                built += 1;
                scratch.succeeds(&["info", "f", "--max-memory", &limit]);
            }
        }
        assert!((1..39).contains(&built), "{kind}: the limit decides");
    }
}

#[test]
fn a_dynamic_filter_stops_growing_at_the_memory_limit() {
    let scratch = Scratch::new();
    scratch.write("keys", (0..10_000).map(|n| format!("{n}\n")).collect::<String>());
    let plan = ["--kind", "dynamic", "--items", "100", "--false-positive", "0.01"];
    let build = [&["build", "-o", "out", "keys"], &plan[..], &["--max-memory", "64K"]].concat();
    scratch.refuses(&build, &["the limit is 64.00 KiB"]);
}

#[test]
fn a_file_that_is_not_ours_is_never_overwritten() {
    let scratch = Scratch::with_filters();
    let not_ours = ["fruit: ", "not an umbel file"];
    scratch.refuses(&with_size(&["build", "-o", "fruit", "more"]), &not_ours);
    let two = ["standard.umbel", "standard.umbel", "-o", "fruit"];
    for command in ["union", "intersect", "delta"] {
        scratch.refuses(&[&[command], &two[..]].concat(), &not_ours);
    }
    scratch.succeeds(&["delta", "standard.umbel", "standard.umbel", "-o", "change"]);
    scratch.refuses(&["apply", "standard.umbel", "change", "-o", "fruit"], &not_ours);
}

#[test]
fn a_file_of_ours_that_holds_something_else_is_never_overwritten() {
    let scratch = Scratch::with_filters();
    let build = |file| with_size(&["build", "-o", file, "fruit"]);
    // The start of a table of prefixes tells.
    scratch.write("table", b"UMBL\x01\x20 and more");
    scratch.refuses(&build("table"), &["table: ", "is a table of prefixes: it is not overwritten"]);
    scratch.refuses(&["info", "table"], &["table: this is a table of prefixes", "umbel prefix"]);
    let filters = ["standard.umbel", "standard.umbel"];
    let delta = |file| [&["delta"], &filters[..], &["-o", file]].concat();
    scratch.build("blocked", "blocked.umbel", "fruit", &[]);
    for filter in ["standard.umbel", "counting.umbel", "dynamic.umbel", "blocked.umbel"] {
        scratch.refuses(&delta(filter), &[&format!("{filter}: "), "is a filter"]);
    }
    scratch.succeeds(&delta("change"));
    scratch.succeeds(&delta("change"));
    scratch.refuses(&build("change"), &["change: ", "is a delta"]);
}

#[test]
fn output_that_cannot_be_written_is_refused() {
    let scratch = Scratch::with_filters();
    scratch.refuses(&with_size(&["build", "-o", "no/out", "fruit"]), &["no/out: ", "no directory"]);
    scratch.refuses(&with_size(&["build", "-o", ".", "fruit"]), &["directory"]);
    scratch.refuses(&with_size(&["build", "-o", "fruit/out", "more"]), &["fruit/out: "]);
}

#[test]
fn removing_from_a_filter_that_cannot_is_refused() {
    let scratch = Scratch::with_filters();
    let why = ["standard.umbel: this is a standard filter", "--kind counting"];
    scratch.refuses(&["remove", "standard.umbel", "more"], &why);
}

#[test]
fn filters_of_different_kinds_or_shapes_do_not_mix() {
    let scratch = Scratch::with_filters();
    let shape = ["build", "--bits", "999", "--hashes", "7", "-o", "short", "fruit"];
    scratch.succeeds(&shape);
    scratch.build("standard", "seeded", "fruit", &["--seed", "7"]);
    for command in ["union", "intersect", "delta"] {
        let mix = |b: &'static str| [command, "standard.umbel", b, "-o", "out"];
        scratch.refuses(&mix("short"), &["standard.umbel and short: ", "different lengths"]);
        scratch.refuses(&mix("seeded"), &["standard.umbel and seeded: ", "different seeds"]);
        scratch.refuses(&mix("dynamic.umbel"), &["dynamic.umbel: ", "a dynamic filter"]);
    }
    for command in ["union", "delta"] {
        let mix = [command, "standard.umbel", "counting.umbel", "-o", "out"];
        scratch.refuses(&mix, &["a standard filter", "a counting filter"]);
    }
    let dynamic = ["intersect", "dynamic.umbel", "dynamic.umbel", "-o", "out"];
    scratch.refuses(&dynamic, &["dynamic.umbel: ", "cannot be intersected"]);
}

#[test]
fn a_delta_fits_only_the_filter_it_was_made_against() {
    let scratch = Scratch::with_filters();
    scratch.build("standard", "new", "more", &[]);
    scratch.succeeds(&["delta", "standard.umbel", "new", "-o", "change"]);
    let apply = |old: &'static str, delta: &'static str| ["apply", old, delta, "-o", "out"];
    scratch.refuses(&apply("new", "change"), &["change does not fit new: ", "checksum"]);
    scratch
        .refuses(&apply("counting.umbel", "change"), &["change: ", "counting.umbel is a counting"]);
    scratch
        .refuses(&apply("standard.umbel", "new"), &["new: this is a standard filter, not a delta"]);
    scratch.refuses(&apply("standard.umbel", "fruit"), &["fruit: ", "not an umbel file"]);
    scratch.refuses(&apply("standard.umbel", "nosuch"), &["nosuch: No such file"]);
    scratch.build("standard", "seeded", "fruit", &["--seed", "7"]);
    scratch
        .refuses(&apply("seeded", "change"), &["change does not fit seeded: ", "different seeds"]);
    let whole = scratch.read("change");
    scratch.write("cut", &whole[..whole.len() - 2]);
    scratch.refuses(&apply("standard.umbel", "cut"), &["cut: ", "cut short"]);
}

#[test]
fn a_seed_file_that_is_no_secret_is_refused() {
    let scratch = Scratch::with_filters();
    scratch.write("empty", "");
    let build = |seed| with_size(&["build", "-o", "out", "fruit", "--seed-file", seed]);
    scratch.refuses(&build("empty"), &["empty: the seed file is empty"]);
    scratch.refuses(&build("nosuch"), &["nosuch: No such file"]);
    let query = ["query", "standard.umbel", "more", "--seed-file", "fruit"];
    scratch.refuses(&query, &["standard.umbel: ", "made with the seed"]);
}
