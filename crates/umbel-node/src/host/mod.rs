//! A running host, as its users hold it.
//!
//! ```text
//! add, remove   any thread ─► State (engine, lifetimes) ─► Journal ─► disk
//! who           any thread ─► Directory ─► Replicas (shared bank)      no lock of the state
//! messages      network ─► Inbox ─► Driver ─► State ─► network
//! ```
//!
//! Always true: a question from memory never waits for the state's lock, which the driver may
//! hold while it decodes an update, but in an overlay, whose routers are small; a change is told to others and to the disk in the order
//! it was made.

mod ask;
#[cfg(feature = "http")]
mod cache;
mod directory;
mod happened;
mod info;
mod keys;
mod names;
mod plan;
pub(crate) mod reload;
mod route;
mod sets;
mod single;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use umbel::KeyHasher;
use umbel::replica::{Destination, Incarnation, Name, Transmit};

use crate::access::Access;
use crate::catalogue::{Journal, SetNumber, Ticket};
use crate::confirm::Confirm;
use crate::error::HostError;
use crate::hello::Hello;
use crate::lifetimes::Lifetimes;
use crate::network::{Happening, Inbox, Network};
use crate::protocol::Protocol;
use crate::settings::Settings;
#[cfg(feature = "http")]
pub(crate) use cache::Cache;
use directory::Known;
pub use happened::Happened;
pub use info::{Coverage, HostInfo, Readiness, Routing, SetInfo, Status};
pub use keys::Lifetime;
pub use names::Announced;
pub use plan::{Change, Reserve};

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

#[derive(Debug)]
pub(crate) struct Inner {
    /// As it was at the start.
    pub(crate) settings: Settings,
    /// As it is now, as far as it can change.
    pub(crate) live: RwLock<Arc<Settings>>,
    pub(crate) seen: tokio::sync::Mutex<reload::Seen>,
    pub(crate) incarnation: Incarnation,
    pub(crate) hasher: KeyHasher,
    pub(crate) started: Instant,
    pub(crate) state: Mutex<State>,
    pub(crate) directory: RwLock<HashMap<Box<str>, Arc<Known>>>,
    pub(crate) network: Arc<dyn Network>,
    /// The same, where its links can be opened anew.
    #[cfg(feature = "zenoh")]
    pub(crate) links: Option<Arc<crate::network::ZenohNetwork>>,
    /// Whether no peer was told of at the start.
    pub(crate) alone: bool,
    /// What the ports for clients show.
    #[cfg(feature = "tls")]
    pub(crate) certificates: Option<Arc<crate::tls::Certificates>>,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) inbox: Inbox,
    /// Whether the driver has been told that there is something to do.
    pub(crate) woken: AtomicBool,
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) stopping: AtomicBool,
    pub(crate) ready: AtomicBool,
    pub(crate) name_taken: AtomicU64,
    /// Hosts that are known, and that are there, as the driver last saw: for questions, which
    /// take no lock.
    pub(crate) hosts_known: AtomicU64,
    pub(crate) hosts_expected: AtomicU64,
    /// Told what happens, if somebody listens.
    pub(crate) happened: tokio::sync::broadcast::Sender<Happened>,
    #[cfg(feature = "http")]
    pub(crate) cache: cache::Cache,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    /// Told when the host stops, so that its ports close.
    pub(crate) stopped: tokio::sync::watch::Sender<bool>,
    pub(crate) addresses: Mutex<Addresses>,
    pub(crate) access: Arc<Access>,
}

/// Where a host can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Addresses {
    /// Where Redis clients connect.
    pub resp: Option<std::net::SocketAddr>,
    /// Where HTTP is served.
    pub http: Option<std::net::SocketAddr>,
    /// Where other hosts connect.
    pub listen: Option<std::net::SocketAddr>,
}

/// What the driver and changes share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Protocol,
    pub(crate) own: BTreeMap<Name, OwnSet>,
    pub(crate) next_number: u32,
    /// What other hosts say of themselves.
    pub(crate) hellos: HashMap<Name, Hello>,
    pub(crate) hello: Hello,
    /// Until when the driver sleeps.
    pub(crate) sleeping_until: Duration,
}

