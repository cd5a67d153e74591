//! How a host's sets lie in one store.
//!
//! ```text
//! h                     incarnation, u64 little-endian
//! s <set name>          JSON: number, plan, lifetime
//! k <number, u32> <key> component, u32 little-endian
//! l <number, u32> <key> when the key expires: milliseconds since 1970, u64 little-endian
//! ```
//!
//! Numbers of sets are big-endian, so that a set's keys lie together; they are never given
//! again, so that keys that a crash left of a deleted set belong to nobody.

use serde::{Deserialize, Serialize};

/// Names a set within a host's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SetNumber(pub(crate) u32);

/// What a host remembers of a set of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SetRecord {
    pub(crate) number: SetNumber,
    pub(crate) false_positive: f64,
    pub(crate) capacity: u64,
    pub(crate) expected_hosts: u32,
    pub(crate) policy: String,
    /// Default lifetime of its keys, in milliseconds.
    pub(crate) lifetime_ms: Option<u64>,
    /// Whose word counts when a key is confirmed.
    #[serde(default)]
    pub(crate) confirm: Option<String>,
}

pub(crate) const INCARNATION: &[u8] = b"h";
pub(crate) const SETS: &[u8] = b"s";

pub(crate) fn set(name: &str) -> Box<[u8]> {
    [SETS, name.as_bytes()].concat().into()
}

pub(crate) fn keys(set: SetNumber) -> Vec<u8> {
    [b"k", &set.0.to_be_bytes()[..]].concat()
}

pub(crate) fn key(set: SetNumber, key: &[u8]) -> Box<[u8]> {
    [b"k", &set.0.to_be_bytes()[..], key].concat().into()
}

pub(crate) fn lifetimes(set: SetNumber) -> Vec<u8> {
    [b"l", &set.0.to_be_bytes()[..]].concat()
}

pub(crate) fn lifetime(set: SetNumber, key: &[u8]) -> Box<[u8]> {
    [b"l", &set.0.to_be_bytes()[..], key].concat().into()
}
