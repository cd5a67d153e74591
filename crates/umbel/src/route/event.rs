//! Events and counters of routing.

use std::time::Duration;

use crate::replica::{Incarnation, Name};

/// Identifies a query: the host that asked, its incarnation, and the number of the query there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId {
    /// The host that asked.
    pub host: Name,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Counts its queries.
    pub number: u64,
}

/// A host that holds an object, and the path to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The hosts that the query went through, from the host that reports it to the holder, both
    /// included.
    pub(super) path: Vec<Name>,
}

impl Holder {
    /// A host that holds the object itself.
    pub(super) fn itself(name: &Name) -> Self {
        Self { path: vec![name.clone()] }
    }

    /// The same holder, as reported by a host one hop farther away. If the path already has the
    /// maximum length, its first host is dropped.
    pub(super) fn reported_by(mut self, host: &Name) -> Self {
        if self.path.len() >= MAX_PATH {
            self.path.remove(0);
        }
        self.path.insert(0, host.clone());
        self
    }

    /// The name of the holder.
    ///
    /// # Panics
    /// Never: a path has an end.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.path.last().expect("a path has an end")
    }

    /// The hosts that the query went through, from the host that asked to the holder, both
    /// included.
    #[must_use]
    pub fn path(&self) -> &[Name] {
        &self.path
    }

    /// Number of hops from the host that asked.
    #[must_use]
    pub fn hops(&self) -> u32 {
        self.path.len() as u32 - 1
    }
}

/// The most hosts in a reported path.
pub(super) const MAX_PATH: usize = 4096;

/// How far and how long a query may search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Hops for which it may follow filters; more than the plan's depth are useless.
    pub hops: u8,
    /// Steps of the random walk where no link claims the key.
    pub walk: u32,
    /// How long it may take in all.
    pub patience: Duration,
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Which query.
    pub query: QueryId,
    /// Hosts that hold the object, each once, sorted by name, with the paths to them. Empty if none
    /// was found within the limits of hops and walk.
    pub holders: Vec<Holder>,
    /// Whether every host that was asked replied in time.
    pub is_complete: bool,
}

/// Something that happened in routing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouterEvent {
    /// The link to a neighbour is up, for the first time or again.
    Up(Name),
    /// A neighbour is gone or silent; nothing is routed over its link.
    Down(Name),
    /// Another home is reachable.
    Reached(Name),
    /// A home is no longer reachable.
    Lost(Name),
    /// A query found a holder. More may follow until [`RouterEvent::Located`].
    Found {
        /// Which query.
        query: QueryId,
        /// Who holds the object.
        holder: Holder,
    },
    /// A query is finished.
    Located(Located),
    /// The overlay agreed on another plan.
    Replanned {
        /// Average number of keys per home.
        items: u64,
        /// Number of filters per entry.
        filters: u64,
    },
    /// A message was refused; nothing changed.
    Refused {
        /// Who sent it.
        from: Name,
        /// What is wrong with it.
        reason: String,
    },
    /// Another host uses this host's name.
    NameTaken,
    /// Two hosts seem to have the same name, unless one has just restarted. Either a neighbour
    /// advertises a later incarnation of another neighbour than the one linked here, or neighbours
    /// have advertised different incarnations of a home for long.
    Namesake {
        /// The neighbour or home with this name.
        host: Name,
        /// The later incarnation.
        life: Incarnation,
    },
}

/// What was counted since the host started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RouterCounters {
    /// Messages that arrived.
    pub messages: u64,
    /// Messages that were refused: malformed, of another set or cluster, from no neighbour.
    pub refused: u64,
    /// Filters that an entry had no room for.
    pub refused_filters: u64,
    /// Updates whose base was not the filter held here.
    pub gaps: u64,
    /// Filters sent to neighbours, whole or as changes.
    pub adverts_sent: u64,
    /// Bytes of these filters, and of distances and withdrawals.
    pub advert_bytes_sent: u64,
    /// Lists sent because what arrived from a neighbour differed from what it sent.
    pub repairs_sent: u64,
    /// Queries that were asked here and are finished.
    pub asked: u64,
    /// Of these, found nowhere within the limits.
    pub not_found: u64,
    /// Queries of neighbours that this host answered because it holds the object.
    pub answered: u64,
    /// Queries forwarded over links that claim the key.
    pub claimed_forwards: u64,
    /// Of these, answered without a holder: mostly false positives of the filters.
    pub wrong_forwards: u64,
    /// Steps of random walks forwarded.
    pub walk_forwards: u64,
    /// Queries that arrived again: over another link, or repeated.
    pub repeated_queries: u64,
    /// Queries that were given up because replies did not arrive in time.
    pub expired_queries: u64,
    /// Messages, events and queries dropped because there was no room.
    pub dropped: u64,
}
