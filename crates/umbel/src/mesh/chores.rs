//! What own sets want done: to be polled, to have their homes counted, to be built. Whoever does it
//! finds the sets concerned without a pass over all of them.
//!
//! Shared by all own sets and the engine. Lock order: this lock is the last one taken.
//!
//! Always true: a set that is to be polled stands here, at that time or at an earlier one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::agenda::Agenda;
use crate::replica::Name;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// What own sets want done.
#[derive(Debug)]
pub(super) struct Chores {
    /// When the first set is to be polled, in nanoseconds: read without the lock.
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

    /// When the first set is to be polled.
    pub(super) fn first_poll(&self) -> Duration {
        Duration::from_nanos(self.first_poll.load(Ordering::SeqCst))
    }

    /// A set is to be polled at this time, or before.
    pub(super) fn poll_at(&self, set: &Name, at: Duration) {
        let mut lists = self.lock();
        lists.polls.set_earliest(set, at);
        self.first_poll.store(lists.first_poll(), Ordering::SeqCst);
    }

    /// The sets that are to be polled by now.
    pub(super) fn polls_due(&self, now: Duration) -> Vec<Name> {
        self.lock().polls.due(now).cloned().collect()
    }

    /// As [`Self::polls_due`]. Whoever takes them polls them, and says when to poll them again.
    pub(super) fn take_polls(&self, now: Duration) -> Vec<Name> {
        if now < self.first_poll() {
            return Vec::new();
        }
        let mut lists = self.lock();
        let due = lists.polls.take_due(now);
        self.first_poll.store(lists.first_poll(), Ordering::SeqCst);
        due
    }

    /// The homes of a set are to be counted at this time, or before.
    pub(super) fn count_at(&self, set: &Name, at: Duration) {
        self.lock().counts.set_earliest(set, at);
    }

    /// The sets whose homes are to be counted by now.
    pub(super) fn take_counts(&self, now: Duration) -> Vec<Name> {
        self.lock().counts.take_due(now)
    }

    /// The filter of a set is to be built in steps.
    pub(super) fn build(&self, set: &Name) {
        self.lock().builds.insert(set.clone());
    }

    /// The sets whose filters were to be built since this was last asked.
    pub(super) fn take_builds(&self) -> BTreeSet<Name> {
        std::mem::take(&mut self.lock().builds)
    }

    /// One of these sets: whoever takes it builds it, or puts it back.
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
