//! The cost of a mesh for each of its hosts, with real engines and a network that delivers at once.
//!
//! Every host is home to the same number of keys of one set. What a host receives and stores is
//! counted, to be compared with the model of [`umbel::design::replica`]: messages as the engines
//! produce them, without network headers. Keys arrive at random times, as the model assumes: keys
//! that arrive exactly every second would cause one update each, while random ones sometimes share
//! one.
//!
//! Always true: the same mesh gives the same counts. There is no clock: to measure processor time,
//! time the calls.

use std::collections::BTreeMap;
use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::design::PlanError;
use umbel::design::replica::{ReplicaPlan, Workload, plan};
use umbel::mesh::{Engine, MeshConfig};
use umbel::params::ParamError;
use umbel::protocol::{Destination, Protocol as _, Transmit};
use umbel::replica::{Incarnation, Intervals, Name, SetPlan};
use umbel::{KeyHasher, Rate};

use crate::random::Random;

/// The size of a mesh: hosts, keys per host, and changes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalePlan {
    /// Hosts of the mesh.
    pub hosts: usize,
    /// Keys of each.
    pub keys: u64,
    /// Keys added to each host per second; as many are removed.
    pub changes_per_second: u64,
}

impl ScalePlan {
    /// The model's prediction, for the default policy.
    ///
    /// # Errors
    /// If nothing changes, or no filter is possible with these numbers.
    pub fn model(&self) -> Result<ReplicaPlan, PlanError> {
        let defaults = SetPlan::default();
        let changes = self.changes_per_second as f64;
        plan(&Workload {
            items: self.keys,
            adds_per_second: changes,
            removes_per_second: changes,
            hosts: self.hosts as u64,
            miss: Rate::new(0.01)?,
            false_positive: Rate::new(defaults.false_positive)?,
            longest: defaults.policy.longest.map(|longest| longest.as_secs_f64()),
            shortest: Intervals::DEFAULT.shortest.as_secs_f64(),
        })
    }

    /// Maximum number of bytes that one more host fetches from all others. It is computed with the
    /// model for one more host.
    ///
    /// # Errors
    /// As [`Self::model`].
    pub fn join_bytes(&self) -> Result<f64, PlanError> {
        let with_it = Self { hosts: self.hosts + 1, ..*self };
        Ok(with_it.model()?.join_bytes_per_host())
    }
}

/// Messages that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// How many.
    pub messages: u64,
    /// Their bytes, as the engines made them.
    pub bytes: u64,
}

/// What a new host received until it knew all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Time until it knew them, in whole seconds.
    pub seconds: u64,
    /// What it received.
    pub received: Traffic,
}

/// Hosts that are found by their names.
#[derive(Debug)]
pub struct Mesh {
    plan: ScalePlan,
    engines: Vec<Engine<MemoryCatalogue>>,
    numbers: BTreeMap<Name, usize>,
    /// What arrived at each host.
    received: Vec<Traffic>,
    /// Which keys each host holds.
    held: Vec<Memory>,
    now: Duration,
}

/// The keys of a host: numbers from `gone` to `given`.
#[derive(Debug)]
struct Memory {
    given: u64,
    gone: u64,
    /// When the next key is added and the oldest is removed.
    next_change: Duration,
    random: Random,
}

