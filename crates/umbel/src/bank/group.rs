//! Columns that share rows, bit-sliced.
//!
//! ```text
//!            column 0 1 2 3 …            row p holds bit p of every column;
//! row 0      │ columns       │           a row has room for 8, 16 or 32 columns, for 1, 2, 4
//! row 1      │ columns       │           or 8 words of them, or for whole cache lines, so that
//! …                                      none straddles a line it need not touch
//! row m - 1
//! ```
//!
//! Combining by AND the rows of a key's `k` positions leaves the columns that claim it. Once no
//! column is left, the remaining rows are not read. A column of a lower rung than the group's is
//! stretched: each of its bits stands in `2^d` neighbouring rows.
//!
//! Always true: `live` has a one for each slot whose column takes part in lookups, and at these
//! slots the rows hold exactly the column's bits. Rows may hold anything at other slots, because
//! the AND starts with `live`.

mod chain;

use std::collections::BTreeMap;
use std::ops::Range;

use super::layout::rows_read;
use super::refresh::{Cell, Refresh};
use super::rows::{Line, Rows};
use super::stretch::stretched;
use super::{BankError, ColumnId};
use crate::bits::BitVector;
use crate::key_hash::{KeyHash, Positions};
use crate::params::Shape;
use crate::prefetch::prefetch;
use crate::processor::{self, Avx2};

/// Consumes the bitmaps of many keys. Implementations are `inline(always)`, like all code that is
/// compiled for the processor at hand.
pub(super) trait Take {
    /// Consumes the bitmap of the next key.
    fn take(&mut self, bitmap: &[u64]);
}

/// Keys per batch: their bitmaps stay in the first-level cache until they are consumed.
const BATCH: usize = 32;

#[derive(Clone)]
pub(super) struct Group<R> {
    shape: Shape,
    /// Columns that a row has room for.
    width: usize,
    rows: R,
    live: Vec<u64>,
    /// The column in each slot, whether it is live or still being written.
    slots: Vec<Option<ColumnId>>,
    /// The lowest free slot; the number of slots if none is free.
    first_free: usize,
    /// How many columns there are of each rung.
    rungs: BTreeMap<u32, usize>,
    /// Rows of a key that are prefetched, and read before the first check whether any column is
    /// left.
    likely: usize,
    avx2: Option<Avx2>,
}

impl<R: Rows> Group<R> {
    /// A group of rows of a width that [`row_width`](crate::design::replica::row_width) knows, for
    /// this many columns, all of which are still to be added.
    pub(super) fn new(shape: Shape, columns: usize, width: usize) -> Result<Self, BankError> {
        let bytes = rows_bytes(&shape, width);
        let lines = usize::try_from(bytes / size_of::<Line>() as u64).ok();
        let rows = lines.and_then(R::zeroed).ok_or(BankError::NoMemory { bytes })?;
        Ok(Self {
            shape,
            width,
            rows,
            live: vec![0; width.div_ceil(64)],
            slots: vec![None; width],
            first_free: 0,
            rungs: BTreeMap::new(),
            likely: rows_read(columns, shape.hashes()).ceil() as usize,
            avx2: Avx2::detect(),
        })
    }

    pub(super) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Columns that a row has room for.
    pub(super) const fn width(&self) -> usize {
        self.width
    }

    /// Words of an answer's bitmap.
    pub(super) fn words(&self) -> usize {
        self.live.len()
    }

    /// Columns that are here.
    pub(super) fn columns(&self) -> usize {
        self.rungs.values().sum()
    }

    /// The rungs of the columns that are here, lowest first.
    pub(super) fn rungs(&self) -> impl Iterator<Item = u32> {
        self.rungs.keys().copied()
    }

    /// The column in each slot.
    pub(super) fn slots(&self) -> &[Option<ColumnId>] {
        &self.slots
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        size_of_val(self.rows.lines()) as u64
    }

    /// The lowest free slot.
    pub(super) fn free_slot(&self) -> Option<usize> {
        (self.first_free < self.slots.len()).then_some(self.first_free)
    }

    /// Reserves a slot for a column of this rung. The column is not live yet.
    pub(super) fn reserve(&mut self, slot: usize, column: ColumnId, rung: u32) {
        debug_assert!(self.slots[slot].is_none(), "the slot is free");
        self.slots[slot] = Some(column);
        *self.rungs.entry(rung).or_default() += 1;
        while self.slots.get(self.first_free).is_some_and(Option::is_some) {
            self.first_free += 1;
        }
    }

