//! What the store promises beyond surviving crashes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::common::{Dice, Model, check_equal, fill, key};
use umbel_store::storage::testing::{Fate, TestDisk};
use umbel_store::storage::{Contents, Storage, StorageFile};
use umbel_store::{Batch, Durability, Error, MAX_KEY, MAX_VALUE, Options, Store};

fn quiet() -> Options {
    Options::new().background(false)
}

#[test]
fn a_second_opener_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let first = Store::open(folder.path(), quiet()).unwrap();
    let error = Store::open(folder.path(), quiet()).unwrap_err();
    assert!(matches!(error, Error::Locked), "{error}");
    drop(first);
    Store::open(folder.path(), quiet()).unwrap();
}

#[test]
fn a_store_is_made_only_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    let error = Store::open(&path, quiet().create(false)).unwrap_err();
    assert!(matches!(error, Error::Missing));
    assert!(!path.exists(), "nothing was made");
}

#[test]
fn keys_and_values_of_any_allowed_length_come_back() {
    let disk = TestDisk::new();
    let store = Store::open_on(Arc::new(disk.clone()), quiet()).unwrap();
    let mut model = Model::new();
    for (key_len, value_len) in [
        (0, 0),
        (0, 5),
        (1, 4096),
        (4096, 1),
        (MAX_KEY, 10),
        (MAX_KEY - 1, MAX_VALUE),
        (9, MAX_VALUE),
    ] {
        let (key, value) = (vec![7; key_len], vec![1; value_len]);
        store.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    let too_long = store.put(&vec![0; MAX_KEY + 1], b"").unwrap_err();
    assert!(matches!(too_long, Error::KeyTooLong { len: 65_536 }), "{too_long}");
    let mut batch = Batch::new();
    batch.put(b"fine", b"").put(b"not", &vec![0; MAX_VALUE + 1]);
    assert!(matches!(store.write(batch), Err(Error::ValueTooLong { .. })));
    check_equal(&store, &model);
    store.integrate().unwrap();
    check_equal(&store, &model);
    store.verify(|_| {}).unwrap();
    drop(store);
    check_equal(&Store::open_on(Arc::new(disk), quiet()).unwrap(), &model);
}

#[test]
fn readers_see_right_answers_while_writers_write_and_masters_change() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().memory_budget(140_000).integrate_bytes(100_000);
    let options = options.durability(Durability::Interval(Duration::from_millis(20)));
    let store = Store::open(folder.path(), options).unwrap();
    fill(&store, 5_000);
    let done = AtomicBool::new(false);
    let (reads, end) = (AtomicU64::new(0), 25_000);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (store, done, reads) = (&store, &done, &reads);
            scope.spawn(move || {
                let mut dice = Dice::new(reader);
                while !done.load(Ordering::Relaxed) {
                    let i = dice.below(5_000);
                    assert_eq!(store.get(&key(i)).unwrap().unwrap(), i.to_le_bytes());
                    assert!(!store.contains(&key(end + i)).unwrap());
                    let snapshot = store.snapshot();
                    let from = key(i);
                    let some = snapshot.scan(&from[..]..).unwrap().take(20);
                    assert!(some.map(|record| record.unwrap().0).is_sorted());
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                let snapshot = store.snapshot();
                assert_eq!(snapshot.scan(..).unwrap().count() as u64, snapshot.len());
            });
        }
        let (store, done) = (&store, &done);
        scope.spawn(move || {
            for i in 5_000..end {
                store.put(&key(i), &i.to_le_bytes()).unwrap();
            }
            while store.stat().master_bytes == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    store.integrate().unwrap();
    assert_eq!(store.verify(|_| {}).unwrap().records, end);
}

#[test]
fn of_many_who_insert_one_key_exactly_one_is_told_that_it_was_new() {
    let store = Store::open_on(Arc::new(TestDisk::new()), quiet()).unwrap();
    let insert_all = &|me: u8| {
        let is_new = |&i: &u64| {
            let mut batch = Batch::new();
            batch.insert(&key(i), &[me]).insert(&key(i), &[me]);
            let before = store.apply(batch).unwrap();
            assert!(before[1].is_some(), "a change sees those before it in its batch");
            before[0].is_none()
        };
        (0..200).filter(is_new).count()
    };
    let new: usize = std::thread::scope(|scope| {
        let writers = [1, 2, 3, 4].map(|me| scope.spawn(move || insert_all(me)));
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!((new, store.len()), (200, 200));
}

#[test]
fn writers_at_the_same_time_share_syncs_and_lose_nothing() {
    let disk = TestDisk::new();
    let store = Store::open_on(Arc::new(disk.clone()), quiet()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let store = &store;
            scope.spawn(move || {
                for i in 0..250 {
                    assert!(store.put(&key(writer * 1000 + i), b"v").unwrap());
                }
            });
        }
    });
    assert_eq!(store.len(), 1000);
    // Every put was acknowledged, so every one survives the worst crash.
    let back = Store::open_on(Arc::new(disk.crash(Fate::LoseAll)), quiet()).unwrap();
    assert_eq!(back.scan(..).unwrap().count(), 1000);
}

#[test]
fn an_interval_survives_a_killed_process_and_after_a_sync_a_lost_machine() {
    let disk = TestDisk::new();
    let options = quiet().durability(Durability::Interval(Duration::from_secs(3600)));
    let store = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    store.put(b"a", b"1").unwrap();
    store.sync().unwrap();
    store.put(b"b", b"2").unwrap();
    store.put(b"c", b"3").unwrap();
    let reopened = |fate| Store::open_on(Arc::new(disk.crash(fate)), quiet()).unwrap().len();
    assert_eq!(reopened(Fate::KeepAll), 3);
    assert_eq!(reopened(Fate::LoseAll), 1);
    for seed in 0..200 {
        let len = reopened(Fate::Mixed(seed));
        assert!((1..=3).contains(&len), "seed {seed}");
    }
}

#[test]
fn the_background_thread_integrates_by_size_and_by_age() {
    let wait = |store: &Store| {
        while store.stat().master_bytes == 0 || store.stat().differential_records > 0 {
            assert_eq!(store.poisoned(), None);
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let by_size = Options::new().integrate_bytes(10_000);
    let store = Store::open(folder.path().join("size"), by_size).unwrap();
    fill(&store, 2_000);
    wait(&store);
    let by_age = Options::new().integrate_age(Some(Duration::from_millis(10)));
    let store = Store::open(folder.path().join("age"), by_age).unwrap();
    store.put(b"a", b"1").unwrap();
    wait(&store);
    let asked = Store::open(folder.path().join("asked"), Options::new()).unwrap();
    asked.put(b"a", b"1").unwrap();
    asked.request_integrate();
    wait(&asked);
    assert_eq!(asked.len(), 1);
}

/// Stops integrating at the first write to the unfinished file.
#[derive(Debug)]
struct StoppingDisk {
    disk: TestDisk,
    store: OnceLock<Weak<Store>>,
    begun: AtomicU64,
}

impl StoppingDisk {
    fn new(disk: TestDisk) -> Arc<Self> {
        Arc::new(Self { disk, store: OnceLock::new(), begun: AtomicU64::new(0) })
    }
}

#[derive(Debug)]
struct StoppingFile(Box<dyn StorageFile>, Weak<Store>);

impl StorageFile for StoppingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(store) = self.1.upgrade() {
            store.stop_integrate();
        }
        self.0.append(bytes)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }

    fn check_place(&self) -> io::Result<()> {
        self.0.check_place()
    }
}

impl Storage for StoppingDisk {
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        self.disk.lock()
    }

    fn lock_to_read(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.disk.lock_to_read()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create_dir(&self) -> io::Result<()> {
        self.disk.create_dir()
    }

    fn read(&self, name: &str) -> io::Result<Contents> {
        self.disk.read(name)
    }

    fn map(&self, name: &str) -> io::Result<Contents> {
        self.disk.map(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = self.disk.create(name)?;
        if !name.ends_with(".unfinished") {
            return Ok(file);
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let store = self.store.get().cloned().unwrap_or_default();
        Ok(Box::new(StoppingFile(file, store)))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.disk.append(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn hard_link(&self, name: &str, to: &dyn Storage) -> io::Result<bool> {
        self.disk.hard_link(name, to)
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn salt(&self) -> u64 {
        self.disk.salt()
    }
}

#[test]
fn integrating_can_be_stopped_and_taken_up_again() {
    let storage = StoppingDisk::new(TestDisk::new());
    let store = Arc::new(Store::open_on(storage.clone(), quiet()).unwrap());
    storage.store.set(Arc::downgrade(&store)).unwrap();
    let end = 70_000;
    fill(&store, end);
    assert!(matches!(store.integrate(), Err(Error::Stopped)));
    assert_eq!(store.progress(), None);
    assert_eq!(store.stat().master_bytes, 0);
    // Life goes on: new changes, which the merge that was stopped knows nothing of.
    assert!(store.delete(&key(5)).unwrap());
    assert_eq!(store.len(), end - 1);

    // Another process takes it up, after a crash that lost everything that was not synced
    // in the other files and kept any part of the unfinished one.
    for fate in [Fate::KeepAll, Fate::LoseAll, Fate::Mixed(1), Fate::Mixed(2), Fate::Mixed(3)] {
        let again = StoppingDisk::new(storage.disk.crash(fate));
        let has_unfinished = again.list().unwrap().iter().any(|name| name.ends_with(".unfinished"));
        let store = Store::open_on(again.clone(), quiet()).unwrap();
        store.integrate().unwrap();
        assert_eq!(store.verify(|_| {}).unwrap().records, end - 1, "{fate:?}");
        assert_eq!(store.stat().differential_records, 0);
        // One merge for what came later; the first only if its file was lost.
        let kept = has_unfinished && fate == Fate::KeepAll;
        assert!(!kept || again.begun.load(Ordering::Relaxed) == 1, "{fate:?}");
    }

    // So does the one that stopped.
    store.integrate().unwrap_err(); // the second merge writes too, and is stopped as well
    while store.stat().differential_records > 0 {
        let _ = store.integrate();
    }
    assert_eq!(store.verify(|_| {}).unwrap().records, end - 1);
    assert!(!storage.list().unwrap().iter().any(|name| name.ends_with(".unfinished")));
}

/// Paper 2: `p(u)` is the chance that a request for a random record of the master finds the
/// filter saying "maybe" although the record was not changed.
#[test]
fn filter_errors_agree_with_the_formula() {
    let (records, sample) = (200_000u64, 20_000);
    let disk = TestDisk::new();
    let loading = Store::open_on(Arc::new(disk.clone()), quiet().memory_budget(1 << 30)).unwrap();
    fill(&loading, records);
    loading.integrate().unwrap();
    drop(loading);
    println!("{:>8} {:>3} {:>8} {:>9} {:>9} {:>6}", "m", "h", "u", "p(u)", "measured", "errors");
    for (bits, planned) in [(80_000, 20_000), (160_000, 20_000), (240_000, 20_000)] {
        let options =
            quiet().memory_budget(64 * planned).filter_bits(bits).integrate_bytes(1 << 40);
        let store = Store::open_on(Arc::new(disk.crash(Fate::KeepAll)), options).unwrap();
        let mut made = 0;
        for updates in [2_000, 8_000, 18_000] {
            // The records changed are distinct, as in the formula for n much larger than u.
            let mut batch = Batch::new();
            for i in made..updates {
                batch.put(&key(i * 10), b"changed!");
            }
            store.write(batch).unwrap();
            made = updates;
            let stat = store.stat();
            assert_eq!((stat.filter_bits, stat.differential_records), (bits, updates));
            let (lookups, errors) = store.sample_filter(sample).unwrap();
            assert_eq!(lookups, sample);
            let p = stat.filter_error_expected;
            let measured = errors as f64 / lookups as f64;
            let hashes = umbel_hashes(bits, planned as u64);
            println!("{bits:>8} {hashes:>3} {updates:>8} {p:>9.6} {measured:>9.6} {errors:>6}");
            // Few enough lookups that their own chance outweighs that of one filter's fill.
            let standard_error = (p * (1.0 - p) / lookups as f64).sqrt();
            assert!((measured - p).abs() <= 3.0 * standard_error, "{measured} {p} u={updates}");
        }
    }
}

/// Records that change again set no new bits: counted as changes they would be expected to err
/// many times as often.
#[test]
fn filter_errors_are_expected_of_distinct_keys() {
    let records = 50_000;
    for budget in [8 << 20, 1 << 20] {
        let disk = TestDisk::new();
        let options = quiet().memory_budget(budget).integrate_bytes(1 << 40);
        let store = Store::open_on(Arc::new(disk), options).unwrap();
        fill(&store, records);
        store.integrate().unwrap();
        let mut dice = Dice::new(7);
        for _ in 0..75 {
            let mut batch = Batch::new();
            for _ in 0..1000 {
                batch.put(&key(dice.below(records)), b"changed!");
            }
            store.write(batch).unwrap();
        }
        let stat = store.stat();
        assert_eq!(stat.differential_records, 75_000);
        // n (1 - e^-1.5) records are changed; those of several layers count in each.
        assert!(stat.differential_keys >= 38_500, "{stat:?}");
        let (lookups, errors) = store.sample_filter(records).unwrap();
        let expected = stat.filter_error_expected * lookups as f64;
        let apart = (errors as f64 - expected).abs();
        println!("{budget}: {errors} errors of {lookups} lookups, {expected:.1} expected");
        assert!(apart <= 4.0 * expected.sqrt() + 0.1 * expected, "{errors} for {expected}");
    }
}

fn umbel_hashes(bits: u64, updates: u64) -> u32 {
    let best = std::f64::consts::LN_2 * bits as f64 / updates as f64;
    let rate = |h: f64| (1.0 - (-(updates as f64) * h / bits as f64).exp()).powf(h);
    let (below, above) = (best.floor().max(1.0), best.ceil());
    if rate(below) <= rate(above) { below as u32 } else { above as u32 }
}

#[test]
fn the_filter_spares_reads_of_an_index_on_disk() {
    let records = 50_000;
    let disk = TestDisk::new();
    let options = || quiet().memory_budget(120_000).integrate_bytes(1 << 40);
    let store = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    fill(&store, records);
    store.integrate().unwrap();
    for i in 0..3_000 {
        store.put(&key(i), b"changed!").unwrap();
    }
    drop(store);
    let mut reads_a_query = Vec::new();
    for filter in [true, false] {
        let back = Arc::new(disk.crash(Fate::KeepAll));
        let store = Store::open_on(back, options().filter(filter)).unwrap();
        let parts = disk.list().unwrap().iter().filter(|name| name.ends_with(".sorted")).count();
        assert!(parts >= 1, "the index is on disk");
        let before = store.stat();
        for i in 0..records {
            assert!(store.contains(&key(i)).unwrap());
        }
        let after = store.stat();
        let (reads, spared) =
            (after.index_reads - before.index_reads, after.spared_reads - before.spared_reads);
        if filter {
            assert!(spared > 0);
        }
        reads_a_query.push(reads as f64 / records as f64);
    }
    let [with, without] = reads_a_query[..] else { unreachable!() };
    println!("index on disk: {with:.4} reads a query with the filter, {without:.4} without");
    assert!(with < without / 5.0);
}

/// Gives each number a key.
type Spread<'a> = &'a dyn Fn(u64) -> Vec<u8>;

/// Keys of one length that are spread in different ways, in a master of many pages: a
/// lookup goes straight to a few records, and must never miss one or take another for it.
#[test]
fn every_key_is_found_however_keys_are_spread() {
    let mixed = |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let spreads: [(&str, Spread<'_>); 6] = [
        ("even", &|i| [mixed(i).to_be_bytes(), mixed(i ^ 77).to_be_bytes()].concat()),
        ("in turn", &|i| [[3; 8], i.to_be_bytes()].concat()),
        ("in clusters", &|i| [[(mixed(i) >> 61) as u8; 8], mixed(i).to_be_bytes()].concat()),
        ("alike for eight bytes", &|i| {
            [(i % 50).wrapping_mul(mixed(1)).to_be_bytes(), mixed(i).to_be_bytes()].concat()
        }),
        ("near the ends", &|i| {
            [(mixed(i) >> (mixed(i) % 64)).to_be_bytes(), i.to_be_bytes()].concat()
        }),
        ("of any length", &|i| mixed(i).to_string().into_bytes()),
    ];
    for (name, key) in spreads {
        let store = Store::open_on(Arc::new(TestDisk::new()), quiet()).unwrap();
        let mut model = Model::new();
        let mut batch = Batch::new();
        for i in 0..6_000 {
            batch.put(&key(i), &i.to_le_bytes());
            model.insert(key(i), i.to_le_bytes().to_vec());
        }
        store.write(batch).unwrap();
        store.integrate().unwrap();
        check_equal(&store, &model);
        // Absent ones that differ in one byte, wherever it is: also in what a page's keys share.
        for i in (0..6_000).step_by(7) {
            for at in 0..key(i).len() {
                let mut other = key(i);
                other[at] ^= 1 << (i % 8);
                let found = store.get(&other).unwrap();
                assert_eq!(found.as_ref(), model.get(&other), "{name}, key {i}, byte {at}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn what_is_made_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("data/catalogue"), folder.path().join("backup"));
    let store = Store::open(&path, Options::new()).unwrap();
    for number in 0..100_u32 {
        store.put(&number.to_be_bytes(), b"value").unwrap();
    }
    store.integrate().unwrap();
    store.put(b"later", b"value").unwrap();
    store.backup(&copy, |_| ()).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for folder in [path.parent().unwrap(), &path, &copy] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    for folder in [&path, &copy] {
        let files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}
