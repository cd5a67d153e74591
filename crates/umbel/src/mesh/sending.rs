//! What an engine has to say: updates, and requests for what is missing.

use std::time::Duration;

use super::{Engine, QUEUE};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::design::ladder::RungChoice;
use crate::protocol::{Destination, Event, Transmit};
use crate::replica::image::Image;
use crate::replica::message::{ListedSet, Message, Request, Update, Wanted};
use crate::replica::paged::encode_changes;
use crate::replica::pins::Published;
use crate::replica::publisher::Publication;
use crate::replica::{Epoch, Incarnation, Name};
use crate::scheme::Scheme;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    pub(super) fn publish_if_due(&mut self, now: Duration, set: &Name) {
        self.limit_own(set);
        let Some(own) = self.own_mut(set) else { return };
        let publication = own.home.poll(now);
        let was_broken = std::mem::replace(&mut own.is_broken, own.home.is_broken());
        let breaks = own.is_broken && !was_broken;
        let rung = own.home.rung().map(RungChoice::rung);
        let moves = rung != std::mem::replace(&mut own.rung, rung);
        if let Some(publication) = publication {
            self.send_update(now, set, &publication);
        }
        if breaks {
            self.event(Event::Broken(set.clone()));
        }
        if moves {
            self.counters.rebuilds += 1;
            self.event(Event::Reshaped(set.clone()));
        }
        self.note_own(set);
    }

    pub(super) fn send_update(&mut self, now: Duration, set: &Name, publication: &Publication) {
        let (home, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let Some(own) = self.own_mut(set) else { return };
        let base = (!publication.from_nothing).then_some(own.epoch);
        own.epoch = own.epoch.next();
        let newest = Published { epoch: own.epoch, image: own.home.kept() };
        own.served.published(now, newest, publication);
        let listed = ListedSet {
            set: set.clone(),
            scheme: *own.home.kept().scheme(),
            epoch: own.epoch,
            checksum: own.home.kept().checksum(),
            items: own.home.catalogue().len(),
        };
        let ListedSet { scheme, epoch, checksum, items, .. } = listed;
        let update = Update {
            home,
            set: set.clone(),
            incarnation,
            sequence: self.published.publish(listed),
            epoch,
            base,
            scheme,
            checksum,
            items,
            changes: publication.is_short.then(|| publication.changes.to_vec()),
        };
        let message = Message::Update(update).encode();
        let bytes = message.len() as u64;
        self.counters.updates_sent += 1;
        self.counters.update_bytes_sent += bytes;
        self.transmit(Destination::All, message);
        self.event(Event::Published { set: set.clone(), epoch, bytes });
    }

    /// Tells everybody that a set was deleted: an image without components.
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

    /// When something is to be requested again.
    pub(super) fn request_timeouts(&self) -> impl Iterator<Item = Duration> {
        self.peers.iter().flat_map(|(host, peer)| {
            let receiver = |set: &Name| self.sets.get(set)?.receivers.get(host)?.next_timeout();
            peer.sets.unfinished().iter().filter_map(receiver)
        })
    }

    /// Asks a host for what is missing of its sets.
    pub(super) fn request_missing(&mut self, now: Duration, host: &Name, only: Option<&Name>) {
        let first = self.config.page_patience;
        let jitter = 1.0 + (next_random(&mut self.random) >> 11) as f64 / (1u64 << 53) as f64 / 4.0;
        let patience = |tries: u32| (first * (1 << tries.min(6))).mul_f64(jitter);
        let mut requests: Vec<(Name, Incarnation, Wanted)> = Vec::new();
        let Some(peer) = self.peers.get(host) else { return };
        let sets: Vec<Name> = match only {
            Some(only) => peer.sets.unfinished().get(only).cloned().into_iter().collect(),
            None => peer.sets.unfinished().iter().cloned().collect(),
        };
        for name in sets {
            let set = self.sets.get_mut(&name);
            if let Some(receiver) = set.and_then(|set| set.receivers.get_mut(host)) {
                let incarnation = receiver.incarnation();
                let wanted = receiver.requests(now, patience, &mut self.counters);
                let wanted = wanted.into_iter().map(|wanted| (name.clone(), incarnation, wanted));
                requests.extend(wanted);
            }
        }
        for (set, incarnation, wanted) in requests {
            let request = Request { home: host.clone(), set, incarnation, wanted };
            let bytes = Message::Request(request).encode();
            self.counters.requests_sent += 1;
            self.transmit(Destination::Host(host.clone()), bytes);
        }
    }

    pub(super) fn transmit(&mut self, to: Destination, bytes: Vec<u8>) {
        if self.transmits.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            self.transmits.push_back(Transmit { to, bytes });
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

/// `SplitMix64`: what looks random here repeats from the seed.
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
