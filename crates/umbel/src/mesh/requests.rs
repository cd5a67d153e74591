//! Which sets of another host are being fetched: a limited number at a time, the others queue.
//!
//! A host that joins lacks every set of every other host. It fetches at most [`MAX_FETCHED`] sets
//! per host at a time, so that neither its requests nor the replies pile up. A set that waits costs
//! only an entry in the queue.
//!
//! Always true: at most [`MAX_FETCHED`] sets are being fetched. A set of which something is missing
//! is being fetched, is in the queue, or waits for an update that may still arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::agenda::Agenda;
use crate::replica::Name;
use crate::replica::receiver::Want;

/// The most sets of a host that are fetched at the same time.
pub(super) const MAX_FETCHED: usize = 64;

/// Which sets of a host are being fetched.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// When to request a set, or to retry.
    timers: Agenda,
    fetched: BTreeSet<Name>,
    /// The queue: waiting sets by number, and the number of each.
    line: BTreeMap<u64, Name>,
    numbers: BTreeMap<Name, u64>,
    next_number: u64,
}

impl Requests {
    /// Records what is wanted of a set, which may have changed.
    pub(super) fn note(&mut self, set: &Name, want: Want) {
        match want {
            Want::Nothing => self.remove(set),
            Want::Fetch if self.fetched.contains(set) => {}
            Want::Fetch => self.wait_in_line(set),
            Want::UpdateUntil(at) => {
                self.remove(set);
                self.timers.set(set, at);
            }
        }
    }

    /// Forgets a set of which nothing is wanted.
    pub(super) fn remove(&mut self, set: &Name) {
        self.timers.remove(set);
        self.fetched.remove(set);
        if let Some(number) = self.numbers.remove(set) {
            self.line.remove(&number);
        }
    }

    fn wait_in_line(&mut self, set: &Name) {
        self.timers.remove(set);
        if !self.numbers.contains_key(set) {
            self.numbers.insert(set.clone(), self.next_number);
            self.line.insert(self.next_number, set.clone());
            self.next_number += 1;
        }
    }

    /// The sets to request now: `about`, of which something has just arrived; those whose timer has
    /// expired; and those that leave the queue. The caller must call [`asked`](Self::asked) for
    /// each.
    pub(super) fn due(&mut self, now: Duration, about: Option<&Name>) -> BTreeSet<Name> {
        let mut due: BTreeSet<Name> =
            about.and_then(|set| self.fetched.get(set)).cloned().into_iter().collect();
        for set in self.timers.take_due(now) {
            if self.fetched.contains(&set) {
                due.insert(set);
            } else {
                self.wait_in_line(&set);
            }
        }
        while self.fetched.len() < MAX_FETCHED {
            let Some((_, next)) = self.line.pop_first() else { break };
            self.numbers.remove(&next);
            self.fetched.insert(next.clone());
            due.insert(next);
        }
        due
    }

    /// A set was requested: sets the time to retry.
    pub(super) fn asked(&mut self, set: &Name, again: Duration) {
        self.timers.set(set, again);
    }

    /// When the first timer expires.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.timers.first()
    }

    /// The sets of which something is missing or awaited.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &Name> {
        let awaited = self.timers.names().filter(|set| !self.fetched.contains(*set));
        awaited.chain(&self.fetched).chain(self.numbers.keys())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::tests::name;

    fn set(number: usize) -> Name {
        name(&format!("set-{number}"))
    }

    #[test]
    fn so_many_sets_are_fetched_at_a_time_and_the_others_have_their_turn() {
        let (mut requests, second) = (Requests::default(), Duration::from_secs(1));
        let sets = 2 * MAX_FETCHED + 3;
        (0..sets).for_each(|number| requests.note(&set(number), Want::Fetch));
        let first = requests.due(Duration::ZERO, None);
        assert_eq!(first, (0..MAX_FETCHED).map(set).collect());
        first.iter().for_each(|set| requests.asked(set, second));
        assert!(requests.due(Duration::ZERO, None).is_empty());
        assert_eq!(requests.due(Duration::ZERO, Some(&set(3))), BTreeSet::from([set(3)]));
        assert!(requests.due(Duration::ZERO, Some(&set(sets - 1))).is_empty(), "not its turn");

        // When one set has arrived, the next leaves the queue. Lost requests are repeated.
        requests.note(&set(3), Want::Nothing);
        assert_eq!(requests.due(Duration::ZERO, Some(&set(3))), BTreeSet::from([set(MAX_FETCHED)]));
        requests.asked(&set(MAX_FETCHED), second * 2);
        assert_eq!(requests.due(second, None).len(), MAX_FETCHED - 1);

        // A set that is no longer wanted leaves the queue.
        let gone = set(MAX_FETCHED + 1);
        requests.remove(&gone);
        (0..=MAX_FETCHED).for_each(|number| requests.remove(&set(number)));
        assert_eq!(requests.due(second, None).len(), MAX_FETCHED);
        assert!(!requests.unfinished().any(|set| *set == gone));
        assert_eq!(requests.unfinished().count(), sets - MAX_FETCHED - 2);
    }

    #[test]
    fn an_update_that_does_not_arrive_in_time_is_fetched() {
        let (mut requests, second) = (Requests::default(), Duration::from_secs(1));
        requests.note(&set(1), Want::UpdateUntil(second));
        assert!(requests.due(Duration::ZERO, Some(&set(1))).is_empty());
        assert_eq!(requests.next_timeout(), Some(second));
        assert_eq!(requests.due(second, None), BTreeSet::from([set(1)]));
        requests.note(&set(1), Want::Nothing);
        assert_eq!((requests.next_timeout(), requests.unfinished().count()), (None, 0));
    }
}
