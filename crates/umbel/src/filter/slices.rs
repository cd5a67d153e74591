//! The components of a dynamic filter, bit-sliced: one lookup asks all of them at once.
//!
//! ```text
//! block 0:  position 0 │ position 1 │ …     one byte a position;
//!           76543210   │ 76543210   │ …     bit j: the bit of component j there
//! ```
//!
//! The bitwise AND of the bytes of a key's `k` positions leaves the components that claim it, eight at a time,
//! for the cost of one filter's probes. The idea is that of the bank, but with rows of one byte: a
//! few components in 64-bit rows would take eight times the cache. If there are more components,
//! later blocks have wider rows, up to a cache line: 1, 1, 2, 4 … 64, 64 bytes. So a lookup in a
//! thousand components reads eight blocks, not a hundred and twenty-five.
//!
//! Always true: the bit of a component in row `p` of its block equals bit `p` of the component.

use crate::bits::BitVector;
use crate::key_hash::{Digest, Positions};
use crate::params::Shape;
use crate::prefetch::prefetch;

/// Components of the first block, and of the second.
const FIRST: usize = 8;
/// Components of the widest blocks: a cache line.
const WIDEST: usize = 512;

/// The components of a block: one row per position.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    /// Bytes of a row.
    width: usize,
    rows: Vec<u8>,
}

/// All components.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slices {
    blocks: Vec<Block>,
}

/// Where the bits of a component are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    block: usize,
    /// Byte within a row.
    byte: usize,
    bit: usize,
}

impl Place {
    const fn of(index: usize) -> Self {
        let (block, first) = match index {
            0..FIRST => (0, 0),
            FIRST..WIDEST => {
                let log = index.ilog2();
                ((log - FIRST.ilog2()) as usize + 1, 1 << log)
            }
            _ => {
                let block = index / WIDEST;
                ((WIDEST / FIRST).ilog2() as usize + block, block * WIDEST)
            }
        };
        Self { block, byte: (index - first) / 8, bit: (index - first) % 8 }
    }
}

/// The index of the first component of a block.
const fn first_of(block: usize) -> usize {
    let doubling = (WIDEST / FIRST).ilog2() as usize;
    match block {
        0 => 0,
        _ if block <= doubling => FIRST << (block - 1),
        _ => (block - doubling) * WIDEST,
    }
}

/// Bytes of a row of a block.
const fn width_of(block: usize) -> usize {
    (first_of(block + 1) - first_of(block)) / 8
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
        let Place { block, .. } = Place::of(index);
        if block == self.blocks.len() {
            let width = width_of(block);
            self.blocks.push(Block { width, rows: vec![0; bits.len() as usize * width] });
        }
        self.set(index, bits.positions());
    }

    /// Sets the bits of the component at `index`.
    pub(crate) fn set(&mut self, index: usize, positions: impl Iterator<Item = u64>) {
        let Place { block, byte, bit } = Place::of(index);
        let Block { width, rows } = &mut self.blocks[block];
        for position in positions {
            rows[position as usize * *width + byte] |= 1 << bit;
        }
    }

    /// Clears the bits of the component at `index`.
    pub(crate) fn clear(&mut self, index: usize, positions: impl Iterator<Item = u64>) {
        let Place { block, byte, bit } = Place::of(index);
        let Block { width, rows } = &mut self.blocks[block];
        for position in positions {
            rows[position as usize * *width + byte] &= !(1 << bit);
        }
    }

    /// Prefetches the rows of these positions, before [`Self::set`] for the component at `index`.
    pub(super) fn prefetch_column(&self, index: usize, positions: impl Iterator<Item = u64>) {
        let Place { block, byte, .. } = Place::of(index);
        let Block { width, rows } = &self.blocks[block];
        positions.for_each(|position| prefetch(rows, position as usize * width + byte));
    }

    /// Prefetches the rows of these positions, before [`Self::claim`].
    pub(super) fn prefetch(&self, positions: &Positions) {
        for Block { width, rows } in &self.blocks {
            positions.clone().for_each(|position| prefetch(rows, position as usize * width));
        }
    }

    /// Whether any component claims the digest.
    #[inline]
    pub(crate) fn claim(&self, digest: Digest, shape: &Shape) -> bool {
        self.blocks.iter().any(|block| match block.width {
            1 => and_bytes(&block.rows, digest.positions(shape)) != 0,
            _ => block.claims(digest.positions(shape)) != [0; WIDEST / 64],
        })
    }

    /// The components that claim the digest, by index, ascending.
    pub(crate) fn claimants(&self, digest: Digest, shape: &Shape) -> impl Iterator<Item = usize> {
        self.blocks.iter().enumerate().flat_map(move |(block, rows)| {
            let claims = rows.claims(digest.positions(shape));
            (0..).zip(claims).flat_map(move |(index, word)| {
                ones(word).map(move |bit| first_of(block) + index * 64 + bit)
            })
        })
    }

    /// Bytes of memory that the slices take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }
}

