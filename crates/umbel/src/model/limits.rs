//! The fewest bits and bytes that information theory allows: what to measure codecs against.
//!
//! Numbers of bits and keys are real numbers here, because callers compute averages. All entropies
//! are in bits; paper 5 draws its figures 9 to 11 with nats, which are 1.44 times fewer.
//!
//! The last formula is umbel's own: `k` positions that are computed from a `b`-bit digest contain
//! only `b` bits of information, so a list of digests can be shorter than the bits they change.

use std::f64::consts::{LN_2, PI};

use crate::params::{DigestBits, Rate, Shape};

/// Entropy of a bit that is one with chance `p`, in bits:
/// `H(p) = -p log2 p - (1-p) log2(1-p)` (paper 5, section 4.1).
#[must_use]
pub fn entropy(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return 0.0;
    }
    (-p * p.ln() - (1.0 - p) * (-p).ln_1p()) / LN_2
}

/// Bits of any structure that holds `items` keys at a false positive rate: `n log2(1/ε)`.
/// A Bloom filter takes `1/ln 2` = 1.44 times that.
#[must_use]
pub fn static_filter_bits(items: u64, rate: Rate) -> f64 {
    -(items as f64) * rate.get().log2()
}

/// Bytes of a whole filter with this fill: `m·H(p)/8`.
#[must_use]
pub fn snapshot_bytes(shape: Shape, fill: f64) -> f64 {
    shape.bits() as f64 * entropy(fill) / 8.0
}

/// The bits that an update changes, and the bits of the base.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Flips {
    /// Zeros of the base, `Z`.
    pub zeros: f64,
    /// How many of them are set, `d1`.
    pub set: f64,
    /// Ones of the base, `O`.
    pub ones: f64,
    /// How many of them are cleared, `d0`.
    pub cleared: f64,
}

/// Bytes of a delta whose receiver knows the base: `(Z·H(d1/Z) + O·H(d0/O))/8`.
#[must_use]
pub fn delta_bytes(flips: Flips) -> f64 {
    (choice_bits(flips.zeros, flips.set) + choice_bits(flips.ones, flips.cleared)) / 8.0
}

/// Bytes of the same delta encoded without using the base: `m·H(d/m)/8`.
#[must_use]
pub fn blind_delta_bytes(flips: Flips) -> f64 {
    choice_bits(flips.zeros + flips.ones, flips.set + flips.cleared) / 8.0
}

/// Bits to encode which `chosen` of `all` places are meant: `all·H(chosen/all)`.
fn choice_bits(all: f64, chosen: f64) -> f64 {
    if all > 0.0 { all * entropy(chosen / all) } else { 0.0 }
}

/// Bytes of a list of the digests of `added` keys: `log2 C(2^b, a)/8`, about
/// `a(b - log2 a + 1.443)/8`.
#[must_use]
pub fn digest_list_bytes(added: f64, digest_bits: DigestBits) -> f64 {
    let (a, b) = (added, f64::from(digest_bits.get()));
    let x = a / b.exp2();
    if a <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    // ln C(M, a) = a ln M - ln a! + Σ ln(1 - i/M) for i below a, and the sum, by Euler and
    // Maclaurin, is -M((1-x) ln(1-x) + x) - ln(1-x)/2 with x = a/M.
    let without = (-x).ln_1p();
    let same_twice = b.exp2() * ((1.0 - x) * without + x) + without / 2.0;
    let nats = a * b * LN_2 - ln_factorial(a) - same_twice;
    nats.max(0.0) / LN_2 / 8.0
}

/// Cache lines that one lookup over the replicas of `hosts` hosts reads: `k` rows of
/// `ceil(γ/512)` lines.
#[must_use]
pub fn who_cache_lines(hashes: u32, hosts: u64) -> u64 {
    u64::from(hashes) * hosts.div_ceil(512)
}

