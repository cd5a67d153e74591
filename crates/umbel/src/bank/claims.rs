//! The interface between a chain search and the columns, in rows or alone: which columns claim a
//! key, as bits.

use super::Column;
use crate::filter::claims;
use crate::key_hash::{KeyHash, Walk};

/// Columns that can be asked for a key, in blocks of `W` words with one bit per column.
pub(super) trait Claims<const W: usize> {
    /// Hashes of a key.
    fn hashes(&self) -> u32;
    /// Requests the memory that `and` will read.
    fn fetch(&self, block: usize, hash: KeyHash);
    /// Removes the columns that do not claim the key from `columns`.
    fn and(&self, block: usize, hash: KeyHash, columns: &mut [u64; W]);
}

/// Columns without rows, a block of 64 for each word.
pub(super) struct Alone<'a>(pub(super) Vec<&'a Column>);

impl Claims<1> for Alone<'_> {
    fn hashes(&self) -> u32 {
        self.0.iter().map(|column| column.shape.hashes()).min().unwrap_or(1)
    }

    /// Does nothing: most columns deny a key at its first or second bit, so a prefetch is not worth
    /// it.
    fn fetch(&self, _: usize, _: KeyHash) {}

    fn and(&self, block: usize, hash: KeyHash, columns: &mut [u64; 1]) {
        let mut asked = columns[0];
        while asked != 0 {
            let bit = asked.trailing_zeros() as usize;
            let Column { shape, bits, .. } = self.0[block * 64 + bit];
            let walk = Walk::new(hash.digest(shape.digest_bits()), shape);
            if !claims(bits, walk, shape.hashes()) {
                columns[0] &= !(1 << bit);
            }
            asked &= asked - 1;
        }
    }
}
