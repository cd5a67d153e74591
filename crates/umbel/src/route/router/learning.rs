//! Handles what neighbours send: links up and down, filters, distances, repairs.
//!
//! Neighbours advertise the homes behind them, and nothing proves that they are right. Always true:
//! while the link to a home is up, what the home sent about itself overrides what other neighbours
//! send, and is never overridden by it.

use std::time::Duration;

use super::{Known, Published, Router, Store, changed, coded, decoded};
use crate::catalogue::Catalogue;
use crate::codec::DecodeError;
use crate::replica::image::Image;
use crate::replica::{Incarnation, Name};
use crate::route::event::RouterEvent;
use crate::route::heard::{Advertised, Link, sum_of};
use crate::route::message::{Advert, Hello, KnownHome, MAX_HOMES, Message, Reach};
use crate::route::plan::EntryKind;
use crate::route::table::{Filters, HomeId, LinkId};
use crate::scheme::Scheme;

/// Shortest time between two lists sent to a neighbour of what it advertised.
const REPAIR_EVERY: Duration = Duration::from_secs(1);
/// A neighbour may advertise at least this many homes under any plan. Under larger plans it may
/// advertise four times as many as there is room for; more would only be refused.
const MIN_HOMES: usize = 1024;
/// Number of hellos with a different sum before a list is sent: a single one may just have arrived
/// before an advert.
const PATIENCE: u32 = 2;

impl<C: Catalogue> Router<C> {
    /// The link to a neighbour is up: everything within range is advertised to it.
    pub(super) fn connect(&mut self, now: Duration, neighbour: &Name) {
        if self.links.contains_key(neighbour) {
            return;
        }
        self.next_id = self.next_id.wrapping_add(1);
        let id = LinkId(self.next_id);
        self.links.insert(neighbour.clone(), Link::new(now, id));
        self.link_names.insert(id, neighbour.clone());
        self.news.insert(self.config.name.clone());
        self.news.extend(self.homes.keys().cloned());
        self.event(RouterEvent::Up(neighbour.clone()));
    }

    /// The link to a neighbour is down: nothing is routed over it, and queries do not wait for it.
    pub(super) fn disconnect(&mut self, now: Duration, neighbour: &Name) {
        let Some(link) = self.links.remove(neighbour) else { return };
        self.link_names.remove(&link.id);
        self.table.remove_link(link.id);
        for home in link.heard.keys() {
            self.forget_unheard_life(home);
            self.moved(home);
        }
        self.event(RouterEvent::Down(neighbour.clone()));
        self.unanswered(now, link.id);
    }

    pub(super) fn handle_advert(&mut self, now: Duration, from: &Name, advert: Advert) {
        if let Err(reason) = self.accepts(&advert.scheme, advert.hops) {
            return self.refuse(from, reason);
        }
        if advert.home == self.config.name {
            return self.handle_own_name(from, &advert.home, advert.version.incarnation);
        }
        let max_bytes = (self.config.max_bits / 4) as usize + (1 << 20);
        let Some(link) = self.links.get_mut(from) else { return };
        let Some(advert) = link.parts.take(advert, max_bytes) else { return };
        self.note_namesake(from, &advert.home, advert.version.incarnation);
        if self.replaces(from, &advert) {
            match self.read(&advert) {
                Ok(Some(image)) => self.store(from, &advert, &image),
                Ok(None) => {
                    self.counters.gaps += 1;
                    return self.repair(now, from);
                }
                Err(error) => {
                    self.refuse(from, error.to_string());
                    return self.repair(now, from);
                }
            }
        }
        let said = Advertised { version: advert.version, hops: advert.hops };
        self.said(from, &advert.home, said);
    }

