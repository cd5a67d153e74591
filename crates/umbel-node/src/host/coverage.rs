//! What a host knows of its cluster, as it reports it: see [`umbel::coverage`].
//!
//! The driver computes the coverage several times per second and whenever something changes.
//! Queries read the last result without a lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::{Serialize, Serializer};
use umbel::coverage;
use umbel::replica::Name;

/// The driver computes the coverage at least this often.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A coverage older than this is not trusted: this host was suspended, or gets no processor time.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(2);

/// How much of the cluster an answer covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Coverage {
    /// Whether all sets of all expected hosts are known: an empty answer then means that no host
    /// holds the key. In an overlay: whether all links are up.
    pub complete: bool,
    /// Hosts whose sets are known, this one included.
    pub hosts_known: u64,
    /// Hosts that should be known, this one included: the configured peers, and every host that was
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
    /// One word for the reason.
    #[serde(skip)]
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only metrics report it"))]
    pub(crate) label: &'static str,
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
    /// Combines the coverage from before and after an answer was computed: the answer is complete
    /// only if both are.
    #[must_use]
    pub fn and(self, before: &Self) -> Self {
        let complete = self.complete && before.complete;
        // An incomplete answer must give the reason.
        let later = self.missing_hosts.is_empty() && !complete;
        if later { Self { complete, ..before.clone() } } else { Self { complete, ..self } }
    }
}

impl From<&coverage::Coverage> for Coverage {
    fn from(coverage: &coverage::Coverage) -> Self {
        let missing = coverage.missing().iter().map(|missing| MissingHost {
            host: missing.host.clone(),
            reason: missing.gap.to_string(),
            label: missing.gap.label(),
        });
        Self {
            complete: coverage.is_complete(),
            hosts_known: coverage.known(),
            hosts_expected: coverage.expected(),
            missing_hosts: missing.collect(),
        }
    }
}

/// The last coverage that the driver computed, and when.
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

    /// The last coverage.
    pub(super) fn last(&self) -> Coverage {
        self.0.load().1.clone()
    }

    /// The last coverage; incomplete if it is too old.
    pub(super) fn get(&self, now: Duration, me: &Name) -> Coverage {
        let seen = self.0.load();
        let mut coverage = seen.1.clone();
        if now.saturating_sub(seen.0) > MAX_AGE {
            let (host, reason) = (me.to_string(), String::from("this host was stopped"));
            coverage.complete = false;
            coverage.missing_hosts = [MissingHost { host, reason, label: "stopped" }].into();
        }
        coverage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(missing: &[&str]) -> Coverage {
        let host = |host: &&str| MissingHost {
            host: host.to_string(),
            reason: "gone".into(),
            label: "gone",
        };
        Coverage {
            complete: missing.is_empty(),
            hosts_known: 3 - missing.len() as u64,
            hosts_expected: 3,
            missing_hosts: missing.iter().map(host).collect(),
        }
    }

    /// A host may leave, or come back, while an answer is computed.
    #[test]
    fn an_answer_is_complete_only_if_all_hosts_were_known_before_and_after_it_was_found() {
        let (all, some) = (coverage(&[]), coverage(&["a"]));
        assert_eq!(all.clone().and(&all), all);
        assert_eq!(some.clone().and(&all), some, "it has gone meanwhile");
        assert_eq!(
            all.clone().and(&some),
            some,
            "it has come meanwhile, and who was missing is named"
        );
        let other = coverage(&["b"]);
        assert_eq!(some.clone().and(&other), some, "the later look is named");
        // Not ready yet: no host is missing, but the answer is incomplete.
        let unready = Coverage { complete: false, ..all.clone() };
        assert!(!all.clone().and(&unready).complete && !unready.and(&all).complete);
    }

    #[test]
    fn what_was_seen_too_long_ago_is_not_complete() {
        let (seen, me) = (LastSeen::new(), Name::new("a").unwrap());
        let at = Duration::from_secs(100);
        seen.set(at, coverage(&[]));
        assert!(seen.get(at + MAX_AGE, &me).complete);
        let old = seen.get(at + MAX_AGE + Duration::from_millis(1), &me);
        assert!(!old.complete);
        assert_eq!(old.missing_hosts[0].to_string(), "a: this host was stopped");
    }
}
