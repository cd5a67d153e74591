//! A host's place in its cluster: the network, the way to the driver, what hosts say of
//! themselves, and how many of them are known.
//!
//! Always true: the lock of the greetings is the last one taken; nothing else is locked while
//! it is held.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
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
#[derive(Debug)]
pub(crate) struct Greetings {
    pub(crate) own: Hello,
    pub(crate) others: HashMap<Name, Hello>,
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
            greetings: Mutex::new(Greetings { own, others: HashMap::new() }),
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
        self.woken.store(false, Ordering::Release);
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
