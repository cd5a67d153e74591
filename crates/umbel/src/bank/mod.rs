//! All replicas at a host, stored bit-sliced: one lookup asks every home at once.
//!
//! Row = bit position, column = one home's component. `who` ANDs the `k` rows of a key;
//! what is left are the candidates. 1024 filters of 2^20 bits cost `k` random rows of two
//! cache lines, hundreds of times less than asking the filters one by one.
//!
//! Columns of one shape make a group; hosts may differ in shape, and a home's shape may
//! change while its old columns still answer. All columns share one hash and seed: a key is
//! hashed once, each group cuts the hash to its own digest.
//!
//! Always true: `who` names a column exactly when its filter claims the key. Sets and
//! clears are separate calls: whoever applies an update in steps, sets before clears, never
//! denies a key that was claimed before and is claimed after.
//!
//! Not here: whose column it is, how fresh it is, copies to take deltas against (`replica`);
//! locks (the host: readers share the bank, a writer takes it for a chunk at a time).
//! Prior art: Flat-Bloofi (Crainiceanu and Lemire), COBS and BIGSI, `BitFunnel`.

mod ask;
mod candidates;
mod group;
mod refresh;
mod rows;
#[cfg(test)]
mod tests;
mod transpose;

pub use candidates::{BatchCandidates, Candidates};
pub use rows::{HeapRows, Line, Rows};

use std::fmt;
use std::ops::Range;

use group::{Group, group_bytes};

use crate::bits::BitVector;
use crate::codec::Flips;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::params::{Bits, Shape};
use crate::scheme::{Mismatch, Scheme};

/// Names a column of a bank until it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(u32);

impl ColumnId {
    /// Columns a group, a power of two; the bits above name the group.
    const SLOTS: u32 = 1 << 20;
    /// Groups that the bits above can name.
    const GROUPS: usize = 1 << 12;

    const fn new(group: u32, slot: usize) -> Self {
        Self(group * Self::SLOTS + slot as u32)
    }

    #[inline]
    const fn plus(self, slots: usize) -> Self {
        Self(self.0.wrapping_add(slots as u32))
    }

    const fn group(self) -> usize {
        (self.0 / Self::SLOTS) as usize
    }

    const fn slot(self) -> usize {
        (self.0 % Self::SLOTS) as usize
    }

    /// The plain number, for callers who keep a table by column.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
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
    /// The rows would take more memory than the bank may use.
    #[error("the bank may use {limit} bytes, and would need {needed}")]
    TooLarge {
        /// What the bank would take.
        needed: u64,
        /// What it may take.
        limit: u64,
    },
    /// The system has no memory for the rows.
    #[error("no memory for rows of {bytes} bytes")]
    NoMemory {
        /// What was asked for.
        bytes: u64,
    },
    /// More columns of one shape, or more shapes, than ids can name.
    #[error("a bank holds at most 2^20 columns of one shape, and 4096 shapes")]
    Full,
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
    limit_bytes: u64,
    /// By number; a group that lost its last column leaves a gap for the next shape.
    groups: Vec<Option<Group<R>>>,
}

impl<R: Rows> Bank<R> {
    /// An empty bank for filters that hash keys like this, as large as memory allows.
    #[must_use]
    pub const fn new(hasher: KeyHasher) -> Self {
        Self::with_limit(hasher, u64::MAX)
    }

