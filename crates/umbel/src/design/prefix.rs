//! Filters for longest-prefix match: one of one shape for each length.
//!
//! Paper 2, "Longest Matching Prefix"; the expected probes are [`crate::model::prefix`]'s.

use super::standard;
use crate::model::prefix::expected_probes_at_worst;
use crate::model::standard::false_positive;
use crate::params::{ParamError, Rate, Shape};

/// One filter per length, all alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prefix {
    /// Shape of each filter.
    pub shape: Shape,
    /// Tables read by a lookup whose match has the shortest length: the most, on average.
    pub expected_probes: f64,
}

/// Filters for `lengths` prefix lengths with `items` prefixes each, every filter at `rate`.
///
/// # Errors
/// If `items` is zero, or a filter would be longer than [`crate::params::Bits::MAX`].
pub fn prefix(lengths: u64, items: u64, rate: Rate) -> Result<Prefix, ParamError> {
    let shape = standard(items, rate)?;
    let expected_probes = expected_probes_at_worst(lengths, false_positive(shape, items));
    Ok(Prefix { shape, expected_probes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_lengths_at_one_in_a_thousand_cost_three_percent_more_probes() {
        let plan = prefix(32, 30_000, Rate::new(0.001).unwrap()).unwrap();
        assert!((plan.expected_probes - 1.031).abs() < 1e-5);
        assert_eq!(Ok(plan.shape), standard(30_000, Rate::new(0.001).unwrap()));
        assert!(prefix(32, 0, Rate::new(0.001).unwrap()).is_err());
    }
}
