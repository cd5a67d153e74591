//! All replicas at a host: one lookup asks every home at once.
//!
//! A column is one home's filter. The bank keeps its bits as they are (the master copy, which
//! changes are made against) and, where enough columns can share them, rows: row = bit position,
//! one bit for every column of a group. `who` ANDs the `k` rows of a key; what is left are the
//! candidates. 1024 filters of 2^20 bits cost `k` random rows of two cache lines, hundreds of
//! times less than asking the filters one by one.
//!
//! Fewer than 8 columns have no rows and are asked one by one. Columns of nested shapes
//! (`design::ladder`) share a group, the shorter ones stretched (`layout` says which). All columns share
//! one hash and seed: a key is hashed once, each group cuts the hash to its own digest.
//!
//! A new column answers at once, from its master copy, and takes as long to add whatever the number
//! of others. Moving it into rows, and building other
//! rows when the layout changes, is work in parts, so that whoever guards a bank by a lock
//! need not hold it for long.
//!
//! Always true: `who` names a column exactly when its filter claims the key. Sets and
//! clears are separate calls: whoever applies an update in steps, sets before clears, never
//! denies a key that was claimed before and is claimed after. Rows take at most twice the
//! columns' bits once there is no work left.
//!
//! Not here: whose column it is, how fresh it is (`replica`); locks (the host: readers share the
//! bank, a writer takes it for a part at a time).
//! Prior art: Flat-Bloofi (Crainiceanu and Lemire), COBS and BIGSI, `BitFunnel`.

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

/// Names a column of a bank until it is removed: a small number, given again after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(u32);

impl ColumnId {
    /// The plain number, for callers who keep a table by column.
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
    /// The column's filter hashes keys in another way.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The bits have another length than the shape or column they are for.
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
        /// What was asked for.
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

/// Where a column is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Alone: where in the list of those.
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
    /// Which of the slots is the first of the loose columns.
    first_loose: usize,
    /// What there is of each family of shapes.
    families: BTreeMap<Family, Members>,
    /// Families that have changed since there was last no work left.
    unsettled: BTreeSet<Family>,
    /// Bits of rows that may be built for the sake of a better layout.
    credit: u64,
}

impl<R: Rows> Bank<R> {
    /// An empty bank for filters that hash keys like this.
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

    /// Adds columns of one scheme, 64 at a time in little more than the time of one.
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

    /// Adds a column that answers at once; there may be work to do after that.
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

    /// Takes a column out at once; there may be work to do after that.
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

    /// Removes a column: it answers no more, and its id may be given to another.
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
            // Of a column that is named twice the last bits stay.
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

    /// Gives bits of a column this value.
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

    /// Checks that the rows hold the columns' bits, the slow way.
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

    /// Puts a column among those that are asked alone.
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

    /// Takes a column off the list of those that are asked alone; the last takes its place there.
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

    /// Notes which loose column a bit of an answer stands for. Buffers of callers keep the list that
    /// they have: as long as there are some, a new one is made.
    fn list_loose(&mut self, index: usize) {
        let (first, id) = (self.first_loose, self.loose[index]);
        let length = (first + self.loose.len()).next_multiple_of(64) + 64;
        let slots = Arc::make_mut(&mut self.slots);
        if slots.len() < length {
            slots.resize(length, ColumnId(0));
        }
        slots[first + index] = id;
    }

    /// Notes which column in the rows of a group a bit of an answer stands for.
    fn list_slot(&mut self, group: usize, slot: usize, id: ColumnId) {
        let first = self.groups[..group].iter().map(Group::words).sum::<usize>() * 64;
        Arc::make_mut(&mut self.slots)[first + slot] = id;
    }

    /// Lists anew which column each bit of an answer stands for.
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
