//! One of a host's own sets, guarded by its own lock.
//!
//! ```text
//! add, remove, replan   any thread  ─► LocalSet: home, epoch, what is served, expected hosts
//! publish, announce     the engine  ─► LocalSet, one at a time; long updates are encoded elsewhere
//! ```
//!
//! Who holds what: the [`LocalSet`] has everything that a change of its keys touches. The engine
//! has the list of sets, the peers, the receivers, the random state, the counters and the queues of
//! messages and events. Only the driver of the engine uses those. Memory of own sets is reserved
//! and counted in an atomic that all of them share (`replica::own_memory`).
//!
//! Lock order: a thread that holds the lock of a set must not take the lock of another set or of
//! the engine. The engine locks one set at a time.
//!
//! An engine whose [`Work`] is deferred leaves publishing to `handle_timeout`: a change only
//! records when the set should be polled ([`LocalSet::next_timeout`]), which can be read without
//! the lock.
//!
//! Filters of many keys are then built in steps: a thread of the caller calls
//! [`LocalSet::build_part`] while [`LocalSet::is_building`].
//!
//! Always true: after [`LocalSet::close`] nothing changes any more, and nothing is charged.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::chores::{Chores, nanos};
use super::config::Work;
use crate::catalogue::Catalogue;
use crate::design::ladder::{ExpectedHosts, Rung, RungChoice};
use crate::params::ParamError;
use crate::replica::publisher::PreparedUpdate;
use crate::replica::served::Served;
use crate::replica::{Epoch, Home, Name, Policy, SetPlan};
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// An own set of a host. Any thread may change it, without the engine.
#[derive(Debug)]
pub struct LocalSet<C> {
    name: Name,
    state: Mutex<LocalState<C>>,
    /// When the set must be polled, in nanoseconds; `u64::MAX` means never.
    next_timeout: AtomicU64,
    /// Whether a filter is being built in steps.
    is_building: AtomicBool,
    /// Whether the filter has outgrown its rung while it is being built.
    is_outgrown: AtomicBool,
    /// Bits of the filter.
    bits: AtomicU64,
    chores: Arc<Chores>,
    work: Work,
}

/// What the lock of an own set guards.
#[derive(Debug)]
pub(super) struct LocalState<C> {
    pub(super) home: Home<C>,
    pub(super) epoch: Epoch,
    /// What other hosts can fetch of the set.
    pub(super) served: Served,
    /// The update that leads to the present epoch, while it is not sent yet.
    pub(super) unsent: Option<Unsent>,
    /// The number of hosts that the set is planned for, unless its plan sets one.
    pub(super) hosts: ExpectedHosts,
    /// The chores list the set to be polled at this time, in nanoseconds, or earlier.
    poll_at: u64,
    /// The values that the engine last reported.
    reported: Reported,
    /// Whether a caller requested that everything be published.
    is_publish_requested: bool,
    is_closed: bool,
}

/// What is reported of an own set when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) rung: Option<Rung>,
    pub(super) is_broken: bool,
    pub(super) is_confined: bool,
}

impl Reported {
    fn of<C: Catalogue>(home: &Home<C>) -> Self {
        Self {
            rung: home.rung().map(RungChoice::rung),
            is_broken: home.is_broken(),
            is_confined: home.is_confined(),
        }
    }
}

/// An update whose epoch has begun and which is being encoded.
#[derive(Debug)]
pub(super) struct Unsent {
    /// The epoch before it.
    pub(super) base: Epoch,
    pub(super) prepared: Arc<PreparedUpdate>,
}

impl<C: Catalogue> LocalSet<C> {
    pub(super) fn new(
        name: Name,
        home: Home<C>,
        epoch: Epoch,
        hosts: ExpectedHosts,
        chores: Arc<Chores>,
        work: Work,
    ) -> Self {
        let reported = Reported { is_broken: false, is_confined: false, ..Reported::of(&home) };
        let state = LocalState {
            home,
            epoch,
            served: Served::default(),
            unsent: None,
            hosts,
            poll_at: 0,
            reported,
            is_publish_requested: false,
            is_closed: false,
        };
        chores.poll_at(&name, Duration::ZERO);
        chores.count_at(&name, Duration::ZERO);
        Self {
            name,
            state: Mutex::new(state),
            // Poll at once: the keys in the catalogue were not published yet.
            next_timeout: AtomicU64::new(0),
            is_building: AtomicBool::new(false),
            is_outgrown: AtomicBool::new(false),
            bits: AtomicU64::new(0),
            chores,
            work,
        }
    }

    /// Adds keys, which are published in at most one update. Calls `on_result` for each key with
    /// whether it is new. Returns whether the host still owns the set; if not, nothing happens.
    pub fn add_many(&self, now: Duration, keys: &[&[u8]], on_result: &mut dyn FnMut(bool)) -> bool {
        self.change(now, |state| state.home.add_many(now, keys, on_result)).is_some()
    }

    /// Removes keys. Calls `on_result` for each key with whether it was in the set. Returns whether
    /// the host still owns the set; if not, nothing happens.
    pub fn remove_many(
        &self,
        now: Duration,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool {
        let remove = |state: &mut LocalState<C>| {
            keys.iter().for_each(|key| on_result(state.home.remove(now, key)));
        };
        self.change(now, remove).is_some()
    }

    /// Changes the plan. Returns whether the host still owns the set.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    pub fn replan(&self, now: Duration, plan: SetPlan) -> Result<bool, ParamError> {
        let replanned = self.change(now, |state| state.home.replan(now, plan));
        self.chores.count_at(&self.name, now);
        replanned.transpose().map(|replanned| replanned.is_some())
    }

