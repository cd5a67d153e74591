//! What a host is told once, when it starts.

use std::time::Duration;

use crate::key_hash::KeyHasher;
use crate::replica::{Incarnation, Intervals, Name};

/// When the work is done that follows from a change of an own set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// By the change itself: for one thread, which need not call anything else.
    AtOnce,
    /// When the engine is told that time has passed: changes stay short, and can be made by other
    /// threads.
    Deferred,
}

/// What a host is told once, when it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The host's own name.
    pub name: Name,
    /// This life of it: see [`Incarnation::next`].
    pub incarnation: Incarnation,
    /// How everybody in the cluster hashes keys.
    pub hasher: KeyHasher,
    /// Update intervals where a policy is silent.
    pub intervals: Intervals,
    /// From one announcement to the next.
    pub announce_every: Duration,
    /// How long a host that disappeared keeps answering through its replicas.
    pub grace: Duration,
    /// How long a host may say nothing at all before it counts as gone.
    pub silence: Duration,
    /// How long a host that disappeared without leaving is still expected.
    pub forget: Duration,
    /// How long a replica may be older than what was announced while its host counts as known.
    pub max_lag: Duration,
    /// How long a host that says that it restarts keeps answering through its replicas, at most.
    pub max_absence: Duration,
    /// How long to wait for a page the first time; doubled with every try, up to 8 times.
    pub page_patience: Duration,
    /// Most bits that are accepted of one home's set.
    pub max_bits: u64,
    /// Memory for all replicas together: copies, rows and what is on its way.
    pub replica_bytes: u64,
    /// Memory for the filters of own sets and their published copies.
    pub own_bytes: u64,
    /// Most sets that are accepted of one peer.
    pub max_sets_per_peer: usize,
    /// Most other hosts that are heard of.
    pub max_peers: usize,
    /// When own sets that were changed are published.
    pub work: Work,
    /// Filters of own sets of more keys than this are built in steps, if work is deferred: see
    /// [`LocalSet::build_part`](super::LocalSet::build_part).
    pub max_keys_at_once: u64,
    /// Updates of longer filters are encoded by whoever calls
    /// [`Engine::poll_encoding`](super::Engine::poll_encoding), if work is deferred.
    pub max_bits_at_once: u64,
    /// Seed of what looks random: which members are sampled, jitter of retries.
    pub seed: u64,
}

impl Config {
    /// The defaults for a host of this name and life.
    #[must_use]
    pub const fn new(name: Name, incarnation: Incarnation, hasher: KeyHasher) -> Self {
        Self {
            name,
            incarnation,
            hasher,
            intervals: Intervals::DEFAULT,
            announce_every: Duration::from_secs(3),
            grace: Duration::from_secs(4),
            silence: Duration::from_secs(15),
            forget: Duration::from_secs(24 * 3600),
            max_lag: Duration::from_secs(1),
            max_absence: Duration::from_secs(60),
            page_patience: Duration::from_millis(1000),
            max_bits: 1 << 33,
            replica_bytes: 1 << 34,
            own_bytes: 1 << 36,
            max_sets_per_peer: 1 << 16,
            max_peers: 1 << 14,
            work: Work::AtOnce,
            max_keys_at_once: 4096,
            max_bits_at_once: 1 << 20,
            seed: 0,
        }
    }
}
