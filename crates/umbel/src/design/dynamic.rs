//! Components for sets that grow: how many, how long, and until when.
//!
//! A filter that may grow to `s_max` components and is then rebuilt ([`dynamic_component`])
//! is what hosts use. Paper 4 has four scenarios: a set that does not change (section 4.1: a
//! standard filter, [`super::standard`]); one whose largest size and distribution of sizes are
//! known ([`bounded`], section 4.2; the papers' numbers are [`papers_bounded`]); one of which only a first guess is known ([`unbounded`],
//! section 4.3); sets of many hosts, which must share one shape ([`distributed`], section 4.4).
//!
//! Paper 4 rebuilds an overfull standard filter at `n0 ln ε / ln γ`, as if its `k` were chosen
//! again, and a dynamic one at a rounded-up number of components. Both exceed the right limit.
//! [`Unbounded`] has both numbers beside the true limits.

use std::f64::consts::LN_2;

use super::{Distribution, PaperDesign, PlanError, capacity, papers_standard, standard};
use crate::model::standard::false_positive;
use crate::model::{LN_06185, any_of, each_of};
use crate::params::{ParamError, Rate, Shape};

/// The most components that [`bounded`] considers: every one of them is asked at a lookup.
pub const MAX_COMPONENTS_CONSIDERED: u64 = 1024;

/// The shape of one component of a dynamic filter that keeps `rate` until it has
/// `max_components` full components: each is designed for `β = 1 - (1-ε)^(1/s_max)`.
///
/// ```
/// let rate = umbel::Rate::new(0.01)?;
/// let shape = umbel::design::dynamic_component(1000, rate, 8)?;
/// assert!(shape.bits() > umbel::design::standard(1000, rate)?.bits());
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
///
/// # Errors
/// If a number is zero, `max_components` above 65536, or the component would be longer than
/// [`crate::params::Bits::MAX`].
pub fn dynamic_component(
    capacity: u64,
    rate: Rate,
    max_components: u32,
) -> Result<Shape, ParamError> {
    if !(1..=65_536).contains(&max_components) {
        return Err(ParamError::Components(max_components.into()));
    }
    standard(capacity, Rate::new(each_of(rate.get(), f64::from(max_components)))?)
}

/// A dynamic filter for a set of known largest size. Always true: with all components full it
/// keeps the rate it was planned for, by the formula and on average ([`super::standard`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// `s`, for a set of the largest size.
    pub components: u64,
    /// Shape of each component.
    pub component: Shape,
    /// `c = ceil(N/s)`.
    pub capacity: u64,
    /// `Σ r_i · m`: what the filter takes on average.
    pub expected_bits: f64,
    /// What one standard filter for the largest size always takes.
    pub standard_bits: u64,
}

impl Bounded {
    /// `expected_bits` over `standard_bits`.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.expected_bits / self.standard_bits as f64
    }
}

/// The number of components that takes the fewest bits on average and keeps the rate:
/// minimises `Σ r_i · m` with `r_1 = 1`, `r_i = P(card > c(i-1))` and `m` the length of
/// [`dynamic_component`] for the `c = ceil(N/s)` keys that a component is given.
///
/// ```
/// use umbel::design::{Distribution, dynamic};
/// use umbel::filter::{DynamicFilter, StandardFilter};
///
/// let rate = umbel::Rate::new(0.0098)?;
/// let plan = dynamic::bounded(rate, &Distribution::zipf_min(1330, 0.4)?)?;
/// let filter: DynamicFilter<StandardFilter> =
///     DynamicFilter::new(plan.component.into(), plan.capacity, plan.components as u32)?;
/// assert_eq!(filter.capacity(), plan.capacity);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the largest size is zero, or the standard filter for it would be longer than
/// [`crate::params::Bits::MAX`].
pub fn bounded(rate: Rate, distribution: &Distribution) -> Result<Bounded, ParamError> {
    let n = distribution.max_items();
    let standard_bits = standard(n, rate)?.bits();
    let mut best: Option<Bounded> = None;
    for components in fully_needed(n) {
        let capacity = n.div_ceil(components);
        let component = dynamic_component(capacity, rate, components as u32)?;
        let expected_bits = expected_components(distribution, components) * component.bits() as f64;
        if best.is_none_or(|best| expected_bits < best.expected_bits) {
            best = Some(Bounded { components, component, capacity, expected_bits, standard_bits });
        }
    }
    best.ok_or(ParamError::Items(0))
}

