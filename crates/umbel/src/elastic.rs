//! A filter for a set of unknown size, which keeps its rate between two limits by itself.
//!
//! Starts with a guess `n0` at the left rate ε and grows by components while the right rate
//! γ allows it, `s = floor(ln(1-γ)/ln(1-ε))` of them. Before one key too many is added, the
//! filter is built again from the catalogue, at ε, with components for the keys that it holds
//! then; if the limits allow one component only, with one for twice as many.
//!
//! Always true: by formula the rate never exceeds γ. Every key of the catalogue is claimed.
//! Rebuilds are counted. The next rebuild happens only when the number of keys has doubled, so that
//! all rebuilds together take time in proportion to the number of keys. Paper 4, section 4.3, with
//! its limit rounded down so that it is kept (see `design::dynamic::unbounded`).

use std::fmt;

use crate::catalogue::Catalogue;
use crate::design::{self, PlanError};
use crate::filter::{DynamicFilter, Membership};
use crate::key_hash::KeyHasher;
use crate::model::any_of;
use crate::params::{ParamError, Rate};
use crate::scheme::Scheme;

/// A catalogue with a filter that is rebuilt when its rate nears the right limit.
///
/// ```
/// use umbel::Rate;
/// use umbel::catalogue::MemoryCatalogue;
/// use umbel::elastic::ElasticFilter;
///
/// let (left, right) = (Rate::new(0.01)?, Rate::new(0.1)?);
/// let mut filter = ElasticFilter::new(100, left, right, MemoryCatalogue::new())?;
/// for n in 0..5_000_u32 {
///     filter.add(&n.to_le_bytes())?;
/// }
/// // Ten components of 100 keys, then ten of 1001.
/// assert_eq!(filter.rebuilds(), 1);
/// assert!(filter.may_contain(&7_u32.to_le_bytes()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ElasticFilter<C> {
    catalogue: C,
    filter: DynamicFilter,
    hasher: KeyHasher,
    guess: u64,
    left: Rate,
    max_components: u32,
    rebuilds: u64,
}

impl<C: Catalogue> ElasticFilter<C> {
    /// A filter for about `guess` keys, or for as many as the catalogue holds if these are more,
    /// that starts at `left` and never exceeds `right`.
    ///
    /// # Errors
    /// If `guess` is zero, `right` not above `left`, or there is no memory.
    pub fn new(guess: u64, left: Rate, right: Rate, catalogue: C) -> Result<Self, PlanError> {
        Self::with_hasher((guess, left, right), catalogue, KeyHasher::default())
    }

