//! The components of a dynamic filter, bit-sliced: one lookup asks all of them at once.
//!
//! ```text
//! block 0:  position 0 │ position 1 │ …     one byte a position;
//!           76543210   │ 76543210   │ …     bit j: the bit of component j there
//! ```
//!
//! Combining the bytes of a key's `k` positions leaves the components that claim it, eight at
//! a time, for the price of one filter's probes. The same idea as the bank, with rows of
//! a byte: a handful of components in 64-bit rows would take eight times the cache.
//!
//! Always true: bit `j % 8` of row `p` of block `j / 8` equals bit `p` of component `j`.

use crate::bits::BitVector;
use crate::key_hash::{Digest, Positions};
use crate::params::Shape;
use crate::prefetch::prefetch;

/// Eight components a block, one byte a position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slices {
    blocks: Vec<Vec<u8>>,
}

impl Slices {
    /// Slices the bits of all components.
    pub(crate) fn of<'a>(components: impl Iterator<Item = &'a BitVector>) -> Self {
        let mut slices = Self::default();
        for (index, bits) in components.enumerate() {
            slices.add(index, bits);
        }
        slices
    }

    /// Adds the component at `index`, the next one.
    pub(crate) fn add(&mut self, index: usize, bits: &BitVector) {
        if index.is_multiple_of(8) {
            self.blocks.push(vec![0; bits.len() as usize]);
        }
        self.set(index, bits.positions());
    }

    /// Sets the bits of the component at `index`.
    pub(crate) fn set(&mut self, index: usize, positions: impl Iterator<Item = u64>) {
        let block = &mut self.blocks[index / 8];
        for position in positions {
            block[position as usize] |= 1 << (index % 8);
        }
    }

    /// Clears the bits of the component at `index`.
    pub(crate) fn clear(&mut self, index: usize, positions: impl Iterator<Item = u64>) {
        let block = &mut self.blocks[index / 8];
        for position in positions {
            block[position as usize] &= !(1 << (index % 8));
        }
    }

    /// Asks for the rows of these positions ahead of [`Self::set`] for the component at
    /// `index`.
    pub(super) fn prefetch_column(&self, index: usize, positions: impl Iterator<Item = u64>) {
        let block = &self.blocks[index / 8];
        positions.for_each(|position| prefetch(block, position as usize));
    }

    /// Asks for the rows of these positions ahead of [`Self::claim`].
    pub(super) fn prefetch(&self, positions: &Positions) {
        for block in &self.blocks {
            positions.clone().for_each(|position| prefetch(block, position as usize));
        }
    }

    /// Whether any component claims the digest.
    #[inline]
    pub(crate) fn claim(&self, digest: Digest, shape: &Shape) -> bool {
        self.blocks.iter().any(|block| and_rows(block, digest.positions(shape)) != 0)
    }

    /// The components that claim the digest, by index, ascending.
    pub(crate) fn claimants(&self, digest: Digest, shape: &Shape) -> impl Iterator<Item = usize> {
        self.blocks.iter().enumerate().flat_map(move |(block, rows)| {
            let claims = and_rows(rows, digest.positions(shape));
            (0..8).filter(move |bit| claims >> bit & 1 == 1).map(move |bit| block * 8 + bit)
        })
    }

    /// Bytes of memory that the slices of so many components of so many bits take.
    pub(super) fn memory_bytes_of(components: u64, bits: u64) -> u64 {
        components.div_ceil(8).saturating_mul(bits)
    }

    /// Bytes of memory that the slices take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }
}

#[inline]
fn and_rows(rows: &[u8], positions: Positions) -> u8 {
    positions.fold(u8::MAX, |claims, position| claims & rows[position as usize])
}
