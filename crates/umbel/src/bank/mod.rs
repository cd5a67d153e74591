//! All replicas of a host: one lookup asks the filters of all homes at once.
//!
//! A column is one home's filter. The bank keeps the bits of each column (the master copy, to which
//! changes are applied). Where enough columns can share them, it also keeps rows: one row per bit
//! position, with one bit for every column of a group. `who` ANDs the `k` rows of a key; the
//! columns that are left are the candidates. 1024 filters of 2^20 bits cost `k` random rows of two
//! cache lines, hundreds of times less than asking the filters one by one.
//!
//! Fewer than 8 columns have no rows and are asked one by one. Columns of nested shapes
//! (`design::ladder`) share a group, the shorter ones stretched (`layout` says which). All columns share
//! one hash and seed: a key is hashed once, each group cuts the hash to its own digest.
//!
//! A new column takes part in lookups at once, from its master copy. The time to add it does not
//! depend on the number of other columns. Moving it into rows, and building other rows when the
//! layout changes, is work divided into parts, so that a caller who guards a bank by a lock need
//! not hold the lock for long.
//!
//! Always true: `who` names a column exactly when its filter claims the key. Sets and clears are
//! separate calls: if an update is applied in steps, sets before clears, a key that is claimed both
//! before and after it is claimed at every step. Once no work is left, rows take at most twice the
//! columns' bits.
//!
//! Not here: which home a column belongs to and how fresh it is (`replica`); locks (the host has
//! them: readers share the bank, and a writer locks it for one part of its work at a time). Prior
//! art: Flat-Bloofi (Crainiceanu and Lemire), COBS and BIGSI, `BitFunnel`.

mod ask;
mod candidates;
mod chain;
mod claims;
mod family;
mod group;
mod layout;
mod refresh;
mod rows;
mod settle;
mod stretch;
#[cfg(test)]
mod tests;
mod transpose;

pub use candidates::{BatchCandidates, Candidates};
pub use chain::Depths;
pub use rows::{HeapRows, Line, Rows};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use candidates::Slots;
use family::{Family, Members, exponent};
use group::Group;

use crate::bits::BitVector;
use crate::codec::Flips;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::params::Shape;
use crate::scheme::{Mismatch, Scheme};

/// Identifies a column of a bank: a small number that may be reused after the column is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(u32);

impl ColumnId {
    /// The plain number, for callers who keep a table indexed by column.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a bank could not take a column. The bank is unchanged in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BankError {
    /// The column's filter hashes keys differently from the bank.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The number of bits differs from that of the shape or column.
    #[error("the column has {expected} bits, not {given}")]
    Length {
        /// What the shape says.
        expected: u64,
        /// What was given.
        given: u64,
    },
    /// No such column: it was removed, or belongs to another bank.
    #[error("the bank has no column {}", .0.get())]
    NoColumn(ColumnId),
    /// The system has no memory for the rows.
    #[error("no memory for rows of {bytes} bytes")]
    NoMemory {
        /// The memory that was requested.
        bytes: u64,
    },
}

/// One home's filter.
#[derive(Clone)]
struct Column {
    shape: Shape,
    /// The master copy.
    bits: BitVector,
    place: Place,
}

/// Where a lookup finds the bits of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Asked alone: its index in the list of such columns.
    Loose(usize),
    /// In the rows of a group.
    Slot { group: usize, slot: usize },
}

/// Replicas of many filters, asked all at once.
///
/// ```
/// use umbel::bank::{Bank, BatchCandidates};
/// use umbel::{KeyHasher, StandardFilter};
///
/// let mut apples = StandardFilter::for_target(100, 0.001)?;
/// apples.insert("apple");
/// let mut pears = apples.clone();
/// pears.insert("pear");
///
/// let mut bank: Bank = Bank::new(KeyHasher::default());
/// let a = bank.add(apples.scheme(), apples.bits())?;
/// let b = bank.add(pears.scheme(), pears.bits())?;
///
/// let mut who = BatchCandidates::new();
/// bank.who_batch(&[bank.hash(b"apple"), bank.hash(b"pear")], &mut who);
/// assert_eq!(who.of(0), [a, b]);
/// assert_eq!(who.of(1), [b]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Bank<R: Rows = HeapRows> {
    hasher: KeyHasher,
    /// By id; a column that was removed leaves a gap for the next one.
    columns: Vec<Option<Column>>,
    gaps: Vec<ColumnId>,
    groups: Vec<Group<R>>,
    /// Columns that are asked alone.
    loose: Vec<ColumnId>,
    slots: Slots,
    /// The index in `slots` of the first loose column.
    first_loose: usize,
    /// The columns and groups of each family of shapes.
    families: BTreeMap<Family, Members>,
    /// Families that have changed since the last time when no work was left.
    unsettled: BTreeSet<Family>,
    /// How many bits of rows may still be built to improve the layout.
    credit: u64,
}

