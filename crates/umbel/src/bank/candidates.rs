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
        let end = self.emit(ids, ids.len());
        ids.truncate(end);
    }

    /// Writes the ids to `ids[end..]`, ascending; returns where they end.
    #[inline(always)]
    pub(super) fn emit(&self, ids: &mut Vec<ColumnId>, mut end: usize) -> usize {
        let mut words = self.words.as_slice();
        for (group, stride) in &self.groups {
            let (bitmap, rest) = words.split_at(*stride);
            end = emit(ids, end, ColumnId::new(*group, 0), bitmap);
            words = rest;
        }
        end
    }
}

/// The columns that claim each key of a batch, as ids.
#[derive(Debug, Clone, Default)]
pub struct BatchCandidates {
    /// What the keys asked for take, and beyond it what may have been written ahead or left
    /// behind: to fill it anew for every batch would cost more than to ask.
    pub(super) ids: Vec<ColumnId>,
    /// Where the ids of each key end.
    pub(super) ends: Vec<usize>,
}

impl BatchCandidates {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { ids: Vec::new(), ends: Vec::new() }
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

/// Writes the ids of the ones of a bitmap to `ids[end..]`, which is made long enough; returns
/// where they end.
///
/// Of each word the first two ids are written whether they exist or not, and in long rows words
/// without a candidate are passed over by a mask of the others: both trade a branch that is
/// mispredicted half the time for a little work.
#[inline(always)]
pub(super) fn emit(
    ids: &mut Vec<ColumnId>,
    mut end: usize,
    first: ColumnId,
    bitmap: &[u64],
) -> usize {
    let room = end + bitmap.len() * 64 + 2;
    if ids.len() < room {
        ids.resize(room.next_power_of_two(), first);
    }
    let ids = ids.as_mut_slice();
    if bitmap.len() <= 4 {
        for (index, word) in bitmap.iter().enumerate() {
            end = emit_word(ids, end, first.plus(index * 64), *word);
        }
        return end;
    }
    for (block, words) in bitmap.chunks(64).enumerate() {
        let mut some = 0u64;
        for (index, word) in words.iter().enumerate() {
            some |= u64::from(*word != 0) << index;
        }
        while some != 0 {
            let index = some.trailing_zeros() as usize;
            some &= some - 1;
            end = emit_word(ids, end, first.plus((block * 64 + index) * 64), words[index]);
        }
    }
    end
}

#[inline(always)]
fn emit_word(ids: &mut [ColumnId], end: usize, first: ColumnId, word: u64) -> usize {
    let room: &mut [ColumnId; 2] = ids[end..].first_chunk_mut().expect("room was made for all");
    let second = word & word.wrapping_sub(1);
    room[0] = first.plus(word.trailing_zeros() as usize);
    room[1] = first.plus(second.trailing_zeros() as usize);
    let (mut rest, mut place) = (second & second.wrapping_sub(1), end + 2);
    while rest != 0 {
        ids[place] = first.plus(rest.trailing_zeros() as usize);
        place += 1;
        rest &= rest - 1;
    }
    end + word.count_ones() as usize
}
