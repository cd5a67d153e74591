//! Lookups in a bank: for one key, or for many keys whose rows are prefetched.
//!
//! A lookup waits for memory most of the time. A lookup of many keys prefetches the rows of keys
//! that follow. It first computes the bitmaps of a batch and converts them to ids in a second pass,
//! because emitting ids in between would cost more than the AND itself. All of it is compiled for
//! newer processors as well (`processor`).

use std::ops::Range;
use std::sync::Arc;

use super::candidates::emit;
use super::group::{Group, Take};
use super::{Bank, BankError, BatchCandidates, Candidates, Column, ColumnId, Rows};
use crate::filter::{claims, claims_of};
use crate::key_hash::{KeyHash, Walk};
use crate::processor::{self, Work};

/// Keys per batch if there are several groups: every group is asked for the whole batch before the
/// answers are combined. As many as a filter is asked for at once.
const BATCH: usize = 128;
/// Columns of at most this many bits stay in the second-level cache during a batch.
const IN_CACHE: u64 = 1 << 20;

impl<R: Rows> Bank<R> {
    /// Which columns claim a key, as a bitmap in the caller's buffer.
    ///
    /// ```
    /// use umbel::bank::{Bank, Candidates};
    /// use umbel::{KeyHasher, StandardFilter};
    ///
    /// let mut filter = StandardFilter::for_target(100, 0.001)?;
    /// filter.insert("apple");
    /// let mut bank: Bank = Bank::new(KeyHasher::default());
    /// let column = bank.add(filter.scheme(), filter.bits())?;
    ///
    /// let (mut candidates, mut ids) = (Candidates::new(), Vec::new());
    /// bank.who(bank.hash(b"apple"), &mut candidates);
    /// candidates.extend_ids(&mut ids);
    /// assert_eq!(ids, [column]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn who(&self, hash: KeyHash, candidates: &mut Candidates) {
        self.lay_out(candidates);
        let mut bitmap = candidates.words.as_mut_slice();
        for group in &self.groups {
            let (here, rest) = bitmap.split_at_mut(group.words());
            processor::run(group.avx2(), One { group, hash, bitmap: here });
            bitmap = rest;
        }
        self.ask_loose(hash, bitmap);
    }

    /// Which columns claim each of many keys, as bitmaps: `each` receives the index of the key and
    /// its bitmap. Rows are prefetched a few keys ahead.
    pub fn who_each(
        &self,
        hashes: &[KeyHash],
        candidates: &mut Candidates,
        mut each: impl FnMut(usize, &Candidates),
    ) {
        self.lay_out(candidates);
        if let Some(group) = self.only_group() {
            let take = Bitmaps { candidates, index: 0, each };
            group.ask_for_first(hashes);
            processor::run(group.avx2(), Many { group, hashes, part: 0..hashes.len(), take });
            return;
        }
        let (mut bitmaps, words) = (Vec::new(), candidates.words.len());
        self.groups.iter().for_each(|group| group.ask_for_first(hashes));
        for part in parts(hashes.len()) {
            self.ask_part(hashes, part.clone(), words, &mut bitmaps);
            for (index, key) in part.enumerate() {
                candidates.words.copy_from_slice(&bitmaps[index * words..][..words]);
                each(key, candidates);
            }
        }
    }

    /// Which columns claim each of many keys, as ids in the caller's buffer.
    pub fn who_batch(&self, hashes: &[KeyHash], candidates: &mut BatchCandidates) {
        let BatchCandidates { ids, ends, bitmaps } = candidates;
        ends.clear();
        if let Some(group) = self.only_group() {
            let take = Ids { slots: &self.slots, ids, end: 0, ends };
            group.ask_for_first(hashes);
            processor::run(group.avx2(), Many { group, hashes, part: 0..hashes.len(), take });
            return;
        }
        let (mut end, words) = (0, self.words());
        self.groups.iter().for_each(|group| group.ask_for_first(hashes));
        for part in parts(hashes.len()) {
            self.ask_part(hashes, part.clone(), words, bitmaps);
            for index in 0..part.len() {
                end = emit(ids, end, &self.slots, &bitmaps[index * words..][..words]);
                ends.push(end);
            }
        }
    }

    /// The only group, if it holds all columns.
    fn only_group(&self) -> Option<&Group<R>> {
        match &*self.groups {
            [group] if self.loose.is_empty() => Some(group),
            _ => None,
        }
    }

    /// Words of an answer: those of every group, then one word per 64 columns asked alone.
    pub(super) fn words(&self) -> usize {
        let groups: usize = self.groups.iter().map(Group::words).sum();
        groups + self.loose.len().div_ceil(64)
    }

    /// Asks all groups for some of these keys: `bitmaps` has `words` words for each.
    fn ask_part(
        &self,
        hashes: &[KeyHash],
        part: Range<usize>,
        words: usize,
        bitmaps: &mut Vec<u64>,
    ) {
        bitmaps.clear();
        bitmaps.resize(part.len() * words, 0);
        let mut offset = 0;
        for group in &self.groups {
            let take = Put { bitmaps, place: offset, words };
            processor::run(group.avx2(), Many { group, hashes, part: part.clone(), take });
            offset += group.words();
        }
        let hashes = &hashes[part];
        for (index, column) in self.loose().enumerate() {
            let bitmaps =
                bitmaps.chunks_exact_mut(words).map(|bitmap| &mut bitmap[offset + index / 64]);
            ask_column(column, hashes, bitmaps, index % 64);
        }
    }

    /// Asks the columns without rows one by one.
    #[inline]
    fn ask_loose(&self, hash: KeyHash, bitmap: &mut [u64]) {
        bitmap.fill(0);
        for (index, column) in self.loose().enumerate() {
            let claimed = claims(&column.bits, walk(column, hash), column.shape.hashes());
            bitmap[index / 64] |= u64::from(claimed) << (index % 64);
        }
    }

    /// Whether one column claims each of these keys.
    ///
    /// # Errors
    /// If the column is not there.
    pub(crate) fn claims(
        &self,
        column: ColumnId,
        hashes: &[KeyHash],
    ) -> Result<Vec<bool>, BankError> {
        let column = self.column(column)?;
        let claims = |hash| claims(&column.bits, walk(column, hash), column.shape.hashes());
        Ok(hashes.iter().copied().map(claims).collect())
    }

    fn loose(&self) -> impl Iterator<Item = &Column> {
        self.loose.iter().filter_map(|id| self.columns[id.index()].as_ref())
    }

    /// Fits a buffer to the columns as they are now; usually it fits already.
    #[inline]
    fn lay_out(&self, candidates: &mut Candidates) {
        candidates.words.resize(self.words(), 0);
        if !Arc::ptr_eq(&candidates.slots, &self.slots) {
            candidates.slots = self.slots.clone();
        }
    }
}

