//! The replicas of one set at a host. Many threads look up which homes may hold a key while updates
//! arrive.
//!
//! There is one writer (the engine) and any number of readers. The writer holds the lock for a
//! short part of a change at a time, never for a whole update, so that no lookup waits long. The
//! lock is sharded: a reader takes one shard and a writer takes all, so that readers on different
//! cores do not write to the same cache line.
//!
//! Always true: a key that a home's image claimed before an update and claims after it is never
//! denied in between. Bits are set before bits are cleared, and a new column replaces the old one
//! atomically. A home has one column.

mod chain;

pub use chain::Deepest;

use super::Name;
use crate::bank::{Bank, BankError, BatchCandidates, ColumnId, HeapRows, Rows};
use crate::bits::BitVector;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::scheme::Scheme;
use crate::sync::{self, PoisonError, ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};

/// The replicas of one set, of all homes but this host.
#[derive(Debug)]
pub struct Replicas<R: Rows = HeapRows> {
    state: ShardedLock<State<R>>,
}

#[derive(Debug)]
struct State<R: Rows> {
    bank: Bank<R>,
    /// The homes in the order of their names, with their columns.
    homes: Vec<(Name, ColumnId)>,
    /// Per column, the index of its home in `homes`.
    ranks: Vec<u32>,
}

/// The most bits of a column that are flipped while holding the lock once.
const FLIPS: usize = sync::size(4096, 8);

impl<R: Rows> Replicas<R> {
    pub(crate) fn new(hasher: KeyHasher) -> Self {
        let state = State { bank: Bank::new(hasher), homes: Vec::new(), ranks: Vec::new() };
        Self { state: ShardedLock::new(state) }
    }

    /// Calls `each` for every key in turn, with the hosts that may hold it, sorted by name. `found`
    /// is a buffer to be reused.
    pub fn who(
        &self,
        hashes: &[KeyHash],
        found: &mut BatchCandidates,
        mut each: impl FnMut(&[&Name]),
    ) {
        let state = self.read();
        state.bank.who_batch(hashes, found);
        let (mut ranks, mut hosts): (Vec<u32>, Vec<&Name>) = (Vec::new(), Vec::new());
        for columns in found.iter() {
            ranks.clear();
            ranks.extend(columns.iter().map(|column| state.ranks[column.get() as usize]));
            ranks.sort_unstable();
            hosts.clear();
            hosts.extend(ranks.iter().map(|rank| &state.homes[*rank as usize].0));
            each(&hosts);
        }
    }

    /// Whether one home's column claims each of these keys; `None` if the home has no column here.
    #[must_use]
    pub fn claims(&self, home: &Name, hashes: &[KeyHash]) -> Option<Vec<bool>> {
        let state = self.read();
        let rank = state.homes.binary_search_by(|(other, _)| other.cmp(home)).ok()?;
        state.bank.claims(state.homes[rank].1, hashes).ok()
    }

    /// Bytes that columns and rows take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.read().bank.memory_bytes()
    }

    /// Groups of columns that share rows.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.read().bank.groups()
    }

    // ---- the engine's side

    /// Replaces the bits of a home's column, perhaps by ones of another shape, or adds a column for
    /// a new home. The replacement is atomic for lookups.
    pub(crate) fn install(
        &self,
        home: &Name,
        scheme: &Scheme,
        bits: BitVector,
    ) -> Result<ColumnId, BankError> {
        let mut state = self.write();
        let column = state.bank.insert(scheme, bits)?;
        let old = match state.homes.binary_search_by(|(other, _)| other.cmp(home)) {
            Ok(rank) => Some(std::mem::replace(&mut state.homes[rank].1, column)),
            Err(rank) => {
                state.homes.insert(rank, (home.clone(), column));
                None
            }
        };
        let freed = old.map(|old| state.bank.take_out(old)).transpose();
        state.rank_homes();
        drop(state);
        debug_assert!(freed.is_ok(), "an installed column is in the bank");
        drop(freed);
        self.settle();
        Ok(column)
    }

    /// Removes a home's column.
    pub(crate) fn remove(&self, home: &Name) {
        let mut state = self.write();
        let Ok(rank) = state.homes.binary_search_by(|(other, _)| other.cmp(home)) else { return };
        let (_, column) = state.homes.remove(rank);
        let freed = state.bank.take_out(column);
        state.rank_homes();
        drop(state);
        debug_assert!(freed.is_ok(), "an installed column is in the bank");
        drop(freed);
        self.settle();
    }

    /// Sets bits of a column.
    pub(crate) fn set(&self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        positions.chunks(FLIPS).try_for_each(|part| self.write().bank.set(column, part))
    }

    /// Clears bits of a column. In an update, call it only after all sets.
    pub(crate) fn clear(&self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        positions.chunks(FLIPS).try_for_each(|part| self.write().bank.clear(column, part))
    }

    /// Reads the bits of a column. Does not block lookups.
    pub(crate) fn with_bits<T>(
        &self,
        column: ColumnId,
        look: impl FnOnce(&BitVector) -> T,
    ) -> Result<T, BankError> {
        self.read().bank.bits(column).map(look)
    }

    /// Moves columns into rows, and builds other rows where that is worth it, part by part.
    fn settle(&self) {
        loop {
            let Some(mut work) = self.read().bank.next_work() else { return };
            while work.read_part(&self.read().bank) {}
            while work.write_part(&mut self.write().bank) {}
        }
    }

    /// Checks that exactly these homes have columns, with bits of these checksums.
    ///
    /// # Panics
    /// If they have not: a bug in this crate.
    pub(crate) fn validate(&self, expected: &[(&Name, ColumnId, u64)]) {
        let state = self.read();
        for (home, column, checksum) in expected {
            let found = state.homes.iter().find(|(other, _)| other == *home);
            assert_eq!(found.map(|(_, column)| column), Some(column), "columns have owners");
            let bits = state.bank.bits(*column).expect("the column is there");
            assert_eq!(bits.checksum(), *checksum, "columns hold the image");
        }
        assert_eq!(state.bank.columns(), expected.len(), "no column without an image");
        assert_eq!(state.homes.len(), expected.len(), "no owner without a column");
        state.bank.validate();
    }

    fn read(&self) -> ShardedLockReadGuard<'_, State<R>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> ShardedLockWriteGuard<'_, State<R>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Rows> State<R> {
    /// Recomputes the index of each column's home.
    fn rank_homes(&mut self) {
        let longest = self.homes.iter().map(|(_, column)| column.get() as usize + 1).max();
        self.ranks.resize(longest.unwrap_or(0).max(self.ranks.len()), 0);
        for ((_, column), rank) in self.homes.iter().zip(0..) {
            self.ranks[column.get() as usize] = rank;
        }
    }
}