    pub(super) fn handle_reach(&mut self, now: Duration, from: &Name, reach: &Reach) {
        if reach.home == self.config.name {
            return self.handle_own_name(from, &reach.home, reach.version.incarnation);
        }
        let Some(hops) = reach.hops else { return self.unsaid(from, &reach.home) };
        if hops > self.plan.plan.depth {
            return self.refuse(from, String::from("it is about a home beyond the range"));
        }
        self.note_namesake(from, &reach.home, reach.version.incarnation);
        let said = Advertised { version: reach.version, hops };
        let here = self.homes.get(&reach.home).map(|known| known.published.version);
        let refused =
            self.links.get(from).is_some_and(|link| link.refused.contains_key(&reach.home));
        if here >= Some(reach.version) || self.speaks_for_itself(from, &reach.home) {
            self.said(from, &reach.home, said);
        } else if refused {
            // It was refused before, and there are no bits here to offer again.
            if let Some(link) = self.links.get_mut(from) {
                link.heard.insert(reach.home.clone(), said);
            }
        } else {
            self.counters.gaps += 1;
            self.repair(now, from);
        }
    }

    /// Whether the filter of an advert replaces the one that is held here.
    fn replaces(&self, from: &Name, advert: &Advert) -> bool {
        let Some(known) = self.homes.get(&advert.home) else { return true };
        let here = known.published.version;
        if *from == advert.home && !known.is_own_word {
            return here != advert.version;
        }
        here < advert.version && !self.speaks_for_itself(from, &advert.home)
    }

    /// Whether a home advertised its own filter over a link that is up, and `from` is another host.
    fn speaks_for_itself(&self, from: &Name, home: &Name) -> bool {
        let has_spoken = self.homes.get(home).is_some_and(|known| known.is_own_word);
        from != home && has_spoken && self.links.contains_key(home)
    }

    /// Reports if another host advertises a later incarnation of a neighbour that advertises
    /// itself.
    fn note_namesake(&mut self, from: &Name, host: &Name, life: Incarnation) {
        let own_word = self.homes.get(host).map(|known| known.published.version.incarnation);
        if self.speaks_for_itself(from, host) && own_word < Some(life) {
            self.event(RouterEvent::Namesake { host: host.clone(), life });
        }
    }

    pub(super) fn handle_hello(&mut self, now: Duration, from: &Name, hello: &Hello) {
        self.adopt(now, &hello.plan);
        let Some(link) = self.links.get_mut(from) else { return };
        let before = link.incarnation.replace(hello.incarnation);
        if before.is_some_and(|before| before != hello.incarnation) {
            // A new incarnation: it knows nothing of what was sent to the previous one.
            self.disconnect(now, from);
            self.connect(now, from);
            return self.handle_hello(now, from, hello);
        }
        link.differing = if sum_of(&link.heard) == hello.sum { 0 } else { link.differing + 1 };
        if link.differing >= PATIENCE {
            self.repair(now, from);
        }
    }

    /// A neighbour lists what it has of what we advertised: everything else is advertised again.
    pub(super) fn handle_have(&mut self, from: &Name, homes: Vec<KnownHome>) {
        let Some(link) = self.links.get_mut(from) else { return };
        let said = homes
            .into_iter()
            .map(|KnownHome { home, version, hops }| (home, Advertised { version, hops }));
        let before = std::mem::replace(&mut link.advertised, said.collect());
        self.news.extend(before.into_keys());
        self.news.extend(link.advertised.keys().cloned());
        self.news.extend(self.homes.keys().cloned());
        self.news.insert(self.config.name.clone());
    }

    /// Sends a neighbour a list of what we have of what it advertised, so that it advertises the
    /// rest again.
    fn repair(&mut self, now: Duration, neighbour: &Name) {
        let Some(link) = self.links.get_mut(neighbour) else { return };
        if link.repaired_at.is_some_and(|before| now < before + REPAIR_EVERY) {
            return;
        }
        link.repaired_at = Some(now);
        link.differing = 0;
        // For an admitted home, list the version held here. For a refused home, or another host of
        // the same name, list the version that was advertised.
        for (home, said) in &mut link.heard {
            let admitted = self.homes.get(home).filter(|_| !link.refused.contains_key(home));
            let here = admitted.map(|known| known.published.version);
            if let Some(here) = here.filter(|here| here.incarnation == said.version.incarnation) {
                said.version = here;
            }
        }
        let entry = |(home, said): (&Name, &Advertised)| KnownHome {
            home: home.clone(),
            version: said.version,
            hops: said.hops,
        };
        let homes: Vec<KnownHome> = link.heard.iter().map(entry).take(MAX_HOMES).collect();
        self.counters.repairs_sent += 1;
        self.send(neighbour, &Message::Have(homes));
    }

