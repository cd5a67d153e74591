//! Asking a bank: for one key, or for many with their rows asked for ahead.
//!
//! A lookup waits for memory most of the time. Of many keys, rows are asked for a few keys
//! ahead; what comes of them is taken in a second pass over a batch of bitmaps, because ids
//! emitted at once cost more than the AND itself. All of it is compiled for newer processors as
//! well (`processor`).

use super::candidates::emit;
use super::group::{Group, Take};
use super::{Bank, BatchCandidates, Candidates, ColumnId, Rows};
use crate::key_hash::KeyHash;
use crate::processor::{self, Work};

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
        for group in self.groups.iter().flatten() {
            let (here, rest) = bitmap.split_at_mut(group.stride());
            processor::run(group.avx2(), One { group, hash, bitmap: here });
            bitmap = rest;
        }
    }

    /// Which columns claim each of many keys, as bitmaps: `each` is given the place of the
    /// key and its bitmap. Rows are asked for a few keys ahead.
    pub fn who_each(
        &self,
        hashes: &[KeyHash],
        candidates: &mut Candidates,
        mut each: impl FnMut(usize, &Candidates),
    ) {
        self.lay_out(candidates);
        if let Some((_, group)) = self.only_group() {
            let take = Bitmaps { candidates, index: 0, each };
            processor::run(group.avx2(), Many { group, hashes, take });
            return;
        }
        for (index, hash) in hashes.iter().enumerate() {
            for group in self.groups.iter().flatten() {
                hashes
                    .get(index + group.ahead())
                    .into_iter()
                    .for_each(|hash| group.prefetch(*hash));
            }
            self.who(*hash, candidates);
            each(index, candidates);
        }
    }

    /// Which columns claim each of many keys, as ids in the caller's buffer.
    pub fn who_batch(&self, hashes: &[KeyHash], candidates: &mut BatchCandidates) {
        let BatchCandidates { ids, ends } = candidates;
        ends.clear();
        if let Some((first, group)) = self.only_group() {
            let take = Ids { first, ids, end: 0, ends };
            processor::run(group.avx2(), Many { group, hashes, take });
            return;
        }
        let mut end = 0;
        self.who_each(hashes, &mut Candidates::new(), |_, found| {
            end = found.emit(ids, end);
            ends.push(end);
        });
    }

    /// The one group, if there is no other, and the id of its first column.
    fn only_group(&self) -> Option<(ColumnId, &Group<R>)> {
        let mut groups = (0..)
            .zip(&self.groups)
            .filter_map(|(number, group)| Some((ColumnId::new(number, 0), group.as_ref()?)));
        groups.next().filter(|_| groups.next().is_none())
    }

    /// Fits a buffer to the groups as they are now; usually it fits already.
    #[inline]
    fn lay_out(&self, candidates: &mut Candidates) {
        let groups = || {
            let numbered = self.groups.iter().zip(0u32..);
            numbered.filter_map(|(group, number)| Some((number, group.as_ref()?.stride())))
        };
        if !groups().eq(candidates.groups.iter().copied()) {
            candidates.groups.clear();
            candidates.groups.extend(groups());
            candidates.words.resize(groups().map(|(_, stride)| stride).sum(), 0);
        }
    }
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

/// Many keys asked of a group.
struct Many<'a, R, T> {
    group: &'a Group<R>,
    hashes: &'a [KeyHash],
    take: T,
}

impl<R: Rows, T: Take> Work for Many<'_, R, T> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        self.group.who_many(self.hashes, self.take);
    }
}

/// Hands bitmaps on.
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

/// Gathers ids.
struct Ids<'a> {
    first: ColumnId,
    ids: &'a mut Vec<ColumnId>,
    end: usize,
    ends: &'a mut Vec<usize>,
}

impl Take for Ids<'_> {
    #[inline(always)]
    fn take(&mut self, bitmap: &[u64]) {
        self.end = emit(self.ids, self.end, self.first, bitmap);
        self.ends.push(self.end);
    }
}
