//! The configuration of a host, which does not change while it runs.

use std::time::Duration;

use crate::key_hash::KeyHasher;
use crate::replica::{Incarnation, Intervals, Name};

/// When the work is done that follows from a change of an own set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// As part of the change: for a single thread, which need not call anything else.
    AtOnce,
    /// In `handle_timeout`: changes stay short, and other threads can make them.
    Deferred,
}

/// The configuration of a host, which does not change while it runs.
#[derive(Debug, Clone)]
pub struct MeshConfig {
    /// The host's own name.
    pub name: Name,
    /// The incarnation of this run of the host: see [`Incarnation::next`].
    pub incarnation: Incarnation,
    /// How all hosts of the cluster hash keys.
    pub hasher: KeyHasher,
    /// Update intervals for sets whose policy does not set them.
    pub intervals: Intervals,
    /// Time between two announcements.
    pub announce_every: Duration,
    /// How long lookups keep using the replicas of a host that disappeared.
    pub grace: Duration,
    /// How long a host may send nothing at all before it counts as gone.
    pub silence: Duration,
    /// How long a host that disappeared without leaving is still expected.
    pub forget: Duration,
    /// How long a replica may be behind the announced epoch before its host no longer counts as
    /// known.
    pub max_lag: Duration,
    /// The longest time for which lookups keep using the replicas of a host that announced a
    /// restart.
    pub max_absence: Duration,
    /// How long to wait for a page at the first try; doubled with every retry, up to 8 times as
    /// long.
    pub page_patience: Duration,
    /// The most bits that are accepted in the filter of one set of one home.
    pub max_bits: u64,
    /// Memory for all replicas together: copies, rows and images that are being fetched.
    pub replica_bytes: u64,
    /// Memory for the filters of own sets and their published copies.
    pub own_bytes: u64,
    /// The most sets that are accepted per peer.
    pub max_sets_per_peer: usize,
    /// The most other hosts that are accepted as peers.
    pub max_peers: usize,
    /// When own sets that were changed are published.
    pub work: Work,
    /// If work is deferred, filters of own sets of more keys than this are built in steps: see
    /// [`LocalSet::build_part`](super::LocalSet::build_part).
    pub max_keys_at_once: u64,
    /// If work is deferred, updates of filters with more bits than this are encoded by the caller
    /// of [`Engine::poll_encoding`](super::Engine::poll_encoding).
    pub max_bits_at_once: u64,
    /// Seed of the random numbers: which members are sampled, jitter of retries.
    pub seed: u64,
}

impl MeshConfig {
    /// The defaults for a host of this name and incarnation.
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
