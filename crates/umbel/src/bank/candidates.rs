//! Answers of a bank: which columns claim a key, as bitmaps and as ids.
//!
//! Both are buffers of the caller, used again and again: asking allocates nothing once
//! they have grown to their size.

use super::ColumnId;

/// The columns that claim one key, as a bitmap.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    pub(super) words: Vec<u64>,
    /// For each group, its number and its words a row.
    pub(super) groups: Vec<(u32, usize)>,
}

impl Candidates {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), groups: Vec::new() }
    }

    /// The bitmaps of all groups, one after the other.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether no column claims the key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many columns claim the key.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Appends the ids of the columns that claim the key, ascending.
    pub fn extend_ids(&self, ids: &mut Vec<ColumnId>) {
        let mut emitter = Emitter::new(ids);
        let mut start = 0;
        for (group, stride) in &self.groups {
            emitter.emit(ColumnId::new(*group, 0), &self.words[start..start + stride]);
            start += stride;
        }
        emitter.finish();
    }
}

/// The columns that claim each key of a batch, as ids.
#[derive(Debug, Clone, Default)]
pub struct BatchCandidates {
    pub(super) ids: Vec<ColumnId>,
    pub(super) ends: Vec<usize>,
    /// Bitmaps of the keys under way.
    pub(super) bitmaps: Vec<u64>,
    /// Rows of the keys that come next.
    pub(super) rows: Vec<u64>,
}

impl BatchCandidates {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { ids: Vec::new(), ends: Vec::new(), bitmaps: Vec::new(), rows: Vec::new() }
    }

    /// Number of keys asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no key was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The columns that claim the key at `index` of the batch.
    ///
    /// # Panics
    /// If the batch had no such key.
    #[must_use]
    pub fn of(&self, index: usize) -> &[ColumnId] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.ids[start..self.ends[index]]
    }

    /// The answers, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = &[ColumnId]> {
        (0..self.len()).map(|index| self.of(index))
    }
}

/// A list of ids that is written ahead of its end: room is made once for many.
#[derive(Debug)]
pub(super) struct Emitter<'a> {
    ids: &'a mut Vec<ColumnId>,
    end: usize,
}

impl<'a> Emitter<'a> {
    /// Appends to `ids`, which [`Self::finish`] makes true again.
    pub(super) const fn new(ids: &'a mut Vec<ColumnId>) -> Self {
        let end = ids.len();
        Self { ids, end }
    }

    /// Appends the ids of the ones of a bitmap; returns the new length.
    ///
    /// Of each word the first two ids are written whether they exist or not, and in long
    /// rows words without a candidate are passed over by a mask of the others: both trade a
    /// branch that is mispredicted half the time for a little work.
    #[inline]
    pub(super) fn emit(&mut self, first: ColumnId, bitmap: &[u64]) -> usize {
        let room = self.end + bitmap.len() * 64 + 2;
        if self.ids.len() < room {
            self.ids.resize(room.next_power_of_two(), first);
        }
        if bitmap.len() <= 4 {
            for (index, word) in bitmap.iter().enumerate() {
                self.emit_word(first.plus(index * 64), *word);
            }
        } else {
            for (block, words) in bitmap.chunks(64).enumerate() {
                self.emit_words(first.plus(block * 64 * 64), words);
            }
        }
        self.end
    }

    /// Up to 64 words.
    #[inline]
    fn emit_words(&mut self, first: ColumnId, words: &[u64]) {
        let mut some = 0u64;
        for (index, word) in words.iter().enumerate() {
            some |= u64::from(*word != 0) << index;
        }
        while some != 0 {
            let index = some.trailing_zeros() as usize;
            some &= some - 1;
            self.emit_word(first.plus(index * 64), words[index]);
        }
    }

    /// Counting ones is slow on the oldest processors that we run on: what is left after
    /// taking one, and after taking two, says as much.
    #[inline]
    fn emit_word(&mut self, first: ColumnId, word: u64) {
        let second = word & word.wrapping_sub(1);
        let mut rest = second & second.wrapping_sub(1);
        let [one, two] = self.room();
        *one = first.plus(word.trailing_zeros() as usize);
        *two = first.plus(second.trailing_zeros() as usize);
        self.end += usize::from(word != 0) + usize::from(second != 0);
        while rest != 0 {
            let [next, _] = self.room();
            *next = first.plus(rest.trailing_zeros() as usize);
            self.end += 1;
            rest &= rest - 1;
        }
    }

    /// The next two places.
    #[inline]
    fn room(&mut self) -> &mut [ColumnId; 2] {
        self.ids[self.end..].first_chunk_mut().expect("room was made for all")
    }

    /// Cuts off what was written ahead.
    pub(super) fn finish(self) {
        self.ids.truncate(self.end);
    }
}
