//! A host's place in its cluster: the network, the driver's inbox, the greetings of hosts
//! (`greetings`), and how complete the knowledge of the cluster is (`coverage`).
//!
//! Always true: the lock of the greetings is the last one taken; no other lock is taken while it is
//! held.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use umbel::replica::{Incarnation, Name};

use super::coverage::{Coverage, LastSeen};
use super::greetings::Greetings;
use crate::hello::Hello;
use crate::network::{Inbox, Network, NetworkEvent};

/// A host's place in its cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) incarnation: Incarnation,
    pub(crate) network: Arc<dyn Network>,
    /// The same network, if its links can be reopened.
    #[cfg(feature = "zenoh")]
    pub(crate) links: Option<Arc<crate::network::ZenohNetwork>>,
    pub(crate) inbox: Inbox,
    /// Whether the driver has been woken and has not yet handled that.
    woken: AtomicBool,
    greetings: Mutex<Greetings>,
    name_taken: AtomicU64,
    /// Names of which several hosts are seen: a reply may come from any of them.
    contested: ArcSwap<BTreeSet<Name>>,
    /// The coverage that the driver computed last. Queries read it without a lock.
    pub(super) coverage: LastSeen,
    /// The peers that the settings name, by name, address or both.
    pub(super) configured: Mutex<Vec<(Option<Name>, Option<String>)>>,
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
            inbox,
            woken: AtomicBool::new(false),
            greetings: Mutex::new(Greetings::new(own)),
            name_taken: AtomicU64::new(0),
            contested: ArcSwap::default(),
            coverage: LastSeen::new(),
            configured: Mutex::default(),
        }
    }

    pub(crate) fn set_contested(&self, names: BTreeSet<Name>) {
        if **self.contested.load() != names {
            self.contested.store(Arc::new(names));
        }
    }

    /// Whether several hosts of this name are seen.
    pub(crate) fn is_contested(&self, name: &Name) -> bool {
        self.contested.load().contains(name)
    }

    pub(crate) fn greetings(&self) -> MutexGuard<'_, Greetings> {
        self.greetings.lock()
    }

    /// Makes the driver look at the sets.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.inbox.put(NetworkEvent::Woken);
        }
    }

    /// Called by the driver before it looks at the sets: a later change wakes it again.
    pub(crate) fn clear_wake(&self) {
        // A swap also acquires: the driver sees all changes that were made before it was woken.
        self.woken.swap(false, Ordering::AcqRel);
    }

    /// Counts that another host uses this host's name.
    pub(crate) fn count_name_taken(&self) {
        self.name_taken.fetch_add(1, Ordering::Relaxed);
    }

    /// How often another host used this host's name.
    pub(super) fn name_taken(&self) -> u64 {
        self.name_taken.load(Ordering::Relaxed)
    }

    /// The coverage that the driver computed last.
    pub(crate) fn coverage(&self) -> Coverage {
        self.coverage.last()
    }

    /// Sets the peers that the settings name.
    #[cfg(feature = "zenoh")]
    pub(crate) fn configure(&self, peers: Vec<(Option<Name>, Option<String>)>) {
        *self.configured.lock() = peers;
    }

    /// Whether the settings name no peer.
    pub(crate) fn is_alone(&self) -> bool {
        self.configured.lock().is_empty()
    }

    /// Whether a configured peer is called `name`, or listens at an address with that host name.
    #[cfg(feature = "http")]
    pub(super) fn has_peer_named(&self, name: &str) -> bool {
        let has_host = |address: &String| {
            let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
            host.eq_ignore_ascii_case(name)
        };
        self.configured.lock().iter().any(|(given, address)| {
            given.as_ref().is_some_and(|given| given.as_str().eq_ignore_ascii_case(name))
                || address.as_ref().is_some_and(has_host)
        })
    }
}
