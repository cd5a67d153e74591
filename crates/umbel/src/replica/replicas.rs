//! The replicas of one set at a host: who may hold a key, asked by many threads while
//! updates arrive.
//!
//! One writer (the engine), any number of readers. The lock is held for a short part of a
//! change at a time, never for a whole update, so that no question waits long.
//!
//! Always true: a key that a home's image claimed before an update and claims after it is
//! never denied in between. Bits are set before bits are cleared; new columns answer, in the
//! same instant, where old ones cease to.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Name;
use crate::bank::{Bank, BankError, BatchCandidates, ColumnId, HeapRows, Rows};
use crate::bits::BitVector;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::scheme::Scheme;

/// The replicas of one set, of all homes but this host.
#[derive(Debug)]
pub struct Replicas<R: Rows = HeapRows> {
    state: RwLock<State<R>>,
}

#[derive(Debug)]
struct State<R: Rows> {
    bank: Bank<R>,
    /// Whose column it is. A column without an owner is being filled, or erased.
    owners: HashMap<ColumnId, Name>,
}

/// Bits of a column that are flipped under one lock.
const FLIPS: usize = 4096;

impl<R: Rows> Replicas<R> {
    pub(crate) fn new(hasher: KeyHasher) -> Self {
        let bank = Bank::new(hasher);
        Self { state: RwLock::new(State { bank, owners: HashMap::new() }) }
    }

    /// Shows, for each key in turn, the hosts that may hold it, in the order of their names.
    /// `found` is a buffer to be used again.
    pub fn who(
        &self,
        hashes: &[KeyHash],
        found: &mut BatchCandidates,
        mut each: impl FnMut(&[&Name]),
    ) {
        let state = self.read();
        state.bank.who_batch(hashes, found);
        let mut hosts: Vec<&Name> = Vec::new();
        for columns in found.iter() {
            hosts.clear();
            hosts.extend(columns.iter().filter_map(|column| state.owners.get(column)));
            // A home with several components may be named several times.
            hosts.sort_unstable();
            hosts.dedup();
            each(&hosts);
        }
    }

    /// Bytes that the rows take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.read().bank.memory_bytes()
    }

    // ---- the engine's side

    /// New columns, which answer only when they are handed over.
    pub(crate) fn add(
        &self,
        scheme: &Scheme,
        bits: &[&BitVector],
    ) -> Result<Vec<ColumnId>, BankError> {
        let insert = |bits: &&BitVector| self.write().bank.insert(scheme, (*bits).clone());
        let ids = bits.iter().map(insert).collect();
        self.settle();
        ids
    }

    /// Overwrites columns.
    pub(crate) fn replace(&self, columns: &[(ColumnId, &BitVector)]) -> Result<(), BankError> {
        self.write().bank.replace_many(columns)
    }

    /// Moves columns into rows, part by part.
    fn settle(&self) {
        loop {
            let Some(mut work) = self.read().bank.next_work() else { return };
            while work.read_part(&self.read().bank) {}
            while work.write_part(&mut self.write().bank) {}
        }
    }

    /// Sets bits of a column.
    pub(crate) fn set(&self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        positions.chunks(FLIPS).try_for_each(|part| self.write().bank.set(column, part))
    }

    /// Clears bits of a column: in an update, after all sets.
    pub(crate) fn clear(&self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        positions.chunks(FLIPS).try_for_each(|part| self.write().bank.clear(column, part))
    }

    /// From now on `gained` answer for a home, and `lost` no more: in one instant.
    pub(crate) fn hand_over(&self, home: &Name, gained: &[ColumnId], lost: &[ColumnId]) {
        let mut state = self.write();
        lost.iter().for_each(|column| drop(state.owners.remove(column)));
        state.owners.extend(gained.iter().map(|column| (*column, home.clone())));
    }

    /// Takes columns out that answer no more.
    pub(crate) fn remove(&self, columns: &[ColumnId]) {
        for column in columns {
            let gone = self.write().bank.take_out(*column);
            debug_assert!(gone.is_ok(), "an installed column is in the bank");
        }
        self.settle();
    }

    /// Checks that exactly these columns are here, with these bits and this owner.
    ///
    /// # Panics
    /// If they are not: a bug in this crate.
    pub(crate) fn validate(&self, expected: &[(ColumnId, &Name, &BitVector)]) {
        let state = self.read();
        for (column, owner, bits) in expected {
            assert_eq!(state.owners.get(column), Some(*owner), "columns have owners");
            let found = state.bank.bits(*column).expect("the column is there");
            assert!(found == *bits, "columns hold the image");
        }
        assert_eq!(state.bank.columns(), expected.len(), "no column without an image");
        assert_eq!(state.owners.len(), expected.len(), "no owner without a column");
        state.bank.validate();
    }

    fn read(&self) -> RwLockReadGuard<'_, State<R>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<R>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}
