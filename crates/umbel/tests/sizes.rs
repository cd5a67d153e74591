//! Frames come within 2 % of what information theory allows, and 64 bytes.
//!
//! The bounds are those of a receiver who knows the base: `(Z·H(d1/Z) + O·H(d0/O))/8` for a
//! delta of bits, `m·H(p)/8` for a snapshot, `log2 C(2^b, a)/8` for a list of digests.
//! Everything is seeded. The table: `cargo test -p umbel --test integration sizes:: -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use umbel::codec::{AnyFilter, Decoder, encode, encode_delta};
use umbel::{Digest, DigestBits, Shape, StandardFilter};

use crate::random::Random;

const SLACK: f64 = 1.02;
const HEADER: f64 = 64.0;

/// With one hash and as many digest bits as positions, a digest is its position: bits can
/// be set at will.
fn of_bits(log_bits: u32, mut bit: impl FnMut(u64) -> bool) -> StandardFilter {
    let shape = Shape::new(1 << log_bits, 1).unwrap();
    let shape = shape.with_digest_bits(DigestBits::new(log_bits).unwrap());
    let mut filter = StandardFilter::with_shape(shape).unwrap();
    for position in (0..shape.bits()).filter(|position| bit(*position)) {
        filter.insert_digest(Digest::from_raw(position, shape.digest_bits()).unwrap());
    }
    filter
}

/// Bytes that tell which `count` of `universe` are meant.
fn entropy(count: u64, universe: u64) -> f64 {
    let p = count as f64 / universe as f64;
    let share = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    universe as f64 * (share(p) + share(1.0 - p)) / 8.0
}

fn delta_bound(old: &StandardFilter, new: &StandardFilter) -> f64 {
    let (old, new) = (old.bits(), new.bits());
    entropy(new.count_beyond(old), old.len() - old.ones())
        + entropy(old.count_beyond(new), old.ones())
}

/// `log2 C(2^b, a)/8`.
fn digests_bound(digest_bits: u32, count: u64) -> f64 {
    let all = (digest_bits as f64).exp2();
    (0..count).map(|i| ((all - i as f64) / (i + 1) as f64).log2()).sum::<f64>() / 8.0
}

fn check(what: &str, bytes: usize, bound: f64) {
    let percent = (bytes as f64 / bound - 1.0) * 100.0;
    println!("{what:<44} {bytes:>9} bytes, bound {bound:>11.1}, {percent:>+8.3} %");
    let allowed = bound * SLACK + HEADER;
    assert!(bytes as f64 <= allowed, "{what}: {bytes} bytes, allowed {allowed:.0}");
}

fn rebuilt(old: &StandardFilter, delta: &[u8]) -> StandardFilter {
    let updated = Decoder::new().apply(&old.clone().into(), delta).unwrap();
    let AnyFilter::Standard(updated) = updated else { panic!("a standard filter") };
    updated
}

#[test]
fn deltas_come_close_to_the_entropy_given_the_base() {
    for log_bits in [20, 22, 24] {
        for fill in [0.3, 0.5] {
            let mut random = Random(log_bits.into());
            let old = of_bits(log_bits, |_| random.chance(fill));
            for share in [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2] {
                let new = of_bits(log_bits, |position| {
                    (old.bits().get(position) == 1) != random.chance(share)
                });
                let delta = encode_delta(&old, &new, &[]).unwrap();
                let what = format!("delta 2^{log_bits}, fill {fill}, changed {share}");
                check(&what, delta.len(), delta_bound(&old, &new));
                assert_eq!(rebuilt(&old, &delta).bits(), new.bits());
            }
        }
    }
}

/// Sets only, clears only, and fills near both ends.
#[test]
fn lopsided_deltas_come_close_to_the_entropy_given_the_base() {
    for (fill, sets, clears) in
        [(0.5, 0.02, 0.0), (0.5, 0.0, 0.02), (0.05, 0.01, 0.3), (0.9, 0.6, 0.01), (0.0, 0.4, 0.0)]
    {
        let mut random = Random(5);
        let old = of_bits(20, |_| fill > 0.0 && random.chance(fill));
        let new = of_bits(20, |position| match old.bits().get(position) {
            0 => sets > 0.0 && random.chance(sets),
            _ => clears == 0.0 || !random.chance(clears),
        });
        let delta = encode_delta(&old, &new, &[]).unwrap();
        let what = format!("delta 2^20, fill {fill}, sets {sets}, clears {clears}");
        check(&what, delta.len(), delta_bound(&old, &new));
        assert_eq!(rebuilt(&old, &delta).bits(), new.bits());
    }
}

