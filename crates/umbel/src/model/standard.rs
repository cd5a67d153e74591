//! One filter of `m` bits and `k` hashes that holds `n` keys.
//!
//! The basis of all other formulas. Fill and rate are given in the usual form with `e`, which all
//! five papers use; the fill also in the exact form. If the bits are available, prefer their
//! measured fill to [`fill`]: it stays right after removals.
//!
//! Papers 1 and 3, equations 2 to 5; paper 4, equation 1 and theorem 3; paper 5, formula 1.

use std::f64::consts::LN_2;

use super::{LN_06185, one_minus_exp};
use crate::params::Shape;

/// Expected share of ones, usual form: `p(n) = 1 - e^(-kn/m)` (papers 1 and 3, equation 2).
///
/// ```
/// let shape = umbel::Shape::new(8000, 6)?;
/// assert!((umbel::model::standard::fill(shape, 1000) - 0.5276).abs() < 1e-4);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[must_use]
pub fn fill(shape: Shape, items: u64) -> f64 {
    fill_at(&shape, items as f64)
}

/// Expected share of ones, exactly: `1 - (1 - 1/m)^(kn)` (papers 1 and 3, equation 2).
#[must_use]
pub fn fill_exact(shape: Shape, items: u64) -> f64 {
    let (m, kn) = (shape.bits() as f64, f64::from(shape.hashes()) * items as f64);
    super::any_of(1.0 / m, kn)
}

/// Probability that an absent key is claimed: `f = p(n)^k` (papers 1 and 3, equations 3 and 4;
/// paper 4, equation 1).
#[must_use]
pub fn false_positive(shape: Shape, items: u64) -> f64 {
    false_positive_at(&shape, items as f64)
}

/// The same from a fill, measured or expected: `fill^k`.
#[must_use]
pub fn false_positive_of_fill(shape: Shape, fill: f64) -> f64 {
    power(fill, shape.hashes())
}

/// The number of hashes that makes the rate smallest, as a real number: `(m/n) ln 2`.
/// `items` must not be zero.
#[must_use]
pub fn best_hashes(bits: u64, items: u64) -> f64 {
    bits as f64 / items as f64 * LN_2
}

/// The rate at [`best_hashes`]: `0.5^k = 0.6185^(m/n)` (papers 1 and 3, equation 5).
/// `items` must not be zero.
#[must_use]
pub fn best_false_positive(bits: u64, items: u64) -> f64 {
    (bits as f64 / items as f64 * LN_06185).exp()
}

/// How many keys a fill stands for: `n = -(m/k) ln(1 - p)`; infinite for a fill of 1.
#[must_use]
pub fn items_of_fill(shape: Shape, fill: f64) -> f64 {
    -(shape.bits() as f64 / f64::from(shape.hashes())) * (-fill).ln_1p()
}

/// Keys of two sets that the other does not hold: what [`intersection_exact`] depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apart {
    /// `|A - A∩B|`.
    pub only_a: u64,
    /// `|B - A∩B|`.
    pub only_b: u64,
}

/// Probability that the AND of two filters is exactly the filter of the intersection: `(1 -
/// 1/m)^(k² · |A-A∩B| · |B-A∩B|)` (paper 4, theorem 3).
#[must_use]
pub fn intersection_exact(shape: Shape, apart: Apart) -> f64 {
    let (m, k) = (shape.bits() as f64, f64::from(shape.hashes()));
    super::ln_none_of(1.0 / m, k * k * apart.only_a as f64 * apart.only_b as f64).exp()
}

/// [`fill`] for a number of items that is an average.
pub(crate) fn fill_at(shape: &Shape, items: f64) -> f64 {
    one_minus_exp(-load(shape, items))
}

/// [`false_positive`] for a number of items that is an average.
pub(crate) fn false_positive_at(shape: &Shape, items: f64) -> f64 {
    power(fill_at(shape, items), shape.hashes())
}

/// `kn/m`: hits per bit.
pub(crate) fn load(shape: &Shape, items: f64) -> f64 {
    f64::from(shape.hashes()) * items / shape.bits() as f64
}

