//! How long does a bank take to say who, and to take an update?
//!
//! `cargo bench -p umbel --bench bank`; rivals and the physical limit are in `bench/compare`.

#![allow(missing_docs, reason = "a bench has no documentation to read")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use umbel::bank::{Bank, BatchCandidates, Candidates, ColumnId};
use umbel::codec::Flips;
use umbel::{KeyHash, KeyHasher, Shape, StandardFilter};

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

criterion_group!(benches, who, update);
criterion_main!(benches);