#[test]
fn snapshots_come_close_to_the_entropy() {
    for log_bits in [20, 22] {
        for fill in [0.001, 0.05, 0.1, 0.12, 0.13, 0.2, 0.3, 0.4, 0.48, 0.49, 0.5, 0.7, 0.95] {
            let mut random = Random(log_bits.into());
            let filter = of_bits(log_bits, |_| random.chance(fill));
            let bytes = encode(&filter);
            let what = format!("snapshot 2^{log_bits}, fill {fill}");
            check(&what, bytes.len(), entropy(filter.bits().ones(), 1 << log_bits));
            assert_eq!(Decoder::new().filter(&bytes).unwrap(), filter.into());
        }
    }
}

/// A frame with nothing to say is its header, whatever the filter's length.
#[test]
fn empty_and_full_filters_and_empty_deltas_are_headers() {
    for log_bits in [3, 20] {
        for filter in [of_bits(log_bits, |_| false), of_bits(log_bits, |_| true)] {
            assert!(encode(&filter).len() <= 48);
            assert!(encode_delta(&filter, &filter, &[]).unwrap().len() <= 64);
        }
    }
}

#[test]
fn digests_come_close_to_their_bound_and_halve_a_small_delta() {
    let mut old = StandardFilter::for_target(1_000_000, 0.001).unwrap();
    let keys: Vec<[u8; 8]> = (0..1_100_000u64).map(u64::to_le_bytes).collect();
    old.insert_batch(&keys[..1_000_000]);
    let digest_bits = old.scheme().shape().digest_bits().get();
    for added in [100, 1_000, 10_000] {
        let keys = &keys[1_000_000..1_000_000 + added];
        let digests: Vec<Digest> = keys.iter().map(|key| old.scheme().digest(key)).collect();
        let mut new = old.clone();
        new.insert_digests(&digests);
        let delta = encode_delta(&old, &new, &digests).unwrap();
        let by_bits = encode_delta(&old, &new, &[]).unwrap();
        let what = format!("digests, n=10^6, e=0.1 %, {added} added");
        check(&what, delta.len(), digests_bound(digest_bits, added as u64));
        check("  the same by bits", by_bits.len(), delta_bound(&old, &new));
        assert_eq!(rebuilt(&old, &delta), new);
        if added == 1_000 {
            let ratio =
                delta.len() as f64 / by_bits.len().min(delta_bound(&old, &new) as usize) as f64;
            println!("  digests over the best coding of bits: {ratio:.3}");
            assert!(ratio <= 0.55, "{ratio}");
        }
    }
}

/// When many keys are added, bits are shorter than digests, and bits are sent.
#[test]
fn a_delta_is_the_smaller_of_bits_and_digests() {
    let mut old = StandardFilter::for_target(20_000, 0.01).unwrap();
    let keys: Vec<[u8; 8]> = (0..20_000u64).map(u64::to_le_bytes).collect();
    let mut last_kind = None;
    for added in [1, 10, 100, 1_000, 10_000] {
        old.clear();
        old.insert_batch(&keys[..10_000]);
        let keys = &keys[10_000..10_000 + added];
        let digests: Vec<Digest> = keys.iter().map(|key| old.scheme().digest(key)).collect();
        let mut new = old.clone();
        new.insert_digests(&digests);
        let delta = encode_delta(&old, &new, &digests).unwrap();
        let by_bits = encode_delta(&old, &new, &[]).unwrap();
        assert!(delta.len() <= by_bits.len());
        last_kind = Some(delta == by_bits);
        assert_eq!(rebuilt(&old, &delta), new);
    }
    assert_eq!(last_kind, Some(true), "half of all keys are told by bits");
}
