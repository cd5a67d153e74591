//! What neighbours are told: the own filter, and those of homes within range.

use std::sync::Arc;
use std::time::Duration;

use super::{Published, Router, coded};
use crate::catalogue::Catalogue;
use crate::replica::publisher::Publication;
use crate::replica::{Home, Name};
use crate::route::heard::Said;
use crate::route::message::{Advert, Facts, LONGEST_PART, Message, Reach, Version};
use crate::route::table::{HomeId, LinkId};

impl<C: Catalogue> Router<C> {
    pub(super) fn publish_if_due(&mut self, now: Duration) {
        if let Some(publication) = self.own.as_mut().and_then(|home| home.poll(now)) {
            self.published(publication);
        }
        self.tell_news();
    }

    /// Publishes everything of the own set, clears included; whether there is one. Neighbours
    /// hear of it with the next news.
    pub(super) fn publish_everything(&mut self, now: Duration) -> bool {
        let Some(home) = &mut self.own else { return false };
        let publication = home.publish(now);
        self.published(publication);
        true
    }

    /// Takes note of an own update.
    fn published(&mut self, publication: Publication) {
        let Some(image) = self.own.as_ref().map(Home::kept) else { return };
        let before = self.published.as_ref().map(|published| published.version.epoch);
        let epoch = self.epoch.next();
        self.epoch = epoch;
        let is_delta = publication.is_short && !publication.from_nothing;
        let changes = Arc::unwrap_or_clone(publication.changes);
        let delta = before.filter(|_| is_delta).map(|before| (before, changes));
        let published = Published {
            version: Version { incarnation: self.config.incarnation, epoch },
            scheme: *image.scheme(),
            checksum: image.checksum(),
            coded: coded(image),
            delta,
            facts: self.facts(),
        };
        self.published = Some(published);
        self.news.insert(self.config.name.clone());
    }

    /// What this host says of itself.
    pub(super) fn facts(&self) -> Facts {
        let offered = |link: &super::Link| link.offered(self.table.filters(link.id));
        Facts {
            items: self.own.as_ref().map_or(0, |home| home.catalogue().len()),
            links: self.links.len() as u64,
            filters: self.links.values().map(offered).sum(),
        }
    }

    /// Tells every neighbour what it should know of homes of which there is news.
    pub(super) fn tell_news(&mut self) {
        while let Some(home) = self.news.pop_first() {
            let neighbours: Vec<Name> = self.links.keys().cloned().collect();
            for neighbour in &neighbours {
                self.tell(neighbour, &home);
            }
        }
    }

    /// Tells one neighbour what it should know of one home.
    fn tell(&mut self, neighbour: &Name, home: &Name) {
        let Some(link) = self.links.get(neighbour) else { return };
        let (id, told) = (link.id, link.told.get(home).copied());
        let theirs = link.heard.get(home).filter(|_| !link.refused.contains_key(home));
        let theirs = theirs.map(|said| said.version);
        let Some((hops, version)) = self.should_know(id, neighbour, home) else {
            if let Some(told) = told {
                self.tell_reach(neighbour, home, told.version, None);
            }
            return;
        };
        if told.is_some_and(|told| told.hops == hops && told.version >= version) {
            return;
        }
        // Who has the bits needs the distance only.
        let has_bits = told.map(|told| told.version).max(theirs) >= Some(version);
        if has_bits {
            self.tell_reach(neighbour, home, version, Some(hops));
        } else {
            self.tell_filter(neighbour, home, hops);
        }
    }

    /// How far from a neighbour a home is by way of this host, if that is within range, and its
    /// version. Not if this host's own nearest way is by that neighbour, unless it speaks of another
    /// life: of two hosts of one name both sides hear.
    fn should_know(&self, link: LinkId, neighbour: &Name, home: &Name) -> Option<(u8, Version)> {
        if home == &self.config.name {
            return Some((1, self.published.as_ref()?.version));
        }
        let known = self.homes.get(home)?;
        let (parent, hops) = self.nearest(known.id)?;
        let is_news = parent != link || self.speaks_of_another(neighbour, home);
        let in_range = hops < self.plan.plan.depth && is_news && neighbour != home;
        in_range.then_some((hops + 1, known.published.version))
    }

    /// The nearest way to a home: over which link, and how far. Of several, the one whose
    /// neighbour's name comes first: the same whatever came first.
    pub(super) fn nearest(&self, home: HomeId) -> Option<(LinkId, u8)> {
        let via = self.table.via(home).iter();
        via.min_by_key(|(link, hops)| (*hops, self.link_names.get(link))).copied()
    }

    fn tell_reach(&mut self, to: &Name, home: &Name, version: Version, hops: Option<u8>) {
        let reach = Message::Reach(Reach { home: home.clone(), version, hops });
        self.counters.advert_bytes_sent += self.send(to, &reach) as u64;
        let Some(link) = self.links.get_mut(to) else { return };
        match hops {
            Some(hops) => drop(link.told.insert(home.clone(), Said { version, hops })),
            None => drop(link.told.remove(home)),
        }
    }

    /// Sends a filter: as a change where the neighbour has what it changes, else whole.
    fn tell_filter(&mut self, to: &Name, home: &Name, hops: u8) {
        let published = match self.homes.get(home) {
            Some(known) => Some(&known.published),
            None => self.published.as_ref(),
        };
        let (Some(published), Some(link)) = (published, self.links.get(to)) else { return };
        let (version, told) = (published.version, link.told.get(home));
        let fits =
            |base| told.is_some_and(|told| told.version == Version { epoch: base, ..version });
        let delta = published.delta.as_ref().filter(|(base, bytes)| {
            fits(*base) && bytes.len() < published.coded.len() && bytes.len() <= LONGEST_PART
        });
        let (base, bytes) = match delta {
            Some((base, bytes)) => (Some(*base), bytes),
            None => (None, &published.coded),
        };
        let chunks: Vec<&[u8]> = bytes.chunks(LONGEST_PART).collect();
        let advert = |(part, bytes): (usize, &&[u8])| {
            Message::Advert(Advert {
                home: home.clone(),
                version,
                base,
                hops,
                scheme: published.scheme,
                checksum: published.checksum,
                facts: published.facts,
                part: part as u32,
                parts: chunks.len() as u32,
                bytes: bytes.to_vec(),
            })
        };
        let adverts: Vec<Message> = chunks.iter().enumerate().map(advert).collect();
        for advert in &adverts {
            self.counters.advert_bytes_sent += self.send(to, advert) as u64;
        }
        self.counters.adverts_sent += 1;
        if let Some(link) = self.links.get_mut(to) {
            link.told.insert(home.clone(), Said { version, hops });
        }
    }
}
