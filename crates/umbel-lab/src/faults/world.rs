//! One seeded world: hosts that own sets, churn, crash, restart and are cut off.
//!
//! The hosts run the very engine that real ones run. While the faults last, and after, it is
//! checked that no replica ever holds bits that its home did not publish; once they have
//! stopped, that every replica comes to hold what its home published last, within a bounded
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::mesh::{Config, Engine};
use umbel::protocol::{Destination, Protocol as _, Transmit};
use umbel::replica::{Epoch, Incarnation, Intervals, Name, SetPlan};
use umbel::{HashId, KeyHasher, Seed};

use super::network::{Network, Weather};
use super::{Tally, WorldPlan};
use crate::random::Random;

/// A host, running or crashed.
#[derive(Debug)]
struct Host {
    name: Name,
    engine: Option<Engine<MemoryCatalogue>>,
    incarnation: Incarnation,
    plan: SetPlan,
    /// What its disk holds, and an old backup of it.
    disk: MemoryCatalogue,
    backup: MemoryCatalogue,
    restart_at: Duration,
}

/// What homes published: host, life and update, with the checksum of the bits.
type History = BTreeSet<(usize, Incarnation, Epoch, u64)>;

/// One seeded world.
#[derive(Debug)]
pub(super) struct World {
    random: Random,
    network: Network,
    hosts: Vec<Host>,
    numbers: BTreeMap<Name, usize>,
    set: Name,
    now: Duration,
    heal_at: Duration,
    history: History,
    pub(super) tally: Tally,
    pub(super) violations: Vec<String>,
}

/// A step of the world's clock.
const STEP: Duration = Duration::from_millis(200);
/// How long a world may take to converge once the faults have stopped.
const CONVERGENCE: Duration = Duration::from_secs(120);