    /// From now on the column in this slot takes part in lookups.
    pub(super) fn go_live(&mut self, slot: usize) {
        self.live[slot / 64] |= 1 << (slot % 64);
    }

    /// Removes the column of this rung from a slot, which is free from now on.
    pub(super) fn release(&mut self, slot: usize, rung: u32) {
        self.live[slot / 64] &= !(1 << (slot % 64));
        self.slots[slot] = None;
        self.first_free = self.first_free.min(slot);
        if let Some(columns) = self.rungs.get_mut(&rung) {
            *columns -= 1;
            if *columns == 0 {
                self.rungs.remove(&rung);
            }
        }
    }

    /// By how many rungs a column of this shape is stretched here.
    fn steps(&self, bits: u64) -> u32 {
        (self.shape.bits() / bits).trailing_zeros()
    }

    /// Blocks of 64 rows, the last of which may be short.
    pub(super) fn blocks(&self) -> usize {
        self.shape.bits().div_ceil(64) as usize
    }

    /// Writes a part of the columns in these slots, in the order of the slots. The part is counted
    /// in blocks of 64 rows.
    pub(super) fn write(&mut self, columns: &[(usize, &BitVector)], part: Range<usize>) {
        debug_assert!(columns.is_sorted_by_key(|(slot, _)| *slot), "columns come in order");
        let part = part.start.min(self.blocks())..part.end.min(self.blocks());
        for here in columns.chunk_by(|(one, _), (next, _)| one / 64 == next / 64) {
            let word = here[0].0 / 64;
            let here: Vec<_> = here
                .iter()
                .map(|(slot, bits)| {
                    let steps = self.steps(bits.len());
                    (slot % 64, stretched(bits.words(), steps, part.clone()))
                })
                .collect();
            let here: Vec<_> = here.iter().map(|(bit, bits)| (*bit, &**bits)).collect();
            match self.width {
                8 => self.write_word::<u8>(word, &here, part.start),
                16 => self.write_word::<u16>(word, &here, part.start),
                32 => self.write_word::<u32>(word, &here, part.start),
                _ => self.write_word::<u64>(word, &here, part.start),
            }
        }
    }

    /// Writes columns of one word of the rows, from a block of rows on.
    fn write_word<T: Cell>(&mut self, word: usize, columns: &[(usize, &[u64])], start: usize) {
        let (stride, avx2) = (self.stride::<T>(), self.avx2);
        let rows = &mut cells_mut::<T, R>(&mut self.rows)[start * 64 * stride..];
        let refresh = Refresh { rows, stride, word, columns };
        // A transposition costs as much for one column as for 64.
        match columns.len() {
            0..=4 => refresh.one_by_one(),
            _ => processor::run(avx2, refresh),
        }
    }

    /// Cells of a row.
    const fn stride<T>(&self) -> usize {
        self.width / (size_of::<T>() * 8)
    }

    /// Sets or clears bits of the column in a slot, in its master copy and in the rows.
    ///
    /// Both in one pass: the copy is written while the prefetched rows arrive.
    pub(super) fn touch(
        &mut self,
        slot: usize,
        copy: &mut BitVector,
        positions: &[u64],
        value: bool,
    ) {
        match self.width {
            8 => self.touch_cells::<u8>(slot, copy, positions, value),
            16 => self.touch_cells::<u16>(slot, copy, positions, value),
            32 => self.touch_cells::<u32>(slot, copy, positions, value),
            _ => self.touch_cells::<u64>(slot, copy, positions, value),
        }
    }

    fn touch_cells<T: Cell>(
        &mut self,
        slot: usize,
        copy: &mut BitVector,
        positions: &[u64],
        value: bool,
    ) {
        /// Rows to prefetch: as many as a core can have in flight.
        const AHEAD: usize = 24;
        let (stride, cell_bits) = (self.stride::<T>(), size_of::<T>() * 8);
        let steps = self.steps(copy.len());
        let (cell, bit) = (slot / cell_bits, 1u64 << (slot % cell_bits));
        let (keep, new) = (!bit, if value { bit } else { 0 });
        let cells = cells_mut::<T, R>(&mut self.rows);
        // Wrapping: a position that is out of range is prefetched before the copy rejects it.
        let first = |position: u64| ((position as usize) << steps).wrapping_mul(stride) + cell;
        for (index, position) in positions.iter().enumerate() {
            if let Some(later) = positions.get(index + AHEAD) {
                prefetch(cells, first(*later));
            }
            copy.put(*position, value);
            let first = first(*position);
            cells[first] = cells[first].merged(keep, new);
            // The bit of a stretched column also occupies the rows that follow. Few columns are
            // stretched.
            if steps > 0 {
                let rows = (1..1 << steps).map(|row| first + row * stride);
                rows.for_each(|place| cells[place] = cells[place].merged(keep, new));
            }
        }
    }

