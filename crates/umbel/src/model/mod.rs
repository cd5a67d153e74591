//! Closed formulas that predict the behaviour of filters, replicas and routing entries.
//!
//! Uses only `params`: no function here reads a filter. `design` inverts these formulas ("which
//! shape keeps this rate?"); publishers and the lab compare them with measurements.
//!
//! Always true: arguments inside their documented range give a finite answer, and a rate lies
//! between 0 and 1. Small rates keep their precision: terms of the form `1 - (1 - x)^y` are
//! computed with `ln_1p` and `exp_m1`, never as a difference of two numbers near 1.
//!
//! Locals keep the papers' letters: `m` bits, `k` hashes, `n` items, `p` fill, `f` false positive,
//! `s` filters or components, `δ1` and `δ0` shares of dirty ones and zeros, `γ` hosts.
//! docs/papers.md translates them and lists where a paper was corrected.

pub mod attributes;
pub mod blocked;
pub mod chain;
pub mod churn;
pub mod differential;
pub mod dynamic;
pub mod limits;
pub mod prefix;
pub mod routing;
pub mod stale;
pub mod standard;

use std::f64::consts::LN_2;

/// `ln 0.6185`, the exact constant: `0.6185 = 2^(-ln 2)`, so its logarithm is `-(ln 2)^2`.
pub const LN_06185: f64 = -LN_2 * LN_2;

/// An argument for which a formula has no result. Nothing was computed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The caller gave more dirty ones than the filter has ones, or a negative number.
    #[error("the share of dirty ones lies between 0 and the fill {fill}, not {given}")]
    DirtyOnes {
        /// What was given.
        given: f64,
        /// Share of ones in the home filter.
        fill: f64,
    },
    /// The caller gave more dirty zeros than the filter has zeros, or a negative number.
    #[error("the share of dirty zeros lies between 0 and the share of zeros {zeros}, not {given}")]
    DirtyZeros {
        /// What was given.
        given: f64,
        /// Share of zeros in the home filter.
        zeros: f64,
    },
    /// A fill that is not a share.
    #[error("a fill lies between 0 and 1, not {0}")]
    Fill(f64),
    /// The replica claims every key, so the number of its items cannot be estimated.
    #[error("the replica is all ones: it claims every key and stands for no number of items")]
    AllOnes,
}

/// `1 - (1 - rate)^count`: the probability that at least one of `count` independent tests, each
/// with probability `rate`, succeeds.
#[must_use]
pub fn any_of(rate: f64, count: f64) -> f64 {
    one_minus_exp(ln_none_of(rate, count))
}

/// `1 - (1 - rate)^(1/count)`: the rate of each of `count` tests of which at least one succeeds
/// with probability `rate`. The inverse of [`any_of`].
#[must_use]
pub fn each_of(rate: f64, count: f64) -> f64 {
    one_minus_exp((-rate).ln_1p() / count)
}

/// `ln (1 - rate)^count`, and 0 for no tests at all, even when `rate` is 1.
pub(crate) fn ln_none_of(rate: f64, count: f64) -> f64 {
    if count == 0.0 { 0.0 } else { count * (-rate).ln_1p() }
}

/// `1 - e^x` for `x <= 0`, without losing the digits of a small result, and never `-0`.
pub(crate) fn one_minus_exp(x: f64) -> f64 {
    -x.exp_m1() + 0.0
}

/// Property tests use a fixed seed, so that a failure can be repeated.
#[cfg(test)]
pub(crate) fn seeded() -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x0075_6d62_656c),
        failure_persistence: None,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_is_that_of_the_papers() {
        assert!((LN_06185.exp() - 0.618_503_13).abs() < 1e-8);
    }

    #[test]
    fn small_rates_keep_their_digits() {
        // 1 - (1 - x)^1000 = 1000 x - ..., which plain arithmetic rounds to a multiple of 1e-16.
        assert!((any_of(1e-18, 1000.0) / 1e-15 - 1.0).abs() < 1e-12);
        assert!((each_of(1e-15, 1000.0) / 1e-18 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_tests_never_say_yes() {
        assert_eq!(any_of(1.0, 0.0), 0.0);
        assert_eq!(any_of(1.0, 3.0), 1.0);
        assert!(any_of(0.0, 3.0).is_sign_positive());
    }
}
