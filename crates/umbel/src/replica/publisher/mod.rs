//! Decides when a home's filter is stale enough to publish, and what to send.
//!
//! `home` reports real changes of membership to it; the engine reads it. It holds the kept copy,
//! counts what changed since (`tally`), and checks the policy to see whether an update is due.
//!
//! Adds and clears are handled separately. A one bit that is missing in replicas hides members; a
//! zero bit that is missing costs at most a useless request. So an update may contain the adds
//! alone, sent after the policy's `longest` at the latest. Clears wait for the ghost target, for
//! the promised false positive rate, or for the policy's `clears`, and are never sent without all
//! pending adds.
//!
//! Always true: the kept copy is what receivers have once all updates have arrived (debug builds
//! run their decoder, and every update contains the checksum of its result). Right after an update
//! the kept copy claims every member, so that `misses` is zero. If even a fresh copy would break a
//! target, this does not cause endless updates.
//!
//! Not here: timers and peers (`engine`); growing into a larger shape (`home`).
//! Papers 1 and 3, section 4; docs/papers.md has the symbols.

mod digests;
mod due;
mod gap;
mod prepared;
mod publish;
mod source;

pub(crate) use prepared::PreparedUpdate;
pub(crate) use source::Source;

use std::sync::Arc;
use std::time::Duration;

use super::image::Image;
use super::policy::Policy;
use super::tally::Tally;
use crate::filter::{ComponentId, DynamicFilter};
use crate::key_hash::KeyHash;

/// Times between updates, and from a change to its update, where the policy does not set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// Shortest time between two updates.
    pub shortest: Duration,
    /// Longest time from adding a key that replicas deny to an update that contains it.
    pub longest: Duration,
    /// Longest time from a removal to an update that contains it.
    pub clears: Duration,
}

impl Intervals {
    /// The defaults of a host.
    pub const DEFAULT: Self = Self {
        shortest: Duration::from_secs(1),
        longest: Duration::from_secs(600),
        clears: Duration::from_secs(600),
    };
}

impl Default for Intervals {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How stale the published copy is, and what it answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Freshness {
    /// Share of all members that the copy denies. Exact.
    pub miss: f64,
    /// Removed keys that the copy still claims, per member.
    pub ghost: f64,
    /// The copy's false positive rate, from its fill.
    pub false_positive: f64,
    /// The false negative rate of the papers: the probability that home and copy differ on a random
    /// key.
    pub disagreement: f64,
    /// Share of bits that are one at home and zero in the copy.
    pub dirty_ones: f64,
    /// Share of bits that are zero at home and one in the copy.
    pub dirty_zeros: f64,
}

/// What a publisher has sent, and what sending whole filters would have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Number of updates.
    pub updates: u64,
    /// Their bytes, each counted once.
    pub bytes: u64,
    /// Bytes of the same updates if each were sent as a whole plain filter.
    pub full_broadcast_bytes: u64,
}

/// Keys that were added to a set and removed from it since its home started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// Keys added.
    pub added: u64,
    /// Keys removed.
    pub removed: u64,
}

/// An encoded update, ready for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Publication {
    /// Whether the changes start from nothing, rather than from the previous image.
    pub(crate) from_nothing: bool,
    pub(crate) changes: Arc<Vec<u8>>,
    /// Whether they are short enough to be sent to all hosts; otherwise receivers fetch what they
    /// lack.
    pub(crate) is_short: bool,
    /// Bytes of the same update as a whole plain filter.
    pub(crate) plain_bytes: u64,
}

/// Where an added key was inserted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) component: ComponentId,
    /// Bits that it flipped to one.
    pub(crate) flips: u32,
}

/// How much an update contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Only the keys that were added.
    Adds,
    /// Everything: the copy becomes the home's filter.
    Everything,
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
    /// Time of the first change that no update contains yet.
    dirty_since: Option<Duration>,
    /// Since when the copy has denied at least one member; `None` if it denies none.
    missed_since: Option<Duration>,
    /// Since when there are bits that are no longer in use and that no update has cleared yet.
    clears_since: Option<Duration>,
    /// When the budget allows the next update.
    paid_until: Duration,
    sent: Sent,
    changed: Changed,
    by_digests: bool,
    /// Whether the first update of this incarnation may lead to bits that other hosts have from the
    /// previous one.
    is_restart: bool,
}

