//! One set at its home: catalogue, filter and publisher, kept in step.
//!
//! `add` and `remove` go through the catalogue (real changes only), into the filter (the
//! remembered component, so that removal is exact), to the publisher (what replicas miss).
//!
//! Always true: the filter holds exactly the keys of the catalogue, each in the component
//! that the catalogue remembers.
//!
//! A filter that outgrows its plan is built again from the catalogue into a larger shape,
//! one that has become far too large into a smaller one, with room between the two limits
//! so that a set at either does not swing. Neither an update nor an empty component cures an
//! overfull filter; a larger shape does.

use std::collections::BTreeMap;
use std::time::Duration;

use super::image::Image;
use super::policy::Policy;
use super::publisher::{Extent, Freshness, Held, Intervals, Publication, Publisher, Sent};
use super::sample::Sample;
use crate::catalogue::Catalogue;
use crate::design;
use crate::filter::{ComponentId, DynamicFilter};
use crate::key_hash::{Digest, KeyHash, KeyHasher};
use crate::model::standard;
use crate::params::{ParamError, Rate, Shape};
use crate::scheme::Scheme;

/// What a set promises, and how its replicas are kept fresh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetPlan {
    /// Chance that one lookup of an absent key names any wrong host.
    pub false_positive: f64,
    /// Hosts that the rate is shared among.
    pub expected_hosts: u32,
    /// Keys that a component is planned for at first; the filter grows past it.
    pub capacity: u64,
    /// Components before the filter is built again into a larger shape.
    pub max_components: u32,
    /// When replicas are too stale.
    pub policy: Policy,
    /// Whether added keys may be told by their digests, the shortest way while they are few;
    /// else only changed bits travel.
    pub by_digests: bool,
}

impl Default for SetPlan {
    fn default() -> Self {
        Self {
            false_positive: 0.01,
            expected_hosts: 32,
            capacity: 4096,
            max_components: DynamicFilter::MAX_COMPONENTS,
            policy: Policy::default(),
            by_digests: true,
        }
    }
}

impl SetPlan {
    /// The rate that each replica keeps, so that all together keep the promised one:
    /// `1 - (1 - E)^(1/γ)`.
    ///
    /// # Errors
    /// If the promised rate is not between 0 and 1, or no host is expected.
    pub fn replica_false_positive(&self) -> Result<Rate, ParamError> {
        if self.expected_hosts == 0 {
            return Err(ParamError::Items(0));
        }
        let promised = Rate::new(self.false_positive)?.get();
        Rate::new(crate::model::each_of(promised, f64::from(self.expected_hosts)))
    }

    /// An empty filter for the components that a catalogue remembers, each with room for
    /// the fullest; or, where these no longer suit the plan, one whose first component is new
    /// and has room for all keys.
    fn filter_for(
        &self,
        hasher: KeyHasher,
        held: &BTreeMap<ComponentId, u64>,
    ) -> Result<DynamicFilter, ParamError> {
        let items: u64 = held.values().sum();
        let each = held.values().copied().max().unwrap_or(0).max(self.capacity);
        let places = each.saturating_mul(held.len() as u64);
        let suits = held.len() <= self.max_components as usize
            && places / 5 <= items.max(self.capacity) / 4;
        match (held.first_key_value(), held.last_key_value()) {
            (Some((first, _)), _) if suits => Ok(self.filter(hasher, each)?.starting_at(*first)),
            (_, Some((last, _))) => {
                let first = ComponentId(last.0.saturating_add(1));
                Ok(self.filter(hasher, items.max(self.capacity))?.starting_at(first))
            }
            _ => self.filter(hasher, each),
        }
    }

    fn filter(&self, hasher: KeyHasher, capacity: u64) -> Result<DynamicFilter, ParamError> {
        // A tenth more room: clears may then wait while the promised rate holds.
        let planned = capacity + capacity / 10;
        let rate = self.replica_false_positive()?;
        let shape = design::dynamic_component(planned, rate, self.max_components)?;
        let scheme = Scheme::new(shape, hasher);
        Ok(DynamicFilter::new(scheme, capacity, self.max_components)?.without_slices())
    }
}

/// Keys whose memory is asked for ahead of their turn.
const BATCH: usize = 8;

/// One set at its home.
#[derive(Debug)]
pub struct Home<C> {
    catalogue: C,
    hasher: KeyHasher,
    plan: SetPlan,
    /// A shape that others chose; without one the plan's numbers give it.
    shape: Option<Shape>,
    filter: DynamicFilter,
    publisher: Publisher,
    sample: Sample,
    rebuilds: u64,
}

