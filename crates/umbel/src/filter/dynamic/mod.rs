//! The dynamic filter: a list of equal components that grows and shrinks with its set.
//!
//! Keys go to the first component with room; when none has room, a component is added. Removals
//! make room again, and [`DynamicFilter::shrink`] merges components that fit into one. A key is
//! claimed if any component claims it; [`Slices`] asks all components at once.
//!
//! Always true: a key that was added and not removed is claimed. A component's id means
//! the same keys for ever: after a merge the old id leads to the merged component.
//!
//! What paper 4 leaves open: when several components claim a key, which one holds it?
//! [`DynamicFilter::remove`] then keeps the key (never a false negative, but a residue);
//! callers who remember the id that `insert` returned use [`DynamicFilter::remove_from`]
//! and leave no residue.
//!
//! Unlike algorithm 3 of the paper, `remove` does not merge: if components are nearly full, adding
//! and removing one key would merge and split each time. The caller decides when to merge.
//!
//! Not here: rebuilding in a larger shape once [`DynamicFilter::is_past_plan`]. That needs the
//! keys, which a filter does not have.

mod ask;
mod insert;
mod merge;
mod remove;

pub use merge::Merge;
pub use remove::Removal;

use std::collections::BTreeMap;
use std::fmt;

use super::slices::{Slices, slices_bytes};
use super::{Component, CountingFilter, estimate};
use crate::bits::BitVector;
use crate::design;
use crate::key_hash::{Seed, WrongSeed};
use crate::params::{ParamError, Rate, Shape};
use crate::scheme::Scheme;

/// Identifies a component of a dynamic filter for the lifetime of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// A filter that grows by components of equal shape, and shrinks by merging them.
///
/// ```
/// use umbel::DynamicFilter;
///
/// let mut filter = DynamicFilter::for_target(1_000, 0.01)?;
/// let component = filter.insert("apple");
/// for n in 0..5_000 {
///     filter.insert(format!("key {n}"));
/// }
/// assert_eq!(filter.components().len(), 6);
/// assert!(filter.remove_from(component, "apple"));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Clone)]
pub struct DynamicFilter<C: Component = CountingFilter> {
    scheme: Scheme,
    capacity: u64,
    max_components: u32,
    components: Vec<(ComponentId, C)>,
    /// Ids of merged components → ids of existing ones.
    aliases: BTreeMap<ComponentId, ComponentId>,
    next_id: u32,
    /// Kept only from [`SLICE_AT`] components on.
    slices: Option<Slices>,
    /// Whether slices are kept at all.
    sliced: bool,
    /// Index of the first component with room; the number of components if all are full.
    room: usize,
}

/// From this many components on, slices are kept and used. With fewer, one plain probe of three
/// bits is cheaper than `k` rows.
const SLICE_AT: usize = 2;

impl DynamicFilter {
    /// Default for the largest number of components planned for.
    pub const MAX_COMPONENTS: u32 = 8;

    /// A filter whose components hold `capacity` keys each, and whose false positive rate
    /// stays below `rate` up to [`Self::MAX_COMPONENTS`] components.
    ///
    /// # Errors
    /// If `capacity` is zero, `rate` is not between 0 and 1, or there is no memory.
    pub fn for_target(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::planned(capacity, rate, Self::MAX_COMPONENTS)
    }
}

impl<C: Component> DynamicFilter<C> {
    /// A filter whose components hold `capacity` keys each, and whose false positive rate
    /// stays below `rate` up to `max_components` components: each is designed for
    /// `1 - (1 - rate)^(1/max_components)`.
    ///
    /// # Errors
    /// If a number is outside its range, or there is no memory.
    pub fn planned(capacity: u64, rate: f64, max_components: u32) -> Result<Self, ParamError> {
        let shape = design::dynamic_component(capacity, Rate::new(rate)?, max_components)?;
        Self::new(shape.into(), capacity, max_components)
    }

    /// A filter of components of exactly this shape, for `capacity` keys each.
    ///
    /// # Errors
    /// If `capacity` is zero, or there is no memory.
    pub fn with_shape(shape: Shape, capacity: u64) -> Result<Self, ParamError> {
        Self::new(shape.into(), capacity, DynamicFilter::MAX_COMPONENTS)
    }

