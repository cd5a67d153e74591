//! The protocols that are tested in worlds, and what is needed of each to check it.

use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{self, Engine, Work};
use umbel::overlay::{self, Overlay};
use umbel::protocol::Protocol;
use umbel::replica::{Epoch, Incarnation, Intervals, Name};
use umbel::route::{self, QueryId};
use umbel::{HashId, KeyHasher, Seed};

use super::links::Links;

/// One state of a home's filter: incarnation, epoch, and the checksum of its bits.
pub(super) type Version = (Incarnation, Epoch, u64);

/// A host that starts.
pub(super) struct Start<'a> {
    pub(super) name: &'a Name,
    pub(super) number: usize,
    pub(super) incarnation: Incarnation,
    pub(super) seed: u64,
}

/// A protocol that is run in worlds of faults.
pub(super) trait Subject: Protocol<MemoryCatalogue> + Sized {
    /// Whether hosts know their neighbours only.
    const IS_OVERLAY: bool;

    fn start(host: &Start<'_>, links: &Links) -> Self;

    /// The version of a set that this host last published.
    fn published(&self, set: &Name) -> Option<Version>;

    /// The version of another host's set that this host has.
    fn held(&self, set: &Name, home: &Name) -> Option<Version>;

    /// Sends a query for the holders of a key, if the protocol has queries.
    fn ask(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<QueryId>;
}

/// Short intervals, so that there are many updates in a world.
pub(super) const INTERVALS: Intervals = Intervals {
    shortest: Duration::from_millis(300),
    longest: Duration::from_secs(20),
    clears: Duration::from_secs(20),
};

impl Subject for Engine<MemoryCatalogue> {
    const IS_OVERLAY: bool = false;

    fn start(host: &Start<'_>, _links: &Links) -> Self {
        let mut config = mesh::MeshConfig::new(host.name.clone(), host.incarnation, hasher());
        config.seed = host.seed;
        config.intervals = INTERVALS;
        // Hosts of both kinds in one world; they process a few keys at a time, so that much happens
        // in between.
        config.max_keys_at_once = 8;
        config.max_bits_at_once = 0;
        config.work = if host.seed.is_multiple_of(2) { Work::AtOnce } else { Work::Deferred };
        Self::new(config)
    }

    fn published(&self, set: &Name) -> Option<Version> {
        self.published_checksum(set)
    }

    fn held(&self, set: &Name, home: &Name) -> Option<Version> {
        self.replica_checksum(set, home)
    }

    fn ask(&mut self, _now: Duration, _set: &Name, _key: &[u8]) -> Option<QueryId> {
        None
    }
}

impl Subject for Overlay<MemoryCatalogue> {
    const IS_OVERLAY: bool = true;

    fn start(host: &Start<'_>, links: &Links) -> Self {
        let (name, set) = (host.name.clone(), host.name.clone());
        let mut router =
            route::RouterConfig::new(name, host.incarnation, set, hasher(), links.plan());
        router.seed = host.seed;
        router.intervals = INTERVALS;
        let neighbours = links.of(host.number).map(name_of).collect();
        Self::new(overlay::OverlayConfig { router, neighbours, max_sets: 4 })
    }

    fn published(&self, set: &Name) -> Option<Version> {
        self.published_checksum(set)
    }

    fn held(&self, set: &Name, home: &Name) -> Option<Version> {
        self.replica_checksum(set, home)
    }

    fn ask(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<QueryId> {
        self.search(now, set, key, |search| search).ok()
    }
}

/// The hasher of all hosts.
pub(super) fn hasher() -> KeyHasher {
    KeyHasher::secret(HashId::SipHash13, Seed::from_number(7))
}

/// The name of a host.
pub(super) fn name_of(number: usize) -> Name {
    Name::new(&format!("host-{number}")).expect("a name")
}
