//! A routing entry: the filters that reached a host over one link.
//!
//! Stored separately they are a CUBF (cumulative), as their OR an ABF (aggregated). An entry of `s`
//! filters claims more absent keys than one of them, so filters for routing are designed for the
//! whole entry (`design::routing`). The filters of an ABF are then so sparse that they are sent
//! compressed.
//!
//! Paper 5, formulas 1 to 3 and section 4.1. It prints `1 - e^(kn/m)` for the fill of a
//! filter on the wire (the sign is lost) and draws figures 9 to 11 with entropy in nats.

use super::limits::entropy;
use super::standard::{self, fill_at, power};
use crate::params::Shape;

/// The fill at which an ABF entry refuses further filters; a CUBF refuses those beyond the
/// first `s` (section 4.3). Designed for `σ`, an entry at this fill is at `σ`.
pub const ABF_FULL: f64 = 0.5;

/// The rate of a CUBF of `filters` filters with `items` keys each:
/// `1 - (1 - (1 - e^(-kn/m))^k)^s` (formula 2).
#[must_use]
pub fn cubf(shape: Shape, items: u64, filters: u64) -> f64 {
    super::any_of(standard::false_positive(shape, items), filters as f64)
}

/// The rate of an ABF of `filters` filters with `items` keys each:
/// `(1 - e^(-skn/m))^k` (formula 3).
#[must_use]
pub fn abf(shape: Shape, items: u64, filters: u64) -> f64 {
    power(fill_at(&shape, filters as f64 * items as f64), shape.hashes())
}

/// Bits of one filter with `items` keys on the wire: `m·H(p1)`, `p1 = 1 - e^(-kn/m)`, with
/// `H` in bits (section 4.1).
#[must_use]
pub fn wire_bits(shape: Shape, items: u64) -> f64 {
    shape.bits() as f64 * entropy(standard::fill(shape, items))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_figures_2_and_3_are_right() {
        let shape = Shape::new(33, 3).unwrap();
        assert!((standard::false_positive(shape, 3) - 0.0136).abs() < 5e-5);
        assert!((cubf(shape, 3, 7) - 0.0914).abs() < 5e-5);
        assert!((abf(shape, 3, 7) - 0.618).abs() < 5e-4);
    }

    #[test]
    fn an_entry_of_the_planned_filters_is_full() {
        // s=100, n=30, σ=.001 by formulas 6 and 7.
        let shape = Shape::new(43_133, 10).unwrap();
        assert!((fill_at(&shape, 3000.0) - ABF_FULL).abs() < 0.002);
        assert!((standard::false_positive_of_fill(shape, ABF_FULL) - 0.001).abs() < 3e-5);
    }

    #[test]
    fn an_entry_of_one_filter_is_that_filter() {
        let shape = Shape::new(719, 17).unwrap();
        let alone = standard::false_positive(shape, 30);
        assert!((cubf(shape, 30, 1) / alone - 1.0).abs() < 1e-12);
        assert_eq!(abf(shape, 30, 1), alone);
    }

    #[test]
    fn a_filter_for_an_abf_is_sparse_on_the_wire() {
        // s=100, σ=.001: p1 = 1 - 2^(-1/s) at the optimum, about 0.0069.
        let shape = Shape::new(43_133, 10).unwrap();
        assert!((standard::fill(shape, 30) - (1.0 - 0.5_f64.powf(0.01))).abs() < 5e-5);
        assert!(wire_bits(shape, 30) < 0.07 * 43_133.0);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn every_further_filter_raises_both_rates(
            bits in 1_u64..1 << 40, hashes in 1_u32..=64, items in 1_u64..1 << 20,
            filters in 1_u64..100_000,
        ) {
            let shape = Shape::new(bits, hashes).unwrap();
            prop_assert!(cubf(shape, items, filters + 1) >= cubf(shape, items, filters));
            prop_assert!(abf(shape, items, filters + 1) >= abf(shape, items, filters));
            prop_assert!(cubf(shape, items, filters) <= 1.0 && abf(shape, items, filters) <= 1.0);
            prop_assert!(wire_bits(shape, items) <= bits as f64);
        }
    }
}
