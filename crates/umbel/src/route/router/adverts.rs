//! Advertises filters to neighbours: the host's own filter, and those of homes within range.

use std::sync::Arc;
use std::time::Duration;

use super::{Published, Router, coded};
use crate::catalogue::Catalogue;
use crate::replica::publisher::Publication;
use crate::replica::{Home, Name};
use crate::route::heard::Advertised;
use crate::route::message::{Advert, Facts, LONGEST_PART, Message, Reach, Version};
use crate::route::table::{HomeId, LinkId};

impl<C: Catalogue> Router<C> {
    pub(super) fn publish_if_due(&mut self, now: Duration) {
        if let Some(publication) = self.own.as_mut().and_then(|home| home.poll(now)) {
            self.published(publication);
        }
        self.advertise_changes();
    }

    /// Publishes everything of the own set, clears included. Returns whether there is one. The next
    /// [`Self::advertise_changes`] sends it to neighbours.
    pub(super) fn publish_everything(&mut self, now: Duration) -> bool {
        let Some(home) = &mut self.own else { return false };
        let publication = home.publish(now);
        self.published(publication);
        true
    }

    /// Records an update of the own set.
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

    /// What this host reports about itself.
    pub(super) fn facts(&self) -> Facts {
        let offered = |link: &super::Link| link.offered(self.table.filters(link.id));
        Facts {
            items: self.own.as_ref().map_or(0, |home| home.catalogue().len()),
            links: self.links.len() as u64,
            filters: self.links.values().map(offered).sum(),
        }
    }

    /// Sends every neighbour what it should know about the homes in `news`.
    pub(super) fn advertise_changes(&mut self) {
        while let Some(home) = self.news.pop_first() {
            let neighbours: Vec<Name> = self.links.keys().cloned().collect();
            for neighbour in &neighbours {
                self.advertise(neighbour, &home);
            }
        }
    }

    /// Sends one neighbour what it should know about one home.
    fn advertise(&mut self, neighbour: &Name, home: &Name) {
        let Some(link) = self.links.get(neighbour) else { return };
        let (id, advertised) = (link.id, link.advertised.get(home).copied());
        let theirs = link.heard.get(home).filter(|_| !link.refused.contains_key(home));
        let theirs = theirs.map(|said| said.version);
        let Some((hops, version)) = self.should_know(id, neighbour, home) else {
            if let Some(advertised) = advertised {
                self.advertise_distance(neighbour, home, advertised.version, None);
            }
            return;
        };
        if advertised
            .is_some_and(|advertised| advertised.hops == hops && advertised.version >= version)
        {
            return;
        }
        // A neighbour that has the bits needs only the distance.
        let has_bits = advertised.map(|advertised| advertised.version).max(theirs) >= Some(version);
        if has_bits {
            self.advertise_distance(neighbour, home, version, Some(hops));
        } else {
            self.advertise_filter(neighbour, home, hops);
        }
    }

    /// The distance of a home from a neighbour by way of this host, and the home's version; `None`
    /// if it is out of range. Also `None` if this host's own nearest route is by that neighbour,
    /// unless the neighbour advertised another incarnation: if two hosts have one name, both sides
    /// must learn of it.
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

    /// The nearest route to a home: its link and distance. Ties go to the neighbour whose name
    /// sorts first, so that the result does not depend on arrival order.
    pub(super) fn nearest(&self, home: HomeId) -> Option<(LinkId, u8)> {
        let via = self.table.via(home).iter();
        via.min_by_key(|(link, hops)| (*hops, self.link_names.get(link))).copied()
    }

    fn advertise_distance(&mut self, to: &Name, home: &Name, version: Version, hops: Option<u8>) {
        let reach = Message::Reach(Reach { home: home.clone(), version, hops });
        self.counters.advert_bytes_sent += self.send(to, &reach) as u64;
        let Some(link) = self.links.get_mut(to) else { return };
        match hops {
            Some(hops) => drop(link.advertised.insert(home.clone(), Advertised { version, hops })),
            None => drop(link.advertised.remove(home)),
        }
    }

    /// Sends a filter: as a change if the neighbour has its base, otherwise as a whole.
    fn advertise_filter(&mut self, to: &Name, home: &Name, hops: u8) {
        let published = match self.homes.get(home) {
            Some(known) => Some(&known.published),
            None => self.published.as_ref(),
        };
        let (Some(published), Some(link)) = (published, self.links.get(to)) else { return };
        let (version, advertised) = (published.version, link.advertised.get(home));
        let fits = |base| {
            advertised
                .is_some_and(|advertised| advertised.version == Version { epoch: base, ..version })
        };
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
            link.advertised.insert(home.clone(), Advertised { version, hops });
        }
    }
}
