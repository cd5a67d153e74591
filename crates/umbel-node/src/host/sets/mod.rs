//! A host's sets: what the protocol knows of them, what this host keeps of its own ones beside,
//! and where both are found.
//!
//! ```text
//! add, remove   any thread ─► State (protocol, lifetimes) ─► Journal ─► disk
//! who           any thread ─► directory ─► Replicas (shared bank)      no lock of the state
//! ```
//!
//! Lock order: the state, then the directory. Whoever holds the directory's lock takes no other.
//!
//! Always true: a question from memory never waits for the state's lock, which the driver may
//! hold while it decodes an update, but in an overlay, whose routers are small; a change goes to
//! the protocol and to the journal in the order it was made; after [`Sets::close`] nothing
//! changes.
//!
//! Not here: sending (the driver polls the protocol), waking the driver, settings' files.

mod create;
mod directory;
mod expiry;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::oneshot;
use umbel::KeyHasher;
use umbel::protocol::{Destination, Event, Transmit};
use umbel::replica::Name;
use umbel::route::{Located, QueryId, Search};

use super::clock::{Clock, wall_clock_ms};
use super::live::LiveSettings;
use crate::catalogue::{Journal, SetNumber, Ticket};
use crate::confirm::Confirm;
use crate::error::HostError;
use crate::lifetimes::Lifetimes;
use crate::protocol::HostProtocol;
pub(super) use directory::Known;
pub use expiry::Lifetime;

/// A host's sets.
#[derive(Debug)]
pub(crate) struct Sets {
    clock: Clock,
    live: Arc<LiveSettings>,
    pub(super) hasher: KeyHasher,
    /// Of catalogues in memory.
    seed: u64,
    state: Mutex<State>,
    directory: RwLock<HashMap<Box<str>, Arc<Known>>>,
    journal: Option<Arc<Journal>>,
}

/// What the driver and changes share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) protocol: HostProtocol,
    pub(crate) own: BTreeMap<Name, OwnSet>,
    next_number: u32,
    /// Queries of an overlay that are under way, and who waits for them.
    queries: HashMap<(Name, QueryId), oneshot::Sender<Located>>,
    /// Until when the driver sleeps.
    pub(crate) sleeping_until: Duration,
    /// Whether no change is accepted any more.
    is_closed: bool,
}

/// What a host knows of a set of its own, beyond the protocol.
#[derive(Debug)]
pub(crate) struct OwnSet {
    number: SetNumber,
    pub(super) lifetime: Option<Duration>,
    pub(super) confirm: Confirm,
    pub(super) lifetimes: Lifetimes,
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
        let state = State {
            protocol,
            own: BTreeMap::new(),
            next_number: 1,
            queries: HashMap::new(),
            sleeping_until: Duration::ZERO,
            is_closed: false,
        };
        Self {
            clock,
            hasher: live.current().hasher(),
            live,
            seed,
            state: Mutex::new(state),
            directory: RwLock::default(),
            journal,
        }
    }

    /// The state, to look at it or to hand it what arrived from other hosts.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The state, to change an own set.
    ///
    /// # Errors
    /// If the host stops or the catalogue has failed.
    pub(super) fn change(&self) -> Result<MutexGuard<'_, State>, HostError> {
        let state = self.state.lock();
        if state.is_closed {
            return Err(HostError::Stopping);
        }
        self.check_journal()?;
        Ok(state)
    }

    /// As [`Self::change`], of a set that this host has.
    ///
    /// # Errors
    /// As there, and if this host has no such set of its own.
    pub(super) fn change_own(&self, set: &str) -> Result<(Name, MutexGuard<'_, State>), HostError> {
        let known = self.find(set)?;
        let state = self.change()?;
        if !state.own.contains_key(&known.name) {
            return Err(HostError::NotOwn(set.to_owned()));
        }
        Ok((known.name.clone(), state))
    }

    /// Deletes an own set with all its keys.
    pub(super) fn delete(&self, state: &mut State, set: &Name) {
        state.protocol.delete(set);
        if let (Some(own), Some(journal)) = (state.own.remove(set), &self.journal) {
            journal.delete_set(set.as_str(), own.number);
        }
        self.refresh_directory(state);
    }

    /// Accepts no change from now on; returns what is to be sent to all others, so that they
    /// name this host no longer. Queries that are under way are given up.
    pub(super) fn close(&self) -> Vec<Vec<u8>> {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.queries.clear();
        state.protocol.leave();
        let transmits = std::iter::from_fn(|| state.protocol.poll_transmit());
        let to_all = transmits.filter(|Transmit { to, .. }| *to == Destination::All);
        to_all.map(|transmit| transmit.bytes).collect()
    }

    // ---- durability

    /// Whether a folder keeps the keys.
    pub(super) const fn is_durable(&self) -> bool {
        self.journal.is_some()
    }

    /// Covers every change made so far.
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

    /// Writes what is left; the journal's thread ends then.
    pub(super) fn close_journal(&self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
    }

    fn check_journal(&self) -> Result<(), HostError> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.check())
    }
}

impl State {
    /// Whether the driver, which sleeps, should be woken for a set.
    pub(super) fn is_urgent(&self, now: Duration, set: &Name) -> bool {
        let expiry = self.own.get(set).and_then(|own| own.lifetimes.next());
        let expires_first = expiry.is_some_and(|at| {
            now + Duration::from_millis(at.saturating_sub(wall_clock_ms())) < self.sleeping_until
        });
        expires_first || self.protocol.is_urgent(set, self.sleeping_until)
    }

    /// Sends out a query in an overlay; what becomes of it arrives in the receiver. The driver
    /// is to be woken.
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

    /// What happened since this was last asked. Who waits for a query that is done is answered.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.protocol.poll_event() {
            let Event::Located { set, located } = event else {
                events.push(event);
                continue;
            };
            if let Some(asker) = self.queries.remove(&(set, located.query.clone())) {
                // Whoever asked may have gone away meanwhile.
                let _ = asker.send(located);
            }
        }
        events
    }

    /// Hosts whose sets are all here, and hosts that are there; this one counts as both.
    pub(crate) fn known_hosts(&self) -> (u64, u64) {
        self.protocol.known_hosts()
    }
}
