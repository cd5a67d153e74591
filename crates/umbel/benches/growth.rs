//! What becomes of time as things grow: tables with a row for each size, to see that twice as much
//! takes twice as long, and that no single change takes long: of a thousand changes at a time, the
//! longest are shown.
//!
//! Times of changes are of the processor where the system tells them (Linux), so that they can be
//! compared on a machine that does other things, too. It may count them in steps of some milliseconds.
//! Lookups are timed in short rounds, of which the best is shown.
//!
//! `cargo bench -p umbel --bench growth`, or with the names of some tables:
//! `cargo bench -p umbel --bench growth -- elastic bank shapes rungs unequal catalogue prefix remove`.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use umbel::bank::{Bank, BatchCandidates, Candidates};
use umbel::catalogue::{Catalogue, MemoryCatalogue};
use umbel::design::ladder::{Ladder, Rung};
use umbel::elastic::ElasticFilter;
use umbel::filter::{ComponentId, DynamicFilter};
use umbel::prefix::{Ipv4Prefix, Prefix as _, Table};
use umbel::{KeyHash, KeyHasher, Rate, Shape, StandardFilter};

/// A table: its name, and what prints it up to a size that is divided by this.
type Print = fn(usize);

const TABLES: [(&str, Print); 8] = [
    ("elastic", elastic),
    ("bank", bank),
    ("shapes", shapes),
    ("rungs", rungs),
    ("unequal", unequal),
    ("catalogue", catalogue),
    ("prefix", prefix),
    ("remove", remove),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Tests of all benches run without this word: only to see that they run.
    let divided = if words.iter().any(|word| word == "--bench") { 1 } else { 1000 };
    let is_named = |name: &str| words.iter().any(|word| word == name);
    let all = !TABLES.iter().any(|(name, _)| is_named(name));
    for (name, print) in TABLES {
        if all || is_named(name) {
            print(divided);
        }
    }
}

