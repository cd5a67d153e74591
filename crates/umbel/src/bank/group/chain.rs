//! How a chain search reads the rows of a group: whole rows if they take at most a cache line,
//! otherwise line by line, so that a search for few columns reads few lines.

use super::super::chain::{Memory, Search};
use super::super::claims::Claims;
use super::{Group, Row, words};
use crate::bank::Rows;
use crate::design::chain::ChainSearch;
use crate::key_hash::{KeyHash, Positions};
use crate::params::Shape;
use crate::prefetch::prefetch;
use crate::processor::{self, Work};

/// Words of a cache line.
const LINE: usize = 8;

impl<R: Rows> Group<R> {
    /// Writes the depth of every column into `depths`, which has 64 places for every word of the
    /// group's bitmap, all zero.
    pub(in crate::bank) fn chain(
        &self,
        chain: &[KeyHash],
        how: ChainSearch,
        memory: &mut Memory,
        depths: &mut [u32],
    ) {
        processor::run(self.avx2, Depths { group: self, chain, how, memory, depths });
    }
}

/// The depths of a chain in one group.
struct Depths<'a, R> {
    group: &'a Group<R>,
    chain: &'a [KeyHash],
    how: ChainSearch,
    memory: &'a mut Memory,
    depths: &'a mut [u32],
}

impl<R: Rows> Work for Depths<'_, R> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        match self.group.width {
            8 => self.of_rows::<u8, 1>(),
            16 => self.of_rows::<u16, 1>(),
            32 => self.of_rows::<u32, 1>(),
            64 => self.of_rows::<[u64; 1], 1>(),
            128 => self.of_rows::<[u64; 2], 2>(),
            256 => self.of_rows::<[u64; 4], 4>(),
            512 => self.of_rows::<[u64; 8], 8>(),
            _ => {
                let group = self.group;
                let stride = group.live.len() / LINE;
                let lines = words(&group.rows).as_chunks().0;
                self.of::<_, LINE>(&LongRows { lines, stride, shape: &group.shape });
            }
        }
    }
}

impl<'a, R: Rows> Depths<'a, R> {
    #[inline(always)]
    fn of_rows<T: Row<Bitmap = [u64; W]>, const W: usize>(self) {
        let group = self.group;
        self.of::<_, W>(&ShortRows { rows: T::of(words(&group.rows)), shape: &group.shape });
    }

    #[inline(always)]
    fn of<C: Claims<W>, const W: usize>(self, claims: &C) {
        let Self { group, chain, how, memory, depths } = self;
        Search::run(claims, chain, how, &group.live, memory, depths);
    }
}

#[inline(always)]
const fn positions(hash: KeyHash, shape: &Shape) -> Positions {
    hash.digest(shape.digest_bits()).positions(shape)
}

/// Rows of at most a cache line.
struct ShortRows<'a, T> {
    rows: &'a [T],
    shape: &'a Shape,
}

impl<const W: usize, T: Row<Bitmap = [u64; W]>> Claims<W> for ShortRows<'_, T> {
    #[inline(always)]
    fn hashes(&self) -> u32 {
        self.shape.hashes()
    }

    #[inline(always)]
    fn fetch(&self, _: usize, hash: KeyHash) {
        positions(hash, self.shape).for_each(|row| T::prefetch(self.rows, row));
    }

    #[inline(always)]
    fn and(&self, _: usize, hash: KeyHash, columns: &mut [u64; W]) {
        positions(hash, self.shape).for_each(|row| T::and(columns, &self.rows[row as usize]));
    }
}

/// Rows of several cache lines, each of which is a block.
struct LongRows<'a> {
    lines: &'a [[u64; LINE]],
    /// Lines of a row.
    stride: usize,
    shape: &'a Shape,
}

impl Claims<LINE> for LongRows<'_> {
    #[inline(always)]
    fn hashes(&self) -> u32 {
        self.shape.hashes()
    }

    #[inline(always)]
    fn fetch(&self, block: usize, hash: KeyHash) {
        for row in positions(hash, self.shape) {
            prefetch(self.lines, row as usize * self.stride + block);
        }
    }

    #[inline(always)]
    fn and(&self, block: usize, hash: KeyHash, columns: &mut [u64; LINE]) {
        for row in positions(hash, self.shape) {
            let line = &self.lines[row as usize * self.stride + block];
            columns.iter_mut().zip(line).for_each(|(claim, word)| *claim &= word);
        }
    }
}
