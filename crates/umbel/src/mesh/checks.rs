//! Checks for the lab and the tests: compare images as they are with what homes published.

use super::Engine;
use super::budget::charge_of;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::replica::{Epoch, Incarnation, Name};

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// The incarnation, epoch and checksum of the image that the replica of another host's set
    /// holds: the last good image, even if a newer incarnation is known.
    #[must_use]
    pub fn replica_checksum(&self, set: &Name, host: &Name) -> Option<(Incarnation, Epoch, u64)> {
        self.sets.get(set)?.receivers.get(host)?.installed_checksum()
    }

    /// The incarnation, epoch and checksum of what this host last published of an own set.
    #[must_use]
    pub fn published_checksum(&self, set: &Name) -> Option<(Incarnation, Epoch, u64)> {
        let own = self.local_set(set)?.lock();
        Some((self.config.incarnation, own.epoch, own.home.kept().checksum()))
    }

    /// Checks that the counts of other hosts' sets match the replicas.
    pub(super) fn validate_peers(&self) {
        for (host, peer) in &self.peers {
            let receivers = self
                .sets
                .iter()
                .filter_map(|(name, set)| set.receivers.get(host).map(|receiver| (name, receiver)));
            peer.sets.validate(receivers);
        }
    }

    /// Checks that all replicas are charged, and the memory of own sets is counted.
    pub(super) fn validate_budgets(&self) {
        let receivers = self.sets.values().flat_map(|set| set.receivers.values());
        assert_eq!(self.charged, receivers.map(charge_of).sum::<u64>(), "replicas are charged");
        let own = self.sets.values().filter_map(|set| set.own.as_ref());
        let own = own.map(|local| local.lock().home.charged_bytes()).sum::<u64>();
        assert_eq!(self.own_memory.used(), own, "own sets are counted");
    }
}
