//! Changes that are made together or not at all.

use crate::error::{Error, Result};
use crate::format::record::Kind;
use crate::{MAX_KEY, MAX_VALUE};

/// Changes that are made together or not at all, in the order they were added.
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

/// What is to become of a key.
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

    /// Sets a key's value if the key is absent; one that is there keeps its value.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.add(Wish::Insert, key, value)
    }

    /// Removes a key; one that is absent is passed over.
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

    /// Whether there are none.
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

/// What a batch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Keys that were absent before.
    pub inserted: u64,
    /// Keys that were there and got a value anew.
    pub changed: u64,
    /// Keys that were there and are no more.
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