/// A dynamic filter for a set of known largest size, by the papers' formulas. Such components
/// overshoot the rate, by half and more if they have few keys: `m` and `k` are rounded separately,
/// and `m` is for `N/s` keys although `ceil(N/s)` are inserted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PapersBounded {
    /// `s`, for a set of the largest size.
    pub components: u64,
    /// Shape of each component: `m(s)` and `k`.
    pub component: PaperDesign,
    /// `c = ceil(N/s)`.
    pub capacity: u64,
    /// `Σ r_i · m(s)`: what the filter takes on average.
    pub expected_bits: f64,
    /// What one standard filter for the largest size always takes.
    pub standard_bits: u64,
}

impl PapersBounded {
    /// `expected_bits` over `standard_bits`.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.expected_bits / self.standard_bits as f64
    }
}

/// The papers' plan, for comparison: minimises `Σ r_i · m(s)` with `r_1 = 1`, `r_i = P(card >
/// c(i-1))`, `m(s) = ceil((N/s) ln β / ln 0.6185)` and `β = 1 - (1-ε)^(1/s)` (paper 4, section
/// 4.2). Use [`bounded`] to make a filter.
///
/// # Errors
/// As [`bounded`].
pub fn papers_bounded(
    rate: Rate,
    distribution: &Distribution,
) -> Result<PapersBounded, ParamError> {
    papers_bounded_choices(rate, distribution)?
        .min_by(|a, b| a.expected_bits.total_cmp(&b.expected_bits))
        .ok_or(ParamError::Items(0))
}

/// The candidates of [`papers_bounded`]: every number of components that is fully needed, in rising
/// order, up to [`MAX_COMPONENTS_CONSIDERED`].
///
/// # Errors
/// As [`bounded`].
pub fn papers_bounded_choices(
    rate: Rate,
    distribution: &Distribution,
) -> Result<impl Iterator<Item = PapersBounded>, ParamError> {
    let standard_bits = papers_standard(distribution.max_items(), rate)?.bits;
    Ok(fully_needed(distribution.max_items())
        .map(move |s| papers_bounded_with(s, rate, distribution, standard_bits)))
}

fn papers_bounded_with(
    s: u64,
    rate: Rate,
    distribution: &Distribution,
    standard_bits: u64,
) -> PapersBounded {
    let (n, components) = (distribution.max_items(), s as f64);
    let beta = each_of(rate.get(), components);
    let m = (n as f64 / components * beta.ln() / LN_06185).ceil();
    let c = n.div_ceil(s);
    let hashes = (m / c as f64 * LN_2).ceil() as u32;
    PapersBounded {
        components: s,
        component: PaperDesign { bits: m as u64, hashes },
        capacity: c,
        expected_bits: expected_components(distribution, s) * m,
        standard_bits,
    }
}

/// The numbers of components that a set of `n` keys fills: with `c` rounded up, fewer than `s`
/// may hold everything, and such an `s` is the same plan as a smaller one.
fn fully_needed(n: u64) -> impl Iterator<Item = u64> {
    (1..=n.min(MAX_COMPONENTS_CONSIDERED)).filter(move |&s| n.div_ceil(n.div_ceil(s)) == s)
}

/// `Σ r_i`: how many of `s` components are in use on average.
fn expected_components(distribution: &Distribution, s: u64) -> f64 {
    let capacity = distribution.max_items().div_ceil(s);
    1.0 + (1..s).map(|i| distribution.beyond(capacity * i)).sum::<f64>()
}

/// Dynamic filters of one shape for the sets of many hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distributed {
    /// The shape that all hosts share, and how many components the largest set takes.
    pub each: Bounded,
    /// How many hosts there are.
    pub hosts: u64,
}

impl Distributed {
    /// Bits of all hosts' filters together, which the plan minimises. This is also what is sent
    /// when every host sends its filter once.
    #[must_use]
    pub fn total_bits(&self) -> f64 {
        self.each.expected_bits * self.hosts as f64
    }

    /// The same with standard filters, all as long as the largest set needs.
    #[must_use]
    pub fn standard_total_bits(&self) -> f64 {
        self.each.standard_bits as f64 * self.hosts as f64
    }
}

