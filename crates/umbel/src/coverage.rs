//! How much of a cluster a host knows: which hosts it should know, which of them it does, and why
//! the others are missing. The one place where an answer is called complete.
//!
//! *A host is *expected* if the settings name it, or if it was seen and has not left. A configured
//! address counts as one missing host until it is known which host listens there. A host is *known*
//! if all its sets are here: for each host that the protocol has seen, [`Protocol::heard_of`] tells
//! that, or what is missing ([`Gap`]).
//!
//! Always true: known is at most expected; a coverage without missing hosts is complete, and one
//! with missing hosts names at least one of them.
//!
//! Not here: sockets, greetings and settings (a host's), what is missing of a replica (`mesh`).
//!
//! [`Protocol::heard_of`]: crate::protocol::Protocol::heard_of

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::replica::Name;

/// What is missing of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// Nothing arrives from it.
    Unreachable,
    /// It was seen, but has not sent a greeting yet: its cluster and its hasher are unknown.
    NotGreeted,
    /// Two hosts have its name, and the keys of one of them are denied.
    SharedName,
    /// It was seen, but its messages or sets are refused, for this reason.
    Refused(String),
    /// It knows hosts that this host may not know.
    KnowsOthers,
    /// It is not known which sets it has now, or in its present incarnation.
    NoList,
    /// Some of its sets have not arrived.
    Fetching {
        /// Sets that are here.
        fetched: u64,
        /// Sets that it has.
        sets: u64,
    },
    /// A replica is older than the last one that was announced.
    Behind {
        /// By this many updates.
        epochs: u64,
        /// For this long.
        since: Duration,
    },
}

impl Gap {
    /// A short label, without numbers and names.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::SharedName => "shared_name",
            Self::NotGreeted => "not_greeted",
            Self::Refused(_) => "refused",
            Self::KnowsOthers => "knows_others",
            Self::NoList => "no_list",
            Self::Fetching { .. } => "fetching",
            Self::Behind { .. } => "behind",
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("unreachable"),
            Self::SharedName => f.write_str("two hosts have this name"),
            Self::NotGreeted => f.write_str("waiting for its greeting"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::KnowsOthers => f.write_str("knows hosts that are not known here"),
            Self::NoList => f.write_str("waiting for its list of sets"),
            Self::Fetching { fetched, sets } => write!(f, "fetching {fetched} of {sets} sets"),
            Self::Behind { epochs, since } => {
                let plural = if *epochs == 1 { "" } else { "s" };
                write!(f, "{epochs} epoch{plural} behind for {} s", since.as_secs())
            }
        }
    }
}

/// A peer in the settings, and what is known about its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredPeer {
    /// Its name, if it is in the settings.
    pub name: Option<Name>,
    /// Its address, if it is in the settings.
    pub address: Option<String>,
    /// Which host it is.
    pub identity: Identity,
}

/// Which host listens at a configured address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// Not known yet.
    Unknown,
    /// A host whose messages cannot be used, and why.
    Refused(String),
    /// This host of the cluster.
    Host(Name),
    /// This host itself, or a router: not an expected host.
    NotAHost,
}

/// A host that should be known and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingHost {
    /// Its name, or where it should listen if its name is not known.
    pub host: String,
    /// What is missing.
    pub gap: Gap,
}

/// How much of a cluster a host knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    known: u64,
    expected: u64,
    missing: Vec<MissingHost>,
}

/// The most missing hosts that are listed by name; others are only counted.
const MAX_NAMED: usize = 32;

impl Coverage {
    /// The coverage of a host that knows no other host and expects none.
    #[must_use]
    pub const fn alone() -> Self {
        Self { known: 1, expected: 1, missing: Vec::new() }
    }

    /// The coverage of the host `me`, from the configured peers and the hosts that were seen, each
    /// with what is missing of it.
    #[must_use]
    pub fn new(
        me: &Name,
        configured: impl IntoIterator<Item = ConfiguredPeer>,
        heard_of: impl IntoIterator<Item = (Name, Option<Gap>)>,
    ) -> Self {
        let mut hosts: BTreeMap<Name, Option<Gap>> = heard_of.into_iter().collect();
        let mut addresses = BTreeMap::new();
        for ConfiguredPeer { name, address, identity } in configured {
            let gap = match &identity {
                Identity::NotAHost => continue,
                Identity::Refused(why) => Gap::Refused(why.clone()),
                Identity::Unknown | Identity::Host(_) => Gap::Unreachable,
            };
            let found = match identity {
                Identity::Host(host) => Some(host),
                _ => None,
            };
            match (name, found, address) {
                // Another host may be where the settings say that this one is.
                (Some(name), ..) | (None, Some(name), _) => {
                    hosts.entry(name).or_insert(Some(gap));
                }
                (None, None, Some(address)) => _ = addresses.insert(address, gap),
                (None, None, None) => {}
            }
        }
        hosts.remove(me);
        let known = 1 + hosts.values().filter(|gap| gap.is_none()).count() as u64;
        let expected = 1 + (hosts.len() + addresses.len()) as u64;
        let hosts = hosts.into_iter().filter_map(|(host, gap)| Some((host.to_string(), gap?)));
        let missing = hosts.chain(addresses).map(|(host, gap)| MissingHost { host, gap });
        Self { known, expected, missing: missing.take(MAX_NAMED).collect() }
    }

