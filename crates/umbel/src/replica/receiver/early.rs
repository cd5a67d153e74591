//! Updates whose turn has not come: those before them are missing.
//!
//! Always true: they take no more bytes than the image that they are to change.

use std::collections::BTreeMap;

use crate::replica::Epoch;
use crate::replica::message::Update;

/// Updates by the epochs that they are against.
#[derive(Debug, Default)]
pub(super) struct EarlyUpdates {
    by_base: BTreeMap<Epoch, Update>,
}

impl EarlyUpdates {
    pub(super) const fn new() -> Self {
        Self { by_base: BTreeMap::new() }
    }

    /// Keeps an update, if all of them take no more than `max_bytes`. Others are fetched.
    pub(super) fn keep(&mut self, update: Update, max_bytes: u64) {
        let length = |update: &Update| update.changes.as_ref().map_or(0, Vec::len) as u64;
        let kept: u64 = self.by_base.values().map(length).sum();
        if let (Some(base), Some(_)) = (update.base, &update.changes)
            && kept + length(&update) <= max_bytes
        {
            self.by_base.insert(base, update);
        }
    }

    /// The update against this epoch; those against earlier ones are dropped.
    pub(super) fn take(&mut self, epoch: Epoch) -> Option<Update> {
        self.by_base = self.by_base.split_off(&epoch);
        self.by_base.remove(&epoch)
    }

    /// The epoch that the first one is against: what is missing ends there.
    pub(super) fn first(&self) -> Option<Epoch> {
        self.by_base.keys().next().copied()
    }

    pub(super) fn clear(&mut self) {
        self.by_base.clear();
    }
}
