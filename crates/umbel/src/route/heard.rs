//! A neighbour: what it said of homes, and what it was told.
//!
//! Both sides of a link keep the same list, one of what it said and one of what it heard, and
//! compare their sums in every hello: a lost message shows, whatever it was.

use std::collections::BTreeMap;
use std::time::Duration;

use super::message::{Told, Version};
use super::parts::Parts;
use super::table::LinkId;
use crate::key_hash::KeyHasher;
use crate::replica::{Incarnation, Name};

/// What was said of a home over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) version: Version,
    pub(super) hops: u8,
}

/// A link that is up.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) incarnation: Option<Incarnation>,
    pub(super) heard_at: Duration,
    /// What the neighbour said.
    pub(super) heard: BTreeMap<Name, Said>,
    /// Homes of these that the entry had no room for.
    pub(super) refused: BTreeMap<Name, u64>,
    /// What the neighbour was told.
    pub(super) told: BTreeMap<Name, Said>,
    pub(super) parts: Parts,
    /// Hellos in a row whose sum was another.
    pub(super) differing: u32,
    /// When the neighbour was last sent a list of what it said.
    pub(super) repaired_at: Option<Duration>,
}

impl Link {
    pub(super) fn new(now: Duration, id: LinkId) -> Self {
        Self {
            id,
            incarnation: None,
            heard_at: now,
            heard: BTreeMap::new(),
            refused: BTreeMap::new(),
            told: BTreeMap::new(),
            parts: Parts::default(),
            differing: 0,
            repaired_at: None,
        }
    }

    /// Filters that were offered over the link, refused ones too.
    pub(super) fn offered(&self, admitted: u64) -> u64 {
        admitted + self.refused.values().sum::<u64>()
    }
}

/// A sum of what was said, in any order.
pub(super) fn sum_of(said: &BTreeMap<Name, Said>) -> u64 {
    let hasher = KeyHasher::default();
    let hash = |(home, said): (&Name, &Said)| {
        let mut bytes = Vec::new();
        Told { home: home.clone(), version: said.version, hops: said.hops }.write(&mut bytes);
        hasher.hash(&bytes).get()
    };
    said.iter().map(hash).fold(0, u64::wrapping_add)
}
