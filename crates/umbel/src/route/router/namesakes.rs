//! Detects two hosts of one name: different incarnations of a home keep being advertised over
//! different links.
//!
//! When a home restarts, its new incarnation is known everywhere within moments, and a link that
//! still advertises the old one is down after the silence limit. So two incarnations that are
//! advertised for longer than that are two hosts. One filter is kept per name, that of the later
//! incarnation: the keys of the other host are denied here, and the name is reported as contested.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Router;
use crate::catalogue::Catalogue;
use crate::replica::{Incarnation, Name};
use crate::route::event::RouterEvent;

/// A home of which two incarnations are advertised.
#[derive(Debug)]
pub(super) struct Contested {
    since: Duration,
    is_reported: bool,
}

impl<C: Catalogue> Router<C> {
    /// Names of homes that two hosts share.
    pub fn namesakes(&self) -> impl Iterator<Item = &Name> {
        self.contested.iter().filter(|(_, contested)| contested.is_reported).map(|(home, _)| home)
    }

    /// Finds the homes that are advertised in two incarnations, and reports those that stay so.
    pub(super) fn look_for_namesakes(&mut self, now: Duration) {
        let (mut lives, mut differing) = (BTreeMap::<&Name, Incarnation>::new(), BTreeSet::new());
        for (home, said) in self.links.values().flat_map(|link| &link.heard) {
            let life = said.version.incarnation;
            let latest = lives.entry(home).or_insert(life);
            if *latest != life {
                differing.insert(home.clone());
                *latest = life.max(*latest);
            }
        }
        let latest: BTreeMap<Name, Incarnation> =
            differing.into_iter().map(|home| (home.clone(), lives[&home])).collect();
        self.contested.retain(|home, _| latest.contains_key(home));
        for (home, life) in latest {
            let new = Contested { since: now, is_reported: false };
            let contested = self.contested.entry(home.clone()).or_insert(new);
            if !contested.is_reported && now >= contested.since + self.config.silence {
                contested.is_reported = true;
                self.event(RouterEvent::Namesake { host: home, life });
            }
        }
    }

    /// Whether a neighbour advertised another incarnation of a home than the one whose filter is
    /// held here.
    pub(super) fn speaks_of_another(&self, neighbour: &Name, home: &Name) -> bool {
        let heard = self.links.get(neighbour).and_then(|link| link.heard.get(home));
        let here = self.homes.get(home).map(|known| known.published.version.incarnation);
        heard.is_some_and(|said| Some(said.version.incarnation) != here)
    }
}
