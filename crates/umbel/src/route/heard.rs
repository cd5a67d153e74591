//! The state of a link: which homes the neighbour advertised to us, and which we advertised to it.
//!
//! The sender keeps a list of what it advertised, and the receiver a list of what it received. They
//! compare the sums of these lists in every hello, so that any lost message is detected.

use std::collections::BTreeMap;
use std::time::Duration;

use super::message::{KnownHome, Version};
use super::parts::Parts;
use super::table::LinkId;
use crate::key_hash::KeyHasher;
use crate::replica::{Incarnation, Name};

/// What was advertised about a home over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Advertised {
    pub(super) version: Version,
    pub(super) hops: u8,
}

/// A link that is up.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) incarnation: Option<Incarnation>,
    pub(super) heard_at: Duration,
    /// What the neighbour advertised to us.
    pub(super) heard: BTreeMap<Name, Advertised>,
    /// Those of these homes that the entry had no room for, with their numbers of filters.
    pub(super) refused: BTreeMap<Name, u64>,
    /// What we advertised to the neighbour.
    pub(super) advertised: BTreeMap<Name, Advertised>,
    pub(super) parts: Parts,
    /// Number of consecutive hellos whose sum differed from ours.
    pub(super) differing: u32,
    /// When we last sent the neighbour a list of what it advertised.
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
            advertised: BTreeMap::new(),
            parts: Parts::default(),
            differing: 0,
            repaired_at: None,
        }
    }

    /// Filters that were offered over the link, including refused ones.
    pub(super) fn offered(&self, admitted: u64) -> u64 {
        admitted + self.refused.values().sum::<u64>()
    }
}

/// A sum over what was advertised; does not depend on the order.
pub(super) fn sum_of(said: &BTreeMap<Name, Advertised>) -> u64 {
    let hasher = KeyHasher::default();
    let hash = |(home, said): (&Name, &Advertised)| {
        let mut bytes = Vec::new();
        KnownHome { home: home.clone(), version: said.version, hops: said.hops }.write(&mut bytes);
        hasher.hash(&bytes).get()
    };
    said.iter().map(hash).fold(0, u64::wrapping_add)
}
