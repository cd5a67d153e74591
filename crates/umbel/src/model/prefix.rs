//! Longest-prefix match with one filter and one table per length.
//!
//! All filters are asked at once. The tables of the lengths whose filters claim the key are read,
//! longest first. Every length longer than the match may cost an unnecessary read.
//!
//! Paper 2, "Longest Matching Prefix".

/// Expected table reads of one lookup, at most: `1 + Σ f_i` over the lengths longer than
/// the match, where `f_i` is the rate of each one's filter.
#[must_use]
pub fn expected_probes(rates_of_longer: &[f64]) -> f64 {
    1.0 + rates_of_longer.iter().sum::<f64>()
}

/// The same when all `lengths` filters have one rate and the match has the shortest length,
/// which costs the most: `1 + (W - 1) f`.
#[must_use]
pub fn expected_probes_at_worst(lengths: u64, rate: f64) -> f64 {
    1.0 + lengths.saturating_sub(1) as f64 * rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lengths_longer_than_the_match_cost_probes() {
        assert_eq!(expected_probes(&[]), 1.0);
        assert!((expected_probes(&[0.01, 0.02]) - 1.03).abs() < 1e-15);
        assert_eq!(expected_probes_at_worst(1, 0.5), 1.0);
        assert!(
            (expected_probes_at_worst(33, 0.001) - expected_probes(&[0.001; 32])).abs() < 1e-12
        );
    }
}
