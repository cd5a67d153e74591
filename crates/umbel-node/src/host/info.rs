//! Reports on a host, its sets and the other hosts.

use std::time::Duration;

use serde::Serialize;

use super::Coverage;
use crate::value::{Fields, Value};

/// One set, as this host sees it. Rates that are not known are `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct SetInfo {
    /// Its name.
    pub set: String,
    /// Whether this host has keys of its own in it, or has reserved it.
    pub own: bool,
    /// Keys that this host holds.
    pub items: u64,
    /// Keys that all hosts together claim to hold; a key held by several hosts counts for each.
    pub items_everywhere: u64,
    /// Hosts whose replicas are here.
    pub replicas: u64,
    /// Keys that the own filter has room for from the start; in an overlay, per component.
    pub capacity: Option<u64>,
    /// Keys that the own filter can take before it is rebuilt at a larger size.
    pub takes: Option<u64>,
    /// Share of that number that it holds now.
    pub full: Option<f64>,
    /// The rung of the own filter: it has two to this power bits.
    pub rung: Option<u64>,
    /// The rung at which the own keys are published: lower than the filter's if more keys are
    /// reserved than held.
    pub published_rung: Option<u64>,
    /// Components of the own filter, in an overlay.
    pub components: Option<u64>,
    /// Bits of the own filter; in an overlay, of a component.
    pub bits: Option<u64>,
    /// Positions per key.
    pub hashes: Option<u64>,
    /// The policy in force.
    pub policy: Option<String>,
    /// The promised chance that one lookup names any wrong host. In a set of chains: that a depth
    /// is too large by more than the step.
    pub false_positive: Option<f64>,
    /// Whether it is a set of chains, here or at another host: its filters claim one absent key in
    /// ten, so that lookups of single keys name wrong hosts.
    pub loose: bool,
    /// The step of an own set of chains, in keys.
    pub chain_step: Option<u64>,
    /// Number of hosts among which the promised chance is divided.
    pub expected_hosts: Option<u64>,
    /// Default lifetime of keys, in seconds.
    pub lifetime: Option<f64>,
    /// Who confirms one of this host's keys: `none` for the catalogue alone, otherwise how the
    /// cache is asked.
    pub confirm: Option<String>,
    /// Keys that have a lifetime.
    pub expiring: u64,
    /// The false positive rate of the published copy, estimated from its fill.
    pub estimated_false_positive: Option<f64>,
    /// The papers' false negative: the chance that own filter and published copy differ on a random
    /// key. Reported for single sets only, because it takes a pass over all bits.
    pub disagreement: Option<f64>,
    /// Share of the own keys that the published copy denies.
    pub miss: Option<f64>,
    /// Removed keys that the published copy still claims, per own key.
    pub ghost: Option<f64>,
    /// Share of sampled members of other hosts that their replicas here denied.
    pub measured_miss: Option<f64>,
    /// Share of confirmed lookups that named a wrong host.
    pub measured_false_positive: Option<f64>,
    /// Lookups from memory that named no host although one may have held the key: an update that
    /// arrived later claims it. An upper bound, since the key may have been added after the lookup;
    /// an estimate if more than 32 lookups per second name no host.
    pub late_lookups: u64,
    /// Late lookups as a share of late lookups and those that named a host.
    pub late_share: Option<f64>,
    /// Chain queries from memory.
    pub chain_lookups: u64,
    /// Lookups that were confirmed by asking.
    pub lookups_confirmed: u64,
    /// Own claims about which this host's cache was asked.
    pub cache_asked: u64,
    /// Own claims that the cache denied; the catalogue was repaired.
    pub cache_disagreements: u64,
    /// Own claims about which the cache gave no answer.
    pub cache_unanswered: u64,
    /// Updates published.
    pub updates_sent: u64,
    /// Their bytes, each counted once.
    pub bytes_sent: u64,
    /// Bytes that the same updates would have taken as whole filters.
    pub full_broadcast_bytes: u64,
    /// Images and changes of other hosts' filters that arrived.
    pub updates_received: u64,
    /// Bytes of messages about this set that arrived.
    pub bytes_received: u64,
    /// How often the own filter was rebuilt with another shape.
    pub rebuilds: u64,
    /// Bytes that the replicas take here; in an overlay, the routing table.
    pub replica_bytes: u64,
    /// Hosts whose replicas of this set are not accepted here, each with the reason; and this host,
    /// if its own filter may not grow.
    pub not_accepted: Vec<String>,
    /// Routing of this set, in an overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
}