    /// A neighbour advertises this host's own name: an echo, or another host of that name.
    fn handle_own_name(&mut self, from: &Name, home: &Name, life: Incarnation) {
        if life > self.config.incarnation {
            self.event(RouterEvent::NameTaken);
        }
        self.unsaid(from, home);
    }

    /// The filter that an advert leads to; `None` if its base is not held here.
    fn read(&self, advert: &Advert) -> Result<Option<Image>, DecodeError> {
        let max = (self.config.max_bits / advert.scheme.shape().bits()) as usize;
        let image = match advert.base {
            None => decoded(&advert.scheme, &advert.bytes, max)?,
            Some(base) => {
                let Some(known) = self.homes.get(&advert.home) else { return Ok(None) };
                let here = &known.published;
                let life = advert.version.incarnation;
                if (here.version.incarnation, here.version.epoch) != (life, base)
                    || here.scheme != advert.scheme
                {
                    return Ok(None);
                }
                changed(&here.image(), &advert.bytes, max)?
            }
        };
        match image.checksum() {
            found if found == advert.checksum => Ok(Some(image)),
            found => Err(DecodeError::WrongResult { stored: advert.checksum, found }),
        }
    }

    /// Stores a home's new filter, and updates the entries of the links that admit it.
    fn store(&mut self, from: &Name, advert: &Advert, image: &Image) {
        let is_own_word = *from == advert.home;
        let published = Published {
            version: advert.version,
            scheme: self.own_scheme(&advert.scheme),
            checksum: advert.checksum,
            coded: coded(image),
            delta: advert.base.map(|base| (base, advert.bytes.clone())),
            facts: advert.facts,
        };
        let Some(known) = self.homes.get_mut(&advert.home) else {
            self.next_id = self.next_id.wrapping_add(1);
            let id = HomeId(self.next_id);
            self.home_names.insert(id, advert.home.clone());
            let known = Known { id, published, is_own_word, is_reached: false };
            self.homes.insert(advert.home.clone(), known);
            return;
        };
        let id = known.id;
        known.is_own_word = is_own_word;
        let before = std::mem::replace(&mut known.published, published);
        let grown = before.scheme == known.published.scheme && grown(&before.image(), image);
        let scheme = known.published.scheme;
        let store = Store { homes: &self.homes, names: &self.home_names };
        let refused = self.table.update(id, &filters(&scheme, image), grown, &store);
        let components = image.components().len() as u64;
        for link in refused {
            self.counters.refused_filters += 1;
            let link = self.link_names.get(&link).and_then(|name| self.links.get_mut(name));
            if let Some(link) = link {
                link.refused.insert(advert.home.clone(), components);
            }
        }
        self.news.insert(advert.home.clone());
    }

    /// A neighbour advertised the distance of a home whose filter is held here.
    fn said(&mut self, from: &Name, home: &Name, said: Advertised) {
        let (Some(link), Some(known)) = (self.links.get_mut(from), self.homes.get(home)) else {
            return;
        };
        let max = (4 * self.plan.plan.filters as usize).clamp(MIN_HOMES, MAX_HOMES);
        if link.heard.len() >= max && !link.heard.contains_key(home) {
            self.counters.dropped += 1;
            return self.moved(home);
        }
        link.heard.insert(home.clone(), said);
        let (image, scheme, id) = (known.published.image(), known.published.scheme, known.id);
        let moves = self.table.distance(link.id, id).is_some_and(|hops| hops != said.hops);
        if moves && self.plan.plan.kind == EntryKind::Attenuated {
            let store = Store { homes: &self.homes, names: &self.home_names };
            self.table.withdraw(link.id, id, &store);
        }
        match self.table.offer(link.id, id, said.hops, &filters(&scheme, &image)) {
            Ok(()) => {
                link.refused.remove(home);
                let known = self.homes.get_mut(home).filter(|known| !known.is_reached);
                if let Some(known) = known {
                    known.is_reached = true;
                    self.event(RouterEvent::Reached(home.clone()));
                }
            }
            Err(_) => {
                link.refused.insert(home.clone(), image.components().len() as u64);
                self.counters.refused_filters += 1;
            }
        }
        self.moved(home);
    }

