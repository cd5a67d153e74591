//! Under which beginnings longer prefixes lie: a bit each, picked by a hash.
//!
//! A level has a bit for every beginning of so many bits. It is set if a prefix that is longer
//! than the level begins so: where it is clear, no longer length can match. Lookups test the
//! levels that are in common use at once, without a branch, and begin with the last group behind
//! those that are set from the shortest on. So a bit that is set
//! by another beginning costs one group at most, however many levels there are.
//!
//! Bits are not cleared: that would need a count for each. A table that shrinks gets new marks.
//!
//! Always true: the bits of all beginnings of a prefix that was added are set.

use super::kind::Query;
use super::plan::MARK_BITS as BITS;
use crate::prefetch::prefetch;

/// More marks than one in so many bits are too many.
const CROWDED: usize = BITS / 2;

/// The bits of one level.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// Length of the beginnings.
    length: u8,
    /// What is left of a hash picks a bit.
    shift: u8,
    /// The first word.
    first: u32,
    set: u32,
}

impl Level {
    #[inline(always)]
    fn place(&self, query: &impl Query) -> (usize, u64) {
        let bit = query.mark(self.length) >> self.shift;
        (self.first as usize + (bit / 64) as usize, 1 << (bit % 64))
    }

    const fn words(&self) -> usize {
        1 << (58 - self.shift)
    }
}

/// The levels of all groups that have marks, shortest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    words: Vec<u64>,
    levels: Vec<Level>,
    /// So many levels are tested at once, the others one after the other.
    common: usize,
}

impl Marks {
    /// No levels, of which the first `common` will be tested at once.
    pub(super) fn new(common: usize) -> Self {
        Self { words: Vec::new(), levels: Vec::new(), common: common.min(u32::BITS as usize) }
    }

    /// Adds a level that is longer than the others, with room for so many beginnings.
    pub(super) fn push(&mut self, length: u8, beginnings: usize) {
        let bits = (beginnings * BITS).next_power_of_two().max(64);
        let level = Level {
            length,
            shift: 64 - bits.ilog2() as u8,
            first: self.words.len() as u32,
            set: 0,
        };
        self.levels.push(level);
        self.words.resize(self.words.len() + bits / 64, 0);
    }

    /// How many levels are set for a question, from the shortest on.
    #[inline(always)]
    pub(super) fn reached(&self, query: &impl Query) -> usize {
        let (common, rare) = self.levels.split_at(self.common);
        let mut marked = 0;
        for (index, level) in common.iter().enumerate() {
            marked |= self.is_set(level, query) << index;
        }
        let mut reached = marked.trailing_ones() as usize;
        if reached < common.len() {
            return reached;
        }
        for level in rare {
            if self.is_set(level, query) == 0 {
                break;
            }
            reached += 1;
        }
        reached
    }

    /// Asks for the memory that [`Self::reached`] will read.
    #[inline(always)]
    pub(super) fn prefetch(&self, query: &impl Query) {
        for level in &self.levels[..self.common] {
            prefetch(&self.words, level.place(query).0);
        }
    }

    #[inline(always)]
    fn is_set(&self, level: &Level, query: &impl Query) -> u32 {
        let (word, bit) = level.place(query);
        u32::from(self.words[word] & bit != 0)
    }

    /// Marks a prefix at the first `count` levels; true if a level has too many marks.
    #[inline(always)]
    pub(super) fn add(&mut self, query: &impl Query, count: usize) -> bool {
        let mut is_crowded = false;
        for level in &mut self.levels[..count] {
            let (word, bit) = level.place(query);
            if self.words[word] & bit == 0 {
                self.words[word] |= bit;
                level.set += 1;
                is_crowded |= level.set as usize > level.words() * 64 / CROWDED;
            }
        }
        is_crowded
    }

    /// Makes levels smaller that have far more bits than marks. A bit is picked by the highest bits
    /// of a hash, so that two neighbours become one.
    pub(super) fn fold(&mut self) {
        let mut words = Vec::with_capacity(self.words.len());
        for level in &mut self.levels {
            let first = level.first as usize;
            let mut own = self.words[first..first + level.words()].to_vec();
            while own.len() > 1 && level.set as usize * BITS <= own.len() * 32 {
                let halves = own.chunks(2);
                own = halves.map(|both| join(both[0]) | join(both[1]) << 32).collect();
                level.shift += 1;
                level.set = own.iter().map(|word| word.count_ones()).sum();
            }
            level.first = words.len() as u32;
            words.append(&mut own);
        }
        words.shrink_to_fit();
        self.words = words;
    }

    pub(super) const fn bits(&self) -> usize {
        self.words.len() * 64
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8 + self.levels.capacity() * size_of::<Level>()
    }
}

/// Bit `i` of the answer is set if bit `2i` or `2i + 1` is.
const fn join(word: u64) -> u64 {
    let pairs = (word | word >> 1) & 0x5555_5555_5555_5555;
    let nibbles = (pairs | pairs >> 1) & 0x3333_3333_3333_3333;
    let bytes = (nibbles | nibbles >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
    let shorts = (bytes | bytes >> 4) & 0x00FF_00FF_00FF_00FF;
    let halves = (shorts | shorts >> 8) & 0x0000_FFFF_0000_FFFF;
    (halves | halves >> 16) & 0xFFFF_FFFF
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::prefix::{Ipv6Prefix, Prefix};

    proptest! {
        #[test]
        fn two_neighbours_become_one(word: u64) {
            for bit in 0..32 {
                prop_assert_eq!(join(word) >> bit & 1 == 1, word >> (2 * bit) & 3 != 0);
            }
            prop_assert_eq!(join(word) >> 32, 0);
        }

        #[test]
        fn beginnings_of_what_was_added_are_reached_before_and_after_folding(
            added in prop::collection::vec(any::<u128>(), 0..60),
            asked in prop::collection::vec(any::<u128>(), 0..60),
            common in 0usize..4,
        ) {
            let mut marks = Marks::new(common);
            [20, 44, 100].into_iter().for_each(|length| marks.push(length, 5_000));
            let query = |bits: &u128| Ipv6Prefix::query(&Ipv6Addr::from(*bits));
            for bits in &added {
                prop_assert!(!marks.add(&query(bits), 3));
            }
            let before = marks.bits();
            let reached: Vec<usize> = asked.iter().map(|bits| marks.reached(&query(bits))).collect();
            marks.fold();
            prop_assert!(marks.bits() < before);
            for bits in &added {
                prop_assert_eq!(marks.reached(&query(bits)), 3);
            }
            for (bits, before) in asked.iter().zip(reached) {
                prop_assert!(marks.reached(&query(bits)) >= before);
            }
            let distinct: BTreeSet<u128> = added.iter().map(|bits| bits >> 108).collect();
            prop_assert!(marks.levels[0].set as usize <= distinct.len());
        }
    }
}