/// The shape for the sets of `hosts` hosts that takes the fewest bits in all (paper 4, section
/// 4.4): hosts must agree on one shape, so with standard filters small sets pay for the
/// largest. `sizes` is how many keys they hold; if every host's number is known, list them with
/// [`Distribution::observed`], and the total is exact.
///
/// ```
/// use umbel::design::{Distribution, dynamic::distributed};
///
/// // One large host, nine small ones.
/// let sizes = Distribution::observed(10_000, vec![(10_000, 1.0), (500, 9.0)])?;
/// let plan = distributed(umbel::Rate::new(0.01)?, &sizes, 10)?;
/// assert!(plan.total_bits() < 0.3 * plan.standard_total_bits());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If there are no hosts or more than 10^9, or as [`bounded`].
pub fn distributed(rate: Rate, sizes: &Distribution, hosts: u64) -> Result<Distributed, PlanError> {
    if !(1..=1_000_000_000).contains(&hosts) {
        return Err(PlanError::Hosts(hosts));
    }
    Ok(Distributed { each: bounded(rate, sizes)?, hosts })
}

/// How many keys two filters can hold for a set of unknown size, between the rate they start with
/// and the rate they must not exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unbounded {
    /// Shape of the standard filter, and of each component of the dynamic one.
    pub shape: Shape,
    /// Most keys of the standard filter: `-(m/k) ln(1 - γ^(1/k))`, `k` being what it was.
    pub standard_rebuild_at: f64,
    /// Most keys of the dynamic filter: `n0 · floor(ln(1-γ)/ln(1-ε))`.
    pub dynamic_rebuild_at: f64,
    /// The paper's `n0 ln ε / ln γ`, at which the standard filter is long past `γ`.
    pub papers_standard_rebuild_at: f64,
    /// The paper's `n0 · ceil(ln(1-γ)/ln(1-ε))`, which overshoots `γ`.
    pub papers_dynamic_rebuild_at: f64,
    papers_components: f64,
}

impl Unbounded {
    /// Whether the dynamic filter holds more keys before it must be rebuilt. It does not if the two
    /// limits are so close that it has only one component; paper 4 then advises to plan for a
    /// distribution of sizes with the right limit ([`bounded`]).
    #[must_use]
    pub fn is_dynamic_better(&self) -> bool {
        self.dynamic_rebuild_at > self.standard_rebuild_at
    }

    /// The rate of the standard filter where the paper rebuilds it.
    #[must_use]
    pub fn papers_standard_rate(&self) -> f64 {
        false_positive(self.shape, self.papers_standard_rebuild_at as u64)
    }

    /// The rate of the dynamic filter where the paper rebuilds it, its components at `left` each.
    #[must_use]
    pub fn papers_dynamic_rate(&self, left: Rate) -> f64 {
        any_of(left.get(), self.papers_components)
    }
}

