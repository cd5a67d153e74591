//! The dynamic filter: a list of equal components that grows and shrinks with its set.
//!
//! Keys go to the first component with room; when none has room, a component is added.
//! Removals make room again, and [`DynamicFilter::shrink`] merges components that fit into
//! one. A key is held when any component claims it, asked all at once through [`Slices`].
//!
//! Always true: a key that was added and not removed is claimed. A component's id means
//! the same keys for ever: after a merge the old id leads to the merged component.
//!
//! What paper 4 leaves open: when several components claim a key, which one holds it?
//! [`DynamicFilter::remove`] then keeps the key (never a false negative, but a residue);
//! callers who remember the id that `insert` returned use [`DynamicFilter::remove_from`]
//! and leave no residue.
//!
//! Unlike algorithm 3 of the paper, `remove` does not merge: at the brim, one key going in
//! and out would merge and split on every turn. Merging is asked for, when it suits.
//!
//! Not here: rebuilding into a larger shape once [`DynamicFilter::is_past_plan`]; that
//! takes the keys, which a filter does not have.

use std::collections::BTreeMap;
use std::fmt;

use super::slices::Slices;
use super::{BATCH, Component, CountingFilter, StandardFilter, in_batches};
use crate::bits::BitVector;
use crate::design;
use crate::key_hash::Digest;
use crate::params::{ParamError, Rate, Shape};
use crate::scheme::{Mismatch, Scheme};

/// Names a component of a dynamic filter for as long as the filter lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// Keys remembered in the component `from` are now in the component `into`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// The component that is no more.
    pub from: ComponentId,
    /// The component that took its keys.
    pub into: ComponentId,
}

/// What became of a key that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a key that was kept is still claimed"]
pub enum Removal {
    /// Gone from this component, the only one that claimed it.
    Removed(ComponentId),
    /// Still there: several components claim it, and the wrong one must not lose it.
    Kept,
    /// No component claimed it; nothing changed.
    Absent,
}

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
#[derive(Clone, PartialEq)]
pub struct DynamicFilter<C: Component = CountingFilter> {
    scheme: Scheme,
    capacity: u64,
    max_components: u32,
    components: Vec<(ComponentId, C)>,
    /// Ids of merged components → ids of living ones.
    aliases: BTreeMap<ComponentId, ComponentId>,
    next_id: u32,
    /// Kept only from [`SLICE_AT`] components on.
    slices: Option<Slices>,
}

/// From this many components on, slices are kept and asked: below, one plain probe of
/// three bits is cheaper than `k` rows.
const SLICE_AT: usize = 2;

