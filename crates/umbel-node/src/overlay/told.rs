//! What an overlay tells of itself.

use std::collections::BTreeSet;

use umbel::replica::{Incarnation, Name};
use umbel::route::Counters;

use super::Overlay;
use crate::settings::agreement;

/// A host that an overlay knows of.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) name: &'a Name,
    /// `up`, `down` for neighbours; `reached` for others within range.
    pub(crate) state: &'static str,
    pub(crate) life: Option<Incarnation>,
    /// The sets of which it is a home within range, with the last update of each.
    pub(crate) sets: Vec<(&'a Name, u64)>,
}

impl Overlay {
    /// The neighbours, then the other hosts within range.
    pub(crate) fn seen(&self) -> Vec<Seen<'_>> {
        let mut seen: Vec<Seen<'_>> = self
            .links
            .all()
            .map(|(name, is_up, life)| Seen {
                name,
                state: if is_up { "up" } else { "down" },
                life,
                sets: Vec::new(),
            })
            .collect();
        let homes = self.sets.values().flat_map(|routed| routed.router.homes());
        let homes: BTreeSet<&Name> = homes.map(|(home, ..)| home).collect();
        let others =
            homes.into_iter().filter(|home| self.links.all().all(|(link, ..)| link != *home));
        seen.extend(others.map(|name| Seen {
            name,
            state: "reached",
            life: self.life_of(name),
            sets: Vec::new(),
        }));
        for host in &mut seen {
            let versions = self.sets.iter().filter_map(|(set, routed)| {
                routed.router.version_of(host.name).map(|(_, epoch)| (set, epoch.0))
            });
            host.sets = versions.collect();
        }
        seen
    }

    /// The latest life of a host that was heard of.
    pub(crate) fn life_of(&self, host: &Name) -> Option<Incarnation> {
        let link = self.links.all().find(|(name, ..)| *name == host).and_then(|(.., life)| life);
        let homes = self.sets.values().filter_map(|routed| routed.router.version_of(host));
        homes.map(|(life, _)| life).chain(link).max()
    }

    /// The last update of a set that this host published.
    pub(crate) fn epoch(&self, set: &Name) -> u64 {
        self.sets.get(set).map_or(0, |routed| routed.router.epoch().0)
    }

    /// Links that are up, and links; this host counts as both.
    pub(crate) fn known_hosts(&self) -> (u64, u64) {
        (1 + self.links.up().count() as u64, 1 + self.links.all().count() as u64)
    }

    /// The neighbours: all, or those that are there.
    pub(crate) fn neighbours(&self, only_up: bool) -> Vec<String> {
        let all = self.links.all().filter(|(_, is_up, _)| *is_up || !only_up);
        all.map(|(name, ..)| name.as_str().to_owned()).collect()
    }

    /// The homes of a set within range, and what was counted of it.
    pub(crate) fn routing(&self, set: &Name) -> Option<(Vec<String>, Counters)> {
        let router = &self.sets.get(set)?.router;
        let homes = router.homes().map(|(home, ..)| home.as_str().to_owned()).collect();
        Some((homes, *router.counters()))
    }

    /// What all hosts agree on, for a set or to begin with.
    pub(crate) fn agreed(&self, set: Option<&Name>) -> String {
        let router = set.and_then(|set| self.sets.get(set)).map(|routed| routed.router.plan());
        let plan = *router.unwrap_or(&self.template.plan);
        agreement(&plan, self.template.is_measured)
    }

    /// Keys that the other homes within range say they hold.
    pub(crate) fn items_in_range(&self, set: &Name) -> u64 {
        self.sets.get(set).map_or(0, |routed| routed.router.items_in_range())
    }

    /// What was counted over all sets, forgotten ones too.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = self.past;
        self.sets.values().for_each(|routed| add(&mut sum, routed.router.counters()));
        sum.refused += self.refused;
        sum
    }

    /// Bytes that a set's routing table takes.
    pub(crate) fn memory_bytes(&self, set: &Name) -> u64 {
        self.sets.get(set).map_or(0, |routed| routed.router.memory_bytes())
    }
}

/// Adds what a router counted.
pub(super) fn add(sum: &mut Counters, more: &Counters) {
    for (sum, more) in [
        (&mut sum.messages, more.messages),
        (&mut sum.refused, more.refused),
        (&mut sum.refused_filters, more.refused_filters),
        (&mut sum.gaps, more.gaps),
        (&mut sum.adverts_sent, more.adverts_sent),
        (&mut sum.advert_bytes_sent, more.advert_bytes_sent),
        (&mut sum.repairs_sent, more.repairs_sent),
        (&mut sum.asked, more.asked),
        (&mut sum.not_found, more.not_found),
        (&mut sum.answered, more.answered),
        (&mut sum.claimed_forwards, more.claimed_forwards),
        (&mut sum.wrong_forwards, more.wrong_forwards),
        (&mut sum.walk_forwards, more.walk_forwards),
        (&mut sum.repeated_queries, more.repeated_queries),
        (&mut sum.expired_queries, more.expired_queries),
        (&mut sum.dropped, more.dropped),
    ] {
        *sum += more;
    }
}
