//! How a host's sets are stored in one store.
//!
//! ```text
//! v                     version of this layout, u32 little-endian; none: 1
//! h                     incarnation, u64 little-endian
//! s <set name>          JSON: number, plan, lifetime; what a Redis client made it as
//! k <number, u32> <key> component, u32 little-endian
//! f <number, u32>       component, u32 little-endian: where keys of lower ones are now
//! l <number, u32> <key> when the key expires: milliseconds since 1970, u64 little-endian
//! c <number, u32> <key> how often a key of a cuckoo filter was added after the first time, u32 little-endian
//! d <number, u32>       how many items of a cuckoo filter were deleted, u64 little-endian
//! ```
//!
//! Numbers of sets are big-endian, so that a set's keys are adjacent. They are never reused, so
//! that keys of a deleted set which a crash left behind belong to no set.

use serde::{Deserialize, Serialize};
use umbel::design::chain::ChainPromise;
use umbel::design::ladder::{Rung, Standing};

use crate::filter_kind::FilterKind;

/// Identifies a set within a host's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SetNumber(pub(crate) u32);

/// The stored record of an own set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SetRecord {
    pub(crate) number: SetNumber,
    pub(crate) false_positive: f64,
    pub(crate) capacity: Option<u64>,
    pub(crate) expected_hosts: Option<u32>,
    /// Its position on its ladder: the exponent of its rung, and the number of hosts it was planned
    /// for.
    #[serde(default)]
    pub(crate) rung: Option<u32>,
    #[serde(default)]
    pub(crate) planned_hosts: Option<u32>,
    pub(crate) policy: String,
    /// Default lifetime of its keys, in milliseconds.
    pub(crate) lifetime_ms: Option<u64>,
    /// Who confirms one of this host's keys: the catalogue or the cache.
    #[serde(default)]
    pub(crate) confirm: Option<String>,
    /// The filter kind with which a Redis client created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<FilterKind>,
    /// Its promise, if it is a set of chains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chains: Option<ChainRecord>,
}

/// The promise of a set of chains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChainRecord {
    step: u32,
    over_estimate: f64,
    max_length: u32,
}

impl From<ChainPromise> for ChainRecord {
    fn from(promise: ChainPromise) -> Self {
        let ChainPromise { step, over_estimate, max_length } = promise;
        Self { step, over_estimate, max_length }
    }
}

impl From<ChainRecord> for ChainPromise {
    fn from(record: ChainRecord) -> Self {
        let ChainRecord { step, over_estimate, max_length } = record;
        Self { step, over_estimate, max_length }
    }
}

impl SetRecord {
    /// The set's position on its ladder.
    pub(crate) fn standing(&self) -> Option<Standing> {
        let (rung, hosts) = (Rung::new(self.rung?)?, self.planned_hosts?);
        Some(Standing { rung, hosts })
    }
}

/// The newest layout that this program reads, and the one it writes.
pub(crate) const VERSION: u32 = 1;

pub(crate) const VERSION_NAME: &[u8] = b"v";
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

pub(crate) fn floor(set: SetNumber) -> Box<[u8]> {
    [b"f", &set.0.to_be_bytes()[..]].concat().into()
}

pub(crate) fn lifetimes(set: SetNumber) -> Vec<u8> {
    [b"l", &set.0.to_be_bytes()[..]].concat()
}

pub(crate) fn lifetime(set: SetNumber, key: &[u8]) -> Box<[u8]> {
    [b"l", &set.0.to_be_bytes()[..], key].concat().into()
}

pub(crate) fn counts(set: SetNumber) -> Vec<u8> {
    [b"c", &set.0.to_be_bytes()[..]].concat()
}

pub(crate) fn count(set: SetNumber, key: &[u8]) -> Box<[u8]> {
    [b"c", &set.0.to_be_bytes()[..], key].concat().into()
}

pub(crate) fn deleted(set: SetNumber) -> Box<[u8]> {
    [b"d", &set.0.to_be_bytes()[..]].concat().into()
}
