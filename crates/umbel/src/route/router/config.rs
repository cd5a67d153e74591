//! The configuration of a router, set when it starts.

use std::time::Duration;

use crate::key_hash::KeyHasher;
use crate::replica::{Epoch, Incarnation, Intervals, Name, Policy};
use crate::route::Plan;

/// The configuration of a router, set when it starts.
#[derive(Debug, Clone)]
pub struct RouterConfig {
    /// The host's own name.
    pub name: Name,
    /// The incarnation of this run of the host: see [`Incarnation::next`].
    pub incarnation: Incarnation,
    /// The last update that an earlier router of this incarnation published; 0 if there was none.
    pub epoch: Epoch,
    /// The set that is routed: a host has one router per set.
    pub set: Name,
    /// How all hosts of the overlay hash keys.
    pub hasher: KeyHasher,
    /// The initial plan. A neighbour's plan with a higher number replaces it.
    pub plan: Plan,
    /// Whether the overlay measures the keys per home and filters per link, and makes a new plan
    /// when they drift from the present one.
    pub is_measured: bool,
    /// When the published filter is too stale.
    pub policy: Policy,
    /// Update intervals that apply where the policy sets none.
    pub intervals: Intervals,
    /// Time between two hellos.
    pub hello_every: Duration,
    /// How long a neighbour may send nothing at all before its link counts as down.
    pub silence: Duration,
    /// How long to wait for a reply before a query is retried; doubled with every retry.
    pub retry: Duration,
    /// How long a query may take in all.
    pub patience: Duration,
    /// Steps of the random walk of a query whose key no link claims.
    pub walk: u32,
    /// The most bits that are accepted in one home's filter, all components together.
    pub max_bits: u64,
    /// Seed of the random numbers: where walks go.
    pub seed: u64,
}

impl RouterConfig {
    /// The defaults for a host of this name and incarnation.
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