/// Asks one column for a batch of keys. Sets one bit of a word for each key that it claims.
fn ask_column<'a>(
    column: &Column,
    hashes: &[KeyHash],
    words: impl Iterator<Item = &'a mut u64>,
    bit: usize,
) {
    let (bits, shape) = (&column.bits, &column.shape);
    if shape.bits() <= IN_CACHE {
        // After the first few keys the whole column is in the cache: no prefetch is needed.
        for (hash, word) in hashes.iter().zip(words) {
            let claimed = claims(bits, walk(column, *hash), shape.hashes());
            *word |= u64::from(claimed) << bit;
        }
        return;
    }
    let digests: Vec<_> = hashes.iter().map(|hash| hash.digest(shape.digest_bits())).collect();
    let mut answers = Vec::with_capacity(digests.len());
    claims_of(bits, shape, &digests, &mut answers);
    for (claimed, word) in answers.iter().zip(words) {
        *word |= u64::from(*claimed) << bit;
    }
}

#[inline]
const fn walk(column: &Column, hash: KeyHash) -> Walk {
    Walk::new(hash.digest(column.shape.digest_bits()), &column.shape)
}

/// One key asked of a group.
struct One<'a, R> {
    group: &'a Group<R>,
    hash: KeyHash,
    bitmap: &'a mut [u64],
}

impl<R: Rows> Work for One<'_, R> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        self.group.who(self.hash, self.bitmap);
    }
}

/// Divides this many keys into batches.
fn parts(keys: usize) -> impl Iterator<Item = Range<usize>> {
    (0..keys).step_by(BATCH).map(move |start| start..keys.min(start + BATCH))
}

/// Some of many keys asked of a group.
struct Many<'a, R, T> {
    group: &'a Group<R>,
    hashes: &'a [KeyHash],
    part: Range<usize>,
    take: T,
}

impl<R: Rows, T: Take> Work for Many<'_, R, T> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        self.group.who_many(self.hashes, self.part, self.take);
    }
}

/// Passes every bitmap to a callback.
struct Bitmaps<'a, F> {
    candidates: &'a mut Candidates,
    index: usize,
    each: F,
}

impl<F: FnMut(usize, &Candidates)> Take for Bitmaps<'_, F> {
    #[inline(always)]
    fn take(&mut self, bitmap: &[u64]) {
        self.candidates.words.copy_from_slice(bitmap);
        (self.each)(self.index, self.candidates);
        self.index += 1;
    }
}

/// Copies bitmaps into a buffer that all groups share, one answer of `words` words per key.
struct Put<'a> {
    bitmaps: &'a mut [u64],
    place: usize,
    words: usize,
}

impl Take for Put<'_> {
    #[inline(always)]
    fn take(&mut self, bitmap: &[u64]) {
        self.bitmaps[self.place..][..bitmap.len()].copy_from_slice(bitmap);
        self.place += self.words;
    }
}

/// Converts every bitmap to ids and collects them.
struct Ids<'a> {
    slots: &'a [ColumnId],
    ids: &'a mut Vec<ColumnId>,
    end: usize,
    ends: &'a mut Vec<usize>,
}

impl Take for Ids<'_> {
    #[inline(always)]
    fn take(&mut self, bitmap: &[u64]) {
        self.end = emit(self.ids, self.end, self.slots, bitmap);
        self.ends.push(self.end);
    }
}
