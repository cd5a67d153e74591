//! One set at its home: catalogue, filter and publisher, kept in step.
//!
//! `add` and `remove` first change the catalogue. If the set really changed, they change the filter
//! and report to the publisher, which tracks what replicas miss.
//!
//! The filter of a home in a mesh is on a ladder (`design::ladder`): it starts as one component on
//! the lowest rung, is rebuilt from the catalogue on a higher rung when it is full, and is folded
//! to a lower rung when it has been nearly empty for long. If room for keys is reserved, the filter
//! is on a higher rung than its keys need, and is published folded to the rung that they need. The
//! filter of a home in an overlay has the shape that all hosts agreed on, and as many components as
//! its keys need.
//!
//! Larger filters can be built in steps (`steps`), so that no change waits for a pass over the
//! catalogue.
//!
//! Always true: the filter holds exactly the keys of the catalogue. If it has several components,
//! each key is in the one that the catalogue remembers. On a ladder the filter depends only on keys
//! and rung, so that a home that restarts on the same rung has the same bits.

mod build;
mod growth;
mod look;
mod plan;
mod shape;
mod steps;

use std::time::Duration;

use super::own_memory::Charge;
use super::paged::ONLY;
use super::policy::{Policy, Rule};
use super::publisher::{Extent, Intervals, Placed, PreparedUpdate, Publication, Publisher, Source};
use super::sample::Sample;
use crate::catalogue::Catalogue;
use crate::design::ladder::{RungChoice, Standing};
use crate::filter::DynamicFilter;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::model::standard;
use crate::params::{ParamError, Shape};
pub use plan::SetPlan;
pub(crate) use shape::memory_of;
use shape::{Growth, filter_of, filter_on};
use steps::Build;

/// Keys per batch whose memory is prefetched.
const BATCH: usize = 8;

/// One set at its home.
#[derive(Debug)]
pub struct Home<C> {
    catalogue: C,
    hasher: KeyHasher,
    plan: SetPlan,
    growth: Growth,
    filter: DynamicFilter,
    publisher: Publisher,
    sample: Sample,
    rebuilds: u64,
    /// The share of the host's memory that filter and published copy take; `None` means no limit.
    charge: Option<Charge>,
    is_confined: bool,
    /// A filter being built that will replace the present one.
    build: Option<Build>,
    /// Filters of more keys than this are built in steps.
    max_keys_at_once: u64,
}

impl<C: Catalogue> Home<C> {
    /// A home of this catalogue, its filter built from the keys that it holds already.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory.
    pub fn new(
        hasher: KeyHasher,
        plan: SetPlan,
        intervals: Intervals,
        catalogue: C,
    ) -> Result<Self, ParamError> {
        Self::restarted(hasher, plan, intervals, catalogue, None)
    }

    /// As [`Self::new`], for a home that was on a rung before its restart. It stays on that rung if
    /// its keys still fit, and then has the same bits as before.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory.
    pub fn restarted(
        hasher: KeyHasher,
        plan: SetPlan,
        intervals: Intervals,
        catalogue: C,
        before: Option<Standing>,
    ) -> Result<Self, ParamError> {
        let (ladder, reserved) = (plan.ladder()?, plan.capacity.unwrap_or(0));
        let planned = before.map_or_else(|| plan.initial_hosts(), |before| before.hosts);
        let (hosts, before) = (plan.expected_hosts.unwrap_or(planned), before.map(|b| b.rung));
        let choice = RungChoice::new(ladder, hosts, catalogue.len(), reserved, before);
        let filter = filter_on(hasher, ladder.shape(choice.filter_rung()))?;
        let promised = ladder.replica_rate(hosts)?.get();
        let mut publisher = Publisher::new(plan.policy, intervals, &filter, promised);
        publisher.set_by_digests(plan.by_digests);
        Ok(Self::filled(catalogue, hasher, plan, Growth::Ladder(choice), (filter, publisher)))
    }