    /// The same with the caller's hasher.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_hasher(
        (guess, left, right): (u64, Rate, Rate),
        catalogue: C,
        hasher: KeyHasher,
    ) -> Result<Self, PlanError> {
        let plan = design::dynamic::unbounded(guess, left, right)?;
        let components = plan.dynamic_rebuild_at / guess as f64;
        let max_components = components.clamp(1.0, 65_536.0) as u32;
        let filter = component_filter(guess, left, max_components, hasher)?;
        let mut elastic =
            Self { catalogue, filter, hasher, guess, left, max_components, rebuilds: 0 };
        if !elastic.catalogue.is_empty() {
            elastic.build(guess.max(elastic.catalogue.len()))?;
        }
        Ok(elastic)
    }

    /// Adds a key; returns whether it is new. Builds the filter again first if the key would
    /// take it past the right limit.
    ///
    /// # Errors
    /// If there is no memory for the larger filter; nothing changed then.
    ///
    /// # Panics
    /// If there is no memory for another component.
    pub fn add(&mut self, key: &[u8]) -> Result<bool, ParamError> {
        if self.catalogue.contains(key) {
            return Ok(false);
        }
        if self.catalogue.len() >= self.limit() {
            let keys = self.catalogue.len();
            let doubled = (2 * keys).div_ceil(self.max_components.into());
            self.rebuild(doubled.max(keys + 1))?;
        }
        let component = self.filter.insert(key);
        self.catalogue.insert(key, component);
        Ok(true)
    }

    /// Removes a key; returns whether it was held. Exact: the catalogue remembers the
    /// component. A filter that has become far too large is built again, smaller.
    ///
    /// # Errors
    /// Practically never: the smaller filter takes less memory than the present one. The key is
    /// removed in any case.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, ParamError> {
        let Some(component) = self.catalogue.remove(key) else { return Ok(false) };
        let was_claimed = self.filter.remove_from(component, key);
        debug_assert!(was_claimed, "the filter holds the keys of the catalogue");
        let (items, capacity) = (self.catalogue.len(), self.filter.capacity());
        if capacity > self.guess && items < capacity / 8 {
            self.rebuild(self.guess.max(2 * items))?;
        } else if self.filter.components().len() as u64 > 2 * items.div_ceil(capacity).max(1) {
            self.filter.shrink();
        }
        Ok(true)
    }

    /// Whether the key may be held, by the filter alone.
    #[must_use]
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }

    /// Keys that the filter may hold before it is built again.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.filter.capacity().saturating_mul(self.max_components.into())
    }

    /// The highest rate that the formula allows before the next rebuild: `1 - (1-ε)^s`.
    #[must_use]
    pub fn highest_rate(&self) -> f64 {
        any_of(self.left.get(), self.max_components.into())
    }

    /// How often the filter was built again.
    #[must_use]
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// The filter as it is.
    #[must_use]
    pub const fn filter(&self) -> &DynamicFilter {
        &self.filter
    }

    /// The exact keys.
    #[must_use]
    pub const fn catalogue(&self) -> &C {
        &self.catalogue
    }

    fn rebuild(&mut self, capacity: u64) -> Result<(), ParamError> {
        self.build(capacity)?;
        self.rebuilds += 1;
        Ok(())
    }

    /// A new filter, filled from the catalogue, which learns the new components.
    fn build(&mut self, capacity: u64) -> Result<(), ParamError> {
        self.filter = component_filter(capacity, self.left, self.max_components, self.hasher)?;
        self.catalogue.reassign(&mut |key| self.filter.insert(key));
        Ok(())
    }
}

impl<C: Catalogue> Membership for ElasticFilter<C> {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }
}

impl<C> fmt::Debug for ElasticFilter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ElasticFilter({:?}, {} rebuilds)", self.filter, self.rebuilds)
    }
}

