//! Pending work of own sets: sets to poll, sets whose homes must be counted, filters to build. The
//! lists make it possible to find these sets without scanning all of them.
//!
//! Shared by all own sets and the engine. Lock order: this lock is the last one taken.
//!
//! Always true: a set that must be polled is listed here, at that time or an earlier one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::agenda::Agenda;
use crate::replica::Name;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// Pending work of own sets.
#[derive(Debug)]
pub(super) struct Chores {
    /// When the first set must be polled, in nanoseconds. Readable without the lock.
    first_poll: AtomicU64,
    lists: Mutex<Lists>,
}

#[derive(Debug)]
struct Lists {
    polls: Agenda,
    counts: Agenda,
    builds: BTreeSet<Name>,
}

impl Chores {
    pub(super) const fn new() -> Self {
        let lists = Lists { polls: Agenda::new(), counts: Agenda::new(), builds: BTreeSet::new() };
        Self { first_poll: AtomicU64::new(u64::MAX), lists: Mutex::new(lists) }
    }

    /// When the first set must be polled.
    pub(super) fn first_poll(&self) -> Duration {
        Duration::from_nanos(self.first_poll.load(Ordering::SeqCst))
    }

    /// Schedules a set to be polled at this time, or earlier.
    pub(super) fn poll_at(&self, set: &Name, at: Duration) {
        let mut lists = self.lock();
        lists.polls.set_earliest(set, at);
        self.first_poll.store(lists.first_poll(), Ordering::SeqCst);
    }

    /// The sets that are due to be polled.
    pub(super) fn polls_due(&self, now: Duration) -> Vec<Name> {
        self.lock().polls.due(now).cloned().collect()
    }

    /// As [`Self::polls_due`], and removes them. The caller must poll them and schedule the next
    /// poll.
    pub(super) fn take_polls(&self, now: Duration) -> Vec<Name> {
        if now < self.first_poll() {
            return Vec::new();
        }
        let mut lists = self.lock();
        let due = lists.polls.take_due(now);
        self.first_poll.store(lists.first_poll(), Ordering::SeqCst);
        due
    }

    /// Schedules the homes of a set to be counted at this time, or earlier.
    pub(super) fn count_at(&self, set: &Name, at: Duration) {
        self.lock().counts.set_earliest(set, at);
    }

    /// Removes and returns the sets whose homes are due to be counted.
    pub(super) fn take_counts(&self, now: Duration) -> Vec<Name> {
        self.lock().counts.take_due(now)
    }

    /// Registers a set whose filter must be built in steps.
    pub(super) fn build(&self, set: &Name) {
        self.lock().builds.insert(set.clone());
    }

    /// Removes and returns the sets that were registered by [`Self::build`] since the last call.
    pub(super) fn take_builds(&self) -> BTreeSet<Name> {
        std::mem::take(&mut self.lock().builds)
    }

    /// Removes and returns one of these sets. The caller must build it or register it again.
    pub(super) fn take_build(&self) -> Option<Name> {
        self.lock().builds.pop_first()
    }

    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lists {
    fn first_poll(&self) -> u64 {
        self.polls.first().map_or(u64::MAX, nanos)
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
