//! Rewrites up to 64 columns of one word of the rows at once: one word of each of 64 columns makes
//! 64 rows.
//!
//! A refresh waits for memory in two places: the rows, where it changes one cell per row, and the
//! columns, at 64 addresses that the processor cannot predict. So it reads one cache line of every
//! column at a time, and prefetches the rows of the next matrix while it transposes one.

use bytemuck::Pod;

use super::transpose::{ROUNDS, transpose};
use crate::prefetch::prefetch;
use crate::processor::Work;

/// A piece of a row: a word with the bits of 64 columns, or a whole row of fewer columns.
pub(super) trait Cell: Pod {
    /// Keeps the bits in `keep`, clears the others, and sets those in `new`.
    fn merged(self, keep: u64, new: u64) -> Self;
}

macro_rules! cell {
    ($cell:ty) => {
        impl Cell for $cell {
            #[inline(always)]
            fn merged(self, keep: u64, new: u64) -> Self {
                self & keep as Self | new as Self
            }
        }
    };
}

cell!(u8);
cell!(u16);
cell!(u32);
cell!(u64);

/// Words of a cache line, which is also the number of matrices made of one line of every column.
const LINE: usize = 8;

/// Rows made of one word of every column.
const ROWS: usize = 64;

/// Columns to be rewritten, and where.
pub(super) struct Refresh<'a, T> {
    /// The rows, starting with the first one to be rewritten.
    pub(super) rows: &'a mut [T],
    /// Cells per row.
    pub(super) stride: usize,
    /// Which cell of each row is rewritten.
    pub(super) word: usize,
    /// For each column, its bit in the cell, and its words; all columns have the same length.
    pub(super) columns: &'a [(usize, &'a [u64])],
}

impl<T: Cell> Work for Refresh<'_, T> {
    type Done = ();

    #[inline(always)]
    fn done(mut self) {
        let keep = !self.columns.iter().fold(0u64, |mask, (bit, _)| mask | 1 << bit);
        let length = self.columns.first().map_or(0, |(_, bits)| bits.len());
        for first in (0..length).step_by(LINE) {
            let mut matrices = self.lines(first);
            for (matrix, block) in matrices.iter_mut().zip(first..length) {
                transpose(matrix, |round| self.ask_ahead(block + 1, round));
                self.write(block, matrix, keep);
            }
        }
    }
}

impl<T: Cell> Refresh<'_, T> {
    /// Rewrites the columns one after the other, bit by bit.
    pub(super) fn one_by_one(self) {
        for (bit, bits) in self.columns {
            let blocks = self.rows.chunks_mut(ROWS * self.stride);
            for (block, word) in blocks.zip(bits.iter()) {
                let mut column = *word;
                for row in block.chunks_exact_mut(self.stride) {
                    row[self.word] = row[self.word].merged(!(1 << bit), (column & 1) << bit);
                    column >>= 1;
                }
            }
        }
    }

    /// A cache line of every column from this word on, as matrices to transpose.
    #[inline(always)]
    fn lines(&self, first: usize) -> [[u64; ROWS]; LINE] {
        let mut matrices = [[0; ROWS]; LINE];
        for (bit, bits) in self.columns {
            for (matrix, word) in matrices.iter_mut().zip(&bits[first..]) {
                matrix[*bit] = *word;
            }
            prefetch(bits, first + 2 * LINE);
        }
        matrices
    }

    /// Prefetches the rows of a block, a share of them in each round of a transposition: all at
    /// once would be more than a core can have in flight.
    #[inline(always)]
    fn ask_ahead(&self, block: usize, round: usize) {
        const SHARE: usize = ROWS.div_ceil(ROUNDS);
        for row in (0..ROWS).skip(round * SHARE).take(SHARE) {
            prefetch(self.rows, (block * ROWS + row) * self.stride + self.word);
        }
    }

    /// Writes the rows of a block.
    #[inline(always)]
    fn write(&mut self, block: usize, matrix: &[u64; ROWS], keep: u64) {
        let rows = self.rows[block * ROWS * self.stride..].chunks_exact_mut(self.stride);
        for (row, written) in rows.zip(matrix) {
            row[self.word] = row[self.word].merged(keep, *written);
        }
    }
}
