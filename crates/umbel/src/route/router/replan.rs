//! The overlay measures its keys per home and filters per link, and makes a new plan when they
//! drift.
//!
//! Every advert contains how many keys its home holds, how many links it has and how many filters
//! were offered to it. So each host knows these numbers for all homes within range. When the
//! averages have differed from the plan for a while, the first host that notices proposes the next
//! plan. Hellos spread it. The plan with the highest number wins; ties go to the author whose name
//! sorts first.

use std::time::Duration;

use super::{Router, Store};
use crate::catalogue::Catalogue;
use crate::replica::Name;
use crate::route::event::RouterEvent;
use crate::route::heard::Advertised;
use crate::route::message::Numbered;
use crate::route::plan::Plan;
use crate::route::table::RouteTable;

/// Averages over this host, if it is a home, and all homes within range.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Survey {
    /// Number of homes in the survey.
    pub hosts: u64,
    /// Average number of keys per home.
    pub items: f64,
    /// Average number of filters that arrive over a link, including refused ones.
    pub filters: f64,
}

/// A plan is kept while the measured values divided by the planned ones are between these bounds.
const ABOVE: f64 = 1.25;
const BELOW: f64 = 0.5;
/// Number of consecutive hellos outside these bounds before a host proposes another plan.
const SETTLED: u32 = 3;
/// A new plan leaves this much room for growth, as a factor.
const ROOM: f64 = 1.1;

impl<C: Catalogue> Router<C> {
    /// The averages of the overlay, as far as they are known here.
    #[must_use]
    pub fn survey(&self) -> Survey {
        let here = self.facts();
        // Links and filters of this host count in any case; keys only if it is a home.
        let hosts = self.homes.len() as u64 + u64::from(self.own.is_some());
        let (mut items, mut links, mut filters) = (0.0, 0.0, 0.0);
        for facts in self.homes.values().map(|known| known.published.facts).chain([here]) {
            items += facts.items as f64;
            links += facts.links as f64;
            filters += facts.filters as f64;
        }
        let items = items / hosts.max(1) as f64;
        Survey { hosts, items, filters: filters / f64::max(links, 1.0) }
    }

    /// Proposes another plan if the overlay measures itself and has drifted from this one.
    pub(super) fn replan_if_drifting(&mut self, now: Duration) {
        if !self.config.is_measured {
            return;
        }
        self.publish_facts(now);
        let plan = self.plan.plan;
        let survey = self.survey();
        let far = |measured: f64, planned: u64| {
            let ratio = measured / planned as f64;
            ratio > ABOVE || (ratio < BELOW && planned > 1)
        };
        let apart = far(survey.items, plan.items) || far(survey.filters, plan.filters);
        if !apart || survey.items == 0.0 {
            self.drifting = 0;
            return;
        }
        self.drifting += 1;
        // Random delay: usually the first proposal arrives before a second host makes one.
        if self.drifting < SETTLED + (self.random() % 3) as u32 {
            return;
        }
        let wanted = |measured: f64| (measured * ROOM).ceil().max(1.0) as u64;
        let (items, filters) = (wanted(survey.items), wanted(survey.filters));
        let next = Numbered {
            number: self.plan.number.saturating_add(1),
            by: self.config.name.clone(),
            plan: Plan { items, filters, ..plan },
        };
        self.adopt(now, &next);
    }

    /// Publishes again if the published numbers of keys, links or filters are too far from the
    /// present ones.
    fn publish_facts(&mut self, now: Duration) {
        let (here, said) = (self.facts(), self.published.as_ref().map(|own| own.facts));
        let differs = |a: u64, b: u64| a.abs_diff(b) * 8 > a.max(b);
        let said = said.unwrap_or_default();
        if differs(here.links, said.links)
            || differs(here.filters, said.filters)
            || differs(here.items, said.items)
        {
            self.publish_everything(now);
        }
    }

    /// Adopts a plan if it supersedes the present one.
    pub(super) fn adopt(&mut self, now: Duration, next: &Numbered) {
        let (here, there) = (&self.plan, next);
        let is_newer = there.number > here.number
            || (there.number == here.number && there.number > 0 && there.by < here.by);
        let same_kind = (here.plan.kind, here.plan.depth) == (there.plan.kind, there.plan.depth)
            && here.plan.false_positive == there.plan.false_positive;
        let Ok(shape) = there.plan.shape() else { return };
        if !is_newer || !same_kind || shape.bits() > self.config.max_bits {
            return;
        }
        let capacity = there.plan.capacity();
        if self.own.as_mut().is_some_and(|home| home.change_shape(now, shape, capacity).is_err()) {
            return;
        }
        self.plan = next.clone();
        self.drifting = 0;
        let Plan { items, filters, .. } = self.plan.plan;
        self.event(RouterEvent::Replanned { items, filters });
        self.admit_anew();
        self.publish_everything(now);
        let neighbours: Vec<Name> = self.neighbours.iter().cloned().collect();
        neighbours.iter().for_each(|neighbour| self.hello(neighbour));
    }

    /// Offers every filter again to the entries of a table for the new plan.
    fn admit_anew(&mut self) {
        let old = std::mem::replace(
            &mut self.table,
            RouteTable::new(&self.plan.plan, self.config.hasher),
        );
        let mut lost = Vec::new();
        for link in self.links.values_mut() {
            // Forget refused homes: the sums then differ, and the neighbour advertises these homes
            // again.
            for refused in std::mem::take(&mut link.refused).into_keys() {
                link.heard.remove(&refused);
            }
            for home in old.homes(link.id) {
                let Some(name) = self.home_names.get(&home) else { continue };
                let Some(Advertised { hops, .. }) = link.heard.get(name).copied() else { continue };
                let store = Store { homes: &self.homes, names: &self.home_names };
                let loaded = super::Stored::load(&store, home);
                let Some((scheme, bits)) = loaded else { continue };
                let components = bits.iter().collect();
                let filters = super::super::table::Filters { scheme: &scheme, components };
                if self.table.offer(link.id, home, hops, &filters).is_err() {
                    link.refused.insert(name.clone(), bits.len() as u64);
                    lost.push(home);
                }
            }
        }
        for home in lost {
            if self.table.via(home).is_empty()
                && let Some(name) = self.home_names.remove(&home)
            {
                self.homes.remove(&name);
                self.event(RouterEvent::Lost(name.clone()));
                self.news.insert(name);
            }
        }
        self.news.extend(self.homes.keys().cloned());
    }
}
