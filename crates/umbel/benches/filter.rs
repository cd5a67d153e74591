//! How long do filters take to add, ask and remove: present and absent keys, in the cache
//! and out of it, one by one and in batches?
//!
//! `cargo bench -p umbel --bench filter`; rivals are in `bench/compare`.

#![allow(missing_docs, reason = "a bench has no documentation to read")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use umbel::{CountingFilter, Digest, DynamicFilter, StandardFilter};

/// Digests that no two keys share: one odd step through the whole space.
fn digests(filter: &StandardFilter, first: u64, count: u64) -> Vec<Digest> {
    (first..first + count).map(|key| filter.scheme().digest(&key.to_le_bytes())).collect()
}

fn standard(c: &mut Criterion) {
    let mut group = c.benchmark_group("standard");
    for items in [100_000u64, 4_000_000] {
        let mut filter = StandardFilter::for_target(items, 0.01).expect("there is memory");
        let all = digests(&filter, 0, items);
        filter.insert_digests(&all);
        let present = &all[..50_000];
        let absent = digests(&filter, 1 << 40, 50_000);
        assert!(present.iter().all(|digest| filter.contains_digest(*digest)));
        let wrong = absent.iter().filter(|digest| filter.contains_digest(**digest)).count();
        assert!((300..700).contains(&wrong), "{wrong}");
        group.throughput(Throughput::Elements(50_000));
        for (name, asked) in [("present", present), ("absent", &absent)] {
            group.bench_function(BenchmarkId::new(name, items), |b| {
                b.iter(|| asked.iter().filter(|digest| filter.contains_digest(**digest)).count());
            });
            let mut answers = Vec::new();
            group.bench_function(BenchmarkId::new(format!("{name} batch"), items), |b| {
                b.iter(|| filter.contains_digests(black_box(asked), &mut answers));
            });
        }
        group.bench_function(BenchmarkId::new("add", items), |b| {
            b.iter(|| present.iter().filter(|digest| filter.insert_digest(**digest)).count());
        });
    }
    group.finish();
}

fn counting(c: &mut Criterion) {
    let mut group = c.benchmark_group("counting");
    let mut filter = CountingFilter::for_target(100_000, 0.01).expect("there is memory");
    let all = digests(&filter.to_standard(), 0, 100_000);
    filter.insert_digests(&all);
    let some = &all[..20_000];
    group.throughput(Throughput::Elements(some.len() as u64));
    group.bench_function("remove and add", |b| {
        b.iter(|| {
            for digest in some {
                assert!(filter.remove_digest(*digest).is_some());
            }
            for digest in some {
                filter.insert_digest(*digest);
            }
        });
    });
    group.finish();
}

/// Where asking all components at once begins to pay.
fn dynamic(c: &mut Criterion) {
    let mut group = c.benchmark_group("dynamic absent");
    for components in [1u64, 2, 4, 8, 16] {
        let mut filter = DynamicFilter::for_target(10_000, 0.01).expect("there is memory");
        for key in 0..10_000 * components {
            filter.insert(key.to_le_bytes());
        }
        assert_eq!(filter.components().len() as u64, components);
        let absent: Vec<Digest> = (1 << 40..(1 << 40) + 20_000u64)
            .map(|key| filter.scheme().digest(&key.to_le_bytes()))
            .collect();
        group.throughput(Throughput::Elements(absent.len() as u64));
        group.bench_function(BenchmarkId::new("at once", components), |b| {
            b.iter(|| absent.iter().filter(|digest| filter.contains_digest(**digest)).count());
        });
        group.bench_function(BenchmarkId::new("one by one", components), |b| {
            b.iter(|| absent.iter().filter(|d| filter.contains_digest_listed(**d)).count());
        });
    }
    group.finish();
}

criterion_group!(benches, standard, counting, dynamic);
criterion_main!(benches);
