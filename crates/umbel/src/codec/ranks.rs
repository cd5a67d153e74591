//! Positions of a bit vector ↔ ranks among its ones, or among its zeros.
//!
//! A bit that is newly set was a zero of the base. Encoding it by its rank among the zeros, instead
//! of its position among all bits, makes a delta 5 to 20 % shorter than one that ignores its base.
//! Both directions read the words once, in ascending order.

use std::ops::Range;

use super::subset::{Sink, Source};
use crate::bits::BitVector;

/// Which bits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    Ones,
    Zeros,
}

impl Among {
    /// How many such bits a vector has.
    pub(super) const fn count(self, bits: &BitVector) -> u64 {
        match self {
            Self::Ones => bits.ones(),
            Self::Zeros => bits.len() - bits.ones(),
        }
    }

    /// A word in which the counted bits are ones.
    #[inline]
    const fn word(self, word: u64) -> u64 {
        match self {
            Self::Ones => word,
            Self::Zeros => !word,
        }
    }
}

/// The counted bits of a base that differ in another vector, by rank.
#[derive(Debug)]
pub(super) struct Differing<'a> {
    pub(super) base: &'a BitVector,
    pub(super) other: &'a BitVector,
    pub(super) among: Among,
}

impl Source for Differing<'_> {
    #[inline]
    fn each(&self, mut found: impl FnMut(u64)) {
        let mut before = 0;
        for (base, other) in self.base.words().iter().zip(self.other.words()) {
            let counted = self.among.word(*base);
            let mut differing = (base ^ other) & counted;
            while differing != 0 {
                let lowest = differing & differing.wrapping_neg();
                found(before + u64::from((counted & (lowest - 1)).count_ones()));
                differing ^= lowest;
            }
            before += u64::from(counted.count_ones());
        }
    }
}

/// Flips bits of `target` that are named by their ranks among the counted bits of `base`.
#[derive(Debug)]
pub(super) struct Flip<'a> {
    ranks: Ranks<'a>,
    target: &'a mut BitVector,
}

impl<'a> Flip<'a> {
    pub(super) fn new(base: &'a BitVector, among: Among, target: &'a mut BitVector) -> Self {
        Self { ranks: Ranks::new(base, among), target }
    }
}

impl Sink for Flip<'_> {
    #[inline]
    fn put(&mut self, rank: u64) {
        let (index, bit) = self.ranks.bit(rank);
        self.target.flip(index, bit);
    }

    #[inline]
    fn run(&mut self, mut ranks: Range<u64>) {
        while ranks.start < ranks.end {
            // All counted bits of a word, starting with this one, up to the end of the run.
            let (index, bit) = self.ranks.bit(ranks.start);
            let counted = self.ranks.counted() & bit.wrapping_neg();
            let beyond = self.ranks.before + u64::from(self.ranks.here);
            let mask = if ranks.end >= beyond {
                counted
            } else {
                counted & (self.ranks.bit(ranks.end).1 - 1)
            };
            self.target.flip(index, mask);
            ranks.start = beyond;
        }
    }
}

/// Iterates over the counted bits of a vector, in ascending order.
#[derive(Debug)]
struct Ranks<'a> {
    words: &'a [u64],
    among: Among,
    /// The current word.
    index: usize,
    /// Number of counted bits in it.
    here: u32,
    /// Number of counted bits in the words before it.
    before: u64,
}

impl<'a> Ranks<'a> {
    fn new(bits: &'a BitVector, among: Among) -> Self {
        let words = bits.words();
        Self { words, among, index: 0, here: among.word(words[0]).count_ones(), before: 0 }
    }

    /// Word index and mask of the counted bit of this rank. Ranks must ascend and exist.
    #[inline]
    fn bit(&mut self, rank: u64) -> (usize, u64) {
        while rank >= self.before + u64::from(self.here) {
            self.before += u64::from(self.here);
            self.index += 1;
            self.here = self.counted().count_ones();
        }
        (self.index, select(self.counted(), (rank - self.before) as u32))
    }

