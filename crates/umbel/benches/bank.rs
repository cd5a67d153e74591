//! How long does a bank take to say who, and to take an update?
//!
//! `cargo bench -p umbel --bench bank`; rivals and the physical limit are in `bench/compare`.

#![allow(missing_docs, reason = "a bench has no documentation to read")]

use std::cell::LazyCell;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use umbel::bank::{Bank, BatchCandidates, Candidates, ColumnId};
use umbel::codec::Flips;
use umbel::design::ladder::Ladder;
use umbel::{KeyHash, KeyHasher, Rate, Shape, StandardFilter};

/// Filters of 2^18 bits, seven hashes, a tenth as many keys.
fn filters(count: u64) -> Vec<StandardFilter> {
    let shape = Shape::new(1 << 18, 7).expect("in range");
    let filter = |host: u64| {
        let mut filter = StandardFilter::with_shape(shape).expect("there is memory");
        for key in 0..26_000u64 {
            filter.insert((host << 32 | key).to_le_bytes());
        }
        filter
    };
    (0..count).map(filter).collect()
}

fn bank_of(filters: &[StandardFilter]) -> (Bank, Vec<ColumnId>) {
    let mut bank = Bank::new(KeyHasher::default());
    let columns: Vec<_> = filters.iter().map(StandardFilter::bits).collect();
    let ids = bank.add_many(filters[0].scheme(), &columns).expect("there is memory");
    (bank, ids)
}

fn who(c: &mut Criterion) {
    let mut group = c.benchmark_group("who");
    for hosts in [16, 128, 512] {
        let filters = filters(hosts);
        let (bank, ids) = bank_of(&filters);
        let absent: Vec<KeyHash> =
            (1 << 60..(1 << 60) + 10_000u64).map(|key| bank.hash(&key.to_le_bytes())).collect();
        let mut batch = BatchCandidates::new();
        bank.who_batch(&[bank.hash(&(3u64 << 32).to_le_bytes())], &mut batch);
        assert!(batch.of(0).contains(&ids[3]), "the holder is named");
        group.throughput(Throughput::Elements(absent.len() as u64));
        group.bench_function(BenchmarkId::new("ids", hosts), |b| {
            b.iter(|| bank.who_batch(&absent, &mut batch));
        });
        let mut candidates = Candidates::new();
        group.bench_function(BenchmarkId::new("bitmap", hosts), |b| {
            b.iter(|| absent.iter().for_each(|hash| bank.who(*hash, &mut candidates)));
        });
    }
    group.finish();
}

fn update(c: &mut Criterion) {
    let mut group = c.benchmark_group("update");
    let filters = filters(512);
    let (mut bank, ids) = bank_of(&filters);
    let (old, new) = (filters[7].bits(), filters[8].bits());
    let flips = Flips::between(old, new);
    let some = Flips { sets: flips.sets[..2600].to_vec(), clears: Vec::new() };
    let undo = Flips { sets: Vec::new(), clears: some.sets.clone() };
    group.bench_function("1 % delta, there and back", |b| {
        b.iter(|| {
            bank.apply(ids[7], &some).expect("a column");
            bank.apply(ids[7], &undo).expect("a column");
        });
    });
    assert_eq!(bank.bits(ids[7]).expect("a column"), old);
    let block: Vec<_> = ids[64..128]
        .iter()
        .copied()
        .zip(filters[64..128].iter().map(StandardFilter::bits))
        .collect();
    group.bench_function("64 columns replaced", |b| {
        b.iter(|| bank.replace_many(&block).expect("columns"));
    });
    group.finish();
}

/// A number from a seed that goes on.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Homes of so many keys each, on their rungs.
fn homes(keys: &[u64], state: &mut u64) -> Bank {
    let ladder = Ladder::new(Rate::new(0.01).expect("a rate"));
    let (mut bank, hosts) = (Bank::new(KeyHasher::default()), keys.len() as u32);
    for keys in keys {
        let rung = ladder.rung_for(*keys, hosts).expect("a rung");
        let shape = ladder.shape(rung);
        let mut filter = StandardFilter::with_shape(shape).expect("there is memory");
        for _ in 0..*keys {
            filter.insert_digest(KeyHash::from_raw(next(state)).digest(shape.digest_bits()));
        }
        bank.add(filter.scheme(), filter.bits()).expect("memory");
    }
    bank
}

/// Homes of 10^2 to 10^6 keys, and as many of equal size: what the differences cost.
///
/// A million keys, none of which is asked twice in a round: the few lines of some thousand keys
/// would stay in the cache, and the processor would learn at which row each of them ends.
fn unequal(c: &mut Criterion) {
    let mut group = c.benchmark_group("who of unequal homes");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for count in [8usize, 32, 50, 100, 1000] {
        let mut state = count as u64;
        let uniform = |state: &mut u64| (next(state) >> 11) as f64 / (1u64 << 53) as f64;
        // A thousand homes of 10^6 keys would take gigabytes.
        let max = if count > 100 { 5.0 } else { 6.0 };
        let keys: Vec<u64> = (0..count)
            .map(|_| 10f64.powf(2.0 + (max - 2.0) * uniform(&mut state)) as u64)
            .collect();
        let mean = keys.iter().sum::<u64>() / count as u64;
        for (name, keys) in [("equal", vec![mean; count]), ("10^2 to 10^6", keys)] {
            // Built only if this line was asked for.
            let built = LazyCell::new(|| {
                let bank = homes(&keys, &mut state);
                println!("{count} homes, {name}: {bank:?}");
                let absent: Vec<KeyHash> =
                    (0..1_000_000).map(|_| KeyHash::from_raw(next(&mut state))).collect();
                (bank, absent)
            });
            group.throughput(Throughput::Elements(1_000_000));
            group.bench_function(BenchmarkId::new(name, count), |b| {
                let (bank, absent) = &*built;
                let mut batch = BatchCandidates::new();
                b.iter(|| bank.who_batch(absent, &mut batch));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, who, update, unequal);
criterion_main!(benches);
