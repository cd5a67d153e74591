//! A running host, as its users hold it: a handle to its parts.
//!
//! ```text
//! Host ─► Inner ─┬─ Sets       own sets, replicas, the directory, the journal
//!                ├─ Cluster    network, inbox of the driver, other hosts
//!                ├─ Ports      addresses, users, certificates
//!                ├─ Lifecycle  ready, stopping, threads
//!                └─ Cache, LiveSettings, events
//! ```
//!
//! The parts do not know each other, but that `Sets` reads the live settings; what concerns
//! several of them is done here. Messages go network ─► `Inbox` ─► `Driver` ─► `Sets` ─► network.
//! How a host is started is known above (`start`).

mod ask;
#[cfg(feature = "http")]
mod cache;
mod clock;
mod cluster;
mod coverage;
#[cfg(feature = "resp")]
mod filters;
mod greetings;
mod happened;
mod info;
mod keys;
mod lifecycle;
mod live;
mod locate;
mod look;
mod lookups;
mod names;
mod plan;
mod ports;
mod query;
pub(crate) mod reload;
mod report;
mod sets;
mod single;

use std::sync::Arc;
use std::time::Duration;

use umbel::replica::Name;

use crate::access::Access;
use crate::catalogue::Ticket;
use crate::error::HostError;
use crate::network::Happening;
use crate::settings::Settings;
#[cfg(feature = "http")]
pub(crate) use cache::Cache;
pub(crate) use clock::{Clock, wall_clock_ms};
pub(crate) use cluster::Cluster;
pub use coverage::{Coverage, MissingHost};
pub(crate) use coverage::{LOOK_EVERY, MAX_AGE};
#[cfg(feature = "resp")]
pub(crate) use filters::{CuckooAdd, CuckooAdded, FilterError, FilterStatus, FilterType};
pub use happened::Happened;
pub use info::{HostInfo, Readiness, Routing, SetInfo, Status};
pub(crate) use lifecycle::Lifecycle;
pub(crate) use live::LiveSettings;
pub use locate::Missing;
pub use names::Announced;
pub use plan::{Change, Reserve};
pub use ports::Addresses;
pub(crate) use ports::Ports;
pub use sets::Lifetime;
use sets::SetChange;
pub(crate) use sets::{Sets, State, StoredSet};

/// What a host says of a key that it is asked about: it holds it or not, or cannot tell now.
/// Hosts that know two words take the third for "not".
#[cfg(feature = "http")]
pub(crate) const ABSENT: u8 = 0;
pub(crate) const HELD: u8 = 1;
pub(crate) const UNKNOWN: u8 = 2;

/// A running host. Clones are handles to the same one; it runs until [`Host::stop`].
#[derive(Debug, Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

/// The parts of a host.
#[derive(Debug)]
pub(crate) struct Inner {
    /// As they were at the start.
    pub(crate) settings: Settings,
    /// As they are now, as far as they can change.
    pub(crate) live: Arc<LiveSettings>,
    /// The files that are read again when they change.
    pub(crate) watched: tokio::sync::Mutex<reload::Seen>,
    pub(crate) clock: Clock,
    pub(crate) sets: Sets,
    pub(crate) cluster: Cluster,
    pub(crate) ports: Ports,
    pub(crate) lifecycle: Lifecycle,
    /// Sends what happens to whoever listens.
    pub(crate) events: tokio::sync::broadcast::Sender<Happened>,
    #[cfg(feature = "http")]
    pub(crate) cache: Cache,
}

impl Host {
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

    /// Who may do what.
    #[must_use]
    pub fn access(&self) -> &Arc<Access> {
        &self.inner.ports.access
    }

    /// Covers every change made so far.
    #[cfg(feature = "resp")]
    pub(crate) fn ticket(&self) -> Ticket {
        self.inner.sets.ticket()
    }

    /// Whether a folder keeps the keys.
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

    /// Why changes are refused at present, if they are: the catalogue cannot be written.
    #[must_use]
    pub fn catalogue_failure(&self) -> Option<Arc<str>> {
        self.inner.sets.failure()
    }

    /// Whether answers have been complete since the start. A host that is ready stays so, whatever
    /// becomes of its peers: [`Self::coverage`] says how complete answers are now.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let coverage = self.coverage();
        match self.inner.lifecycle.is_ready() {
            true => Readiness::Ready(coverage),
            false => Readiness::Waiting(coverage),
        }
    }

    /// How much of the cluster an answer from memory covers right now. Takes no lock.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let mut coverage = self.inner.cluster.coverage.get(self.inner.now(), self.name());
        coverage.complete &= self.inner.lifecycle.is_ready();
        coverage
    }

    /// What happens from now on. A receiver that falls behind by more than
    /// [`Happened::KEPT`] is told how many it missed.
    #[must_use]
    pub fn happenings(&self) -> tokio::sync::broadcast::Receiver<Happened> {
        self.inner.events.subscribe()
    }

    /// Waits until the host cannot go on and stops: why. At present, because another host has its
    /// name and replies.
    pub async fn failed(&self) -> Arc<str> {
        self.inner.lifecycle.failed().await
    }

    /// Waits until the host is told to stop.
    pub async fn stopped(&self) {
        self.inner.lifecycle.stopped().await;
    }

    /// Asks others to go on naming this host for so long after it has stopped, whatever
    /// `leave_on_stop` says; within their own `timing.absence`. Zero: they need not. They are asked now,
    /// so that it holds when the process is killed, and again when the host stops. Not for sets kept in
    /// memory, which are gone with the process.
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

    /// Leaves the cluster, or asks others to wait for it (`leave_on_stop`, [`Self::leave_for`]);
    /// finishes writes and closes the ports. What takes longer than the
    /// configured deadline is cut off; nothing that was acknowledged is lost by that.
    pub async fn stop(&self) {
        let Inner { lifecycle, sets, cluster, settings, .. } = &*self.inner;
        if !lifecycle.begin_stop() {
            return;
        }
        let deadline = settings.timing.stop;
        let absence = lifecycle.absence().unwrap_or(match settings.leave_on_stop {
            true => Duration::ZERO,
            false => settings.timing.absence,
        });
        sets.close(absence).into_iter().for_each(|farewell| cluster.network.say(farewell));
        let closing = async {
            cluster.network.close().await;
            lifecycle.notify_stopped();
            cluster.inbox.put(Happening::Woken);
            sets.close_journal();
            lifecycle.join_threads().await;
        };
        if tokio::time::timeout(deadline, closing).await.is_err() {
            tracing::warn!("not everything was closed within {deadline:?}");
        }
    }
}

impl Inner {
    /// Time since the host started: what the protocol calls now.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Makes the driver look at the sets, unless it will soon anyway.
    fn wake_if_urgent(&self, change: &SetChange<'_>) {
        if change.is_urgent() {
            self.cluster.wake();
        }
    }
}

/// Without HTTP no cache can be asked: the catalogue's word counts.
#[cfg(not(feature = "http"))]
impl Host {
    #[expect(clippy::unused_async, reason = "with the feature it waits for the cache")]
    pub(crate) async fn holds(&self, set: &str, keys: &[&[u8]]) -> Vec<u8> {
        self.inner.sets.holds(set, keys)
    }
}