/// A host of the cluster, as this host sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct HostInfo {
    /// Its name.
    pub name: String,
    /// `self`, `up`, `suspected` (it disappeared, and its replicas still answer), `away` (it
    /// announced a restart, and its replicas still answer) or `refused` (the maximum number of
    /// hosts is reached). In an overlay `down` for a neighbour that is not connected, `reached` for
    /// a home within range.
    pub state: &'static str,
    /// Its incarnation.
    pub incarnation: u64,
    /// Where its objects are fetched.
    pub advertise: Option<String>,
    /// Where its Redis clients connect.
    pub resp: Option<String>,
    /// Where it serves HTTP.
    pub http: Option<String>,
    /// Its sets that are known here.
    pub sets: Vec<String>,
    /// The epoch of the update of each of them that answers here.
    pub epochs: Vec<u64>,
    /// Seconds since the last update of any of them arrived.
    pub age: Option<f64>,
    /// Whether everything it has announced has arrived.
    pub current: bool,
    /// Its sets that are not accepted here, each with the reason.
    pub not_accepted: Vec<String>,
}

/// A host's own state.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its cluster.
    pub cluster: String,
    /// The program's version.
    pub version: &'static str,
    /// The target and profile that it was built for, such as `x86_64-linux release`, followed by
    /// the value of `UMBEL_BUILD` at build time.
    pub build: String,
    /// Its incarnation.
    pub incarnation: u64,
    /// Seconds since it started.
    pub uptime: f64,
    /// Whether answers have been complete once since the start, or the deadline for that has
    /// passed.
    pub ready: bool,
    /// Whether answers are complete now.
    pub complete: bool,
    /// Hosts whose sets are known, this one included.
    pub hosts_known: u64,
    /// Hosts that should be known, this one included.
    pub hosts_expected: u64,
    /// Hosts that should be known and are not, at most 32, each with the reason.
    pub missing_hosts: Vec<String>,
    /// Sets that are known.
    pub sets: u64,
    /// Whether the catalogue is stored in a folder.
    pub durable: bool,
    /// Whether changes are accepted: the catalogue can be written.
    pub writable: bool,
    /// Why the catalogue cannot be written, if so.
    pub catalogue_failure: Option<String>,
    /// Messages received.
    pub messages: u64,
    /// Messages rejected.
    pub refused: u64,
    /// Replicas and hosts that are not accepted at present, because of a limit.
    pub not_accepted: u64,
    /// Bytes that count against the limit for replicas.
    pub replica_bytes: u64,
    /// Bytes that replicas may take.
    pub replica_bytes_limit: u64,
    /// Bytes that the filters of own sets take.
    pub own_bytes: u64,
    /// Updates that did not follow the one that was here.
    pub gaps: u64,
    /// Images that differ from what their home announced.
    pub mismatches: u64,
    /// Updates published.
    pub updates_sent: u64,
    /// Their bytes.
    pub update_bytes_sent: u64,
    /// Pages sent to hosts that asked for them, in bytes.
    pub page_bytes_sent: u64,
    /// Events that were dropped because they arrived faster than they could be handled.
    pub dropped: u64,
    /// How often another host used this host's name.
    pub name_taken: u64,
    /// Links to other hosts that this host has opened.
    pub links_opened: u64,
    /// How often a link was opened again because its host did not reply.
    pub links_reopened: u64,
    /// Configured peers that cannot be reached now, with the reason.
    pub waiting_for: Vec<String>,
    /// Directories that own sets follow.
    pub watches: u64,
    /// Sets that do not follow their directories at present, each with the reason.
    pub watch_failures: Vec<String>,
    /// Failed logins, at both client ports.
    pub failed_logins: u64,
    /// The host's part in an overlay, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
}

