//! Distributions of the size of a set, from which dynamic filters are planned.
//!
//! A plan needs only the probability that the set holds more than x keys
//! ([`Distribution::beyond`]), for sets of 1 to `max_items` keys. There are the five kinds of paper
//! 4 (section 4.2) and observed cardinalities.
//!
//! Paper 4 gives its normal distribution as variance 20; its own result needs a standard
//! deviation of 20, and that is what [`Distribution::normal`] takes.

use super::PlanError;

/// Probabilities of the cardinalities 1 to `max_items`.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    max_items: u64,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Uniform,
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// The smallest cardinality is the most likely.
    ZipfMin(Harmonic),
    /// The largest cardinality is the most likely.
    ZipfMax(Harmonic),
    /// Cardinalities in rising order, each with the probability of being at or above it.
    Listed(Vec<(u64, f64)>),
}

impl Distribution {
    /// The largest `max_items` of a distribution that is listed value by value.
    pub const MAX_LISTED: u64 = 10_000_000;

    /// Every cardinality is as likely as any other.
    #[must_use]
    pub fn uniform(max_items: u64) -> Self {
        Self { max_items, kind: Kind::Uniform }
    }

    /// A bell curve, cut off at 1 and at `max_items`.
    ///
    /// # Errors
    /// If the mean is not a possible cardinality, or the standard deviation not between 10^-9
    /// and `max_items`.
    pub fn normal(max_items: u64, mean: f64, deviation: f64) -> Result<Self, PlanError> {
        let max = max_items as f64;
        within("the mean", 1.0, max, mean)?;
        within("the standard deviation", 1e-9, max, deviation)?;
        Ok(Self { max_items, kind: Kind::Normal { mean, deviation } })
    }

    /// Zipf, minimum: the probability of cardinality `i` is proportional to `i^-exponent`.
    ///
    /// # Errors
    /// If the exponent is not between 0 and 10.
    pub fn zipf_min(max_items: u64, exponent: f64) -> Result<Self, PlanError> {
        within("the Zipf parameter", 0.0, 10.0, exponent)?;
        Ok(Self { max_items, kind: Kind::ZipfMin(Harmonic::new(exponent)) })
    }

    /// Zipf, maximum: the largest cardinality has the first rank.
    ///
    /// # Errors
    /// If the exponent is not between 0 and 10.
    pub fn zipf_max(max_items: u64, exponent: f64) -> Result<Self, PlanError> {
        within("the Zipf parameter", 0.0, 10.0, exponent)?;
        Ok(Self { max_items, kind: Kind::ZipfMax(Harmonic::new(exponent)) })
    }

    /// Zipf, random: ranks are assigned to the cardinalities by a shuffle seeded with `seed`.
    ///
    /// # Errors
    /// If the exponent is not between 0 and 10, or `max_items` above [`Self::MAX_LISTED`].
    pub fn zipf_random(max_items: u64, exponent: f64, seed: u64) -> Result<Self, PlanError> {
        within("the Zipf parameter", 0.0, 10.0, exponent)?;
        within("the largest set of zipf-random", 1.0, Self::MAX_LISTED as f64, max_items as f64)?;
        let mut chances: Vec<f64> =
            (1..=max_items).map(|rank| (rank as f64).powf(-exponent)).collect();
        shuffle(&mut chances, seed);
        let listed = (1..=max_items).zip(chances).collect();
        Ok(Self { max_items, kind: Kind::Listed(summed_from_above(listed)) })
    }

    /// Cardinalities as observed, each with a weight, in any order and with repeats.
    ///
    /// # Errors
    /// If a cardinality is above `max_items`, a weight below 0 or not finite, or all are 0.
    pub fn observed(max_items: u64, mut seen: Vec<(u64, f64)>) -> Result<Self, PlanError> {
        for &(items, weight) in &seen {
            within("an observed cardinality", 0.0, max_items as f64, items as f64)?;
            within("a weight", 0.0, 1e15, weight)?;
        }
        if !seen.iter().any(|&(_, weight)| weight > 0.0) {
            return Err(PlanError::NothingObserved);
        }
        seen.sort_unstable_by_key(|&(items, _)| items);
        Ok(Self { max_items, kind: Kind::Listed(summed_from_above(seen)) })
    }

