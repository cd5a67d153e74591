//! Names with one time each, ordered by time: finds what is due without scanning the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::replica::Name;

/// Names with a time each.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    times: BTreeMap<Name, Duration>,
    order: BTreeSet<(Duration, Name)>,
}

impl Agenda {
    pub(super) const fn new() -> Self {
        Self { times: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Gives a name this time.
    pub(super) fn set(&mut self, name: &Name, at: Duration) {
        let before = self.times.insert(name.clone(), at);
        if before == Some(at) {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, name.clone()));
        }
        self.order.insert((at, name.clone()));
    }

    /// Gives a name this time, unless it has an earlier one.
    pub(super) fn set_earliest(&mut self, name: &Name, at: Duration) {
        if self.times.get(name).is_none_or(|before| at < *before) {
            self.set(name, at);
        }
    }

    pub(super) fn remove(&mut self, name: &Name) {
        if let Some(at) = self.times.remove(name) {
            self.order.remove(&(at, name.clone()));
        }
    }

    /// The earliest time.
    pub(super) fn first(&self) -> Option<Duration> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The names whose time has come, the earliest first.
    pub(super) fn due(&self, now: Duration) -> impl Iterator<Item = &Name> {
        self.order.iter().take_while(move |(at, _)| *at <= now).map(|(_, name)| name)
    }

    /// As [`Self::due`], and removes these names.
    pub(super) fn take_due(&mut self, now: Duration) -> Vec<Name> {
        let mut due = Vec::new();
        while self.first().is_some_and(|at| at <= now) {
            if let Some((_, name)) = self.order.pop_first() {
                self.times.remove(&name);
                due.push(name);
            }
        }
        due
    }

    /// All names, in their order.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.times.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::tests::name;

    #[test]
    fn names_are_due_in_the_order_of_their_times() {
        let at = Duration::from_secs;
        let mut agenda = Agenda::new();
        for (text, seconds) in [("a", 3), ("b", 1), ("c", 2), ("a", 1), ("b", 5)] {
            agenda.set(&name(text), at(seconds));
        }
        agenda.set_earliest(&name("c"), at(4));
        assert_eq!(agenda.first(), Some(at(1)));
        agenda.set_earliest(&name("c"), at(0));
        assert_eq!(agenda.due(at(1)).collect::<Vec<_>>(), [&name("c"), &name("a")]);
        assert_eq!(agenda.take_due(at(1)), [name("c"), name("a")]);
        assert_eq!(agenda.names().collect::<Vec<_>>(), [&name("b")]);
        agenda.remove(&name("b"));
        agenda.remove(&name("b"));
        assert_eq!((agenda.first(), agenda.take_due(at(9))), (None, vec![]));
    }
}
