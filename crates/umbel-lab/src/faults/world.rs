//! One seeded world: hosts that own sets, churn, crash, restart and are cut off.
//!
//! The hosts run the same protocol as real ones. During the faults and after them, it is checked
//! that no host ever has bits of a home that the home did not publish. Once the faults have
//! stopped, every host must get what each home within its range published last, and nothing else,
//! within a bounded time. In an overlay also: queries must end in time, name only hosts that held
//! the key, and find every key within range once there are no faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::protocol::{Destination, Event, Transmit};
use umbel::replica::{Epoch, Incarnation, Name, SetPlan};
use umbel::route::Located;

use super::links::Links;
use super::network::{Network, Weather};
use super::queries::Queries;
use super::subject::{Start, Subject, Version, hasher, name_of};
use super::{Tally, WorldPlan};
use crate::random::Random;

/// A host, running or crashed.
#[derive(Debug)]
struct Host<P> {
    name: Name,
    protocol: Option<P>,
    incarnation: Incarnation,
    plan: SetPlan,
    /// The contents of its disk, and an old backup of it.
    disk: MemoryCatalogue,
    backup: MemoryCatalogue,
    restart_at: Duration,
}

/// What homes published: host, incarnation and epoch, with the checksum of the bits.
type History = BTreeSet<(usize, Version)>;

/// One seeded world.
#[derive(Debug)]
pub(super) struct World<P> {
    random: Random,
    network: Network,
    links: Links,
    hosts: Vec<Host<P>>,
    numbers: BTreeMap<Name, usize>,
    set: Name,
    now: Duration,
    heal_at: Duration,
    /// Whether the faults have stopped.
    is_calm: bool,
    history: History,
    queries: Queries,
    pub(super) tally: Tally,
    pub(super) violations: Vec<String>,
}

/// A step of the world's clock.
const STEP: Duration = Duration::from_millis(200);
/// Maximum time for a world to converge once the faults have stopped.
const CONVERGENCE: Duration = Duration::from_secs(120);

impl<P: Subject> World<P> {
    pub(super) fn new(seed: u64, plan: &WorldPlan) -> Self {
        let mut random = Random::of_trial(seed, "faults", 0);
        let weather = Weather::any(&mut random);
        // Sometimes a large filter, which is fetched in pages; an overlay plans for few keys.
        let large = !P::IS_OVERLAY && random.below(64) == 0;
        let links = match P::IS_OVERLAY {
            true => Links::any(plan.hosts, &mut random),
            false => Links::all(plan.hosts),
        };
        let hosts: Vec<Host<P>> = (0..plan.hosts)
            .map(|number| Host {
                name: name_of(number),
                protocol: None,
                incarnation: Incarnation(0),
                plan: any_plan(&mut random, large && number == 0),
                disk: MemoryCatalogue::new(),
                backup: MemoryCatalogue::new(),
                restart_at: Duration::ZERO,
            })
            .collect();
        let mut world = Self {
            network: Network::new(plan.hosts, weather),
            numbers: hosts.iter().map(|host| host.name.clone()).zip(0..).collect(),
            hosts,
            links,
            set: Name::new("set").expect("a name"),
            now: Duration::from_secs(1),
            heal_at: Duration::ZERO,
            is_calm: false,
            history: History::new(),
            queries: Queries::default(),
            tally: Tally { worlds: 1, ..Tally::default() },
            violations: Vec::new(),
            random,
        };
        (0..plan.hosts).for_each(|number| world.start(number, MemoryCatalogue::new()));
        if large {
            world.load(0, 150_000);
        }
        world
    }

