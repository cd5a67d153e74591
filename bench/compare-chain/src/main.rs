//! Chains of keys: umbel beside the indexes of routers for language models, in one run:
//! `cargo run --release --manifest-path bench/compare-chain/Cargo.toml -- --workers 64`.
//!
//! Requests are routed to workers with caches by exact knowledge. All indexes answer the same
//! queries in turns, and take in the same changes in between; the second half is timed. Times are
//! printed as measured and as a ratio to kv-index, rows that we lose included. Depths are compared
//! with the caches.
//!
//! `--trace FILE` reads a trace (lines such as `{"timestamp": 27482, "hash_ids": [0, 46]}`, or
//! the same compressed by gzip); without it requests are synthetic conversations. `--copies C`
//! services share the workers, `--blocks N` is what all caches hold together, `--block-tokens T`
//! the length of a block, `--only-ours` leaves the rivals out, `--without NAME` one of them.

mod dynamo;
mod index;
mod kv;
mod ours;
mod trace;

use std::time::Instant;

use index::{Event, Index, Query, World};
use peak_alloc::PeakAlloc;
use umbel_lab::chain::{Blocks, Pool, Trace, fold};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Requests between two rounds of changes.
const BATCH: usize = 64;
/// How the names of our rows begin: they are compared with hashing included as well.
const OURS: &str = "umbel";
/// Tokens of a part of a trace.
const PART_TOKENS: usize = 512;

struct Settings {
    workers: usize,
    blocks: usize,
    copies: u32,
    per_part: usize,
    trace: Option<String>,
    only_ours: bool,
    without: Vec<String>,
}

fn settings() -> Settings {
    let mut settings = Settings {
        workers: 64,
        blocks: 10_000_000,
        copies: 4,
        per_part: 32,
        trace: None,
        only_ours: false,
        without: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().expect("the option needs a value");
        match &*option {
            "--workers" => settings.workers = value().parse().expect("a number of workers"),
            "--blocks" => settings.blocks = value().parse().expect("a number of blocks"),
            "--copies" => settings.copies = value().parse().expect("a number of services"),
            "--block-tokens" => {
                settings.per_part = PART_TOKENS / value().parse::<usize>().expect("a length");
            }
            "--trace" => settings.trace = Some(value()),
            "--only-ours" => settings.only_ours = true,
            "--without" => settings.without.push(value()),
            other => panic!("unknown option {other}"),
        }
    }
    settings
}

/// What was measured of one index.
#[derive(Default)]
struct Measured {
    ns: Vec<u32>,
    /// With hashing the chain by one multiplication a block.
    hashed: Vec<u32>,
    apply_ns: u128,
    bytes: i64,
    depths: u64,
    /// Depths too large at all, by more than 8 blocks, by more than 16; too small by a step.
    wrong: [u64; 4],
}

impl Measured {
    fn compare(&mut self, found: &[u32], held: &[u32], step: u32) {
        for (found, held) in found.iter().zip(held) {
            self.depths += 1;
            let over = found.saturating_sub(*held);
            for (count, limit) in self.wrong.iter_mut().zip([0, 8, 16]) {
                *count += u64::from(over > limit);
            }
            self.wrong[3] += u64::from(*found < held / step * step);
        }
    }
}

fn percentile(sorted: &[u32], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |ns| f64::from(*ns))
}

fn main() {
    let settings = settings();
    let trace = settings.trace.as_deref().map_or_else(|| Trace::synthetic(12_031, 1), trace::read);
    let trace = if settings.copies > 1 { trace.times(settings.copies) } else { trace };
    let blocks = Blocks::new(&trace, settings.per_part, kv::chain);
    let world = World { trace, blocks };
    let capacity = (settings.blocks / settings.per_part / settings.workers).max(1);
    let longest = world.trace.requests().iter().map(|request| request.parts.len()).max();
    assert!(Some(capacity) >= longest, "--blocks: a cache must hold the longest text");
    let items = (capacity * settings.per_part) as u64;
    let workers = settings.workers;
    let (ours, design) = ours::Ordinary::new(OURS, workers, items);
    let mut indexes: Vec<Box<dyn Index>> = vec![Box::new(ours)];
    indexes.push(Box::new(ours::Huge::new("umbel, huge pages", workers, items).0));
    if !settings.only_ours {
        indexes.push(Box::new(kv::Kv::new(workers)));
        indexes.push(Box::new(dynamo::Radix::new()));
        indexes.push(Box::new(dynamo::Concurrent::new()));
        indexes.push(Box::new(dynamo::Positional::new()));
        if workers <= dynamo::Cuckoo::MAX_WORKERS {
            indexes.push(Box::new(dynamo::Cuckoo::new(workers, items as usize)));
        }
        indexes.retain(|index| !settings.without.contains(&index.name()));
    }
    let mut run = Run::new(&settings, &world, indexes, capacity, design.step);
    for batch in 0..world.trace.requests().len().div_ceil(BATCH) {
        run.batch(batch);
    }
    run.print();
}

struct Run<'a> {
    world: &'a World,
    settings: &'a Settings,
    pool: Pool,
    indexes: Vec<Box<dyn Index>>,
    measured: Vec<Measured>,
    /// Hashing a chain: by one multiplication a block, and as kv-index does.
    hashing: [Vec<u32>; 2],
    keys: Vec<u64>,
    lengths: Vec<u32>,
    changes: u64,
    held: Vec<u32>,
    found: Vec<u32>,
    step: u32,
}

