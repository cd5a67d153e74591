//! What an engine has to say: updates, announcements, requests for pages.

use std::time::Duration;

use super::{Engine, Own, QUEUE, SAMPLES};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::design::ladder::RungChoice;
use crate::protocol::{Destination, Event, Transmit};
use crate::replica::image::Image;
use crate::replica::message::{Announce, AnnouncedSet, Message, Request, Update, Wanted};
use crate::replica::paged::encode_changes;
use crate::replica::pins::Published;
use crate::replica::publisher::Publication;
use crate::replica::{Epoch, Incarnation, Name};

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
        let update = Update {
            home,
            set: set.clone(),
            incarnation,
            epoch: own.epoch,
            base,
            scheme: *own.home.kept().scheme(),
            checksum: own.home.kept().checksum(),
            changes: publication.is_short.then(|| publication.changes.to_vec()),
        };
        let epoch = own.epoch;
        let message = Message::Update(update).encode();
        let bytes = message.len() as u64;
        self.counters.updates_sent += 1;
        self.counters.update_bytes_sent += bytes;
        self.transmit(Destination::All, message);
        self.event(Event::Published { set: set.clone(), epoch, bytes });
    }

    /// Tells everybody that a set that was deleted is no more: an image without components.
    pub(super) fn send_withdrawal(&mut self, set: &Name) {
        let (home, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let deleted = self.sets.get_mut(set).and_then(|set| set.deleted.as_mut());
        let Some((epoch, scheme)) = deleted else { return };
        *epoch = epoch.next();
        let image = Image::new(*scheme, Vec::new());
        let mut changes = Vec::new();
        encode_changes(&mut changes, &image, &[], &[]);
        let update = Update {
            home,
            set: set.clone(),
            incarnation,
            epoch: *epoch,
            base: None,
            scheme: *scheme,
            checksum: image.checksum(),
            changes: Some(changes),
        };
        self.transmit(Destination::All, Message::Update(update).encode());
    }

    pub(super) fn announce(&mut self) {
        let mut random = self.random;
        let mut pick = |below| next_random(&mut random) % below;
        let sets = self.sets.iter().filter_map(|(name, set)| match (&set.own, set.deleted) {
            (Some(own), _) => Some(own_announced(name, own, &mut pick)),
            (None, Some((epoch, scheme))) => Some(AnnouncedSet {
                set: name.clone(),
                scheme,
                epoch,
                checksum: Image::new(scheme, Vec::new()).checksum(),
                items: 0,
                samples: Vec::new(),
            }),
            (None, None) => None,
        });
        let sets = sets.filter(|set| set.epoch > Epoch(0)).collect();
        self.random = random;
        let (home, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let bytes = Message::Announce(Announce { home, incarnation, sets }).encode();
        self.transmit(Destination::All, bytes);
    }

    /// Asks a host for what is missing of its sets.
    pub(super) fn request_missing(&mut self, now: Duration, host: &Name, only: Option<&Name>) {
        let first = self.config.page_patience;
        let jitter = 1.0 + (next_random(&mut self.random) >> 11) as f64 / (1u64 << 53) as f64 / 4.0;
        let patience = |tries: u32| (first * (1 << tries.min(6))).mul_f64(jitter);
        let mut requests: Vec<(Name, Incarnation, Wanted)> = Vec::new();
        let sets = match only {
            Some(only) => self.sets.range_mut::<Name, _>(only..=only),
            None => self.sets.range_mut::<Name, _>(..),
        };
        for (name, set) in sets {
            if let Some(receiver) = set.receivers.get_mut(host) {
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

fn own_announced<C: Catalogue>(
    name: &Name,
    own: &Own<C>,
    pick: impl FnMut(u64) -> u64,
) -> AnnouncedSet {
    AnnouncedSet {
        set: name.clone(),
        scheme: *own.home.kept().scheme(),
        epoch: own.epoch,
        checksum: own.home.kept().checksum(),
        items: own.home.catalogue().len(),
        samples: own.home.sample(SAMPLES, pick),
    }
}

/// `SplitMix64`: what looks random here repeats from the seed.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