    /// A home whose filter has a given shape: as many components of `capacity` keys as its keys
    /// need. Only `change_shape` changes the shape.
    ///
    /// # Errors
    /// If the capacity is zero, or there is no memory.
    pub fn of_shape(
        hasher: KeyHasher,
        (shape, capacity): (Shape, u64),
        policy: Policy,
        intervals: Intervals,
        catalogue: C,
    ) -> Result<Self, ParamError> {
        let filter = filter_of(hasher, shape, capacity)?;
        let promised = standard::false_positive(shape, capacity + capacity / 10);
        let publisher = Publisher::new(policy, intervals, &filter, promised);
        let plan = SetPlan { capacity: Some(capacity), policy, ..SetPlan::default() };
        let growth = Growth::Components { capacity };
        Ok(Self::filled(catalogue, hasher, plan, growth, (filter, publisher)))
    }

    /// A home whose empty filter has been filled with the keys of its catalogue.
    fn filled(
        catalogue: C,
        hasher: KeyHasher,
        plan: SetPlan,
        growth: Growth,
        (filter, publisher): (DynamicFilter, Publisher),
    ) -> Self {
        let mut home = Self {
            catalogue,
            hasher,
            plan,
            growth,
            filter,
            publisher,
            sample: Sample::new(),
            rebuilds: 0,
            charge: None,
            is_confined: false,
            build: None,
            max_keys_at_once: u64::MAX,
        };
        home.fill(Duration::ZERO);
        home
    }

    /// Adds a key; returns whether it is new.
    pub fn add(&mut self, now: Duration, key: &[u8]) -> bool {
        self.add_hashed(now, key, self.hasher.hash(key))
    }