/// Rows of a table, from a header and the cells of each size.
fn table(title: &str, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    println!("\n{title}");
    let line = |cells: &mut dyn Iterator<Item = String>| {
        println!("{}", cells.map(|cell| format!("{cell:>22}")).collect::<String>());
    };
    line(&mut header.iter().map(|word| (*word).to_owned()));
    for row in rows {
        line(&mut row.into_iter());
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

fn each(time: Duration, count: usize) -> String {
    format!("{:.0} ns", time.as_nanos() as f64 / count.max(1) as f64)
}

fn rate(rate: f64) -> Rate {
    Rate::new(rate).expect("a rate")
}

/// A moment, in time that this thread had a processor.
fn now() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let on_processor = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        stat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    on_processor().unwrap_or_else(|| START.elapsed())
}

/// Changes that are timed together.
const TOGETHER: usize = 1000;

/// Makes so many changes; what all of them took, and the longest [`TOGETHER`].
fn timed(count: usize, mut change: impl FnMut()) -> (Duration, Duration) {
    let (start, mut longest) = (now(), Duration::ZERO);
    let mut done = 0;
    while done < count {
        let before = now();
        let together = TOGETHER.min(count - done);
        (0..together).for_each(|_| change());
        longest = longest.max(now() - before);
        done += together;
    }
    (now() - start, longest)
}

/// A number from a seed that goes on.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Keys added to an elastic filter whose limits are closer than a factor of two.
fn elastic(divided: usize) {
    let rows = [16_000, 32_000, 64_000, 128_000, 256_000].into_iter().map(|keys: usize| {
        let keys = keys / divided;
        let catalogue = MemoryCatalogue::new();
        let mut filter =
            ElasticFilter::new(1000, rate(0.01), rate(0.015), catalogue).expect("a plan");
        let mut key = 0u64;
        let (time, _) = timed(keys, || {
            filter.add(&key.to_le_bytes()).expect("memory");
            key += 1;
        });
        vec![keys.to_string(), seconds(time), each(time, keys), filter.rebuilds().to_string()]
    });
    table("elastic: 1 % to 1.5 %", &["keys", "time", "per key", "rebuilds"], rows);
}

/// Columns of 64 bits added to a bank one by one.
fn bank(divided: usize) {
    let shape = Shape::new(64, 3).expect("in range");
    let filter = StandardFilter::with_shape(shape).expect("memory");
    let rows =
        [25_000, 50_000, 100_000, 200_000, 400_000, 800_000].into_iter().map(|columns: usize| {
            let columns = columns / divided;
            let mut bank: Bank = Bank::new(KeyHasher::default());
            let (time, longest) = timed(columns, || {
                bank.add(filter.scheme(), filter.bits()).expect("memory");
            });
            vec![columns.to_string(), seconds(time), each(time, columns), seconds(longest)]
        });
    table("bank: columns added", &["columns", "time", "per column", "longest 1000"], rows);
}

/// Lookups in banks of so many shapes, of one column each: one by one and in a batch. Lengths that
/// are not rungs of a ladder have no rows in common: every column is asked by itself.
fn shapes(divided: usize) {
    let rows = [1, 10, 100, 1000].into_iter().map(|shapes: u64| {
        let mut bank: Bank = Bank::new(KeyHasher::default());
        for column in 0..shapes {
            let shape = Shape::new(10_000 + column, 7).expect("in range");
            add_filled(&mut bank, shape, 1000, column);
        }
        let count = (100_000 / shapes as usize / divided).clamp(1, 5_000);
        let (alone, together) = asked(&bank, count);
        let ratio = together.as_secs_f64() / alone.as_secs_f64();
        vec![shapes.to_string(), each(alone, count), each(together, count), format!("{ratio:.2}")]
    });
    table("bank: who over several shapes", &["shapes", "who", "who_batch", "ratio"], rows);
}

/// Lookups in banks whose columns stand on so many rungs of a ladder, as many on each.
fn rungs(divided: usize) {
    let sizes = [10, 100, 1000].into_iter().flat_map(|columns| [1, 4, 10].map(|r| (columns, r)));
    let rows = sizes.map(|(columns, rungs): (u64, u64)| {
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let ladder = Ladder::new(rate(0.01));
        for column in 0..columns {
            let rung = Rung::new((19 - column % rungs) as u32).expect("a rung");
            let keys = ladder.takes(rung, columns as u32) / divided as u64;
            add_filled(&mut bank, ladder.shape(rung), keys, column);
        }
        let count = 5_000 / divided;
        let (alone, together) = asked(&bank, count);
        let cells = [columns, rungs, bank.groups() as u64].map(|number| number.to_string());
        cells.into_iter().chain([each(alone, count), each(together, count)]).collect()
    });
    let header = ["columns", "rungs", "groups", "who", "who_batch"];
    table("bank: who over nested rungs", &header, rows);
}

/// Lookups in banks of homes of 10^2 to 10^6 keys, and in banks of as many equal homes.
fn unequal(divided: usize) {
    let sizes = [8, 32, 50, 100, 1000].into_iter().flat_map(|homes| {
        // Sizes are drawn anew in each row. A thousand homes take long to fill.
        (0..if homes > 100 { 1 } else { 4 }).map(move |row| (homes, row))
    });
    let rows = sizes.map(|(homes, row): (usize, u64)| {
        let mut state = homes as u64 | row << 32;
        // A thousand homes of 10^6 keys would take gigabytes.
        let max: f64 = if homes > 100 { 5.0 } else { 6.0 };
        let mut draw = || {
            let uniform = (next(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
            10f64.powf((max - 2.0).mul_add(uniform, 2.0)) as u64 / divided as u64
        };
        let (before, keys): (Vec<u64>, Vec<u64>) = (0..homes).map(|_| (draw(), draw())).unzip();
        let mean = keys.iter().sum::<u64>() / homes as u64;
        let equal = homes_of(&vec![mean; homes], &vec![mean; homes]);
        let unequal = homes_of(&before, &keys);
        let count = 5_000 / divided;
        let (mut one, mut other) = (BatchCandidates::new(), BatchCandidates::new());
        let mut ask_equal = |hashes: &[KeyHash]| equal.who_batch(hashes, black_box(&mut one));
        let mut ask_unequal = |hashes: &[KeyHash]| unequal.who_batch(hashes, black_box(&mut other));
        let [equals, others] = in_turns(count, [&mut ask_equal, &mut ask_unequal]);
        let ratio = others.as_secs_f64() / equals.as_secs_f64();
        let filters: u64 = keys.iter().map(|keys| shape_for(*keys, homes).bits() / 8).sum();
        let memory = unequal.memory_bytes() as f64 / filters as f64;
        let numbers = [homes, unequal.groups()].map(|number| number.to_string());
        let figures = [format!("{memory:.2}"), each(equals, count), each(others, count)];
        numbers.into_iter().chain(figures).chain([format!("{ratio:.2}")]).collect()
    });
    let header = ["homes", "groups", "memory", "equal", "10^2 to 10^6", "ratio"];
    table("bank: who_batch over homes of unequal sizes", &header, rows);
}

/// The shape for so many keys in a bank of so many homes.
fn shape_for(keys: u64, homes: usize) -> Shape {
    let ladder = Ladder::new(rate(0.01));
    ladder.shape(ladder.rung_for(keys, homes as u32).expect("a rung"))
}

/// A bank of homes that had so many keys before, and have so many now.
fn homes_of(before: &[u64], keys: &[u64]) -> Bank {
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let empty = |bank: &mut Bank, keys: &u64| {
        let filter = StandardFilter::with_shape(shape_for(*keys, before.len())).expect("memory");
        bank.add(filter.scheme(), filter.bits()).expect("memory")
    };
    let ids: Vec<_> = before.iter().map(|keys| empty(&mut bank, keys)).collect();
    for ((seed, keys), id) in (0..).zip(keys).zip(ids) {
        add_filled(&mut bank, shape_for(*keys, before.len()), *keys, seed);
        bank.remove(id).expect("a column");
    }
    bank
}

/// Adds a column of so many keys.
fn add_filled(bank: &mut Bank, shape: Shape, keys: u64, seed: u64) {
    let (mut filter, mut state) =
        (StandardFilter::with_shape(shape).expect("memory"), (seed + 1) << 32);
    for _ in 0..keys {
        filter.insert_digest(KeyHash::from_raw(next(&mut state)).digest(shape.digest_bits()));
    }
    bank.add(filter.scheme(), filter.bits()).expect("memory");
}

/// What asking a bank for so many absent keys takes, one by one and in a batch.
fn asked(bank: &Bank, count: usize) -> (Duration, Duration) {
    let (mut one, mut batch) = (Candidates::new(), BatchCandidates::new());
    let mut alone =
        |hashes: &[KeyHash]| hashes.iter().for_each(|hash| bank.who(*hash, black_box(&mut one)));
    let mut together = |hashes: &[KeyHash]| bank.who_batch(hashes, black_box(&mut batch));
    let [alone, together] = in_turns(count, [&mut alone, &mut together]);
    (alone, together)
}

/// A way to ask for keys.
type Ask<'a> = &'a mut dyn FnMut(&[KeyHash]);

/// What asking for so many absent keys takes, in several ways in turns: the best of some rounds.
/// Rounds are short, so that some of them are not interrupted, whatever else the machine does.
fn in_turns<const N: usize>(count: usize, mut ways: [Ask<'_>; N]) -> [Duration; N] {
    const ROUNDS: u64 = 301;
    let mut best = [Duration::MAX; N];
    for round in 0..ROUNDS {
        // Other keys in every round: the processor would learn at which row each of them ends.
        let mut state = round << 32;
        let hashes: Vec<_> = (0..count).map(|_| KeyHash::from_raw(next(&mut state))).collect();
        for (way, best) in ways.iter_mut().zip(&mut best) {
            let start = Instant::now();
            way(&hashes);
            *best = start.elapsed().min(*best);
        }
    }
    best
}

/// Keys added to a catalogue in memory.
fn catalogue(divided: usize) {
    let rows = [1_000_000, 2_000_000, 4_000_000, 8_000_000].into_iter().map(|keys: usize| {
        let keys = keys / divided;
        let mut catalogue = MemoryCatalogue::new();
        grown(keys, |state| {
            catalogue.insert(&next(state).to_le_bytes(), ComponentId(0));
        })
    });
    table("catalogue in memory", &["keys", "time", "per key", "longest 1000"], rows);
}

/// Prefixes added to a table of addresses.
fn prefix(divided: usize) {
    let rows = [500_000, 1_000_000, 2_000_000, 4_000_000].into_iter().map(|prefixes: usize| {
        let prefixes = prefixes / divided;
        let mut table: Table<Ipv4Prefix, u32> = Table::new();
        grown(prefixes, |state| {
            let random = next(state);
            let address = std::net::Ipv4Addr::from(random as u32);
            table.insert(Ipv4Prefix::of(&address, 20 + (random >> 32) as u8 % 9), 7);
        })
    });
    table("prefix table", &["changes", "time", "per change", "longest 1000"], rows);
}

/// A row of so many changes.
fn grown(count: usize, mut change: impl FnMut(&mut u64)) -> Vec<String> {
    let mut state = 1;
    let (time, longest) = timed(count, || change(&mut state));
    vec![count.to_string(), seconds(time), each(time, count), seconds(longest)]
}

/// Half of the keys removed from a dynamic filter whose components hold a thousand each.
fn remove(divided: usize) {
    let rows = [250_000, 500_000, 1_000_000, 2_000_000].into_iter().map(|keys: usize| {
        let keys = keys / divided;
        let mut filter = DynamicFilter::for_target(1000, 1e-6).expect("memory");
        (0..keys as u64).for_each(|key| _ = filter.insert(key.to_le_bytes()));
        let components = filter.components().len();
        let start = now();
        for key in (0..keys as u64).step_by(2) {
            let _ = black_box(filter.remove(key.to_le_bytes()));
        }
        let removed = now() - start;
        let start = now();
        filter.shrink();
        let shrunk = now() - start;
        let left = filter.components().len();
        vec![
            keys.to_string(),
            format!("{components} to {left}"),
            seconds(removed),
            each(removed, keys / 2),
            seconds(shrunk),
        ]
    });
    table(
        "dynamic filter: half of the keys removed, then merged",
        &["keys", "components", "removed in", "per key", "merged in"],
        rows,
    );
}
