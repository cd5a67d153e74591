//! What a router is told once, when it starts.

use std::time::Duration;

use crate::key_hash::KeyHasher;
use crate::replica::{Epoch, Incarnation, Intervals, Name, Policy};
use crate::route::Plan;

/// What a router is told once, when it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The host's own name.
    pub name: Name,
    /// This life of it: see [`Incarnation::next`].
    pub incarnation: Incarnation,
    /// The last update that an earlier router of this life published; 0 if there was none.
    pub epoch: Epoch,
    /// The set that is routed: a host has a router for each.
    pub set: Name,
    /// How everybody in the overlay hashes keys.
    pub hasher: KeyHasher,
    /// What to begin with; a plan of a higher number that a neighbour has takes its place.
    pub plan: Plan,
    /// Whether the overlay measures keys a home and filters a link, and plans anew when they
    /// drift from the plan.
    pub is_measured: bool,
    /// When the published filter is too stale.
    pub policy: Policy,
    /// Update intervals where the policy is silent.
    pub intervals: Intervals,
    /// From one hello to the next.
    pub hello_every: Duration,
    /// How long a neighbour may say nothing at all before its link counts as down.
    pub silence: Duration,
    /// How long to wait for an answer before a query is sent again; doubled with every try.
    pub retry: Duration,
    /// How long a query may take in all.
    pub patience: Duration,
    /// Steps of the random walk of a query that no link claims.
    pub walk: u32,
    /// Most bits that are accepted of one home's filter, all components together.
    pub max_bits: u64,
    /// Seed of what looks random: where walks go.
    pub seed: u64,
}

impl Config {
    /// The defaults for a host of this name and life.
    #[must_use]
    pub fn new(
        name: Name,
        incarnation: Incarnation,
        set: Name,
        hasher: KeyHasher,
        plan: Plan,
    ) -> Self {
        Self {
            name,
            incarnation,
            epoch: Epoch(0),
            set,
            hasher,
            plan,
            is_measured: false,
            policy: Policy::default(),
            intervals: Intervals::default(),
            hello_every: Duration::from_secs(3),
            silence: Duration::from_secs(15),
            retry: Duration::from_millis(500),
            patience: Duration::from_secs(10),
            walk: 128,
            max_bits: 1 << 30,
            seed: 0,
        }
    }
}