impl DynamicFilter {
    /// Largest number of components planned for, unless told otherwise.
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
        })
    }

    /// A filter of parts that were decoded and checked: capacity, planned components and
    /// next id; components in the order of their ids; aliases that lead to the living.
    pub(crate) fn from_parts(
        scheme: Scheme,
        (capacity, max_components, next_id): (u64, u32, u32),
        components: Vec<(ComponentId, C)>,
        aliases: BTreeMap<ComponentId, ComponentId>,
    ) -> Self {
        let mut filter =
            Self { scheme, capacity, max_components, components, aliases, next_id, slices: None };
        filter.rebuild_slices();
        filter
    }

    /// Adds a key to the first component with room, adding one if none has; returns the
    /// component, for callers who will want [`Self::remove_from`].
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> ComponentId {
        self.insert_digest(self.scheme.digest(key.as_ref()))
    }

    /// Adds a key by its digest; see [`Self::insert`].
    ///
    /// # Panics
    /// If there is no memory for another component.
    pub fn insert_digest(&mut self, digest: Digest) -> ComponentId {
        let index = self.index_with_room();
        let (id, component) = &mut self.components[index];
        component.add(digest);
        if let Some(slices) = &mut self.slices {
            slices.set(index, digest.positions(self.scheme.shape()));
        }
        *id
    }

    /// The id under which the keys of this component are held now.
    pub(crate) fn living(&self, id: ComponentId) -> ComponentId {
        self.aliases.get(&id).copied().unwrap_or(id)
    }

    /// Adds a key to the component of this id, whether it has room or not: how a filter is
    /// built again from a catalogue that remembers each key's component. An id that was
    /// never seen is made; an id that was merged leads to the merged component.
    ///
    /// # Panics
    /// If there is no memory for another component.
    pub fn insert_into(&mut self, component: ComponentId, digest: Digest) {
        let index = self.index_of(component).unwrap_or_else(|| self.add_component(component));
        self.components[index].1.add(digest);
        if let Some(slices) = &mut self.slices {
            slices.set(index, digest.positions(self.scheme.shape()));
        }
    }

    /// Adds many keys, asking for memory ahead; each goes where [`Self::insert`] would put
    /// it.
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) {
        let scheme = self.scheme;
        in_batches(keys, |key| scheme.digest(key), |digests| self.insert_digests(digests));
    }

    /// Adds many keys by their digests, asking for memory ahead.
    ///
    /// # Panics
    /// If there is no memory for another component.
    pub fn insert_digests(&mut self, mut digests: &[Digest]) {
        while !digests.is_empty() {
            let index = self.index_with_room();
            let room = self.capacity - self.components[index].1.items();
            let batch = (digests.len() as u64).min(room).min(BATCH as u64) as usize;
            let (now, later) = digests.split_at(batch);
            self.insert_digests_at(index, now);
            digests = later;
        }
    }

    /// Whether any component claims a key.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[must_use]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_digest(self.scheme.digest(key.as_ref()))
    }

    /// Whether any component claims a key, by its digest.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        match &self.slices {
            Some(slices) => slices.claim(digest, self.scheme.shape()),
            None => self.components.iter().any(|(_, component)| component.claims(digest)),
        }
    }

    /// Asks for many keys at once, with memory asked for ahead; `answers` is overwritten
    /// with one answer per key, in order.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        let digests: Vec<_> = keys.iter().map(|key| self.scheme.digest(key.as_ref())).collect();
        self.contains_digests(&digests, answers);
    }

    /// Asks for many keys by their digests; `answers` is overwritten.
    pub fn contains_digests(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        answers.clear();
        let shape = self.scheme.shape();
        match (&self.slices, &self.components[..]) {
            (Some(slices), _) => {
                for batch in digests.chunks(BATCH) {
                    batch.iter().for_each(|digest| slices.prefetch(&digest.positions(shape)));
                    answers.extend(batch.iter().map(|digest| slices.claim(*digest, shape)));
                }
            }
            (None, [(_, only)]) => only.claims_digests(digests, answers),
            (None, _) => answers.extend(digests.iter().map(|digest| self.contains_digest(*digest))),
        }
    }

    /// Asks the components one after the other, whatever their number: the plain way, kept
    /// as the twin that the sliced one is tested and measured against.
    #[must_use]
    pub fn contains_digest_listed(&self, digest: Digest) -> bool {
        self.components.iter().any(|(_, component)| component.claims(digest))
    }

    /// The components that claim a key, by its digest.
    #[must_use]
    pub fn claimants(&self, digest: Digest) -> Vec<ComponentId> {
        match &self.slices {
            Some(slices) => {
                let indices = slices.claimants(digest, self.scheme.shape());
                indices.map(|index| self.components[index].0).collect()
            }
            None => {
                let claiming = self.components.iter().filter(|(_, c)| c.claims(digest));
                claiming.map(|(id, _)| *id).collect()
            }
        }
    }

    /// Merges components whose keys fit into one (`n_i + n_j <= capacity`), until none do.
    /// Ids of merged components stay valid. Returns what was merged, for callers who keep
    /// ids of their own.
    ///
    /// # Panics
    /// Never: components of one filter share one scheme.
    pub fn shrink(&mut self) -> Vec<Merge> {
        let mut merges = Vec::new();
        while let Some((into, from)) = self.pair_that_fits() {
            let (from_id, component) = self.components.remove(from);
            let (into_id, target) = &mut self.components[into];
            target.absorb(&component).expect("components share one scheme");
            let merge = Merge { from: from_id, into: *into_id };
            self.redirect(merge);
            merges.push(merge);
        }
        if !merges.is_empty() {
            self.rebuild_slices();
        }
        merges
    }

    /// Takes over all components of another filter. Returns under which ids its keys are
    /// held here.
    ///
    /// # Errors
    /// If scheme or capacity differ; nothing changes then.
    pub fn union_with(&mut self, other: &Self) -> Result<Vec<Merge>, Mismatch> {
        self.scheme.check(&other.scheme)?;
        if self.capacity != other.capacity {
            return Err(Mismatch::Capacity(self.capacity, other.capacity));
        }
        let mut moves = Vec::new();
        for (from, component) in &other.components {
            let into = ComponentId(self.next_id);
            self.next_id += 1;
            self.components.push((into, component.clone()));
            moves.push(Merge { from: *from, into });
            let aliases = other.aliases.iter().filter(|(_, target)| *target == from);
            moves.extend(aliases.map(|(alias, _)| Merge { from: *alias, into }));
        }
        self.rebuild_slices();
        Ok(moves)
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

    /// Ids of merged components, and the ids of the living ones that have their keys.
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

    /// Keys held, all components together.
    #[must_use]
    pub fn items(&self) -> u64 {
        let items = self.components.iter().map(|(_, component)| component.items());
        items.fold(0, u64::saturating_add)
    }

    /// Counters that stick at their largest value, all components together.
    #[must_use]
    pub fn stuck_counters(&self) -> u64 {
        self.components.iter().map(|(_, component)| component.stuck_counters()).sum()
    }

    /// The chance that a random key is claimed, from the fills as they are:
    /// `1 - Π (1 - fill^k)`.
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        let k = self.scheme.shape().hashes() as i32;
        let fills = self.components.iter().map(|(_, component)| component.bits().fill());
        -fills.map(|fill| (-fill.powi(k)).ln_1p()).sum::<f64>().exp_m1()
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
    pub fn unlock(&mut self, seed: crate::Seed) -> Result<(), crate::key_hash::WrongSeed> {
        self.scheme.hasher_mut().unlock(seed)?;
        for (_, component) in &mut self.components {
            *component.scheme_mut() = self.scheme;
        }
        Ok(())
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let components = self.components.iter().map(|(_, component)| component.memory_bytes());
        let slices = self.slices.as_ref().map_or(0, Slices::memory_bytes);
        size_of::<Self>() + components.sum::<usize>() + slices
    }

    /// Bytes of memory that the filter takes at most once so many more keys were added:
    /// what to ask before an insert that must not fail for want of memory.
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
        let slices = Slices::memory_bytes_of(components, self.scheme.shape().bits());
        (size_of::<Self>() as u64)
            .saturating_add(components.saturating_mul(each))
            .saturating_add(slices)
    }

    /// Recounts everything that is kept up, the slow way.
    ///
    /// # Panics
    /// If a promise of this type is broken: a bug in this crate.
    pub fn validate(&self) {
        let ids: Vec<_> = self.components.iter().map(|(id, _)| *id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "ids are distinct and ascending");
        assert!(ids.iter().all(|id| id.0 < self.next_id), "ids are never given twice");
        assert!(self.aliases.values().all(|id| ids.contains(id)), "aliases lead to the living");
        if let Some(slices) = &self.slices {
            assert_eq!(*slices, Slices::of(self.plain_bits()), "slices are kept up");
        }
    }

    fn plain_bits(&self) -> impl Iterator<Item = &BitVector> {
        self.components.iter().map(|(_, component)| component.bits())
    }

    /// Adds keys to the component at `index`, which has room for them.
    fn insert_digests_at(&mut self, index: usize, digests: &[Digest]) {
        let shape = self.scheme.shape();
        if let Some(slices) = &self.slices {
            digests.iter().for_each(|d| slices.prefetch_column(index, d.positions(shape)));
        }
        self.components[index].1.add_digests(digests);
        if let Some(slices) = &mut self.slices {
            digests.iter().for_each(|digest| slices.set(index, digest.positions(shape)));
        }
    }

    /// Algorithm 1's `GetActiveStandardBF`, which adds a component if none has room.
    fn index_with_room(&mut self) -> usize {
        let room = self.components.iter().position(|(_, c)| c.items() < self.capacity);
        room.unwrap_or_else(|| self.add_component(ComponentId(self.next_id)))
    }

    /// Adds an empty component, in the order of ids; returns its index.
    fn add_component(&mut self, id: ComponentId) -> usize {
        let component = C::empty(self.scheme).expect("memory for another component");
        let index = self.components.partition_point(|(other, _)| *other < id);
        self.components.insert(index, (id, component));
        self.next_id = self.next_id.max(id.0.checked_add(1).expect("fewer than 2^32 components"));
        match &mut self.slices {
            Some(slices) if index + 1 == self.components.len() => {
                slices.add(index, self.components[index].1.bits());
            }
            _ => self.rebuild_slices(),
        }
        index
    }

    fn rebuild_slices(&mut self) {
        let pays = self.components.len() >= SLICE_AT;
        self.slices = pays.then(|| Slices::of(self.plain_bits()));
    }

    /// Where the component of this id, or the one it was merged into, stands.
    fn index_of(&self, id: ComponentId) -> Option<usize> {
        let id = self.living(id);
        self.components.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// The first pair of components whose keys fit into one.
    fn pair_that_fits(&self) -> Option<(usize, usize)> {
        let items: Vec<u64> = self.components.iter().map(|(_, c)| c.items()).collect();
        (0..items.len()).find_map(|into| {
            let both = |from: &usize| items[into].checked_add(items[*from]);
            let fits = |from: &usize| both(from).is_some_and(|keys| keys <= self.capacity);
            (into + 1..items.len()).find(fits).map(|from| (into, from))
        })
    }

    /// Lets the merged id, and all that led to it, lead to the merged component.
    fn redirect(&mut self, merge: Merge) {
        for target in self.aliases.values_mut().filter(|target| **target == merge.from) {
            *target = merge.into;
        }
        self.aliases.insert(merge.from, merge.into);
    }
}

