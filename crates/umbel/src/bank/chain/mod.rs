//! Chains of keys: how many leading keys of a chain each column claims.
//!
//! In a chain every key stands for itself and all keys before it. An example is the hash of a block
//! of text, computed over the text from its start to the end of the block. A cache that holds a key
//! of a chain usually holds all keys before it. [`Bank::chain`] searches for the depth up to which
//! each column claims a chain, by halving ([`search`]): it reads the rows of some dozens of keys
//! where a walk would read those of a thousand.
//!
//! Depths are rounded down to a step. Always true for a column whose filter holds exactly the first
//! `d` keys of a chain:
//! * the depth is at least `d` rounded down to the step;
//! * it is larger than `d` only where the filter wrongly claims as many keys in a row as lie
//!   between `d` and the depth, or a whole window of them (`model::chain` says how rare that is).
//!
//! If keys in the middle are missing, the depth is at least the first missing key rounded down,
//! and the column claims the whole window of keys before the depth. A hole may be overlooked.
//! [`ChainSearch::walk`] asks for all keys from the first one on, and sees every hole that the
//! filter shows.
//!
//! Not here: window and step for a promise (`design::chain`); whose column it is (`replica`).

mod search;
#[cfg(test)]
mod tests;

pub(super) use search::{Memory, Search};

use super::candidates::Slots;
use super::claims::Alone;
use super::{Bank, ColumnId, Rows};
use crate::design::chain::ChainSearch;
use crate::key_hash::KeyHash;

/// How many leading keys of a chain each column claims: a buffer to be reused. It remembers at
/// which depth most columns ended, and the next search with the same buffer tries that depth first.
#[derive(Debug, Clone, Default)]
pub struct Depths {
    /// By place in the bank's rows, as in the bitmap of a lookup.
    depths: Vec<u32>,
    slots: Slots,
    memory: Memory,
}

impl Depths {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The columns that claim at least one step of the chain, each once, with their depths in
    /// keys. In no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (ColumnId, u32)> {
        let depths = self.depths.iter().zip(&*self.slots);
        depths.filter(|(depth, _)| **depth > 0).map(|(depth, column)| (*column, *depth))
    }

    /// The largest depth; zero if no column claims a step of the chain.
    #[must_use]
    pub fn deepest(&self) -> u32 {
        self.depths.iter().copied().max().unwrap_or(0)
    }
}

impl<R: Rows> Bank<R> {
    /// How many leading keys of a chain each column claims. Keys of the chain beyond the first
    /// `u32::MAX` are ignored.
    ///
    /// ```
    /// use umbel::bank::{Bank, Depths};
    /// use umbel::design::chain::ChainSearch;
    /// use umbel::{KeyHasher, StandardFilter};
    ///
    /// let mut bank: Bank = Bank::new(KeyHasher::default());
    /// let chain: Vec<_> = (0..100u64).map(|block| bank.hash(&block.to_le_bytes())).collect();
    ///
    /// let mut filter = StandardFilter::for_target(1000, 0.1)?;
    /// (0..42u64).for_each(|block| _ = filter.insert(block.to_le_bytes()));
    /// let column = bank.add(filter.scheme(), filter.bits())?;
    ///
    /// let mut depths = Depths::new();
    /// bank.chain(&chain, ChainSearch::new(12, 8), &mut depths);
    /// assert_eq!(depths.iter().collect::<Vec<_>>(), [(column, 40)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chain(&self, chain: &[KeyHash], how: ChainSearch, depths: &mut Depths) {
        let chain = &chain[..chain.len().min(u32::MAX as usize)];
        let Depths { depths, slots, memory } = depths;
        if !std::ptr::eq(&**slots, &*self.slots) {
            *slots = self.slots.clone();
        }
        depths.clear();
        depths.resize(self.words() * 64, 0);
        memory.begin();
        let mut rest = depths.as_mut_slice();
        for group in &self.groups {
            let (here, others) = rest.split_at_mut(group.words() * 64);
            group.chain(chain, how, memory, here);
            rest = others;
        }
        if !self.loose.is_empty() {
            let alone = Alone(
                self.loose.iter().filter_map(|id| self.columns[id.index()].as_ref()).collect(),
            );
            let live = |word: usize| u64::MAX >> 64usize.saturating_sub(alone.0.len() - word * 64);
            let live: Vec<u64> = (0..alone.0.len().div_ceil(64)).map(live).collect();
            Search::run(&alone, chain, how, &live, memory, rest);
        }
        memory.end();
    }

    /// The lowest number of hashes of any column; `None` if the bank has no columns.
    #[must_use]
    pub fn fewest_hashes(&self) -> Option<u32> {
        self.columns.iter().flatten().map(|column| column.shape.hashes()).min()
    }
}
