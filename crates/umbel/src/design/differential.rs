//! The filter in front of a differential file: bits and hashes for a number of updates.
//!
//! Paper 2, "Bloom Filter Design"; errors are [`crate::model::differential`]'s.

use super::standard;
use crate::model::differential::{Files, best_whole_hashes, unchanged};
use crate::params::{Hashes, ParamError, Rate, Shape};

/// The best filter of this many bits: paper 2's `h`, the better of the two integers next to `ln 2 ·
/// m/u`.
///
/// # Errors
/// If `bits` is out of range.
pub fn of_bits(bits: u64, updates: u64) -> Result<Shape, ParamError> {
    let hashes = best_whole_hashes(bits, updates.max(1)).min(u64::from(Hashes::MAX));
    Shape::new(bits, hashes as u32)
}

/// The smallest filter with which, after all updates, a request reads the differential index
/// unnecessarily with at most this probability.
///
/// # Errors
/// If there are no updates, or the filter would be longer than [`crate::params::Bits::MAX`].
pub fn for_error(files: Files, error: Rate) -> Result<Shape, ParamError> {
    // Only requests for unchanged records can be wrong.
    let of_unchanged = error.get() / unchanged(files);
    match Rate::new(of_unchanged) {
        Ok(rate) => standard(files.updates, rate),
        // So few records are unchanged that no filter is needed: use the smallest one, of one bit.
        Err(_) => of_bits(1, files.updates),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::differential::filter_error;

    const FILES: Files = Files { records: 10_000_000, updates: 500_000 };

    #[test]
    fn hashes_are_those_of_the_slides() {
        assert_eq!(of_bits(1_000_000, 500_000).unwrap().hashes(), 1);
        assert_eq!(of_bits(2_000_000, 500_000).unwrap().hashes(), 3);
        assert_eq!(of_bits(u64::from(u32::MAX), 1).unwrap().hashes(), Hashes::MAX);
        assert!(of_bits(0, 500_000).is_err());
    }

    #[test]
    fn the_filter_for_an_error_keeps_it_and_little_less_would_not() {
        for error in [0.3, 0.01, 1e-4] {
            let shape = for_error(FILES, Rate::new(error).unwrap()).unwrap();
            assert!(filter_error(shape, FILES) <= error, "{error}");
            let shorter = Shape::new(shape.bits() * 99 / 100, shape.hashes()).unwrap();
            assert!(filter_error(shorter, FILES) > error, "{error}");
        }
        let nearly_all_changed = Files { records: 10, updates: 1000 };
        assert!(for_error(nearly_all_changed, Rate::new(0.1).unwrap()).is_ok());
    }
}
