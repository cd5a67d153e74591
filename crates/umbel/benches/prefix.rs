//! How long does a longest-prefix match take, in batches, alone and without AVX2, and a change?
//!
//! `cargo bench -p umbel --bench prefix`; rivals and a real table are in `bench/compare`.

#![allow(missing_docs, reason = "a bench has no documentation to read")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use umbel::prefix::{Ipv4Prefix, Ipv6Prefix, Name, Prefix, Table};

/// Well-mixed numbers, always the same.
fn random(index: u64) -> u128 {
    let mix = |number: u64| {
        let mixed = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    };
    let start = index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u128::from(mix(start)) << 64 | u128::from(mix(!start))
}

/// Prefixes whose lengths are spread like those of routing tables: most have the longest.
fn table<P: Prefix>(count: u64, lengths: &[u8], of: impl Fn(u128, u8) -> P) -> Table<P, u16> {
    let length =
        |index: u64| lengths[(index % (2 * lengths.len() as u64)) as usize % lengths.len()];
    (0..count)
        .map(|index| {
            let length = if index % 2 == 0 { lengths[lengths.len() - 1] } else { length(index) };
            (of(random(index), length), index as u16)
        })
        .collect()
}

fn measure<P: Prefix>(c: &mut Criterion, name: &str, table: &Table<P, u16>)
where
    P::Address: Clone,
{
    let mut group = c.benchmark_group(name);
    let prefixes: Vec<P> = table.iter().map(|(prefix, _)| prefix).collect();
    let addresses: Vec<P::Address> = (0..10_000u64)
        .map(|index| {
            let prefix = &prefixes[(random(index) % prefixes.len() as u128) as usize];
            prefix.within(random(!index))
        })
        .collect();
    assert!(addresses.iter().all(|address| table.lookup(address).is_some()), "all match");
    group.throughput(Throughput::Elements(addresses.len() as u64));
    group.bench_function("batched", |b| {
        b.iter(|| {
            let mut sum = 0u64;
            table.lookup_each(&addresses, |found| sum += found.map_or(0, |f| (*f.value).into()));
            sum
        });
    });
    group.bench_function("single", |b| {
        b.iter(|| addresses.iter().filter(|address| table.lookup(address).is_some()).count());
    });
    group.finish();
}

fn lookups(c: &mut Criterion) {
    let ipv4 = |bits: u128, length| Ipv4Prefix::of(&((bits >> 96) as u32).into(), length);
    let ipv6 = |bits: u128, length| Ipv6Prefix::of(&(bits >> 3 | 1 << 125).into(), length);
    let few = table(100_000, &[16, 19, 20, 21, 22, 23, 24], ipv4);
    measure(c, "IPv4", &few);
    let many = table(100_000, &[29, 32, 33, 36, 40, 44, 46, 48], ipv6);
    measure(c, "IPv6", &many);
    measure(c, "IPv6 without AVX2", &many.clone().without_simd());
    let name = |bits: u128, length: u8| {
        let parts = (0..length).map(|part| format!("/{:x}", bits >> (part * 12) & 0xFFF));
        parts.collect::<String>().parse::<Name>().expect("a name")
    };
    measure(c, "names", &table(20_000, &[1, 2, 3, 4], name));
}

fn changes(c: &mut Criterion) {
    let ipv6 = |bits: u128, length| Ipv6Prefix::of(&(bits >> 3 | 1 << 125).into(), length);
    let mut table = table(100_000, &[29, 32, 33, 36, 40, 44, 46, 48], ipv6);
    let changed: Vec<(Ipv6Prefix, u16)> =
        table.iter().step_by(10).map(|(prefix, value)| (prefix, *value)).collect();
    let mut group = c.benchmark_group("changes");
    group.throughput(Throughput::Elements(2 * changed.len() as u64));
    group.bench_function("removed and inserted again", |b| {
        b.iter_batched(
            || (),
            |()| {
                changed.iter().for_each(|(prefix, _)| {
                    black_box(table.remove(prefix));
                });
                changed.iter().for_each(|(prefix, value)| {
                    black_box(table.insert(*prefix, *value));
                });
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
    table.validate();
}

criterion_group!(benches, lookups, changes);
criterion_main!(benches);
