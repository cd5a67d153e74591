//! Backups: made while the store is used, added to, broken off, damaged and brought back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Seek as _, Write as _};
use std::sync::Arc;

use crate::common::{Model, fill, key};
use umbel_store::storage::testing::{Fate, TestDisk};
use umbel_store::{Error, Options, Reader, Store, restore, restore_on};

fn quiet() -> Options {
    Options::new().background(false)
}

#[test]
fn a_backup_is_a_store_and_can_be_brought_up_to_date() {
    let (disk, to) = (TestDisk::new(), TestDisk::new());
    let options = quiet().memory_budget(75_000).integrate_bytes(1 << 30);
    let store = Store::open_on(Arc::new(disk), options).unwrap();
    fill(&store, 3_000);
    store.integrate().unwrap();
    fill(&store, 3_500);
    let full = store.backup_on(&to, |_| {}).unwrap();
    assert_eq!(full.records, 3_500);
    assert!(matches!(store.backup_on(&to, |_| {}), Err(Error::Occupied)));

    // Changes since, enough of them to be sorted to disk as well.
    for i in 3_500..6_000 {
        store.put(&key(i), b"later").unwrap();
    }
    store.delete(&key(0)).unwrap();
    let mut message = 0;
    let more = store.backup_incremental_on(&to, |progress| message = progress.done).unwrap();
    assert_eq!(message, more.copied_bytes + more.linked_bytes);
    assert_eq!(more.records, 5_999);
    assert!(more.copied_bytes <= store.stat().differential_bytes, "changes only");

    let back = TestDisk::new();
    to.set_read_only(true);
    let mut seen = (0, 0);
    let restored = restore_on(&to, &back, |now| seen = (now.done, now.total));
    assert_eq!(restored.unwrap(), 5_999);
    assert!(seen.0 == seen.1 && seen.1 > 0, "{seen:?}");
    let restored = Store::open_on(Arc::new(back.clone()), quiet()).unwrap();
    let all = |store: &Store| store.scan(..).unwrap().map(Result::unwrap).collect::<Model>();
    assert_eq!(all(&restored), all(&store));
    restored.verify(|_| {}).unwrap();
    assert!(matches!(restore_on(&to, &back, |_| {}), Err(Error::Occupied)));
    to.set_read_only(false);

    store.integrate().unwrap();
    let refused = store.backup_incremental_on(&to, |_| {}).unwrap_err();
    assert!(refused.to_string().contains("full backup"), "{refused}");
    let other = Store::open_on(Arc::new(TestDisk::new()), quiet()).unwrap();
    assert!(matches!(other.backup_incremental_on(&to, |_| {}), Err(Error::NotIncremental(_))));
    assert!(matches!(
        other.backup_incremental_on(&TestDisk::new(), |_| {}),
        Err(Error::NotIncremental(_))
    ));
}

/// A file that store and backup had in common was damaged in both.
#[test]
fn damage_to_the_store_leaves_its_backup_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = quiet().memory_budget(75_000).integrate_bytes(1 << 30);
    let store = Store::open(at("store"), options).unwrap();
    fill(&store, 3_000);
    store.integrate().unwrap();
    fill(&store, 6_000);
    let copied = store.backup(at("copied"), |_| {}).unwrap();
    assert_eq!((copied.records, copied.linked_bytes), (6_000, 0));
    let linked = store.backup_linked(at("linked"), |_| {}).unwrap();
    assert_eq!(linked.linked_bytes + linked.copied_bytes, copied.copied_bytes);
    assert!(linked.linked_bytes > store.stat().master_bytes / 2);
    restore(at("copied"), at("restored"), |_| {}).unwrap();
    drop(store);

    let files = std::fs::read_dir(at("store")).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.metadata().unwrap().len() > 5_000) {
        let mut opened = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        opened.seek(std::io::SeekFrom::Start(5_000)).unwrap();
        opened.write_all(b"damaged").unwrap();
    }
    let verified = |name: &str| {
        let reader = Reader::open(at(name))?;
        reader.verify(|_| {}).map(|verified| verified.records)
    };
    assert!(matches!(verified("store"), Err(Error::Corrupt { .. })));
    assert!(matches!(verified("linked"), Err(Error::Corrupt { .. })), "one file of two names");
    assert_eq!(verified("copied").unwrap(), 6_000);
    assert_eq!(verified("restored").unwrap(), 6_000);
}

