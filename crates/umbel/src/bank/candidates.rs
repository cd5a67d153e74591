//! Answers of a bank: which columns claim a key, as bitmaps and as ids.
//!
//! Both are buffers that the caller reuses: a lookup allocates nothing once they have grown large
//! enough.

use std::sync::Arc;

use super::ColumnId;

/// Which column each bit of an answer's bitmap stands for: 64 ids per word, and 64 more at the end
/// because [`emit`] may read past the last one.
pub(super) type Slots = Arc<Vec<ColumnId>>;

/// The columns that claim one key, as a bitmap.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    pub(super) words: Vec<u64>,
    pub(super) slots: Slots,
}

impl Candidates {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bitmap. Which column a bit stands for changes whenever the columns of the bank change.
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

    /// Appends the ids of the columns that claim the key, each once, in no particular order.
    pub fn extend_ids(&self, ids: &mut Vec<ColumnId>) {
        let end = emit(ids, ids.len(), &self.slots, &self.words);
        ids.truncate(end);
    }
}

/// The columns that claim each key of a batch, as ids.
#[derive(Debug, Clone, Default)]
pub struct BatchCandidates {
    /// The ids of all keys of the batch, then unused entries that [`emit`] wrote ahead or an
    /// earlier batch left behind. Clearing the buffer for every batch would cost more than the
    /// lookup.
    pub(super) ids: Vec<ColumnId>,
    /// Where the ids of each key end.
    pub(super) ends: Vec<usize>,
    /// Bitmaps of one part of the batch; used only if there are several groups.
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

    /// The columns that claim the key at `index` of the batch, each once, in no particular order.
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

/// Writes the ids of the bits that are set in a bitmap to `ids[end..]`, growing `ids` if needed.
/// Returns the end of what was written. `slots` has 64 ids for each word of the bitmap, and 64
/// more.
///
/// For each word two ids are always written, even if fewer bits are set, and long bitmaps are
/// scanned by a mask of the words that are not zero. Both do a little more work to avoid a branch
/// that is mispredicted half the time.
#[inline(always)]
pub(super) fn emit(
    ids: &mut Vec<ColumnId>,
    mut end: usize,
    slots: &[ColumnId],
    bitmap: &[u64],
) -> usize {
    let room = end + bitmap.len() * 64 + 2;
    if ids.len() < room {
        ids.resize(room.next_power_of_two(), ColumnId(0));
    }
    let ids = ids.as_mut_slice();
    if bitmap.len() <= 4 {
        for (index, word) in bitmap.iter().enumerate() {
            end = emit_word(ids, end, &slots[index * 64..], *word);
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
            end = emit_word(ids, end, &slots[(block * 64 + index) * 64..], words[index]);
        }
    }
    end
}

#[inline(always)]
fn emit_word(ids: &mut [ColumnId], end: usize, slots: &[ColumnId], word: u64) -> usize {
    let slots: &[ColumnId; 65] = slots.first_chunk().expect("64 ids for a word, and one more");
    let room: &mut [ColumnId; 2] = ids[end..].first_chunk_mut().expect("room was made for all");
    let second = word & word.wrapping_sub(1);
    room[0] = slots[word.trailing_zeros() as usize];
    room[1] = slots[second.trailing_zeros() as usize];
    let (mut rest, mut place) = (second & second.wrapping_sub(1), end + 2);
    while rest != 0 {
        ids[place] = slots[rest.trailing_zeros() as usize];
        place += 1;
        rest &= rest - 1;
    }
    end + word.count_ones() as usize
}
