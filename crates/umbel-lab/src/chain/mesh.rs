//! Workers and a router as hosts of a mesh: the engines that hosts run, and a network between
//! them in simulated time.
//!
//! A worker is the home of the blocks in its cache. The router owns no set, and has replicas of all
//! workers' sets. A message arrives at the next tick, or is lost. Workers do not follow each other:
//! what they send to all hosts is delivered only to the router.
//!
//! Always true: bytes are counted when they are sent to the router, lost or not.

use std::sync::Arc;
use std::time::Duration;

use umbel::bank::Depths;
use umbel::design::chain::ChainSearch;
use umbel::mesh::{Engine, MeshConfig};
use umbel::params::ParamError;
use umbel::protocol::{Destination, Protocol, Transmit};
use umbel::replica::{Incarnation, Intervals, Name, Replicas, SetPlan};
use umbel::{KeyHash, KeyHasher};

use crate::policies::Ids;
use crate::random::Random;

/// Step of the simulated clock.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// All hosts, and the messages in flight between them.
#[derive(Debug)]
pub struct Mesh {
    hasher: KeyHasher,
    set: Name,
    plan: SetPlan,
    names: Vec<Name>,
    workers: Vec<Engine<Ids>>,
    router_name: Name,
    router: Engine<Ids>,
    lives: u64,
    random: Random,
    /// Share of messages that are lost.
    loss: f64,
    now: Duration,
    /// Messages that arrive at the next tick, with the number of the worker that sent or receives
    /// them.
    to_router: Vec<(usize, Vec<u8>)>,
    to_workers: Vec<(usize, Vec<u8>)>,
    found: Depths,
    bytes: u64,
    changes: u64,
}

impl Mesh {
    /// Workers without blocks, and a router. `loss` is the share of messages that are lost.
    ///
    /// # Errors
    /// If the plan's promise cannot be kept.
    pub fn new(workers: usize, plan: SetPlan, loss: f64, seed: u64) -> Result<Self, ParamError> {
        let hasher = KeyHasher::default();
        let names: Vec<Name> = (0..workers).map(|index| name(&format!("w{index}"))).collect();
        let router_name = name("router");
        let router = engine(&router_name, hasher, 1);
        let mut mesh = Self {
            hasher,
            set: name("blocks"),
            plan,
            workers: names.iter().map(|name| engine(name, hasher, 1)).collect(),
            names,
            router_name,
            router,
            lives: 1,
            random: Random::of_trial(seed, "mesh", 0),
            loss,
            now: Duration::ZERO,
            to_router: Vec::new(),
            to_workers: Vec::new(),
            found: Depths::new(),
            bytes: 0,
            changes: 0,
        };
        for worker in 0..workers {
            mesh.own(worker)?;
        }
        mesh.meet();
        Ok(mesh)
    }

    /// Creates a worker's own set, without keys.
    fn own(&mut self, worker: usize) -> Result<(), ParamError> {
        self.workers[worker].create(self.now, &self.set, self.plan, Ids::default())
    }

    /// Tells all hosts that the others are alive.
    fn meet(&mut self) {
        let router = (self.router_name.clone(), self.router.config().incarnation);
        for (name, worker) in self.names.iter().zip(&mut self.workers) {
            worker.handle_alive(self.now, &router.0, router.1);
            self.router.handle_alive(self.now, name, worker.config().incarnation);
        }
    }

    /// Bytes sent to the router, lost or not.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of blocks added to and removed from workers.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The replicas that the router queries; `None` until it knows the set.
    #[must_use]
    pub fn replicas(&self) -> Option<Arc<Replicas>> {
        self.router.shared_replicas(&self.set).cloned()
    }

    /// The key hash of a block.
    #[must_use]
    pub fn hash(&self, block: u64) -> KeyHash {
        self.hasher.hash(&block.to_be_bytes())
    }

    /// Advances the time to this moment.
    pub fn advance(&mut self, until: Duration) {
        while self.now + TICK <= until {
            self.now += TICK;
            self.tick();
        }
    }

