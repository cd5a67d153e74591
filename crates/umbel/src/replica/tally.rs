//! What changed since the last update: misses, ghosts, hashes of keys added and removed.
//!
//! Always true, as long as the caller reports every real change of membership:
//!
//! * `misses` is exactly the number of members that the kept copy denies. The copy does not change
//!   between updates. So a key is a miss from when it is added until it is removed or the next
//!   update, which covers every member.
//! * `added` is a multiset: for a digest that was not in the set at the last update, subtracting
//!   `removed` leaves as many entries as members have this digest now. Two members may share a
//!   digest.
//! * `ghosts` is the number of removed keys that the kept copy still claims, exact as long as the
//!   memory of removed digests has room, an upper bound afterwards.
//!
//! Formulas, section 2: without either of the first two rules, replicas would deny some members
//! after an update.

use std::collections::BTreeMap;

use crate::filter::ComponentId;
use crate::key_hash::KeyHash;

/// What changed since the last update.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    misses: u64,
    ghosts: u64,
    /// Ghosts that were left after the last update.
    ghosts_before: u64,
    /// Removed digests that the kept copy claims, with how many keys had them.
    remembered: BTreeMap<KeyHash, u32>,
    added: Vec<(KeyHash, ComponentId)>,
    removed: Vec<KeyHash>,
    /// Whether digests were dropped because there was no room: the update must use bits instead.
    overflowed: bool,
    /// Bits that flipped to one and to zero since the last exact count.
    pub(super) flips: FlipBound,
}

/// Keys added and removed between two updates.
#[derive(Debug)]
pub(super) struct Pending {
    added: Vec<(KeyHash, ComponentId)>,
    removed: Vec<KeyHash>,
}

impl Pending {
    /// The keys that an update must contain, sorted by hash, with the components that hold them.
    pub(super) fn held(&self) -> Vec<(KeyHash, ComponentId)> {
        let mut added = self.added.clone();
        added.sort_unstable();
        let mut removed = self.removed.clone();
        removed.sort_unstable();
        let mut gone = removed.into_iter().peekable();
        added.retain(|(hash, _)| {
            while gone.next_if(|other| other < hash).is_some() {}
            gone.next_if_eq(hash).is_none()
        });
        added
    }

    /// Replaces the ids of components.
    pub(super) fn rename(&mut self, id: impl Fn(ComponentId) -> ComponentId) {
        self.added.iter_mut().for_each(|(_, component)| *component = id(*component));
    }
}

/// An upper bound for the dirty bits: the last exact count plus all flips since.
#[derive(Debug, Clone, Default)]
pub(super) struct FlipBound {
    /// Dirty ones of each component; there are few components.
    ones: Vec<(ComponentId, u64)>,
    /// Dirty zeros of all components.
    pub(super) zeros: u64,
}

impl FlipBound {
    /// Bits of a component flipped to one.
    #[inline]
    pub(super) fn add_ones(&mut self, id: ComponentId, flips: u64) {
        match self.ones.iter_mut().find(|(other, _)| *other == id) {
            Some((_, ones)) => *ones += flips,
            None => self.ones.push((id, flips)),
        }
    }

    /// Dirty ones of a component, at most.
    pub(super) fn ones(&self, id: ComponentId) -> u64 {
        self.ones.iter().find(|(other, _)| *other == id).map_or(0, |(_, ones)| *ones)
    }

    /// Dirty bits, at most.
    pub(super) fn total(&self) -> u64 {
        self.ones.iter().map(|(_, ones)| ones).sum::<u64>() + self.zeros
    }
}

/// The tally has room for `ROOM` digests, or one per `MEMBERS_A_DIGEST` members if that is more.
const ROOM: usize = 4096;
const MEMBERS_A_DIGEST: u64 = 4;