impl DynamicFilter<CountingFilter> {
    /// Removes a key if exactly one component claims it (algorithm 3). If several do, the
    /// key is kept, so that nobody else's bits are taken.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Removal {
        self.remove_digest(self.scheme.digest(key.as_ref()))
    }

    /// Removes a key by its digest; see [`Self::remove`].
    pub fn remove_digest(&mut self, digest: Digest) -> Removal {
        match self.claimants(digest)[..] {
            [] => Removal::Absent,
            [id] => {
                self.remove_digest_from(id, digest);
                Removal::Removed(id)
            }
            _ => Removal::Kept,
        }
    }

    /// Removes a key from the component that `insert` named; returns whether that component
    /// claimed it. Exact even when other components claim the key too.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn remove_from(&mut self, component: ComponentId, key: impl AsRef<[u8]>) -> bool {
        self.remove_digest_from(component, self.scheme.digest(key.as_ref()))
    }

    /// Adds a key by its digest; also returns how many bits flipped to one.
    pub(crate) fn insert_counted(&mut self, digest: Digest) -> (ComponentId, u32) {
        let index = self.index_with_room();
        let (id, component) = &mut self.components[index];
        let flips = component.insert_digest(digest);
        if let Some(slices) = &mut self.slices {
            slices.set(index, digest.positions(self.scheme.shape()));
        }
        (*id, flips)
    }

    /// Removes a key by its digest from the component that holds it; see
    /// [`Self::remove_from`].
    pub fn remove_digest_from(&mut self, component: ComponentId, digest: Digest) -> bool {
        self.remove_counted(component, digest).is_some()
    }

    /// Removes a key by its digest from the component that holds it; returns how many bits
    /// flipped to zero, or `None` if that component did not claim it.
    pub(crate) fn remove_counted(&mut self, component: ComponentId, digest: Digest) -> Option<u32> {
        let index = self.index_of(component)?;
        let component = &mut self.components[index].1;
        let flips = component.remove_digest(digest)?;
        if let Some(slices) = &mut self.slices {
            let bits = component.bits();
            let positions = digest.positions(self.scheme.shape());
            slices.clear(index, positions.filter(|position| bits.get(*position) == 0));
        }
        Some(flips)
    }

    /// The same filter with plain components: what is published.
    #[must_use]
    pub fn to_standard(&self) -> DynamicFilter<StandardFilter> {
        DynamicFilter {
            scheme: self.scheme,
            capacity: self.capacity,
            max_components: self.max_components,
            components: self.components.iter().map(|(id, c)| (*id, c.to_standard())).collect(),
            aliases: self.aliases.clone(),
            next_id: self.next_id,
            slices: self.slices.clone(),
        }
    }
}

impl DynamicFilter<StandardFilter> {
    /// Adds a key unless some component claims it already, which keeps repeats and lucky
    /// false positives from filling components. For plain components only: with counting
    /// ones a later removal of the key would take bits from those that made the claim.
    ///
    /// # Panics
    /// If the hasher is locked, or there is no memory for another component.
    pub fn insert_if_absent(&mut self, key: impl AsRef<[u8]>) -> Option<ComponentId> {
        let digest = self.scheme.digest(key.as_ref());
        (!self.contains_digest(digest)).then(|| self.insert_digest(digest))
    }
}

impl<C: Component> fmt::Debug for DynamicFilter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, items) = (self.components.len(), self.items());
        write!(f, "DynamicFilter({:?}, {components} components, {items} items)", self.scheme)
    }
}
