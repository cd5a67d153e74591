//! A bit vector of fixed length: the storage of every filter, and what is sent to other hosts.
//!
//! Always true: bits past the length are zero, and `ones` is the number of set bits, kept
//! up by every change. So fill, and with it the false positive rate, is known at any time
//! without a pass over the bits.
//!
//! Not here: what a position means (`key_hash`), how bits are coded (`codec`).

use std::fmt;

use crate::params::{Bits, ParamError};
use crate::prefetch::prefetch;

/// Bits of fixed length, with the number of ones kept up.
#[derive(Clone, PartialEq, Eq)]
pub struct BitVector {
    len: u64,
    ones: u64,
    words: Vec<u64>,
}

impl BitVector {
    /// A vector of `len` zeros.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub fn zeros(len: Bits) -> Result<Self, ParamError> {
        let words = zeroed(len.get().div_ceil(64), len.get())?;
        Ok(Self { len: len.get(), ones: 0, words })
    }

    /// Number of bits.
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a bit vector has at least one bit")]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Number of set bits.
    #[must_use]
    #[inline]
    pub const fn ones(&self) -> u64 {
        self.ones
    }

    /// Share of set bits.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones as f64 / self.len as f64
    }

    /// The bits as words, position 0 in the lowest bit of the first.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bit at `position`, as 0 or 1: a number, so that questions can be combined without
    /// a branch.
    ///
    /// # Panics
    /// If `position` lies past the last word.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, position: u64) -> u64 {
        (self.words[(position >> 6) as usize] >> (position & 63)) & 1
    }

    /// Sets the bit at `position`; returns how many bits flipped, 0 or 1.
    ///
    /// # Panics
    /// If `position` is not below the length.
    #[inline(always)]
    pub fn set(&mut self, position: u64) -> u64 {
        assert!(position < self.len, "position {position} of {} bits", self.len);
        let word = &mut self.words[(position >> 6) as usize];
        let flipped = ((*word >> (position & 63)) & 1) ^ 1;
        *word |= 1 << (position & 63);
        self.ones += flipped;
        flipped
    }

    /// Sets or clears the bit at `position`.
    ///
    /// # Panics
    /// If `position` is not below the length.
    #[inline(always)]
    pub(crate) fn put(&mut self, position: u64, value: bool) {
        if value {
            self.set(position)
        } else {
            self.clear(position)
        };
    }

    /// Clears the bit at `position`; returns how many bits flipped, 0 or 1.
    ///
    /// # Panics
    /// If `position` is not below the length.
    #[inline(always)]
    pub fn clear(&mut self, position: u64) -> u64 {
        assert!(position < self.len, "position {position} of {} bits", self.len);
        let word = &mut self.words[(position >> 6) as usize];
        let flipped = (*word >> (position & 63)) & 1;
        *word &= !(1 << (position & 63));
        self.ones -= flipped;
        flipped
    }

    /// Clears every bit.
    pub fn reset(&mut self) {
        self.words.fill(0);
        self.ones = 0;
    }

    /// A copy of up to `len` bits from `start` on, which must be a multiple of 64.
    pub(crate) fn slice(&self, start: u64, len: u64) -> Self {
        debug_assert!(start.is_multiple_of(64) && start < self.len);
        let len = len.min(self.len - start);
        let first = (start / 64) as usize;
        let words = self.words[first..first + len.div_ceil(64) as usize].to_vec();
        let ones = words.iter().map(|word| u64::from(word.count_ones())).sum();
        debug_assert!(len.is_multiple_of(64) || start + len == self.len);
        Self { len, ones, words }
    }

    /// Writes back what [`Self::slice`] took.
    pub(crate) fn put_slice(&mut self, start: u64, slice: &Self) {
        debug_assert!(start.is_multiple_of(64) && start + slice.len <= self.len);
        let first = (start / 64) as usize;
        let words = &mut self.words[first..first + slice.words.len()];
        let before: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        words.copy_from_slice(&slice.words);
        self.ones = self.ones - before + slice.ones;
    }

    /// Positions of the set bits, ascending.
    pub fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        positions_of(self.words.iter().copied())
    }

    /// Positions at which `self` has a one and `other` a zero, ascending.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn positions_beyond<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u64> + 'a {
        assert_eq!(self.len, other.len, "bit vectors of one length");
        positions_of(self.words.iter().zip(&other.words).map(|(mine, theirs)| mine & !theirs))
    }

    /// How many bits are one in `self` and zero in `other`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn count_beyond(&self, other: &Self) -> u64 {
        assert_eq!(self.len, other.len, "bit vectors of one length");
        let pairs = self.words.iter().zip(&other.words);
        pairs.map(|(mine, theirs)| u64::from((mine & !theirs).count_ones())).sum()
    }

    /// Whether every one of `self` is also a one of `other`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.count_beyond(other) == 0
    }

    /// OR: keeps the ones of both vectors.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn union_with(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| mine | theirs);
    }

    /// AND: keeps the ones that both vectors have.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn intersect_with(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| mine & theirs);
    }

    /// Ones of `self` that are not ones of `other`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn difference_with(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| mine & !theirs);
    }

    fn combine(&mut self, other: &Self, operation: impl Fn(u64, u64) -> u64) {
        assert_eq!(self.len, other.len, "bit vectors of one length");
        let mut ones = 0;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine = operation(*mine, *theirs);
            ones += u64::from(mine.count_ones());
        }
        self.ones = ones;
    }

    /// The OR of neighbouring bits, `2^steps` of them at a time: the same keys' bits in a filter
    /// that many rungs below (`design::ladder`).
    ///
    /// # Panics
    /// If the result would not be a whole number of words.
    #[must_use]
    pub fn folded(&self, steps: u32) -> Self {
        let mut folded = self.clone();
        for _ in 0..steps {
            assert!(folded.len.is_multiple_of(128), "a fold is a whole number of words");
            let pairs = folded.words.as_chunks::<2>().0;
            let word = |[low, high]: &[u64; 2]| {
                even_bits(low | low >> 1) | even_bits(high | high >> 1) << 32
            };
            folded.words = pairs.iter().map(word).collect();
            folded.len /= 2;
        }
        folded.ones = folded.words.iter().map(|word| u64::from(word.count_ones())).sum();
        folded
    }

    /// A checksum of the bits: a sum of word hashes, so that a change of a few bits changes
    /// it by the hashes of their words alone ([`BitVector::checksum_after`]).
    #[must_use]
    pub fn checksum(&self) -> u64 {
        checksum_of(&self.words)
    }

    /// The checksum that flipping the bits at `flips` (ascending, each once) would lead to,
    /// given the checksum of the bits as they are.
    ///
    /// # Panics
    /// If a position lies past the last word.
    #[must_use]
    pub fn checksum_after(&self, checksum: u64, flips: &[u64]) -> u64 {
        let mut sum = checksum;
        for run in flips.chunk_by(|a, b| a >> 6 == b >> 6) {
            let index = (run[0] >> 6) as usize;
            let flipped = run.iter().fold(0, |mask, position| mask | 1u64 << (position & 63));
            let word = self.words[index];
            sum = sum
                .wrapping_sub(word_hash(index, word))
                .wrapping_add(word_hash(index, word ^ flipped));
        }
        sum
    }

    /// A vector of these words, as many as its length takes.
    pub(crate) fn from_words(len: Bits, words: Vec<u64>) -> Self {
        let ones = words.iter().map(|word| u64::from(word.count_ones())).sum();
        let bits = Self { len: len.get(), ones, words };
        debug_assert_eq!(bits.words.len() as u64, bits.len.div_ceil(64));
        bits
    }

    /// Flips the bits of a word that are ones in `mask`, which must lie below the length.
    #[inline]
    pub(crate) fn flip(&mut self, index: usize, mask: u64) {
        let word = &mut self.words[index];
        let cleared = *word & mask;
        *word ^= mask;
        if mask.is_power_of_two() {
            self.ones = if cleared == 0 { self.ones + 1 } else { self.ones - 1 };
        } else {
            self.ones += u64::from((mask ^ cleared).count_ones());
            self.ones -= u64::from(cleared.count_ones());
        }
    }

    /// Prefetches the word of `position`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: u64) {
        prefetch(&self.words, (position >> 6) as usize);
    }

    /// The words, for loops that keep up `ones` themselves through [`Self::add_ones`].
    #[inline(always)]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Adjusts `ones` by how many a loop over [`Self::words_mut`] added (or removed, wrapping).
    #[inline(always)]
    pub(crate) fn add_ones(&mut self, flips: u64) {
        self.ones = self.ones.wrapping_add(flips);
    }

    /// Checks the number of ones and the unused bits by a full recount. Slow.
    ///
    /// # Panics
    /// If a promise of this type is broken: a bug in this crate.
    pub fn validate(&self) {
        assert_eq!(self.words.len() as u64, self.len.div_ceil(64), "words fit the length");
        let counted: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        assert_eq!(self.ones, counted, "ones are kept up");
        if !self.len.is_multiple_of(64) {
            let last = self.words[self.words.len() - 1];
            assert_eq!(last >> (self.len % 64), 0, "bits past the length are zero");
        }
    }
}

