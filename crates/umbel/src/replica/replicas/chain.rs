//! Chains of keys asked of all homes: how many leading keys each one claims.

use super::Replicas;
use crate::bank::{Depths, Rows};
use crate::design::chain::ChainSearch;
use crate::design::ladder::Ladder;
use crate::key_hash::KeyHash;
use crate::replica::Name;

impl<R: Rows> Replicas<R> {
    /// Shows the homes that claim at least one step of a chain, in no particular order: the
    /// home's number, its name, and how many leading keys it claims, in multiples of the step.
    /// Numbers are dense: the place of the home in the order of the names of all homes. They
    /// change when homes come and go. `found` is a buffer to be used again.
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

    /// Number of homes, each of which has one column.
    #[must_use]
    pub fn homes(&self) -> usize {
        self.read().homes.len()
    }

    /// Whether this is a set of chains, at one home or more: its filters claim one absent key in
    /// ten, so that lookups of single keys name wrong hosts nearly always.
    #[must_use]
    pub fn is_loose(&self) -> bool {
        self.read().bank.fewest_hashes().is_some_and(|hashes| hashes <= Ladder::CHAIN_HASHES_MAX)
    }
}
