//! A dynamic filter: homogeneous components, filled one after the other.
//!
//! Each component holds up to its capacity `c`; keys go to the first one with room, so without
//! removals all are full but the last. More components claim more absent keys: the rate grows with
//! their number, but slowly, while that of one overfull filter would grow very fast.
//!
//! Paper 4, equations 1 to 14.

use super::standard::{self, fill_at, load, power};
use super::{any_of, ln_none_of, one_minus_exp};
use crate::params::Shape;

/// One of the homogeneous components: its shape and how many keys it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    shape: Shape,
    /// Never zero.
    capacity: u64,
}

impl Component {
    /// A component of this shape for at least one key; a capacity of zero counts as one.
    #[must_use]
    pub fn new(shape: Shape, capacity: u64) -> Self {
        Self { shape, capacity: capacity.max(1) }
    }

    /// How many components `items` keys need, at least one: `s = ceil(n/c)`.
    #[must_use]
    pub fn needed_for(&self, items: u64) -> u64 {
        items.div_ceil(self.capacity).max(1)
    }

    /// `f(c)`, the rate of a full component.
    fn full(&self) -> f64 {
        standard::false_positive(self.shape, self.capacity)
    }

    /// `ln` of the probability that none of the components that hold `items` keys claims an absent
    /// key.
    fn ln_none(&self, items: u64) -> f64 {
        let (full, rest) = (items / self.capacity, items % self.capacity);
        let last = standard::false_positive(self.shape, rest);
        ln_none_of(self.full(), full as f64) + ln_none_of(last, 1.0)
    }
}

/// The rate with `items` keys and no removals:
/// `1 - (1 - f(c))^floor(n/c) · (1 - f(n mod c))` (equation 3).
///
/// ```
/// use umbel::model::dynamic::{Component, false_positive};
///
/// let component = Component::new(umbel::Shape::new(1280, 7)?, 133);
/// assert!((false_positive(component, 1330) - 0.0942).abs() < 0.0001);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[must_use]
pub fn false_positive(component: Component, items: u64) -> f64 {
    one_minus_exp(component.ln_none(items))
}

/// The rate of one standard filter as long as all components together, rebuilt from the keys: `(1 -
/// e^(-kn/(m·ceil(n/c))))^k` (equation 14).
#[must_use]
pub fn rebuilt_false_positive(component: Component, items: u64) -> f64 {
    let each = items as f64 / component.needed_for(items) as f64;
    power(fill_at(&component.shape, each), component.shape.hashes())
}

/// The rate of the union of two dynamic filters, which keeps all components of both (equation 4).
#[must_use]
pub fn union_false_positive(component: Component, items_a: u64, items_b: u64) -> f64 {
    one_minus_exp(component.ln_none(items_a) + component.ln_none(items_b))
}

/// Shares of keys that more than one component claims. Such keys cannot be removed by the
/// filter alone, which does not know the component they went to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClaimedTwice {
    /// Of the keys in all components but the last, `f1` (equation 9).
    pub first: f64,
    /// Of the keys in the last one, `f2` (equation 10): the larger, and the paper's bound.
    pub last: f64,
}

/// Bounds on the share of keys claimed by several components (equations 9 and 10).
#[must_use]
pub fn claimed_twice(component: Component, items: u64) -> ClaimedTwice {
    let before_last = component.needed_for(items) - 1;
    if before_last == 0 {
        return ClaimedTwice { first: 0.0, last: 0.0 };
    }
    let (y, in_last) = (component.full(), items - before_last * component.capacity);
    let f_last = standard::false_positive(component.shape, in_last);
    let none = ln_none_of(y, (before_last - 1) as f64) + ln_none_of(f_last, 1.0);
    ClaimedTwice { first: one_minus_exp(none), last: any_of(y, before_last as f64) }
}

/// Length of a standard filter over that of `components` full ones at the same rate:
/// `m1/(s·m) = -kc / (m ln(1 - (1-(1-y)^s)^(1/k)))`, `y = f(c)` (equation 13).
#[must_use]
pub fn standard_over_dynamic(component: Component, components: u64) -> f64 {
    let k = f64::from(component.shape.hashes());
    let fill = any_of(component.full(), components as f64).powf(1.0 / k);
    load(&component.shape, component.capacity as f64) / -(-fill).ln_1p()
}