    /// Changes the policy. Returns whether the host still owns the set.
    pub fn set_policy(&self, now: Duration, policy: Policy) -> bool {
        self.change(now, |state| state.home.set_policy(policy)).is_some()
    }

    /// Requests that everything, including removals, be published when the set is polled next.
    /// Returns whether the host still owns the set.
    pub fn request_publish(&self, now: Duration) -> bool {
        self.change(now, |state| state.is_publish_requested = true).is_some()
    }

    /// Locks the set for reading. Changes must wait until the guard is dropped.
    #[must_use]
    pub fn home(&self) -> impl Deref<Target = Home<C>> + use<'_, C> {
        HomeGuard(self.lock())
    }

    /// The epoch of the last update; 0 if there was none.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.lock().epoch
    }

    /// When the engine should poll the set, unless the set changes earlier. Takes no lock.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        match self.next_timeout.load(Ordering::SeqCst) {
            u64::MAX => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Bits of the filter. The time to publish grows with them. Takes no lock.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits.load(Ordering::Relaxed)
    }

    /// Whether a filter is being built in steps: the caller must call [`Self::build_part`] until it
    /// is done. Takes no lock.
    #[must_use]
    pub fn is_building(&self) -> bool {
        self.is_building.load(Ordering::SeqCst)
    }

    /// Whether the filter holds more keys than planned while a longer one is being built, so that
    /// changes should wait for the build. Takes no lock.
    #[must_use]
    pub fn is_outgrown(&self) -> bool {
        self.is_outgrown.load(Ordering::Relaxed)
    }

    /// Continues the build by about this many keys. Returns whether there is more to do. Changes of
    /// the set must wait during a call, and can proceed between two calls.
    pub fn build_part(&self, now: Duration, keys: usize) -> bool {
        let mut state = self.lock();
        let progress = state.home.build_part(now, keys);
        self.note(&mut state);
        drop(state);
        drop(progress.replaced);
        !progress.is_finished
    }

    /// Cancels the build in progress.
    pub fn cancel_build(&self) {
        self.with_state(|state| state.home.cancel_build());
    }

    // ---- the engine's side

    pub(super) fn lock(&self) -> MutexGuard<'_, LocalState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rejects all changes from now on. Returns the last epoch.
    pub(super) fn close(&self) -> Epoch {
        let mut state = self.lock();
        state.is_closed = true;
        state.unsent = None;
        state.home.cancel_build();
        self.is_building.store(false, Ordering::SeqCst);
        if let Some(charge) = state.home.charge_mut() {
            charge.set(0);
        }
        self.next_timeout.store(u64::MAX, Ordering::SeqCst);
        state.epoch
    }

    /// Lets the engine poll the set, which is due, and schedules the next poll.
    pub(super) fn poll<T>(&self, with: impl FnOnce(&mut LocalState<C>) -> T) -> T {
        self.with_state(|state| {
            state.poll_at = u64::MAX;
            with(state)
        })
    }

    /// Runs `with` on the locked state, then updates the charge and the schedule.
    pub(super) fn with_state<T>(&self, with: impl FnOnce(&mut LocalState<C>) -> T) -> T {
        let mut state = self.lock();
        let done = with(&mut state);
        self.note(&mut state);
        done
    }

    /// Applies a change, then updates the charge and the schedule; `None` if the set is closed.
    fn change<T>(&self, now: Duration, change: impl FnOnce(&mut LocalState<C>) -> T) -> Option<T> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let done = change(&mut state);
        if self.work == Work::Deferred {
            state.home.note_due(now);
        }
        self.note(&mut state);
        Some(done)
    }

    /// Updates the memory charge of the set and when it must be polled. Does nothing for a closed
    /// set: a thread that was building its filter may still call this.
    fn note(&self, state: &mut LocalState<C>) {
        if state.is_closed {
            return;
        }
        let bytes = state.home.reserved_bytes() + state.served.memory_bytes(state.home.kept());
        if let Some(charge) = state.home.charge_mut() {
            charge.set(bytes);
        }
        let has_news = state.is_publish_requested || state.reported != Reported::of(&state.home);
        let timeout = match state.home.next_timeout() {
            // Scheduled again when that update is sent.
            _ if state.unsent.is_some() => u64::MAX,
            _ if has_news && self.work == Work::Deferred => 0,
            Some(timeout) => nanos(timeout),
            None => u64::MAX,
        };
        self.next_timeout.store(timeout, Ordering::SeqCst);
        if timeout < state.poll_at {
            state.poll_at = timeout;
            self.chores.poll_at(&self.name, Duration::from_nanos(timeout));
        }
        let is_building = state.home.is_building();
        if is_building && !self.is_building.swap(is_building, Ordering::SeqCst) {
            self.chores.build(&self.name);
        }
        self.is_building.store(is_building, Ordering::SeqCst);
        self.is_outgrown.store(state.home.is_outgrown(), Ordering::Relaxed);
        self.bits.store(state.home.filter().scheme().shape().bits(), Ordering::Relaxed);
    }
}

impl<C: Catalogue> LocalState<C> {
    /// Whether a caller requested to publish everything since the last call of this.
    pub(super) const fn take_publish_request(&mut self) -> bool {
        std::mem::replace(&mut self.is_publish_requested, false)
    }

    /// Updates the reported values. Returns the new and the previous ones.
    pub(super) fn report(&mut self) -> (Reported, Reported) {
        let now = Reported::of(&self.home);
        (now, std::mem::replace(&mut self.reported, now))
    }
}

/// A home whose set is locked.
struct HomeGuard<'a, C>(MutexGuard<'a, LocalState<C>>);

impl<C> Deref for HomeGuard<'_, C> {
    type Target = Home<C>;

    fn deref(&self) -> &Home<C> {
        &self.0.home
    }
}