    /// The counted bits of the current word.
    #[inline]
    fn counted(&self) -> u64 {
        self.among.word(self.words[self.index])
    }
}

/// Mask of the one bit of this rank in a word, which must have more than `rank` ones.
#[inline]
fn select(word: u64, rank: u32) -> u64 {
    // For each byte, the number of ones in it and in all lower bytes, by the usual tree of sums.
    const LOW: u64 = 0x0101_0101_0101_0101;
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let sums = ((fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(LOW);
    // Bytes whose sum does not exceed the rank are entirely below the bit we search.
    let passed = (((0x80 | u64::from(rank)) * LOW) - sums) & (0x80 * LOW);
    let shift = ((passed >> 7).wrapping_mul(LOW) >> 56) as u32 * 8;
    let below = ((sums << 8) >> shift) as u32 & 0xFF;
    let byte = (word >> shift) as u8;
    let within = ONE_OF_BYTE[usize::from(byte)][(rank - below) as usize & 7];
    1 << (shift + u32::from(within))
}

/// For each byte, the position of its one bit of each rank. A loop would be mispredicted.
static ONE_OF_BYTE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut rank) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][rank] = bit;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::params::Bits;

    fn vector(len: u64, ones: impl Iterator<Item = u64>) -> BitVector {
        let mut bits = BitVector::zeros(Bits::new(len).unwrap()).unwrap();
        ones.filter(|position| *position < len).for_each(|position| {
            bits.set(position);
        });
        bits
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn ranks_and_positions_are_inverse(
            len in 1u64..400,
            ones in prop::collection::btree_set(0u64..400, 0..200),
            others in prop::collection::btree_set(0u64..400, 0..200),
        ) {
            let base = vector(len, ones.into_iter());
            let other = vector(len, others.into_iter());
            let mut target = base.clone();
            for (among, value) in [(Among::Ones, 1), (Among::Zeros, 0)] {
                let counted: Vec<u64> = (0..len).filter(|p| base.get(*p) == value).collect();
                prop_assert_eq!(among.count(&base), counted.len() as u64);
                let mut ranks = Vec::new();
                Differing { base: &base, other: &other, among }.each(|rank| ranks.push(rank));
                let differing = counted.iter().zip(0..).filter(|(p, _)| other.get(**p) != value);
                prop_assert!(ranks.iter().copied().eq(differing.map(|(_, rank)| rank)));
                let mut flip = Flip::new(&base, among, &mut target);
                ranks.iter().for_each(|rank| flip.put(*rank));
            }
            target.validate();
            prop_assert_eq!(target, other);
        }

        #[test]
        fn a_run_flips_what_its_ranks_flip_one_by_one(
            len in 1u64..400,
            ones in prop::collection::btree_set(0u64..400, 0..400),
            cuts in prop::collection::btree_set(0u64..400, 0..10),
        ) {
            let base = vector(len, ones.into_iter());
            for among in [Among::Ones, Among::Zeros] {
                let (mut singly, mut at_once) = (base.clone(), base.clone());
                let count = among.count(&base);
                let cuts: Vec<u64> = cuts.iter().map(|cut| *cut.min(&count)).collect();
                let mut one = Flip::new(&base, among, &mut singly);
                let mut all = Flip::new(&base, among, &mut at_once);
                for run in cuts.chunks_exact(2) {
                    (run[0]..run[1]).for_each(|rank| one.put(rank));
                    all.run(run[0]..run[1]);
                }
                at_once.validate();
                prop_assert_eq!(singly, at_once);
            }
        }

        #[test]
        fn the_selected_one_has_its_rank(word in any::<u64>(), sparse in any::<u64>()) {
            for word in [word, word & sparse, word | sparse, u64::MAX, 1, 1 << 63] {
                for rank in 0..word.count_ones() {
                    let one = select(word, rank);
                    prop_assert!(one.is_power_of_two() && word & one != 0);
                    prop_assert_eq!((word & (one - 1)).count_ones(), rank);
                }
            }
        }
    }
}
