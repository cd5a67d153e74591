//! The status of an overlay.

use std::collections::BTreeSet;

use super::Overlay;
use crate::catalogue::Catalogue;
use crate::protocol::Protocol as _;
use crate::replica::{Epoch, Incarnation, Name};
use crate::route::{Plan, RouterCounters};

/// A host that an overlay knows.
#[derive(Debug)]
#[non_exhaustive]
pub struct KnownHost<'a> {
    /// Its name.
    pub name: &'a Name,
    /// `up`, `down` for neighbours; `reached` for others within range.
    pub state: &'static str,
    /// Its latest incarnation, if one is known.
    pub incarnation: Option<Incarnation>,
    /// The sets of which it is a home within range, with the last update of each.
    pub sets: Vec<(&'a Name, Epoch)>,
}

impl<C: Catalogue> Overlay<C> {
    /// The neighbours, then the other hosts within range.
    #[must_use]
    pub fn known(&self) -> Vec<KnownHost<'_>> {
        let mut seen: Vec<KnownHost<'_>> = self
            .links
            .all()
            .map(|(name, is_up, life)| KnownHost {
                name,
                state: if is_up { "up" } else { "down" },
                incarnation: life,
                sets: Vec::new(),
            })
            .collect();
        let homes = self.sets.values().flat_map(|routed| routed.router.homes());
        let homes: BTreeSet<&Name> = homes.map(|(home, ..)| home).collect();
        let others =
            homes.into_iter().filter(|home| self.links.all().all(|(link, ..)| link != *home));
        seen.extend(others.map(|name| KnownHost {
            name,
            state: "reached",
            incarnation: self.incarnation_of(name),
            sets: Vec::new(),
        }));
        for host in &mut seen {
            let versions = self.sets.iter().filter_map(|(set, routed)| {
                routed.router.version_of(host.name).map(|(_, epoch)| (set, epoch))
            });
            host.sets = versions.collect();
        }
        seen
    }

    /// The neighbours: all, or only those that are up.
    #[must_use]
    pub fn neighbours(&self, only_up: bool) -> Vec<&Name> {
        let all = self.links.all().filter(|(_, is_up, _)| *is_up || !only_up);
        all.map(|(name, ..)| name).collect()
    }

    /// The homes of a set within range, and the counters of its router.
    #[must_use]
    pub fn routing(&self, set: &Name) -> Option<(Vec<&Name>, RouterCounters)> {
        let router = &self.sets.get(set)?.router;
        Some((router.homes().map(|(home, ..)| home).collect(), *router.counters()))
    }

    /// The plan that all hosts agreed on for a set; the initial plan if there is no such set.
    #[must_use]
    pub fn agreed_plan(&self, set: Option<&Name>) -> Plan {
        let router = set.and_then(|set| self.sets.get(set)).map(|routed| routed.router.plan());
        *router.unwrap_or(&self.template.plan)
    }

    /// Whether the overlay measures what it plans for.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.template.is_measured
    }

    /// The incarnation, epoch and checksum of the filter that is held of another home of a set.
    #[must_use]
    pub fn replica_checksum(&self, set: &Name, home: &Name) -> Option<(Incarnation, Epoch, u64)> {
        self.sets.get(set)?.router.held_checksum(home)
    }

    /// The incarnation, epoch and checksum of what this host last published of an own set.
    #[must_use]
    pub fn published_checksum(&self, set: &Name) -> Option<(Incarnation, Epoch, u64)> {
        self.sets.get(set)?.router.published_checksum()
    }

    /// Number of keys that the other homes within range report.
    #[must_use]
    pub fn items_in_range(&self, set: &Name) -> u64 {
        self.sets.get(set).map_or(0, |routed| routed.router.items_in_range())
    }

    /// The counters of all sets together, including dropped ones.
    #[must_use]
    pub fn route_counters(&self) -> RouterCounters {
        let mut sum = self.past;
        self.sets.values().for_each(|routed| add(&mut sum, routed.router.counters()));
        sum.refused += self.refused;
        sum
    }

    /// Bytes that a set's routing table takes.
    #[must_use]
    pub fn memory_bytes(&self, set: &Name) -> u64 {
        self.sets.get(set).map_or(0, |routed| routed.router.memory_bytes())
    }
}

/// Adds the counters of a router.
pub(super) fn add(sum: &mut RouterCounters, more: &RouterCounters) {
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