impl<C: Catalogue> Home<C> {
    /// A home of this catalogue. The filter is built from the keys it holds already, into
    /// the components that it remembers.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory.
    pub fn new(
        hasher: KeyHasher,
        plan: SetPlan,
        intervals: Intervals,
        catalogue: C,
    ) -> Result<Self, ParamError> {
        let held = catalogue.components();
        let filter = plan.filter_for(hasher, &held)?;
        let promised = plan.replica_false_positive()?.get();
        let mut publisher = Publisher::new(plan.policy, intervals, &filter, promised);
        publisher.set_by_digests(plan.by_digests);
        let (sample, shape) = (Sample::new(), None);
        let mut home =
            Self { catalogue, hasher, plan, shape, filter, publisher, sample, rebuilds: 0 };
        if !home.catalogue.is_empty() {
            home.fill(Duration::ZERO);
            let first = home.filter.components()[0].0;
            if held.keys().any(|id| *id < first) {
                home.catalogue.move_all(first);
            }
        }
        Ok(home)
    }

    /// A home whose filter has a shape that all homes of an overlay agreed on: components of
    /// `capacity` keys, as many as its keys take. It is never built into another shape but by
    /// [`Self::change_shape`].
    pub(crate) fn of_shape(
        hasher: KeyHasher,
        shape: Shape,
        capacity: u64,
        policy: Policy,
        intervals: Intervals,
        catalogue: C,
    ) -> Result<Self, ParamError> {
        let max_components = u32::from(u16::MAX);
        let plan = SetPlan { capacity, max_components, policy, ..SetPlan::default() };
        let scheme = Scheme::new(shape, hasher);
        let filter = DynamicFilter::new(scheme, capacity, max_components)?.without_slices();
        let promised = standard::false_positive(shape, capacity + capacity / 10);
        let publisher = Publisher::new(policy, intervals, &filter, promised);
        let (sample, shape) = (Sample::new(), Some(shape));
        let mut home =
            Self { catalogue, hasher, plan, shape, filter, publisher, sample, rebuilds: 0 };
        if !home.catalogue.is_empty() {
            home.fill(Duration::ZERO);
        }
        Ok(home)
    }

    /// Builds the filter again into another shape that all homes of an overlay agreed on.
    ///
    /// # Errors
    /// If there is no memory; nothing changes then.
    pub(crate) fn change_shape(
        &mut self,
        now: Duration,
        shape: Shape,
        capacity: u64,
    ) -> Result<(), ParamError> {
        let scheme = Scheme::new(shape, self.hasher);
        let components = self.plan.max_components;
        let filter = DynamicFilter::new(scheme, capacity, components)?.without_slices();
        (self.shape, self.plan.capacity) = (Some(shape), capacity);
        self.rebuild(now, filter);
        Ok(())
    }

    /// Adds a key; returns whether it is new.
    pub fn add(&mut self, now: Duration, key: &[u8]) -> bool {
        self.add_hashed(now, key, self.hasher.hash(key))
    }

