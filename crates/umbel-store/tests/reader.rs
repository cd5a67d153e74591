//! Stores that are only read: on write-protected media, beside other readers, after a crash.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Model, fill, key};
use umbel_store::storage::Storage as _;
use umbel_store::storage::testing::{Fate, TestDisk};
use umbel_store::{Error, Options, Reader, Store};

fn quiet() -> Options {
    Options::new().background(false)
}

/// A master, sorted files and a differential file.
fn filled(disk: &TestDisk) -> (Store, Model) {
    let options = quiet().memory_budget(75_000).integrate_bytes(1 << 30);
    let store = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    fill(&store, 3_000);
    store.integrate().unwrap();
    fill(&store, 6_000);
    store.delete(&key(7)).unwrap();
    let all = store.scan(..).unwrap().map(Result::unwrap).collect();
    (store, all)
}

fn files(disk: &TestDisk) -> BTreeMap<String, Vec<u8>> {
    let bytes = |name: String| (name.clone(), disk.bytes(&name).unwrap());
    disk.list().unwrap().into_iter().map(bytes).collect()
}

#[test]
fn a_write_protected_backup_is_read_and_verified() {
    let (disk, backup) = (TestDisk::new(), TestDisk::new());
    let (store, all) = filled(&disk);
    store.backup_on(&backup, |_| {}).unwrap();
    backup.set_read_only(true);
    assert!(Store::open_on(Arc::new(backup.clone()), quiet()).is_err());

    let reader = Reader::open_on(Arc::new(backup)).unwrap();
    let snapshot = reader.snapshot();
    assert_eq!(snapshot.get(&key(7)).unwrap(), None);
    assert_eq!(snapshot.get(&key(5_999)).unwrap().as_deref(), all.get(&key(5_999)).map(|v| &v[..]));
    assert_eq!(snapshot.scan(..).unwrap().map(Result::unwrap).collect::<Model>(), all);
    let (read, written) = (reader.verify(|_| {}).unwrap(), store.verify(|_| {}).unwrap());
    assert_eq!((read.records, read.files), (written.records, written.files));
    assert_eq!(reader.stat().records, store.stat().records);
    assert!(reader.sample_filter(100).unwrap().0 > 0);
}

#[test]
fn damage_is_found_by_who_only_reads() {
    let disk = TestDisk::new();
    drop(filled(&disk));
    let master = disk.list().unwrap().into_iter().find(|name| name.ends_with(".master")).unwrap();
    let mut bytes = disk.bytes(&master).unwrap();
    bytes[5_000] ^= 1;
    disk.set_bytes(&master, bytes);
    disk.set_read_only(true);
    let reader = Reader::open_on(Arc::new(disk)).unwrap();
    assert!(matches!(reader.verify(|_| {}), Err(Error::Corrupt { .. })));
}

/// What a crash left is not seen, and not put right either.
#[test]
fn reading_changes_nothing() {
    let disk = TestDisk::new();
    let (store, all) = filled(&disk);
    let disk = disk.crash(Fate::KeepAll);
    drop(store);
    let newest = disk.list().unwrap().into_iter().filter(|name| name.ends_with("differential"));
    let newest = newest.max().unwrap();
    let mut bytes = disk.bytes(&newest).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    bytes.truncate(end + 4);
    bytes.extend(b"torn by a crash");
    disk.set_bytes(&newest, bytes);
    disk.set_bytes("00000099.unfinished", b"a merge that was not finished".to_vec());
    let before = files(&disk);

    let reader = Reader::open_on(Arc::new(disk.clone())).unwrap();
    assert_eq!(reader.snapshot().scan(..).unwrap().map(Result::unwrap).collect::<Model>(), all);
    assert_eq!(reader.verify(|_| {}).unwrap().records, all.len() as u64);
    drop(reader);
    assert_eq!(files(&disk), before);
    // Whoever writes puts it right.
    drop(Store::open_on(Arc::new(disk.clone()), quiet()).unwrap());
    assert_ne!(files(&disk), before);
}

#[test]
fn many_read_at_a_time_and_nobody_writes_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Reader::open(folder.path().join("none")), Err(Error::Missing)));
    let path = folder.path().join("store");
    let store = Store::open(&path, quiet()).unwrap();
    store.put(b"a", b"1").unwrap();
    assert!(matches!(Reader::open(&path), Err(Error::Locked)));
    drop(store);
    let readers = [Reader::open(&path).unwrap(), Reader::open(&path).unwrap()];
    assert!(readers.iter().all(|reader| reader.snapshot().len() == 1));
    assert!(matches!(Store::open(&path, quiet()), Err(Error::Locked)));
    drop(readers);
    Store::open(&path, quiet()).unwrap();
}