    /// A neighbour no longer has a route to a home: there may be room for another home.
    fn unsaid(&mut self, from: &Name, home: &Name) {
        let Some(link) = self.links.get_mut(from) else { return };
        link.heard.remove(home);
        link.refused.remove(home);
        if let Some(known) = self.homes.get(home) {
            let store = Store { homes: &self.homes, names: &self.home_names };
            self.table.withdraw(link.id, known.id, &store);
            // Forget the refused homes, so that the sums differ and the neighbour advertises them
            // again.
            for refused in std::mem::take(&mut link.refused).into_keys() {
                link.heard.remove(&refused);
            }
        }
        self.forget_unheard_life(home);
        self.moved(home);
    }

    /// Only one filter is kept per home, of one incarnation. Once no neighbour advertises that
    /// incarnation any more, the filter is useless, and the filters of other incarnations that
    /// neighbours advertised were not kept. So forget these adverts: then the sums differ and the
    /// neighbours advertise them again.
    fn forget_unheard_life(&mut self, home: &Name) {
        let Some(known) = self.homes.get(home) else { return };
        let (id, life) = (known.id, known.published.version.incarnation);
        let speaks_of_it =
            |link: &Link| link.heard.get(home).is_some_and(|said| said.version.incarnation == life);
        if self.links.values().any(speaks_of_it) {
            return;
        }
        for link in self.links.values_mut() {
            if link.heard.remove(home).is_some() {
                link.refused.remove(home);
                let store = Store { homes: &self.homes, names: &self.home_names };
                self.table.withdraw(link.id, id, &store);
            }
        }
    }

    /// The links to a home changed. If none is left, the home is removed.
    fn moved(&mut self, home: &Name) {
        let Some(known) = self.homes.get(home) else { return };
        if self.table.via(known.id).is_empty() {
            let is_reached = known.is_reached;
            self.home_names.remove(&known.id);
            self.homes.remove(home);
            if is_reached {
                self.event(RouterEvent::Lost(home.clone()));
            }
        }
        self.news.insert(home.clone());
    }

    /// Whether a filter of this scheme, from this distance, may be held here.
    fn accepts(&self, scheme: &Scheme, hops: u8) -> Result<(), String> {
        self.own_scheme(scheme).check(scheme).map_err(|mismatch| mismatch.to_string())?;
        let (bits, max) = (scheme.shape().bits(), self.config.max_bits);
        if bits > max {
            return Err(format!("its filter has {bits} bits, and {max} are accepted"));
        }
        if hops > self.plan.plan.depth {
            return Err(String::from("it is about a home beyond the range"));
        }
        Ok(())
    }

    /// The scheme of this shape with the overlay's hasher, which knows its seed.
    const fn own_scheme(&self, scheme: &Scheme) -> Scheme {
        Scheme::new(*scheme.shape(), self.config.hasher)
    }
}

fn filters<'a>(scheme: &'a Scheme, image: &'a Image) -> Filters<'a> {
    Filters { scheme, components: image.components().iter().map(|part| &*part.bits).collect() }
}

/// Whether the newer of two images has all bits of the older.
fn grown(old: &Image, new: &Image) -> bool {
    old.components().iter().all(|before| {
        new.component(before.id).is_some_and(|after| before.bits.is_subset_of(&after.bits))
    })
}
