//! Decides when a home's filter is stale enough to publish, and what to send.
//!
//! Fed by real changes of membership (`home`); read by the engine. Holds the kept copy,
//! counts what changed since (`tally`), and asks the policy whether an update is due.
//!
//! Adds and clears are judged apart. A missing one bit loses objects, a missing zero bit
//! costs a vain probe at most, so an update may carry the adds alone; clears wait for the
//! ghost target, for the promised false positive rate, or for the longest interval, and
//! never travel without all pending adds.
//!
//! Always true: the kept copy is what receivers have once all updates have arrived (debug
//! builds run their decoder, and every update carries the checksum of what it leads to);
//! right after an update it claims every member, so that `misses` is zero; and a fresh copy
//! that would itself break a target never leads to a loop of updates.
//!
//! Not here: timers and peers (`engine`); growing into a larger shape (`home`).
//! Papers 1 and 3, section 4; formulas, sections 2 and 7.

use std::time::Duration;

use super::image::Image;
use super::paged::{Target, decode_changes, encode_changes};
use super::policy::{DEFAULT_GHOST, Policy, Rule};
use super::tally::{FlipBound, Tally};
use crate::bits::BitVector;
use crate::codec::Reader;
use crate::filter::{ComponentId, CountingFilter, DynamicFilter};
use crate::key_hash::{Digest, KeyHash};
use crate::model::stale;

/// How long updates wait for each other, and changes for an update, where the policy is
/// silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// From one update to the next, at least.
    pub shortest: Duration,
    /// From a change to an update that carries it, clears included, at most.
    pub longest: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { shortest: Duration::from_secs(1), longest: Duration::from_secs(600) }
    }
}

/// How stale the published copy is, and what it answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Freshness {
    /// Members that the copy denies, as a share of all: exact.
    pub miss: f64,
    /// Removed keys that the copy still claims, per member.
    pub ghost: f64,
    /// The copy's false positive rate, from its fill.
    pub false_positive: f64,
    /// The papers' false negative: home and copy differ on a random key.
    pub disagreement: f64,
    /// Share of bits that are one at home and zero in the copy.
    pub dirty_ones: f64,
    /// Share of bits that are zero at home and one in the copy.
    pub dirty_zeros: f64,
}

/// What a publisher has sent, and what it would have cost otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Updates.
    pub updates: u64,
    /// Their bytes, each counted once.
    pub bytes: u64,
    /// The same updates as whole plain filters.
    pub full_broadcast_bytes: u64,
}

/// What an update carries, ready for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Publication {
    /// Whether the changes lead from nothing to the image, rather than from the image
    /// before.
    pub(crate) from_nothing: bool,
    /// The changes; `None` where they are too long for a message: receivers fetch pages.
    pub(crate) changes: Option<Vec<u8>>,
}

/// Where an added key went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) component: ComponentId,
    /// Bits that it flipped to one.
    pub(crate) flips: u32,
}

/// How much an update is to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What was added.
    Adds,
    /// Everything: the copy becomes the home's filter.
    Everything,
}

/// How the kept copy differs from the home's filter: exact counts.
#[derive(Debug)]
struct Gap {
    flips: FlipBound,
    /// Chance that the filter claims a random key and the copy denies it.
    disagreement: f64,
}

/// Keeps the published copy and decides when it is too stale.
#[derive(Debug, Clone)]
pub(crate) struct Publisher {
    policy: Policy,
    intervals: Intervals,
    kept: Image,
    /// The kept copy's false positive rate, from its fills.
    kept_false_positive: f64,
    tally: Tally,
    /// False positive rate that the copy must keep.
    promised: f64,
    last_update: Option<Duration>,
    /// When a target was first seen broken since the last update.
    broken_since: Option<Duration>,
    /// When something first changed that no update has carried yet.
    dirty_since: Option<Duration>,
    /// When a bit first went out of use that no update has cleared yet.
    clears_since: Option<Duration>,
    /// When the budget allows the next update.
    paid_until: Duration,
    sent: Sent,
    by_digests: bool,
}

/// The longest update that is sent to everybody at once; longer ones are fetched in pages.
const LONGEST_MESSAGE: usize = 192 << 10;

/// A fresh copy must be at least this much better before publishing it makes sense.
const WORTHWHILE: f64 = 0.9;

