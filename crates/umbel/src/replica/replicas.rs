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

/// Words of a column that are written under one lock: some ten thousand rows.
const PART: usize = 512;
/// Bits of a column that are flipped under one lock.
const FLIPS: usize = 4096;

impl<R: Rows> Replicas<R> {
    pub(crate) fn new(hasher: KeyHasher, limit_bytes: u64) -> Self {
        let bank = Bank::with_limit(hasher, limit_bytes);
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
        let ids = self.write().bank.add_empty(scheme, bits.len())?;
        let columns: Vec<_> = ids.iter().copied().zip(bits.iter().copied()).collect();
        self.replace(&columns)?;
        Ok(ids)
    }

    /// Overwrites columns.
    pub(crate) fn replace(&self, columns: &[(ColumnId, &BitVector)]) -> Result<(), BankError> {
        let words = columns.first().map_or(0, |(_, bits)| bits.words().len());
        for start in (0..words).step_by(PART) {
            self.write().bank.replace_part(columns, start..start + PART)?;
        }
        Ok(())
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
            let gone = self.erase(*column);
            debug_assert!(gone.is_ok(), "an installed column is in the bank");
        }
    }

    fn erase(&self, column: ColumnId) -> Result<(), BankError> {
        let words = self.read().bank.words(column)?;
        for start in (0..words).step_by(PART) {
            self.write().bank.erase_part(column, start..start + PART)?;
        }
        self.write().bank.release(column)
    }

    /// Checks that exactly these columns are here, with these bits and this owner.
    ///
    /// # Panics
    /// If they are not: a bug in this crate.
    pub(crate) fn validate(&self, expected: &[(ColumnId, &Name, &BitVector)]) {
        let state = self.read();
        for (column, owner, bits) in expected {
            assert_eq!(state.owners.get(column), Some(*owner), "columns have owners");
            let found = state.bank.read(*column).expect("the column is there");
            assert!(found == **bits, "columns hold the image");
        }
        assert_eq!(state.bank.columns(), expected.len(), "no column without an image");
        assert_eq!(state.owners.len(), expected.len(), "no owner without a column");
    }

    fn read(&self) -> RwLockReadGuard<'_, State<R>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<R>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}
