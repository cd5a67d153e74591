//! Files of every released format version still decode, to what they were made of.
//!
//! `tests/golden/v1` holds small files of version 1: every kind, every mode of coding, public
//! and secret seeds, deltas by bits and by digests. Files of a released version are never
//! written again; those of a version in the making are, by
//!
//! ```text
//! cargo run -p umbel --example golden_files -- crates/umbel/tests/golden/v1
//! ```
//!
//! When the format changes, this file's tests of the old version stay as they are (less the
//! one that compares with what would be written now), and a new directory joins.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::Path;

use umbel::codec::{AnyFilter, Decoder, Kind};
use umbel::prefix::AnyTable;
use umbel::{Digest, Membership, Seed};

#[path = "../examples/golden_files.rs"]
#[expect(dead_code, reason = "its main function writes the files")]
mod golden_files;

use golden_files::keys;

fn bytes(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    fs::read(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Decodes a golden file, which must be written again as it was.
fn read(name: &str) -> AnyFilter {
    let bytes = bytes(name);
    let decoder = Decoder::new().limit(1 << 20);
    let filter = decoder.filter(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(filter.encode(), bytes, "{name} is written as it was read");
    filter
}

/// Checks what every file says of itself.
fn check(filter: &AnyFilter, kind: Kind, items: u64, ones: u64, members: std::ops::Range<u32>) {
    assert_eq!((filter.kind(), filter.items(), filter.ones()), (kind, items, ones));
    for key in keys(members) {
        assert!(filter.may_contain(key.as_bytes()), "{key} is held");
    }
    let absent = keys(1_000_000..1_000_100);
    let claimed = absent.iter().filter(|key| filter.may_contain(key.as_bytes())).count() as f64;
    let expected = filter.false_positive() * absent.len() as f64;
    assert!(claimed <= expected + 4.0 * expected.sqrt() + 1.0, "{claimed}, expected {expected}");
}

/// The delta leads from one file to the other, and is what would be sent today.
fn check_delta(name: &str, old: &AnyFilter, new: &AnyFilter, added: &[Digest]) {
    let delta = bytes(name);
    assert_eq!(Decoder::new().apply(old, &delta).as_ref(), Ok(new), "{name}");
    assert_eq!(old.delta_to(new, added).unwrap(), delta, "{name}");
}

#[test]
fn golden_files_are_what_would_be_written_now() {
    for (name, written) in golden_files::files() {
        assert!(bytes(name) == written, "{name} would be written differently");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1");
    assert_eq!(fs::read_dir(directory).unwrap().count(), golden_files::files().len());
}

#[test]
fn the_files_that_the_documentation_takes_apart_are_these() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let page = fs::read_to_string(page).unwrap();
    let dumps = page.split("```text\n").filter(|block| block.starts_with("55 4D 42 4C"));
    let shown: Vec<Vec<u8>> = dumps
        .map(|block| block.split("```").next().unwrap())
        .map(|dump| dump.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect())
        .collect();
    assert_eq!(shown, [bytes("prefixes-tiny.umbel"), bytes("tiny.umbel")]);
}

#[test]
fn standard_filters_and_their_deltas_decode() {
    let old = read("standard.umbel");
    check(&old, Kind::Standard, 20, 140, 0..20);
    let shape = old.scheme().shape();
    assert_eq!((shape.bits(), shape.hashes(), shape.digest_bits().get()), (9593, 7, 27));
    let more = read("standard-more.umbel");
    check(&more, Kind::Standard, 23, 160, 0..23);
    let fewer = read("standard-fewer.umbel");
    check(&fewer, Kind::Standard, fewer.items(), fewer.ones(), 2..31);
    assert!(!fewer.may_contain(b"key 1"));

    let digests: Vec<Digest> =
        keys(20..23).iter().map(|key| old.scheme().digest(key.as_bytes())).collect();
    check_delta("standard-by-digests.delta", &old, &more, &digests);
    check_delta("standard-by-bits.delta", &more, &fewer, &[]);
}

#[test]
fn filters_of_every_mode_decode() {
    check(&read("tiny.umbel"), Kind::Standard, 1, 3, 0..0);
    assert!(read("tiny.umbel").may_contain(b"apple"));
    check(&read("empty.umbel"), Kind::Standard, 0, 0, 0..0);
    check(&read("full.umbel"), Kind::Standard, 200, 70, 0..200);
    check(&read("gaps.umbel"), Kind::Standard, 300, 578, 0..300);
    check(&read("gaps-complement.umbel"), Kind::Standard, 3000, 4758, 0..3000);
    check(&read("bits.umbel"), Kind::Standard, 1000, 1636, 0..1000);
    check(&read("bits-complement.umbel"), Kind::Standard, 3500, 3753, 0..3500);
    check(&read("raw.umbel"), Kind::Standard, 3120, 2226, 0..3120);
    check(&read("raw-complement.umbel"), Kind::Standard, 90, 60, 0..90);
    let crowd = read("gaps-with-a-leap.umbel");
    check(&crowd, Kind::Standard, 301, 301, 0..0);
    for position in (0..300).chain([(1 << 20) - 1]) {
        let digest = Digest::from_raw(position, crowd.scheme().shape().digest_bits()).unwrap();
        assert!(crowd.contains_digest(digest), "{position}");
    }
}

#[test]
fn public_seeds_come_with_the_file_and_secret_ones_do_not() {
    check(&read("public-seed.umbel"), Kind::Standard, 10, 50, 0..10);
    let secret = Seed::from_secret(b"only for us");
    for name in ["secret-seed.umbel", "secret-seed-xxh3.umbel"] {
        let bytes = bytes(name);
        assert!(Decoder::new().filter(&bytes).is_err(), "{name} is locked");
        let filter = Decoder::new().seed(secret).filter(&bytes).unwrap();
        check(&filter, Kind::Standard, 10, filter.ones(), 0..10);
        assert_eq!(filter.encode(), bytes);
        let locked = Decoder::new().accept_locked().filter(&bytes).unwrap();
        assert_eq!(locked.encode(), bytes);
    }
}

#[test]
fn counting_filters_and_their_deltas_decode() {
    let old = read("counting.umbel");
    check(&old, Kind::Counting, 49, old.ones(), 0..30);
    assert!(old.stuck_counters() > 0);
    let new = read("counting-later.umbel");
    check(&new, Kind::Counting, 49, new.ones(), 10..40);
    check_delta("counting.delta", &old, &new, &[]);
    let AnyFilter::Counting(mut filter) = new else { panic!("a counting filter") };
    filter.validate();
    for key in keys(10..40) {
        assert!(filter.remove(key), "members can be removed");
    }
}

#[test]
fn dynamic_filters_and_their_deltas_decode() {
    let old = read("dynamic.umbel");
    check(&old, Kind::Dynamic, 35, old.ones(), 0..35);
    assert_eq!(old.components(), 4);
    let new = read("dynamic-later.umbel");
    check(&new, Kind::Dynamic, 30, new.ones(), 20..50);
    check_delta("dynamic.delta", &old, &new, &[]);
    let AnyFilter::Dynamic(mut filter) = new else { panic!("a dynamic filter") };
    filter.validate();
    // Ids from before the merges still lead to the keys.
    let AnyFilter::Dynamic(old) = old else { panic!("a dynamic filter") };
    let (merged, _) = old.components()[3];
    for key in keys(30..35) {
        assert!(filter.remove_from(merged, key), "members can be removed");
    }
}

#[test]
fn plain_dynamic_filters_and_their_deltas_decode() {
    let old = read("plain-dynamic.umbel");
    check(&old, Kind::PlainDynamic, 15, old.ones(), 0..15);
    let new = read("plain-dynamic-later.umbel");
    check(&new, Kind::PlainDynamic, 19, new.ones(), 0..19);
    assert_eq!((old.components(), new.components()), (2, 2));
    check_delta("plain-dynamic.delta", &old, &new, &[]);
}

#[test]
fn tables_of_prefixes() {
    let read = |name: &str| {
        let bytes = bytes(name);
        let table = AnyTable::decode(&bytes, 1 << 20).unwrap();
        assert_eq!(table.encode(), bytes, "{name} is written as it was read");
        table
    };
    let AnyTable::Ipv4(table) = read("prefixes-ipv4.umbel") else { panic!("IPv4") };
    let found = table.table().lookup(&"10.1.2.3".parse().unwrap()).unwrap();
    assert_eq!((found.length, table.value(*found.value), table.table().len()), (24, "lab", 5));
    let AnyTable::Ipv6(table) = read("prefixes-ipv6.umbel") else { panic!("IPv6") };
    let found = table.table().lookup(&"2001:db8::2".parse().unwrap()).unwrap();
    assert_eq!((found.length, table.value(*found.value), table.table().len()), (128, "c", 5));
    let AnyTable::Names(table) = read("prefixes-names.umbel") else { panic!("names") };
    let found = table.table().lookup(&"/video/2025".parse().unwrap()).unwrap();
    assert_eq!((found.length, table.value(*found.value), table.table().len()), (1, "h1", 3));
    read("prefixes-tiny.umbel");
}