    /// A filter of components of this scheme, for `capacity` keys each, planned for at most
    /// `max_components` of them.
    ///
    /// # Errors
    /// If `capacity` or `max_components` is zero, or there is no memory.
    pub fn new(scheme: Scheme, capacity: u64, max_components: u32) -> Result<Self, ParamError> {
        if capacity == 0 {
            return Err(ParamError::Items(capacity));
        }
        if max_components == 0 || max_components > 1 << 16 {
            return Err(ParamError::Components(max_components.into()));
        }
        let first = (ComponentId(0), C::empty(scheme)?);
        Ok(Self {
            scheme,
            capacity,
            max_components,
            components: vec![first],
            aliases: BTreeMap::new(),
            next_id: 1,
            slices: None,
            sliced: true,
            room: 0,
        })
    }

    /// A filter of parts that were decoded and checked: capacity, planned components and next id;
    /// components sorted by id; aliases that lead to existing components.
    pub(crate) fn from_parts(
        scheme: Scheme,
        (capacity, max_components, next_id): (u64, u32, u32),
        components: Vec<(ComponentId, C)>,
        aliases: BTreeMap<ComponentId, ComponentId>,
    ) -> Self {
        let mut filter = Self {
            scheme,
            capacity,
            max_components,
            components,
            aliases,
            next_id,
            slices: None,
            sliced: true,
            room: 0,
        };
        filter.rebuild_slices();
        filter.find_room(0);
        filter
    }

    /// The same filter, still empty, whose first component has this id, which must be above all ids
    /// used before.
    pub(crate) fn starting_at(mut self, first: ComponentId) -> Self {
        debug_assert_eq!(self.items(), 0, "ids mean the same keys for ever");
        self.components[0].0 = first;
        self.next_id = first.0.saturating_add(1);
        self
    }

    /// The same filter without slices: takes a byte less memory per position, and fewer writes per
    /// key. For filters that are changed and published, but not queried: lookups must ask the
    /// components one by one.
    #[must_use]
    pub fn without_slices(mut self) -> Self {
        self.sliced = false;
        self.rebuild_slices();
        self
    }

    /// The id of the component that now holds the keys of this one.
    pub(crate) fn living(&self, id: ComponentId) -> ComponentId {
        self.aliases.get(&id).copied().unwrap_or(id)
    }

    /// Whether there are more components than planned, so that the promised rate no longer
    /// holds: rebuild from the keys into a larger shape.
    #[must_use]
    pub fn is_past_plan(&self) -> bool {
        self.components.len() > self.max_components as usize
    }

    /// The components with their ids, oldest first.
    #[must_use]
    pub fn components(&self) -> &[(ComponentId, C)] {
        &self.components
    }