/// A fresh copy must be at least this much better before publishing it makes sense.
const WORTHWHILE: f64 = 0.9;

impl Publisher {
    /// A publisher for a filter of which nothing was published yet.
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
            missed_since: None,
            clears_since: None,
            paid_until: Duration::ZERO,
            sent: Sent::default(),
            changed: Changed::default(),
            by_digests: true,
            is_restart: false,
        }
    }

    /// The filter was built from keys that an earlier incarnation of the home may have published.
    pub(crate) const fn restarted(&mut self) {
        self.is_restart = true;
    }

    /// Sets whether updates may contain the digests of added keys.
    pub(crate) const fn set_by_digests(&mut self, by_digests: bool) {
        self.by_digests = by_digests;
    }

    /// Changes the false positive rate that the copy must keep.
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

    pub(crate) const fn changed(&self) -> Changed {
        self.changed
    }

    /// Changes the policy.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.broken_since = None;
    }

    /// Prefetches the memory that a change of this key will read.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        self.kept.prefetch_claims(self.kept.scheme().digest_of(hash));
    }

    /// A key was added to a component, which flipped bits to one.
    #[inline]
    pub(crate) fn added(&mut self, now: Duration, hash: KeyHash, held: Placed, items: u64) {
        let claimed = self.kept.claims(self.kept.scheme().digest_of(hash));
        self.tally.added(hash, held.component, claimed, items);
        self.tally.flips.add_ones(held.component, held.flips.into());
        self.changed.added += 1;
        self.dirty_since.get_or_insert(now);
        self.note_misses(now);
    }

    /// The home starts with this many keys. None of them was published in this incarnation.
    pub(crate) fn unpublished(&mut self, now: Duration, items: u64) {
        self.tally.unpublished(items);
        self.dirty_since.get_or_insert(now);
        self.note_misses(now);
    }

    /// A key was removed, which flipped bits to zero.
    #[inline]
    pub(crate) fn removed(&mut self, now: Duration, hash: KeyHash, flips: u32, items: u64) {
        let claimed = self.kept.claims(self.kept.scheme().digest_of(hash));
        self.tally.removed(hash, claimed, items);
        self.tally.flips.zeros += u64::from(flips);
        self.changed.removed += 1;
        self.clears_due(now);
        self.note_misses(now);
    }

    /// Updates since when the copy has denied members without interruption.
    #[inline]
    fn note_misses(&mut self, now: Duration) {
        match self.tally.misses() {
            0 => self.missed_since = None,
            _ => _ = self.missed_since.get_or_insert(now),
        }
    }

    /// Components were merged: the copy still has the old ones, until everything is sent.
    pub(crate) fn merged(&mut self, now: Duration) {
        self.clears_due(now);
    }

    /// The filter was rebuilt in a shape in which digests may differ. The copy does not change.
    pub(crate) fn rebuilt(&mut self, now: Duration, source: &Source<'_>) {
        self.tally.forget_digests();
        self.moved(now, source);
    }

    /// The filter, or what is published of it, moved to another rung of its ladder. The copy does
    /// not change.
    pub(crate) fn moved(&mut self, now: Duration, source: &Source<'_>) {
        match source.is_folded() {
            // No rule that counts bits is in force, and a pass over all bits takes long.
            true => self.tally.flips = self.gap_between_shapes(source).flips,
            false => _ = self.recount(source),
        }
        self.clears_due(now);
        // The copy may have been published while the filter was overfull.
        self.note_due(now, source);
    }

    fn clears_due(&mut self, now: Duration) {
        self.dirty_since.get_or_insert(now);
        self.clears_since.get_or_insert(now);
    }

    /// Number of members that the copy denies. Exact; takes constant time.
    pub(crate) const fn misses(&self) -> u64 {
        self.tally.misses()
    }

    /// The copy's false positive rate, from its fills.
    pub(crate) const fn kept_false_positive(&self) -> f64 {
        self.kept_false_positive
    }
}
