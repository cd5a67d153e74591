//! What an engine makes of messages: whether they may be taken, and by which replica.

use std::time::Duration;

use super::Engine;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::{Destination, Event};
use crate::replica::image::Image;
use crate::replica::message::{Announce, Message, Page, Request, Update};
use crate::replica::paged::{self, PAGE_BITS};
use crate::replica::receiver::{Receiver, Refused};
use crate::replica::replicas::Replicas;
use crate::replica::{Counters, Epoch, Incarnation, Name};
use crate::scheme::Scheme;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    pub(super) fn handle_update(&mut self, now: Duration, update: &Update) {
        if let Err(reason) = self.accepts(&update.scheme) {
            return self.refuse(&update.home, reason);
        }
        let (life, most) = (update.incarnation, self.most_components(&update.scheme));
        self.with_receiver(now, &update.set, &update.home, life, |receiver, replicas, counters| {
            receiver.update(now, update, most, replicas, counters)
        });
    }

    pub(super) fn handle_page(&mut self, now: Duration, page: &Page) {
        if let Err(reason) = self.accepts(&page.scheme) {
            return self.refuse(&page.home, reason);
        }
        if page.components.len() > self.most_components(&page.scheme) {
            return self.refuse(&page.home, String::from("its image has too many components"));
        }
        if self.sets.get(&page.set).is_none_or(|set| !set.receivers.contains_key(&page.home)) {
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

    pub(super) fn handle_announce(&mut self, now: Duration, announce: &Announce) {
        let Announce { home, incarnation, sets } = announce;
        for set in sets {
            if let Err(reason) = self.accepts(&set.scheme) {
                self.refuse(home, reason);
                continue;
            }
            self.with_receiver(now, &set.set, home, *incarnation, |receiver, _, counters| {
                receiver.announced(now, *incarnation, set, counters);
                Ok(())
            });
        }
        self.forget_unannounced(announce);
        if let Some(peer) = self.peers.get_mut(home) {
            peer.incarnation = peer.incarnation.max(*incarnation);
            peer.has_announced = true;
        }
    }

    /// A set that a home's new life does not name is no longer there.
    pub(super) fn forget_unannounced(&mut self, announce: &Announce) {
        for (name, set) in &mut self.sets {
            let named = announce.sets.iter().any(|announced| announced.set == *name);
            let receiver = set.receivers.get_mut(&announce.home);
            // In the same life, an announcement from before the first update may come late.
            let Some(receiver) = receiver.filter(|receiver| {
                let life = receiver.incarnation();
                let nothing_here = announce.incarnation == life && receiver.epoch().is_none();
                !named && (announce.incarnation > life || nothing_here)
            }) else {
                continue;
            };
            receiver.expire(&set.replicas);
            set.receivers.remove(&announce.home);
        }
    }

    pub(super) fn handle_request(&mut self, from: &Name, request: &Request) {
        if request.home != self.config.name || request.incarnation != self.config.incarnation {
            self.counters.old_lives += 1;
            return;
        }
        let Some(set) = self.sets.get(&request.set) else { return };
        let (epoch, image) = match (&set.own, set.deleted) {
            (Some(own), _) => (own.epoch, own.home.kept()),
            (None, Some((epoch, scheme))) => (epoch, &Image::new(scheme, Vec::new())),
            (None, None) => return,
        };
        let reply = page_of(image, request, self.config.name.clone(), epoch);
        let bytes = Message::Page(reply).encode();
        self.counters.page_bytes_sent += bytes.len() as u64;
        self.transmit(Destination::Reply(from.clone()), bytes);
    }

    /// Lets a replica take a message, and keeps the table of columns in step.
    pub(super) fn with_receiver(
        &mut self,
        now: Duration,
        set: &Name,
        home: &Name,
        incarnation: Incarnation,
        take: impl FnOnce(&mut Receiver, &Replicas<R>, &mut Counters) -> Result<(), Refused>,
    ) {
        let mut counters = std::mem::take(&mut self.counters);
        let set_name = set;
        let set = self.set_mut(set);
        let receiver = set
            .receivers
            .entry(home.clone())
            .or_insert_with(|| Receiver::new(now, home.clone(), incarnation));
        let epoch = receiver.epoch();
        let outcome = take(receiver, &set.replicas, &mut counters);
        let arrived = receiver.epoch().filter(|now| Some(*now) != epoch);
        self.counters = counters;
        if let Some(epoch) = arrived {
            let (set, home) = (set_name.clone(), home.clone());
            self.event(Event::Updated { set, home, epoch });
        }
        if let Err(refused) = outcome {
            self.refuse(home, refused.to_string());
        }
    }

    /// Whether a filter of this scheme may be held here.
    pub(super) fn accepts(&self, scheme: &Scheme) -> Result<(), String> {
        let own = Scheme::new(*scheme.shape(), self.config.hasher);
        own.check(scheme).map_err(|mismatch| mismatch.to_string())?;
        if scheme.shape().bits() > self.config.max_bits {
            let (bits, most) = (scheme.shape().bits(), self.config.max_bits);
            return Err(format!("its filter has {bits} bits, and {most} are accepted"));
        }
        Ok(())
    }

    /// How many components of this scheme one home may have here.
    pub(super) fn most_components(&self, scheme: &Scheme) -> usize {
        let most = self.config.max_bits / scheme.shape().bits();
        paged::MOST_COMPONENTS.min(most as usize)
    }

    pub(super) fn refuse(&mut self, from: &Name, reason: String) {
        self.counters.refused += 1;
        self.event(Event::Refused { from: from.clone(), reason });
    }
}

/// The page that was asked for. If its component is no more, or that page never was, the
/// answer names the components that are, and gives the first page of the first.
fn page_of(image: &Image, request: &Request, home: Name, epoch: Epoch) -> Page {
    let shape = image.scheme().shape();
    let wanted = request.component.and_then(|id| image.component(id));
    let (component, page) = match wanted {
        Some(component) if request.page < paged::pages(shape) => (Some(component), request.page),
        _ => (image.components().first(), 0),
    };
    let mut bytes = Vec::new();
    if let Some(component) = component {
        let len = paged::page_len(shape, page);
        paged::encode_page(&mut bytes, &component.bits.slice(page * PAGE_BITS, len));
    }
    Page {
        home,
        set: request.set.clone(),
        incarnation: request.incarnation,
        epoch,
        scheme: *image.scheme(),
        checksum: image.checksum(),
        components: image.components().iter().map(|component| component.id).collect(),
        of: component.map(|component| (component.id, page)),
        bytes,
    }
}