    /// Whether the rows hold exactly these bits in a slot. Slow; for checks only.
    pub(super) fn holds(&self, slot: usize, bits: &BitVector) -> bool {
        let (words, steps) = (words(&self.rows), self.steps(bits.len()));
        let stride = self.stride::<u64>();
        let bit = |row: usize| match self.width {
            8 => u64::from(u8::of(words)[row]) >> slot & 1,
            16 => u64::from(u16::of(words)[row]) >> slot & 1,
            32 => u64::from(u32::of(words)[row]) >> slot & 1,
            _ => words[row * stride + slot / 64] >> (slot % 64) & 1,
        };
        (0..self.shape.bits()).all(|row| bit(row as usize) == bits.get(row >> steps))
    }

    /// Whether the processor has AVX2.
    pub(super) const fn avx2(&self) -> Option<Avx2> {
        self.avx2
    }

    /// Turns off vector code, so that a test can compare a group with and without it.
    #[cfg(test)]
    pub(super) fn forget_simd(&mut self) {
        self.avx2 = None;
    }

    /// How many keys ahead rows are prefetched. Long rows use fewer keys, which keeps the number of
    /// lines about the same: with more, lines would be evicted before they are read.
    #[inline(always)]
    const fn ahead(&self) -> usize {
        if self.width > 512 { 4 } else { 16 }
    }

    /// The columns that claim a key, as a bitmap.
    #[inline(always)]
    pub(super) fn who(&self, hash: KeyHash, bitmap: &mut [u64]) {
        match self.width {
            8 => self.and_one::<u8>(hash, bitmap),
            16 => self.and_one::<u16>(hash, bitmap),
            32 => self.and_one::<u32>(hash, bitmap),
            64 => self.and_one::<[u64; 1]>(hash, bitmap),
            128 => self.and_one::<[u64; 2]>(hash, bitmap),
            256 => self.and_one::<[u64; 4]>(hash, bitmap),
            512 => self.and_one::<[u64; 8]>(hash, bitmap),
            1024 => self.and_one::<[u64; 16]>(hash, bitmap),
            1536 => self.and_one::<[u64; 24]>(hash, bitmap),
            2048 => self.and_one::<[u64; 32]>(hash, bitmap),
            _ => self.and_lines(hash, bitmap),
        }
    }

    /// Prefetches the rows of the first keys that [`Self::who_many`] will read.
    #[inline(always)]
    pub(super) fn ask_for_first(&self, hashes: &[KeyHash]) {
        let (words, line) = (words(&self.rows), size_of::<Line>() / size_of::<u64>());
        for hash in hashes.iter().take(self.ahead()) {
            for row in self.positions(*hash).take(self.likely) {
                let first = row as usize * self.width / 64;
                (0..self.width.div_ceil(512)).for_each(|at| prefetch(words, first + at * line));
            }
        }
    }

    /// Passes the bitmaps of the keys in `part` to `take`, in order. Their rows have been
    /// prefetched already; this call prefetches the rows of later keys.
    #[inline(always)]
    pub(super) fn who_many(&self, all: &[KeyHash], part: Range<usize>, take: impl Take) {
        let later = all.get(part.start + self.ahead()..).unwrap_or_default();
        let hashes = &all[part];
        match self.width {
            8 => self.and_many::<u8>(hashes, later, take),
            16 => self.and_many::<u16>(hashes, later, take),
            32 => self.and_many::<u32>(hashes, later, take),
            64 => self.and_many::<[u64; 1]>(hashes, later, take),
            128 => self.and_many::<[u64; 2]>(hashes, later, take),
            256 => self.and_many::<[u64; 4]>(hashes, later, take),
            512 => self.and_many_wide::<[u64; 8]>(hashes, later, take),
            1024 => self.and_many_wide::<[u64; 16]>(hashes, later, take),
            1536 => self.and_many_wide::<[u64; 24]>(hashes, later, take),
            2048 => self.and_many_wide::<[u64; 32]>(hashes, later, take),
            _ => self.and_many_lines(hashes, later, take),
        }
    }

