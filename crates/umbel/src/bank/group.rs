//! The replicas of one shape, bit-sliced.
//!
//! ```text
//!            column 0 1 2 3 …            row p holds bit p of every column;
//! row 0      │ words │ words │           a row is 1, 2, 4 or 8 words, or whole cache
//! row 1      │ words │ words │           lines of 8, so that none straddles a line it
//! …                                      need not touch
//! row m - 1
//! ```
//!
//! Combining the rows by AND of a key's `k` positions leaves the columns that claim it.
//!
//! Always true: bits of slots that hold no column are zero, so that they never answer.

use std::ops::Range;

use super::BankError;
use super::rows::{Line, Rows};
use super::transpose::transpose;
use crate::bits::BitVector;
use crate::key_hash::{Digest, KeyHash};
use crate::params::Shape;
use crate::prefetch::prefetch;

#[derive(Debug, Clone)]
pub(super) struct Group<R> {
    shape: Shape,
    /// Words a row.
    stride: usize,
    rows: R,
    /// Which slots hold a column.
    used: Vec<bool>,
}

impl<R: Rows> Group<R> {
    /// A group with room for `columns`.
    pub(super) fn new(shape: Shape, columns: usize) -> Result<Self, BankError> {
        let stride = stride_for(columns);
        let rows = allocate(&shape, stride)?;
        Ok(Self { shape, stride, rows, used: vec![false; stride * 64] })
    }

    pub(super) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Words a row, and of an answer's bitmap.
    pub(super) const fn stride(&self) -> usize {
        self.stride
    }

    pub(super) fn columns(&self) -> usize {
        self.used.iter().filter(|used| **used).count()
    }

    pub(super) fn holds(&self, slot: usize) -> bool {
        self.used.get(slot).copied().unwrap_or(false)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        size_of_val(self.rows.lines()) as u64
    }

    /// The lowest free slots, `count` of them, growing the rows if need be.
    pub(super) fn reserve(&mut self, count: usize) -> Result<Vec<usize>, BankError> {
        let wanted = self.columns() + count;
        if wanted > self.used.len() {
            self.grow(stride_for(wanted))?;
        }
        let free = (0..self.used.len()).filter(|slot| !self.used[*slot]).take(count);
        let slots: Vec<usize> = free.collect();
        slots.iter().for_each(|slot| self.used[*slot] = true);
        Ok(slots)
    }

    /// Bytes that rows with room for `count` more columns would take on top.
    pub(super) fn growth_bytes(&self, count: usize) -> u64 {
        let stride = stride_for(self.columns() + count);
        if stride <= self.stride { 0 } else { row_bytes(&self.shape, stride) }
    }

    fn grow(&mut self, stride: usize) -> Result<(), BankError> {
        let mut rows: R = allocate(&self.shape, stride)?;
        let wide = words_mut(&mut rows).chunks_exact_mut(stride);
        for (wide, narrow) in wide.zip(words(&self.rows).chunks_exact(self.stride)) {
            wide[..self.stride].copy_from_slice(narrow);
        }
        self.rows = rows;
        self.stride = stride;
        self.used.resize(stride * 64, false);
        Ok(())
    }

    /// Clears rows of a column: 64 of them a word of `part`.
    pub(super) fn erase(&mut self, slot: usize, part: Range<usize>) {
        let (word, mask) = (slot / 64, !(1 << (slot % 64)));
        let stride = self.stride;
        let blocks = words_mut(&mut self.rows)[part.start * 64 * stride..].chunks_mut(64 * stride);
        for row in blocks.take(part.len()).flat_map(|block| block.chunks_exact_mut(stride)) {
            row[word] &= mask;
        }
    }

    /// Frees a slot whose column was erased.
    pub(super) fn release(&mut self, slot: usize) {
        self.used[slot] = false;
    }

    /// Overwrites rows of the columns in these slots: 64 of them a word of `part`.
    pub(super) fn write(&mut self, columns: &[(usize, &BitVector)], part: Range<usize>) {
        for word in 0..self.stride {
            let here: Vec<_> = columns
                .iter()
                .filter(|(slot, _)| slot / 64 == word)
                .map(|(slot, bits)| (slot % 64, &bits.words()[part.clone()]))
                .collect();
            match here.len() {
                0 => {}
                // A transposition costs as much for one column as for 64.
                1..=4 => {
                    for (bit, bits) in here {
                        self.write_one(word, bit, bits, part.clone());
                    }
                }
                _ => self.write_block(word, &here, part.clone()),
            }
        }
    }

    /// Overwrites one column, bit by bit.
    fn write_one(&mut self, word: usize, bit: usize, bits: &[u64], part: Range<usize>) {
        let (stride, keep) = (self.stride, !(1u64 << bit));
        let blocks = words_mut(&mut self.rows)[part.start * 64 * stride..].chunks_mut(64 * stride);
        for (block, mut column) in blocks.zip(bits.iter().copied()) {
            for row in block.chunks_exact_mut(stride) {
                row[word] = (row[word] & keep) | (column & 1) << bit;
                column >>= 1;
            }
        }
    }

    /// Overwrites up to 64 columns of one word at once: 64 of their words make 64 rows.
    fn write_block(&mut self, word: usize, columns: &[(usize, &[u64])], part: Range<usize>) {
        let stride = self.stride;
        let keep = !columns.iter().fold(0u64, |mask, (bit, _)| mask | 1 << bit);
        let blocks = words_mut(&mut self.rows)[part.start * 64 * stride..].chunks_mut(64 * stride);
        for (index, block) in blocks.enumerate().take(part.len()) {
            let mut matrix = [0; 64];
            columns.iter().for_each(|(bit, bits)| matrix[*bit] = bits[index]);
            transpose(&mut matrix);
            for (row, written) in block.chunks_exact_mut(stride).zip(matrix) {
                row[word] = (row[word] & keep) | written;
            }
        }
    }