impl Publisher {
    /// A publisher of a filter of which nothing was published yet.
    pub(crate) fn new(
        policy: Policy,
        intervals: Intervals,
        filter: &DynamicFilter,
        promised: f64,
    ) -> Self {
        Self {
            policy,
            intervals,
            kept: Image::new(*filter.scheme(), Vec::new()),
            kept_false_positive: 0.0,
            tally: Tally::default(),
            promised,
            last_update: None,
            broken_since: None,
            dirty_since: None,
            clears_since: None,
            paid_until: Duration::ZERO,
            sent: Sent::default(),
            by_digests: true,
        }
    }

    /// Whether updates may name added keys by their digests.
    pub(crate) const fn set_by_digests(&mut self, by_digests: bool) {
        self.by_digests = by_digests;
    }

    /// Another false positive rate for the copy to keep.
    pub(crate) const fn set_promised(&mut self, promised: f64) {
        self.promised = promised;
    }

    pub(crate) const fn kept(&self) -> &Image {
        &self.kept
    }

    pub(crate) const fn policy(&self) -> Policy {
        self.policy
    }

    pub(crate) const fn sent(&self) -> Sent {
        self.sent
    }

    /// Another policy, from now on.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.broken_since = None;
    }

    /// Asks for the memory that a change of this key will look at.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        self.kept.prefetch_claims(self.kept.scheme().cut(hash));
    }

    /// A key was added to a component, which flipped bits to one.
    #[inline]
    pub(crate) fn added(&mut self, now: Duration, hash: KeyHash, held: Held, items: u64) {
        let claimed = self.kept.claims(self.kept.scheme().cut(hash));
        self.tally.added(hash, held.component, claimed, items);
        self.tally.flips.add_ones(held.component, held.flips.into());
        self.dirty_since.get_or_insert(now);
    }

    /// A key was removed, which flipped bits to zero.
    #[inline]
    pub(crate) fn removed(&mut self, now: Duration, hash: KeyHash, flips: u32, items: u64) {
        let claimed = self.kept.claims(self.kept.scheme().cut(hash));
        self.tally.removed(hash, claimed, items);
        self.tally.flips.zeros += u64::from(flips);
        self.clears_due(now);
    }

    /// Components were merged: the copy still has the old ones, until everything is sent.
    pub(crate) fn merged(&mut self, now: Duration) {
        self.clears_due(now);
    }

    /// The filter was built again; the copy stays what it was.
    pub(crate) fn rebuilt(&mut self, now: Duration, filter: &DynamicFilter) {
        self.tally.forget_digests();
        self.recount(filter);
        self.clears_due(now);
    }

    fn clears_due(&mut self, now: Duration) {
        self.dirty_since.get_or_insert(now);
        self.clears_since.get_or_insert(now);
    }

    /// Whether an update is due, and how much it is to carry.
    pub(crate) fn due(&mut self, now: Duration, filter: &DynamicFilter) -> Option<Extent> {
        let dirty_since = self.dirty_since?;
        if now >= dirty_since + self.longest() {
            return Some(Extent::Everything);
        }
        let extent = self.broken(now, filter);
        if extent.is_none() {
            self.broken_since = None;
            return None;
        }
        self.broken_since.get_or_insert(now);
        if now < self.earliest() { None } else { extent }
    }

    /// Whether the target was broken when last asked.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken_since.is_some()
    }

    /// When to ask again although nothing happened.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        let dirty_since = self.dirty_since?;
        let last = self.last_update.unwrap_or(Duration::ZERO);
        let mut next = dirty_since + self.longest();
        if self.broken_since.is_some() {
            next = next.min(self.earliest());
        }
        match self.policy.rule {
            Rule::Interval { every } => next.min((last + every).max(last + self.shortest())),
            Rule::Budget { .. } => next.min(self.paid_until.max(last + self.shortest())),
            _ => next,
        }
        .into()
    }

    /// The earliest moment at which a broken target may lead to an update: the shortest
    /// interval after the last, and a little after the first change, so that a bulk load is
    /// one update.
    fn earliest(&self) -> Duration {
        let shortest = self.shortest();
        let settled = self.broken_since.map_or(Duration::ZERO, |since| since + shortest / 10);
        self.last_update.map_or(settled, |last| settled.max(last + shortest))
    }

    fn shortest(&self) -> Duration {
        self.policy.shortest.unwrap_or(self.intervals.shortest)
    }

    fn longest(&self) -> Duration {
        self.policy.longest.unwrap_or(self.intervals.longest)
    }

    /// Whether the policy's target is broken, and what would mend it.
    fn broken(&mut self, now: Duration, filter: &DynamicFilter) -> Option<Extent> {
        let items = filter.items().max(1) as f64;
        let (misses, ghosts) = (self.tally.misses() as f64, self.tally.ghosts() as f64);
        match self.policy.rule {
            Rule::Miss { ghost, .. } if ghosts > ghost * items => Some(Extent::Everything),
            Rule::Miss { miss, .. } if misses <= miss * items => None,
            Rule::Miss { ghost, .. } if self.tally.ghosts_ahead() as f64 > ghost * items => {
                Some(Extent::Everything)
            }
            Rule::Miss { .. } => Some(Extent::Adds),
            Rule::Overall { target, weights } => {
                // If the fresh filter itself breaks the target, nothing that is sent mends it.
                let fresh = weights.false_positive * filter.false_positive();
                let claimed = weights.false_positive * self.kept_false_positive;
                let is_due = |disagreement: f64| {
                    let overall = claimed + weights.disagreement * disagreement;
                    overall > target && fresh < WORTHWHILE * overall
                };
                let due = is_due(self.disagreement_bound(filter))
                    && is_due(self.recount(filter).disagreement);
                due.then_some(Extent::Everything)
            }
            Rule::Dirty { share } => {
                let most = share * total_bits(filter);
                let due = self.tally.flips.total() as f64 > most
                    && self.recount(filter).flips.total() as f64 > most;
                due.then_some(Extent::Everything)
            }
            Rule::Interval { every } => {
                let last = self.last_update.unwrap_or(Duration::ZERO);
                (now >= last + every).then_some(Extent::Everything)
            }
            Rule::Budget { .. } if now < self.paid_until || self.tally.is_clean() => None,
            Rule::Budget { .. } if ghosts > DEFAULT_GHOST * items => Some(Extent::Everything),
            Rule::Budget { .. } => (misses > 0.0).then_some(Extent::Adds),
            Rule::Manual => None,
        }
    }

    /// The disagreement, from above: as if every flip to one since the last exact count had
    /// made a dirty one, and each component were asked for a key of its own.
    fn disagreement_bound(&self, filter: &DynamicFilter) -> f64 {
        let (m, k) = (filter.scheme().shape().bits(), filter.scheme().shape().hashes());
        let rate = |ones: u64| (ones as f64 / m as f64).powi(k as i32);
        let bound = |(id, component): &(ComponentId, CountingFilter)| {
            let ones = component.bits().ones();
            rate(ones) - rate(ones.saturating_sub(self.tally.flips.ones(*id)))
        };
        filter.components().iter().map(bound).sum()
    }

    /// Counts exactly how copy and filter differ: a pass over all bits.
    fn recount(&mut self, filter: &DynamicFilter) -> Gap {
        let gap = self.gap(filter);
        self.tally.flips = gap.flips.clone();
        gap
    }

    /// How copy and filter differ: a pass over all bits.
    fn gap(&self, filter: &DynamicFilter) -> Gap {
        if self.kept.scheme() != filter.scheme() {
            return self.gap_between_shapes(filter);
        }
        let (m, k) = (filter.scheme().shape().bits(), filter.scheme().shape().hashes());
        let rate = |ones: u64| (ones as f64 / m as f64).powi(k as i32);
        let mut flips = FlipBound::default();
        // A random key is denied by the copy, and by copy and filter both, if it is by every
        // component.
        let (mut copy_denies, mut both_deny) = (1.0, 1.0);
        for (id, component) in filter.components() {
            let here = component.bits();
            let there = self.kept.component(*id).map(|kept| &kept.bits);
            let dirty_ones = there.map_or(here.ones(), |there| here.count_beyond(there));
            let (common, kept) = (here.ones() - dirty_ones, there.map_or(0, BitVector::ones));
            flips.add_ones(*id, dirty_ones);
            flips.zeros += kept - common;
            copy_denies *= 1.0 - rate(kept);
            both_deny *= 1.0 - (rate(kept) + rate(here.ones()) - rate(common));
        }
        let live = |id| filter.components().iter().any(|(other, _)| *other == id);
        for gone in self.kept.components().iter().filter(|component| !live(component.id)) {
            flips.zeros += gone.bits.ones();
            copy_denies *= 1.0 - rate(gone.bits.ones());
            both_deny *= 1.0 - rate(gone.bits.ones());
        }
        Gap { flips, disagreement: f64::max(copy_denies - both_deny, 0.0) }
    }

    /// Bits of different shapes have nothing to do with each other: all ones are dirty.
    fn gap_between_shapes(&self, filter: &DynamicFilter) -> Gap {
        let mut flips = FlipBound::default();
        let ones = |(id, component): &(ComponentId, CountingFilter)| (*id, component.bits().ones());
        filter.components().iter().map(ones).for_each(|(id, ones)| flips.add_ones(id, ones));
        flips.zeros = self.kept.components().iter().map(|kept| kept.bits.ones()).sum();
        let disagreement = filter.false_positive() * (1.0 - self.kept_false_positive);
        Gap { flips, disagreement }
    }

    /// How stale the published copy is: exact counts, a pass over all bits.
    pub(crate) fn freshness(&self, filter: &DynamicFilter) -> Freshness {
        let items = filter.items().max(1) as f64;
        let Gap { flips, disagreement } = self.gap(filter);
        let bits = total_bits(filter);
        Freshness {
            miss: self.tally.misses() as f64 / items,
            ghost: self.tally.ghosts() as f64 / items,
            false_positive: self.kept_false_positive,
            disagreement,
            dirty_ones: (flips.total() - flips.zeros) as f64 / bits,
            dirty_zeros: flips.zeros as f64 / bits,
        }
    }

    /// Members that the copy denies: exact, and kept up.
    pub(crate) const fn misses(&self) -> u64 {
        self.tally.misses()
    }

    /// The copy's false positive rate, from its fills.
    pub(crate) const fn kept_false_positive(&self) -> f64 {
        self.kept_false_positive
    }

    /// Makes the next image and what leads to it.
    pub(crate) fn publish(
        &mut self,
        now: Duration,
        filter: &DynamicFilter,
        extent: Extent,
    ) -> Publication {
        if self.kept.scheme() != filter.scheme() {
            self.kept = Image::new(*filter.scheme(), Vec::new());
        }
        let from_nothing = self.kept.components().is_empty();
        let (bytes, cleared) = self.publish_changes(filter, extent);
        self.tally.published(cleared);
        self.last_update = Some(now);
        self.broken_since = None;
        if cleared {
            self.clears_since = None;
        }
        self.dirty_since = self.clears_since;
        self.account(now, filter, bytes.len() as u64);
        Publication { from_nothing, changes: (bytes.len() <= LONGEST_MESSAGE).then_some(bytes) }
    }

    /// Turns the kept copy into the next one; returns the bytes that do so, and whether
    /// everything was carried.
    fn publish_changes(&mut self, filter: &DynamicFilter, extent: Extent) -> (Vec<u8>, bool) {
        let adds = match extent {
            Extent::Adds => Some(self.targets_of_adds(filter))
                .filter(|targets| self.keeps_promise(targets, filter)),
            Extent::Everything => None,
        };
        let cleared = adds.is_none();
        let (targets, dropped) = match adds {
            Some(targets) => (targets, Vec::new()),
            None => self.targets_of_everything(filter),
        };
        let mut bytes = Vec::new();
        encode_changes(&mut bytes, &self.kept, &targets, &dropped);
        let decoded = cfg!(debug_assertions).then(|| decoded(&bytes, &self.kept));
        dropped.iter().for_each(|id| self.kept.drop(*id));
        targets.into_iter().for_each(|target| self.kept.put(target.id, target.bits));
        debug_assert!(
            decoded.is_none_or(|decoded| decoded == self.kept),
            "receivers make of an update what the home believes that they do"
        );
        let k = filter.scheme().shape().hashes();
        self.kept_false_positive = stale::several_components(k, &self.kept.fills());
        (bytes, cleared)
    }

    /// Every component as it is, and the copy's components that are no more.
    fn targets_of_everything(&self, filter: &DynamicFilter) -> (Vec<Target>, Vec<ComponentId>) {
        let pending = self.pending(filter);
        let targets = filter.components().iter().filter_map(|(id, component)| {
            let same = self.kept.component(*id).is_some_and(|kept| kept.bits == *component.bits());
            (!same).then(|| {
                let bits = component.bits().clone();
                let added = self.explaining(filter, *id, &bits, &pending);
                Target { id: *id, bits, added }
            })
        });
        let live = |id| filter.components().iter().any(|(other, _)| *other == id);
        let gone = self.kept.components().iter().filter(|component| !live(component.id));
        (targets.collect(), gone.map(|component| component.id).collect())
    }

    /// The copy's components with the bits of added keys on top.
    fn targets_of_adds(&self, filter: &DynamicFilter) -> Vec<Target> {
        let pending = self.pending(filter);
        let targets = filter.components().iter().filter_map(|(id, component)| {
            let mut added: Vec<Digest> = match &pending {
                Some(pending) => {
                    pending.iter().filter(|(_, owner)| owner == id).map(|(d, _)| *d).collect()
                }
                None => Vec::new(),
            };
            let kept = self.kept.component(*id);
            let mut bits = match kept {
                Some(kept) => kept.bits.clone(),
                None => component.bits().clone(),
            };
            if pending.is_none() {
                bits.union_with(component.bits());
            }
            for position in added.iter().flat_map(|d| d.positions(filter.scheme().shape())) {
                bits.set(position);
            }
            if !self.by_digests {
                added.clear();
            }
            let same = kept.is_some_and(|kept| kept.bits == bits);
            (!same).then_some(Target { id: *id, bits, added })
        });
        targets.collect()
    }

    /// Pending digests with the components that hold them now.
    fn pending(&self, filter: &DynamicFilter) -> Option<Vec<(Digest, ComponentId)>> {
        let pending = self.tally.pending()?;
        let now = |(hash, component): (KeyHash, ComponentId)| {
            (filter.scheme().cut(hash), filter.living(component))
        };
        Some(pending.into_iter().map(now).collect())
    }

    /// The pending digests of a component, if they explain every bit that it has beyond the
    /// kept copy.
    fn explaining(
        &self,
        filter: &DynamicFilter,
        id: ComponentId,
        bits: &BitVector,
        pending: &Option<Vec<(Digest, ComponentId)>>,
    ) -> Vec<Digest> {
        let (Some(pending), Some(kept), true) = (pending, self.kept.component(id), self.by_digests)
        else {
            return Vec::new();
        };
        let shape = filter.scheme().shape();
        let digests: Vec<Digest> =
            pending.iter().filter(|(_, owner)| *owner == id).map(|(digest, _)| *digest).collect();
        let mut reached = kept.bits.clone();
        let fits = digests.iter().flat_map(|digest| digest.positions(shape)).all(|position| {
            reached.set(position);
            bits.get(position) == 1
        });
        if fits && bits.is_subset_of(&reached) { digests } else { Vec::new() }
    }

    /// Whether the copy would keep the promised rate with these targets and no clears, or
    /// clears would not help.
    fn keeps_promise(&self, targets: &[Target], filter: &DynamicFilter) -> bool {
        let k = filter.scheme().shape().hashes();
        let mut fills = Vec::new();
        for component in self.kept.components() {
            if !targets.iter().any(|target| target.id == component.id) {
                fills.push(component.bits.fill());
            }
        }
        fills.extend(targets.iter().map(|target| target.bits.fill()));
        let rate = stale::several_components(k, &fills);
        rate <= self.promised || filter.false_positive() > WORTHWHILE * rate
    }

    fn account(&mut self, now: Duration, filter: &DynamicFilter, bytes: u64) {
        let plain = filter.scheme().shape().bits().div_ceil(8) * filter.components().len() as u64;
        self.sent.updates += 1;
        self.sent.bytes += bytes;
        self.sent.full_broadcast_bytes += plain;
        if let Rule::Budget { bytes_per_second } = self.policy.rule {
            let start = self.paid_until.max(now);
            self.paid_until = start + Duration::from_secs_f64(bytes as f64 / bytes_per_second);
        }
    }
}

/// Bits of all components together.
fn total_bits(filter: &DynamicFilter) -> f64 {
    (filter.scheme().shape().bits() * filter.components().len() as u64) as f64
}

/// What receivers of this copy make of an update.
fn decoded(bytes: &[u8], kept: &Image) -> Image {
    let mut image = kept.clone();
    let changes =
        decode_changes(&mut Reader::new(bytes), kept, usize::MAX).expect("own updates decode");
    image.apply(&changes);
    image
}
