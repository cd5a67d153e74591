//! The measurements, and how they are printed.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};

use crate::Settings;
use crate::rivals::{self, NAMES, Record, Rival, Umbel};

/// A row for each thing measured, a column for each store.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<(String, Vec<Option<f64>>)>,
    goals: Vec<(String, f64, f64)>,
}

impl Table {
    fn row(&mut self, name: &str, values: Vec<Option<f64>>) {
        self.rows.push((name.to_owned(), values));
    }

    fn value(&self, row: &str, store: &str) -> Option<f64> {
        let column = NAMES.iter().position(|name| *name == store)?;
        self.rows.iter().find(|(name, _)| name == row)?.1.get(column).copied()?
    }

    /// A ratio of ours to something in the same run, and the most it should be.
    fn goal(&mut self, what: &str, ratio: Option<f64>, max: f64) {
        if let Some(ratio) = ratio {
            self.goals.push((what.to_owned(), ratio, max));
        }
    }

    pub(crate) fn print(&self) {
        print!("\n{:<34}", "");
        NAMES.iter().for_each(|name| print!("{name:>20}"));
        println!();
        for (name, values) in &self.rows {
            print!("{name:<34}");
            let ours = values.first().copied().flatten();
            for value in values {
                match (value, ours) {
                    (Some(value), Some(ours)) => {
                        print!("{:>11.2} {:>7.2}x", value, value / ours);
                    }
                    _ => print!("{:>20}", "-"),
                }
            }
            println!();
        }
        println!("\n{:<62}{:>9}{:>9}", "goal (ours over the other)", "is", "at most");
        for (what, ratio, max) in &self.goals {
            let verdict = if ratio <= max { "reached" } else { "MISSED" };
            println!("{what:<62}{ratio:>9.3}{max:>9.3}  {verdict}");
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn key(i: u64) -> [u8; 24] {
    let mut key = [0; 24];
    for (j, part) in key.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mix(i * 3 + j as u64).to_be_bytes());
    }
    key
}

fn record(i: u64) -> Record {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&i.to_le_bytes());
    (key(i), value)
}

fn fill(store: &mut dyn Rival, from: u64, to: u64) {
    for start in (from..to).step_by(1000) {
        let batch: Vec<Record> = (start..(start + 1000).min(to)).map(record).collect();
        store.write(&batch, false);
    }
}

pub(crate) fn run(settings: &Settings) -> Table {
    let mut table = Table::default();
    let folders: Vec<PathBuf> = NAMES.iter().map(|name| settings.folder.join(name)).collect();
    let mut stores = Vec::new();
    let mut loads = vec![f64::MAX; NAMES.len()];
    for _ in 0..LOADS {
        stores.clear();
        for (i, (name, folder)) in NAMES.iter().zip(&folders).enumerate() {
            eprintln!("loading {name}");
            let _ = std::fs::remove_dir_all(folder);
            let (store, seconds) = load(name, folder, settings.records);
            loads[i] = loads[i].min(seconds);
            stores.push(store);
        }
    }
    table.row(LOAD, loads.into_iter().map(Some).collect());
    table.row("bytes a record on disk", sizes(&folders, settings.records));
    lookups(&mut table, &stores, settings.records);
    durable(&mut table, &mut stores, settings);
    drop(stores);
    during_integrate(&mut table, settings);
    reopen(&mut table, settings);
    goals(&mut table);
    table
}

/// A new store with so many records, and the CPU seconds that took.
fn load(name: &str, folder: &Path, records: u64) -> (Box<dyn Rival>, f64) {
    let mut store = rivals::open(name, folder);
    let start = ProcessTime::now();
    fill(&mut *store, 0, records);
    store.write(&[record(0)], true);
    store.settle();
    (store, start.elapsed().as_secs_f64())
}