    /// Sets bits of one column.
    pub(super) fn set(&mut self, slot: usize, positions: &[u64]) {
        self.touch(slot, positions, |word, bit| *word |= bit);
    }

    /// Clears bits of one column.
    pub(super) fn clear(&mut self, slot: usize, positions: &[u64]) {
        self.touch(slot, positions, |word, bit| *word &= !bit);
    }

    fn touch(&mut self, slot: usize, positions: &[u64], change: impl Fn(&mut u64, u64)) {
        /// Rows asked for ahead: as many as a core can have under way.
        const AHEAD: usize = 24;
        let (stride, word, bit) = (self.stride, slot / 64, 1u64 << (slot % 64));
        let words = words_mut(&mut self.rows);
        for (index, position) in positions.iter().enumerate() {
            if let Some(later) = positions.get(index + AHEAD) {
                prefetch(words, *later as usize * stride + word);
            }
            change(&mut words[*position as usize * stride + word], bit);
        }
    }

    /// Reads one column back.
    pub(super) fn read(&self, slot: usize, bits: &mut BitVector) {
        let rows = words(&self.rows).chunks_exact(self.stride);
        for (row, position) in rows.take(bits.len() as usize).zip(0..) {
            if row[slot / 64] >> (slot % 64) & 1 == 1 {
                bits.set(position);
            }
        }
    }

    /// Asks for the rows of a key ahead of their use.
    #[inline]
    pub(super) fn prefetch(&self, hash: KeyHash) {
        self.digest(hash).positions(&self.shape).for_each(|row| self.prefetch_row(row));
    }

    /// Asks for the rows of a key ahead of their use and notes which they are, as many as the
    /// shape has hashes.
    #[inline]
    pub(super) fn fetch(&self, hash: KeyHash, noted: &mut [u64]) {
        for (noted, row) in noted.iter_mut().zip(self.digest(hash).positions(&self.shape)) {
            *noted = row;
            self.prefetch_row(row);
        }
    }

    #[inline]
    fn prefetch_row(&self, row: u64) {
        let (words, start) = (words(&self.rows), row as usize * self.stride);
        (0..self.stride).step_by(8).for_each(|word| prefetch(words, start + word));
    }

    /// The columns that claim a key, as a bitmap of `stride` words.
    #[inline]
    pub(super) fn who(&self, hash: KeyHash, bitmap: &mut [u64]) {
        self.and(self.digest(hash).positions(&self.shape), bitmap);
    }

    /// What is in all of these rows, as a bitmap of `stride` words.
    #[inline]
    pub(super) fn and(&self, rows: impl Iterator<Item = u64>, bitmap: &mut [u64]) {
        match self.stride {
            1 => self.and_rows::<1>(rows, bitmap),
            2 => self.and_rows::<2>(rows, bitmap),
            4 => self.and_rows::<4>(rows, bitmap),
            8 => self.and_rows::<8>(rows, bitmap),
            16 => self.and_rows::<16>(rows, bitmap),
            24 => self.and_rows::<24>(rows, bitmap),
            32 => self.and_rows::<32>(rows, bitmap),
            _ => self.and_lines(rows, bitmap),
        }
    }

    #[inline]
    const fn digest(&self, hash: KeyHash) -> Digest {
        hash.digest(self.shape.digest_bits())
    }

    /// With the row width known at compile time, the loop over words becomes vector code.
    #[inline]
    fn and_rows<const W: usize>(&self, wanted: impl Iterator<Item = u64>, bitmap: &mut [u64]) {
        let (rows, _) = words(&self.rows).as_chunks::<W>();
        let mut claims = [u64::MAX; W];
        for position in wanted {
            let row = &rows[position as usize];
            claims.iter_mut().zip(row).for_each(|(claim, word)| *claim &= word);
        }
        bitmap.copy_from_slice(&claims);
    }

    /// Any number of whole lines.
    fn and_lines(&self, wanted: impl Iterator<Item = u64>, bitmap: &mut [u64]) {
        let words = words(&self.rows);
        bitmap.fill(u64::MAX);
        for position in wanted {
            let row = &words[position as usize * self.stride..][..self.stride];
            bitmap.iter_mut().zip(row).for_each(|(claim, word)| *claim &= word);
        }
    }
}

/// Words a row needs for this many columns: a power of two up to a line, then whole lines.
fn stride_for(columns: usize) -> usize {
    match columns.div_ceil(64).max(1) {
        words @ 1..=8 => words.next_power_of_two(),
        words => words.next_multiple_of(8),
    }
}

/// Bytes that rows of this stride take.
pub(super) fn row_bytes(shape: &Shape, stride: usize) -> u64 {
    shape.bits().saturating_mul(stride as u64 * 8).saturating_add(63) / 64 * 64
}

/// Bytes that a new group for this many columns takes.
pub(super) fn group_bytes(shape: &Shape, columns: usize) -> u64 {
    row_bytes(shape, stride_for(columns))
}

fn allocate<R: Rows>(shape: &Shape, stride: usize) -> Result<R, BankError> {
    let bytes = row_bytes(shape, stride);
    let lines = usize::try_from(bytes / size_of::<Line>() as u64).ok();
    lines.and_then(R::zeroed).ok_or(BankError::NoMemory { bytes })
}

#[inline]
fn words<R: Rows>(rows: &R) -> &[u64] {
    bytemuck::cast_slice(rows.lines())
}

#[inline]
fn words_mut<R: Rows>(rows: &mut R) -> &mut [u64] {
    bytemuck::cast_slice_mut(rows.lines_mut())
}