/// Components that hold `capacity` keys at the left rate each.
fn component_filter(
    capacity: u64,
    left: Rate,
    max_components: u32,
    hasher: KeyHasher,
) -> Result<DynamicFilter, ParamError> {
    let shape = design::standard(capacity, left)?;
    DynamicFilter::new(Scheme::new(shape, hasher), capacity, max_components)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::MemoryCatalogue;
    use crate::model::dynamic::{Component, false_positive};

    fn rate(rate: f64) -> Rate {
        Rate::new(rate).unwrap()
    }

    fn elastic(guess: u64) -> ElasticFilter<MemoryCatalogue> {
        ElasticFilter::new(guess, rate(0.01), rate(0.1), MemoryCatalogue::new()).unwrap()
    }

    #[test]
    fn rebuilds_come_at_ten_capacities_and_no_earlier() {
        let mut filter = elastic(10);
        for n in 0..100_u32 {
            assert_eq!(filter.add(&n.to_le_bytes()), Ok(true));
        }
        assert_eq!((filter.rebuilds(), filter.filter().components().len()), (0, 10));
        assert_eq!(filter.add(&7_u32.to_le_bytes()), Ok(false));
        assert_eq!(filter.add(&100_u32.to_le_bytes()), Ok(true));
        assert_eq!((filter.rebuilds(), filter.filter().components().len()), (1, 1));
        assert_eq!((filter.filter().capacity(), filter.limit()), (101, 1010));
        assert!(filter.highest_rate() <= 0.1 && filter.highest_rate() > 0.095);
    }

    /// Regression test: rebuilds happened with every key past the guess.
    #[test]
    fn rebuilds_are_few_however_close_the_limits_are() {
        for right in [0.010_000_1, 0.015, 0.0199, 0.02, 0.03] {
            let catalogue = MemoryCatalogue::new();
            let mut filter = ElasticFilter::new(10, rate(0.01), rate(right), catalogue).unwrap();
            for n in 0..5_000_u32 {
                assert_eq!(filter.add(&n.to_le_bytes()), Ok(true));
                assert!(filter.catalogue().len() <= filter.limit());
            }
            assert!(filter.rebuilds() <= 9, "{right}: {} rebuilds", filter.rebuilds());
            let component =
                Component::new(*filter.filter().scheme().shape(), filter.filter().capacity());
            assert!(false_positive(component, filter.limit()) <= right, "{right}: {filter:?}");
            assert!((0..5_000_u32).all(|n| filter.may_contain(&n.to_le_bytes())));
        }
    }

    #[test]
    fn a_catalogue_that_is_there_already_is_taken_over() {
        let mut first = elastic(10);
        (0..500_u32).for_each(|n| assert!(first.add(&n.to_le_bytes()).unwrap()));
        let again =
            ElasticFilter::new(10, rate(0.01), rate(0.1), first.catalogue().clone()).unwrap();
        assert!((0..500_u32).all(|n| again.may_contain(&n.to_le_bytes())));
        assert_eq!(again.rebuilds(), 0);
        assert_eq!((again.filter().capacity(), again.filter().components().len()), (500, 1));
        again.filter().validate();
    }

    #[test]
    fn a_set_that_shrinks_takes_less_again() {
        let mut filter = elastic(10);
        (0..101_u32).for_each(|n| assert!(filter.add(&n.to_le_bytes()).unwrap()));
        assert_eq!((filter.filter().capacity(), filter.rebuilds()), (101, 1));
        // Built again at less than an eighth of the capacity, for twice what is left.
        for n in 0..89_u32 {
            assert_eq!(filter.remove(&n.to_le_bytes()), Ok(true));
            assert_eq!(filter.rebuilds(), 1, "{n}");
        }
        assert_eq!(filter.remove(&89_u32.to_le_bytes()), Ok(true));
        assert_eq!((filter.filter().capacity(), filter.rebuilds()), (22, 2));
        assert_eq!(filter.remove(&89_u32.to_le_bytes()), Ok(false));
        assert!((90..101_u32).all(|n| filter.may_contain(&n.to_le_bytes())));

        // At the brim one key that comes and goes neither merges nor splits.
        let mut filter = elastic(10);
        (0..11_u32).for_each(|n| assert!(filter.add(&n.to_le_bytes()).unwrap()));
        assert!(filter.remove(&3_u32.to_le_bytes()).unwrap());
        assert_eq!(filter.filter().components().len(), 2);

        // While it is as small as it was planned, components are merged instead.
        let mut filter = elastic(10);
        (0..100_u32).for_each(|n| assert!(filter.add(&n.to_le_bytes()).unwrap()));
        (0..100_u32).filter(|n| n % 10 > 1).for_each(|n| {
            assert!(filter.remove(&n.to_le_bytes()).unwrap());
        });
        assert_eq!((filter.catalogue().len(), filter.rebuilds()), (20, 0));
        assert!(filter.filter().components().len() <= 4, "{filter:?}");
        filter.filter().validate();
    }

    #[test]
    fn numbers_that_fit_no_plan_are_refused() {
        let made = |guess, left, right| {
            ElasticFilter::new(guess, rate(left), rate(right), MemoryCatalogue::new()).err()
        };
        assert!(made(0, 0.01, 0.1).is_some());
        assert!(matches!(made(10, 0.1, 0.01), Some(PlanError::Limits { .. })));
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { cases: 40, ..crate::model::seeded() })]

        #[test]
        fn members_are_claimed_and_the_right_limit_is_kept(
            guess in 1_u64..20,
            steps in prop::collection::vec((any::<bool>(), 0_u16..600), 1..1500),
        ) {
            let mut filter = elastic(guess);
            let mut members = std::collections::BTreeSet::new();
            for (adds, key) in steps {
                let bytes = key.to_le_bytes();
                if adds {
                    prop_assert_eq!(filter.add(&bytes), Ok(members.insert(key)));
                } else {
                    prop_assert_eq!(filter.remove(&bytes), Ok(members.remove(&key)));
                }
                let shape = *filter.filter().scheme().shape();
                let full = Component::new(shape, filter.filter().capacity());
                let components = filter.filter().components().len() as u64;
                let highest = false_positive(full, components * filter.filter().capacity());
                prop_assert!(highest <= 0.1, "{}", highest);
            }
            prop_assert!(members.iter().all(|key| filter.may_contain(&key.to_le_bytes())));
            prop_assert_eq!(filter.filter().items(), members.len() as u64);
            filter.filter().validate();
        }
    }
}
