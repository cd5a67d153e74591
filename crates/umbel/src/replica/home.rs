//! One set at its home: catalogue, filter and publisher, kept in step.
//!
//! `add` and `remove` go through the catalogue (real changes only), into the filter, to the
//! publisher (what replicas miss).
//!
//! A home of a mesh stands on a ladder (`design::ladder`): one component on the lowest rung at
//! first, built again from the catalogue on a higher rung when it is full, folded to a lower one
//! when it has been nearly empty for long. A home of an overlay has the shape that all agreed on,
//! and as many components of it as its keys take.
//!
//! Always true: the filter holds exactly the keys of the catalogue; of several components, each
//! key in the one that the catalogue remembers. On a ladder the filter follows from keys and rung
//! alone, so that a home that restarts on the same rung has the same bits.

use std::time::Duration;

use super::image::Image;
use super::paged::ONLY;
use super::policy::Policy;
use super::publisher::{Extent, Freshness, Held, Intervals, Publication, Publisher, Sent};
use super::sample::Sample;
use crate::catalogue::Catalogue;
use crate::design::ladder::{
    ExpectedHosts, Ladder, Move, Rung, RungChoice, Standing, steps_between,
};
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
    /// Hosts that the rate is shared among; `None`: as many as are homes of the set, with room.
    pub expected_hosts: Option<u32>,
    /// Keys that there is room for from the start, and always; without them a set starts on the
    /// lowest rung.
    pub capacity: Option<u64>,
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
            expected_hosts: None,
            capacity: None,
            policy: Policy::default(),
            by_digests: true,
        }
    }
}

impl SetPlan {
    /// The shapes that the set's filters may have.
    ///
    /// # Errors
    /// If the promised rate is not between 0 and 1, or no host is expected.
    pub fn ladder(&self) -> Result<Ladder, ParamError> {
        match self.expected_hosts {
            Some(0) => Err(ParamError::Items(0)),
            _ => Ok(Ladder::new(Rate::new(self.false_positive)?)),
        }
    }

    /// Hosts that a new set is planned for.
    #[must_use]
    pub fn initial_hosts(&self) -> u32 {
        self.expected_hosts.unwrap_or(ExpectedHosts::FEWEST)
    }

    /// The rung that a set of so many keys starts on.
    ///
    /// # Errors
    /// If the promised rate is not between 0 and 1, no host is expected, or no rung takes so
    /// many keys.
    pub fn rung_for(&self, keys: u64) -> Result<Rung, ParamError> {
        let wanted = keys.max(self.capacity.unwrap_or(0));
        let rung = self.ladder()?.rung_for(wanted, self.initial_hosts());
        rung.ok_or(ParamError::Items(wanted))
    }
}

/// How the filter of a home grows.
#[derive(Debug)]
enum Growth {
    /// Along a ladder.
    Ladder(RungChoice),
    /// By components of this shape for so many keys.
    Components { capacity: u64 },
}

/// Keys whose memory is asked for ahead of their turn.
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
    /// Memory for filter and published copy; a climb beyond it does not happen.
    memory_limit: u64,
    is_confined: bool,
}

