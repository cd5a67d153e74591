//! How fast do filters and deltas turn into bytes and back?
//!
//! Throughput is bytes of *filter* a second, since that is what a home or host has to keep
//! fresh. Decoding counts all that a receiver does: checksums of frame, base and result, and
//! the new filter's memory. Each bench checks its answer before it is timed.
//!
//! `cargo bench -p umbel --bench codec`; in test mode (`cargo test --benches`) once each.

#![allow(missing_docs, reason = "a bench has no documentation to read")]

#[path = "../tests/random/mod.rs"]
mod random;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use umbel::codec::{AnyFilter, Decoder, encode, encode_delta};
use umbel::{CountingFilter, Digest, DigestBits, Shape, StandardFilter};

use random::Random;

/// With one hash and as many digest bits as positions, a digest is its position: bits can
/// be set at will.
fn bitwise(log_bits: u32) -> Shape {
    let digest_bits = DigestBits::new(log_bits).expect("in range");
    Shape::new(1 << log_bits, 1).expect("in range").with_digest_bits(digest_bits)
}

fn of_bits(log_bits: u32, mut bit: impl FnMut(u64) -> bool) -> StandardFilter {
    let shape = bitwise(log_bits);
    let mut filter = StandardFilter::with_shape(shape).expect("there is memory");
    for position in (0..shape.bits()).filter(|position| bit(*position)) {
        filter.insert_digest(Digest::from_raw(position, shape.digest_bits()).expect("in range"));
    }
    filter
}

fn filled(log_bits: u32, fill: f64) -> StandardFilter {
    let mut random = Random(u64::from(log_bits));
    of_bits(log_bits, |_| random.chance(fill))
}

/// `old` with this share of its bits flipped.
fn changed(log_bits: u32, old: &StandardFilter, share: f64) -> StandardFilter {
    let mut random = Random(!u64::from(log_bits));
    of_bits(log_bits, |position| (old.bits().get(position) == 1) != random.chance(share))
}

fn deltas(criterion: &mut Criterion) {
    for log_bits in [20, 24] {
        let old = filled(log_bits, 0.5);
        let new = changed(log_bits, &old, 0.01);
        let delta = encode_delta(&old, &new, &[]).expect("one scheme");
        let (base, expected) = (AnyFilter::from(old.clone()), AnyFilter::from(new.clone()));
        assert_eq!(Decoder::new().apply(&base, &delta).expect("a sound delta"), expected);

        let mut group = criterion.benchmark_group(format!("delta 1%/2^{log_bits}"));
        group.throughput(Throughput::Bytes(1 << (log_bits - 3)));
        group.bench_function("encode", |bencher| {
            bencher.iter(|| encode_delta(black_box(&old), black_box(&new), &[]));
        });
        group.bench_function("apply", |bencher| {
            bencher.iter(|| Decoder::new().apply(black_box(&base), black_box(&delta)));
        });
        group.finish();
    }
}

fn digests(criterion: &mut Criterion) {
    let mut old = StandardFilter::for_target(1_000_000, 0.001).expect("in range");
    let keys: Vec<[u8; 8]> = (0..1_001_000u64).map(u64::to_le_bytes).collect();
    old.insert_batch(&keys[..1_000_000]);
    let added: Vec<Digest> = keys[1_000_000..].iter().map(|key| old.scheme().digest(key)).collect();
    let mut new = old.clone();
    new.insert_digests(&added);
    let delta = encode_delta(&old, &new, &added).expect("one scheme");
    let by_bits = encode_delta(&old, &new, &[]).expect("one scheme");
    assert!(delta.len() < by_bits.len(), "digests are shorter");
    let (base, expected) = (AnyFilter::from(old.clone()), AnyFilter::from(new.clone()));
    assert_eq!(Decoder::new().apply(&base, &delta).expect("a sound delta"), expected);

    let mut group = criterion.benchmark_group("delta by digests/10^6 keys + 0.1%");
    group.throughput(Throughput::Bytes(old.scheme().shape().bits() / 8));
    group.bench_function("encode", |bencher| {
        bencher.iter(|| encode_delta(black_box(&old), black_box(&new), black_box(&added)));
    });
    group.bench_function("apply", |bencher| {
        bencher.iter(|| Decoder::new().apply(black_box(&base), black_box(&delta)));
    });
    group.finish();
}

fn snapshots(criterion: &mut Criterion) {
    for fill in [0.05, 0.3, 0.5] {
        let filter = filled(22, fill);
        let bytes = encode(&filter);
        let decoded = Decoder::new().filter(&bytes).expect("a sound filter");
        assert_eq!(decoded, AnyFilter::from(filter.clone()));

        let mut group = criterion.benchmark_group(format!("snapshot/2^22 fill {fill}"));
        group.throughput(Throughput::Bytes(1 << 19));
        group.bench_function("encode", |bencher| bencher.iter(|| encode(black_box(&filter))));
        group.bench_function("decode", |bencher| {
            bencher.iter(|| Decoder::new().filter(black_box(&bytes)));
        });
        group.finish();
    }
}

/// Counters are told level by level; bytes of filter are those of its plain bits.
fn counting(criterion: &mut Criterion) {
    let mut old = CountingFilter::for_target(100_000, 0.01).expect("in range");
    let keys: Vec<[u8; 8]> = (0..101_000u64).map(u64::to_le_bytes).collect();
    old.insert_batch(&keys[..100_000]);
    let mut new = old.clone();
    for key in &keys[..1_000] {
        assert!(new.remove(key), "members can be removed");
    }
    new.insert_batch(&keys[100_000..]);
    let bytes = encode(&old);
    assert_eq!(Decoder::new().filter(&bytes), Ok(AnyFilter::from(old.clone())));
    let delta = encode_delta(&old, &new, &[]).expect("one scheme");
    let (base, expected) = (AnyFilter::from(old.clone()), AnyFilter::from(new.clone()));
    assert_eq!(Decoder::new().apply(&base, &delta).expect("a sound delta"), expected);

    let mut group = criterion.benchmark_group("counting/10^5 keys");
    group.throughput(Throughput::Bytes(old.scheme().shape().bits() / 8));
    group.bench_function("encode", |bencher| bencher.iter(|| encode(black_box(&old))));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| Decoder::new().filter(black_box(&bytes)));
    });
    group.bench_function("encode delta 1%", |bencher| {
        bencher.iter(|| encode_delta(black_box(&old), black_box(&new), &[]));
    });
    group.bench_function("apply delta 1%", |bencher| {
        bencher.iter(|| Decoder::new().apply(black_box(&base), black_box(&delta)));
    });
    group.finish();
}

criterion_group!(benches, deltas, digests, snapshots, counting);
criterion_main!(benches);
