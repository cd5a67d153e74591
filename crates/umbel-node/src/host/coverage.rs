//! What a host knows of its cluster, as it reports it: see [`umbel::coverage`].
//!
//! The driver looks at it, several times a second and whenever something changes; questions read
//! what it saw last, without a lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::{Serialize, Serializer};
use umbel::coverage;
use umbel::replica::Name;

/// The driver looks at least this often.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What the driver saw longer ago than this is not believed: this host was stopped, or starves.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(2);

/// How much of the cluster an answer covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Coverage {
    /// Whether all sets of all hosts that should be known are: an empty answer then means that
    /// nobody has it. In an overlay: whether all links are up.
    pub complete: bool,
    /// Hosts whose sets are known, this one included.
    pub hosts_known: u64,
    /// Hosts that should be known, this one included: configured peers, and every host that was
    /// heard of and has not left.
    pub hosts_expected: u64,
    /// Hosts that should be known and are not, at most 32 of them.
    #[serde(skip_serializing_if = "is_empty", serialize_with = "as_list")]
    #[cfg_attr(feature = "http", schema(value_type = Vec<MissingHost>))]
    pub missing_hosts: Arc<[MissingHost]>,
}

/// A host that should be known and is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct MissingHost {
    /// Its name, or its address if its name is not known.
    pub host: String,
    /// What is missing, such as `unreachable` or `fetching 3 of 40 sets`.
    pub reason: String,
}

impl fmt::Display for MissingHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.host, self.reason)
    }
}

fn as_list<S: Serializer>(hosts: &Arc<[MissingHost]>, to: S) -> Result<S::Ok, S::Error> {
    hosts.as_ref().serialize(to)
}

fn is_empty(hosts: &Arc<[MissingHost]>) -> bool {
    hosts.is_empty()
}

impl Coverage {
    /// What two looks cover, one before and one after an answer was found: an answer is complete
    /// if both are.
    #[must_use]
    pub fn and(self, before: &Self) -> Self {
        let complete = self.complete && before.complete;
        // Whoever is told that an answer is incomplete is told why.
        let later = self.missing_hosts.is_empty() && !complete;
        if later { Self { complete, ..before.clone() } } else { Self { complete, ..self } }
    }
}

impl From<&coverage::Coverage> for Coverage {
    fn from(coverage: &coverage::Coverage) -> Self {
        let missing = coverage.missing().iter().map(|missing| MissingHost {
            host: missing.host.clone(),
            reason: missing.gap.to_string(),
        });
        Self {
            complete: coverage.is_complete(),
            hosts_known: coverage.known(),
            hosts_expected: coverage.expected(),
            missing_hosts: missing.collect(),
        }
    }
}

/// The coverage that the driver saw last, and when.
#[derive(Debug)]
pub(super) struct LastSeen(ArcSwap<(Duration, Coverage)>);

impl LastSeen {
    pub(super) fn new() -> Self {
        let coverage = Coverage::from(&coverage::Coverage::alone());
        Self(ArcSwap::from_pointee((Duration::ZERO, coverage)))
    }

    pub(super) fn set(&self, now: Duration, coverage: Coverage) {
        self.0.store(Arc::new((now, coverage)));
    }

    /// As it was seen last.
    pub(super) fn last(&self) -> Coverage {
        self.0.load().1.clone()
    }

    /// As it was seen last; not complete if that is too long ago.
    pub(super) fn get(&self, now: Duration, me: &Name) -> Coverage {
        let seen = self.0.load();
        let mut coverage = seen.1.clone();
        if now.saturating_sub(seen.0) > MAX_AGE {
            let (host, reason) = (me.to_string(), String::from("this host was stopped"));
            coverage.complete = false;
            coverage.missing_hosts = [MissingHost { host, reason }].into();
        }
        coverage
    }
}