    #[inline(always)]
    fn and_one<T: Row>(&self, hash: KeyHash, bitmap: &mut [u64]) {
        let (rows, mut claims) = (T::of(words(&self.rows)), T::start(&self.live));
        for (index, row) in self.positions(hash).enumerate() {
            T::and(&mut claims, &rows[row as usize]);
            if index + 1 >= self.likely && T::is_none(&claims) {
                break;
            }
        }
        bitmap.copy_from_slice(claims.as_ref());
    }

    #[inline(always)]
    fn and_many<T: Row>(&self, hashes: &[KeyHash], later: &[KeyHash], mut take: impl Take) {
        let (rows, live) = (T::of(words(&self.rows)), T::start(&self.live));
        let likely = self.likely;
        // If there are no rows beyond the likely ones, skip the check for keys that need them: it
        // would cost a third of a lookup.
        let has_rest = likely < self.shape.hashes() as usize;
        let mut bitmaps = [live; BATCH];
        let mut open = [0u8; BATCH];
        let mut later = later.iter();
        for batch in hashes.chunks(BATCH) {
            let mut left = 0;
            for (index, (hash, bitmap)) in batch.iter().zip(&mut bitmaps).enumerate() {
                let mut claims = live;
                // Alternate between prefetching a row and reading one: this keeps the memory
                // busiest.
                let later = self.positions(*later.next().unwrap_or(hash));
                for (row, later) in self.positions(*hash).zip(later).take(likely) {
                    T::prefetch(rows, later);
                    T::and(&mut claims, &rows[row as usize]);
                }
                *bitmap = claims;
                if has_rest {
                    // Written always, counted only if a column is left: no branch to mispredict.
                    open[left] = index as u8;
                    left += usize::from(!T::is_none(&claims));
                }
            }
            if has_rest {
                self.and_rest::<T>(batch, &open[..left], &mut bitmaps);
            }
            for bitmap in &bitmaps[..batch.len()] {
                take.take(bitmap.as_ref());
            }
        }
    }

    /// As [`Self::and_many`], for rows of whole cache lines: some column is left until the last row
    /// of nearly every key, so that there are few rows beyond the likely ones. Setting keys aside
    /// for these rows would prevent the bitmap of a key from staying in registers.
    #[inline(always)]
    fn and_many_wide<T: Row>(&self, hashes: &[KeyHash], later: &[KeyHash], mut take: impl Take) {
        let (rows, live) = (T::of(words(&self.rows)), T::start(&self.live));
        let mut bitmaps = [live; BATCH];
        let mut later = later.iter();
        for batch in hashes.chunks(BATCH) {
            for (hash, bitmap) in batch.iter().zip(&mut bitmaps) {
                let mut claims = live;
                let mut wanted = self.positions(*hash);
                let later = self.positions(*later.next().unwrap_or(hash));
                for (row, later) in wanted.by_ref().zip(later).take(self.likely) {
                    T::prefetch(rows, later);
                    T::and(&mut claims, &rows[row as usize]);
                }
                for row in wanted {
                    if T::is_none(&claims) {
                        break;
                    }
                    T::and(&mut claims, &rows[row as usize]);
                }
                *bitmap = claims;
            }
            for bitmap in &bitmaps[..batch.len()] {
                take.take(bitmap.as_ref());
            }
        }
    }

    /// Reads the rows beyond the likely ones, for the keys of a batch that still have columns left.
    /// Works in rounds: prefetches the next few rows of all these keys, then reads them.
    #[inline(always)]
    fn and_rest<T: Row>(&self, batch: &[KeyHash], open: &[u8], bitmaps: &mut [T::Bitmap; BATCH]) {
        /// Rows per key and round.
        const ROWS: usize = 2;
        let rows = T::of(words(&self.rows));
        let mut walks = [const { (0, Positions::NONE) }; BATCH];
        for (walk, index) in walks.iter_mut().zip(open) {
            let mut positions = self.positions(batch[usize::from(*index)]);
            positions.by_ref().take(self.likely).for_each(drop);
            *walk = (*index, positions);
        }
        let mut left = open.len();
        while left > 0 {
            for (_, positions) in &walks[..left] {
                positions.clone().take(ROWS).for_each(|row| T::prefetch(rows, row));
            }
            let mut kept = 0;
            for place in 0..left {
                let (index, mut positions) = walks[place].clone();
                let claims = &mut bitmaps[usize::from(index)];
                for row in positions.by_ref().take(ROWS) {
                    T::and(claims, &rows[row as usize]);
                }
                let goes_on = positions.len() > 0 && !T::is_none(claims);
                walks[kept] = (index, positions);
                kept += usize::from(goes_on);
            }
            left = kept;
        }
    }