/// A host's part in an overlay, over all sets or for one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Routing {
    /// The parameters on which all hosts of the overlay agree.
    pub overlay: String,
    /// The configured neighbours.
    pub links: Vec<String>,
    /// Neighbours that are connected.
    pub links_up: Vec<String>,
    /// Other homes within range.
    pub homes: Vec<String>,
    /// Queries that started here and are done.
    pub queries_asked: u64,
    /// Queries of these that found no holder within the limits.
    pub queries_not_found: u64,
    /// Queries of others that this host answered because it holds the key.
    pub queries_answered: u64,
    /// Queries given up because replies did not arrive in time.
    pub queries_given_up: u64,
    /// Queries forwarded over links that claim the key.
    pub forwards: u64,
    /// Forwards of these that found no holder.
    pub wrong_forwards: u64,
    /// Random walk steps forwarded.
    pub walk_forwards: u64,
    /// Filters sent to neighbours, whole or as changes.
    pub filters_sent: u64,
    /// Filters for which an entry had no room.
    pub filters_refused: u64,
}

/// Whether a host's answers have been complete once since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// They have been, or the deadline has passed; with the coverage now.
    Ready(Coverage),
    /// They have not been yet; with the coverage now.
    Waiting(Coverage),
}

pub(super) fn seconds(time: Duration) -> f64 {
    // Microseconds are precise enough, and easier to read.
    (time.as_secs_f64() * 1e6).round() / 1e6
}

macro_rules! fields {
    ($self:ident: $($field:ident),+ $(,)?) => {
        vec![$((stringify!($field), Value::from($self.$field.clone()))),+]
    };
}

impl SetInfo {
    /// The same, as named fields.
    #[must_use]
    pub fn fields(&self) -> Fields {
        let mut fields = fields!(self: set, own, items, items_everywhere, replicas, capacity, takes, full, rung, published_rung, components, bits, hashes, policy, false_positive, loose, chain_step, expected_hosts, lifetime, confirm, expiring, estimated_false_positive, disagreement, miss, ghost, measured_miss, measured_false_positive, late_lookups, late_share, chain_lookups, lookups_confirmed, cache_asked, cache_disagreements, cache_unanswered, updates_sent, bytes_sent, full_broadcast_bytes, updates_received, bytes_received, rebuilds, replica_bytes, not_accepted);
        fields.extend(self.routing.iter().flat_map(Routing::fields));
        fields
    }
}

impl Routing {
    /// The same, as named fields.
    #[must_use]
    pub fn fields(&self) -> Fields {
        fields!(self: overlay, links, links_up, homes, queries_asked, queries_not_found, queries_answered, queries_given_up, forwards, wrong_forwards, walk_forwards, filters_sent, filters_refused)
    }
}

impl HostInfo {
    /// The same, as named fields.
    #[must_use]
    pub fn fields(&self) -> Fields {
        fields!(self: name, state, incarnation, advertise, resp, http, sets, epochs, age, current, not_accepted)
    }
}

impl Status {
    /// The same, as named fields.
    #[must_use]
    pub fn fields(&self) -> Fields {
        let mut fields = fields!(self: name, cluster, version, build, incarnation, uptime, ready, complete, hosts_known, hosts_expected, missing_hosts, sets, durable, writable, catalogue_failure, messages, refused, not_accepted, replica_bytes, replica_bytes_limit, own_bytes, gaps, mismatches, updates_sent, update_bytes_sent, page_bytes_sent, dropped, name_taken, links_opened, links_reopened, waiting_for, watches, watch_failures, failed_logins);
        fields.extend(self.routing.iter().flat_map(Routing::fields));
        fields
    }
}