    /// The largest possible cardinality.
    #[must_use]
    pub fn max_items(&self) -> u64 {
        self.max_items
    }

    /// Probability that the set holds more than `items` keys.
    #[must_use]
    pub fn beyond(&self, items: u64) -> f64 {
        if items >= self.max_items {
            return 0.0;
        }
        let (x, max) = (items as f64, self.max_items as f64);
        let chance = match &self.kind {
            Kind::Uniform => (max - x) / max,
            Kind::Normal { mean, deviation } => {
                // Continuity correction: a cardinality stands for the interval of half a key on
                // each side.
                let above = |items: f64| normal_above((items + 0.5 - mean) / deviation);
                (above(x) - above(max)) / (above(0.0) - above(max))
            }
            Kind::ZipfMin(sum) => 1.0 - sum.up_to(x) / sum.up_to(max),
            Kind::ZipfMax(sum) => sum.up_to(max - x) / sum.up_to(max),
            Kind::Listed(listed) => {
                let next = listed.partition_point(|&(cardinality, _)| cardinality <= items);
                listed.get(next).map_or(0.0, |&(_, chance)| chance)
            }
        };
        chance.clamp(0.0, 1.0)
    }
}

fn within(what: &'static str, min: f64, max: f64, given: f64) -> Result<(), PlanError> {
    if (min..=max).contains(&given) {
        Ok(())
    } else {
        Err(PlanError::Distribution { what, min, max, given })
    }
}

/// Turns weights into sums of the weights at or above each value.
fn summed_from_above(mut listed: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let mut above = 0.0;
    for (_, weight) in listed.iter_mut().rev() {
        above += *weight;
        *weight = above;
    }
    for (_, weight) in &mut listed {
        *weight /= above;
    }
    listed
}

/// Fisher and Yates, fed by `SplitMix64`.
fn shuffle(values: &mut [f64], seed: u64) {
    let mut state = seed;
    for i in (1..values.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let random = u128::from(z ^ (z >> 31));
        values.swap(i, ((random * (i as u128 + 1)) >> 64) as usize);
    }
}

/// `Σ i^-a` for `i` from 1 to `n`: the first terms are summed one by one in advance, because plans
/// need thousands of sums; the rest by Euler and Maclaurin.
#[derive(Debug, Clone, PartialEq)]
struct Harmonic {
    a: f64,
    /// Sums of the first 0, 1, 2 … terms.
    near: Vec<f64>,
}

impl Harmonic {
    const ONE_BY_ONE: u32 = 256;

    fn new(a: f64) -> Self {
        let mut near = vec![0.0];
        for i in 1..=Self::ONE_BY_ONE {
            near.push(near[near.len() - 1] + f64::from(i).powf(-a));
        }
        Self { a, near }
    }

    fn up_to(&self, n: f64) -> f64 {
        let (a, from) = (self.a, f64::from(Self::ONE_BY_ONE));
        let near = self.near[n.min(from) as usize];
        if n <= from {
            return near;
        }
        let (term, slope) = (|x: f64| x.powf(-a), |x: f64| -a * x.powf(-a - 1.0));
        let grown = (n / from).ln();
        let integral = match 1.0 - a {
            0.0 => grown,
            b => from.powf(b) * (b * grown).exp_m1() / b,
        };
        near + integral + (term(n) - term(from)) / 2.0 + (slope(n) - slope(from)) / 12.0
    }
}

