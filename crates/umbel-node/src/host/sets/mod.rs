//! A host's sets: what the protocol knows of them, what this host stores for its own ones, and the
//! directory of both.
//!
//! ```text
//! add, remove   any thread ─► directory ─► OwnSet ─► LocalSet ─► Journal ─► disk
//! who           any thread ─► directory ─► Replicas (shared bank)
//! filters       builder    ─► LocalSet, a part at a time; long updates are encoded without a lock
//! messages      driver     ─► State (protocol: peers, receivers, queues; which sets there are)
//! ```
//!
//! In a mesh neither a query nor a change of keys takes the lock of the state. In an overlay both
//! do: its routers are small, and have no locks of their own.
//!
//! Lock order, outermost first; the holder of one of these may only take later ones:
//! 0. a lane for long work ([`lanes`]), then the turn of an own set: tasks that change it wait here, without keeping a thread;
//! 1. an [`OwnSet`], while it is changed ([`own::Change`]): one at a time;
//! 2. the [`State`]: held by the driver while it handles a message, by reports, and while sets are
//!    made or deleted;
//! 3. a `LocalSet` of the protocol: one at a time;
//! 4. catalogues, the journal, the directory, the terms and the lifetimes of a set, the builder's
//!    queue, the list of expiries: nothing is taken after these.
//!
//! Always true: changes of one set reach its filter and the journal in the order they were made;
//! after [`Sets::close`] nothing changes.
//!
//! Not here: sending (the driver polls the protocol), waking the driver, settings' files.

mod builder;
#[cfg_attr(
    not(feature = "resp"),
    expect(dead_code, reason = "only the port for Redis clients makes filters")
)]
mod counted;
mod create;
mod directory;
mod expiry;
mod lanes;
mod own;
mod stored;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedMutexGuard, oneshot};
use umbel::KeyHasher;
use umbel::protocol::{Destination, Event, Transmit};
use umbel::replica::Name;
use umbel::route::{Located, QueryId, Search};

use super::clock::Clock;
use super::live::LiveSettings;
use crate::Transform;
use crate::catalogue::{Journal, JournalReport, Ticket};
use crate::error::HostError;
use crate::protocol::HostProtocol;
use crate::settings::Settings;
use builder::Builder;
use directory::Directory;
pub(super) use directory::Known;
use expiry::Expiries;
use lanes::{Lane, Lanes};
pub use own::Lifetime;
pub(crate) use own::OwnSet;
pub(super) use own::{Change as SetChange, Terms};
pub(crate) use stored::StoredSet;

/// A host's sets.
#[derive(Debug)]
pub(crate) struct Sets {
    clock: Clock,
    live: Arc<LiveSettings>,
    pub(super) hasher: KeyHasher,
    /// How the keys of some sets are made from the names that clients ask for.
    transforms: HashMap<String, Transform>,
    /// Seed of catalogues in memory.
    seed: u64,
    state: Mutex<State>,
    directory: Directory,
    journal: Option<Arc<Journal>>,
    builder: Builder,
    expiries: Expiries,
    lanes: Lanes,
    /// Lookups that came too early, including those of deleted sets.
    late_lookups: AtomicU64,
    /// Until when the driver sleeps, in nanoseconds since the host started.
    sleeping_until: AtomicU64,
    /// Whether changes are no longer accepted.
    is_closed: AtomicBool,
}

fn transforms(settings: &Settings) -> HashMap<String, Transform> {
    let all = settings.transforms.iter();
    all.map(|one| (one.set().to_owned(), one.transform().clone())).collect()
}

/// What the driver works on, and the list of own sets.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) protocol: HostProtocol,
    pub(crate) own: BTreeMap<Name, Arc<OwnSet>>,
    next_number: u32,
    /// Running queries of an overlay, and who waits for each.
    queries: HashMap<(Name, QueryId), oneshot::Sender<Located>>,
}