    /// Adds many keys, asking for memory ahead; `told` hears of each whether it is new.
    pub fn add_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        keys: &[K],
        mut told: impl FnMut(bool),
    ) {
        for chunk in keys.chunks(BATCH) {
            let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
            let mut hashes = [KeyHash::from_raw(0); BATCH];
            for ((place, hash), key) in keys.iter_mut().zip(&mut hashes).zip(chunk) {
                *place = key.as_ref();
                *hash = self.hasher.hash(place);
                self.filter.prefetch_insert(self.filter.scheme().cut(*hash));
                self.publisher.prefetch(*hash);
            }
            self.add_batch(now, &keys[..chunk.len()], &hashes, &mut told);
        }
    }

    /// Adds a batch of keys whose memory was asked for.
    fn add_batch(
        &mut self,
        now: Duration,
        keys: &[&[u8]],
        hashes: &[KeyHash; BATCH],
        told: &mut impl FnMut(bool),
    ) {
        if (keys.len() as u64) > self.filter.room_in_next() {
            // Some may start a component, or have the filter built again from the catalogue,
            // which must not hold those that follow by then.
            let keys = keys.iter().zip(hashes);
            return keys.for_each(|(key, hash)| told(self.add_hashed(now, key, *hash)));
        }
        let (mut items, component) = (self.catalogue.len(), self.filter.next_component());
        let mut answers = [false; BATCH];
        let mut answer = answers.iter_mut();
        self.catalogue.insert_many(keys, component, &mut |is_new| {
            answer.next().into_iter().for_each(|answer| *answer = is_new);
        });
        for (hash, is_new) in hashes.iter().zip(answers).take(keys.len()) {
            if is_new {
                items += 1;
                self.insert(now, *hash, items);
            }
            told(is_new);
        }
        self.grow(now);
    }

    fn add_hashed(&mut self, now: Duration, key: &[u8], hash: KeyHash) -> bool {
        if !self.catalogue.insert_new(key, self.filter.next_component()) {
            return false;
        }
        self.insert(now, hash, self.catalogue.len());
        self.grow(now);
        true
    }

    /// A key is new in the catalogue, which holds this many now: the filter and the publisher
    /// hear of it.
    fn insert(&mut self, now: Duration, hash: KeyHash, items: u64) {
        let (component, flips) = self.filter.insert_counted(self.filter.scheme().cut(hash));
        self.sample.added(hash);
        self.publisher.added(now, hash, Held { component, flips }, items);
    }

    /// Builds a filter again that has outgrown its plan.
    fn grow(&mut self, now: Duration) {
        if self.filter.is_past_plan() && self.shape.is_none() {
            self.reshape(now);
        }
    }

    /// Removes a key; returns whether it was held.
    pub fn remove(&mut self, now: Duration, key: &[u8]) -> bool {
        let Some(component) = self.catalogue.remove(key) else { return false };
        let hash = self.hasher.hash(key);
        let flips = self.filter.remove_counted(component, self.filter.scheme().cut(hash));
        debug_assert!(flips.is_some(), "the filter holds the keys of the catalogue");
        self.publisher.removed(now, hash, flips.unwrap_or(0), self.catalogue.len());
        self.sample.removed(hash);
        if self.sample.is_worn() {
            self.draw_sample();
        }
        if self.is_far_too_large() {
            self.reshape(now);
        }
        true
    }

    /// Whether the key is held: exact.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.catalogue.contains(key)
    }

    /// Publishes an update if one is due; whether there was one. For callers who want a home
    /// without an engine: [`Home::published_claims`] then is every receiver's answer.
    pub fn publish_if_due(&mut self, now: Duration) -> bool {
        self.poll(now).is_some()
    }

    /// Whether an update is due, and if so, what it carries.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Publication> {
        let extent = self.publisher.due(now, &self.filter)?;
        if extent == Extent::Everything {
            self.shrink(now);
        }
        Some(self.publisher.publish(now, &self.filter, extent))
    }

    /// An update that carries everything, because somebody asked for it.
    pub(crate) fn publish(&mut self, now: Duration) -> Publication {
        self.shrink(now);
        self.publisher.publish(now, &self.filter, Extent::Everything)
    }

    /// Whether the published copy was staler than the policy permits when last polled.
    pub(crate) const fn is_broken(&self) -> bool {
        self.publisher.is_broken()
    }

    /// When to poll again although nothing happened.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.publisher.next_timeout()
    }

    /// Another plan: the filter is built again, and what was published answers until then.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    pub fn replan(&mut self, now: Duration, plan: SetPlan) -> Result<(), ParamError> {
        let promised = plan.replica_false_positive()?.get();
        let filter = plan.filter(self.hasher, self.catalogue.len().max(plan.capacity))?;
        self.plan = plan;
        self.publisher.set_policy(plan.policy);
        self.publisher.set_by_digests(plan.by_digests);
        self.publisher.set_promised(promised);
        self.rebuild(now, filter);
        Ok(())
    }

    /// The plan in force.
    #[must_use]
    pub const fn plan(&self) -> &SetPlan {
        &self.plan
    }

    /// The exact keys, without the rest.
    pub(crate) fn into_catalogue(self) -> C {
        self.catalogue
    }

    /// Another policy, from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.plan.policy = policy;
        self.publisher.set_policy(policy);
    }

    /// How stale the published copy is: a pass over all bits.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.publisher.freshness(&self.filter)
    }

    /// Whether the published copy claims a key: what other hosts would answer if every
    /// update had arrived.
    #[must_use]
    pub fn published_claims(&self, hash: KeyHash) -> bool {
        self.kept().claims(self.kept().scheme().cut(hash))
    }

    /// Members that the published copy denies: exact, and kept up, so that asking costs
    /// nothing.
    #[must_use]
    pub const fn misses(&self) -> u64 {
        self.publisher.misses()
    }

    /// The published copy's false positive rate, from its fills; asking costs nothing.
    #[must_use]
    pub const fn published_false_positive(&self) -> f64 {
        self.publisher.kept_false_positive()
    }

    /// Updates sent so far.
    #[must_use]
    pub const fn sent(&self) -> Sent {
        self.publisher.sent()
    }

    /// How often the filter was built again into another shape.
    #[must_use]
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// The policy in force.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.publisher.policy()
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

    /// What receivers have.
    pub(crate) const fn kept(&self) -> &Image {
        self.publisher.kept()
    }

    /// Digests of up to `count` members, picked by `pick`: receivers count those that they
    /// deny. None while the published copy is of another shape than the filter.
    pub(crate) fn sample(&self, count: usize, pick: impl FnMut(u64) -> u64) -> Vec<Digest> {
        if self.kept().scheme() != self.filter.scheme() {
            return Vec::new();
        }
        let members = self.sample.some(count, pick);
        members.into_iter().map(|hash| self.filter.scheme().cut(hash)).collect()
    }

    fn draw_sample(&mut self) {
        let (mut sample, hasher) = (Sample::new(), self.hasher);
        self.catalogue.for_each(&mut |key, _| sample.added(hasher.hash(key)));
        self.sample = sample;
    }

    /// Merges components that fit into one; the catalogue's old ids stay valid.
    fn shrink(&mut self, now: Duration) {
        // Only where it saves a third: at the brim it would merge and split in turn.
        let needed = self.catalogue.len().div_ceil(self.filter.capacity()).max(1);
        if self.filter.components().len() as u64 > needed + needed.div_ceil(2)
            && !self.filter.shrink().is_empty()
        {
            self.publisher.merged(now);
        }
    }

    /// Whether a filter half the size would have plenty of room.
    fn is_far_too_large(&self) -> bool {
        let capacity = self.filter.capacity();
        capacity > self.plan.capacity && self.catalogue.len() < capacity / 8
    }

    /// Builds the filter again, with one component for all keys and room for as many more
    /// components as are planned; for twice the keys where only one is.
    fn reshape(&mut self, now: Duration) {
        let items = self.catalogue.len();
        let room = if self.plan.max_components > 1 { items } else { 2 * items };
        let capacity = self.plan.capacity.max(room);
        // Without memory for a larger filter the present one goes on, past its plan.
        let filter = match self.shape {
            Some(shape) => {
                let scheme = Scheme::new(shape, self.hasher);
                DynamicFilter::new(scheme, self.plan.capacity, self.plan.max_components)
                    .map(DynamicFilter::without_slices)
            }
            None => self.plan.filter(self.hasher, capacity),
        };
        if let Ok(filter) = filter {
            self.rebuild(now, filter);
        }
    }

    /// Puts all keys into another, empty filter.
    fn rebuild(&mut self, now: Duration, filter: DynamicFilter) {
        let first = ComponentId(self.filter.next_id());
        self.rebuilds += 1;
        self.filter = filter.starting_at(first);
        let filter = &mut self.filter;
        if self.catalogue.len() <= filter.capacity() {
            // All into one component: the catalogue need not be told of each.
            let (scheme, mut batch) = (*filter.scheme(), Vec::with_capacity(BATCH));
            self.catalogue.for_each(&mut |key, _| {
                batch.push(scheme.digest(key));
                if batch.len() == BATCH {
                    filter.insert_digests(&batch);
                    batch.clear();
                }
            });
            filter.insert_digests(&batch);
            self.catalogue.move_all(first);
        } else {
            self.catalogue.reassign(&mut |key| filter.insert(key));
        }
        self.publisher.rebuilt(now, &self.filter);
    }

    /// Builds the filter from the catalogue, into the components that it remembers, or all
    /// into the first one if that is newer than all of them.
    fn fill(&mut self, now: Duration) {
        let (filter, publisher, hasher) = (&mut self.filter, &mut self.publisher, self.hasher);
        let sample = &mut self.sample;
        let items = self.catalogue.len();
        let first = filter.components()[0].0;
        let mut insert = |filter: &mut DynamicFilter, batch: &mut Vec<(KeyHash, ComponentId)>| {
            for (hash, component) in batch.drain(..) {
                filter.insert_into(component, filter.scheme().cut(hash));
                sample.added(hash);
                publisher.added(now, hash, Held { component, flips: 0 }, items);
            }
        };
        let mut batch = Vec::with_capacity(BATCH);
        self.catalogue.for_each(&mut |key, component| {
            let (hash, component) = (hasher.hash(key), component.max(first));
            filter.prefetch_into(component, filter.scheme().cut(hash));
            batch.push((hash, component));
            if batch.len() == BATCH {
                insert(filter, &mut batch);
            }
        });
        insert(filter, &mut batch);
        let capacity = self.filter.capacity();
        let overfull = self.filter.components().iter().any(|(_, c)| c.items() > capacity);
        if overfull || self.filter.is_past_plan() {
            self.reshape(now);
        } else {
            self.publisher.rebuilt(now, &self.filter);
        }
    }
}