/// `base^k`.
pub(crate) fn power(base: f64, hashes: u32) -> f64 {
    base.powi(hashes as i32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(bits: u64, hashes: u32) -> Shape {
        Shape::new(bits, hashes).unwrap()
    }

    #[test]
    fn rates_are_those_of_the_papers() {
        assert!((false_positive(shape(8000, 6), 1000) - 0.0216).abs() < 5e-5);
        for (bits_per_item, rate, tolerance) in
            [(8, 0.0214, 5e-5), (12, 0.0031, 5e-5), (16, 0.00046, 5e-6)]
        {
            let best = best_false_positive(bits_per_item * 1000, 1000);
            assert!((best - rate).abs() < tolerance, "m/n={bits_per_item}: {best}");
        }
        // Paper 4: m=1280, k=7, c=133.
        assert!((false_positive(shape(1280, 7), 133) - 0.00985).abs() < 5e-6);
    }

    #[test]
    fn the_best_rate_is_a_half_to_the_best_hashes() {
        let (bits, items) = (9585, 1000);
        let half_power = 0.5_f64.powf(best_hashes(bits, items));
        assert!((best_false_positive(bits, items) / half_power - 1.0).abs() < 1e-12);
    }

    #[test]
    fn exact_and_usual_fill_agree_for_long_filters_and_differ_for_short_ones() {
        let long = shape(1 << 40, 10);
        let (usual, exact) = (fill(long, 1 << 30), fill_exact(long, 1 << 30));
        assert!((usual / exact - 1.0).abs() < 1e-11);
        // 1 - (1/2)^4 against 1 - e^-2.
        assert_eq!(fill_exact(shape(2, 2), 2), 0.9375);
        assert!((fill(shape(2, 2), 2) - 0.864_664_7).abs() < 1e-7);
    }

    #[test]
    fn a_filter_of_one_bit_is_full_after_one_key() {
        assert_eq!(fill_exact(shape(1, 3), 0), 0.0);
        assert_eq!(fill_exact(shape(1, 3), 1), 1.0);
    }

    #[test]
    fn one_key_in_the_longest_filter_keeps_its_digits() {
        // kn/m = 2^-40: the fill is 2^-40 (1 - 2^-41 + ...).
        let fill = fill(shape(1 << 40, 1), 1);
        assert!((fill * (1_u64 << 40) as f64 - (1.0 - 0.5_f64.powi(41))).abs() < 1e-15);
    }

    #[test]
    fn intersections_of_sets_without_strangers_are_exact() {
        assert_eq!(intersection_exact(shape(1, 1), Apart { only_a: 0, only_b: 9 }), 1.0);
        assert_eq!(intersection_exact(shape(1, 1), Apart { only_a: 1, only_b: 1 }), 0.0);
        let probability = intersection_exact(shape(1000, 2), Apart { only_a: 10, only_b: 5 });
        assert!((probability - 0.999_f64.powi(200)).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn more_items_raise_fill_and_rate_and_more_bits_lower_them(
            bits in 1_u64..1 << 39, hashes in 1_u32..=64, items in 0_u64..1 << 39,
        ) {
            let (here, longer) = (shape(bits, hashes), shape(bits * 2, hashes));
            prop_assert!(fill(here, items * 2 + 1) >= fill(here, items));
            prop_assert!(false_positive(here, items * 2 + 1) >= false_positive(here, items));
            prop_assert!(false_positive(longer, items) <= false_positive(here, items));
            prop_assert!((0.0..=1.0).contains(&fill_exact(here, items)));
        }

        #[test]
        fn items_of_a_fill_are_the_items_that_made_it(
            bits in 100_u64..1 << 40, hashes in 1_u32..=64, share in 0.001_f64..3.0,
        ) {
            let shape = shape(bits, hashes);
            let items = (share * bits as f64 / f64::from(hashes)) as u64;
            let back = items_of_fill(shape, fill(shape, items));
            prop_assert!((back - items as f64).abs() <= 1e-9 * items as f64);
        }
    }
}