impl<'a> Run<'a> {
    fn new(
        settings: &'a Settings,
        world: &'a World,
        indexes: Vec<Box<dyn Index>>,
        capacity: usize,
        step: u32,
    ) -> Self {
        Self {
            world,
            settings,
            pool: Pool::new(&world.trace, settings.workers, capacity, 1),
            measured: indexes.iter().map(|_| Measured::default()).collect(),
            indexes,
            hashing: [Vec::new(), Vec::new()],
            keys: Vec::new(),
            lengths: Vec::new(),
            changes: 0,
            held: vec![0; settings.workers],
            found: vec![0; settings.workers],
            step,
        }
    }

    /// Asks for some requests, then lets the caches change as these say.
    fn batch(&mut self, batch: usize) {
        let requests = self.world.trace.requests();
        let here = &requests[batch * BATCH..requests.len().min((batch + 1) * BATCH)];
        let is_timed = batch * BATCH >= requests.len() / 2;
        if is_timed {
            here.iter().for_each(|request| self.ask(request));
        }
        let mut events = Vec::new();
        for request in here {
            let depths: Vec<usize> =
                (0..self.settings.workers).map(|worker| self.pool.depth(worker, request)).collect();
            let change = self.pool.route(request, |worker| depths[worker] as f64);
            events.push(Event::new(request, change));
        }
        if is_timed {
            let parts: usize =
                events.iter().map(|event| event.removed.len() + event.stored.len()).sum();
            self.changes += (parts * self.settings.per_part) as u64;
        }
        for (index, measured) in self.indexes.iter_mut().zip(&mut self.measured) {
            let before = MEMORY.current_usage() as i64;
            index.prepare(self.world, &events);
            let start = Instant::now();
            index.apply();
            if is_timed {
                measured.apply_ns += start.elapsed().as_nanos();
            }
            measured.bytes += MEMORY.current_usage() as i64 - before;
        }
    }

    fn ask(&mut self, request: &umbel_lab::chain::Request) {
        let query = Query::new(self.world, request);
        for (worker, held) in self.held.iter_mut().enumerate() {
            *held = (self.pool.depth(worker, request) * self.settings.per_part) as u32;
        }
        self.lengths.push(query.keys.len() as u32);
        for (times, chain) in self.hashing.iter_mut().zip([fold, kv::chain]) {
            let start = Instant::now();
            self.keys.clear();
            let mut before = None;
            self.keys.extend(query.contents.iter().map(|content| {
                let key = chain(before, *content);
                before = Some(key);
                key
            }));
            times.push(start.elapsed().as_nanos() as u32);
            std::hint::black_box(&self.keys);
        }
        for (index, measured) in self.indexes.iter_mut().zip(&mut self.measured) {
            index.load(&query);
            let start = Instant::now();
            index.find(&query);
            measured.ns.push(start.elapsed().as_nanos() as u32);
            let hashing = self.hashing[0].last().copied().unwrap_or(0);
            measured.hashed.extend(measured.ns.last().map(|ns| ns + hashing));
            index.depths(&mut self.found);
            measured.compare(&self.found, &self.held, self.step);
        }
    }

    fn print(&mut self) {
        let entries = (self.pool.held() * self.settings.per_part) as f64;
        self.lengths.sort_unstable();
        self.hashing.iter_mut().for_each(|times| times.sort_unstable());
        println!(
            "{} workers, {:.2} million blocks held, hit rate {:.4}, {} queries of {} blocks (p99 {})",
            self.settings.workers,
            entries / 1e6,
            self.pool.served().hit_rate(),
            self.lengths.len(),
            percentile(&self.lengths, 0.5),
            percentile(&self.lengths, 0.99),
        );
        let [fold, theirs] = &self.hashing;
        println!(
            "hashing a chain, p50: {:.0} ns by one multiplication a block, {:.0} ns as kv-index does",
            percentile(fold, 0.5),
            percentile(theirs, 0.5)
        );
        println!(
            "{:<20}{:>9}{:>9}{:>9}{:>8}{:>8}{:>10}{:>12}  depths too large: any, >8, >16; too small",
            "index", "p50 ns", "p90 ns", "p99 ns", "p50 /kv", "p99 /kv", "M/s", "bits/entry"
        );
        for measured in &mut self.measured {
            measured.ns.sort_unstable();
            measured.hashed.sort_unstable();
        }
        let rival = self.indexes.iter().position(|index| index.name() == "kv-index");
        let at = |measured: &Measured, share| percentile(&measured.ns, share);
        for (index, measured) in self.indexes.iter().zip(&self.measured) {
            let ratio = |share| {
                rival.map_or(f64::NAN, |rival| {
                    at(measured, share) / at(&self.measured[rival], share)
                })
            };
            let bytes = index.bytes().map_or(measured.bytes as f64, |bytes| bytes as f64);
            println!(
                "{:<20}{:>9.0}{:>9.0}{:>9.0}{:>8.2}{:>8.2}{:>10.2}{:>12.2}  {:?} of {}",
                index.name(),
                at(measured, 0.5),
                at(measured, 0.9),
                at(measured, 0.99),
                ratio(0.5),
                ratio(0.99),
                self.changes as f64 * 1e3 / measured.apply_ns as f64,
                bytes * 8.0 / entries,
                measured.wrong,
                measured.depths,
            );
        }
        let rival = rival.map_or(f64::NAN, |rival| at(&self.measured[rival], 0.5));
        for (index, measured) in self.indexes.iter().zip(&self.measured) {
            if index.name().starts_with(OURS) {
                let hashed = percentile(&measured.hashed, 0.5);
                println!(
                    "{} with hashing by one multiplication a block, p50: {hashed:.0} ns, {:.2} of kv-index",
                    index.name(),
                    hashed / rival
                );
            }
        }
    }
}
