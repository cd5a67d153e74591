//! What an engine makes of messages: whether they may be taken, and by which replica.

use std::time::Duration;

use super::Engine;
use super::budget::charge_of;
use crate::bank::Rows;
use crate::catalogue::Catalogue;
use crate::protocol::{Destination, Event};
use crate::replica::image::Image;
use crate::replica::message::{Announce, Message, Page, Request, Update};
use crate::replica::paged::{self, ONLY, PAGE_BITS};
use crate::replica::receiver::{Receiver, Refused};
use crate::replica::replicas::Replicas;
use crate::replica::{Counters, Epoch, Incarnation, Name};
use crate::scheme::Scheme;

impl<C: Catalogue, R: Rows> Engine<C, R> {
    pub(super) fn handle_update(&mut self, now: Duration, update: &Update) {
        if !self.accepts(&update.home, &update.set, &update.scheme) {
            return;
        }
        let life = update.incarnation;
        self.with_receiver(now, &update.set, &update.home, life, |receiver, replicas, counters| {
            receiver.update(now, update, replicas, counters)
        });
    }

    pub(super) fn handle_page(&mut self, now: Duration, page: &Page) {
        if self.sets.get(&page.set).is_none_or(|set| !set.receivers.contains_key(&page.home)) {
            return;
        }
        if page.components.iter().any(|component| *component != ONLY) {
            let reason = String::from("its image has another component than number 0");
            return self.refuse(&page.home, reason);
        }
        if !self.accepts(&page.home, &page.set, &page.scheme) {
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
            if !self.accepts(home, &set.set, &set.scheme) {
                continue;
            }
            self.with_receiver(
                now,
                &set.set,
                home,
                *incarnation,
                |receiver, replicas, counters| {
                    receiver.announced(now, *incarnation, set, replicas, counters);
                    Ok(())
                },
            );
        }
        self.forget_unannounced(announce);
        if let Some(peer) = self.peers.get_mut(home) {
            peer.incarnation = peer.incarnation.max(*incarnation);
            peer.has_announced = true;
        }
    }

    /// A set that a home's new life does not name is no longer there.
    pub(super) fn forget_unannounced(&mut self, announce: &Announce) {
        let mut freed = 0;
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
            freed += charge_of(receiver);
            receiver.expire(&set.replicas);
            set.receivers.remove(&announce.home);
        }
        self.recharge(freed, None);
    }

    pub(super) fn handle_request(&mut self, from: &Name, request: &Request) {
        if request.home != self.config.name || request.incarnation != self.config.incarnation {
            self.counters.old_lives += 1;
            return;
        }
        let Some(set) = self.sets.get(&request.set) else { return };
        let name = self.config.name.clone();
        let reply = match (&set.own, set.deleted) {
            (Some(local), _) => {
                let own = local.lock();
                page_of(own.home.kept(), request, name, own.epoch)
            }
            (None, Some((epoch, scheme))) => {
                page_of(&Image::new(scheme, Vec::new()), request, name, epoch)
            }
            (None, None) => return,
        };
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
        let (set_name, is_new) = (set, !self.has_receiver(set, home));
        let set = self.set_mut(set);
        let receiver = set
            .receivers
            .entry(home.clone())
            .or_insert_with(|| Receiver::new(now, home.clone(), incarnation));
        let (epoch, before) = (receiver.epoch(), if is_new { 0 } else { charge_of(receiver) });
        let outcome = take(receiver, &set.replicas, &mut counters);
        let charge = charge_of(receiver);
        let arrived = receiver.epoch().filter(|now| Some(*now) != epoch);
        self.counters = counters;
        self.recharge(before, Some(charge));
        if let Some(epoch) = arrived {
            let (set, home) = (set_name.clone(), home.clone());
            self.event(Event::Updated { set, home, epoch });
        }
        if let Err(refused) = outcome {
            self.refuse(home, refused.to_string());
        }
    }

    fn has_receiver(&self, set: &Name, home: &Name) -> bool {
        self.sets.get(set).is_some_and(|set| set.receivers.contains_key(home))
    }

    /// Whether a home's filter of this scheme may be held here; if not, that is counted and told.
    fn accepts(&mut self, home: &Name, set: &Name, scheme: &Scheme) -> bool {
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
