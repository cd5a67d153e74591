//! What a host may want to know of routing, and what it counts.

use std::time::Duration;

use crate::replica::{Incarnation, Name};

/// Names a query: who asked, in which life, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId {
    /// The host that asked.
    pub host: Name,
    /// Its life.
    pub incarnation: Incarnation,
    /// Counts its queries.
    pub number: u64,
}

/// A host that holds an object, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The hosts that the query went through: from who tells to who holds, both included.
    pub(super) path: Vec<Name>,
}

impl Holder {
    /// A host that holds the object itself.
    pub(super) fn itself(name: &Name) -> Self {
        Self { path: vec![name.clone()] }
    }

    /// The same holder, told by a host one hop farther away. A path as long as may be told
    /// loses the host after its first.
    pub(super) fn told_by(mut self, host: &Name) -> Self {
        if self.path.len() >= MOST_PATH {
            self.path.remove(0);
        }
        self.path.insert(0, host.clone());
        self
    }

    /// Who it is.
    ///
    /// # Panics
    /// Never: a path has an end.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.path.last().expect("a path has an end")
    }

    /// The hosts that the query went through, from who asked to who holds, both included.
    #[must_use]
    pub fn path(&self) -> &[Name] {
        &self.path
    }

    /// How far it is from who asked.
    #[must_use]
    pub fn hops(&self) -> u32 {
        self.path.len() as u32 - 1
    }
}

/// Hosts of the longest path that is told.
pub(super) const MOST_PATH: usize = 4096;

/// How far and how long a query may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Hops that it may follow filters; more than the plan's depth make no sense.
    pub hops: u8,
    /// Steps of the random walk where no link claims the key.
    pub walk: u32,
    /// How long it may take in all.
    pub patience: Duration,
}

/// What became of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Which query.
    pub query: QueryId,
    /// Hosts that hold the object, each once, in the order of their names, with the way to them;
    /// none: not found within the limits of hops and walk.
    pub holders: Vec<Holder>,
    /// Whether every host that was asked has answered in time.
    pub is_complete: bool,
}

/// Something that happened in routing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A neighbour was heard of, for the first time or again.
    Up(Name),
    /// A neighbour is gone or silent; nothing is routed over its link.
    Down(Name),
    /// Another home is reachable.
    Reached(Name),
    /// A home is reachable no more.
    Lost(Name),
    /// A query's first holder: more may follow until it is [`Event::Located`].
    Found {
        /// Which query.
        query: QueryId,
        /// Who holds the object.
        holder: Holder,
    },
    /// A query is done.
    Located(Located),
    /// The overlay agreed on another plan.
    Replanned {
        /// Keys of a home, on average.
        items: u64,
        /// Filters of an entry.
        filters: u64,
    },
    /// A message was refused; nothing changed.
    Refused {
        /// Who sent it.
        from: Name,
        /// What is wrong with it.
        reason: String,
    },
    /// Another host lives under this host's name.
    NameTaken,
    /// A neighbour speaks of a later life of another neighbour than the one that is linked here, or
    /// neighbours have spoken of different lives of a home for long: two hosts of one name, unless it
    /// has just restarted.
    Namesake {
        /// The neighbour or home that is spoken of.
        host: Name,
        /// The later life.
        life: Incarnation,
    },
}

/// What was counted since the host started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages that arrived.
    pub messages: u64,
    /// Messages that were refused: malformed, of another set or cluster, from no neighbour.
    pub refused: u64,
    /// Filters that an entry had no room for.
    pub refused_filters: u64,
    /// Updates that did not follow on what was here.
    pub gaps: u64,
    /// Filters sent to neighbours, whole or as changes.
    pub adverts_sent: u64,
    /// Bytes of these, and of distances and withdrawals.
    pub advert_bytes_sent: u64,
    /// Lists sent because a neighbour's table and what came of it differed.
    pub repairs_sent: u64,
    /// Queries that were asked here and are done.
    pub asked: u64,
    /// Of these, found nowhere within the limits.
    pub not_found: u64,
    /// Queries of neighbours that this host answered because it holds the object.
    pub answered: u64,
    /// Queries sent on over links that claim the key.
    pub claimed_forwards: u64,
    /// Of these, answered without a holder: mostly noise of the filters.
    pub wrong_forwards: u64,
    /// Steps of walks sent on.
    pub walk_forwards: u64,
    /// Queries that came again: by another way, or repeated.
    pub repeated_queries: u64,
    /// Queries that were given up because answers did not come.
    pub expired_queries: u64,
    /// Messages, events and queries dropped for want of room.
    pub dropped: u64,
}