fn goals(table: &mut Table) {
    let ratio = |table: &Table, row: &str, other: &str| {
        Some(table.value(row, "umbel")? / table.value(row, other)?)
    };
    let best = NAMES[1..].iter().filter_map(|name| table.value(MISS, name)).reduce(f64::min);
    let miss = best.and_then(|best| Some(table.value(MISS, "umbel")? / best));
    let hit = ratio(table, HIT, "lmdb");
    let load = ratio(table, LOAD, "lmdb");
    let bytes = ratio(table, "bytes a record on disk", "rocksdb");
    let group = ratio(table, GROUP, "fjall");
    table.goal("random hit, over LMDB (4 times faster)", hit, 1.0 / 4.0);
    table.goal("miss, over the best rival (25 times faster)", miss, 1.0 / 25.0);
    table.goal("bulk load CPU, over LMDB", load, 1.0 / 6.0);
    table.goal("bytes on disk, over RocksDB", bytes, 0.75);
    table.goal("group commit of 100, over fjall", group, 0.6);
}

/// Rounds of loading.
const LOADS: usize = 2;
const LOAD: &str = "bulk load, CPU s";
const HIT: &str = "random hit, CPU ns";
const MISS: &str = "miss, CPU ns";
const GROUP: &str = "durable group of 100, us a put";

fn sizes(folders: &[PathBuf], records: u64) -> Vec<Option<f64>> {
    folders.iter().map(|folder| Some(bytes_on_disk(folder) as f64 / records as f64)).collect()
}

/// Blocks, not lengths: sparse files count for what they take.
fn bytes_on_disk(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| bytes_on_disk(&entry.path())).sum(),
        Err(_) => std::fs::metadata(path).map_or(0, |metadata| metadata.blocks() * 512),
    }
}

fn lookups(table: &mut Table, stores: &[Box<dyn Rival>], records: u64) {
    let queries = 200_000;
    let hits: Vec<_> = (0..queries).map(|i| key(mix(i) % records)).collect();
    let misses: Vec<_> = (0..queries).map(|i| key((1 << 40) + mix(i) % records)).collect();
    let mut hit = vec![f64::MAX; stores.len()];
    let mut miss = hit.clone();
    for round in 0..8 {
        for (i, store) in stores.iter().enumerate() {
            let each = |keys: &[[u8; 24]], expected: usize| {
                let start = ThreadTime::now();
                assert_eq!(store.count(keys), expected, "{}", NAMES[i]);
                start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64
            };
            let (h, m) = (each(&hits, hits.len()), each(&misses, 0));
            if round > 0 {
                hit[i] = hit[i].min(h);
                miss[i] = miss[i].min(m);
            }
        }
    }
    table.row(HIT, hit.into_iter().map(Some).collect());
    table.row(MISS, miss.into_iter().map(Some).collect());
}

/// Durable writes, one by one and by the hundred, and the same bytes without a store.
fn durable(table: &mut Table, stores: &mut [Box<dyn Rival>], settings: &Settings) {
    let mut raw = std::fs::File::create(settings.folder.join("raw")).expect("a file");
    let (mut one, mut group) = (vec![f64::MAX; stores.len()], vec![f64::MAX; stores.len()]);
    let mut alone = f64::MAX;
    let mut id = 1 << 43;
    for _ in 0..12 {
        let puts = 25;
        let start = Instant::now();
        for _ in 0..puts {
            raw.write_all(&[7; 59]).and_then(|()| raw.sync_data()).expect("appends");
        }
        alone = alone.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(puts));
        for (i, store) in stores.iter_mut().enumerate() {
            let mut next = || {
                id += 1;
                record(id)
            };
            let start = Instant::now();
            for _ in 0..puts {
                store.write(&[next()], true);
            }
            one[i] = one[i].min(start.elapsed().as_secs_f64() * 1e6 / f64::from(puts));
            let batches: Vec<Vec<Record>> =
                (0..5).map(|_| (0..100).map(|_| next()).collect()).collect();
            let start = Instant::now();
            batches.iter().for_each(|batch| store.write(batch, true));
            group[i] = group[i].min(start.elapsed().as_secs_f64() * 1e6 / 500.0);
        }
    }
    println!("append + fdatasync without a store: {alone:.0} us");
    table.goal("durable put, over append + fdatasync", Some(one[0] / alone), 1.1);
    table.row("durable put, us", one.into_iter().map(Some).collect());
    table.row(GROUP, group.into_iter().map(Some).collect());
}