/// What a host knows of a set of its own, beyond the protocol.
#[derive(Debug)]
pub(crate) struct OwnSet {
    pub(crate) number: SetNumber,
    lifetime: Option<Duration>,
    confirm: Confirm,
    pub(crate) lifetimes: Lifetimes,
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
        *self.inner.addresses.lock()
    }

    /// Who may do what.
    #[must_use]
    pub fn access(&self) -> &Arc<Access> {
        &self.inner.access
    }

    /// Waits until everything up to the ticket is durable.
    ///
    /// # Errors
    /// If the catalogue could not be written: the changes may be lost.
    pub async fn settled(&self, ticket: Ticket) -> Result<(), HostError> {
        match &self.inner.journal {
            Some(journal) if ticket > Ticket::NONE => journal.settled(ticket).await,
            _ => Ok(()),
        }
    }

    /// Whether answers are complete.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        if self.inner.ready.load(Ordering::Acquire) {
            return Readiness::Ready;
        }
        let (known, expected) = self.inner.state.lock().known_hosts(self.inner.now());
        Readiness::Waiting { known, expected }
    }

    /// How much of the cluster an answer from memory covers right now. Takes no lock.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let hosts_known = self.inner.hosts_known.load(Ordering::Relaxed);
        let hosts_expected = self.inner.hosts_expected.load(Ordering::Relaxed);
        let ready = self.inner.ready.load(Ordering::Acquire);
        Coverage { complete: ready && hosts_known == hosts_expected, hosts_known, hosts_expected }
    }

    /// What happens from now on. A receiver that falls behind by more than
    /// [`Happened::KEPT`] is told how many it missed.
    #[must_use]
    pub fn happenings(&self) -> tokio::sync::broadcast::Receiver<Happened> {
        self.inner.happened.subscribe()
    }

    /// Waits until the host is told to stop.
    pub async fn stopped(&self) {
        let mut stopped = self.inner.stopped.subscribe();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Leaves the cluster, finishes writes and closes the ports. What takes longer than the
    /// configured deadline is cut off; nothing that was acknowledged is lost by that.
    pub async fn stop(&self) {
        if self.inner.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        let deadline = self.inner.settings.timing.stop;
        self.inner.say_farewell();
        let closing = async {
            self.inner.network.close().await;
            self.inner.stopped.send_replace(true);
            self.inner.inbox.put(Happening::Woken);
            if let Some(journal) = &self.inner.journal {
                journal.close();
            }
            let threads = std::mem::take(&mut *self.inner.threads.lock());
            let joined = tokio::task::spawn_blocking(move || {
                threads.into_iter().for_each(|thread| drop(thread.join()));
            });
            let _ = joined.await;
        };
        if tokio::time::timeout(deadline, closing).await.is_err() {
            tracing::warn!("not everything was closed within {deadline:?}");
        }
    }
}

impl Inner {
    /// Tells the others that this host goes, so that they name it no longer. In an overlay the
    /// neighbours see the link go, and what was learnt over it with it.
    fn say_farewell(&self) {
        let mut state = self.state.lock();
        let Some(engine) = state.engine.mesh_mut() else { return };
        engine.leave();
        let said = std::iter::from_fn(|| engine.poll_transmit());
        for Transmit { to, bytes } in said {
            if to == Destination::All {
                self.network.say(bytes);
            }
        }
    }

    /// Time since the host started: what the engine calls now.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The settings as they are now.
    pub(crate) fn live(&self) -> Arc<Settings> {
        Arc::clone(&self.live.read())
    }

    /// Makes the driver look at the state, unless it will soon anyway.
    pub(crate) fn wake_if_urgent(&self, state: &State, set: &Name) {
        let expiry = state.own.get(set).and_then(|own| own.lifetimes.next());
        let expires_first = expiry.is_some_and(|at| {
            self.now() + Duration::from_millis(at.saturating_sub(wall_clock_ms()))
                < state.sleeping_until
        });
        if expires_first || state.engine.is_urgent(set, state.sleeping_until) {
            self.wake();
        }
    }

    /// Makes the driver look at the state.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.inbox.put(Happening::Woken);
        }
    }

    /// Whether changes are taken.
    fn check(&self) -> Result<(), HostError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(HostError::Stopping);
        }
        self.journal.as_ref().map_or(Ok(()), |journal| journal.check())
    }

    /// Covers every change made so far.
    fn ticket(&self) -> Ticket {
        self.journal.as_ref().map_or(Ticket::NONE, |journal| journal.ticket())
    }
}

impl State {
    /// Hosts whose sets are all here, and hosts that are there; this one counts as both.
    pub(crate) fn known_hosts(&self, now: Duration) -> (u64, u64) {
        self.engine.known_hosts(now)
    }
}

/// Milliseconds since 1970.
pub(crate) fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Without HTTP no cache can be asked: the catalogue's word counts.
#[cfg(not(feature = "http"))]
impl Host {
    #[expect(clippy::unused_async, reason = "with the feature it waits for the cache")]
    pub(crate) async fn holds(&self, set: &str, keys: &[&[u8]]) -> Vec<u8> {
        self.inner.holds(set, keys)
    }
}