    /// Whether every expected host is known: an empty answer then means that no host has the key.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.known == self.expected
    }

    /// Hosts whose sets are all known, the own one included.
    #[must_use]
    pub const fn known(&self) -> u64 {
        self.known
    }

    /// Hosts that should be known, the own one included.
    #[must_use]
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    /// Hosts that should be known and are not: the first ones, if there are very many.
    #[must_use]
    pub fn missing(&self) -> &[MissingHost] {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn peer(name: Option<&str>, address: Option<&str>, identity: Identity) -> ConfiguredPeer {
        let name = name.map(|name| Name::new(name).unwrap());
        ConfiguredPeer { name, address: address.map(str::to_owned), identity }
    }

    fn summary(coverage: &Coverage) -> (u64, u64, Vec<String>) {
        let text = |missing: &MissingHost| format!("{}: {}", missing.host, missing.gap);
        (coverage.known(), coverage.expected(), coverage.missing().iter().map(text).collect())
    }

    #[test]
    fn nobody_is_expected_where_nobody_is_configured_or_heard_of() {
        let coverage = Coverage::new(&name("a"), [], []);
        assert_eq!(coverage, Coverage::alone());
        assert!(coverage.is_complete());
    }

    #[test]
    fn an_address_is_one_missing_host_until_somebody_says_who_is_there() {
        let (a, at) = (name("a"), Some("10.0.0.2:7447"));
        let unknown = || [peer(None, at, Identity::Unknown)];
        let coverage = Coverage::new(&a, unknown(), []);
        assert_eq!(summary(&coverage), (1, 2, vec!["10.0.0.2:7447: unreachable".into()]));
        // Some host was seen, perhaps at this address.
        let coverage = Coverage::new(&a, unknown(), [(name("b"), None)]);
        assert_eq!(summary(&coverage), (2, 3, vec!["10.0.0.2:7447: unreachable".into()]));
        let found = || [peer(None, at, Identity::Host(name("b")))];
        let coverage = Coverage::new(&a, found(), [(name("b"), None)]);
        assert_eq!(summary(&coverage), (2, 2, vec![]));
        // It was there, and is no longer seen.
        let coverage = Coverage::new(&a, found(), []);
        assert_eq!(summary(&coverage), (1, 2, vec!["b: unreachable".into()]));
    }

    #[test]
    fn own_addresses_and_routers_are_not_expected() {
        let configured = [
            peer(None, Some("10.0.0.1:7447"), Identity::NotAHost),
            peer(None, Some("10.0.0.9:7447"), Identity::Host(name("a"))),
            peer(Some("a"), None, Identity::Unknown),
        ];
        assert!(Coverage::new(&name("a"), configured, []).is_complete());
    }

    #[test]
    fn a_host_with_a_name_and_several_addresses_counts_once() {
        let configured = [
            peer(Some("b"), Some("10.0.0.2:1"), Identity::Unknown),
            peer(Some("b"), Some("10.0.1.2:1"), Identity::Host(name("b"))),
            peer(None, Some("10.0.2.2:1"), Identity::Host(name("b"))),
            peer(Some("b"), None, Identity::Unknown),
        ];
        let coverage = Coverage::new(&name("a"), configured.clone(), []);
        assert_eq!(summary(&coverage), (1, 2, vec!["b: unreachable".into()]));
        assert!(Coverage::new(&name("a"), configured, [(name("b"), None)]).is_complete());
    }

    #[test]
    fn missing_hosts_are_named_with_the_reason() {
        let refused = Identity::Refused("other cluster".into());
        let configured = [peer(None, Some("10.0.0.2:1"), refused)];
        let heard_of = [
            (name("c"), Some(Gap::Fetching { fetched: 3, sets: 40 })),
            (name("d"), Some(Gap::Behind { epochs: 5, since: Duration::from_millis(4200) })),
            (name("e"), Some(Gap::Behind { epochs: 1, since: Duration::from_secs(1) })),
            (name("f"), Some(Gap::Refused("other hash key".into()))),
            (name("g"), None),
        ];
        let coverage = Coverage::new(&name("a"), configured, heard_of);
        let (known, expected, missing) = summary(&coverage);
        assert_eq!((known, expected, coverage.is_complete()), (2, 7, false));
        let texts = [
            "c: fetching 3 of 40 sets",
            "d: 5 epochs behind for 4 s",
            "e: 1 epoch behind for 1 s",
            "f: refused: other hash key",
            "10.0.0.2:1: refused: other cluster",
        ];
        assert_eq!(missing, texts);
    }

    #[test]
    fn very_many_missing_hosts_are_counted_and_some_are_named() {
        let heard_of = (0..1000).map(|host| (name(&format!("h{host}")), Some(Gap::NoList)));
        let coverage = Coverage::new(&name("a"), [], heard_of);
        assert_eq!((coverage.known(), coverage.expected()), (1, 1001));
        assert_eq!(coverage.missing().len(), MAX_NAMED);
    }
}
