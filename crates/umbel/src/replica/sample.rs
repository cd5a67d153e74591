//! A uniform random sample of the members of a set. Costs no more than one comparison per change.
//!
//! A member is in the sample if its hash, mixed once more, is below a threshold; it does not matter
//! when it was added. The threshold is halved when the sample grows too large. When the sample has
//! become too small, a new one is drawn by a pass over the catalogue.
//!
//! Why: receivers count how many of the sampled members they deny, which gives the *measured* miss
//! rate. The measurement is right only if new members are as likely to be sampled as old ones.

use std::collections::BTreeSet;

use crate::key_hash::KeyHash;

/// If the sample has more members than this, it is thinned out.
const MAX: usize = 4096;
/// If the sample has fewer members than this although others were left out, a new one is drawn.
const MIN: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// Hashes whose mix has at least this many leading zeros are in the sample.
    zeros: u32,
    members: BTreeSet<u64>,
}

impl Sample {
    pub(crate) const fn new() -> Self {
        Self { zeros: 0, members: BTreeSet::new() }
    }

    #[inline]
    pub(crate) fn added(&mut self, hash: KeyHash) {
        if self.takes(hash.get()) {
            self.members.insert(hash.get());
            while self.members.len() > MAX {
                self.zeros += 1;
                let zeros = self.zeros;
                self.members.retain(|member| mixed(*member).leading_zeros() >= zeros);
            }
        }
    }

    #[inline]
    pub(crate) fn removed(&mut self, hash: KeyHash) {
        if self.takes(hash.get()) {
            self.members.remove(&hash.get());
        }
    }

    /// Whether so few members are left that a new sample should be drawn.
    #[inline]
    pub(crate) fn is_worn(&self) -> bool {
        self.zeros > 0 && self.members.len() < MIN
    }

    /// Up to `count` members; `pick(n)` returns a number below `n`.
    pub(crate) fn some(&self, count: usize, mut pick: impl FnMut(u64) -> u64) -> Vec<KeyHash> {
        let mut chosen = BTreeSet::new();
        if let Some(last) = self.members.last() {
            for _ in 0..count {
                let from = pick(last.saturating_add(1));
                chosen.extend(self.members.range(from..).next());
            }
        }
        chosen.into_iter().map(KeyHash::from_raw).collect()
    }

    #[inline]
    const fn takes(&self, hash: u64) -> bool {
        mixed(hash).leading_zeros() >= self.zeros
    }
}

/// Mixes a hash once more: its top bits determine positions in the filter, and must not determine
/// which members are sampled.
#[inline]
const fn mixed(hash: u64) -> u64 {
    let folded = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    folded ^ (folded >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: u64) -> KeyHash {
        KeyHash::from_raw(mixed(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    #[test]
    fn stays_small_and_names_members_only() {
        let mut sample = Sample::new();
        (0..100_000).for_each(|key| sample.added(hash(key)));
        assert!((1000..=MAX).contains(&sample.members.len()));
        (0..50_000).for_each(|key| sample.removed(hash(key)));
        let live: BTreeSet<u64> = (50_000..100_000).map(|key| hash(key).get()).collect();
        let mut state = 1u64;
        let mut pick = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 1) % below
        };
        for _ in 0..100 {
            let some = sample.some(8, &mut pick);
            assert!(!some.is_empty() && some.len() <= 8);
            assert!(some.iter().all(|member| live.contains(&member.get())));
        }
    }

    #[test]
    fn old_and_fresh_members_are_named_alike() {
        let mut sample = Sample::new();
        (0..100_000).for_each(|key| sample.added(hash(key)));
        let fresh: BTreeSet<u64> = (90_000..100_000).map(|key| hash(key).get()).collect();
        let share =
            sample.members.intersection(&fresh).count() as f64 / sample.members.len() as f64;
        let error = (0.1 * 0.9 / sample.members.len() as f64).sqrt();
        assert!((share - 0.1).abs() < 4.0 * error, "{share}");
    }

    #[test]
    fn wears_out_and_says_so() {
        let mut sample = Sample::new();
        assert!(!sample.is_worn());
        (0..100_000).for_each(|key| sample.added(hash(key)));
        assert!(!sample.is_worn());
        (0..99_000).for_each(|key| sample.removed(hash(key)));
        assert!(sample.is_worn());
    }
}
