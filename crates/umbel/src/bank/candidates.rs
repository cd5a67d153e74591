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
        let mut start = 0;
        for (group, stride) in &self.groups {
            emit(ids, ColumnId::new(*group, 0), &self.words[start..start + stride]);
            start += stride;
        }
    }
}

/// The columns that claim each key of a batch, as ids.
#[derive(Debug, Clone, Default)]
pub struct BatchCandidates {
    pub(super) ids: Vec<ColumnId>,
    pub(super) ends: Vec<usize>,
    /// Bitmaps of the keys under way.
    pub(super) bitmaps: Vec<u64>,
}

impl BatchCandidates {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { ids: Vec::new(), ends: Vec::new(), bitmaps: Vec::new() }
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

/// Appends the ids of the ones of a bitmap.
///
/// Words without a candidate are passed over by a mask of the others; of each other word
/// the first two ids are written whether they exist or not. Both trade a branch that is
/// mispredicted half the time for a little work.
#[inline]
pub(super) fn emit(ids: &mut Vec<ColumnId>, first: ColumnId, bitmap: &[u64]) {
    for (block, words) in bitmap.chunks(64).enumerate() {
        let mut some = 0u64;
        for (index, word) in words.iter().enumerate() {
            some |= u64::from(*word != 0) << index;
        }
        let first = first.plus(block * 64 * 64);
        while some != 0 {
            let index = some.trailing_zeros() as usize;
            some &= some - 1;
            emit_word(ids, first.plus(index * 64), words[index]);
        }
    }
}

#[inline]
fn emit_word(ids: &mut Vec<ColumnId>, first: ColumnId, word: u64) {
    let rest = word & (word - 1);
    let pair = [word, rest].map(|word| first.plus(word.trailing_zeros() as usize));
    let end = ids.len() + word.count_ones() as usize;
    ids.extend_from_slice(&pair);
    let mut rest = rest & rest.wrapping_sub(1);
    while rest != 0 {
        ids.push(first.plus(rest.trailing_zeros() as usize));
        rest &= rest - 1;
    }
    ids.truncate(end);
}