    /// Runs with faults, then without them until all hosts agree or the time is up.
    pub(super) fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step_of_faults();
            self.advance();
            if !self.violations.is_empty() {
                return;
            }
        }
        self.calm();
        let deadline = self.now + CONVERGENCE;
        while self.now < deadline {
            self.advance();
            if !self.violations.is_empty() || self.disagreement().is_none() {
                break;
            }
        }
        if let Some(disagreement) = self.disagreement() {
            self.violations.push(format!("no agreement after {CONVERGENCE:?}: {disagreement}"));
        }
        self.ask_everywhere();
        self.hosts.iter().flat_map(|host| &host.protocol).for_each(P::validate);
        self.tally.queries = self.queries.done;
    }

    /// One step with random faults and normal activity of hosts.
    fn step_of_faults(&mut self) {
        self.tally.steps += 1;
        for number in 0..self.hosts.len() {
            if self.hosts[number].protocol.is_some() {
                self.churn(number);
                if self.random.below(250) == 0 {
                    self.crash(number);
                }
                if self.random.below(200) == 0 {
                    self.false_death(number);
                }
            } else if self.now >= self.hosts[number].restart_at {
                self.restart(number);
            }
        }
        self.notice(20);
        if self.now >= self.heal_at {
            self.network.heal();
            if self.random.below(80) == 0 {
                self.network.cut(&mut self.random);
                self.heal_at = self.now + Duration::from_secs(1 + self.random.below(40) as u64);
                self.tally.partitions += 1;
            }
        }
    }

    /// Adds and removes a few keys, sometimes many, sometimes publishes by hand.
    fn churn(&mut self, number: usize) {
        let (now, set) = (self.now, &self.set);
        let Some(protocol) = &mut self.hosts[number].protocol else { return };
        let many = if self.random.below(60) == 0 { 120 } else { 3 };
        for _ in 0..self.random.below(many) {
            let key = self.random.below(300) as u64;
            if self.random.below(5) < 3 {
                protocol.add(now, set, &key.to_be_bytes());
                self.queries.added(number, key);
            } else {
                protocol.remove(now, set, &key.to_be_bytes());
            }
        }
        if P::IS_OVERLAY && self.random.below(4) == 0 {
            let key = self.random.below(400) as u64;
            self.ask(number, key, false);
        }
        let Some(protocol) = &mut self.hosts[number].protocol else { return };
        if self.random.below(100) == 0 {
            protocol.publish(self.now, &self.set);
        }
    }

    fn load(&mut self, number: usize, keys: u64) {
        let keys: Vec<_> = (1000..1000 + keys).map(u64::to_be_bytes).collect();
        if let Some(protocol) = &mut self.hosts[number].protocol {
            let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
            protocol.add_many(self.now, &self.set, &keys, &mut |_| ());
        }
    }

    fn crash(&mut self, number: usize) {
        self.tally.crashes += 1;
        self.queries.crashed(number);
        let host = &mut self.hosts[number];
        // Every change was on disk before it was acknowledged.
        let protocol = host.protocol.take();
        if let Some(home) = protocol.as_ref().and_then(|protocol| protocol.home(&self.set)) {
            host.disk = home.catalogue().clone();
        }
        // Half of them restart while messages of their last life are still in flight.
        let longest = if self.random.below(2) == 0 { 500 } else { 15_000 };
        host.restart_at = self.now + Duration::from_millis(self.random.below(longest) as u64);
        // The other hosts may notice it or not.
        if self.random.below(3) > 0 {
            self.report_gone(number);
        }
    }

    /// The other hosts are told that a healthy host is gone, for a moment.
    fn false_death(&mut self, number: usize) {
        self.report_gone(number);
    }

    fn report_gone(&mut self, number: usize) {
        let Host { name, incarnation, .. } = &self.hosts[number];
        let (now, name, incarnation) = (self.now, name.clone(), *incarnation);
        let others = self.hosts.iter_mut().filter_map(|host| host.protocol.as_mut());
        others.for_each(|protocol| protocol.handle_gone(now, &name, incarnation));
    }

    /// Restarts a crashed host: with its disk, with an old backup of it, or with nothing.
    fn restart(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let disk = std::mem::take(&mut host.disk);
        let catalogue = match self.random.below(4) {
            0 => MemoryCatalogue::new(),
            1 => host.backup.clone(),
            _ => disk.clone(),
        };
        host.backup = disk;
        self.start(number, catalogue);
    }

    fn start(&mut self, number: usize, catalogue: MemoryCatalogue) {
        let seed = self.random.next();
        let (now, set) = (self.now, self.set.clone());
        let host = &mut self.hosts[number];
        let clock = now.as_millis() as u64;
        host.incarnation = Incarnation::next(None, clock, Some(host.incarnation));
        host.disk = catalogue.clone();
        let start = Start { name: &host.name, number, incarnation: host.incarnation, seed };
        let mut protocol = P::start(&start, &self.links);
        protocol.create(now, &set, host.plan, catalogue).expect("a sound plan");
        host.protocol = Some(protocol);
    }

    /// Tells hosts of an overlay which neighbours are reachable: per link once in `rarely` steps on
    /// average, so that some notices are late.
    fn notice(&mut self, rarely: usize) {
        if !P::IS_OVERLAY {
            return;
        }
        for number in 0..self.hosts.len() {
            for neighbour in self.links.of(number).collect::<Vec<_>>() {
                if self.random.below(rarely) > 0 {
                    continue;
                }
                let Host { name, incarnation, protocol, .. } = &self.hosts[neighbour];
                let is_there = protocol.is_some() && self.network.connects(number, neighbour);
                let (name, incarnation) = (name.clone(), *incarnation);
                let Some(protocol) = &mut self.hosts[number].protocol else { continue };
                match is_there {
                    true => protocol.handle_alive(self.now, &name, incarnation),
                    false => protocol.handle_gone(self.now, &name, incarnation),
                }
            }
        }
    }

    /// Sends a query, if the protocol has queries.
    fn ask(&mut self, number: usize, key: u64, must_find: bool) {
        let (now, set) = (self.now, &self.set);
        let Some(protocol) = &mut self.hosts[number].protocol else { return };
        if let Some(id) = protocol.ask(now, set, &key.to_be_bytes()) {
            self.queries.asked(id, number, key, now, must_find);
        }
    }

    /// Without faults every host must find the keys of every home within its range.
    fn ask_everywhere(&mut self) {
        if !P::IS_OVERLAY || !self.violations.is_empty() {
            return;
        }
        for home in 0..self.hosts.len() {
            let Some(key) = (0..300).find(|key| self.is_findable(home, *key)) else { continue };
            for number in 0..self.hosts.len() {
                if self.links.reaches(number, home) {
                    self.ask(number, key, true);
                }
            }
        }
        let deadline = self.now + CONVERGENCE;
        while self.now < deadline && self.violations.is_empty() && !self.queries.are_done() {
            self.advance();
        }
    }

    /// Whether a host holds a key and has published it, and no other host claims it falsely: a
    /// query that follows a false claim first may have no hops left for the true one.
    fn is_findable(&self, home: usize, key: u64) -> bool {
        let (key, hash) = (key.to_be_bytes(), hasher().hash(&key.to_be_bytes()));
        let homes = self.hosts.iter().map(|host| host.protocol.as_ref()?.home(&self.set));
        homes.enumerate().all(|(number, found)| {
            found.is_some_and(|found| match (found.contains(&key), found.published_claims(hash)) {
                (true, true) => true,
                (holds, claims) => number != home && (holds || !claims),
            })
        })
    }

    /// Stops the faults: no more message loss, partitions, crashes or churn.
    fn calm(&mut self) {
        self.network.heal();
        self.network.weather = Weather::CALM;
        self.is_calm = true;
        for number in 0..self.hosts.len() {
            if self.hosts[number].protocol.is_none() {
                self.restart(number);
            }
        }
    }

    /// One step of the clock: messages arrive, timers fire, answers leave; then checks.
    fn advance(&mut self) {
        if self.is_calm {
            self.notice(1);
        }
        self.collect();
        let until = self.now + STEP;
        while let Some((arrival, from, to, bytes)) = self.network.arrived(until) {
            self.now = self.now.max(arrival);
            let from = self.hosts[from].name.clone();
            if let Some(protocol) = &mut self.hosts[to].protocol {
                protocol.handle_message(self.now, &from, &bytes);
            }
            self.collect_from(to);
        }
        self.now = until;
        for number in 0..self.hosts.len() {
            let protocol = self.hosts[number].protocol.as_mut();
            if let Some(protocol) = protocol.filter(|protocol| protocol.poll_timeout() <= self.now)
            {
                protocol.handle_timeout(self.now);
            }
            if let Some(protocol) = &mut self.hosts[number].protocol {
                protocol.build_part(self.now, 3);
            }
        }
        self.collect();
        self.check();
    }

    fn collect(&mut self) {
        (0..self.hosts.len()).for_each(|number| self.collect_from(number));
    }

    /// Takes the messages that a host wants to send, and records what it published.
    fn collect_from(&mut self, number: usize) {
        let Some(protocol) = &mut self.hosts[number].protocol else { return };
        let events = std::iter::from_fn(|| protocol.poll_event());
        let located: Vec<Located> = events.filter_map(located).collect();
        if let Some(version) = protocol.published(&self.set) {
            self.history.insert((number, version));
        }
        while let Some(Transmit { to, bytes }) = protocol.poll_transmit() {
            let receivers: Vec<usize> = match to {
                Destination::All => (0..self.numbers.len()).filter(|to| *to != number).collect(),
                Destination::Host(name)
                | Destination::Reply(name)
                | Destination::Neighbour(name) => {
                    self.numbers.get(&name).copied().into_iter().collect()
                }
            };
            for to in receivers {
                let (random, tally) = (&mut self.random, &mut self.tally);
                self.network.send(self.now, (number, to), &bytes, random, tally);
            }
        }
        for located in located {
            let holders = located.holders.iter().map(|holder| self.numbers[holder.name()]);
            let holders: Vec<usize> = holders.collect();
            self.violations.extend(self.queries.located(&located, &holders));
        }
    }

    /// Checks that no host has bits that a home did not publish in that incarnation and epoch.
    fn check(&mut self) {
        for host in &self.hosts {
            let Some(protocol) = &host.protocol else { continue };
            for (number, home) in self.hosts.iter().enumerate() {
                let Some(version) = protocol.held(&self.set, &home.name) else { continue };
                if !self.history.contains(&(number, version)) {
                    let (host, home) = (&host.name, &home.name);
                    self.violations
                        .push(format!("{host} holds {version:x?} of {home}: never published"));
                }
            }
        }
        self.violations.extend(self.queries.overdue(self.now));
    }

    /// The first pair of hosts of which one does not have what the other published although it is
    /// within range, or has something of a host that is out of range.
    fn disagreement(&self) -> Option<String> {
        for (home_number, home) in self.hosts.iter().enumerate() {
            let published = home.protocol.as_ref()?.published(&self.set)?;
            // If this life has published nothing, nothing of earlier lives must be left either.
            let published = Some(published).filter(|(_, epoch, _)| *epoch > Epoch(0));
            for (number, host) in self.hosts.iter().enumerate().filter(|(n, _)| *n != home_number) {
                let held = host.protocol.as_ref()?.held(&self.set, &home.name);
                let expected = published.filter(|_| self.links.reaches(number, home_number));
                if held != expected {
                    let (a, b) = (&host.name, &home.name);
                    return Some(format!("{a} holds {held:?} of {b}, and should {expected:?}"));
                }
            }
        }
        None
    }
}

/// The result of a query, if the event contains one.
fn located(event: Event) -> Option<Located> {
    match event {
        Event::Located { located, .. } => Some(located),
        _ => None,
    }
}

/// A plan with any policy; a large filter is fetched in several pages.
fn any_plan(random: &mut Random, large: bool) -> SetPlan {
    let policies = [
        "miss:0.01",
        "miss:0",
        "miss:0.1,ghost=0.02",
        "overall:0.1",
        "dirty:0.1",
        "interval:2",
        "budget:2000",
        "miss:0.05,longest=5s",
        "miss:0.01,ghost=0.05,longest=1s",
    ];
    let policy = policies[random.below(policies.len())].parse().expect("a policy");
    SetPlan {
        false_positive: 0.02,
        expected_hosts: (random.below(3) > 0).then(|| 1 + random.below(8) as u32),
        capacity: large.then_some(150_000),
        policy,
        by_digests: random.below(4) > 0,
        chains: None,
    }
}
