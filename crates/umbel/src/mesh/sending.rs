//! What an engine sends: updates, and requests for what is missing.

use std::time::Duration;

use super::local::LocalState;
use super::peers::Peer;
use super::{Engine, QUEUE, Set};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::{Destination, Event, Transmit};
use crate::replica::image::Image;
use crate::replica::message::{ListedSet, Message, Request, Update, Wanted};
use crate::replica::paged::encode_changes;
use crate::replica::pins::Published;
use crate::replica::publisher::Publication;
use crate::replica::update_log::FRESH;
use crate::replica::{Epoch, Incarnation, Name};
use crate::scheme::Scheme;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// Publishes the own sets whose time has come.
    pub(super) fn publish_all_due(&mut self, now: Duration) {
        self.chores.take_polls(now).iter().for_each(|set| self.publish_if_due(now, set));
    }

    /// Publishes every own set that has unpublished keys, which other hosts deny, whatever its
    /// policy.
    pub(super) fn publish_all_missed(&mut self, now: Duration) {
        let missed = |(name, set): (&Name, &Set<C, R>)| {
            let local = set.own.as_ref().filter(|local| local.home().misses() > 0)?;
            local.request_publish(now).then(|| name.clone())
        };
        let missed: Vec<Name> = self.sets.iter().filter_map(missed).collect();
        missed.iter().for_each(|set| self.publish_if_due(now, set));
    }

    /// Publishes an own set if an update is due or was requested, and reports what changed.
    pub(super) fn publish_if_due(&mut self, now: Duration, set: &Name) {
        let Some(local) = self.local_set(set).cloned() else { return };
        let (update, (now_is, was)) = local.poll(|state| {
            let prepared = match () {
                () if state.unsent.is_some() => None,
                () if state.take_publish_request() => Some(state.home.prepare_everything(now)),
                () => state.home.prepare_due(now),
            };
            let update = prepared.and_then(|prepared| self.begin_update(now, set, state, prepared));
            (update, state.report())
        });
        if let Some(update) = update {
            self.send_update(now, update);
        }
        if now_is.is_broken && !was.is_broken {
            self.event(Event::Broken(set.clone()));
        }
        if now_is.rung != was.rung {
            self.counters.rebuilds += 1;
            self.event(Event::Reshaped(set.clone()));
        }
        self.list_confined(set, now_is.is_confined);
    }

    /// Builds the message for the encoded update that leads to the present epoch of an own set. Its
    /// sequence number is assigned when it is sent.
    pub(super) fn update_of(
        &self,
        now: Duration,
        set: &Name,
        state: &mut LocalState<C>,
        base: Epoch,
        publication: &Publication,
    ) -> Update {
        state.home.published(now, publication);
        let newest = Published { epoch: state.epoch, image: state.home.kept() };
        state.served.published(now, newest, publication);
        Update {
            home: self.config.name.clone(),
            set: set.clone(),
            incarnation: self.config.incarnation,
            sequence: 0,
            epoch: state.epoch,
            base: (!publication.from_nothing).then_some(base),
            scheme: *state.home.kept().scheme(),
            checksum: state.home.kept().checksum(),
            items: state.home.catalogue().len(),
            changes: publication.is_short.then(|| publication.changes.to_vec()),
        }
    }

    pub(super) fn send_update(&mut self, now: Duration, mut update: Update) {
        let (set, epoch) = (update.set.clone(), update.epoch);
        let Update { scheme, checksum, items, .. } = update;
        let listed = ListedSet { set: set.clone(), scheme, epoch, checksum, items };
        update.sequence = self.published.publish(listed);
        self.serving.set_earliest(&set, now + FRESH);
        let message = Message::Update(update).encode();
        let bytes = message.len() as u64;
        self.counters.updates_sent += 1;
        self.counters.update_bytes_sent += bytes;
        self.transmit(Destination::All, message);
        self.event(Event::Published { set, epoch, bytes });
    }

    /// Sends to all hosts that a set was deleted: an image without components.
    pub(super) fn send_withdrawal(&mut self, set: &Name, epoch: Epoch, scheme: Scheme) {
        let image = Image::new(scheme, Vec::new());
        let mut changes = Vec::new();
        encode_changes(&mut changes, &image, &[], &[]);
        let update = Update {
            home: self.config.name.clone(),
            set: set.clone(),
            incarnation: self.config.incarnation,
            sequence: self.published.withdraw(set, epoch),
            epoch,
            base: None,
            scheme,
            checksum: image.checksum(),
            items: 0,
            changes: Some(changes),
        };
        self.transmit(Destination::All, Message::Update(update).encode());
    }

    /// When requests to each host are due, including retries.
    pub(super) fn request_timeouts(&self) -> impl Iterator<Item = Duration> {
        self.peers.values().filter_map(|peer| peer.sets.requests.next_timeout())
    }

    /// Requests what is missing from all hosts whose requests are due.
    pub(super) fn request_all_missing(&mut self, now: Duration) {
        let is_due = |peer: &Peer| peer.sets.requests.next_timeout().is_some_and(|at| at <= now);
        let due = self.peers.iter().filter(|(_, peer)| is_due(peer));
        let due: Vec<Name> = due.map(|(host, _)| host.clone()).collect();
        due.iter().for_each(|host| self.request_missing(now, host, None));
    }

    /// Requests what is missing of a host's sets. `about` is the set of which something has just
    /// arrived.
    pub(super) fn request_missing(&mut self, now: Duration, host: &Name, about: Option<&Name>) {
        let Some(peer) = self.peers.get_mut(host) else { return };
        let due = peer.sets.requests.due(now, about);
        if due.is_empty() {
            return;
        }
        let first = self.config.page_patience;
        let jitter = 1.0 + (next_random(&mut self.random) >> 11) as f64 / (1u64 << 53) as f64 / 4.0;
        let patience = |tries: u32| (first * (1 << tries.min(3))).mul_f64(jitter);
        let mut requests: Vec<(Name, Incarnation, Wanted)> = Vec::new();
        for name in due {
            let set = self.sets.get_mut(&name);
            let Some(receiver) = set.and_then(|set| set.receivers.get_mut(host)) else { continue };
            let incarnation = receiver.incarnation();
            let wanted = receiver.requests(now, patience, &mut self.counters);
            peer.sets.requests.asked(&name, receiver.next_timeout().unwrap_or(now + first));
            requests.extend(wanted.into_iter().map(|wanted| (name.clone(), incarnation, wanted)));
        }
        for (set, incarnation, wanted) in requests {
            let request = Request { home: host.clone(), set, incarnation, wanted };
            let bytes = Message::Request(request).encode();
            self.counters.requests_sent += 1;
            self.transmit(Destination::Host(host.clone()), bytes);
        }
    }

    pub(super) fn transmit(&mut self, to: Destination, bytes: Vec<u8>) {
        let queue = match to {
            Destination::Reply(_) => &mut self.replies,
            _ => &mut self.transmits,
        };
        if queue.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            queue.push_back(Transmit { to, bytes });
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        if self.events.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            self.events.push_back(event);
        }
    }
}

/// `SplitMix64`: the same seed gives the same numbers.
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