/// Bytes of memory that slices take, for this many components of this many bits.
pub(crate) fn slices_bytes(components: u64, bits: u64) -> u64 {
    let Some(last) = components.checked_sub(1) else { return 0 };
    let last = Place::of(usize::try_from(last).unwrap_or(usize::MAX / 2)).block;
    (first_of(last + 1) as u64 / 8).saturating_mul(bits)
}

impl Block {
    /// Which of its components claim the key of these positions, as words.
    fn claims(&self, positions: Positions) -> [u64; WIDEST / 64] {
        let rows = &self.rows;
        match self.width {
            1 => words(&[and_bytes(rows, positions)]),
            2 => words(&and_rows::<2>(rows, positions)),
            4 => words(&and_rows::<4>(rows, positions)),
            8 => words(&and_rows::<8>(rows, positions)),
            16 => words(&and_rows::<16>(rows, positions)),
            32 => words(&and_rows::<32>(rows, positions)),
            _ => words(&and_rows::<64>(rows, positions)),
        }
    }
}

/// Converts bytes to words, padded with zeros.
fn words(bytes: &[u8]) -> [u64; WIDEST / 64] {
    let mut whole = [0; WIDEST / 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    let mut words = [0; WIDEST / 64];
    for (word, bytes) in words.iter_mut().zip(whole.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// The positions of the ones of a word.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place)
    })
}

#[inline]
fn and_bytes(rows: &[u8], positions: Positions) -> u8 {
    positions.fold(u8::MAX, |claims, position| claims & rows[position as usize])
}

/// As [`and_bytes`], for wider rows. Stops reading rows once no component is left.
#[inline]
fn and_rows<const W: usize>(rows: &[u8], positions: Positions) -> [u8; W] {
    let (rows, mut claims) = (rows.as_chunks::<W>().0, [u8::MAX; W]);
    for position in positions {
        claims.iter_mut().zip(&rows[position as usize]).for_each(|(claim, row)| *claim &= row);
        if claims == [0; W] {
            break;
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_a_place_of_its_own() {
        let mut expected = (0, 0, 0);
        for index in 0..5000 {
            let Place { block, byte, bit } = Place::of(index);
            assert_eq!((block, byte, bit), expected, "{index}");
            assert_eq!(first_of(block) + byte * 8 + bit, index);
            expected = match (bit, byte + 1) {
                (7, next) if next == width_of(block) => (block + 1, 0, 0),
                (7, next) => (block, next, 0),
                _ => (block, byte, bit + 1),
            };
        }
        let widths: Vec<usize> = (0..10).map(width_of).collect();
        assert_eq!(widths, [1, 1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn memory_is_what_the_blocks_take_and_at_most_twice_the_bits() {
        let bits = BitVector::zeros(crate::params::Bits::new(100).unwrap()).unwrap();
        let mut slices = Slices::default();
        for components in 1..1200 {
            slices.add(components - 1, &bits);
            let bytes = slices.memory_bytes() as u64;
            assert_eq!(bytes, slices_bytes(components as u64, 100), "{components}");
            let min = components.div_ceil(8) as u64 * 100;
            assert!((min..=2 * min).contains(&bytes), "{components}: {bytes}");
        }
    }
}
