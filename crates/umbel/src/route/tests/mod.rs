//! Overlays in memory: every message travels a millisecond, or is lost.

mod faults;
mod messages;
mod overlay;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use crate::KeyHasher;
use crate::catalogue::MemoryCatalogue;
use crate::replica::{Incarnation, Name};

/// The overlay of figure 1: A hears of seven homes over its link to B within three hops.
const FIGURE_1: [(&str, &str); 7] =
    [("A", "B"), ("B", "C"), ("B", "D"), ("C", "E"), ("C", "F"), ("D", "G"), ("D", "H")];

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn plan(kind: EntryKind, depth: u8, items: u64, filters: u64) -> Plan {
    Plan { kind, depth, items, filters, false_positive: 0.0001 }
}

struct Net {
    now: Duration,
    routers: BTreeMap<Name, Router<MemoryCatalogue>>,
    links: BTreeSet<(Name, Name)>,
    flights: Vec<(Duration, Name, Name, Vec<u8>)>,
    /// Chance in 1000 that a message is lost.
    lost: u64,
    random: u64,
    events: Vec<(Name, RouterEvent)>,
    queries_sent: u64,
    /// A router whose own name is another one's: how it is called here, its name, and its neighbour.
    twin: Option<[Name; 3]>,
}

impl Net {
    fn new(plan: Plan, links: &[(&str, &str)]) -> Self {
        Self::with(plan, links, |_| {})
    }

    fn with(plan: Plan, links: &[(&str, &str)], change: impl Fn(&mut RouterConfig)) -> Self {
        let names: BTreeSet<Name> = links.iter().flat_map(|(a, b)| [name(a), name(b)]).collect();
        let now = Duration::from_secs(1);
        let router = |(seed, host): (usize, Name)| {
            let set = name("set");
            let mut config =
                RouterConfig::new(host.clone(), Incarnation(1), set, KeyHasher::default(), plan);
            config.seed = seed as u64;
            change(&mut config);
            (host, Router::new(now, config, MemoryCatalogue::new()).unwrap())
        };
        let routers = names.into_iter().enumerate().map(router).collect();
        let mut net = Self {
            now,
            routers,
            links: BTreeSet::new(),
            flights: Vec::new(),
            lost: 0,
            random: 7,
            events: Vec::new(),
            queries_sent: 0,
            twin: None,
        };
        links.iter().for_each(|(a, b)| net.link(a, b));
        net
    }

    fn at(&mut self, host: &str) -> &mut Router<MemoryCatalogue> {
        self.routers.get_mut(&name(host)).unwrap()
    }

    fn link(&mut self, a: &str, b: &str) {
        let (now, a, b) = (self.now, name(a), name(b));
        self.links.extend([(a.clone(), b.clone()), (b.clone(), a.clone())]);
        self.routers.get_mut(&a).unwrap().handle_link_up(now, &b);
        self.routers.get_mut(&b).unwrap().handle_link_up(now, &a);
    }

    /// Cuts a link; the hosts are told, unless the cut is silent.
    fn disconnect(&mut self, a: &str, b: &str, silent: bool) {
        let (now, a, b) = (self.now, name(a), name(b));
        self.links.remove(&(a.clone(), b.clone()));
        self.links.remove(&(b.clone(), a.clone()));
        if !silent {
            self.routers.get_mut(&a).unwrap().handle_link_down(now, &b);
            self.routers.get_mut(&b).unwrap().handle_link_down(now, &a);
        }
    }

    /// Every host holds the key of its own name.
    fn stock(&mut self) {
        let now = self.now;
        for (host, router) in &mut self.routers {
            router.add(now, format!("of {host}").as_bytes());
            router.publish(now);
        }
    }

    fn collect(&mut self) {
        for (from, router) in &mut self.routers {
            while let Some(Transmit { to, bytes }) = router.poll_transmit() {
                self.queries_sent += u64::from(bytes[1] == 20);
                self.random = self.random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let rain = (self.random >> 33) % 1000 < self.lost;
                let to = match &self.twin {
                    Some([twin, own, neighbour]) if to == *own && from == neighbour => twin.clone(),
                    _ => to,
                };
                if self.links.contains(&(from.clone(), to.clone())) && !rain {
                    let arrival = self.now + Duration::from_millis(1);
                    self.flights.push((arrival, from.clone(), to, bytes));
                }
            }
            while let Some(event) = router.poll_event() {
                self.events.push((from.clone(), event));
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.collect();
        while self.now < end {
            let timers = self.routers.values().map(Router::poll_timeout);
            let flights = self.flights.iter().map(|flight| flight.0);
            let next = timers.chain(flights).min().unwrap_or(end);
            self.now = next.clamp(self.now + Duration::from_micros(1), end);
            let now = self.now;
            let (due, later) =
                std::mem::take(&mut self.flights).into_iter().partition(|f| f.0 <= now);
            self.flights = later;
            for (_, from, to, bytes) in due {
                let from = match &self.twin {
                    Some([twin, own, _]) if from == *twin => own.clone(),
                    _ => from,
                };
                self.routers.get_mut(&to).unwrap().handle_message(now, &from, &bytes);
            }
            for router in self.routers.values_mut() {
                if router.poll_timeout() <= now {
                    router.handle_timeout(now);
                }
            }
            self.collect();
        }
        self.routers.values().for_each(Router::validate);
    }

    fn settle(&mut self) {
        self.run(Duration::from_secs(1));
    }

    /// Asks at a host for the key of another, and runs until there is an answer.
    fn locate(&mut self, at: &str, key: &str) -> Located {
        let now = self.now;
        let id = self.at(at).locate(now, key.as_bytes(), None);
        for _ in 0..40 {
            self.run(Duration::from_millis(500));
            let located = self.events.iter().find_map(|(_, event)| match event {
                RouterEvent::Located(located) if located.query == id => Some(located.clone()),
                _ => None,
            });
            if let Some(located) = located {
                return located;
            }
        }
        panic!("the query at {at} for {key} never ended");
    }

    fn found(&mut self, at: &str, key: &str) -> Option<(String, u32)> {
        let located = self.locate(at, key);
        assert!(located.holders.len() <= 1);
        located.holders.first().map(|holder| (holder.name().to_string(), holder.hops()))
    }
}

fn line(hosts: usize) -> Vec<(String, String)> {
    (1..hosts).map(|i| (format!("h{:02}", i - 1), format!("h{i:02}"))).collect()
}

fn borrowed(links: &[(String, String)]) -> Vec<(&str, &str)> {
    links.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect()
}
