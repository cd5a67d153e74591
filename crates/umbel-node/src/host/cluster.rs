//! A host's place in its cluster: the network, the way to the driver, what hosts say of
//! themselves, and how many of them are known.
//!
//! Always true: the lock of the greetings is the last one taken; nothing else is locked while
//! it is held.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use umbel::KeyHasher;
use umbel::replica::{Incarnation, Name};

use crate::hello::Hello;
use crate::network::{Happening, Inbox, Network};

/// A host's place in its cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) incarnation: Incarnation,
    pub(crate) network: Arc<dyn Network>,
    /// The same, where its links can be opened anew.
    #[cfg(feature = "zenoh")]
    pub(crate) links: Option<Arc<crate::network::ZenohNetwork>>,
    /// Whether no peer was named at the start.
    pub(crate) alone: bool,
    pub(crate) inbox: Inbox,
    /// Whether the driver has been woken and has not looked yet.
    woken: AtomicBool,
    greetings: Mutex<Greetings>,
    name_taken: AtomicU64,
    /// Hosts that are known, and that are there, as the driver last saw: for questions, which
    /// take no lock.
    hosts_known: AtomicU64,
    hosts_expected: AtomicU64,
}

/// What this host and the others say of themselves.
///
/// Always true: the own greeting's digest is that of the hosts that are known.
#[derive(Debug)]
pub(crate) struct Greetings {
    own: Hello,
    others: HashMap<Name, Hello>,
}

impl Greetings {
    fn new(own: Hello) -> Self {
        let mut greetings = Self { own, others: HashMap::new() };
        greetings.refresh();
        greetings
    }

    /// This host's own.
    pub(crate) const fn own(&self) -> &Hello {
        &self.own
    }

    /// Changes what this host says of itself.
    pub(crate) fn change_own(&mut self, change: impl FnOnce(&mut Hello)) {
        change(&mut self.own);
        self.refresh();
    }

    /// Another host's.
    pub(crate) fn of(&self, host: &Name) -> Option<&Hello> {
        self.others.get(host)
    }

    /// Whether a host's greeting may be kept: a known one, or one of at most `most`.
    pub(crate) fn has_room_for(&self, host: &Name, most: usize) -> bool {
        self.others.len() < most || self.others.contains_key(host)
    }

    pub(crate) fn insert(&mut self, host: Name, hello: Hello) {
        let listen = hello.listen.clone();
        let last = self.others.insert(host, hello);
        if last.is_none_or(|last| last.listen != listen) {
            self.refresh();
        }
    }

    pub(crate) fn remove(&mut self, host: &Name) {
        if self.others.remove(host).is_some() {
            self.refresh();
        }
    }

    /// The hosts that are known and where they listen, this one included.
    pub(crate) fn hosts(&self) -> Vec<(&str, SocketAddr)> {
        let all = self.others.values().chain([&self.own]);
        all.filter_map(|hello| Some((hello.name.as_str(), hello.listens()?))).collect()
    }

    /// Hosts that do not know the same hosts as this one.
    pub(crate) fn knowing_others(&self) -> Vec<Name> {
        let others = self.others.iter().filter(|(_, hello)| {
            hello.listen.is_some() && hello.hosts.is_some() && hello.hosts != self.own.hosts
        });
        others.map(|(host, _)| host.clone()).collect()
    }

    fn refresh(&mut self) {
        if self.own.listen.is_none() || self.own.overlay.is_some() {
            return;
        }
        let hosts = self.hosts();
        let hasher = KeyHasher::default();
        // In whichever order.
        let sum = hosts.iter().fold(0u64, |sum, (name, address)| {
            sum.wrapping_add(hasher.hash(format!("{name} {address}").as_bytes()).get())
        });
        self.own.hosts = Some(format!("{}-{sum:016x}", hosts.len()));
    }
}

impl Cluster {
    pub(crate) fn new(
        network: Arc<dyn Network>,
        incarnation: Incarnation,
        inbox: Inbox,
        own: Hello,
    ) -> Self {
        Self {
            incarnation,
            network,
            #[cfg(feature = "zenoh")]
            links: None,
            alone: true,
            inbox,
            woken: AtomicBool::new(false),
            greetings: Mutex::new(Greetings::new(own)),
            name_taken: AtomicU64::new(0),
            hosts_known: AtomicU64::new(1),
            hosts_expected: AtomicU64::new(1),
        }
    }

    pub(crate) fn greetings(&self) -> MutexGuard<'_, Greetings> {
        self.greetings.lock()
    }

    /// Makes the driver look at the sets.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.inbox.put(Happening::Woken);
        }
    }

    /// The driver looks now: whoever changes something later wakes it again.
    pub(crate) fn clear_wake(&self) {
        // Sees what was changed before the driver was woken, which a plain store need not.
        self.woken.swap(false, Ordering::AcqRel);
    }

    /// Another host lives under this host's name.
    pub(crate) fn count_name_taken(&self) {
        self.name_taken.fetch_add(1, Ordering::Relaxed);
    }

    /// How often another host lived under this host's name.
    pub(super) fn name_taken(&self) -> u64 {
        self.name_taken.load(Ordering::Relaxed)
    }

    /// Hosts whose sets are all here, and hosts that are there; this one counts as both.
    pub(crate) fn set_known_hosts(&self, known: u64, expected: u64) {
        self.hosts_known.store(known, Ordering::Relaxed);
        self.hosts_expected.store(expected, Ordering::Relaxed);
    }

    /// As they were last set.
    pub(super) fn known_hosts(&self) -> (u64, u64) {
        (self.hosts_known.load(Ordering::Relaxed), self.hosts_expected.load(Ordering::Relaxed))
    }
}