impl<R: Rows> Bank<R> {
    /// An empty bank for filters that hash keys with this hasher.
    #[must_use]
    pub fn new(hasher: KeyHasher) -> Self {
        Self {
            hasher,
            columns: Vec::new(),
            gaps: Vec::new(),
            groups: Vec::new(),
            loose: Vec::new(),
            slots: Arc::new(vec![ColumnId(0); 64]),
            first_loose: 0,
            families: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            credit: 0,
        }
    }

    /// Hashes a key, once for all columns.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// Adds a column.
    ///
    /// # Errors
    /// If it hashes keys in another way, or its length is wrong.
    pub fn add(&mut self, scheme: &Scheme, bits: &BitVector) -> Result<ColumnId, BankError> {
        Ok(self.add_many(scheme, &[bits])?[0])
    }

    /// Adds columns of one scheme. Adding 64 of them takes little longer than adding one.
    ///
    /// # Errors
    /// If they hash keys in another way, or a length is wrong; none is added then.
    pub fn add_many(
        &mut self,
        scheme: &Scheme,
        columns: &[&BitVector],
    ) -> Result<Vec<ColumnId>, BankError> {
        self.check(scheme)?;
        columns.iter().try_for_each(|bits| check_length(scheme.shape(), bits))?;
        let place = |bits: &&BitVector| self.place(*scheme.shape(), (*bits).clone());
        let ids = columns.iter().map(place).collect();
        self.settle();
        Ok(ids)
    }

    /// Adds a column, which takes part in lookups at once. There may be work left to do afterwards.
    ///
    /// # Errors
    /// If it hashes keys in another way, or its length is wrong.
    pub(crate) fn insert(
        &mut self,
        scheme: &Scheme,
        bits: BitVector,
    ) -> Result<ColumnId, BankError> {
        self.check(scheme)?;
        check_length(scheme.shape(), &bits)?;
        Ok(self.place(*scheme.shape(), bits))
    }

    /// Removes a column at once and returns its bits. There may be work left to do afterwards.
    ///
    /// # Errors
    /// If the column is not there.
    pub(crate) fn take_out(&mut self, column: ColumnId) -> Result<BitVector, BankError> {
        let Column { shape, place, .. } = *self.column(column)?;
        match place {
            Place::Loose(_) => self.unlist(column),
            Place::Slot { group, slot } => self.groups[group].release(slot, exponent(&shape)),
        }
        self.leave_family(column, &shape);
        self.gaps.push(column);
        let there = self.columns[column.index()].take();
        Ok(there.ok_or(BankError::NoColumn(column))?.bits)
    }

    /// Removes a column. Its id may be given to another column later.
    ///
    /// # Errors
    /// If the column is not there.
    pub fn remove(&mut self, column: ColumnId) -> Result<(), BankError> {
        self.take_out(column)?;
        self.settle();
        Ok(())
    }

    /// Overwrites columns with new bits of the same lengths, 64 of one group at a time.
    ///
    /// # Errors
    /// If a column is not there or has another length; nothing changes then.
    pub fn replace_many(&mut self, columns: &[(ColumnId, &BitVector)]) -> Result<(), BankError> {
        for (column, bits) in columns {
            check_length(&self.column(*column)?.shape, bits)?;
        }
        let mut by_group: Vec<Vec<(usize, &BitVector)>> = vec![Vec::new(); self.groups.len()];
        for (column, bits) in columns {
            let Some(here) = &mut self.columns[column.index()] else { continue };
            here.bits = (*bits).clone();
            if let Place::Slot { group, slot } = here.place {
                by_group[group].push((slot, *bits));
            }
        }
        for (group, mut columns) in self.groups.iter_mut().zip(by_group) {
            // If a column is named twice, its last bits win: the sort is stable.
            columns.sort_by_key(|(slot, _)| *slot);
            group.write(&columns, 0..usize::MAX);
        }
        Ok(())
    }

