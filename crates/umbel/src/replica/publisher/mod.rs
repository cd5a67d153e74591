//! Decides when a home's filter is stale enough to publish, and what to send.
//!
//! Fed by real changes of membership (`home`); read by the engine. Holds the kept copy,
//! counts what changed since (`tally`), and asks the policy whether an update is due.
//!
//! Adds and clears are judged apart. A missing one bit loses objects, a missing zero bit
//! costs a vain probe at most, so an update may carry the adds alone, after the policy's
//! `longest` at the latest; clears wait for the ghost target, for the promised false positive
//! rate, or for the policy's `clears`, and never travel without all pending adds.
//!
//! Always true: the kept copy is what receivers have once all updates have arrived (debug
//! builds run their decoder, and every update carries the checksum of what it leads to);
//! right after an update it claims every member, so that `misses` is zero; and a fresh copy
//! that would itself break a target never leads to a loop of updates.
//!
//! Not here: timers and peers (`engine`); growing into a larger shape (`home`).
//! Papers 1 and 3, section 4; formulas, sections 2 and 7.

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

/// How long updates wait for each other, and changes for an update, where the policy is
/// silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// From one update to the next, at least.
    pub shortest: Duration,
    /// From an add that replicas deny to an update that carries it, at most.
    pub longest: Duration,
    /// From a removal to an update that carries it, at most.
    pub clears: Duration,
}

impl Intervals {
    /// What hosts use.
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
    pub(crate) changes: Arc<Vec<u8>>,
    /// Whether they are short enough to be sent to everybody; else receivers fetch what they lack.
    pub(crate) is_short: bool,
    /// The same update as a whole plain filter.
    pub(crate) plain_bytes: u64,
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
    /// When a key was first added that the copy denies, unless it denies no member now.
    missed_since: Option<Duration>,
    /// When a bit first went out of use that no update has cleared yet.
    clears_since: Option<Duration>,
    /// When the budget allows the next update.
    paid_until: Duration,
    sent: Sent,
    by_digests: bool,
    /// Whether the first update of this life may lead to bits that others have from the last.
    is_restart: bool,
}

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
            missed_since: None,
            clears_since: None,
            paid_until: Duration::ZERO,
            sent: Sent::default(),
            by_digests: true,
            is_restart: false,
        }
    }

    /// The filter was built from keys that an earlier life of the home may have published.
    pub(crate) const fn restarted(&mut self) {
        self.is_restart = true;
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
        self.note_misses(now);
    }

    /// The home starts with so many keys, of which nothing of this life was published.
    pub(crate) fn unpublished(&mut self, now: Duration, items: u64) {
        self.tally.unpublished(items);
        self.dirty_since.get_or_insert(now);
        self.note_misses(now);
    }

    /// A key was removed, which flipped bits to zero.
    #[inline]
    pub(crate) fn removed(&mut self, now: Duration, hash: KeyHash, flips: u32, items: u64) {
        let claimed = self.kept.claims(self.kept.scheme().cut(hash));
        self.tally.removed(hash, claimed, items);
        self.tally.flips.zeros += u64::from(flips);
        self.clears_due(now);
        self.note_misses(now);
    }

    /// Notes since when the copy has denied members without a break.
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

    /// The filter was built again into a shape in which digests may differ; the copy stays what
    /// it was.
    pub(crate) fn rebuilt(&mut self, now: Duration, source: &Source<'_>) {
        self.tally.forget_digests();
        self.moved(now, source);
    }

    /// The filter stands on another rung of its ladder, or is published on another one; the copy
    /// stays what it was.
    pub(crate) fn moved(&mut self, now: Duration, source: &Source<'_>) {
        match source.is_folded() {
            // Rules that count bits are not in force, and a pass over all of them is long.
            true => self.tally.flips = self.gap_between_shapes(source).flips,
            false => _ = self.recount(source),
        }
        self.clears_due(now);
    }

    fn clears_due(&mut self, now: Duration) {
        self.dirty_since.get_or_insert(now);
        self.clears_since.get_or_insert(now);
    }

    /// Members that the copy denies: exact, and kept up.
    pub(crate) const fn misses(&self) -> u64 {
        self.tally.misses()
    }

    /// The copy's false positive rate, from its fills.
    pub(crate) const fn kept_false_positive(&self) -> f64 {
        self.kept_false_positive
    }
}