impl Tally {
    /// A key was added; `claimed` says whether the kept copy claims it.
    pub(super) fn added(
        &mut self,
        hash: KeyHash,
        component: ComponentId,
        claimed: bool,
        items: u64,
    ) {
        if claimed {
            self.forget_ghost(hash);
        } else {
            self.misses += 1;
        }
        if !self.overflowed {
            self.added.push((hash, component));
            self.check_room(items);
        }
    }

    /// This many keys were added at once. The kept copy claims none of them.
    pub(super) fn unpublished(&mut self, items: u64) {
        self.misses += items;
        self.forget_digests();
    }

    /// A key was removed; `claimed` says whether the kept copy claims it.
    pub(super) fn removed(&mut self, hash: KeyHash, claimed: bool, items: u64) {
        if claimed {
            self.ghosts += 1;
            if self.remembered.len() < room(items) {
                *self.remembered.entry(hash).or_default() += 1;
            }
        } else {
            debug_assert!(self.misses > 0, "a denied member was counted when it was added");
            self.misses = self.misses.saturating_sub(1);
        }
        if !self.overflowed {
            self.removed.push(hash);
            self.check_room(items);
        }
    }

    pub(super) const fn misses(&self) -> u64 {
        self.misses
    }

    pub(super) const fn ghosts(&self) -> u64 {
        self.ghosts
    }

    /// How many ghosts there will be at the next update if they keep growing as since the last one.
    /// If these are too many, sending clears now saves an update that would soon be needed for
    /// them.
    pub(super) const fn ghosts_ahead(&self) -> u64 {
        self.ghosts + self.ghosts.saturating_sub(self.ghosts_before)
    }

    /// Whether nothing has changed since the last update, and no ghost is left.
    pub(super) fn is_clean(&self) -> bool {
        let is_published = self.added.is_empty() && self.removed.is_empty();
        is_published && !self.overflowed && self.ghosts == 0 && self.misses == 0
    }

    /// Keys added and removed since the last update; `None` if they were too many to remember.
    pub(super) fn pending(&self) -> Option<Pending> {
        let Self { added, removed, .. } = self;
        (!self.overflowed).then(|| Pending { added: added.clone(), removed: removed.clone() })
    }

    /// As [`Self::pending`], but takes the keys out. The caller must call [`Self::published`] next.
    pub(super) fn take_pending(&mut self) -> Option<Pending> {
        let (added, removed) = (std::mem::take(&mut self.added), std::mem::take(&mut self.removed));
        (!self.overflowed).then_some(Pending { added, removed })
    }

    /// How many keys [`Self::pending`] returns.
    pub(super) fn pending_len(&self) -> Option<u64> {
        (!self.overflowed).then_some((self.added.len() + self.removed.len()) as u64)
    }

    /// An update was published that covers every member. `cleared` says whether it also cleared the
    /// bits that are no longer in use.
    pub(super) fn published(&mut self, cleared: bool) {
        self.misses = 0;
        self.added.clear();
        self.removed.clear();
        self.overflowed = false;
        if cleared {
            self.ghosts = 0;
            self.remembered.clear();
            self.flips = FlipBound::default();
        }
        self.ghosts_before = self.ghosts;
    }

    fn forget_ghost(&mut self, hash: KeyHash) {
        if let Some(count) = self.remembered.get_mut(&hash) {
            *count -= 1;
            self.ghosts -= 1;
            if *count == 0 {
                self.remembered.remove(&hash);
            }
        }
    }

    /// Drops the digests, because they no longer fit the filter or are too many: the update must
    /// use bits.
    pub(super) fn forget_digests(&mut self) {
        self.overflowed = true;
        self.added = Vec::new();
        self.removed = Vec::new();
    }

    fn check_room(&mut self, items: u64) {
        if self.added.len() + self.removed.len() > room(items) {
            self.forget_digests();
        }
    }
}

/// How many digests are remembered. For more than a quarter of all members, bits are shorter than
/// digests anyway.
fn room(items: u64) -> usize {
    ROOM.max((items / MEMBERS_A_DIGEST) as usize)
}
