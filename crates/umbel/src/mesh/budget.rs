//! What a host accepts of others, and what its own sets may take: limits on memory, sets, peers.
//!
//! Every replica is charged by the length that its header names, before anything is decoded or
//! allocated: copy and rows together, from above. A new replica, or one that grows, may take at
//! most half of what is free, so that no single peer takes everything; nothing that was accepted
//! is evicted. What does not fit is refused and counted, told of once, and listed until it fits,
//! or until its host is gone.
//!
//! Always true: what all replicas are charged is at most [`Config::replica_bytes`]. Refusals are
//! listed for at most [`MAX_LISTED`] sets; others are counted only.
//!
//! [`Config::replica_bytes`]: super::Config::replica_bytes

use std::collections::BTreeMap;
use std::fmt;

use super::Engine;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::Event;
use crate::replica::Name;
use crate::replica::receiver::Receiver;

/// Copy and rows of a replica, in bits for each bit: what a bank takes at most.
const ROWS_AND_COPY: u64 = 3;
/// Names, tables and counters of one replica, in bytes.
const OVERHEAD: u64 = 1024;
/// Refusals that are listed.
pub(super) const MAX_LISTED: usize = 1024;

/// Bytes that a replica of so many bits is charged.
#[must_use]
pub const fn replica_bytes_of(bits: u64) -> u64 {
    (bits / 8).saturating_mul(ROWS_AND_COPY).saturating_add(OVERHEAD)
}

/// Why something was not accepted, with the limit that it would pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The replica would take more than half of the free budget.
    Budget {
        /// Bytes that it would take, beyond what it takes already.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The filter is longer than accepted.
    TooLong {
        /// Its bits.
        bits: u64,
        /// Bits that are accepted.
        most: u64,
    },
    /// The peer has as many sets as accepted.
    Sets {
        /// Sets that are accepted of a peer.
        most: usize,
    },
    /// There are as many peers as accepted.
    Peers {
        /// Peers that are accepted.
        most: usize,
    },
    /// A set of this host needs a longer filter than its memory permits.
    OwnSets {
        /// Bytes that all own sets may take.
        most: u64,
    },
}

impl Reason {
    /// A word for it, without numbers.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Budget { .. } => "budget",
            Self::TooLong { .. } => "too_long",
            Self::Sets { .. } => "sets",
            Self::Peers { .. } => "peers",
            Self::OwnSets { .. } => "own_sets",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { needed, free } => write!(
                f,
                "its replica needs {needed} bytes, more than half of the {free} bytes that are free for replicas"
            ),
            Self::TooLong { bits, most } => {
                write!(f, "its filter has {bits} bits, and {most} are accepted")
            }
            Self::Sets { most } => write!(f, "it has more than the {most} sets that are accepted"),
            Self::Peers { most } => {
                write!(f, "there are {most} other hosts already, as many as are accepted")
            }
            Self::OwnSets { most } => write!(
                f,
                "a longer filter would take this host's own sets past their {most} bytes of memory"
            ),
        }
    }
}

/// Something that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, when it was last refused.
    pub reason: Reason,
    /// How often.
    pub count: u64,
}

/// What is not accepted, by host and set; no set stands for the host as a whole.
pub(super) type Refusals = BTreeMap<(Name, Option<Name>), Refusal>;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// What is not accepted at present: whose, which set (none: the host as a whole), and why.
    /// Own sets that may not grow are listed under this host's name.
    pub fn refusals(&self) -> impl Iterator<Item = (&Name, Option<&Name>, &Refusal)> {
        self.refusals.iter().map(|((host, set), refusal)| (host, set.as_ref(), refusal))
    }

    /// Bytes that all replicas are charged.
    #[must_use]
    pub const fn replica_bytes_charged(&self) -> u64 {
        self.charged
    }

    /// Bytes that the filters of own sets and their published copies take.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.own_memory.used()
    }

    /// Whether a replica of so many bits may be held here: charged before it is decoded.
    pub(super) fn admits(&mut self, home: &Name, set: &Name, bits: u64) -> bool {
        let there = self.sets.get(set).and_then(|set| set.receivers.get(home));
        let (is_new, has) = (there.is_none(), there.map_or(0, charge_of));
        let needed = replica_bytes_of(bits).saturating_sub(has);
        let free = self.config.replica_bytes.saturating_sub(self.charged);
        let (most_sets, most_bits) = (self.config.max_sets_per_peer, self.config.max_bits);
        let reason = if bits > most_bits {
            Some(Reason::TooLong { bits, most: most_bits })
        } else if needed > free / 2 {
            Some(Reason::Budget { needed, free })
        } else if is_new && self.sets_of(home) >= most_sets {
            Some(Reason::Sets { most: most_sets })
        } else {
            None
        };
        match reason {
            None => _ = self.refusals.remove(&(home.clone(), Some(set.clone()))),
            Some(reason) => self.list_refusal(home, Some(set), reason),
        }
        reason.is_none()
    }

    /// Whether a host may be heard of: known, or one more than are known.
    pub(super) fn admits_peer(&mut self, host: &Name) -> bool {
        let most = self.config.max_peers;
        let admitted = self.peers.contains_key(host) || self.peers.len() < most;
        if !admitted {
            self.list_refusal(host, None, Reason::Peers { most });
        }
        admitted
    }

    /// Counts a refusal, lists it, and tells of it when it is new.
    pub(super) fn list_refusal(&mut self, host: &Name, set: Option<&Name>, reason: Reason) {
        self.counters.refused += 1;
        let key = (host.clone(), set.cloned());
        if let Some(listed) = self.refusals.get_mut(&key) {
            listed.count += 1;
            let is_same = std::mem::discriminant(&listed.reason) == std::mem::discriminant(&reason);
            listed.reason = reason;
            if is_same {
                return;
            }
        } else if self.refusals.len() < MAX_LISTED {
            self.refusals.insert(key, Refusal { reason, count: 1 });
        } else {
            return;
        }
        let reason = match set {
            Some(set) => format!("set {set}: {reason}"),
            None => reason.to_string(),
        };
        self.event(Event::Refused { from: host.clone(), reason });
    }

    /// What was refused of a host that is gone is listed no more.
    pub(super) fn forget_refusals(&mut self, host: &Name) {
        self.refusals.retain(|(other, _), _| other != host);
    }

    /// A replica was charged `before`: it is charged what it takes now.
    pub(super) fn recharge(&mut self, before: u64, receiver: Option<u64>) {
        self.charged = self.charged.saturating_sub(before) + receiver.unwrap_or(0);
    }

    fn sets_of(&self, home: &Name) -> usize {
        self.peers.get(home).map_or(0, |peer| peer.sets.names().len())
    }
}

/// Bytes that a replica is charged as it is.
pub(super) fn charge_of(receiver: &Receiver) -> u64 {
    replica_bytes_of(receiver.bits())
}
