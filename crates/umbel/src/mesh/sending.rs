//! What an engine has to say: updates, announcements, requests for pages.

use std::time::Duration;

use super::local::{LocalSet, LocalState};
use super::{Engine, QUEUE, SAMPLES};
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::{Destination, Event, Transmit};
use crate::replica::fetch::PageId;
use crate::replica::image::Image;
use crate::replica::message::{Announce, AnnouncedSet, Message, Request, Update};
use crate::replica::paged::encode_changes;
use crate::replica::publisher::Publication;
use crate::replica::{Epoch, Incarnation, Name};

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// Publishes an own set if an update is due or somebody wants one, and reports what changed.
    pub(super) fn publish_if_due(&mut self, now: Duration, set: &Name) {
        let Some(local) = self.local_set(set).cloned() else { return };
        let (update, (now_is, was)) = local.with_state(|state| {
            local.limit(state);
            let publication = match state.take_publish_request() {
                true => Some(state.home.publish(now)),
                false => state.home.poll(now),
            };
            (publication.map(|publication| self.update_of(set, state, publication)), state.report())
        });
        if let Some(update) = update {
            self.send_update(update);
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

    /// The next update of an own set, which counts from now on.
    fn update_of(&self, set: &Name, state: &mut LocalState<C>, publication: Publication) -> Update {
        let base = (!publication.from_nothing).then_some(state.epoch);
        state.epoch = state.epoch.next();
        Update {
            home: self.config.name.clone(),
            set: set.clone(),
            incarnation: self.config.incarnation,
            epoch: state.epoch,
            base,
            scheme: *state.home.kept().scheme(),
            checksum: state.home.kept().checksum(),
            changes: publication.changes,
        }
    }

    fn send_update(&mut self, update: Update) {
        let (set, epoch) = (update.set.clone(), update.epoch);
        let message = Message::Update(update).encode();
        let bytes = message.len() as u64;
        self.counters.updates_sent += 1;
        self.counters.update_bytes_sent += bytes;
        self.transmit(Destination::All, message);
        self.event(Event::Published { set, epoch, bytes });
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

    /// Asks a host for the pages of its sets that are on their way.
    pub(super) fn ask_for_pages(&mut self, now: Duration, host: &Name, only: Option<&Name>) {
        let first = self.config.page_patience;
        let jitter = 1.0 + (next_random(&mut self.random) >> 11) as f64 / (1u64 << 53) as f64 / 4.0;
        let patience = |tries: u32| (first * (1 << tries.min(6))).mul_f64(jitter);
        let mut requests: Vec<(Name, Incarnation, Option<PageId>)> = Vec::new();
        let sets = match only {
            Some(only) => self.sets.range_mut::<Name, _>(only..=only),
            None => self.sets.range_mut::<Name, _>(..),
        };
        for (name, set) in sets {
            if let Some(receiver) = set.receivers.get_mut(host) {
                let incarnation = receiver.incarnation();
                let pages = receiver.requests(now, patience, &mut self.counters);
                requests.extend(pages.into_iter().map(|page| (name.clone(), incarnation, page)));
            }
        }
        for (set, incarnation, page) in requests {
            let (component, page) = (page.map(|(id, _)| id), page.map_or(0, |(_, page)| page));
            let request = Request { home: host.clone(), set, incarnation, component, page };
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
    local: &LocalSet<C>,
    pick: impl FnMut(u64) -> u64,
) -> AnnouncedSet {
    let own = local.lock();
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
