//! A router with umbel's replicas in one process: what it costs to join, what it takes in memory,
//! and how long lookups take while block changes arrive:
//! `cargo run --release --manifest-path bench/compare-chain/Cargo.toml --bin router`.
//!
//! Workers and router are the engines that hosts run, connected in memory. The workers' caches are
//! filled by the first half of a trace; then the router restarts and fetches all filters. Lookups
//! of requests of the second half are timed in one thread, in turns without changes and while
//! another thread lets the workers' caches change at the given rate, publishes and applies
//! updates, in real time.
//!
//! `--trace FILE`, `--copies C`, `--workers W`, `--blocks N` (all caches together), `--rate R`
//! (block changes per second), `--seconds S` (of each turn).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use umbel::KeyHash;
use umbel::bank::Depths;
use umbel::design::chain::{ChainPromise, ChainSearch};
use umbel::replica::{Replicas, SetPlan};
use umbel_lab::chain::{Blocks, Mesh, Pool, Request, Trace, fold};

#[path = "../trace.rs"]
mod trace;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Blocks of a part.
const PER_PART: usize = 32;
/// Between two looks at the engines.
const TICK: Duration = Duration::from_millis(50);

struct Settings {
    workers: usize,
    blocks: usize,
    copies: u32,
    rate: usize,
    seconds: u64,
    trace: Option<String>,
}

fn settings() -> Settings {
    let mut settings = Settings {
        workers: 64,
        blocks: 10_000_000,
        copies: 4,
        rate: 100_000,
        seconds: 10,
        trace: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().expect("the option needs a value");
        let number = || value.parse::<usize>().expect("a number");
        match &*option {
            "--workers" => settings.workers = number(),
            "--blocks" => settings.blocks = number(),
            "--copies" => settings.copies = number() as u32,
            "--rate" => settings.rate = number(),
            "--seconds" => settings.seconds = number() as u64,
            "--trace" => settings.trace = Some(value),
            other => panic!("unknown option {other}"),
        }
    }
    settings
}

/// What one request changes in one worker's cache.
struct Change {
    worker: usize,
    removed: Vec<u64>,
    added: Vec<u64>,
}

/// Requests routed by exact knowledge.
struct World {
    trace: Trace,
    blocks: Blocks,
    pool: Pool,
    workers: usize,
}

impl World {
    fn route(&mut self, request: &Request) -> Change {
        let depths: Vec<usize> =
            (0..self.workers).map(|worker| self.pool.depth(worker, request)).collect();
        let change = self.pool.route(request, |worker| depths[worker] as f64);
        let keys = |parts: &[u32]| -> Vec<u64> {
            parts.iter().flat_map(|part| self.blocks.keys(&self.trace, *part)).collect()
        };
        let added = keys(&request.parts[change.held..]);
        Change { worker: change.worker, removed: keys(&change.removed), added }
    }

    fn chain(&self, mesh: &Mesh, request: &Request) -> Vec<KeyHash> {
        let keys = request.parts.iter().flat_map(|part| self.blocks.keys(&self.trace, *part));
        keys.map(|key| mesh.hash(key)).collect()
    }
}

fn main() {
    let settings = settings();
    let trace = settings.trace.as_deref().map_or_else(|| Trace::synthetic(12_031, 1), trace::read);
    let trace = if settings.copies > 1 { trace.times(settings.copies) } else { trace };
    let capacity = (settings.blocks / PER_PART / settings.workers).max(1);
    let mut world = World {
        blocks: Blocks::new(&trace, PER_PART, fold),
        pool: Pool::new(&trace, settings.workers, capacity, 1),
        trace: trace.clone(),
        workers: settings.workers,
    };
    let promise = ChainPromise::default();
    let plan = SetPlan {
        chains: Some(promise),
        capacity: Some((capacity * PER_PART) as u64),
        policy: "interval:1s".parse().expect("a policy"),
        ..SetPlan::default()
    };
    let mut mesh = Mesh::new(settings.workers, plan, 0.0, 1).expect("the promise can be kept");
    let requests = trace.requests();
    let (first, second) = requests.split_at(requests.len() / 2);
    let mut now = Duration::ZERO;
    for request in first {
        let change = world.route(request);
        mesh.change(change.worker, &change.removed, &change.added);
        now = Duration::from_secs_f64(request.at / 1000.0);
        mesh.advance(now);
    }
    now += Duration::from_secs(3);
    mesh.advance(now);
    let entries = world.pool.held() * PER_PART;
    println!("{} workers hold {:.2} million blocks", settings.workers, entries as f64 / 1e6);
    now = join(&mut mesh, now, entries);
    let changes: Vec<Change> = second.iter().map(|request| world.route(request)).collect();
    let chains: Vec<Vec<KeyHash>> =
        second.iter().step_by(5).map(|request| world.chain(&mesh, request)).collect();
    let how = promise.design().expect("the default can be kept").search();
    busy(&settings, mesh, now, &changes, &chains, how);
}