    /// Overwrites a column with new bits of the same length.
    ///
    /// # Errors
    /// If the column is not there or has another length; nothing changes then.
    pub fn replace(&mut self, column: ColumnId, bits: &BitVector) -> Result<(), BankError> {
        self.replace_many(&[(column, bits)])
    }

    /// Sets bits of a column.
    ///
    /// # Errors
    /// If the column is not there.
    ///
    /// # Panics
    /// If a position lies outside the column; the column is not to be used after that.
    pub fn set(&mut self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        self.touch(column, positions, true)
    }

    /// Clears bits of a column. In an update, call it only after all sets.
    ///
    /// # Errors
    /// If the column is not there.
    ///
    /// # Panics
    /// If a position lies outside the column; the column is not to be used after that.
    pub fn clear(&mut self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        self.touch(column, positions, false)
    }

    /// Sets or clears bits of a column.
    fn touch(&mut self, column: ColumnId, positions: &[u64], value: bool) -> Result<(), BankError> {
        let here = self.columns.get_mut(column.index()).and_then(Option::as_mut);
        let here = here.ok_or(BankError::NoColumn(column))?;
        match here.place {
            Place::Slot { group, slot } => {
                self.groups[group].touch(slot, &mut here.bits, positions, value);
            }
            Place::Loose(_) => positions.iter().for_each(|at| here.bits.put(*at, value)),
        }
        Ok(())
    }

    /// Applies a decoded delta to a column: sets, then clears.
    ///
    /// ```
    /// use umbel::bank::Bank;
    /// use umbel::codec::{decode_change, encode_change};
    /// use umbel::{KeyHasher, StandardFilter};
    ///
    /// let old = StandardFilter::for_target(1000, 0.01)?;
    /// let mut new = old.clone();
    /// new.insert("apple");
    /// let mut bank: Bank = Bank::new(KeyHasher::default());
    /// let column = bank.add(old.scheme(), old.bits())?;
    ///
    /// let (shape, mut sent) = (old.scheme().shape(), Vec::new());
    /// encode_change(&mut sent, shape, old.bits(), new.bits(), &[]);
    /// bank.apply(column, &decode_change(&sent, shape, old.bits())?)?;
    /// assert_eq!(bank.bits(column)?, new.bits());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the column is not there.
    ///
    /// # Panics
    /// If a position lies outside the column.
    pub fn apply(&mut self, column: ColumnId, flips: &Flips) -> Result<(), BankError> {
        self.set(column, &flips.sets)?;
        self.clear(column, &flips.clears)
    }

    /// The bits of a column.
    ///
    /// # Errors
    /// If the column is not there.
    pub fn bits(&self, column: ColumnId) -> Result<&BitVector, BankError> {
        Ok(&self.column(column)?.bits)
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len() - self.gaps.len()
    }

