//! How an engine handles messages: whether they are accepted, and by which replica.

use std::time::Duration;

use super::Engine;
use super::budget::charge_of;
use super::peer_sets::Contribution;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::{Destination, Event};
use crate::replica::message::{Changes, Page, Request, Update};
use crate::replica::pins::{PATIENCE_INTERVALS, Published};
use crate::replica::receiver::{Receiver, Refused};
use crate::replica::replicas::Replicas;
use crate::replica::{Counters, Incarnation, Name};
use crate::scheme::Scheme;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    pub(super) fn handle_update(&mut self, now: Duration, update: Update) {
        let Update { home, set, incarnation, sequence, .. } = &update;
        let (is_new, sequence) = (!self.has_receiver(set, home), *sequence);
        self.live_anew(home, *incarnation);
        if let Some(peer) = self.peers.get_mut(home).filter(|peer| peer.incarnation == *incarnation)
        {
            if is_new && peer.sets.has_seen(sequence) {
                // Delivered after a list that no longer names this set: ignore it.
                self.counters.duplicates += 1;
                return;
            }
            peer.sets.saw(sequence);
        }
        if !self.accepts(&update.home, &update.set, &update.scheme) {
            return;
        }
        let (life, set, home) = (update.incarnation, update.set.clone(), update.home.clone());
        self.with_receiver(now, &set, &home, life, |receiver, replicas, counters| {
            receiver.update(now, update, replicas, counters)
        });
    }

    pub(super) fn handle_page(&mut self, now: Duration, page: &Page) {
        if !self.has_receiver(&page.set, &page.home)
            || !self.accepts(&page.home, &page.set, &page.scheme)
        {
            return;
        }
        self.with_receiver(
            now,
            &page.set,
            &page.home,
            page.incarnation,
            |receiver, replicas, counters| receiver.page(now, page, replicas, counters),
        );
    }

    pub(super) fn handle_changes(&mut self, now: Duration, changes: &Changes) {
        let Changes { home, set, incarnation, scheme, .. } = changes;
        if !self.has_receiver(set, home) || !self.accepts(home, set, scheme) {
            return;
        }
        self.with_receiver(now, set, home, *incarnation, |receiver, replicas, counters| {
            receiver.changes(now, changes, replicas, counters)
        });
    }

    pub(super) fn handle_request(&mut self, now: Duration, from: &Name, request: &Request) {
        if request.home != self.config.name || request.incarnation != self.config.incarnation {
            self.counters.old_lives += 1;
            return;
        }
        let Some(local) = self.local_set(&request.set) else { return };
        let found = local.with_state(|state| {
            let newest = Published { epoch: state.epoch, image: state.home.kept() };
            let may_pin = self.own_memory.free() >= newest.image.memory_bytes();
            state.served.find(now, request.wanted, newest, may_pin)
        });
        let Some(found) = found else { return };
        let unused = now + self.config.page_patience * PATIENCE_INTERVALS;
        self.serving.set_earliest(&request.set, unused);
        let bytes = found.into_message(request).encode();
        self.counters.page_bytes_sent += bytes.len() as u64;
        self.transmit(Destination::Reply(from.clone()), bytes);
    }

    /// Drops served data that no host fetches any more.
    pub(super) fn expire_served(&mut self, now: Duration) {
        let patience = self.config.page_patience;
        for set in self.serving.take_due(now) {
            let Some(local) = self.local_set(&set) else { continue };
            let has_more =
                local.with_state(|state| state.served.expire(now, patience, state.home.kept()));
            if has_more {
                self.serving.set(&set, now + patience);
            }
        }
    }

    /// Lets a replica process a message, and updates everything that is counted about the replica.
    pub(super) fn with_receiver(
        &mut self,
        now: Duration,
        set: &Name,
        home: &Name,
        incarnation: Incarnation,
        take: impl FnOnce(&mut Receiver, &Replicas<R>, &mut Counters) -> Result<(), Refused>,
    ) {
        let mut counters = std::mem::take(&mut self.counters);
        let (set_name, is_new) = (set, !self.has_receiver(set, home));
        // Whether the home created the set just now, rather than the home being new here.
        let is_new_set = is_new && self.peers.get(home).is_some_and(|peer| peer.sets.is_listed());
        let set = self.set_mut(set);
        let receiver = set
            .receivers
            .entry(home.clone())
            .or_insert_with(|| Receiver::new(now, home.clone(), incarnation));
        let (epoch, before) = (receiver.epoch(), if is_new { 0 } else { charge_of(receiver) });
        let since = if is_new_set { Duration::ZERO } else { receiver.updated() };
        let contributed = (!is_new).then(|| Contribution::of(set_name, receiver));
        let outcome = take(receiver, &set.replicas, &mut counters);
        let (charge, contributes) = (charge_of(receiver), Contribution::of(set_name, receiver));
        let (arrived, is_withdrawn) =
            (receiver.epoch().filter(|now| Some(*now) != epoch), receiver.is_withdrawn());
        self.counters = counters;
        self.recharge(before, Some(charge));
        if is_new {
            self.chores.count_at(set_name, now);
        }
        if let Some(peer) = self.peers.get_mut(home) {
            peer.sets.changed(set_name, contributed, contributes);
        }
        if is_withdrawn {
            self.remove_receiver(set_name, home);
        }
        if let Some(epoch) = arrived {
            let (set, home) = (set_name.clone(), home.clone());
            self.event(Event::Updated { set, home, epoch, since });
        }
        if let Err(refused) = outcome {
            self.refuse(home, refused.to_string());
        }
    }

    pub(super) fn has_receiver(&self, set: &Name, home: &Name) -> bool {
        self.sets.get(set).is_some_and(|set| set.receivers.contains_key(home))
    }

    /// A home no longer has a set: removes its replica.
    pub(super) fn remove_receiver(&mut self, name: &Name, home: &Name) {
        let Some(set) = self.sets.get_mut(name) else { return };
        let Some(mut receiver) = set.receivers.remove(home) else { return };
        let (charge, contributed) = (charge_of(&receiver), Contribution::of(name, &receiver));
        receiver.expire(&set.replicas);
        self.recharge(charge, None);
        if let Some(peer) = self.peers.get_mut(home) {
            peer.sets.removed(name, contributed);
        }
        self.chores.count_at(name, Duration::ZERO);
        self.drop_if_unused(name);
    }

    /// Removes a set that no host has any more.
    pub(super) fn drop_if_unused(&mut self, name: &Name) {
        if self.sets.get(name).is_some_and(|set| !set.exists()) {
            self.sets.remove(name);
        }
    }

    /// Whether a home's filter of this scheme may be held here. A refusal is counted and reported.
    pub(super) fn accepts(&mut self, home: &Name, set: &Name, scheme: &Scheme) -> bool {
        let own = Scheme::new(*scheme.shape(), self.config.hasher);
        if let Err(mismatch) = own.check(scheme) {
            self.refuse(home, mismatch.to_string());
            return false;
        }
        self.admits(home, set, scheme.shape().bits())
    }

    pub(super) fn refuse(&mut self, from: &Name, reason: String) {
        self.counters.refused += 1;
        self.event(Event::Refused { from: from.clone(), reason });
    }
}