impl World {
    pub(super) fn new(seed: u64, plan: &WorldPlan) -> Self {
        let mut random = Random::of_trial(seed, "faults", 0);
        let weather = Weather::any(&mut random);
        let name = |number: usize| Name::new(&format!("host-{number}")).expect("a name");
        let large = random.below(64) == 0;
        let hosts: Vec<Host> = (0..plan.hosts)
            .map(|number| Host {
                name: name(number),
                engine: None,
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
            set: Name::new("set").expect("a name"),
            now: Duration::from_secs(1),
            heal_at: Duration::ZERO,
            history: History::new(),
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

    /// Runs the faults, then calm weather until all agree or time is up.
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
        self.hosts.iter().flat_map(|host| &host.engine).for_each(Engine::validate);
    }

    /// What may go wrong, and what hosts do all day.
    fn step_of_faults(&mut self) {
        self.tally.steps += 1;
        for number in 0..self.hosts.len() {
            if self.hosts[number].engine.is_some() {
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
        let Some(engine) = &mut self.hosts[number].engine else { return };
        let many = if self.random.below(60) == 0 { 120 } else { 3 };
        for _ in 0..self.random.below(many) {
            let key = (self.random.below(300) as u64).to_be_bytes();
            if self.random.below(5) < 3 {
                engine.add(now, set, &key);
            } else {
                engine.remove(now, set, &key);
            }
        }
        if self.random.below(100) == 0 {
            engine.publish(now, set);
        }
    }

    fn load(&mut self, number: usize, keys: u64) {
        let keys: Vec<_> = (1000..1000 + keys).map(u64::to_be_bytes).collect();
        if let Some(engine) = &mut self.hosts[number].engine {
            let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
            engine.add_many(self.now, &self.set, &keys, &mut |_| ());
        }
    }

    fn crash(&mut self, number: usize) {
        self.tally.crashes += 1;
        let host = &mut self.hosts[number];
        // Every change was on disk before it was acknowledged.
        if let Some(home) = host.engine.take().as_ref().and_then(|engine| engine.home(&self.set)) {
            host.disk = home.catalogue().clone();
        }
        // Half come back while messages of their last life are still under way.
        let longest = if self.random.below(2) == 0 { 500 } else { 15_000 };
        host.restart_at = self.now + Duration::from_millis(self.random.below(longest) as u64);
        // The others may notice, or not.
        if self.random.below(3) > 0 {
            self.tell_gone(number);
        }
    }

    /// A host that is well disappears from the others' sight for a moment.
    fn false_death(&mut self, number: usize) {
        self.tell_gone(number);
    }

    fn tell_gone(&mut self, number: usize) {
        let Host { name, incarnation, .. } = &self.hosts[number];
        let (now, name, incarnation) = (self.now, name.clone(), *incarnation);
        let others = self.hosts.iter_mut().filter_map(|host| host.engine.as_mut());
        others.for_each(|engine| engine.handle_gone(now, &name, incarnation));
    }

    /// A crashed host comes back: with its disk, with an old backup of it, or with nothing.
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
        let mut config = Config::new(host.name.clone(), host.incarnation, hasher());
        config.seed = seed;
        config.intervals =
            Intervals { shortest: Duration::from_millis(300), longest: Duration::from_secs(20) };
        let mut engine = Engine::new(config);
        engine.create(now, &set, host.plan, catalogue).expect("a sound plan");
        host.engine = Some(engine);
    }

    /// The faults stop: no more weather, cuts, crashes or churn.
    fn calm(&mut self) {
        self.network.heal();
        self.network.weather = Weather::CALM;
        for number in 0..self.hosts.len() {
            if self.hosts[number].engine.is_none() {
                self.restart(number);
            }
        }
    }

    /// One step of the clock: messages arrive, timers fire, answers leave; then checks.
    fn advance(&mut self) {
        self.collect();
        let until = self.now + STEP;
        while let Some((arrival, from, to, bytes)) = self.network.arrived(until) {
            self.now = self.now.max(arrival);
            let from = self.hosts[from].name.clone();
            if let Some(engine) = &mut self.hosts[to].engine {
                engine.handle_message(self.now, &from, &bytes);
            }
            self.collect_from(to);
        }
        self.now = until;
        for number in 0..self.hosts.len() {
            let engine = self.hosts[number].engine.as_mut();
            if let Some(engine) = engine.filter(|engine| engine.poll_timeout() <= self.now) {
                engine.handle_timeout(self.now);
            }
        }
        self.collect();
        self.check();
    }

    fn collect(&mut self) {
        (0..self.hosts.len()).for_each(|number| self.collect_from(number));
    }

    /// Takes what a host has to send, and remembers what it published.
    fn collect_from(&mut self, number: usize) {
        let Some(engine) = &mut self.hosts[number].engine else { return };
        while engine.poll_event().is_some() {}
        if let Some((life, epoch, checksum)) = engine.published_checksum(&self.set) {
            self.history.insert((number, life, epoch, checksum));
        }
        while let Some(Transmit { to, bytes }) = engine.poll_transmit() {
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
    }

    /// No replica holds bits that its home never published under that life and epoch.
    fn check(&mut self) {
        for host in &self.hosts {
            let Some(engine) = &host.engine else { continue };
            for home in engine.replicas(&self.set) {
                let Some((life, epoch, checksum)) = engine.replica_checksum(&self.set, home) else {
                    continue;
                };
                let number = self.numbers[home];
                if !self.history.contains(&(number, life, epoch, checksum)) {
                    self.violations.push(format!(
                        "{} holds {checksum:016x} of {home}, {life:?}, {epoch:?}: never published",
                        host.name
                    ));
                }
            }
        }
    }

    /// The first pair of hosts of which one does not have what the other published.
    fn disagreement(&self) -> Option<String> {
        for home in &self.hosts {
            let published = home.engine.as_ref()?.published_checksum(&self.set)?;
            // A life that has published nothing leaves nothing of earlier lives either.
            let published = Some(published).filter(|(_, epoch, _)| *epoch > Epoch(0));
            for host in self.hosts.iter().filter(|host| host.name != home.name) {
                let held = host.engine.as_ref()?.replica_checksum(&self.set, &home.name);
                if held != published {
                    let (a, b) = (&host.name, &home.name);
                    return Some(format!("{a} holds {held:?} of {b}, who published {published:?}"));
                }
            }
        }
        None
    }
}

fn hasher() -> KeyHasher {
    KeyHasher::secret(HashId::SipHash13, Seed::from_number(7))
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
        "miss:0.05,longest=5",
    ];
    let policy = policies[random.below(policies.len())].parse().expect("a policy");
    SetPlan {
        false_positive: 0.02,
        expected_hosts: (random.below(3) > 0).then(|| 1 + random.below(8) as u32),
        capacity: large.then_some(150_000),
        policy,
        by_digests: random.below(4) > 0,
    }
}