    fn tick(&mut self) {
        for (worker, bytes) in std::mem::take(&mut self.to_router) {
            self.router.handle_message(self.now, &self.names[worker], &bytes);
        }
        for (worker, bytes) in std::mem::take(&mut self.to_workers) {
            self.workers[worker].handle_message(self.now, &self.router_name, &bytes);
        }
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            if worker.poll_timeout() <= self.now {
                worker.handle_timeout(self.now);
            }
            while let Some(Transmit { to, bytes }) = self.workers[index].poll_transmit() {
                let is_meant = match &to {
                    Destination::All => true,
                    Destination::Host(host) | Destination::Reply(host) => *host == self.router_name,
                    Destination::Neighbour(_) => false,
                };
                if is_meant {
                    self.bytes += bytes.len() as u64;
                    if self.arrives() {
                        self.to_router.push((index, bytes.to_vec()));
                    }
                }
            }
            while self.workers[index].poll_event().is_some() {}
        }
        self.tick_router();
    }

    fn tick_router(&mut self) {
        if self.router.poll_timeout() <= self.now {
            self.router.handle_timeout(self.now);
        }
        while let Some(Transmit { to, bytes }) = self.router.poll_transmit() {
            let worker = match &to {
                Destination::Host(host) | Destination::Reply(host) => {
                    self.names.iter().position(|name| name == host)
                }
                _ => None,
            };
            if let Some(worker) = worker.filter(|_| self.arrives()) {
                self.to_workers.push((worker, bytes.to_vec()));
            }
        }
        while self.router.poll_event().is_some() {}
    }

    fn arrives(&mut self) -> bool {
        (self.random.next() >> 11) as f64 >= self.loss * (1u64 << 53) as f64
    }

    /// Adds blocks to a worker and removes others.
    pub fn change(&mut self, worker: usize, removed: &[u64], added: &[u64]) {
        let bytes = |blocks: &[u64]| blocks.iter().map(|key| key.to_be_bytes()).collect::<Vec<_>>();
        let (removed, added) = (bytes(removed), bytes(added));
        let keys: Vec<&[u8]> = removed.iter().map(<[u8; 8]>::as_slice).collect();
        let mut changed = 0;
        let mut count = |is_real: bool| changed += u64::from(is_real);
        let engine = &mut self.workers[worker];
        engine.remove_many(self.now, &self.set, &keys, &mut count);
        let keys: Vec<&[u8]> = added.iter().map(<[u8; 8]>::as_slice).collect();
        engine.add_many(self.now, &self.set, &keys, &mut count);
        self.changes += changed;
    }

    /// How many leading blocks each worker has, according to the router's replicas.
    pub(super) fn depths(&mut self, chain: &[KeyHash], how: ChainSearch, depths: &mut [u32]) {
        depths.fill(0);
        let Some(replicas) = self.router.shared_replicas(&self.set) else { return };
        replicas.chain(chain, how, &mut self.found, |_, name, depth| {
            let number = name.as_str().get(1..).and_then(|number| number.parse::<usize>().ok());
            if let Some(place) = number.and_then(|number| depths.get_mut(number)) {
                *place = depth;
            }
        });
    }

    /// Whether the router has what every worker published last.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.names.iter().all(|name| {
            let replica = self.router.replica(self.now, &self.set, name);
            replica.is_some_and(|replica| replica.epoch.is_some() && replica.is_current)
        })
    }

    /// Bytes that the router's replicas take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.router.shared_replicas(&self.set).map_or(0, |replicas| replicas.memory_bytes())
    }

    /// Restarts the router, without any state.
    pub fn restart_router(&mut self) {
        self.lives += 1;
        self.router = engine(&self.router_name, self.hasher, self.lives);
        self.to_router.clear();
        self.meet();
    }

    /// Restarts a worker, without any blocks.
    pub(super) fn restart_worker(&mut self, worker: usize) -> Result<(), ParamError> {
        self.lives += 1;
        self.workers[worker] = engine(&self.names[worker], self.hasher, self.lives);
        self.own(worker)?;
        self.meet();
        Ok(())
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a short name of letters and digits")
}

fn engine(name: &Name, hasher: KeyHasher, life: u64) -> Engine<Ids> {
    let mut config = MeshConfig::new(name.clone(), Incarnation(life), hasher);
    config.intervals = Intervals { shortest: Duration::from_millis(250), ..Intervals::DEFAULT };
    config.seed = life;
    Engine::new(config)
}