impl fmt::Debug for BitVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitVector({} of {} ones)", self.ones, self.len)
    }
}

/// A sum of word hashes.
pub(crate) fn checksum_of(words: &[u64]) -> u64 {
    let hashes = words.iter().enumerate().map(|(index, word)| word_hash(index, *word));
    hashes.fold(0, u64::wrapping_add)
}

/// The 32 bits at even positions, side by side.
pub(crate) const fn even_bits(word: u64) -> u64 {
    let mut bits = word & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
    bits = (bits | bits >> 4) & 0x00FF_00FF_00FF_00FF;
    bits = (bits | bits >> 8) & 0x0000_FFFF_0000_FFFF;
    (bits | bits >> 16) & 0xFFFF_FFFF
}

/// Zeroed words, or an error if there is no memory, instead of ending the process.
pub(crate) fn zeroed<T: Clone + Default>(count: u64, bits: u64) -> Result<Vec<T>, ParamError> {
    let no_memory = ParamError::Memory(bits);
    let count = usize::try_from(count).map_err(|_| no_memory)?;
    let mut words = Vec::new();
    words.try_reserve_exact(count).map_err(|_| no_memory)?;
    words.resize(count, T::default());
    Ok(words)
}

fn positions_of(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    words.enumerate().flat_map(|(index, word)| OnesOfWord { base: index as u64 * 64, word })
}