    /// The component of this id, unless it was merged away.
    pub(crate) fn component(&self, id: ComponentId) -> Option<&C> {
        let index = self.components.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.components[index].1)
    }

    /// Ids of merged components, and the ids of the existing ones that have their keys.
    pub(crate) const fn aliases(&self) -> &BTreeMap<ComponentId, ComponentId> {
        &self.aliases
    }

    /// Keys that one component is planned for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Components planned for.
    #[must_use]
    pub const fn max_components(&self) -> u32 {
        self.max_components
    }

    /// The id that the next component will have.
    #[must_use]
    pub const fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Number of keys, all components together.
    #[must_use]
    pub fn items(&self) -> u64 {
        let items = self.components.iter().map(|(_, component)| component.items());
        items.fold(0, u64::saturating_add)
    }

    /// Number of counters that are stuck at their largest value, all components together.
    #[must_use]
    pub fn stuck_counters(&self) -> u64 {
        self.components.iter().map(|(_, component)| component.stuck_counters()).sum()
    }

    /// The probability that a random key is claimed, computed from the present fills: `1 - Π (1 -
    /// f)` over the components, `f` as in [`super::StandardFilter::false_positive`].
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        let rates = self.components.iter().map(|(_, component)| {
            estimate::false_positive(self.scheme.shape(), component.bits(), component.items())
        });
        -rates.map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1()
    }

    /// Shape of a component, and hasher.
    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Gives a locked filter its seed.
    ///
    /// # Errors
    /// If it is not the seed the filter was made with; nothing changes then.
    pub fn unlock(&mut self, seed: Seed) -> Result<(), WrongSeed> {
        self.scheme.hasher_mut().unlock(seed)?;
        // Components have the filter's scheme, so the same seed unlocks them all.
        self.components.iter_mut().try_for_each(|(_, component)| component.unlock(seed))
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let components = self.components.iter().map(|(_, component)| component.memory_bytes());
        let slices = self.slices.as_ref().map_or(0, Slices::memory_bytes);
        size_of::<Self>() + components.sum::<usize>() + slices
    }

    /// The most bytes of memory that the filter can take after this many more keys were added.
    /// Check it before an insert that must not fail because of missing memory.
    #[must_use]
    pub fn memory_bytes_with(&self, more: u64) -> u64 {
        let free = |c: &C| self.capacity.saturating_sub(c.items());
        let room = self.components.iter().map(|(_, c)| free(c)).fold(0, u64::saturating_add);
        let added = more.saturating_sub(room).div_ceil(self.capacity);
        if added == 0 {
            return self.memory_bytes() as u64;
        }
        let components = added.saturating_add(self.components.len() as u64);
        let each = self.components.iter().map(|(_, c)| c.memory_bytes() as u64).max().unwrap_or(0);
        let slices = match self.sliced {
            true => slices_bytes(components, self.scheme.shape().bits()),
            false => 0,
        };
        (size_of::<Self>() as u64)
            .saturating_add(components.saturating_mul(each))
            .saturating_add(slices)
    }

    /// Checks ids, slices and lists against a full recount. Slow.
    ///
    /// # Panics
    /// If a promise of this type is broken: a bug in this crate.
    pub fn validate(&self) {
        let ids: Vec<_> = self.components.iter().map(|(id, _)| *id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "ids are distinct and ascending");
        assert!(ids.iter().all(|id| id.0 < self.next_id), "ids are never given twice");
        assert!(self.aliases.values().all(|id| ids.contains(id)), "aliases lead to the living");
        let has_room = |(_, component): &(_, C)| component.items() < self.capacity;
        let room = self.components.iter().position(has_room).unwrap_or(ids.len());
        assert_eq!(self.room, room, "the first component with room is known");
        if let Some(slices) = &self.slices {
            assert_eq!(*slices, Slices::of(self.plain_bits()), "slices are kept up");
        }
    }

    fn plain_bits(&self) -> impl Iterator<Item = &BitVector> {
        self.components.iter().map(|(_, component)| component.bits())
    }

    /// Adds an empty component, keeping the order of ids. Returns its index.
    fn add_component(&mut self, id: ComponentId) -> usize {
        let after = id.0.checked_add(1).expect(IDS_LEFT);
        let component = C::empty(self.scheme).expect("memory for another component");
        let index = self.components.partition_point(|(other, _)| *other < id);
        self.components.insert(index, (id, component));
        self.next_id = self.next_id.max(after);
        match &mut self.slices {
            Some(slices) if index + 1 == self.components.len() => {
                slices.add(index, self.components[index].1.bits());
            }
            _ => self.rebuild_slices(),
        }
        self.room = self.room.min(index);
        index
    }

    /// Looks for the first component with room; all before `from` are known to be full.
    fn find_room(&mut self, from: usize) {
        let has_room = |(_, component): &(_, C)| component.items() < self.capacity;
        let found = self.components[from..].iter().position(has_room);
        self.room = found.map_or(self.components.len(), |after| from + after);
    }

    /// Keys were added to the component at `index`, which may be full now.
    fn was_filled(&mut self, index: usize) {
        if index == self.room {
            self.find_room(index);
        }
    }

    fn rebuild_slices(&mut self) {
        let pays = self.sliced && self.components.len() >= SLICE_AT;
        self.slices = pays.then(|| Slices::of(self.plain_bits()));
    }

    /// The index of the component of this id, or of the one it was merged into.
    fn index_of(&self, id: ComponentId) -> Option<usize> {
        let id = self.living(id);
        self.components.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

/// Every component ever made takes one of 2^32 ids, and the last one is never used.
const IDS_LEFT: &str = "fewer than 2^32 - 1 components were ever made";

impl<C: Component> PartialEq for DynamicFilter<C> {
    /// Filters are equal if their components are equal. Whether they keep slices does not matter.
    fn eq(&self, other: &Self) -> bool {
        let plan = |filter: &Self| (filter.capacity, filter.max_components, filter.next_id);
        self.scheme == other.scheme
            && plan(self) == plan(other)
            && self.aliases == other.aliases
            && self.components == other.components
    }
}

impl<C: Component> fmt::Debug for DynamicFilter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, items) = (self.components.len(), self.items());
        write!(f, "DynamicFilter({:?}, {components} components, {items} items)", self.scheme)
    }
}