/// Probability that a standard normal variable is above `z`: half of `erfc(z/√2)`, by a Chebyshev
/// fit with an error below 1.2e-7 of the value (Press et al., Numerical Recipes, "erfcc").
fn normal_above(z: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = FIT.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = 0.5 * t * (polynomial - x * x).exp();
    if z >= 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uniform_chances_are_counted() {
        let uniform = Distribution::uniform(10);
        assert_eq!(uniform.beyond(0), 1.0);
        assert!((uniform.beyond(3) - 0.7).abs() < 1e-15);
        assert_eq!(uniform.beyond(10), 0.0);
        assert_eq!(uniform.beyond(u64::MAX), 0.0);
    }

    #[test]
    fn zipf_chances_are_sums_of_powers() {
        for a in [0.0, 0.4, 1.0, 1.5] {
            let weights: Vec<f64> = (1..=5000).map(|i| f64::from(i).powf(-a)).collect();
            let total: f64 = weights.iter().sum();
            for x in [0, 1, 250, 256, 257, 1000, 4999] {
                let low = weights[..x].iter().sum::<f64>() / total;
                let min = Distribution::zipf_min(5000, a).unwrap().beyond(x as u64);
                assert!((min - (1.0 - low)).abs() < 1e-9, "min a={a} x={x}");
                let high = weights[..5000 - x].iter().sum::<f64>() / total;
                let max = Distribution::zipf_max(5000, a).unwrap().beyond(x as u64);
                assert!((max - high).abs() < 1e-9, "max a={a} x={x}");
            }
        }
    }

    #[test]
    fn a_bell_curve_has_its_tails() {
        assert!((normal_above(0.0) - 0.5).abs() < 1e-7);
        assert!((normal_above(1.959_964) - 0.025).abs() < 1e-7);
        assert!((normal_above(-1.0) - 0.841_344_746).abs() < 2e-7);
        let normal = Distribution::normal(1330, 665.0, 20.0).unwrap();
        assert!((normal.beyond(664) - normal_above(-0.025)).abs() < 1e-6);
        assert!(normal.beyond(800) < 1e-9 && normal.beyond(500) > 1.0 - 1e-9);
    }

    #[test]
    fn a_shuffle_repeats_with_its_seed_and_loses_nothing() {
        let random = |seed| Distribution::zipf_random(1000, 0.4, seed).unwrap();
        assert_eq!(random(7), random(7));
        assert_ne!(random(7), random(8));
        let mut values: Vec<f64> = (0..100).map(f64::from).collect();
        shuffle(&mut values, 1);
        assert!(!values.is_sorted());
        values.sort_by(f64::total_cmp);
        assert!(values.into_iter().eq((0..100).map(f64::from)));
    }

    #[test]
    fn observed_sets_count_by_weight() {
        let seen = vec![(10, 1.0), (2, 3.0), (10, 1.0), (0, 5.0)];
        let observed = Distribution::observed(20, seen).unwrap();
        assert_eq!(observed.beyond(0), 0.5);
        assert_eq!(observed.beyond(2), 0.2);
        assert_eq!(observed.beyond(10), 0.0);
    }

    #[test]
    fn parameters_outside_their_range_are_refused() {
        assert!(Distribution::normal(100, 0.0, 1.0).is_err());
        assert!(Distribution::normal(100, 50.0, 0.0).is_err());
        assert!(Distribution::normal(100, f64::NAN, 1.0).is_err());
        assert!(Distribution::zipf_min(100, -1.0).is_err());
        assert!(Distribution::zipf_max(100, f64::INFINITY).is_err());
        assert!(Distribution::zipf_random(1 << 40, 0.4, 1).is_err());
        assert!(Distribution::observed(100, vec![(101, 1.0)]).is_err());
        assert!(Distribution::observed(100, vec![(50, -1.0)]).is_err());
        assert!(Distribution::observed(100, vec![]).is_err());
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn chances_fall_from_one_to_none(
            max_items in 1_u64..100_000, a in 0.0_f64..3.0, share in 0.01_f64..1.0, seed: u64,
        ) {
            let mean = 1.0 + share * (max_items - 1) as f64;
            for distribution in [
                Distribution::uniform(max_items),
                Distribution::normal(max_items, mean, share * max_items as f64).unwrap(),
                Distribution::zipf_min(max_items, a).unwrap(),
                Distribution::zipf_max(max_items, a).unwrap(),
                Distribution::zipf_random(max_items, a, seed).unwrap(),
            ] {
                prop_assert!((distribution.beyond(0) - 1.0).abs() < 1e-9);
                prop_assert_eq!(distribution.beyond(max_items), 0.0);
                let steps = (0..=10).map(|i| distribution.beyond(max_items * i / 10));
                prop_assert!(steps.collect::<Vec<_>>().windows(2).all(|w| w[1] <= w[0] + 1e-12));
            }
        }
    }
}