#[test]
fn an_incremental_backup_copies_no_sorted_file_twice() {
    let to = TestDisk::new();
    let options = quiet().memory_budget(75_000).integrate_bytes(1 << 30);
    let store = Store::open_on(Arc::new(TestDisk::new()), options).unwrap();
    fill(&store, 100);
    store.integrate().unwrap();
    fill(&store, 6_000);
    store.backup_on(&to, |_| {}).unwrap();
    store.put(b"more", b"").unwrap();
    let more = store.backup_incremental_on(&to, |_| {}).unwrap();
    assert!(more.copied_bytes < store.stat().differential_bytes / 2, "{more:?}");
    assert_eq!(restore_on(&to, &TestDisk::new(), |_| {}).unwrap(), 6_001);
    // A file that somebody removed from the backup is copied again.
    let names = umbel_store::storage::Storage::list(&to).unwrap();
    let sorted = names.into_iter().find(|name| name.ends_with(".sorted")).unwrap();
    umbel_store::storage::Storage::remove(&to, &sorted).unwrap();
    store.backup_incremental_on(&to, |_| {}).unwrap();
    assert_eq!(restore_on(&to, &TestDisk::new(), |_| {}).unwrap(), 6_001);
}

#[test]
fn a_backup_that_breaks_off_leaves_the_one_before_it_or_none() {
    let disk = TestDisk::new();
    let store = Store::open_on(Arc::new(disk), quiet()).unwrap();
    fill(&store, 500);
    store.integrate().unwrap();
    store.put(b"a", b"1").unwrap();
    let first = TestDisk::new();
    store.backup_on(&first, |_| {}).unwrap();
    store.put(b"b", b"2").unwrap();
    let mut cases = 0;
    for incremental in [false, true] {
        for call in 0.. {
            let to = if incremental { first.crash(Fate::KeepAll) } else { TestDisk::new() };
            to.crash_at_call(call);
            let done = match incremental {
                true => store.backup_incremental_on(&to, |_| {}),
                false => store.backup_on(&to, |_| {}),
            };
            for seed in 0..4 {
                let back = to.crash(Fate::Mixed(call * 10 + seed));
                match Store::open_on(Arc::new(back), quiet().create(false)) {
                    Ok(copy) => {
                        let len = copy.verify(|_| {}).unwrap().records;
                        assert!(len == 502 || incremental && len == 501, "call {call}: {len}");
                    }
                    Err(error) => assert!(!incremental && done.is_err(), "call {call}: {error}"),
                }
                cases += 1;
            }
            if done.is_ok() {
                break;
            }
        }
    }
    println!("backup: {cases} crashes");
}

#[test]
fn a_damaged_or_used_backup_is_not_restored() {
    let store = Store::open_on(Arc::new(TestDisk::new()), quiet()).unwrap();
    fill(&store, 500);
    store.integrate().unwrap();
    store.put(b"a", b"1").unwrap();
    let to = TestDisk::new();
    store.backup_on(&to, |_| {}).unwrap();
    let names = umbel_store::storage::Storage::list(&to).unwrap();
    for name in &names {
        let mut bytes = to.bytes(name).unwrap();
        if bytes.is_empty() {
            continue; // the lock
        }
        let damaged = to.crash(Fate::KeepAll);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        damaged.set_bytes(name, bytes);
        let back = TestDisk::new();
        let refused = restore_on(&damaged, &back, |_| {});
        // The last record of a differential file cannot be told from a torn one.
        let torn = name.ends_with(".differential") && matches!(refused, Ok(500));
        assert!(torn || matches!(refused, Err(Error::Corrupt { .. })), "{name}: {refused:?}");
        let opened = Store::open_on(Arc::new(back), quiet().create(false));
        assert!(torn || matches!(opened, Err(Error::Missing)), "{name}");
    }
    let used = Store::open_on(Arc::new(to.clone()), quiet()).unwrap();
    assert!(matches!(restore_on(&to, &TestDisk::new(), |_| {}), Err(Error::Locked)));
    drop(used);
    assert!(matches!(restore_on(&TestDisk::new(), &to, |_| {}), Err(Error::Occupied)));
    let (empty, back) = (TestDisk::new(), TestDisk::new());
    assert!(matches!(restore_on(&empty, &back, |_| {}), Err(Error::Missing)));
}