impl Sets {
    /// No sets yet.
    pub(crate) fn new(
        protocol: HostProtocol,
        live: Arc<LiveSettings>,
        clock: Clock,
        seed: u64,
        journal: Option<Arc<Journal>>,
    ) -> Self {
        let state =
            State { protocol, own: BTreeMap::new(), next_number: 1, queries: HashMap::new() };
        Self {
            clock,
            hasher: live.current().hasher(),
            transforms: transforms(&live.current()),
            live,
            seed,
            state: Mutex::new(state),
            directory: Directory::new(),
            journal,
            builder: Builder::default(),
            expiries: Expiries::default(),
            lanes: Lanes::new(),
            late_lookups: AtomicU64::new(0),
            sleeping_until: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The hash seed of catalogues in memory.
    #[cfg(test)]
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The state, to read it or to apply messages from other hosts.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Calls `run` with the keys that a set holds for these names: the names themselves, unless the
    /// set has a transform. Questions to the cluster are asked by name; changes are made by key.
    pub(in crate::host) fn with_keys<R>(
        &self,
        set: &str,
        names: &[&[u8]],
        run: impl FnOnce(&[&[u8]]) -> R,
    ) -> R {
        let Some(transform) = self.transforms.get(set) else { return run(names) };
        let keys: Vec<Vec<u8>> = names.iter().map(|name| transform.key(name)).collect();
        run(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Waits asynchronously for a lane for long work.
    pub(super) async fn lane(&self) -> Lane {
        self.lanes.enter().await
    }

    /// Takes the turns of the sets with long filters that the driver is about to publish, so that
    /// tasks that change these wait without blocking a thread. Also takes a lane, if there are such
    /// sets.
    pub(crate) fn long_turns(&self, now: Duration) -> (Option<Lane>, Vec<OwnedMutexGuard<()>>) {
        let state = self.lock();
        let due = state.protocol.mesh().map(|engine| engine.due_sets(now)).unwrap_or_default();
        let due = due.iter().filter_map(|set| state.own.get(set));
        let due: Vec<Arc<OwnSet>> = due.filter(|own| own.is_long_due(now)).cloned().collect();
        drop(state);
        let lane = (!due.is_empty()).then(|| self.lanes.enter_blocking());
        (lane, due.iter().map(|own| own.blocking_turn()).collect())
    }

    /// Until when the driver sleeps; [`Duration::MAX`] while it computes that.
    pub(crate) fn sleeping_until(&self) -> Duration {
        match self.sleeping_until.load(Ordering::SeqCst) {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }

    /// Stores until when the driver sleeps. The driver stores `MAX` before it checks when sets must
    /// be polled: a change that it misses then wakes it.
    pub(crate) fn set_sleeping_until(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.sleeping_until.store(nanos, Ordering::SeqCst);
    }

    /// Whether changes are accepted.
    ///
    /// # Errors
    /// If the host stops or the catalogue has failed.
    pub(super) fn check_open(&self) -> Result<(), HostError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(HostError::Stopping);
        }
        self.check_journal()
    }

    /// An own set of this host.
    ///
    /// # Errors
    /// If no host has such a set, or only other hosts.
    pub(super) fn find_own(&self, set: &str) -> Result<Arc<OwnSet>, HostError> {
        let own = self.find(set)?.own.clone();
        own.ok_or_else(|| HostError::NotOwn(set.to_owned()))
    }

    /// Rejects changes from now on and gives up running queries. Returns the messages to send to
    /// all other hosts: they either stop naming this host, or keep naming it while it is away for
    /// this long. The latter is only for keys stored in a folder: keys in memory are lost with this
    /// process.
    pub(super) fn close(&self, absence: Duration) -> Vec<Vec<u8>> {
        self.is_closed.store(true, Ordering::SeqCst);
        self.builder.close();
        let own: Vec<Arc<OwnSet>> = self.lock().own.values().cloned().collect();
        own.iter().for_each(|own| own.wait_for_change());
        let mut state = self.lock();
        state.queries.clear();
        let absence = if self.is_durable() { absence } else { Duration::ZERO };
        if !absence.is_zero() {
            let in_memory = own.iter().filter(|own| !own.is_durable());
            in_memory.for_each(|own| _ = state.protocol.delete(&own.name));
        }
        state.protocol.leave(self.clock.now(), absence);
        let transmits = std::iter::from_fn(|| state.protocol.poll_transmit());
        let to_all = transmits.filter(|Transmit { to, .. }| *to == Destination::All);
        to_all.map(|transmit| transmit.bytes).collect()
    }

    /// Asks all other hosts to keep naming this host if it goes away within this time. Not while
    /// there are sets in memory: these are withdrawn when the host stops, which need not be an
    /// orderly stop.
    pub(super) fn announce_absence(&self, absence: Duration) {
        let mut state = self.lock();
        if state.own.values().all(|own| own.is_durable()) {
            state.protocol.leave(self.clock.now(), absence);
        }
    }

    // ---- durability

    /// Whether the keys are stored in a folder.
    pub(super) const fn is_durable(&self) -> bool {
        self.journal.is_some()
    }

    /// Why the catalogue cannot be written at present, if so.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        self.journal.as_ref()?.failure()
    }

    /// The state of the catalogue on disk, if it is stored in a folder.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only metrics report it"))]
    pub(crate) fn journal_report(&self) -> Option<JournalReport> {
        self.journal.as_ref().map(|journal| journal.report())
    }

    /// Lookups of all sets that came too early, since the host started.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only metrics report it"))]
    pub(crate) fn late_lookups(&self) -> u64 {
        self.late_lookups.load(Ordering::Relaxed)
    }

    /// A ticket that covers every change made so far.
    pub(super) fn ticket(&self) -> Ticket {
        self.journal.as_ref().map_or(Ticket::NONE, |journal| journal.ticket())
    }

    /// As [`Self::ticket`].
    ///
    /// # Errors
    /// If the catalogue has failed.
    pub(super) fn checked_ticket(&self) -> Result<Ticket, HostError> {
        self.check_journal()?;
        Ok(self.ticket())
    }

    /// Waits until everything up to the ticket is durable.
    ///
    /// # Errors
    /// If the catalogue could not be written: the changes may be lost.
    pub(super) async fn settled(&self, ticket: Ticket) -> Result<(), HostError> {
        match &self.journal {
            Some(journal) if ticket > Ticket::NONE => journal.settled(ticket).await,
            _ => Ok(()),
        }
    }

    /// Writes what is pending; then the journal's thread ends.
    pub(super) fn close_journal(&self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
    }

    /// The journal, if the keys are stored in a folder.
    pub(super) fn journal(&self) -> Option<Arc<Journal>> {
        self.journal.clone()
    }

    fn check_journal(&self) -> Result<(), HostError> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.check())
    }
}

impl State {
    /// Starts a query in an overlay; its result arrives in the receiver. The caller must wake the
    /// driver.
    ///
    /// # Errors
    /// If there is no overlay, or no room for another set.
    pub(super) fn search(
        &mut self,
        now: Duration,
        set: &Name,
        key: &[u8],
        limits: impl FnOnce(Search) -> Search,
    ) -> Result<oneshot::Receiver<Located>, HostError> {
        let overlay = self.protocol.overlay_mut();
        let overlay = overlay.ok_or(HostError::NoOverlay("queries are not routed"))?;
        let query = overlay.search(now, set, key, limits)?;
        let (sender, receiver) = oneshot::channel();
        self.queries.insert((set.clone(), query), sender);
        Ok(receiver)
    }

    /// The events since the last call. Results of finished queries are sent to those who wait for
    /// them.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.protocol.poll_event() {
            let Event::Located { set, located } = event else {
                events.push(event);
                continue;
            };
            if let Some(asker) = self.queries.remove(&(set, located.query.clone())) {
                // The caller may have gone away meanwhile.
                let _ = asker.send(located);
            }
        }
        events
    }
}