    /// Number of groups of columns that share rows.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Bytes that the columns and the rows take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let rows: u64 = self.groups.iter().map(Group::memory_bytes).sum();
        let copies = self.columns.iter().flatten().map(|column| column.bits.words());
        rows + copies.map(|words| size_of_val(words) as u64).sum::<u64>()
    }

    /// Checks that the rows hold the columns' bits. Slow.
    ///
    /// # Panics
    /// If a promise of this type is broken: a bug in this crate.
    pub fn validate(&self) {
        let loose = |column: &Column| matches!(column.place, Place::Loose(_));
        let alone = self.columns.iter().flatten().filter(|column| loose(column)).count();
        assert_eq!(alone, self.loose.len(), "columns without rows are asked alone");
        let mut first = 0;
        for (index, group) in self.groups.iter().enumerate() {
            for (slot, id) in group.slots().iter().enumerate() {
                let Some(id) = id else { continue };
                let column = self.columns[id.index()].as_ref().expect("slots hold columns");
                assert_eq!(column.place, Place::Slot { group: index, slot }, "places are known");
                assert_eq!(self.slots[first + slot], *id, "the bits of answers are known");
                column.bits.validate();
                assert!(group.holds(slot, &column.bits), "rows hold the column's bits");
            }
            first += group.words() * 64;
        }
        assert_eq!(self.first_loose, first, "loose columns come last");
        for (index, id) in self.loose.iter().enumerate() {
            let column = self.columns[id.index()].as_ref().expect("loose columns are there");
            assert_eq!(column.place, Place::Loose(index), "places are known");
            assert_eq!(self.slots[first + index], *id, "the bits of answers are known");
        }
        self.validate_families();
    }

    fn column(&self, column: ColumnId) -> Result<&Column, BankError> {
        let there = self.columns.get(column.index()).and_then(Option::as_ref);
        there.ok_or(BankError::NoColumn(column))
    }

    fn check(&self, scheme: &Scheme) -> Result<(), BankError> {
        Ok(scheme.check(&Scheme::new(*scheme.shape(), self.hasher))?)
    }

    /// Adds a column to those that are asked alone.
    fn place(&mut self, shape: Shape, bits: BitVector) -> ColumnId {
        self.credit = self.credit.saturating_add(settle::CREDIT.saturating_mul(shape.bits()));
        let column = Some(Column { shape, bits, place: Place::Loose(self.loose.len()) });
        let id = match self.gaps.pop() {
            Some(id) => {
                self.columns[id.index()] = column;
                id
            }
            None => {
                self.columns.push(column);
                ColumnId(u32::try_from(self.columns.len() - 1).expect("fewer than 2^32 columns"))
            }
        };
        self.join_family(id, &shape);
        self.loose.push(id);
        self.list_loose(self.loose.len() - 1);
        id
    }

    /// Removes a column from the list of those that are asked alone; the last one moves to its
    /// index.
    fn unlist(&mut self, column: ColumnId) {
        let Some(Column { place: Place::Loose(index), .. }) = self.columns[column.index()] else {
            return;
        };
        self.loose.swap_remove(index);
        if let Some(moved) = self.loose.get(index) {
            if let Some(moved) = &mut self.columns[moved.index()] {
                moved.place = Place::Loose(index);
            }
            self.list_loose(index);
        }
    }

    /// Records which loose column a bit of an answer stands for. If buffers of callers still refer
    /// to the current list, the change is made to a copy of it.
    fn list_loose(&mut self, index: usize) {
        let (first, id) = (self.first_loose, self.loose[index]);
        let length = (first + self.loose.len()).next_multiple_of(64) + 64;
        let slots = Arc::make_mut(&mut self.slots);
        if slots.len() < length {
            slots.resize(length, ColumnId(0));
        }
        slots[first + index] = id;
    }

    /// Records which column in the rows of a group a bit of an answer stands for.
    fn list_slot(&mut self, group: usize, slot: usize, id: ColumnId) {
        let first = self.groups[..group].iter().map(Group::words).sum::<usize>() * 64;
        Arc::make_mut(&mut self.slots)[first + slot] = id;
    }

    /// Rebuilds the list of which column each bit of an answer stands for.
    fn relist(&mut self) {
        let mut slots = Vec::with_capacity((self.words() + 1) * 64);
        for group in &self.groups {
            slots.extend(group.slots().iter().map(|id| id.unwrap_or(ColumnId(0))));
            slots.resize(slots.len().next_multiple_of(64), ColumnId(0));
        }
        self.first_loose = slots.len();
        slots.extend(&self.loose);
        slots.resize(slots.len().next_multiple_of(64) + 64, ColumnId(0));
        self.slots = Arc::new(slots);
    }
}

impl<R: Rows> fmt::Debug for Bank<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, groups) = (self.columns(), self.groups());
        write!(f, "Bank({columns} columns in {groups} groups, {} bytes)", self.memory_bytes())
    }
}

fn check_length(shape: &Shape, bits: &BitVector) -> Result<(), BankError> {
    match (shape.bits(), bits.len()) {
        (expected, given) if expected == given => Ok(()),
        (expected, given) => Err(BankError::Length { expected, given }),
    }
}
