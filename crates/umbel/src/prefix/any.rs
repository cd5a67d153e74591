//! A table of any kind with texts as values, as files and the command line have it.
//!
//! Values are kept once each; the table holds their numbers, so that a prefix takes no more
//! room for a long value.
//!
//! Always true: a table that was read is written again with the same bytes.

use std::collections::BTreeMap;

use super::{FileKind, Ipv4Prefix, Ipv6Prefix, Name, Prefix, Table};
use crate::codec::DecodeError;

/// A table whose values are texts.
#[derive(Debug)]
pub struct Labelled<P: Prefix> {
    table: Table<P, u32>,
    labels: Vec<Box<str>>,
    numbers: BTreeMap<Box<str>, u32>,
}

impl<P: Prefix> Labelled<P> {
    /// An empty table with room for so many prefixes of each length.
    #[must_use]
    pub fn with_room(per_length: &[usize]) -> Self {
        let table = Table::with_room(per_length);
        Self { table, labels: Vec::new(), numbers: BTreeMap::new() }
    }

    /// Adds a prefix that is not there; false, and nothing is changed, if it is.
    pub fn insert_new(&mut self, prefix: P, value: &str) -> bool {
        if self.table.get(&prefix).is_some() {
            return false;
        }
        let number = match self.numbers.get(value) {
            Some(number) => *number,
            None => self.label(value),
        };
        self.table.insert(prefix, number);
        true
    }

    fn label(&mut self, value: &str) -> u32 {
        let number = self.labels.len() as u32;
        self.labels.push(value.into());
        self.numbers.insert(value.into(), number);
        number
    }

    /// The table: prefixes with the numbers of their values.
    #[must_use]
    pub const fn table(&self) -> &Table<P, u32> {
        &self.table
    }

    /// The text of a value.
    #[must_use]
    pub fn value(&self, number: u32) -> &str {
        &self.labels[number as usize]
    }

    /// Bytes of memory, values included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let texts: usize = self.labels.iter().map(|label| label.len()).sum();
        self.table.memory_bytes() + 2 * (texts + self.labels.len() * size_of::<Box<str>>())
    }

    /// The bytes of the table, as a file holds them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.table.encode(|number| self.value(*number))
    }

    fn decode(bytes: &[u8], limit: u64) -> Result<Self, DecodeError> {
        let mut empty = Self::with_room(&[]);
        let table = Table::decode(bytes, limit, |value| {
            let value = str::from_utf8(value).ok()?;
            (!empty.numbers.contains_key(value)).then(|| empty.label(value))
        })?;
        Ok(Self { table, ..empty })
    }
}

/// A table whose kind is known only once it is read.
#[derive(Debug)]
pub enum AnyTable {
    /// Of IPv4 prefixes.
    Ipv4(Labelled<Ipv4Prefix>),
    /// Of IPv6 prefixes.
    Ipv6(Labelled<Ipv6Prefix>),
    /// Of names.
    Names(Labelled<Name>),
}

impl AnyTable {
    /// Reads a table that takes up to `limit` bytes of memory.
    ///
    /// # Errors
    /// If the bytes are not a whole, sound table with texts as values.
    pub fn decode(bytes: &[u8], limit: u64) -> Result<Self, DecodeError> {
        Ok(match FileKind::of(bytes)? {
            FileKind::Ipv4 => Self::Ipv4(Labelled::decode(bytes, limit)?),
            FileKind::Ipv6 => Self::Ipv6(Labelled::decode(bytes, limit)?),
            FileKind::Names => Self::Names(Labelled::decode(bytes, limit)?),
        })
    }

    /// The bytes of the table, as a file holds them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ipv4(table) => table.encode(),
            Self::Ipv6(table) => table.encode(),
            Self::Names(table) => table.encode(),
        }
    }
}
