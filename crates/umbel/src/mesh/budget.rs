//! Limits on memory, sets and peers: what a host accepts from others, and how much memory its own
//! sets may take.
//!
//! Every replica is charged by the length in its header, before anything is decoded or allocated.
//! The charge is an upper bound for its copy and its rows. A new replica, or one that grows, may
//! take at most half of the free memory, so that no single peer takes everything. A replica that
//! was accepted is never evicted. A replica that does not fit is refused and counted. The refusal
//! is reported once, and listed until the replica fits or its host is gone.
//!
//! Always true: what all replicas are charged is at most [`MeshConfig::replica_bytes`]. Refusals
//! are listed for at most [`MAX_LISTED`] sets; any others are only counted.
//!
//! [`MeshConfig::replica_bytes`]: super::MeshConfig::replica_bytes

use std::collections::BTreeMap;
use std::fmt;

use super::Engine;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::Event;
use crate::replica::Name;
use crate::replica::receiver::Receiver;

/// Memory of a replica, copy and rows, per bit of its filter: the most that a bank takes.
const ROWS_AND_COPY: u64 = 3;
/// Names, tables and counters of one replica, in bytes.
const OVERHEAD: u64 = 1024;
/// The most refusals that are listed.
pub(super) const MAX_LISTED: usize = 1024;

/// Bytes charged for a replica of this many bits.
#[must_use]
pub const fn replica_bytes_of(bits: u64) -> u64 {
    (bits / 8).saturating_mul(ROWS_AND_COPY).saturating_add(OVERHEAD)
}

/// Why something was not accepted, with the limit that it would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The replica would take more than half of the free budget.
    Budget {
        /// Bytes that it would take in addition to those it takes already.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The filter is longer than accepted.
    TooLong {
        /// Its bits.
        bits: u64,
        /// Bits that are accepted.
        max: u64,
    },
    /// The peer already has the most sets that are accepted.
    Sets {
        /// Sets that are accepted per peer.
        max: usize,
    },
    /// There are already as many peers as are accepted.
    Peers {
        /// Peers that are accepted.
        max: usize,
    },
    /// A set of this host needs a longer filter than its memory permits.
    OwnSets {
        /// Bytes that all own sets may take.
        max: u64,
    },
}

impl Reason {
    /// A short label for the reason, without numbers.
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
            Self::TooLong { bits, max } => {
                write!(f, "its filter has {bits} bits, and {max} are accepted")
            }
            Self::Sets { max } => write!(f, "it has more than the {max} sets that are accepted"),
            Self::Peers { max } => {
                write!(f, "there are {max} other hosts already, as many as are accepted")
            }
            Self::OwnSets { max } => write!(
                f,
                "a longer filter would take this host's own sets past their {max} bytes of memory"
            ),
        }
    }
}

/// Something that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason for the latest refusal.
    pub reason: Reason,
    /// How often it was refused.
    pub count: u64,
}

/// What is not accepted, by host and set. `None` instead of a set means the host as a whole.
pub(super) type Refusals = BTreeMap<(Name, Option<Name>), Refusal>;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// What is not accepted at present: the host, the set (`None` means the host as a whole), and
    /// the refusal. Own sets that may not grow are listed under this host's name.
    pub fn refusals(&self) -> impl Iterator<Item = (&Name, Option<&Name>, &Refusal)> {
        self.refusals.iter().map(|((host, set), refusal)| (host, set.as_ref(), refusal))
    }

    /// Bytes charged for all replicas together.
    #[must_use]
    pub const fn replica_bytes_charged(&self) -> u64 {
        self.charged
    }

    /// Bytes that the filters of own sets and their published copies take.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.own_memory.used()
    }

    /// Whether a replica of this many bits may be held here. Checked before it is decoded.
    pub(super) fn admits(&mut self, home: &Name, set: &Name, bits: u64) -> bool {
        let there = self.sets.get(set).and_then(|set| set.receivers.get(home));
        let (is_new, has) = (there.is_none(), there.map_or(0, charge_of));
        let needed = replica_bytes_of(bits).saturating_sub(has);
        let free = self.config.replica_bytes.saturating_sub(self.charged);
        let (max_sets, max_bits) = (self.config.max_sets_per_peer, self.config.max_bits);
        let reason = if bits > max_bits {
            Some(Reason::TooLong { bits, max: max_bits })
        } else if needed > free / 2 {
            Some(Reason::Budget { needed, free })
        } else if is_new && self.sets_of(home) >= max_sets {
            Some(Reason::Sets { max: max_sets })
        } else {
            None
        };
        match reason {
            None => _ = self.refusals.remove(&(home.clone(), Some(set.clone()))),
            Some(reason) => self.list_refusal(home, Some(set), reason),
        }
        reason.is_none()
    }

    /// Whether a host is accepted as a peer: it is known already, or there is room for one more.
    pub(super) fn admits_peer(&mut self, host: &Name) -> bool {
        let max = self.config.max_peers;
        let admitted = self.peers.contains_key(host) || self.peers.len() < max;
        if !admitted {
            self.list_refusal(host, None, Reason::Peers { max });
        }
        admitted
    }

    /// Counts a refusal and lists it. Reports it if it is new.
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

    /// Removes the refusals of a host that is gone from the list.
    pub(super) fn forget_refusals(&mut self, host: &Name) {
        self.refusals.retain(|(other, _), _| other != host);
    }

    /// Replaces the charge `before` of a replica by its new charge; `None` if the replica is
    /// removed.
    pub(super) fn recharge(&mut self, before: u64, receiver: Option<u64>) {
        self.charged = self.charged.saturating_sub(before) + receiver.unwrap_or(0);
    }

    fn sets_of(&self, home: &Name) -> usize {
        self.peers.get(home).map_or(0, |peer| peer.sets.names().len())
    }
}

/// Bytes charged for a replica in its present size.
pub(super) fn charge_of(receiver: &Receiver) -> u64 {
    replica_bytes_of(receiver.bits())
}