/// Plans for a set of which only a first guess of the size is known (paper 4, section 4.3).
/// Numbers of keys are whole, but may be beyond what an integer holds.
///
/// # Errors
/// If `items` is zero, `right` not above `left`, or the filter would be longer than
/// [`crate::params::Bits::MAX`].
pub fn unbounded(items: u64, left: Rate, right: Rate) -> Result<Unbounded, PlanError> {
    let (n0, epsilon, gamma) = (items as f64, left.get(), right.get());
    if epsilon >= gamma {
        return Err(PlanError::Limits { left: epsilon, right: gamma });
    }
    let shape = standard(items, left)?;
    let components = (-gamma).ln_1p() / (-epsilon).ln_1p();
    // Rounding may have made an integer slightly too small: check the next one.
    let whole = components.floor();
    let kept = if any_of(epsilon, whole + 1.0) <= gamma { whole + 1.0 } else { whole };
    Ok(Unbounded {
        shape,
        standard_rebuild_at: capacity(shape, right) as f64,
        dynamic_rebuild_at: n0 * kept,
        papers_standard_rebuild_at: (n0 * epsilon.ln() / gamma.ln()).floor(),
        papers_dynamic_rebuild_at: n0 * components.ceil(),
        papers_components: components.ceil(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::design::average_rate;
    use crate::model::dynamic::{Component, false_positive as dynamic_rate};
    use crate::model::standard::false_positive;

    fn rate(rate: f64) -> Rate {
        Rate::new(rate).unwrap()
    }

    /// N=1330, ε=0.0098, Zipf parameter 0.4, normal(665, 20).
    fn papers(distribution: &Distribution) -> PapersBounded {
        papers_bounded(rate(0.0098), distribution).unwrap()
    }

    #[test]
    fn savings_are_those_of_paper_4() {
        for (name, distribution, ratio, components) in [
            ("minimum Zipf", Distribution::zipf_min(1330, 0.4).unwrap(), 0.644, 8),
            ("maximum Zipf", Distribution::zipf_max(1330, 0.4).unwrap(), 0.946, 3),
            ("uniform", Distribution::uniform(1330), 0.808, 6),
            ("normal", Distribution::normal(1330, 665.0, 20.0).unwrap(), 0.802, 6),
        ] {
            let plan = papers(&distribution);
            assert_eq!(plan.standard_bits, 12_805);
            assert!((plan.ratio() - ratio).abs() < 0.001, "{name}: {}", plan.ratio());
            assert_eq!(plan.components, components, "{name}");
            // Components that keep the rate take a little more, and so does one filter.
            let kept = bounded(rate(0.0098), &distribution).unwrap();
            assert!((kept.ratio() - ratio).abs() < 0.005, "{name}: {}", kept.ratio());
            assert!(kept.expected_bits < 1.01 * plan.expected_bits, "{name}: {kept:?}");
        }
    }

    #[test]
    fn random_zipf_saves_about_19_percent_whatever_the_seed() {
        let ratios = (0..20)
            .map(|seed| papers(&Distribution::zipf_random(1330, 0.4, seed).unwrap()).ratio());
        let mean = ratios.sum::<f64>() / 20.0;
        assert!((mean - 0.81).abs() < 0.01, "{mean}");
    }

    /// As variance, the paper's 20 would be a deviation of 4.47, which saves 24 %, not its 20 %.
    #[test]
    fn the_papers_normal_distribution_has_a_deviation_of_20() {
        let of = |deviation| papers(&Distribution::normal(1330, 665.0, deviation).unwrap()).ratio();
        assert!((of(20.0) - 0.80).abs() < 0.005, "{}", of(20.0));
        assert!((of(20_f64.sqrt()) - 0.764).abs() < 0.001, "{}", of(20_f64.sqrt()));
    }

    #[test]
    fn a_set_that_is_always_full_is_best_in_one_filter() {
        let always = Distribution::observed(1330, vec![(1330, 1.0)]).unwrap();
        let plan = papers(&always);
        assert_eq!((plan.components, plan.component.bits), (1, 12_805));
        assert_eq!(plan.ratio(), 1.0);
    }

    #[test]
    fn the_total_of_all_hosts_is_the_sum_of_what_each_takes() {
        let sizes: Vec<u64> = (1..=40).map(|i| i * i).collect();
        let listed = sizes.iter().map(|size| (*size, 1.0)).collect();
        let seen = Distribution::observed(1600, listed).unwrap();
        let plan = distributed(rate(0.01), &seen, 40).unwrap();
        let total: u64 = sizes
            .iter()
            .map(|size| size.div_ceil(plan.each.capacity) * plan.each.component.bits())
            .sum();
        assert!((plan.total_bits() - total as f64).abs() < 1e-6 * total as f64);
        assert!(plan.total_bits() < plan.standard_total_bits());
        assert!(distributed(rate(0.01), &seen, 0).is_err());
    }

    /// With few keys, the papers' filters claim at least twice as many absent keys as planned.
    #[test]
    fn planned_components_keep_the_rate_where_the_papers_break_it() {
        for items in [7, 50, 100] {
            let sizes = Distribution::uniform(items);
            let papers = papers_bounded(rate(0.01), &sizes).unwrap();
            let shape = Shape::new(papers.component.bits, papers.component.hashes).unwrap();
            let full = dynamic_rate(Component::new(shape, papers.capacity), items);
            assert!(full > 0.012, "n={items}: {full}");
            let plan = bounded(rate(0.01), &sizes).unwrap();
            let full = dynamic_rate(Component::new(plan.component, plan.capacity), items);
            assert!(full <= 0.01, "n={items}: {full}");
        }
    }

    #[test]
    fn sets_that_are_always_small_take_many_small_components() {
        let never = Distribution::observed(1330, vec![(1, 1.0)]).unwrap();
        assert!(papers(&never).ratio() < 0.01);
    }

    #[test]
    fn unknown_sizes_have_the_true_limits_beside_the_papers() {
        let plan = unbounded(1000, rate(0.01), rate(0.1)).unwrap();
        assert_eq!((plan.shape.bits(), plan.shape.hashes()), (9593, 7));
        assert!((plan.standard_rebuild_at - 1740.0).abs() < 5.0, "{}", plan.standard_rebuild_at);
        assert_eq!(plan.dynamic_rebuild_at, 10_000.0);
        assert_eq!(plan.papers_standard_rebuild_at, 2000.0);
        assert_eq!(plan.papers_dynamic_rebuild_at, 11_000.0);
        // What the paper calls 0.1 is 0.157.
        assert!((false_positive(plan.shape, 2000) - 0.157).abs() < 0.001);
    }

    /// A limit that exactly fits a number of components: the logarithms may give slightly less.
    #[test]
    fn as_many_components_as_make_the_right_limit_are_kept() {
        for left in [1e-9, 0.001, 0.01, 0.03] {
            for components in 2..30_u32 {
                let right = any_of(left, components.into());
                let plan = unbounded(1000, rate(left), rate(right)).unwrap();
                let kept = 1000.0 * f64::from(components);
                assert_eq!(plan.dynamic_rebuild_at, kept, "{left} and {right}");
            }
        }
    }

    #[test]
    fn limits_in_the_wrong_order_are_refused() {
        let swapped = unbounded(1000, rate(0.1), rate(0.01));
        assert!(matches!(swapped, Err(PlanError::Limits { .. })));
        assert!(unbounded(1000, rate(0.1), rate(0.1)).is_err());
        assert!(unbounded(0, rate(0.01), rate(0.1)).is_err());
    }

    #[test]
    fn components_outside_their_range_are_refused() {
        assert!(dynamic_component(1000, rate(0.01), 0).is_err());
        assert!(dynamic_component(1000, rate(0.01), 65_537).is_err());
        assert!(dynamic_component(0, rate(0.01), 8).is_err());
        assert_eq!(dynamic_component(1000, rate(0.01), 1), standard(1000, rate(0.01)));
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn plans_for_any_distribution_keep_the_rate(
            items in 1_u64..3000, exponent in -9.0_f64..-0.1, zipf in 0.0_f64..3.0,
        ) {
            let target = 10_f64.powf(exponent);
            for sizes in [
                Distribution::uniform(items),
                Distribution::zipf_min(items, zipf).unwrap(),
                Distribution::zipf_max(items, zipf).unwrap(),
            ] {
                let plan = bounded(rate(target), &sizes).unwrap();
                prop_assert!(plan.components * plan.capacity >= items);
                let each = average_rate(plan.component, plan.capacity);
                let all = any_of(each, plan.components as f64);
                prop_assert!(all <= 1.002 * target * (1.0 + 1e-9), "{plan:?}: {all}");
                prop_assert!(plan.ratio() <= 1.0, "one component is a choice, too");
            }
        }

        #[test]
        fn all_components_full_keep_the_rate(
            items in 1_u64..1 << 24, s_max in 1_u32..=65_536, exponent in -15.0_f64..-0.1,
        ) {
            let target = 10_f64.powf(exponent);
            let shape = dynamic_component(items, rate(target), s_max).unwrap();
            let full = dynamic_rate(Component::new(shape, items), items * u64::from(s_max));
            prop_assert!(full <= target * (1.0 + 1e-9), "{full} against {target}");
        }

        #[test]
        fn rebuilding_at_the_stated_limits_keeps_the_right_rate(
            items in 1_u64..1 << 24, exponent in -12.0_f64..-1.0, wider in 1.01_f64..9.0,
        ) {
            let (left, right) = (10_f64.powf(exponent), wider * 10_f64.powf(exponent));
            let plan = unbounded(items, rate(left), rate(right)).unwrap();
            prop_assert!(false_positive(plan.shape, plan.standard_rebuild_at as u64) <= right);
            let component = Component::new(plan.shape, items);
            let grown = dynamic_rate(component, plan.dynamic_rebuild_at as u64);
            prop_assert!(grown <= right * (1.0 + 1e-9));
            prop_assert!(plan.standard_rebuild_at >= items as f64);
            prop_assert!(plan.papers_dynamic_rebuild_at >= plan.dynamic_rebuild_at);
        }
    }
}