/// Whether checking for the key before each insertion saves a whole component: `n·f2(n)/c >= 1`
/// (paper 4, section 3.5.1). For plain components only: with counting ones a later removal of a key
/// that was never inserted would lose members.
#[must_use]
pub fn check_before_insert_pays(component: Component, items: u64) -> bool {
    let expected = items as f64 * claimed_twice(component, items).last;
    expected / component.capacity as f64 >= 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The component of paper 4's experiments.
    fn papers() -> Component {
        Component::new(Shape::new(1280, 7).unwrap(), 133)
    }

    #[test]
    fn at_ten_capacities_the_rates_are_those_of_the_paper() {
        let full = papers().full();
        assert!((full - 0.00985).abs() < 5e-6);
        let one_filter = standard::false_positive(papers().shape, 1330);
        assert!((one_filter / full - 101.0).abs() < 0.5, "{}", one_filter / full);
        let dynamic = false_positive(papers(), 1330);
        assert!((dynamic / full - 9.57).abs() < 0.005, "{}", dynamic / full);
        assert!((rebuilt_false_positive(papers(), 1330) / full - 1.0).abs() < 1e-12);
    }

    #[test]
    fn up_to_one_capacity_a_dynamic_filter_is_a_standard_one() {
        for items in [0, 1, 100, 133] {
            let standard = standard::false_positive(papers().shape, items);
            assert!((false_positive(papers(), items) - standard).abs() < 1e-15);
            assert!((rebuilt_false_positive(papers(), items) - standard).abs() < 1e-15);
            assert_eq!(claimed_twice(papers(), items).last, 0.0);
            assert_eq!(papers().needed_for(items), 1);
        }
        assert_eq!(papers().needed_for(134), 2);
    }

    #[test]
    fn shares_claimed_twice_follow_equations_9_and_10() {
        let y = papers().full();
        let claimed = claimed_twice(papers(), 1330);
        assert!((claimed.first - (1.0 - (1.0 - y).powi(9))).abs() < 1e-12);
        assert!((claimed.last - (1.0 - (1.0 - y).powi(9))).abs() < 1e-12);
        // Ten keys in the last component hardly claim an absent key.
        let claimed = claimed_twice(papers(), 1207);
        assert!((claimed.first - (1.0 - (1.0 - y).powi(8))).abs() < 1e-8);
        assert!(claimed.last > claimed.first);
    }

    #[test]
    fn asking_first_pays_beyond_the_papers_limits_only() {
        let pays = |component: Component, s: u64| check_before_insert_pays(component, s * 133);
        assert!(!pays(papers(), 10));
        assert!(pays(papers(), 11));
        let tight = Component::new(Shape::new(1920, 10).unwrap(), 133);
        assert!(tight.full() <= 0.001 && !pays(tight, 20));
    }

    #[test]
    fn one_component_is_as_long_as_a_standard_filter_and_several_are_longer() {
        assert!((standard_over_dynamic(papers(), 1) - 1.0).abs() < 1e-12);
        let ratios: Vec<f64> = (1..20).map(|s| standard_over_dynamic(papers(), s)).collect();
        assert!(ratios.windows(2).all(|pair| pair[1] < pair[0]));
        assert!(ratios[9] > 0.5, "{}", ratios[9]);
    }

    #[test]
    fn a_union_keeps_the_rates_of_both() {
        let (a, b) = (false_positive(papers(), 500), false_positive(papers(), 700));
        let both = union_false_positive(papers(), 500, 700);
        assert!((both - (1.0 - (1.0 - a) * (1.0 - b))).abs() < 1e-12);
        assert_eq!(union_false_positive(papers(), 500, 0), a);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn growth_raises_the_rate_slower_than_in_one_overfull_filter(
            hashes in 1_u32..=64, capacity in 1_u64..1_000_000, items in 0_u64..1 << 30,
        ) {
            let bits = (capacity as f64 * f64::from(hashes) / std::f64::consts::LN_2).ceil() as u64;
            let component = Component::new(Shape::new(bits, hashes).unwrap(), capacity);
            let here = false_positive(component, items);
            prop_assert!((0.0..=1.0).contains(&here));
            prop_assert!(false_positive(component, items + capacity) >= here);
            let one_filter = standard::false_positive(component.shape, items);
            prop_assert!(here <= one_filter * (1.0 + 1e-9));
            prop_assert!(rebuilt_false_positive(component, items) <= here * (1.0 + 1e-9));
            let claimed = claimed_twice(component, items);
            prop_assert!(claimed.first <= claimed.last * (1.0 + 1e-9));
        }
    }
}
