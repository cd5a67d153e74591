//! Columns without rows, asked together.
//!
//! A key walks through all columns of as many hashes and as long digests alike, whatever their
//! lengths: its walk is made once for all of them. Pairs of a key and a column are asked in rounds,
//! a bit of every pair that is still in question; in a filter that is half full each round settles
//! half of them. Bits are requested some pairs ahead, and no branch depends on a bit.

use super::{Bank, ColumnId, Rows};
use crate::key_hash::{KeyHash, Walk};
use crate::params::{DigestBits, Shape};
use crate::prefetch::prefetch;
use crate::processor::{self, Work};

/// Pairs ahead of which a bit is requested.
const AHEAD: usize = 32;

impl<R: Rows> Bank<R> {
    /// Asks the columns without rows for up to `K` keys, `C` columns at a time: `claimed` is given
    /// the place of a key and that of a column that claims it.
    #[inline]
    pub(super) fn ask_loose<const K: usize, const C: usize>(
        &self,
        hashes: &[KeyHash],
        mut claimed: impl FnMut(usize, usize),
    ) {
        let mut first = 0;
        for alike in self.loose.chunk_by(|one, next| self.walk(*one) == self.walk(*next)) {
            for ids in alike.chunks(C) {
                let mut columns = [(&[][..], 0); C];
                let mut shape = None;
                let there = ids.iter().flat_map(|id| &self.columns[id.index()]);
                for (place, column) in columns.iter_mut().zip(there) {
                    *place = (column.bits.words(), column.bits.len());
                    shape = Some(&column.shape);
                }
                let Some(shape) = shape else { continue };
                let columns = &columns[..ids.len()];
                let claimed = |key, column| claimed(key, first + column);
                processor::run(self.avx2, Pairs::<K, C, _> { shape, columns, hashes, claimed });
                first += ids.len();
            }
        }
    }

    /// What the walk of a key through a column depends on, except for the column's length.
    fn walk(&self, column: ColumnId) -> Option<(u32, DigestBits)> {
        let shape = &self.columns[column.index()].as_ref()?.shape;
        Some((shape.hashes(), shape.digest_bits()))
    }
}

/// Keys to be asked of columns.
struct Pairs<'a, const K: usize, const C: usize, F> {
    /// That of any of the columns: they differ in length alone.
    shape: &'a Shape,
    /// Words and length of each.
    columns: &'a [(&'a [u64], u64)],
    hashes: &'a [KeyHash],
    claimed: F,
}

/// A key and a column, by their places.
type Pair = (u8, u8);

impl<const K: usize, const C: usize, F: FnMut(usize, usize)> Work for Pairs<'_, K, C, F> {
    type Done = ();

    #[inline(always)]
    fn done(mut self) {
        let mut walks = [Walk::IDLE; K];
        let walks = &mut walks[..self.hashes.len()];
        for (walk, hash) in walks.iter_mut().zip(self.hashes) {
            *walk = Walk::new(hash.digest(self.shape.digest_bits()), self.shape);
        }
        let mut open = [[(0, 0); C]; K];
        let open = open.as_flattened_mut();
        let mut left = self.first_round(walks, open);
        for _ in 1..self.shape.hashes() {
            if left == 0 {
                return;
            }
            walks.iter_mut().for_each(Walk::advance);
            left = self.round(walks, &mut open[..left]);
        }
        for (key, column) in &open[..left] {
            (self.claimed)((*key).into(), (*column).into());
        }
    }
}

impl<const K: usize, const C: usize, F> Pairs<'_, K, C, F> {
    /// Asks for the first bit of all pairs; returns how many are left, which `open` then names.
    #[inline(always)]
    fn first_round(&self, walks: &[Walk], open: &mut [Pair]) -> usize {
        let (mut left, ahead) = (0, AHEAD.min(walks.len()));
        walks[..ahead].iter().for_each(|walk| request(self.columns[0], walk));
        for (index, column) in self.columns.iter().enumerate() {
            let next = self
                .columns
                .get(index + 1)
                .into_iter()
                .flat_map(|next| walks[..ahead].iter().map(move |walk| (*next, walk)));
            let later = walks[ahead..].iter().map(|walk| (*column, walk)).chain(next);
            let mut later = later.fuse();
            for (key, walk) in (0..).zip(walks) {
                if let Some((column, walk)) = later.next() {
                    request(column, walk);
                }
                // Written always, counted only on a hit: no branch to mispredict.
                open[left] = (key, index as u8);
                left += bit(*column, walk);
            }
        }
        left
    }

    /// Asks for the next bit of pairs; returns how many are left, which are moved to the front.
    #[inline(always)]
    fn round(&self, walks: &[Walk], open: &mut [Pair]) -> usize {
        let place =
            |(key, column): Pair| (self.columns[usize::from(column)], &walks[usize::from(key)]);
        for pair in open.iter().take(AHEAD) {
            let (column, walk) = place(*pair);
            request(column, walk);
        }
        let mut left = 0;
        for index in 0..open.len() {
            if let Some(later) = open.get(index + AHEAD) {
                let (column, walk) = place(*later);
                request(column, walk);
            }
            let (column, walk) = place(open[index]);
            open[left] = open[index];
            left += bit(column, walk);
        }
        left
    }
}

/// Requests the bit of a column that a walk has come to.
#[inline(always)]
fn request((words, bits): (&[u64], u64), walk: &Walk) {
    prefetch(words, (walk.position_in(bits) >> 6) as usize);
}

/// The bit of a column that a walk has come to.
#[inline(always)]
fn bit((words, bits): (&[u64], u64), walk: &Walk) -> usize {
    let position = walk.position_in(bits);
    (words[(position >> 6) as usize] >> (position & 63) & 1) as usize
}
