//! A running host, as its users see it: a handle to its parts.
//!
//! ```text
//! Host ─► Inner ─┬─ Sets       own sets, replicas, the directory, the journal
//!                ├─ Cluster    network, inbox of the driver, other hosts
//!                ├─ Ports      addresses, users, certificates
//!                ├─ Lifecycle  ready, stopping, threads
//!                └─ Cache, LiveSettings, events
//! ```
//!
//! The parts do not know each other, except that `Sets` reads the live settings. What concerns
//! several of them is done here. Messages go network ─► `Inbox` ─► `Driver` ─► `Sets` ─► network.
//! Starting a host is done one level above (`start`).

mod ask;
mod backup;
#[cfg(feature = "http")]
mod cache;
mod chain;
mod chain_counts;
mod clock;
mod cluster;
mod coverage;
mod event;
mod fetch;
#[cfg(feature = "resp")]
mod filters;
#[cfg(feature = "http")]
mod findings;
mod greetings;
#[cfg(feature = "http")]
mod held_files;
mod info;
mod keys;
mod lifecycle;
mod live;
mod locate;
mod look;
mod lookups;
mod names;
#[cfg(feature = "http")]
mod objects;
mod plan;
mod ports;
#[cfg(feature = "http")]
mod proxy;
mod query;
pub(crate) mod reload;
mod report;
mod sets;
mod single;
#[cfg(feature = "http")]
mod survey;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use umbel::replica::Name;

use crate::access::Access;
use crate::catalogue::Ticket;
use crate::error::HostError;
use crate::network::NetworkEvent;
use crate::settings::Settings;
#[cfg(feature = "http")]
pub(crate) use cache::Cache;
pub use chain::ChainQuery;
#[cfg(feature = "http")]
pub(crate) use chain_counts::Distribution;
pub(crate) use clock::{Clock, wall_clock_ms};
pub(crate) use cluster::Cluster;
pub use coverage::{Coverage, MissingHost};
pub(crate) use coverage::{LOOK_EVERY, MAX_AGE};
pub use event::HostEvent;
pub use fetch::Fetch;
#[cfg(feature = "resp")]
pub(crate) use filters::{CuckooAdd, CuckooAdded, FilterError, FilterStatus, FilterType};
#[cfg(feature = "http")]
pub(crate) use findings::{Finding, findings};
pub use info::{HostInfo, Readiness, Routing, SetInfo, Status};
pub(crate) use lifecycle::Lifecycle;
pub(crate) use live::LiveSettings;
pub use locate::Missing;
pub use names::Announced;
#[cfg(feature = "http")]
pub(crate) use objects::Objects;
pub use plan::{Change, Reserve};
pub use ports::Addresses;
pub(crate) use ports::Ports;
#[cfg(feature = "http")]
pub(crate) use proxy::{NotPassedOn, Object};
pub use reload::RestartNeeded;
pub use sets::Lifetime;
use sets::SetChange;
pub(crate) use sets::{Sets, State, StoredSet};
#[cfg(feature = "http")]
pub(crate) use survey::{PeerReport, ReplicaReport, SetReport, Survey};

pub(crate) use watches::Watches;

/// A host's reply about one key: it holds it, it does not, or it cannot tell now. Hosts of a
/// version that knows only the first two treat the third as "does not".
#[cfg(feature = "http")]
pub(crate) const ABSENT: u8 = 0;
pub(crate) const HELD: u8 = 1;
pub(crate) const UNKNOWN: u8 = 2;

/// A running host. Clones are handles to the same one.
///
/// It runs until [`Host::stop`], or until its runtime ends. Dropping handles does not stop it, not
/// even the last one; what was acknowledged is on disk all the same.
#[derive(Debug, Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

/// The parts of a host.
#[derive(Debug)]
pub(crate) struct Inner {
    /// As they were at the start.
    pub(crate) settings: Settings,
    /// The current settings: some can change.
    pub(crate) live: Arc<LiveSettings>,
    /// The files that are reloaded when they change.
    pub(crate) watched: tokio::sync::Mutex<reload::Seen>,
    /// The directories that own sets follow.
    pub(crate) watches: Watches,
    pub(crate) clock: Clock,
    pub(crate) sets: Sets,
    pub(crate) cluster: Cluster,
    pub(crate) ports: Ports,
    pub(crate) lifecycle: Lifecycle,
    /// Publishes events to subscribers.
    pub(crate) events: tokio::sync::broadcast::Sender<HostEvent>,
    #[cfg(feature = "http")]
    pub(crate) cache: Cache,
    #[cfg(feature = "http")]
    pub(crate) objects: Objects,
}

impl Host {
    /// Whether a configured peer is called `name`, or listens at an address with that host name.
    #[cfg(feature = "http")]
    pub(crate) fn has_peer_named(&self, name: &str) -> bool {
        self.inner.cluster.has_peer_named(name)
    }