    /// An empty bank that takes at most `limit_bytes` for its rows, whatever shapes others
    /// ask it to hold.
    #[must_use]
    pub const fn with_limit(hasher: KeyHasher, limit_bytes: u64) -> Self {
        Self { hasher, limit_bytes, groups: Vec::new() }
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
    /// If it hashes keys in another way, its length is wrong, or there is no room.
    pub fn add(&mut self, scheme: &Scheme, bits: &BitVector) -> Result<ColumnId, BankError> {
        Ok(self.add_many(scheme, &[bits])?[0])
    }

    /// Adds columns of one scheme, 64 at a time in little more than the time of one.
    ///
    /// # Errors
    /// If they hash keys in another way, a length is wrong, or there is no room for all.
    ///
    /// # Panics
    /// Never: the group is there once it has been found or made.
    pub fn add_many(
        &mut self,
        scheme: &Scheme,
        columns: &[&BitVector],
    ) -> Result<Vec<ColumnId>, BankError> {
        columns.iter().try_for_each(|bits| check_length(scheme.shape(), bits))?;
        let ids = self.add_empty(scheme, columns.len())?;
        let placed: Vec<_> = ids.iter().copied().zip(columns.iter().copied()).collect();
        self.replace_many(&placed)?;
        Ok(ids)
    }

    /// Adds columns that claim nothing yet, to be filled part by part.
    ///
    /// # Errors
    /// If they hash keys in another way, or there is no room for all.
    ///
    /// # Panics
    /// Never: the group is there once it has been found or made.
    pub fn add_empty(&mut self, scheme: &Scheme, count: usize) -> Result<Vec<ColumnId>, BankError> {
        scheme.check(&Scheme::new(*scheme.shape(), self.hasher))?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let number = self.group_for(scheme.shape(), count)?;
        let group = self.groups[number].as_mut().expect("the group was just found or made");
        let slots = group.reserve(count)?;
        Ok(slots.into_iter().map(|slot| ColumnId::new(number as u32, slot)).collect())
    }

    /// Overwrites columns with new bits of the same lengths, 64 of one group at a time.
    ///
    /// # Errors
    /// If a column is not there or has another length; nothing changes then.
    pub fn replace_many(&mut self, columns: &[(ColumnId, &BitVector)]) -> Result<(), BankError> {
        self.replace_part(columns, 0..usize::MAX)
    }

    /// Overwrites a part of columns, counted in words of their bits, so that a lock need not
    /// be held for all of it. Between two parts, a key that is claimed by the old bits and by
    /// the new ones is claimed. What lies past the last word is left out.
    ///
    /// # Errors
    /// If a column is not there or has another length; nothing changes then.
    pub fn replace_part(
        &mut self,
        columns: &[(ColumnId, &BitVector)],
        part: Range<usize>,
    ) -> Result<(), BankError> {
        for (column, bits) in columns {
            check_length(self.group(*column)?.shape(), bits)?;
        }
        for (number, group) in self.groups.iter_mut().enumerate() {
            let here = columns.iter().filter(|(column, _)| column.group() == number);
            let here: Vec<_> = here.map(|(column, bits)| (column.slot(), *bits)).collect();
            if let (Some(group), Some((_, bits))) = (group, here.first()) {
                group.write(&here, within(part.clone(), bits.words().len()));
            }
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

    /// Removes a column: it answers no more, and its id may be given to another.
    ///
    /// # Errors
    /// If the column is not there.
    pub fn remove(&mut self, column: ColumnId) -> Result<(), BankError> {
        self.erase_part(column, 0..usize::MAX)?;
        self.release(column)
    }

    /// Clears a part of a column, counted in words of its bits; see [`Self::replace_part`].
    ///
    /// # Errors
    /// If the column is not there.
    pub fn erase_part(&mut self, column: ColumnId, part: Range<usize>) -> Result<(), BankError> {
        let part = within(part, self.words(column)?);
        self.group_mut(column)?.erase(column.slot(), part);
        Ok(())
    }

    /// Words of a column's bits.
    pub(crate) fn words(&self, column: ColumnId) -> Result<usize, BankError> {
        Ok(self.group(column)?.shape().bits().div_ceil(64) as usize)
    }

    /// Lets go of a column that was erased part by part.
    pub(crate) fn release(&mut self, column: ColumnId) -> Result<(), BankError> {
        let group = self.group_mut(column)?;
        group.release(column.slot());
        if group.columns() == 0 {
            self.groups[column.group()] = None;
        }
        Ok(())
    }

    /// Sets bits of a column.
    ///
    /// # Errors
    /// If the column is not there.
    ///
    /// # Panics
    /// If a position lies outside the column; those before it are changed by then.
    pub fn set(&mut self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        self.group_mut(column)?.set(column.slot(), positions);
        Ok(())
    }

    /// Clears bits of a column. In an update, call it only after all sets.
    ///
    /// # Errors
    /// If the column is not there.
    ///
    /// # Panics
    /// If a position lies outside the column; those before it are changed by then.
    pub fn clear(&mut self, column: ColumnId, positions: &[u64]) -> Result<(), BankError> {
        self.group_mut(column)?.clear(column.slot(), positions);
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
    /// assert_eq!(bank.read(column)?, *new.bits());
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

    /// Reads a column back, the slow way: for checks.
    ///
    /// # Errors
    /// If the column is not there.
    ///
    /// # Panics
    /// If there is no memory for the bits.
    pub fn read(&self, column: ColumnId) -> Result<BitVector, BankError> {
        let group = self.group(column)?;
        let length = Bits::new(group.shape().bits()).expect("a shape has a valid length");
        let mut bits = BitVector::zeros(length).expect("memory for one column");
        group.read(column.slot(), &mut bits);
        Ok(bits)
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.groups.iter().flatten().map(Group::columns).sum()
    }

    /// Bytes that the rows take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.groups.iter().flatten().map(Group::memory_bytes).sum()
    }

    fn group(&self, column: ColumnId) -> Result<&Group<R>, BankError> {
        let group = self.groups.get(column.group()).and_then(Option::as_ref);
        let group = group.filter(|group| group.holds(column.slot()));
        group.ok_or(BankError::NoColumn(column))
    }

    fn group_mut(&mut self, column: ColumnId) -> Result<&mut Group<R>, BankError> {
        let group = self.groups.get_mut(column.group()).and_then(Option::as_mut);
        let group = group.filter(|group| group.holds(column.slot()));
        group.ok_or(BankError::NoColumn(column))
    }

    /// The number of the group for this shape, made if need be, with room by the limit for
    /// `count` more columns.
    fn group_for(&mut self, shape: &Shape, count: usize) -> Result<usize, BankError> {
        let same = |group: &Option<Group<R>>| group.as_ref().is_some_and(|g| g.shape() == shape);
        if let Some(number) = self.groups.iter().position(same) {
            let group = self.groups[number].as_ref().expect("it has that shape");
            if group.columns() + count > ColumnId::SLOTS as usize {
                return Err(BankError::Full);
            }
            self.check_limit(group.growth_bytes(count))?;
            return Ok(number);
        }
        let gap = self.groups.iter().position(Option::is_none);
        let number = gap.unwrap_or(self.groups.len());
        if number >= ColumnId::GROUPS || count > ColumnId::SLOTS as usize {
            return Err(BankError::Full);
        }
        self.check_limit(group_bytes(shape, count))?;
        let group = Some(Group::new(*shape, count)?);
        match gap {
            Some(number) => self.groups[number] = group,
            None => self.groups.push(group),
        }
        Ok(number)
    }

    fn check_limit(&self, more: u64) -> Result<(), BankError> {
        let needed = self.memory_bytes().saturating_add(more);
        if more > 0 && needed > self.limit_bytes {
            return Err(BankError::TooLarge { needed, limit: self.limit_bytes });
        }
        Ok(())
    }
}

impl<R: Rows> fmt::Debug for Bank<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, bytes) = (self.columns(), self.memory_bytes());
        write!(f, "Bank({:?}, {columns} columns, {bytes} bytes)", self.hasher)
    }
}

/// The words of a part that there are; none is the empty part at the front.
fn within(part: Range<usize>, words: usize) -> Range<usize> {
    let end = part.end.min(words);
    if part.start < end { part.start..end } else { 0..0 }
}

fn check_length(shape: &Shape, bits: &BitVector) -> Result<(), BankError> {
    let (expected, given) = (shape.bits(), bits.len());
    if expected == given { Ok(()) } else { Err(BankError::Length { expected, given }) }
}
