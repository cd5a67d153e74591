//! Filters for routing entries, designed for the entry and not for one filter.
//!
//! A link's entry holds `s` filters of `n` keys each, separately (CUBF) or as their OR (ABF). It
//! must claim an absent key with a probability of at most `σ`. [`papers`] uses paper 5's formulas 4
//! to 7; [`exact`] computes the shortest filters that really keep the bound.

use std::f64::consts::LN_2;

use super::{PaperDesign, papers_standard, standard};
use crate::model::{LN_06185, each_of};
use crate::params::{Bits, ParamError, Rate, Shape};

/// Paper 5's designs, and the traditional one, which ignores entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Papers {
    /// For one filter alone.
    pub traditional: PaperDesign,
    /// `m = ceil(n ln β / ln 0.6185)`, `k = ceil(-log2 β)`, `β = 1-(1-σ)^(1/s)` (formulas 4, 5).
    pub cubf: PaperDesign,
    /// `m = ceil(s·n·(-log2 σ)/ln 2)`, `k = ceil(-log2 σ)` (formulas 6, 7).
    pub abf: PaperDesign,
}

/// The designs of paper 5 for entries of `filters` filters of `items` keys at `rate`.
///
/// # Errors
/// If a number is zero, or a filter would be longer than [`crate::params::Bits::MAX`].
pub fn papers(items: u64, filters: u64, rate: Rate) -> Result<Papers, ParamError> {
    let (n, s) = checked(items, filters)?;
    let (sigma, beta) = (rate.get(), each_of(rate.get(), s));
    Ok(Papers {
        traditional: papers_standard(items, rate)?,
        cubf: PaperDesign::new(n * beta.ln() / LN_06185, -beta.log2())?,
        abf: PaperDesign::new(s * n * -sigma.log2() / LN_2, -sigma.log2())?,
    })
}

/// The shortest filters whose entries keep the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    /// For entries that store their filters separately.
    pub cubf: Shape,
    /// For entries that store the OR of their filters.
    pub abf: Shape,
}

/// The shortest filters for entries of `filters` filters of `items` keys at `rate`.
///
/// # Errors
/// If a number is zero, or a filter would be longer than [`crate::params::Bits::MAX`].
pub fn exact(items: u64, filters: u64, rate: Rate) -> Result<Exact, ParamError> {
    let (_, s) = checked(items, filters)?;
    let all = items.checked_mul(filters).ok_or(ParamError::Bits(u64::MAX))?;
    Ok(Exact {
        cubf: standard(items, Rate::new(each_of(rate.get(), s))?)?,
        // The OR of all filters is one filter of all keys.
        abf: standard(all, rate)?,
    })
}

fn checked(items: u64, filters: u64) -> Result<(f64, f64), ParamError> {
    match (items, filters) {
        (0, _) | (_, 0) => Err(ParamError::Items(0)),
        (_, Bits::MAX..) => Err(ParamError::Bits(u64::MAX)),
        _ => Ok((items as f64, filters as f64)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::routing::{abf, cubf, wire_bits};

    fn rate(rate: f64) -> Rate {
        Rate::new(rate).unwrap()
    }

    #[test]
    fn designs_are_those_of_paper_5() {
        for (sigma, cubf, abf) in
            [(0.005, (619, 15), (33_084, 8)), (0.001, (719, 17), (43_133, 10))]
        {
            let papers = papers(30, 100, rate(sigma)).unwrap();
            assert_eq!((papers.cubf.bits, papers.cubf.hashes), cubf, "σ={sigma}");
            assert_eq!((papers.abf.bits, papers.abf.hashes), abf, "σ={sigma}");
        }
    }

    /// The paper claims below 5 times (s=100) and 7.5 times (s=10000) the traditional filter.
    #[test]
    fn compressed_sizes_are_larger_than_figures_9_to_11_say_because_those_are_in_nats() {
        for (filters, sigma, times, claim) in
            [(100, 0.001, 5.96, 5.0), (100, 0.1, 6.93, 5.0), (10_000, 0.001, 10.59, 7.5)]
        {
            let papers = papers(30, filters, rate(sigma)).unwrap();
            let shape = Shape::new(papers.abf.bits, papers.abf.hashes).unwrap();
            let ratio = wire_bits(shape, 30) / papers.traditional.bits as f64;
            assert!((ratio / times - 1.0).abs() < 0.006, "s={filters} σ={sigma}: {ratio}");
            assert!(ratio > claim && ratio * LN_2 < claim, "s={filters} σ={sigma}: {ratio}");
        }
    }

    #[test]
    fn entries_of_nothing_or_beyond_the_limit_are_refused() {
        assert!(papers(0, 100, rate(0.01)).is_err());
        assert!(papers(30, 0, rate(0.01)).is_err());
        assert!(exact(30, 0, rate(0.01)).is_err());
        assert!(matches!(exact(1 << 30, 1 << 40, rate(0.01)), Err(ParamError::Bits(_))));
        assert!(matches!(papers(1 << 30, 1 << 20, rate(0.01)), Err(ParamError::Bits(_))));
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn exact_designs_keep_the_bound(
            items in 1_u64..1 << 15, filters in 1_u64..1 << 15, exponent in -15.0_f64..-0.1,
        ) {
            let sigma = 10_f64.powf(exponent);
            let exact = exact(items, filters, rate(sigma)).unwrap();
            prop_assert!(cubf(exact.cubf, items, filters) <= sigma * (1.0 + 1e-9));
            prop_assert!(abf(exact.abf, items, filters) <= sigma * (1.0 + 1e-9));
        }

        #[test]
        fn more_filters_take_longer_filters(
            items in 1_u64..1 << 15, filters in 1_u64..1 << 14, exponent in -12.0_f64..-0.1,
        ) {
            let sigma = rate(10_f64.powf(exponent));
            let (few, many) =
                (exact(items, filters, sigma).unwrap(), exact(items, filters * 2, sigma).unwrap());
            prop_assert!(many.cubf.bits() >= few.cubf.bits() && many.abf.bits() > few.abf.bits());
        }
    }
}
