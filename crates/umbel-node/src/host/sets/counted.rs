//! Counted keys: a cuckoo filter holds an item as often as it was added.
//!
//! The first occurrence is the key in the catalogue, further ones are its repeats. A count is
//! written after its key is added and deleted before its key is removed, so that no crash leaves a
//! count without a key.

use std::collections::HashSet;

use umbel::catalogue::Catalogue as _;

use super::Sets;
use super::own::{Change, OwnSet};
use crate::counts::Counts;
use crate::host::Lifetime;

impl OwnSet {
    /// How often a key is held.
    pub(in crate::host) fn times(&self, key: &[u8]) -> u64 {
        match self.held().contains(key) {
            true => 1 + u64::from(self.counts.lock().repeats(key)),
            false => 0,
        }
    }

    /// The sum of all repeats, and how many items clients deleted.
    pub(in crate::host) fn repeats_and_deleted(&self) -> (u64, u64) {
        let counts = self.counts.lock();
        (counts.total(), counts.deleted())
    }

    /// The number of keys held, and the bytes that the filter and its published copy take.
    pub(in crate::host) fn keys_and_bytes(&self, sets: &Sets) -> (u64, u64) {
        match &self.local {
            Some(local) => {
                let home = local.home();
                (home.catalogue().len(), home.memory_bytes())
            }
            None => {
                let state = sets.lock();
                let home = state.protocol.home(&self.name);
                home.map_or((0, 0), |home| (home.catalogue().len(), home.memory_bytes()))
            }
        }
    }
}

impl Change<'_> {
    /// The number of keys held.
    pub(in crate::host) fn keys(&self) -> u64 {
        self.own.keys_and_bytes(self.sets).0
    }

    /// The number of items held: keys, each as often as it was added.
    pub(in crate::host) fn items(&self) -> u64 {
        self.keys() + self.own.counts.lock().total()
    }

    /// Whether a key is held.
    pub(in crate::host) fn holds(&self, key: &[u8]) -> bool {
        self.own.held().contains(key)
    }

    /// How many of these keys, from the first on, can be added until there would be more than
    /// `max_keys`. A key that occurs twice among them is new only once.
    pub(in crate::host) fn count_fitting(&self, keys: &[&[u8]], max_keys: u64) -> usize {
        let room = usize::try_from(max_keys.saturating_sub(self.keys())).unwrap_or(usize::MAX);
        if keys.len() <= room {
            return keys.len();
        }
        let mut new = HashSet::new();
        for (place, key) in keys.iter().enumerate() {
            if self.holds(key) || new.contains(*key) {
                continue;
            }
            if new.len() == room {
                return place;
            }
            new.insert(*key);
        }
        keys.len()
    }

    /// Adds one occurrence of a key.
    pub(in crate::host) fn add_once_more(&mut self, key: &[u8]) {
        let mut is_new = false;
        self.add(&[key], Lifetime::Default, &mut |new| is_new = new);
        if !is_new {
            let repeats = self.own.counts.lock().repeats(key).saturating_add(1);
            self.set_repeats(key, repeats);
        }
    }

    /// Removes one occurrence of a key; returns whether it was held.
    pub(in crate::host) fn remove_once(&mut self, key: &[u8]) -> bool {
        let times = self.own.times(key);
        match times {
            0 => return false,
            1 => self.remove(&[key], &mut |_| ()),
            _ => {
                let repeats = self.own.counts.lock().repeats(key);
                self.set_repeats(key, repeats.saturating_sub(1));
            }
        }
        let deleted = self.own.counts.lock().deleted();
        self.set_deleted(deleted.saturating_add(1));
        true
    }

    /// Sets how often a key that is held was added after the first time.
    pub(in crate::host) fn set_repeats(&self, key: &[u8], repeats: u32) {
        let is_changed = self.own.counts.lock().set_repeats(key, repeats);
        if let Some(journal) = self.sets.journal.as_ref().filter(|_| is_changed) {
            journal.set_repeats(self.own.number, key, repeats);
        }
    }

    /// Sets how many items clients deleted.
    pub(in crate::host) fn set_deleted(&self, deleted: u64) {
        self.own.counts.lock().set_deleted(deleted);
        if let Some(journal) = &self.sets.journal {
            journal.set_deleted(self.own.number, deleted);
        }
    }

    /// Deletes the counts of keys that are about to be removed completely.
    pub(super) fn forget_repeats(&self, keys: &[&[u8]]) {
        let repeated = self.own.counts.lock().repeated(keys);
        repeated.into_iter().for_each(|key| self.set_repeats(key, 0));
    }

    /// Restores the counts that the journal has stored.
    pub(super) fn restore_counts(&self, counts: Counts) {
        *self.own.counts.lock() = counts;
    }
}
