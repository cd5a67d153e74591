//! Filters for longest-prefix match: one filter per length, all of one shape.
//!
//! Paper 2, "Longest Matching Prefix"; the expected probes are [`crate::model::prefix`]'s.

use super::{average_rate, standard};
use crate::model::prefix::expected_probes_at_worst;
use crate::model::standard::false_positive;
use crate::params::{ParamError, Rate, Shape};

/// One filter per length, all of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prefix {
    /// Shape of each filter.
    pub shape: Shape,
    /// Average number of tables read by a lookup whose match has the shortest length, which is the
    /// worst case.
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

/// Filters for lengths with different numbers of prefixes, all at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Bits of all filters together.
    pub bits: u64,
    /// Hashes of each filter.
    pub hashes: u32,
    /// Average number of tables read by a lookup, if all prefixes are matched equally often: `1 + Σ
    /// f` over the lengths longer than the match.
    pub expected_probes: f64,
    /// The same if the match has the shortest length.
    pub expected_probes_at_worst: f64,
    /// Tables read from the longest length down without filters.
    pub probes_without_filters: f64,
}

/// Filters for prefixes given by length, every filter at `rate`. Lengths with none have no filter.
///
/// # Errors
/// If there are no prefixes, or a filter would be longer than [`crate::params::Bits::MAX`].
pub fn counted(counts: &[(u8, u64)], rate: Rate) -> Result<Counted, ParamError> {
    let mut counts: Vec<(u8, u64)> = counts.iter().copied().filter(|(_, n)| *n > 0).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let all: u64 = counts.iter().map(|(_, items)| items).sum();
    let mut plan = Counted {
        bits: 0,
        hashes: standard(all, rate)?.hashes(),
        expected_probes: 0.0,
        expected_probes_at_worst: 0.0,
        probes_without_filters: 0.0,
    };
    let mut longer = 0.0;
    for (read, (_, items)) in (1_u32..).zip(counts) {
        let (shape, share) = (standard(items, rate)?, items as f64 / all as f64);
        plan.bits += shape.bits();
        plan.expected_probes += share * (1.0 + longer);
        plan.expected_probes_at_worst = 1.0 + longer;
        plan.probes_without_filters += share * f64::from(read);
        longer += average_rate(shape, items);
    }
    Ok(plan)
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

    #[test]
    fn lengths_count_as_often_as_they_have_prefixes() {
        let rate = Rate::new(0.01).unwrap();
        let plan = counted(&[(16, 1000), (24, 3000), (20, 0)], rate).unwrap();
        // Three lookups in four match the longest length, and read one table.
        assert!((plan.expected_probes - 1.0025).abs() < 1e-4, "{plan:?}");
        assert!((plan.expected_probes_at_worst - 1.01).abs() < 1e-4, "{plan:?}");
        assert!((plan.probes_without_filters - 1.25).abs() < 1e-12, "{plan:?}");
        let both = standard(1000, rate).unwrap().bits() + standard(3000, rate).unwrap().bits();
        assert_eq!((plan.bits, plan.hashes), (both, 7));
        assert!(counted(&[], rate).is_err() && counted(&[(8, 0)], rate).is_err());
    }
}
