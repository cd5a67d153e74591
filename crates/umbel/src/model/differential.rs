//! The filter in front of a differential file: how many reads of its index are unnecessary.
//!
//! A master file of `n` records is never changed; `u` updates stand in a differential file
//! whose index is worth reading only for changed records. A filter of `m` bits and `h` hashes
//! over the updated keys says which; an unchanged record that it claims is a filter error.
//!
//! Paper 2, "Probability Of Filter Error" and "Optimal h".

use std::f64::consts::LN_2;

use super::standard::{fill, fill_exact, power};
use super::{ln_none_of, one_minus_exp};
use crate::params::Shape;

/// Sizes of the two files: records in the master, updates since it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Files {
    /// `n`, at least 1.
    pub records: u64,
    /// `u`.
    pub updates: u64,
}

/// Probability that a request meets a filter error, usual form: `e^(-u/n) · (1 - e^(-uh/m))^h`.
#[must_use]
pub fn filter_error(shape: Shape, files: Files) -> f64 {
    let unchanged = (-(files.updates as f64) / files.records as f64).exp();
    unchanged * power(fill(shape, files.updates), shape.hashes())
}

/// The same exactly: `(1 - 1/n)^u · [1 - (1 - 1/m)^(uh)]^h`.
#[must_use]
pub fn filter_error_exact(shape: Shape, files: Files) -> f64 {
    let unchanged = ln_none_of(1.0 / files.records as f64, files.updates as f64).exp();
    unchanged * power(fill_exact(shape, files.updates), shape.hashes())
}

/// Probability that none of the updates changes a record: `(1 - 1/n)^u`, the `A` of paper 2.
#[must_use]
pub fn unchanged(files: Files) -> f64 {
    ln_none_of(1.0 / files.records as f64, files.updates as f64).exp()
}

/// Records that the updates change, each counted once: `n (1 - (1 - 1/n)^u)`. Paper 2 assumes
/// `n ≫ u`, where it is `u`.
#[must_use]
pub fn changed_records(files: Files) -> f64 {
    files.records as f64 * (1.0 - unchanged(files))
}

/// The filter error without the assumption `n ≫ u`: a record that is changed again sets no new
/// bits, so that the filter holds [`changed_records`] instead of `u`.
#[must_use]
pub fn filter_error_of_changed(shape: Shape, files: Files) -> f64 {
    let fill =
        one_minus_exp(-changed_records(files) * f64::from(shape.hashes()) / shape.bits() as f64);
    unchanged(files) * power(fill, shape.hashes())
}

/// Where the filter error is smallest, as a real number: `ln 2 · m/u`. `updates` must not be zero.
#[must_use]
pub fn best_hashes(bits: u64, updates: u64) -> f64 {
    LN_2 * bits as f64 / updates as f64
}

/// The better of the two integers next to [`best_hashes`], at least 1. `updates` must not be zero.
///
/// ```
/// use umbel::model::differential::best_whole_hashes;
///
/// assert_eq!(best_whole_hashes(1_000_000, 500_000), 1);
/// assert_eq!(best_whole_hashes(2_000_000, 500_000), 3);
/// ```
#[must_use]
pub fn best_whole_hashes(bits: u64, updates: u64) -> u64 {
    let below = best_hashes(bits, updates).floor().max(1.0);
    let ln_error = |h: f64| h * one_minus_exp(-(updates as f64) * h / bits as f64).ln();
    if ln_error(below) <= ln_error(below + 1.0) { below as u64 } else { below as u64 + 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILES: Files = Files { records: 10_000_000, updates: 500_000 };

    #[test]
    fn best_hashes_are_those_of_the_slides() {
        assert!((best_hashes(1_000_000, 500_000) - 1.386).abs() < 5e-4);
        // The slides print 2.772, cut from 2.77259.
        assert!((best_hashes(2_000_000, 500_000) - 2.772).abs() < 1e-3);
    }

    #[test]
    fn the_better_neighbour_is_better() {
        for bits in [1_000, 300_000, 1_000_000, 2_000_000, 5_000_000, 9_000_000] {
            let best = best_whole_hashes(bits, 500_000) as u32;
            let error = |h| filter_error(Shape::new(bits, h).unwrap(), FILES);
            assert!(error(best) <= error(best + 1), "m={bits} h={best}");
            assert!(best == 1 || error(best) <= error(best - 1), "m={bits} h={best}");
        }
    }

    #[test]
    fn usual_and_exact_forms_agree_for_large_files() {
        let shape = Shape::new(2_000_000, 3).unwrap();
        let (usual, exact) = (filter_error(shape, FILES), filter_error_exact(shape, FILES));
        assert!((usual / exact - 1.0).abs() < 1e-5);
        // e^-0.05 · (1 - e^-0.75)^3.
        assert!((usual - (-0.05_f64).exp() * (1.0 - (-0.75_f64).exp()).powi(3)).abs() < 1e-12);
    }

    #[test]
    fn a_single_record_is_changed_by_the_first_update() {
        let files = Files { records: 1, updates: 1 };
        assert_eq!(filter_error_exact(Shape::new(11, 2).unwrap(), files), 0.0);
    }

    /// 1.5 million updates of a million records, ten bits an update: the slides' form expects
    /// 23 times the errors.
    #[test]
    fn records_that_change_again_set_no_new_bits() {
        let files = Files { records: 1_000_000, updates: 1_500_000 };
        assert!((changed_records(files) - 776_870.0).abs() < 1.0);
        let shape = Shape::new(10_485_760, 7).unwrap();
        let (slides, ours) = (filter_error(shape, files), filter_error_of_changed(shape, files));
        assert!((slides / ours - 22.8).abs() < 0.5, "{slides} {ours}");
        let few = Files { records: 1_000_000_000, updates: 1_000 };
        let shape = Shape::new(10_000, 7).unwrap();
        let ratio = filter_error(shape, few) / filter_error_of_changed(shape, few);
        assert!((ratio - 1.0).abs() < 1e-4, "{ratio}");
    }

    /// The slides' toy filter: m=11, f1 = x mod 11, f2 = 2x mod 11.
    #[test]
    fn key_6_is_a_filter_error_of_the_toy_example() {
        let signature = |key: u64| [key % 11, 2 * key % 11];
        let set: Vec<u64> = [15, 17].into_iter().flat_map(signature).collect();
        assert_eq!(set, [4, 8, 6, 1]);
        assert!(signature(6).iter().all(|bit| set.contains(bit)));
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn a_longer_filter_errs_less(
            bits in 1_u64..1 << 39, hashes in 1_u32..=64,
            records in 1_u64..1 << 40, updates in 0_u64..1 << 40,
        ) {
            let files = Files { records, updates };
            let at = |bits| filter_error_exact(Shape::new(bits, hashes).unwrap(), files);
            prop_assert!(at(bits * 2) <= at(bits));
            prop_assert!((0.0..=1.0).contains(&at(bits)));
        }
    }
}
