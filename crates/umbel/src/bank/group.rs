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
use super::refresh::Refresh;
use super::rows::{Line, Rows};
use crate::bits::BitVector;
use crate::key_hash::{KeyHash, Positions};
use crate::params::Shape;
use crate::prefetch::prefetch;
use crate::processor::{self, Avx2};

/// What is done with the bitmap of each of many keys; `inline(always)`, as all that is compiled
/// for the processor at hand.
pub(super) trait Take {
    /// Takes the next one.
    fn take(&mut self, bitmap: &[u64]);
}

/// Keys a batch: their bitmaps stay in the first-level cache until they are taken.
const BATCH: usize = 32;

#[derive(Clone)]
pub(super) struct Group<R> {
    shape: Shape,
    /// Words a row.
    stride: usize,
    rows: R,
    /// Which slots hold a column.
    used: Vec<bool>,
    avx2: Option<Avx2>,
}

impl<R: Rows> Group<R> {
    /// A group with room for `columns`.
    pub(super) fn new(shape: Shape, columns: usize) -> Result<Self, BankError> {
        let stride = stride_for(columns);
        let rows = allocate(&shape, stride)?;
        Ok(Self { shape, stride, rows, used: vec![false; stride * 64], avx2: Avx2::detect() })
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
                _ => {
                    let (stride, columns) = (self.stride, &here[..]);
                    let rows = &mut words_mut(&mut self.rows)[part.start * 64 * stride..];
                    processor::run(self.avx2, Refresh { rows, stride, word, columns });
                }
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
        let bits = self.shape.bits();
        let (stride, word, bit) = (self.stride, slot / 64, 1u64 << (slot % 64));
        let words = words_mut(&mut self.rows);
        for (index, position) in positions.iter().enumerate() {
            // Rows are padded, and the product below may wrap: neither would be noticed there.
            assert!(*position < bits, "position {position} of {bits} bits");
            if let Some(later) = positions.get(index + AHEAD) {
                prefetch(words, (*later as usize).wrapping_mul(stride).wrapping_add(word));
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

    /// What the processor can do.
    pub(super) const fn avx2(&self) -> Option<Avx2> {
        self.avx2
    }

    /// Makes this group its own oracle.
    #[cfg(test)]
    pub(super) fn forget_simd(&mut self) {
        self.avx2 = None;
    }

    /// How many keys ahead rows are asked for, as many lines for short rows as for long ones:
    /// more would not find them there any longer.
    #[inline(always)]
    pub(super) const fn ahead(&self) -> usize {
        if self.stride > 8 { 4 } else { 16 }
    }

    /// Asks for the rows of a key ahead of their use.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: KeyHash) {
        let words = words(&self.rows);
        for position in self.positions(hash) {
            let start = position as usize * self.stride;
            (0..self.stride).step_by(8).for_each(|word| prefetch(words, start + word));
        }
    }

    /// The columns that claim a key, as a bitmap of `stride` words.
    #[inline(always)]
    pub(super) fn who(&self, hash: KeyHash, bitmap: &mut [u64]) {
        match self.stride {
            1 => bitmap.copy_from_slice(&and(self.rows::<1>(), self.positions(hash))),
            2 => bitmap.copy_from_slice(&and(self.rows::<2>(), self.positions(hash))),
            4 => bitmap.copy_from_slice(&and(self.rows::<4>(), self.positions(hash))),
            8 => bitmap.copy_from_slice(&and(self.rows::<8>(), self.positions(hash))),
            16 => bitmap.copy_from_slice(&and(self.rows::<16>(), self.positions(hash))),
            24 => bitmap.copy_from_slice(&and(self.rows::<24>(), self.positions(hash))),
            32 => bitmap.copy_from_slice(&and(self.rows::<32>(), self.positions(hash))),
            _ => self.and_lines(hash, bitmap),
        }
    }

    /// Gives `take` the bitmaps of many keys, in their order, with rows asked for ahead.
    #[inline(always)]
    pub(super) fn who_many(&self, hashes: &[KeyHash], take: impl Take) {
        match self.stride {
            1 => self.and_many::<1>(hashes, take),
            2 => self.and_many::<2>(hashes, take),
            4 => self.and_many::<4>(hashes, take),
            8 => self.and_many::<8>(hashes, take),
            16 => self.and_many::<16>(hashes, take),
            24 => self.and_many::<24>(hashes, take),
            32 => self.and_many::<32>(hashes, take),
            _ => self.and_many_lines(hashes, take),
        }
    }

    #[inline(always)]
    fn and_many<const W: usize>(&self, hashes: &[KeyHash], mut take: impl Take) {
        let (rows, ahead) = (self.rows::<W>(), self.ahead());
        let mut bitmaps = [[0; W]; BATCH];
        for hash in hashes.iter().take(ahead) {
            self.positions(*hash).for_each(|row| prefetch_row(rows, row));
        }
        let mut later = hashes.iter().skip(ahead);
        for batch in hashes.chunks(BATCH) {
            for (hash, bitmap) in batch.iter().zip(&mut bitmaps) {
                // One row asked for, one row read: in turns they keep the memory busiest.
                let later = self.positions(*later.next().unwrap_or(hash));
                let wanted = self.positions(*hash).zip(later).map(|(row, later)| {
                    prefetch_row(rows, later);
                    row
                });
                *bitmap = and(rows, wanted);
            }
            for bitmap in &bitmaps[..batch.len()] {
                take.take(bitmap);
            }
        }
    }

    fn and_many_lines(&self, hashes: &[KeyHash], mut take: impl Take) {
        let mut bitmap = vec![0; self.stride];
        for (index, hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(index + self.ahead()) {
                self.prefetch(*later);
            }
            self.and_lines(*hash, &mut bitmap);
            take.take(&bitmap);
        }
    }

    /// The rows, if they are `W` words wide.
    #[inline(always)]
    fn rows<const W: usize>(&self) -> &[[u64; W]] {
        words(&self.rows).as_chunks().0
    }

    #[inline(always)]
    const fn positions(&self, hash: KeyHash) -> Positions {
        hash.digest(self.shape.digest_bits()).positions(&self.shape)
    }

    /// Any number of whole lines.
    #[inline(always)]
    fn and_lines(&self, hash: KeyHash, bitmap: &mut [u64]) {
        let words = words(&self.rows);
        bitmap.fill(u64::MAX);
        for position in self.positions(hash) {
            let row = &words[position as usize * self.stride..][..self.stride];
            bitmap.iter_mut().zip(row).for_each(|(claim, word)| *claim &= word);
        }
    }
}

/// What is in all of these rows. With their width known at compile time, the loop over words
/// becomes vector code.
#[inline(always)]
fn and<const W: usize>(rows: &[[u64; W]], wanted: impl Iterator<Item = u64>) -> [u64; W] {
    let mut claims = [u64::MAX; W];
    for row in wanted {
        let row = &rows[row as usize];
        claims.iter_mut().zip(row).for_each(|(claim, word)| *claim &= word);
    }
    claims
}

/// Asks for a row ahead of its use.
#[inline(always)]
fn prefetch_row<const W: usize>(rows: &[[u64; W]], row: u64) {
    if let Some(row) = rows.get(row as usize) {
        (0..W).step_by(8).for_each(|word| prefetch(row, word));
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