    /// Adds many keys and prefetches their memory. Calls `on_result` for each key with whether it
    /// is new.
    pub fn add_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        keys: &[K],
        mut on_result: impl FnMut(bool),
    ) {
        for chunk in keys.chunks(BATCH) {
            let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
            let mut hashes = [KeyHash::from_raw(0); BATCH];
            for ((place, hash), key) in keys.iter_mut().zip(&mut hashes).zip(chunk) {
                *place = key.as_ref();
                *hash = self.hasher.hash(place);
                self.filter.prefetch_insert(self.filter.scheme().digest_of(*hash));
                self.publisher.prefetch(*hash);
            }
            self.add_batch(now, &keys[..chunk.len()], &hashes, &mut on_result);
        }
    }

    /// Adds a batch of keys whose memory was prefetched.
    fn add_batch(
        &mut self,
        now: Duration,
        keys: &[&[u8]],
        hashes: &[KeyHash; BATCH],
        on_result: &mut impl FnMut(bool),
    ) {
        if (keys.len() as u64) > self.filter.room_in_next() {
            // Some of the keys may start a new component, which the catalogue must record.
            let keys = keys.iter().zip(hashes);
            return keys.for_each(|(key, hash)| on_result(self.add_hashed(now, key, *hash)));
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
            on_result(is_new);
        }
        self.climb_or_descend(now);
    }

    fn add_hashed(&mut self, now: Duration, key: &[u8], hash: KeyHash) -> bool {
        if !self.catalogue.insert_new(key, self.filter.next_component()) {
            return false;
        }
        self.insert(now, hash, self.catalogue.len());
        self.climb_or_descend(now);
        true
    }

    /// Adds a key that is new in the catalogue to the filter and reports it to the publisher.
    /// `items` is the number of keys that the catalogue now holds.
    fn insert(&mut self, now: Duration, hash: KeyHash, items: u64) {
        let (component, flips) = self.filter.insert_counted(self.filter.scheme().digest_of(hash));
        self.sample.added(hash);
        if let Some(build) = &mut self.build {
            build.added(hash);
        }
        self.publisher.added(now, hash, Placed { component, flips }, items);
    }

    /// Removes a key; returns whether it was in the set.
    pub fn remove(&mut self, now: Duration, key: &[u8]) -> bool {
        let in_pass = self.build.is_some().then(|| self.catalogue.in_pass(key));
        let Some(component) = self.catalogue.remove(key) else { return false };
        let component = match self.growth {
            Growth::Ladder(_) => ONLY,
            Growth::Components { .. } => component,
        };
        let hash = self.hasher.hash(key);
        let flips = self.filter.remove_counted(component, self.filter.scheme().digest_of(hash));
        debug_assert!(flips.is_some(), "the filter holds the keys of the catalogue");
        self.publisher.removed(now, hash, flips.unwrap_or(0), self.catalogue.len());
        self.sample.removed(hash);
        if let (Some(build), Some(in_pass)) = (&mut self.build, in_pass) {
            build.removed(hash, in_pass);
        }
        if self.sample.is_worn() {
            self.draw_sample();
        }
        self.climb_or_descend(now);
        true
    }

    /// Whether the set contains the key. Exact.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.catalogue.contains(key)
    }

    /// Publishes an update if one is due. Returns whether there was one. For callers who use a home
    /// without an engine: [`Home::published_claims`] is then the answer of every receiver.
    pub fn publish_if_due(&mut self, now: Duration) -> bool {
        self.poll(now).is_some()
    }

    /// Publishes an update if one is due, and returns it.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Publication> {
        let prepared = self.prepare_due(now)?;
        Some(self.encode(now, &prepared))
    }

    /// Prepares an update if one is due. From now on the published copy is the one that the update
    /// leads to. After encoding the update, the caller must call [`Self::published`], before the
    /// next update.
    pub(crate) fn prepare_due(&mut self, now: Duration) -> Option<PreparedUpdate> {
        self.climb_or_descend(now);
        let shape = self.published_shape();
        let extent = self.publisher.due(now, &Source::new(&self.filter, shape))?;
        if extent == Extent::Everything {
            self.shrink(now);
        }
        Some(self.publisher.prepare(now, &Source::new(&self.filter, shape), extent))
    }

    /// Records whether an update may be due, for a caller that polls later. Fast, whatever the
    /// policy.
    pub(crate) fn note_due(&mut self, now: Duration) {
        let source = Source::new(&self.filter, self.published_shape());
        self.publisher.note_due(now, &source);
    }

    /// Publishes everything, because a caller requested it.
    pub(crate) fn publish(&mut self, now: Duration) -> Publication {
        let prepared = self.prepare_everything(now);
        self.encode(now, &prepared)
    }

    /// As [`Self::prepare_due`], for an update that carries everything.
    pub(crate) fn prepare_everything(&mut self, now: Duration) -> PreparedUpdate {
        self.shrink(now);
        let source = Source::new(&self.filter, self.published_shape());
        self.publisher.prepare(now, &source, Extent::Everything)
    }

    fn encode(&mut self, now: Duration, prepared: &PreparedUpdate) -> Publication {
        let publication = prepared.encode();
        self.publisher.published(now, &publication);
        publication
    }

    /// To be called when an update has been encoded.
    pub(crate) fn published(&mut self, now: Duration, publication: &Publication) {
        self.publisher.published(now, publication);
    }

    /// The shape to publish, if it may be on a lower rung than the filter; `None` if the filter is
    /// published as it is. Rules that count bits use the bits of the filter, so they need the
    /// latter.
    fn published_shape(&self) -> Option<Shape> {
        match (&self.growth, self.publisher.policy().rule) {
            (_, Rule::Overall { .. } | Rule::Dirty { .. }) => None,
            (Growth::Ladder(choice), _) => Some(*choice.shape()),
            (Growth::Components { .. }, _) => None,
        }
    }

    /// Reports to the publisher that the filter, or what is published of it, moved to another rung.
    fn report_moved(&mut self, now: Duration) {
        let source = Source::new(&self.filter, self.published_shape());
        self.publisher.moved(now, &source);
    }

    /// Reports to the publisher that the filter was rebuilt in a shape whose digests may differ.
    fn report_rebuilt(&mut self, now: Duration) {
        let source = Source::new(&self.filter, self.published_shape());
        self.publisher.rebuilt(now, &source);
    }

    /// Whether the published copy was staler than the policy permits when last polled.
    pub(crate) const fn is_broken(&self) -> bool {
        self.publisher.is_broken()
    }

    /// When to poll again if nothing changes before.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        let rung = match &self.growth {
            Growth::Ladder(choice) => choice.next_timeout(),
            Growth::Components { .. } => None,
        };
        self.publisher.next_timeout().into_iter().chain(rung).min()
    }

    /// The catalogue, without the rest of the home.
    pub(crate) fn into_catalogue(self) -> C {
        self.catalogue
    }

    /// Changes the policy.
    pub fn set_policy(&mut self, policy: Policy) {
        self.plan.policy = policy;
        self.publisher.set_policy(policy);
    }
}
