//! Worlds of loads: one home loads many keys, and other hosts follow as they can.
//!
//! Of the receivers one is well connected, one loses messages, one is slow, and one gets no
//! processor time for seconds. Updates are long, many of them are lost, and the filter grows.
//!
//! In addition to the promises of every world: soon after the load, every receiver must have what
//! the home published last, and the home must not have sent it more than a few times the final
//! image.

use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{self, Engine};
use umbel::protocol::{Destination, Protocol, Transmit};
use umbel::replica::{Incarnation, Name, SetPlan};

use super::Tally;
use super::network::{Network, Weather};
use super::subject::{INTERVALS, Subject, hasher, name_of};
use crate::random::Random;

/// The home, and the receivers in the order of the module header.
const HOSTS: usize = 5;
const LOSSY: usize = 2;
const SLOW: usize = 3;
const STARVED: usize = 4;

const STEP: Duration = Duration::from_millis(200);
/// How long after the last key every receiver must agree with the home.
const AGREEMENT: Duration = Duration::from_secs(20);
/// Messages that the slow receiver handles in a step.
const SLOW_MESSAGES: usize = 3;
/// Maximum number of bytes sent to one receiver, in multiples of a plain image. More is sent to the
/// one that loses messages, because lost bytes count too.
const MAX_IMAGES: f64 = 4.0;
const MAX_LOSSY_IMAGES: f64 = 6.0;

/// Bytes sent to a receiver, by kind of message.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    updates: u64,
    changes: u64,
    pages: u64,
    others: u64,
}

impl Sent {
    /// Counts a message; its second byte is the kind.
    fn count(&mut self, message: &[u8]) {
        let bytes = match message.get(1) {
            Some(1) => &mut self.updates,
            Some(4) => &mut self.pages,
            Some(6) => &mut self.changes,
            _ => &mut self.others,
        };
        *bytes += message.len() as u64;
    }

    const fn all(&self) -> u64 {
        self.updates + self.changes + self.pages + self.others
    }
}

/// A world of loads.
pub(super) struct LoadWorld {
    random: Random,
    network: Network,
    engines: Vec<Engine<MemoryCatalogue>>,
    /// Messages that wait until their receiver can process them.
    waiting: Vec<Vec<(usize, Vec<u8>)>>,
    starved_until: Duration,
    /// How often that host was starved.
    starvations: u32,
    set: Name,
    now: Duration,
    sent_to: [Sent; HOSTS],
    history: Vec<u64>,
    pub(super) tally: Tally,
    pub(super) violations: Vec<String>,
}