/// Components that a filter of a fixed shape may have.
const MAX_COMPONENTS: u32 = u16::MAX as u32;

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

    /// As [`Self::new`], for a home that stood on a rung before: it stays there if its keys still
    /// fit, and then has the same bits as before.
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
        let filter = filter_on(hasher, &choice, choice.rung())?;
        let promised = ladder.replica_rate(hosts)?.get();
        let mut publisher = Publisher::new(plan.policy, intervals, &filter, promised);
        publisher.set_by_digests(plan.by_digests);
        let mut home = Self {
            catalogue,
            hasher,
            plan,
            growth: Growth::Ladder(choice),
            filter,
            publisher,
            sample: Sample::new(),
            rebuilds: 0,
            memory_limit: u64::MAX,
            is_confined: false,
        };
        home.fill(Duration::ZERO);
        Ok(home)
    }

    /// A home whose filter has a given shape: components of `capacity` keys, as many as its keys
    /// take. It is never built into another shape but by `change_shape`.
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
        let mut home = Self {
            catalogue,
            hasher,
            plan: SetPlan { capacity: Some(capacity), policy, ..SetPlan::default() },
            growth: Growth::Components { capacity },
            filter,
            publisher,
            sample: Sample::new(),
            rebuilds: 0,
            memory_limit: u64::MAX,
            is_confined: false,
        };
        home.fill(Duration::ZERO);
        Ok(home)
    }

    /// Builds the filter again into another given shape.
    ///
    /// # Errors
    /// If there is no memory; nothing changes then.
    pub(crate) fn change_shape(
        &mut self,
        now: Duration,
        shape: Shape,
        capacity: u64,
    ) -> Result<(), ParamError> {
        let filter = filter_of(self.hasher, shape, capacity)?;
        self.growth = Growth::Components { capacity };
        self.plan.capacity = Some(capacity);
        self.rebuild(filter);
        self.publisher.rebuilt(now, &self.filter);
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
            // Some may start a component, which the catalogue has to know.
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

    /// A key is new in the catalogue, which holds this many now: the filter and the publisher
    /// hear of it.
    fn insert(&mut self, now: Duration, hash: KeyHash, items: u64) {
        let (component, flips) = self.filter.insert_counted(self.filter.scheme().cut(hash));
        self.sample.added(hash);
        self.publisher.added(now, hash, Held { component, flips }, items);
    }

    /// Moves the filter to the rung where it should be, if that is another.
    fn climb_or_descend(&mut self, now: Duration) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        match choice.ask(now, self.catalogue.len()) {
            None => self.is_confined = false,
            Some(Move::Climb(to) | Move::Descend(to)) => self.move_to(now, to),
        }
        if let Growth::Ladder(choice) = &mut self.growth {
            choice.expire(now);
        }
    }

    /// Stands on another rung: folds the filter, or builds it again from the catalogue. Without
    /// memory for a larger filter the present one goes on, fuller than planned.
    fn move_to(&mut self, now: Duration, to: Rung) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        self.is_confined = memory_of(to) > self.memory_limit && to > choice.rung();
        if self.is_confined {
            return;
        }
        let shape = choice.ladder().shape(to);
        let steps = steps_between(self.filter.scheme().shape(), &shape);
        let moved = match steps {
            Some(0) => return,
            Some(down @ ..0) => self.filter.folded(down.unsigned_abs()),
            _ => filter_on(self.hasher, choice, to),
        };
        let Ok(filter) = moved else { return };
        choice.moved(now, to);
        match steps {
            Some(..0) => self.filter = filter,
            _ => self.rebuild(filter),
        }
        match steps {
            Some(_) => self.publisher.moved(now, &self.filter),
            None => self.publisher.rebuilt(now, &self.filter),
        }
    }

    /// Removes a key; returns whether it was held.
    pub fn remove(&mut self, now: Duration, key: &[u8]) -> bool {
        let Some(component) = self.catalogue.remove(key) else { return false };
        let component = match self.growth {
            Growth::Ladder(_) => ONLY,
            Growth::Components { .. } => component,
        };
        let hash = self.hasher.hash(key);
        let flips = self.filter.remove_counted(component, self.filter.scheme().cut(hash));
        debug_assert!(flips.is_some(), "the filter holds the keys of the catalogue");
        self.publisher.removed(now, hash, flips.unwrap_or(0), self.catalogue.len());
        self.sample.removed(hash);
        if self.sample.is_worn() {
            self.draw_sample();
        }
        self.climb_or_descend(now);
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
        self.climb_or_descend(now);
        let extent = self.publisher.due(now, &self.filter)?;
        if extent == Extent::Everything {
            self.shrink(now);
        }
        Some(self.publisher.publish(now, &self.filter, extent))
    }

    /// Notes whether an update may be due, for who polls later: short, whatever the policy.
    pub(crate) fn note_due(&mut self, now: Duration) {
        self.publisher.note_due(now, &self.filter);
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
        let rung = match &self.growth {
            Growth::Ladder(choice) => choice.next_timeout(),
            Growth::Components { .. } => None,
        };
        self.publisher.next_timeout().into_iter().chain(rung).min()
    }

    /// Another plan. If that asks for another rung or another ladder, the filter is folded or
    /// built again, and what was published answers until the next update.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory, or more would be
    /// taken than the set may use; nothing changes then.
    pub fn replan(&mut self, now: Duration, plan: SetPlan) -> Result<(), ParamError> {
        let ladder = plan.ladder()?;
        let (before, hosts) = match &self.growth {
            Growth::Ladder(choice) => (Some(choice.rung()), choice.hosts()),
            Growth::Components { .. } => (None, plan.initial_hosts()),
        };
        // Of a set that follows its hosts, the number that is planned now stays.
        let hosts = plan.expected_hosts.unwrap_or(hosts);
        let reserved = plan.capacity.unwrap_or(0);
        let choice = RungChoice::new(ladder, hosts, self.catalogue.len(), reserved, before);
        let shape = ladder.shape(choice.rung());
        if before.is_none_or(|before| choice.rung() > before)
            && memory_of(choice.rung()) > self.memory_limit
        {
            return Err(ParamError::Memory(shape.bits()));
        }
        let promised = ladder.replica_rate(hosts)?.get();
        let steps = steps_between(self.filter.scheme().shape(), &shape);
        match steps.filter(|_| before.is_some()) {
            Some(0) => {}
            Some(down @ ..0) => {
                self.filter = self.filter.folded(down.unsigned_abs())?;
                self.publisher.moved(now, &self.filter);
            }
            _ => {
                self.rebuild(filter_on(self.hasher, &choice, choice.rung())?);
                self.publisher.rebuilt(now, &self.filter);
            }
        }
        self.growth = Growth::Ladder(choice);
        self.plan = plan;
        self.publisher.set_policy(plan.policy);
        self.publisher.set_by_digests(plan.by_digests);
        self.publisher.set_promised(promised);
        Ok(())
    }

    /// So many hosts share the promised rate from now on. A climb that this alone makes necessary
    /// waits until `wait` is over.
    pub(crate) fn expect_hosts(&mut self, now: Duration, hosts: u32, wait: Duration) {
        let Growth::Ladder(choice) = &mut self.growth else { return };
        if let Ok(promised) = choice.ladder().replica_rate(hosts) {
            choice.plan(now, hosts, self.plan.capacity.unwrap_or(0), wait);
            self.publisher.set_promised(promised.get());
        }
    }

    /// Filter and published copy may take so many bytes.
    pub(crate) const fn limit_memory(&mut self, bytes: u64) {
        self.memory_limit = bytes;
    }

    /// Whether the set holds more keys than its rung takes because a higher one would take more
    /// memory than it may use: it claims absent keys more often than promised.
    #[must_use]
    pub const fn is_confined(&self) -> bool {
        self.is_confined
    }

    /// Bytes that filter and published copy take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes() as u64 + self.kept().memory_bytes()
    }

    /// Where the set stands on its ladder, if it is on one.
    #[must_use]
    pub const fn rung(&self) -> Option<&RungChoice> {
        match &self.growth {
            Growth::Ladder(choice) => Some(choice),
            Growth::Components { .. } => None,
        }
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
    /// deny. As long as the published copy's scheme says.
    pub(crate) fn sample(&self, count: usize, pick: impl FnMut(u64) -> u64) -> Vec<Digest> {
        let members = self.sample.some(count, pick);
        members.into_iter().map(|hash| self.kept().scheme().cut(hash)).collect()
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

    /// Puts all keys into another, empty filter.
    fn rebuild(&mut self, filter: DynamicFilter) {
        self.rebuilds += 1;
        if matches!(self.growth, Growth::Ladder(_)) {
            self.filter = filter;
            return self.insert_all(|_| ());
        }
        let first = ComponentId(self.filter.next_id());
        self.filter = filter.starting_at(first);
        if self.catalogue.len() <= self.filter.capacity() {
            // All into one component: the catalogue need not be told of each.
            self.insert_all(|_| ());
            self.catalogue.move_all(first);
        } else {
            let filter = &mut self.filter;
            self.catalogue.reassign(&mut |key| filter.insert(key));
        }
    }

    /// Puts all keys of the catalogue into the filter, which has room for them in its first
    /// component.
    fn insert_all(&mut self, mut each: impl FnMut(KeyHash)) {
        let (filter, hasher) = (&mut self.filter, self.hasher);
        let (scheme, mut batch) = (*filter.scheme(), Vec::with_capacity(BATCH));
        self.catalogue.for_each(&mut |key, _| {
            let hash = hasher.hash(key);
            each(hash);
            batch.push(scheme.cut(hash));
            if batch.len() == BATCH {
                filter.insert_digests(&batch);
                batch.clear();
            }
        });
        filter.insert_digests(&batch);
    }

    /// Builds the filter of a home that starts from its catalogue, of which nothing of this life
    /// was published yet.
    fn fill(&mut self, now: Duration) {
        if self.catalogue.is_empty() {
            return;
        }
        match self.growth {
            Growth::Ladder(_) => self.fill_ladder(now),
            Growth::Components { .. } => self.fill_components(now),
        }
        self.publisher.rebuilt(now, &self.filter);
    }

    fn fill_ladder(&mut self, now: Duration) {
        let (mut sample, items) = (Sample::new(), self.catalogue.len());
        self.insert_all(|hash| sample.added(hash));
        self.sample = sample;
        self.publisher.unpublished(now, items);
        self.publisher.restarted();
    }

    /// Into the components that the catalogue remembers.
    fn fill_components(&mut self, now: Duration) {
        let Growth::Components { capacity } = self.growth else { return };
        let (filter, sample, hasher) = (&mut self.filter, &mut self.sample, self.hasher);
        let first = self.catalogue.components().keys().next().copied().unwrap_or(ONLY);
        *filter = filter.clone().starting_at(first);
        self.catalogue.for_each(&mut |key, component| {
            let hash = hasher.hash(key);
            filter.insert_into(component, filter.scheme().cut(hash));
            sample.added(hash);
        });
        self.publisher.unpublished(now, self.catalogue.len());
        if self.filter.components().iter().any(|(_, component)| component.items() > capacity) {
            let shape = *self.filter.scheme().shape();
            if let Ok(filter) = filter_of(self.hasher, shape, capacity) {
                self.rebuild(filter);
            }
        }
    }
}

/// An empty filter on a rung.
fn filter_on(
    hasher: KeyHasher,
    choice: &RungChoice,
    rung: Rung,
) -> Result<DynamicFilter, ParamError> {
    let scheme = Scheme::new(choice.ladder().shape(rung), hasher);
    Ok(DynamicFilter::new(scheme, u64::MAX, 1)?.without_slices())
}

/// An empty filter of components of this shape.
fn filter_of(hasher: KeyHasher, shape: Shape, capacity: u64) -> Result<DynamicFilter, ParamError> {
    let scheme = Scheme::new(shape, hasher);
    Ok(DynamicFilter::new(scheme, capacity, MAX_COMPONENTS)?.without_slices())
}

/// Bytes that the filter of a home on a rung takes, with its counters and the published copy.
pub(crate) const fn memory_of(rung: Rung) -> u64 {
    rung.bits() / 8 * 6
}
