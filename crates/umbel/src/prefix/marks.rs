//! Under which beginnings rare prefixes lie: a bit each, picked by a hash.
//!
//! Every lookup asks here before anything else that can be far away, so that the answer is
//! one shift, one product and one bit. Rare prefixes come in crowds under few beginnings;
//! how many lie under a bit is counted exactly, beside the bits.
//!
//! Always true: a bit is set exactly when a prefix lies under it.

use std::collections::BTreeMap;

use super::kind::map_bytes;

/// Bits a prefix, at least: a mark that lies costs asking several groups.
const BITS: usize = 64;

/// More marks than one in so many bits are too many.
const CROWDED: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Marks {
    bits: Vec<u64>,
    /// What is left of a hash picks a bit.
    shift: u32,
    under: BTreeMap<usize, u32>,
}

impl Marks {
    /// No marks, with room for those of so many prefixes.
    pub(super) fn for_items(items: usize) -> Self {
        let bits = (items * BITS).next_power_of_two().max(64);
        Self { bits: vec![0; bits / 64], shift: 64 - bits.ilog2(), under: BTreeMap::new() }
    }

    /// Whether prefixes may lie here: certainly if some do.
    #[inline(always)]
    pub(super) fn is_set(&self, hash: u64) -> bool {
        let bit = self.bit(hash);
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Adds a prefix; true if there are too many marks.
    pub(super) fn add(&mut self, hash: u64) -> bool {
        let bit = self.bit(hash);
        self.bits[bit / 64] |= 1 << (bit % 64);
        *self.under.entry(bit).or_default() += 1;
        self.under.len() > self.bits.len() * 64 / CROWDED
    }

    /// Removes a prefix that was added.
    pub(super) fn remove(&mut self, hash: u64) {
        let bit = self.bit(hash);
        match self.under.get_mut(&bit) {
            Some(under) if *under > 1 => *under -= 1,
            _ => {
                self.under.remove(&bit);
                self.bits[bit / 64] &= !(1 << (bit % 64));
            }
        }
    }

    #[inline(always)]
    const fn bit(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bits.capacity() * 8 + map_bytes::<usize, u32>(self.under.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bit_is_set_exactly_while_a_prefix_lies_under_it(
            steps in prop::collection::vec((any::<bool>(), 0u64..8), 0..200),
        ) {
            let mut marks = Marks::for_items(0);
            let mut under = BTreeMap::<u64, u32>::new();
            for (add, bit) in steps {
                // The highest six bits pick one of 64.
                let hash = bit << 58 | 12345;
                let there = under.entry(bit).or_default();
                if add {
                    marks.add(hash);
                    *there += 1;
                } else if *there > 0 {
                    marks.remove(hash);
                    *there -= 1;
                }
                for bit in 0..8 {
                    let there = under.get(&bit).is_some_and(|there| *there > 0);
                    prop_assert_eq!(marks.is_set(bit << 58), there);
                }
            }
        }
    }
}