/// The 99th percentile of single lookups, at rest and while a new master is made.
fn during_integrate(table: &mut Table, settings: &Settings) {
    let folder = settings.folder.join("integrating");
    let mut umbel = Umbel::open(&folder);
    fill(&mut umbel, 0, settings.records);
    umbel.settle();
    let (mut idle, mut busy) = (f64::MAX, f64::MAX);
    for round in 0..6 {
        let from = (2 + round) << 40;
        fill(&mut umbel, from, from + 50_000);
        umbel.store.sync().expect("syncs");
        idle = idle.min(percentile(&umbel, settings.records, || false));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (store, done) = (&umbel.store, &done);
            scope.spawn(move || {
                store.integrate().expect("integrates");
                done.store(true, Ordering::Relaxed);
            });
            busy = busy.min(percentile(&umbel, settings.records, || done.load(Ordering::Relaxed)));
        });
    }
    println!("p99 of a lookup: {idle:.0} ns idle, {busy:.0} ns while integrating");
    table.goal("p99 of get while integrating, over idle", Some(busy / idle), 1.5);
}

fn percentile(umbel: &Umbel, records: u64, mut is_over: impl FnMut() -> bool) -> f64 {
    let mut times = Vec::new();
    for i in 0..400_000u64 {
        let key = key(mix(i) % records);
        let start = Instant::now();
        let found = umbel.store.get(&key).expect("reads");
        times.push(start.elapsed().as_nanos() as u64);
        assert!(found.is_some());
        if i % 64 == 0 && is_over() {
            break;
        }
    }
    let at = times.len() * 99 / 100;
    *times.select_nth_unstable(at).1 as f64
}

/// Opening again, and a first lookup, after a process was killed with changes not integrated.
fn reopen(table: &mut Table, settings: &Settings) {
    let mut row = Vec::new();
    for &name in NAMES {
        eprintln!("killing and reopening {name}");
        row.push(reopen_one(name, settings.records, &settings.folder.join("reopen").join(name)));
    }
    table.row("reopen after kill -9, ms", row);
    eprintln!("killing and reopening ours with {} records", settings.reopen_records);
    let large = settings.folder.join("reopen-large");
    if let Some(ms) = reopen_one("umbel", settings.reopen_records, &large) {
        println!("reopen after kill -9 with {} records: {ms:.1} ms", settings.reopen_records);
        table.goal("reopen at 10^7 records + 64k changes, over 50 ms", Some(ms / 50.0), 1.0);
    }
}

fn reopen_one(name: &str, records: u64, folder: &Path) -> Option<f64> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg("--fill-and-wait")
        .arg(name)
        .arg(records.to_string())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut ready = String::new();
    std::io::BufReader::new(child.stdout.take()?).read_line(&mut ready).ok()?;
    child.kill().ok()?; // SIGKILL
    child.wait().ok()?;
    assert_eq!(ready.trim(), "ready", "{name}");
    // The first opening recovers; later ones are no measure of it. So fill once, kill
    // once, open once.
    let start = Instant::now();
    let store = rivals::open(name, folder);
    assert_eq!(store.count(&[key(5), key(CHANGES_AT + CHANGES - 1)]), 2, "{name}");
    let time = start.elapsed();
    assert_eq!(store.count(&(0..1000).map(|i| key(CHANGES_AT + i)).collect::<Vec<_>>()), 1000);
    drop(store);
    let _ = std::fs::remove_dir_all(folder);
    Some(time.as_secs_f64() * 1e3)
}

const CHANGES: u64 = 64_000;
const CHANGES_AT: u64 = 1 << 41;

/// Fills a store, leaves 64,000 synced changes beyond what was settled, and waits.
pub(crate) fn fill_and_wait(name: &str, mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let records = arguments.next().and_then(|records| records.parse().ok()).expect("a number");
    let folder = PathBuf::from(arguments.next().expect("a folder"));
    let mut store = rivals::open(name, &folder);
    fill(&mut *store, 0, records);
    store.settle();
    fill(&mut *store, CHANGES_AT, CHANGES_AT + CHANGES - 1);
    store.write(&[record(CHANGES_AT + CHANGES - 1)], true);
    println!("ready");
    std::io::stdout().flush().expect("the parent reads");
    // Until it is killed; but not for ever, should the parent be gone.
    std::thread::sleep(Duration::from_secs(600));
    ExitCode::FAILURE
}