impl Memory {
    /// Draws the time to the next change, from an exponential distribution.
    fn draw_gap(&mut self, per_second: u64) -> Duration {
        let uniform = ((self.random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        Duration::from_secs_f64(-uniform.ln() / per_second.max(1) as f64)
    }
}

/// Step of the clock while keys change. Anything due waits for the next step, which adds a fortieth
/// of a second on average to intervals of about two seconds.
const STEP: Duration = Duration::from_millis(50);

impl Mesh {
    /// Hosts with their keys that do not know each other yet.
    ///
    /// # Errors
    /// If no filter can hold this many keys.
    pub fn new(plan: ScalePlan) -> Result<Self, ParamError> {
        let mut mesh = Self {
            plan,
            engines: Vec::new(),
            numbers: BTreeMap::new(),
            received: Vec::new(),
            held: Vec::new(),
            now: Duration::from_secs(1),
        };
        for _ in 0..plan.hosts {
            mesh.add_host()?;
        }
        Ok(mesh)
    }

    /// Runs until every host knows every other. Returns the seconds it took, or `None` after a
    /// minute.
    pub fn meet(&mut self) -> Option<u64> {
        let all = self.engines.len();
        self.deliver();
        (1..=60).find(|_| {
            self.pass(1);
            (0..all).all(|host| self.knows(host) == all - 1)
        })
    }

    /// Runs for some seconds without changes. Returns what all hosts together received.
    pub fn pass(&mut self, seconds: u64) -> Traffic {
        let before = self.all_received();
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            let now = self.now;
            self.engines.iter_mut().for_each(|engine| engine.handle_timeout(now));
            self.deliver();
        }
        since(before, self.all_received())
    }

    /// Runs for some seconds with changes. Returns what all hosts together received.
    pub fn change(&mut self, seconds: u64) -> Traffic {
        let before = self.all_received();
        for held in &mut self.held {
            let gap = held.draw_gap(self.plan.changes_per_second);
            held.next_change = self.now + gap;
        }
        let until = self.now + Duration::from_secs(seconds);
        while self.now < until {
            self.now += STEP;
            for host in 0..self.engines.len() {
                self.change_keys(host);
                if self.engines[host].poll_timeout() <= self.now {
                    self.engines[host].handle_timeout(self.now);
                }
            }
            self.deliver();
        }
        since(before, self.all_received())
    }

    /// Applies the changes of a host that are due.
    fn change_keys(&mut self, host: usize) {
        while self.held[host].next_change <= self.now {
            let held = &mut self.held[host];
            let gap = held.draw_gap(self.plan.changes_per_second);
            held.next_change += gap;
            let (new, old) = (held.given, held.gone);
            (held.given, held.gone) = (new + 1, old + 1);
            self.add_keys(host, new..new + 1);
            self.engines[host].remove(self.now, &set(), &key(host, old));
        }
    }

    /// Adds a host with as many keys. Returns what it received until it knew the others, or `None`
    /// if that took more than a minute.
    ///
    /// # Errors
    /// If no filter can hold this many keys.
    pub fn join(&mut self) -> Result<Option<Joined>, ParamError> {
        self.add_host()?;
        let host = self.engines.len() - 1;
        let knows = |mesh: &mut Self, _: &u64| {
            mesh.pass(1);
            mesh.knows(host) == host
        };
        let seconds = (1..=60).find(|second| knows(self, second));
        Ok(seconds.map(|seconds| Joined { seconds, received: self.received[host] }))
    }

    /// Bytes that the replicas at the first host take: copies and rows.
    #[must_use]
    pub fn replica_bytes(&self) -> u64 {
        self.engines[0].shared_replicas(&set()).map_or(0, |replicas| replicas.memory_bytes())
    }

    /// Bytes that the first host accounts for its replicas, before it decodes them.
    #[must_use]
    pub fn charged_bytes(&self) -> u64 {
        self.engines[0].replica_bytes_charged()
    }

    /// Number of other hosts that a host knows, with current replicas.
    fn knows(&self, host: usize) -> usize {
        let heard = self.engines[host].heard_of(self.now);
        heard.iter().filter(|(_, gap)| gap.is_none()).count()
    }

    fn all_received(&self) -> Traffic {
        self.received.iter().fold(Traffic::default(), |sum, here| Traffic {
            messages: sum.messages + here.messages,
            bytes: sum.bytes + here.bytes,
        })
    }

    /// Adds a host; its announcements are not at the same time as those of the others.
    fn add_host(&mut self) -> Result<(), ParamError> {
        let host = self.engines.len();
        let name = name(&format!("host-{host}"));
        let mut config = MeshConfig::new(name.clone(), Incarnation(1), KeyHasher::default());
        config.seed = host as u64;
        let mut engine = Engine::new(config);
        let plan = SetPlan {
            expected_hosts: Some(u32::try_from(self.plan.hosts).unwrap_or(u32::MAX)),
            // All keys are added at once. Without a capacity this would look like a bulk load, for
            // which the filter grows larger.
            capacity: Some(self.plan.keys),
            ..SetPlan::default()
        };
        engine.create(self.now, &set(), plan, MemoryCatalogue::new())?;
        self.engines.push(engine);
        self.numbers.insert(name, host);
        self.received.push(Traffic::default());
        let random = Random::of_trial(1, "scale", host as u64);
        let next_change = Duration::ZERO;
        self.held.push(Memory { given: self.plan.keys, gone: 0, next_change, random });
        self.add_keys(host, 0..self.plan.keys);
        self.engines[host].handle_timeout(self.now);
        Ok(())
    }

    fn add_keys(&mut self, host: usize, numbers: std::ops::Range<u64>) {
        let keys: Vec<_> = numbers.map(|number| key(host, number)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 16]>::as_slice).collect();
        self.engines[host].add_many(self.now, &set(), &keys, &mut |_| ());
    }

