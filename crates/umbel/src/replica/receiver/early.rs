//! Updates that arrived too early: earlier ones are still missing.
//!
//! Always true: they take no more bytes than the image that they will change.

use std::collections::BTreeMap;

use crate::replica::Epoch;
use crate::replica::message::Update;

/// Updates by their base epochs.
#[derive(Debug, Default)]
pub(super) struct EarlyUpdates {
    by_base: BTreeMap<Epoch, Update>,
}

impl EarlyUpdates {
    pub(super) const fn new() -> Self {
        Self { by_base: BTreeMap::new() }
    }

    /// Keeps an update if all kept ones then take at most `max_bytes`. Updates that are not kept
    /// are fetched later.
    pub(super) fn keep(&mut self, update: Update, max_bytes: u64) {
        let length = |update: &Update| update.changes.as_ref().map_or(0, Vec::len) as u64;
        let kept: u64 = self.by_base.values().map(length).sum();
        if let (Some(base), Some(_)) = (update.base, &update.changes)
            && kept + length(&update) <= max_bytes
        {
            self.by_base.insert(base, update);
        }
    }

    /// The update whose base is this epoch. Updates with earlier bases are dropped.
    pub(super) fn take(&mut self, epoch: Epoch) -> Option<Update> {
        self.by_base = self.by_base.split_off(&epoch);
        self.by_base.remove(&epoch)
    }

    /// The base of the first one: the missing updates end there.
    pub(super) fn first(&self) -> Option<Epoch> {
        self.by_base.keys().next().copied()
    }

    pub(super) fn clear(&mut self) {
        self.by_base.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Shape;
    use crate::replica::Incarnation;
    use crate::replica::tests::{hasher, name};
    use crate::scheme::Scheme;

    /// An update with this base epoch and length; `None` if it is too long to be sent.
    fn update(base: u64, length: Option<usize>) -> Update {
        Update {
            home: name("a"),
            set: name("set"),
            incarnation: Incarnation(1),
            sequence: base,
            epoch: Epoch(base + 1),
            base: Some(Epoch(base)),
            scheme: Scheme::new(Shape::new(1024, 3).unwrap(), hasher()),
            checksum: base,
            items: 1,
            changes: length.map(|length| vec![7; length]),
        }
    }

    #[test]
    fn updates_that_wait_take_no_more_than_the_image_and_the_others_are_fetched() {
        let mut early = EarlyUpdates::new();
        for (base, length) in [(5, Some(60)), (6, None), (7, Some(50)), (8, Some(40))] {
            early.keep(update(base, length), 100);
        }
        assert_eq!(early.first(), Some(Epoch(5)));
        assert!(early.take(Epoch(4)).is_none(), "its turn has not come");
        assert_eq!(early.take(Epoch(5)).map(|update| update.epoch), Some(Epoch(6)));
        assert!(early.take(Epoch(6)).is_none() && early.take(Epoch(7)).is_none());
        assert_eq!(early.first(), Some(Epoch(8)), "there was room for it");
        assert!(early.take(Epoch(9)).is_none());
        assert_eq!(early.first(), None, "what is older than the image is dropped");
    }
}