/// Positions of the ones of one word.
struct OnesOfWord {
    base: u64,
    word: u64,
}

impl Iterator for OnesOfWord {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.word == 0 {
            return None;
        }
        let position = self.base + u64::from(self.word.trailing_zeros());
        self.word &= self.word - 1;
        Some(position)
    }
}

/// Hashes a word with its index; for the same index, different words never collide.
fn word_hash(index: usize, word: u64) -> u64 {
    let mut x = word.wrapping_add((index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x = (x ^ (x >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ (x >> 33)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector(len: u64, positions: &[u64]) -> BitVector {
        let mut bits = BitVector::zeros(Bits::new(len).unwrap()).unwrap();
        for position in positions {
            bits.set(*position);
        }
        bits
    }

    #[test]
    fn edges_of_words_hold() {
        for len in [1, 63, 64, 65, 127, 128, 129] {
            let mut bits = vector(len, &[0, len - 1]);
            bits.validate();
            assert_eq!(bits.ones(), if len == 1 { 1 } else { 2 });
            assert_eq!(bits.clear(len - 1), 1);
            assert_eq!(bits.clear(len - 1), 0);
            bits.validate();
        }
    }

    /// The last word has room for positions past the length: a one there would be counted
    /// and travel, but belong to no key.
    #[test]
    fn positions_past_the_length_are_refused() {
        for len in [1, 63, 65] {
            let refused = |change: fn(&mut BitVector, u64) -> u64| {
                let mut bits = vector(len, &[]);
                let outcome = std::panic::catch_unwind(move || change(&mut bits, len));
                *outcome.unwrap_err().downcast::<String>().unwrap()
            };
            for change in [BitVector::set, BitVector::clear] {
                assert_eq!(refused(change), format!("position {len} of {len} bits"));
            }
        }
    }

    #[test]
    fn a_vector_beyond_memory_is_an_error() {
        let length = Bits::new(Bits::MAX).unwrap();
        assert!(zeroed::<u64>(u64::MAX / 8, length.get()).is_err());
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn changes_agree_with_a_plain_list(
            len in 1u64..300,
            steps in prop::collection::vec((any::<bool>(), any::<u64>()), 0..200),
        ) {
            let mut bits = vector(len, &[]);
            let mut twin = vec![false; len as usize];
            for (set, position) in steps {
                let position = position % len;
                let flipped = if set { bits.set(position) } else { bits.clear(position) };
                prop_assert_eq!(flipped == 1, twin[position as usize] != set);
                twin[position as usize] = set;
            }
            bits.validate();
            let expected = (0..len).filter(|position| twin[*position as usize]);
            prop_assert!(bits.positions().eq(expected));
        }

        #[test]
        fn checksum_follows_flips(
            len in 1u64..300,
            start in prop::collection::vec(any::<u64>(), 0..50),
            flips in prop::collection::btree_set(0u64..300, 0..50),
        ) {
            let start: Vec<u64> = start.iter().map(|position| position % len).collect();
            let mut bits = vector(len, &start);
            let flips: Vec<u64> = flips.into_iter().filter(|position| *position < len).collect();
            let foretold = bits.checksum_after(bits.checksum(), &flips);
            for position in &flips {
                if bits.set(*position) == 0 {
                    bits.clear(*position);
                }
            }
            prop_assert_eq!(bits.checksum(), foretold);
        }

        #[test]
        fn a_slice_is_taken_and_put_back(
            len in 1u64..300,
            ones in prop::collection::vec(any::<u64>(), 0..100),
            others in prop::collection::vec(any::<u64>(), 0..100),
            start in 0u64..5,
            count in 1u64..5,
        ) {
            let within = |positions: &[u64]| positions.iter().map(|p| p % len).collect::<Vec<_>>();
            let (bits, other) = (vector(len, &within(&ones)), vector(len, &within(&others)));
            let start = (start * 64).min((len - 1) / 64 * 64);
            let end = (start + count * 64).min(len);
            let slice = bits.slice(start, count * 64);
            slice.validate();
            prop_assert_eq!(slice.len(), end - start);
            prop_assert!((start..end).all(|p| slice.get(p - start) == bits.get(p)));
            let mut target = other.clone();
            target.put_slice(start, &slice);
            target.validate();
            let from = |p: &u64| if (start..end).contains(p) { &bits } else { &other };
            prop_assert!((0..len).all(|p| target.get(p) == from(&p).get(p)));
        }

        #[test]
        fn algebra_agrees_with_sets(
            a in prop::collection::btree_set(0u64..200, 0..80),
            b in prop::collection::btree_set(0u64..200, 0..80),
        ) {
            let make = |set: &std::collections::BTreeSet<u64>| {
                vector(200, &set.iter().copied().collect::<Vec<_>>())
            };
            let (left, right) = (make(&a), make(&b));
            let mut union = left.clone();
            union.union_with(&right);
            prop_assert!(union.positions().eq(a.union(&b).copied()));
            let mut both = left.clone();
            both.intersect_with(&right);
            prop_assert!(both.positions().eq(a.intersection(&b).copied()));
            let mut only = left.clone();
            only.difference_with(&right);
            prop_assert!(only.positions().eq(a.difference(&b).copied()));
            prop_assert!(left.positions_beyond(&right).eq(a.difference(&b).copied()));
            prop_assert_eq!(left.count_beyond(&right), only.ones());
            prop_assert_eq!(both.is_subset_of(&left), true);
            union.validate();
            both.validate();
            only.validate();
        }
    }
}