/// `ln x!` for a real number, by Stirling's series from 16 up and the recurrence below.
fn ln_factorial(x: f64) -> f64 {
    if x < 16.0 {
        return ln_factorial(x + 1.0) - (x + 1.0).ln();
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    x * x.ln() - x + 0.5 * (2.0 * PI * x).ln() + series
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::churn::bits_of_these_only;
    use super::super::standard::{best_false_positive, false_positive_at, fill};
    use super::*;
    use crate::design;

    #[test]
    fn entropy_is_one_bit_at_a_half_and_none_at_the_ends() {
        assert_eq!(entropy(0.5), 1.0);
        assert_eq!(entropy(0.0), 0.0);
        assert_eq!(entropy(1.0), 0.0);
        assert!((entropy(0.11) - 0.499_916).abs() < 1e-6);
        // p log2(e/p) for small p; 1 - p alone would round p away.
        let p = 1e-18;
        assert!((entropy(p) / (p * (1.0 - p.ln()) / LN_2) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_bloom_filter_takes_1_44_times_the_limit() {
        let rate = Rate::new(best_false_positive(9585, 1000)).unwrap();
        assert!((9585.0 / static_filter_bits(1000, rate) - 1.0 / LN_2).abs() < 1e-12);
    }

    #[test]
    fn factorials_are_right() {
        for (x, factorial) in
            [(0.0, 1.0), (1.0, 1.0), (5.0, 120.0), (20.0, 2_432_902_008_176_640_000.0)]
        {
            let found = ln_factorial(x).exp();
            assert!((found / factorial - 1.0_f64).abs() < 1e-11, "{x}! = {found}");
        }
    }

    #[test]
    fn digest_lists_match_small_binomials_and_the_usual_form() {
        let bytes = |a, b| digest_list_bytes(a, DigestBits::new(b).unwrap());
        // C(256, 3) = 2763520; C(16, 8) = 12870.
        assert!((bytes(3.0, 8) * 8.0 - 2_763_520_f64.log2()).abs() < 1e-3);
        assert!((bytes(8.0, 4) * 8.0 - 12_870_f64.log2()).abs() < 0.02);
        assert!((bytes(1.0, 37) * 8.0 - 37.0).abs() < 1e-9);
        assert_eq!(bytes(0.0, 37), 0.0);
        assert_eq!(bytes(16.0, 4), 0.0);
        let usual = 10_000.0 * (37.0 - 10_000_f64.log2() + 1.443) / 8.0;
        assert!((bytes(10_000.0, 37) / usual - 1.0).abs() < 1e-4);
    }

    /// Bits per added key, n = 10^6.
    #[test]
    fn bits_per_added_key_are_those_of_the_reference_table() {
        let shares = [1e-4, 1e-3, 1e-2, 1e-1];
        let rows = [
            (0.01, [54.8, 43.5, 32.2, 20.5], [51.2, 40.0, 28.7, 17.0]),
            (0.001, [81.1, 64.5, 47.8, 30.4], [76.1, 59.5, 42.8, 25.5]),
        ];
        for (rate, blind, knowing) in rows {
            let shape = design::standard(1_000_000, Rate::new(rate).unwrap()).unwrap();
            let m = shape.bits() as f64;
            for (i, share) in shares.into_iter().enumerate() {
                let added = share * 1e6;
                let zeros = m * (1.0 - fill(shape, 1_000_000));
                let set = bits_of_these_only(shape, 1e6, added);
                let flips = Flips { zeros, set, ones: m - zeros, cleared: 0.0 };
                let bits = |bytes: f64| bytes * 8.0 / added;
                let (found, want) = (bits(blind_delta_bytes(flips)), blind[i]);
                assert!((found - want).abs() < 0.11, "blind, ε={rate}, {share}: {found}, {want}");
                let (found, want) = (bits(delta_bytes(flips)), knowing[i]);
                assert!((found - want).abs() < 0.11, "known, ε={rate}, {share}: {found}, {want}");
            }
        }
    }

    #[test]
    fn bits_per_digest_are_those_of_the_reference_table() {
        for (digest_bits, per_key) in [
            (33, [27.8, 24.5, 21.2, 17.8]),
            (37, [31.8, 28.5, 25.2, 21.8]),
            (36, [30.8, 27.5, 24.2, 20.8]),
            (40, [34.8, 31.5, 28.2, 24.8]),
        ] {
            for (added, want) in [1e2, 1e3, 1e4, 1e5].into_iter().zip(per_key) {
                let b = DigestBits::new(digest_bits).unwrap();
                let found = digest_list_bytes(added, b) * 8.0 / added;
                assert!((found - want).abs() < 0.06, "b={digest_bits}, a={added}: {found}, {want}");
            }
        }
    }

    #[test]
    fn uncleared_keys_multiply_the_rate_as_stated() {
        for (rate, factor) in [(0.01, 1.56), (0.001, 1.91)] {
            let shape = design::standard(1_000_000, Rate::new(rate).unwrap()).unwrap();
            let grown = false_positive_at(&shape, 1.1e6) / false_positive_at(&shape, 1e6);
            assert!((grown - factor).abs() < 0.02, "{grown}");
        }
    }

    #[test]
    fn rows_of_up_to_512_hosts_take_one_line_each() {
        assert_eq!(who_cache_lines(7, 512), 7);
        assert_eq!(who_cache_lines(7, 1024), 14);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn knowing_the_base_never_costs_more(
            bits in 1_u64..1 << 40, fill in 0.0_f64..=1.0, d1 in 0.0_f64..=1.0, d0 in 0.0_f64..=1.0,
        ) {
            let (ones, zeros) = (bits as f64 * fill, bits as f64 * (1.0 - fill));
            let flips = Flips { zeros, set: zeros * d1, ones, cleared: ones * d0 };
            prop_assert!(delta_bytes(flips) <= blind_delta_bytes(flips) * (1.0 + 1e-9) + 1e-9);
        }

        #[test]
        fn more_digests_or_longer_ones_take_more_bytes(
            added in 1.0_f64..1e9, digest_bits in 40_u32..64,
        ) {
            let bytes = |a, b| digest_list_bytes(a, DigestBits::new(b).unwrap());
            prop_assert!(bytes(added * 1.1, digest_bits) > bytes(added, digest_bits));
            prop_assert!(bytes(added, digest_bits + 1) > bytes(added, digest_bits));
        }
    }
}