    /// Delivers messages until none are left.
    fn deliver(&mut self) {
        let (mut from, mut idle) = (0, 0);
        while idle < self.engines.len() {
            idle += 1;
            let sender = self.engines[from].config().name.clone();
            while let Some(Transmit { to, bytes }) = self.engines[from].poll_transmit() {
                idle = 0;
                match to {
                    Destination::All => (0..self.engines.len())
                        .filter(|host| *host != from)
                        .for_each(|host| self.hand_over(host, &sender, &bytes)),
                    Destination::Host(host) | Destination::Reply(host) => {
                        if let Some(host) = self.numbers.get(&host) {
                            self.hand_over(*host, &sender, &bytes);
                        }
                    }
                    // A mesh has no neighbours.
                    Destination::Neighbour(_) => {}
                }
            }
            from = (from + 1) % self.engines.len();
        }
    }

    fn hand_over(&mut self, host: usize, from: &Name, bytes: &[u8]) {
        self.engines[host].handle_message(self.now, from, bytes);
        self.received[host].messages += 1;
        self.received[host].bytes += bytes.len() as u64;
        while self.engines[host].poll_event().is_some() {}
    }
}

fn since(before: Traffic, now: Traffic) -> Traffic {
    Traffic { messages: now.messages - before.messages, bytes: now.bytes - before.bytes }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("letters and digits")
}

fn set() -> Name {
    name("objects")
}

/// The key with this number at a host; unique in the mesh.
fn key(host: usize, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&(host as u64).to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts that stand on the rung that the model says hold, receive and fetch what it says.
    #[test]
    fn engines_cost_what_the_model_says() {
        for (hosts, keys, changes_per_second) in [(3, 2000, 10), (12, 1500, 10), (40, 40, 1)] {
            let plan = ScalePlan { hosts, keys, changes_per_second };
            let model = plan.model().unwrap();
            let mut mesh = Mesh::new(plan).unwrap();
            assert!(mesh.meet().is_some(), "{hosts} hosts know each other");
            mesh.pass(10);
            let memory = model.copies_bytes_per_host() + model.rows_bytes_per_host();
            let held = mesh.replica_bytes() as f64;
            assert!((0.99..1.01).contains(&(held / memory)), "{held} bytes, {memory} by the model");

            let per_host = |traffic: Traffic, seconds: u64| {
                let all = (hosts as u64 * seconds) as f64;
                (traffic.messages as f64 / all, traffic.bytes as f64 / all)
            };
            let (messages, quiet) = per_host(mesh.pass(12), 12);
            let announced = (hosts - 1) as f64 / 3.0;
            assert!((messages / announced - 1.0).abs() < 0.01, "{messages} of {announced}");
            // The model counts what carries them too.
            assert!(quiet < model.quiet_bytes_per_second_per_host());

            mesh.change(5);
            let (_, bytes) = per_host(mesh.change(40), 40);
            let updates = model.received_bytes_per_second_per_host();
            let over = (bytes - quiet) / updates;
            assert!((0.5..1.5).contains(&over), "{bytes} bytes, {updates} by the model");

            let joined = mesh.join().unwrap().unwrap();
            let received = joined.received.bytes as f64;
            let max = plan.join_bytes().unwrap();
            assert!(received <= max * 1.1, "{received} bytes to join, {max} by the model");
        }
    }
}