    /// The longest key, in bytes.
    pub const MAX_KEY: usize = 32 << 10;

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.inner.settings.name
    }

    /// Where it can be reached.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.inner.ports.addresses()
    }

    /// Users and their permissions.
    #[must_use]
    pub fn access(&self) -> &Arc<Access> {
        &self.inner.ports.access
    }

    /// A ticket that covers every change made so far.
    #[cfg(feature = "resp")]
    pub(crate) fn ticket(&self) -> Ticket {
        self.inner.sets.ticket()
    }

    /// Whether the keys are stored in a folder.
    #[cfg(feature = "resp")]
    pub(crate) fn is_durable(&self) -> bool {
        self.inner.sets.is_durable()
    }

    /// Waits until everything up to the ticket is durable.
    ///
    /// # Errors
    /// If the catalogue could not be written: the changes may be lost.
    pub async fn settled(&self, ticket: Ticket) -> Result<(), HostError> {
        self.inner.sets.settled(ticket).await
    }

    /// Why changes are rejected at present, if they are: the catalogue cannot be written.
    #[must_use]
    pub fn catalogue_failure(&self) -> Option<Arc<str>> {
        self.inner.sets.failure()
    }

    /// Whether answers have been complete once since the start. A host that is ready stays ready,
    /// even if it loses its peers: [`Self::coverage`] reports how complete answers are now.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let coverage = self.coverage();
        match self.inner.lifecycle.is_ready() {
            true => Readiness::Ready(coverage),
            false => Readiness::Waiting(coverage),
        }
    }

    /// Waits until answers are complete, or `timing.ready` has passed, or the host stops: what they
    /// cover then.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use umbel_node::{Host, LocalNetwork};
    ///
    /// let host = Host::builder().name("fern").local(&LocalNetwork::new()).start().await?;
    /// assert!(host.ready().await.complete);
    /// host.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self) -> Coverage {
        self.inner.lifecycle.ready().await;
        self.coverage()
    }

    /// How much of the cluster an answer from memory covers right now. Takes no lock.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let mut coverage = self.inner.cluster.coverage.get(self.inner.now(), self.name());
        coverage.complete &= self.inner.lifecycle.is_ready();
        coverage
    }

    /// Subscribes to events. A receiver that falls behind by more than [`HostEvent::KEPT`] events
    /// is told how many it missed.
    #[must_use]
    pub fn events(&self) -> tokio::sync::broadcast::Receiver<HostEvent> {
        self.inner.events.subscribe()
    }

    /// Waits until the host cannot continue and stops; returns the reason. At present the only one
    /// is that another host has its name and replies.
    pub async fn failed(&self) -> Arc<str> {
        self.inner.lifecycle.failed().await
    }

    /// Waits until the host stops.
    pub async fn stopped(&self) {
        self.inner.lifecycle.stopped().await;
    }

    /// Asks other hosts to keep naming this host for this long after it has stopped, whatever
    /// `leave_on_stop` says, but at most for their own `timing.absence`. Zero: they need not. They
    /// are asked now, so that it works even if the process is killed, and again when the host
    /// stops. Not possible for sets kept in memory, which are lost with the process.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use umbel_node::{Host, HostError};
    ///
    /// let host = Host::builder().name("fern").start().await?;
    /// let refused = host.leave_for(Duration::from_secs(60));
    /// assert!(matches!(refused, Err(HostError::InMemory)));
    /// # host.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the host keeps its keys in memory, is in an overlay, or stops.
    pub fn leave_for(&self, absence: Duration) -> Result<(), HostError> {
        let Inner { lifecycle, sets, cluster, .. } = &*self.inner;
        sets.check_open()?;
        if self.is_in_overlay() {
            return Err(HostError::InOverlay("neighbours see a link go, and wait for nobody"));
        }
        if !sets.is_durable() {
            return Err(HostError::InMemory);
        }
        lifecycle.set_absence(absence);
        if !absence.is_zero() {
            sets.announce_absence(absence);
            cluster.wake();
        }
        Ok(())
    }

    /// Leaves the cluster, or asks others to wait for this host (`leave_on_stop`,
    /// [`Self::leave_for`]); then finishes writes and closes the ports. Whatever takes longer than
    /// the configured deadline is aborted; no acknowledged change is lost by that.
    pub async fn stop(&self) {
        let Inner { lifecycle, sets, cluster, settings, .. } = &*self.inner;
        if !lifecycle.begin_stop() {
            return;
        }
        self.inner.watches.stop();
        let deadline = settings.timing.stop;
        let absence = lifecycle.absence().unwrap_or(match settings.leave_on_stop {
            true => Duration::ZERO,
            false => settings.timing.absence,
        });
        sets.close(absence)
            .into_iter()
            .for_each(|farewell| cluster.network.publish_to_all(farewell));
        let closing = async {
            cluster.network.close().await;
            lifecycle.notify_stopped();
            cluster.inbox.put(NetworkEvent::Woken);
            sets.close_journal();
            lifecycle.join_threads().await;
        };
        if tokio::time::timeout(deadline, closing).await.is_err() {
            tracing::warn!("not everything was closed within {deadline:?}");
        }
    }
}

impl Inner {
    /// Time since the host started: what the protocol calls `now`.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Wakes the driver to look at the sets, unless it will do so soon anyway.
    fn wake_if_urgent(&self, change: &SetChange<'_>) {
        if change.is_urgent() {
            self.cluster.wake();
        }
    }
}

/// Without the feature `http` no cache can be asked: the catalogue decides.
#[cfg(not(feature = "http"))]
impl Host {
    #[expect(clippy::unused_async, reason = "with the feature it waits for the cache")]
    pub(crate) async fn holds(&self, set: &str, keys: &[&[u8]]) -> Vec<u8> {
        self.inner.sets.holds(set, keys)
    }
}