    fn and_many_lines(&self, hashes: &[KeyHash], later: &[KeyHash], mut take: impl Take) {
        let mut bitmap = vec![0; self.live.len()];
        let (words, stride) = (words(&self.rows), self.live.len());
        for (index, hash) in hashes.iter().enumerate() {
            for row in later.get(index).into_iter().flat_map(|hash| self.positions(*hash)) {
                (0..stride)
                    .step_by(8)
                    .for_each(|word| prefetch(words, row as usize * stride + word));
            }
            self.and_lines(*hash, &mut bitmap);
            take.take(&bitmap);
        }
    }

    #[inline(always)]
    const fn positions(&self, hash: KeyHash) -> Positions {
        hash.digest(self.shape.digest_bits()).positions(&self.shape)
    }

    /// Computes the bitmap of a key in rows of any number of whole cache lines.
    #[inline(always)]
    fn and_lines(&self, hash: KeyHash, bitmap: &mut [u64]) {
        let (words, stride) = (words(&self.rows), self.live.len());
        bitmap.copy_from_slice(&self.live);
        for position in self.positions(hash) {
            let row = &words[position as usize * stride..][..stride];
            bitmap.iter_mut().zip(row).for_each(|(claim, word)| *claim &= word);
        }
    }
}

/// A row of a width that has specialised code: because its width is known at compile time, the
/// compiler turns the loop over its words into vector code.
trait Row: Copy {
    type Bitmap: Copy + AsRef<[u64]>;

    fn of(words: &[u64]) -> &[Self];
    fn start(live: &[u64]) -> Self::Bitmap;
    fn and(claims: &mut Self::Bitmap, row: &Self);
    fn is_none(claims: &Self::Bitmap) -> bool;
    fn prefetch(rows: &[Self], row: u64);
}

macro_rules! narrow_row {
    ($cell:ty) => {
        impl Row for $cell {
            type Bitmap = [u64; 1];

            #[inline(always)]
            fn of(words: &[u64]) -> &[Self] {
                bytemuck::cast_slice(words)
            }

            #[inline(always)]
            fn start(live: &[u64]) -> [u64; 1] {
                [live[0]]
            }

            #[inline(always)]
            fn and(claims: &mut [u64; 1], row: &Self) {
                claims[0] &= u64::from(*row);
            }

            #[inline(always)]
            fn is_none(claims: &[u64; 1]) -> bool {
                claims[0] == 0
            }

            #[inline(always)]
            fn prefetch(rows: &[Self], row: u64) {
                prefetch(rows, row as usize);
            }
        }
    };
}

narrow_row!(u8);
narrow_row!(u16);
narrow_row!(u32);

impl<const W: usize> Row for [u64; W] {
    type Bitmap = Self;

    #[inline(always)]
    fn of(words: &[u64]) -> &[Self] {
        words.as_chunks().0
    }

    #[inline(always)]
    fn start(live: &[u64]) -> Self {
        *live.first_chunk().expect("a group of this width")
    }

    #[inline(always)]
    fn and(claims: &mut Self, row: &Self) {
        claims.iter_mut().zip(row).for_each(|(claim, word)| *claim &= word);
    }

    #[inline(always)]
    fn is_none(claims: &Self) -> bool {
        claims.iter().fold(0, |any, word| any | word) == 0
    }

    #[inline(always)]
    fn prefetch(rows: &[Self], row: u64) {
        if let Some(row) = rows.get(row as usize) {
            (0..W).step_by(8).for_each(|word| prefetch(row, word));
        }
    }
}

/// Bytes that rows of this width take: whole cache lines, and whole blocks of 64 rows.
fn rows_bytes(shape: &Shape, width: usize) -> u64 {
    let rows = shape.bits().next_multiple_of(64);
    (rows.saturating_mul(width as u64) / 8).next_multiple_of(64)
}

#[inline]
fn words<R: Rows>(rows: &R) -> &[u64] {
    bytemuck::cast_slice(rows.lines())
}

#[inline]
fn cells_mut<T: Cell, R: Rows>(rows: &mut R) -> &mut [T] {
    bytemuck::cast_slice_mut(rows.lines_mut())
}
