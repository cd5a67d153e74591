//! Chain lookups in all homes: how many leading keys each one claims.

use super::Replicas;
use crate::bank::{Depths, Rows};
use crate::design::chain::ChainSearch;
use crate::design::ladder::Ladder;
use crate::key_hash::KeyHash;
use crate::replica::Name;

/// The deepest homes of a chain: a buffer to be reused.
#[derive(Debug, Clone, Default)]
pub struct Deepest {
    depths: Depths,
    /// One word per home: the inverted depth in the high half, the home's number in the low half.
    /// The order of an answer is that of ascending words.
    ranked: Vec<u64>,
}

impl<R: Rows> Replicas<R> {
    /// Calls `each` for every home that claims at least one step of a chain, in no particular
    /// order, with the home's number, its name, and how many leading keys it claims, in multiples
    /// of the step. The number is the index of the home in the list of all homes sorted by name.
    /// Numbers change when homes are added or removed. `found` is a buffer to be reused.
    ///
    /// [`Bank::chain`](crate::bank::Bank::chain) says what a depth promises.
    pub fn chain(
        &self,
        chain: &[KeyHash],
        how: ChainSearch,
        found: &mut Depths,
        mut each: impl FnMut(u32, &Name, u32),
    ) {
        let state = self.read();
        state.bank.chain(chain, how, found);
        for (column, depth) in found.iter() {
            let number = state.ranks[column.get() as usize];
            each(number, &state.homes[number as usize].0, depth);
        }
    }

    /// As [`Replicas::chain`], but only for the `limit` deepest homes: the deepest first, homes of
    /// equal depth sorted by name. Names of other homes are not read.
    pub fn deepest(
        &self,
        chain: &[KeyHash],
        how: ChainSearch,
        limit: usize,
        found: &mut Deepest,
        mut each: impl FnMut(&Name, u32),
    ) {
        let Deepest { depths, ranked } = found;
        let state = self.read();
        state.bank.chain(chain, how, depths);
        ranked.clear();
        ranked.extend(depths.iter().map(|(column, depth)| {
            u64::from(!depth) << 32 | u64::from(state.ranks[column.get() as usize])
        }));
        if limit < ranked.len() {
            ranked.select_nth_unstable(limit);
            ranked.truncate(limit);
        }
        ranked.sort_unstable();
        for word in ranked {
            let (depth, number) = (!((*word >> 32) as u32), *word as u32);
            each(&state.homes[number as usize].0, depth);
        }
    }

    /// Number of homes, each of which has one column.
    #[must_use]
    pub fn homes(&self) -> usize {
        self.read().homes.len()
    }

    /// Whether this is a set of chains, at one home or more: its filters claim one absent key in
    /// ten, so that lookups of single keys nearly always return wrong hosts.
    #[must_use]
    pub fn is_loose(&self) -> bool {
        self.read().bank.fewest_hashes().is_some_and(|hashes| hashes <= Ladder::CHAIN_HASHES_MAX)
    }
}
