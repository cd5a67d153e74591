//! Positions of a bit vector ↔ ranks among its ones, or among its zeros.
//!
//! A bit that is set anew was a zero of the base: naming it by its rank among the zeros
//! instead of its position among all bits is what makes a delta 5 to 20 % shorter than one
//! that does not look at its base. Both directions walk the words once, upwards.

use crate::bits::BitVector;

/// Which bits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    Ones,
    Zeros,
}

impl Among {
    /// How many such bits a vector has.
    pub(crate) const fn count(self, bits: &BitVector) -> u64 {
        match self {
            Self::Ones => bits.ones(),
            Self::Zeros => bits.len() - bits.ones(),
        }
    }

    /// Turns the counted bits into ones.
    #[inline]
    const fn word(self, word: u64) -> u64 {
        match self {
            Self::Ones => word,
            Self::Zeros => !word,
        }
    }
}

/// Walks upwards through the counted bits of a vector.
#[derive(Debug)]
pub(crate) struct Ranks<'a> {
    words: &'a [u64],
    among: Among,
    /// The word the walk has come to.
    index: usize,
    /// Counted bits in the words before it.
    before: u64,
}

impl<'a> Ranks<'a> {
    pub(crate) fn new(bits: &'a BitVector, among: Among) -> Self {
        Self { words: bits.words(), among, index: 0, before: 0 }
    }

    /// The rank of a counted bit. Positions must ascend.
    #[inline]
    pub(crate) fn rank(&mut self, position: u64) -> u64 {
        let index = (position >> 6) as usize;
        while self.index < index {
            self.before += self.ones_here();
            self.index += 1;
        }
        let below = self.among.word(self.words[index]) & ((1 << (position & 63)) - 1);
        self.before + u64::from(below.count_ones())
    }

    /// The position of the counted bit of this rank. Ranks must ascend and exist.
    #[inline]
    pub(crate) fn position(&mut self, rank: u64) -> u64 {
        let mut here = self.ones_here();
        while rank >= self.before + here {
            self.before += here;
            self.index += 1;
            here = self.ones_here();
        }
        let word = self.among.word(self.words[self.index]);
        self.index as u64 * 64 + u64::from(select(word, (rank - self.before) as u32))
    }

    #[inline]
    fn ones_here(&self) -> u64 {
        self.among.word(self.words[self.index]).count_ones().into()
    }
}

/// Where the one of this rank stands in a word, by halving.
#[inline]
fn select(word: u64, mut rank: u32) -> u32 {
    let mut at = 0;
    for width in [32, 16, 8, 4, 2, 1] {
        let low = ((word >> at) & ((1 << width) - 1)).count_ones();
        let go_right = rank >= low;
        rank -= if go_right { low } else { 0 };
        at += if go_right { width } else { 0 };
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::params::Bits;

    proptest! {
        #[test]
        fn ranks_and_positions_are_inverse(
            len in 1u64..400,
            ones in prop::collection::btree_set(0u64..400, 0..200),
        ) {
            let mut bits = BitVector::zeros(Bits::new(len).unwrap()).unwrap();
            ones.iter().filter(|position| **position < len).for_each(|p| { bits.set(*p); });
            for (among, value) in [(Among::Ones, 1), (Among::Zeros, 0)] {
                let counted: Vec<u64> = (0..len).filter(|p| bits.get(*p) == value).collect();
                prop_assert_eq!(among.count(&bits), counted.len() as u64);
                let mut ranks = Ranks::new(&bits, among);
                let mut positions = Ranks::new(&bits, among);
                for (rank, position) in counted.iter().enumerate() {
                    prop_assert_eq!(ranks.rank(*position), rank as u64);
                    prop_assert_eq!(positions.position(rank as u64), *position);
                }
            }
        }
    }
}