impl LoadWorld {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::of_trial(seed, "loads", 0);
        let engine = |number| {
            let mut config = mesh::MeshConfig::new(name_of(number), Incarnation(1), hasher());
            (config.seed, config.intervals) = (seed ^ number as u64, INTERVALS);
            Engine::new(config)
        };
        let weather = Weather { delay_ms: 1 + random.below(300) as u64, ..Weather::CALM };
        let mut world = Self {
            network: Network::new(HOSTS, weather),
            engines: (0..HOSTS).map(engine).collect(),
            waiting: vec![Vec::new(); HOSTS],
            starved_until: Duration::ZERO,
            starvations: 0,
            set: Name::new("set").expect("a name"),
            now: Duration::from_secs(1),
            sent_to: [Sent::default(); HOSTS],
            history: Vec::new(),
            tally: Tally { worlds: 1, ..Tally::default() },
            violations: Vec::new(),
            random,
        };
        let (now, set, catalogue) = (world.now, world.set.clone(), MemoryCatalogue::new());
        world.engines[0].create(now, &set, SetPlan::default(), catalogue).expect("a sound plan");
        world
    }

    /// Loads, then waits until all agree or time is up.
    pub(super) fn run(&mut self) {
        let (steps, mut next) = (10 + self.random.below(40), 0u64);
        let max = 4000 + self.random.below(16_000);
        for _ in 0..steps {
            let keys = 1 + self.random.below(max) as u64;
            let keys: Vec<_> = (next..next + keys).map(u64::to_be_bytes).collect();
            next += keys.len() as u64;
            let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
            self.engines[0].add_many(self.now, &self.set, &keys, &mut |_| ());
            if self.now >= self.starved_until && self.random.below(8) == 0 {
                let seconds = 1 + self.random.below(12) as u64;
                self.starved_until = self.now + Duration::from_secs(seconds);
                self.starvations += 1;
            }
            self.tally.steps += 1;
            self.advance();
        }
        self.network.weather = Weather::CALM;
        self.starved_until = self.now;
        let deadline = self.now + AGREEMENT;
        while self.now < deadline && self.violations.is_empty() && self.behind().is_some() {
            self.advance();
        }
        if let Some(host) = self.behind() {
            self.violations.push(format!("{host} does not agree {AGREEMENT:?} after the load"));
        }
        self.tally.parts = self.engines.iter().map(|engine| engine.counters().parts).sum();
        self.check_bytes();
        self.engines.iter().for_each(Protocol::validate);
    }

    fn check_bytes(&mut self) {
        let bits =
            self.engines[0].home(&self.set).map_or(0, |home| home.filter().scheme().shape().bits());
        for host in 1..HOSTS {
            let images = match host {
                LOSSY => MAX_LOSSY_IMAGES,
                // What it was sent while it had no time outlasts the home's log, so that each
                // time it may have to fetch an image again.
                STARVED => MAX_IMAGES + f64::from(self.starvations.saturating_sub(1)),
                _ => MAX_IMAGES,
            };
            // Allow for announcements, requests, and empty updates.
            let max = images * (bits / 8) as f64 + 64_000.0;
            let sent = self.sent_to[host];
            if sent.all() as f64 > max {
                let (name, times) = (name_of(host), sent.all() as f64 / (bits / 8) as f64);
                self.violations.push(format!(
                    "{times:.1} images of {bits} bits were sent to {name}, starved {} times: {sent:?} bytes",
                    self.starvations
                ));
            }
        }
    }

    /// A receiver that does not have what the home published last.
    fn behind(&self) -> Option<Name> {
        let published = self.engines[0].published(&self.set);
        let home = name_of(0);
        let behind =
            (1..HOSTS).find(|host| self.engines[*host].held(&self.set, &home) != published);
        behind.map(name_of)
    }

    fn advance(&mut self) {
        self.collect();
        let until = self.now + STEP;
        while let Some((arrival, from, to, bytes)) = self.network.arrived(until) {
            self.now = self.now.max(arrival);
            self.waiting[to].push((from, bytes));
            if to != SLOW && to != STARVED {
                self.handle(to, usize::MAX);
            }
        }
        self.now = until;
        self.handle(SLOW, SLOW_MESSAGES);
        let is_starved = self.now < self.starved_until;
        if !is_starved {
            self.handle(STARVED, usize::MAX);
        }
        for (number, engine) in self.engines.iter_mut().enumerate() {
            let has_time = number != STARVED || !is_starved;
            if has_time && engine.poll_timeout() <= self.now {
                engine.handle_timeout(self.now);
            }
        }
        self.collect();
        self.check();
    }

    /// Lets a host handle some of the messages that wait for it.
    fn handle(&mut self, host: usize, max: usize) {
        let count = self.waiting[host].len().min(max);
        for (from, bytes) in self.waiting[host].drain(..count).collect::<Vec<_>>() {
            self.engines[host].handle_message(self.now, &name_of(from), &bytes);
            self.collect();
        }
    }

    fn collect(&mut self) {
        for from in 0..HOSTS {
            while self.engines[from].poll_event().is_some() {}
            if let Some((_, _, checksum)) = self.engines[0].published(&self.set) {
                self.history.push(checksum);
                self.history.dedup();
            }
            while let Some(Transmit { to, bytes }) = self.engines[from].poll_transmit() {
                let is_meant = |host: &usize| match &to {
                    Destination::All => *host != from,
                    Destination::Host(name) | Destination::Reply(name) => *name == name_of(*host),
                    Destination::Neighbour(_) => false,
                };
                for to in (0..HOSTS).filter(is_meant) {
                    self.send(from, to, &bytes);
                }
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, bytes: &[u8]) {
        self.sent_to[to].count(bytes);
        let is_lost = (from == LOSSY || to == LOSSY) && self.random.below(4) == 0;
        if is_lost && self.network.weather.delay_ms > 1 {
            self.tally.dropped += 1;
            return;
        }
        let (random, tally) = (&mut self.random, &mut self.tally);
        self.network.send(self.now, (from, to), bytes, random, tally);
    }

    /// No receiver holds bits that the home never published.
    fn check(&mut self) {
        let home = name_of(0);
        for host in 1..HOSTS {
            let held = self.engines[host].held(&self.set, &home);
            if let Some((_, epoch, checksum)) = held
                && !self.history.contains(&checksum)
            {
                let host = name_of(host);
                self.violations.push(format!("{host} holds {epoch:?}: never published"));
            }
        }
    }
}