/// A router that knows nothing fetches all filters.
fn join(mesh: &mut Mesh, mut now: Duration, entries: usize) -> Duration {
    mesh.restart_router();
    let (bytes, memory) = (mesh.bytes(), MEMORY.current_usage());
    let (start, real) = (now, Instant::now());
    while !mesh.is_current() {
        now += TICK;
        mesh.advance(now);
        assert!(now - start < Duration::from_secs(60), "the router is not current after a minute");
    }
    let (seconds, real) = ((now - start).as_secs_f64(), real.elapsed().as_secs_f64());
    let bytes = mesh.bytes() - bytes;
    // What is on its way arrives and is freed.
    now += Duration::from_secs(2);
    mesh.advance(now);
    let taken = MEMORY.current_usage() as f64 - memory as f64;
    let replicas = mesh.replicas().expect("the router knows the set").memory_bytes();
    println!(
        "a new router is current after {seconds:.2} s (simulated; {real:.2} s of computing for all hosts) and {:.2} MB",
        bytes as f64 / 1e6
    );
    println!(
        "memory of the router: {:.2} bits an entry in all, {:.2} of them filters and rows",
        taken * 8.0 / entries as f64,
        replicas as f64 * 8.0 / entries as f64
    );
    now
}

/// Times lookups in turns with and without changes.
fn busy(
    settings: &Settings,
    mut mesh: Mesh,
    mut now: Duration,
    changes: &[Change],
    chains: &[Vec<KeyHash>],
    how: ChainSearch,
) {
    let replicas = mesh.replicas().expect("the router knows the set");
    let mut left = changes.iter();
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..6 {
        let is_busy = turn % 2 == 1;
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let asking = threads.spawn(|| ask(&replicas, chains, how, &done));
            let (start, mut made) = (Instant::now(), 0);
            for tick in 0..settings.seconds * 20 {
                let due = (tick as usize + 1) * settings.rate / 20;
                while is_busy && made < due {
                    let change = left.next().expect("the trace has changes enough");
                    mesh.change(change.worker, &change.removed, &change.added);
                    made += change.removed.len() + change.added.len();
                }
                if is_busy {
                    now += TICK;
                    mesh.advance(now);
                }
                let next = TICK * (tick as u32 + 1);
                std::thread::sleep(next.saturating_sub(start.elapsed()));
            }
            let seconds = start.elapsed().as_secs_f64();
            done.store(true, Ordering::Relaxed);
            let asked = asking.join().expect("the thread ends");
            if is_busy {
                println!("{:.0} changes a second", made as f64 / seconds);
            }
            times[usize::from(is_busy)].extend(asked);
        });
    }
    let [idle, busy] = &mut times;
    idle.sort_unstable();
    busy.sort_unstable();
    for share in [0.5, 0.9, 0.99, 0.999] {
        let at = |times: &[u32]| f64::from(times[(times.len() as f64 * share) as usize]);
        println!(
            "p{:<5} idle {:>7.0} ns, busy {:>7.0} ns: {:.2} times",
            share * 100.0,
            at(idle),
            at(busy),
            at(busy) / at(idle)
        );
    }
}

fn ask(
    replicas: &Replicas,
    chains: &[Vec<KeyHash>],
    how: ChainSearch,
    done: &AtomicBool,
) -> Vec<u32> {
    let (mut found, mut times) = (Depths::new(), Vec::new());
    for chain in chains.iter().cycle() {
        if done.load(Ordering::Relaxed) {
            return times;
        }
        let (start, mut deepest) = (Instant::now(), 0);
        replicas.chain(chain, how, &mut found, |_, _, depth| deepest = deepest.max(depth));
        times.push(start.elapsed().as_nanos() as u32);
        std::hint::black_box(deepest);
    }
    times
}
