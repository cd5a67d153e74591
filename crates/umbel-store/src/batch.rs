//! A batch: changes that are applied together or not at all.

use crate::error::{Error, Result};
use crate::format::record::Kind;
use crate::{MAX_KEY, MAX_VALUE};

/// Changes that are applied together or not at all, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    wish: Wish,
    key: usize,
    value: usize,
}

/// The requested change of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Put,
    Insert,
    Delete,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key's value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.add(Wish::Put, key, value)
    }

    /// Sets a key's value if the key is absent; an existing key keeps its value.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.add(Wish::Insert, key, value)
    }

    /// Removes a key; a key that does not exist is ignored.
    pub fn delete(&mut self, key: &[u8]) -> &mut Self {
        self.add(Wish::Delete, key, &[])
    }

    fn add(&mut self, wish: Wish, key: &[u8], value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.changes.push(Change { wish, key: key.len(), value: value.len() });
        self
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether the batch has no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of all keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn check(&self) -> Result<()> {
        for change in &self.changes {
            if change.key > MAX_KEY {
                return Err(Error::KeyTooLong { len: change.key });
            }
            if change.value > MAX_VALUE {
                return Err(Error::ValueTooLong { len: change.value });
            }
        }
        Ok(())
    }

    /// Wish, key and value of each change; a delete's value is empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Wish, &[u8], &[u8])> {
        let mut rest = &self.bytes[..];
        self.changes.iter().map(move |change| {
            let (key, after) = rest.split_at(change.key);
            let (value, after) = after.split_at(change.value);
            rest = after;
            (change.wish, key, value)
        })
    }
}

/// How many keys a batch inserted, changed and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Keys that were absent before.
    pub inserted: u64,
    /// Keys that existed and were given a value.
    pub changed: u64,
    /// Keys that existed and were removed.
    pub deleted: u64,
}

impl Applied {
    pub(crate) fn count(&mut self, kind: Kind) {
        *match kind {
            Kind::Insert => &mut self.inserted,
            Kind::Change => &mut self.changed,
            Kind::Delete => &mut self.deleted,
            Kind::Closed => return,
        } += 1;
    }
}
