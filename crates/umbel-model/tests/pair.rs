//! A home and a host that holds its replica, and the messages between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use shuttle::thread;

use umbel_model::bank::BatchCandidates;
use umbel_model::catalogue::{Catalogue as _, MemoryCatalogue};
use umbel_model::design::ladder::RungChoice;
use umbel_model::mesh::{Encoding, Engine, LocalSet, MeshConfig, Work};
use umbel_model::protocol::{Destination, Protocol, Transmit};
use umbel_model::replica::{Home, Incarnation, Intervals, Name, Replicas, SetPlan};
use umbel_model::{HashId, KeyHasher, Seed};

pub(crate) type Mesh = Engine<MemoryCatalogue>;

const AT_ONCE: Intervals = Intervals { shortest: Duration::ZERO, ..Intervals::DEFAULT };

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub(crate) fn hasher() -> KeyHasher {
    KeyHasher::secret(HashId::SipHash13, Seed::from_number(42))
}

pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A plan for so many keys, of which every change is published at once.
pub(crate) fn plan(capacity: u64) -> SetPlan {
    SetPlan {
        false_positive: 0.02,
        expected_hosts: Some(1),
        capacity: Some(capacity),
        policy: "miss:0,ghost=0".parse().expect("a policy"),
        by_digests: true,
        chains: None,
    }
}

/// The time, which goes on whenever somebody looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn now(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) fn engine(text: &str, own_bytes: u64) -> Mesh {
    let mut config = MeshConfig::new(name(text), Incarnation(1), hasher());
    config.intervals = AT_ONCE;
    config.work = Work::Deferred;
    config.max_keys_at_once = 4;
    config.max_bits_at_once = 0;
    config.own_bytes = own_bytes;
    Engine::new(config)
}

/// Adds keys to an own set; how many are new, or none if the host no longer owns it.
pub(crate) fn add(
    set: &LocalSet<MemoryCatalogue>,
    clock: &Clock,
    keys: impl Iterator<Item = u64>,
) -> Option<usize> {
    let (keys, mut new) = (keys.map(key).collect::<Vec<_>>(), 0);
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    let owns = set.add_many(clock.now(), &keys, &mut |is_new| new += usize::from(is_new));
    owns.then_some(new)
}

/// Which of these keys the replicas deny, where a host should be named.
pub(crate) fn denied(
    replicas: &Replicas,
    home: &str,
    keys: impl Iterator<Item = u64>,
) -> Vec<usize> {
    let hashes: Vec<_> = keys.map(|number| hasher().hash(&key(number))).collect();
    let (mut place, mut denied) = (0, Vec::new());
    replicas.who(&hashes, &mut BatchCandidates::new(), |hosts| {
        if !hosts.iter().any(|host| host.as_str() == home) {
            denied.push(place);
        }
        place += 1;
    });
    assert_eq!(place, hashes.len(), "every key is answered");
    denied
}

/// Lets a thread ask for keys that were published, again and again until it is told to finish.
pub(crate) struct Asking {
    is_done: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Asking {
    pub(crate) fn start(replicas: Arc<Replicas>, keys: std::ops::Range<u64>) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_done);
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let denied = denied(&replicas, "home", keys.clone());
                assert!(denied.is_empty(), "keys that were published are denied: {denied:?}");
                thread::yield_now();
            }
        });
        Self { is_done, thread: Some(thread) }
    }

    pub(crate) fn finish(mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        self.thread.take().expect("started").join().expect("no key was denied");
    }
}

/// Hosts, driven by one thread. The first one is the home.
pub(crate) struct Hosts {
    pub(crate) engines: Vec<Mesh>,
    pub(crate) clock: Clock,
    /// Updates that are being encoded, and whose they are.
    encodings: Vec<(usize, Encoding)>,
}

impl Hosts {
    pub(crate) fn of(engines: Vec<Mesh>) -> Self {
        Self { engines, clock: Clock::default(), encodings: Vec::new() }
    }

    /// A home with a set of these keys, and a host that knows them.
    pub(crate) fn pair(keys: impl Iterator<Item = u64>) -> Self {
        let engines = vec![engine("home", u64::MAX), engine("host", u64::MAX)];
        let mut hosts = Self::of(engines);
        hosts.create(0, keys);
        hosts.settle();
        hosts
    }

    pub(crate) fn create(&mut self, index: usize, keys: impl Iterator<Item = u64>) {
        let now = self.clock.now();
        let engine = &mut self.engines[index];
        engine.create(now, &name("set"), plan(8), MemoryCatalogue::new()).expect("created");
        add(engine.local_set(&name("set")).expect("own"), &self.clock, keys).expect("own");
    }

    pub(crate) fn local(&self) -> Arc<LocalSet<MemoryCatalogue>> {
        Arc::clone(self.engines[0].local_set(&name("set")).expect("own"))
    }

    pub(crate) fn replicas(&self) -> Arc<Replicas> {
        Arc::clone(self.engines[1].shared_replicas(&name("set")).expect("known"))
    }

    /// What a driver does when it wakes: lets time pass where it is due, and sends what there is.
    /// Updates are encoded from one time to the next.
    pub(crate) fn tick(&mut self) {
        self.finish_encodings();
        let now = self.clock.now();
        for (index, engine) in self.engines.iter_mut().enumerate() {
            if now >= engine.poll_timeout() {
                engine.handle_timeout(now);
            }
            let encodings = std::iter::from_fn(|| engine.poll_encoding());
            self.encodings.extend(encodings.map(|encoding| (index, encoding)));
        }
        self.deliver();
    }

    fn finish_encodings(&mut self) {
        for (index, encoding) in std::mem::take(&mut self.encodings) {
            self.engines[index].handle_encoded(self.clock.now(), encoding.encode());
        }
    }

    /// Delivers messages until none are left.
    fn deliver(&mut self) {
        loop {
            let mut sent = Vec::new();
            for engine in &mut self.engines {
                let from = engine.config().name.clone();
                while engine.poll_event().is_some() {}
                while let Some(transmit) = engine.poll_transmit() {
                    sent.push((from.clone(), transmit));
                }
            }
            if sent.is_empty() {
                return;
            }
            for (from, Transmit { to, bytes }) in sent {
                for engine in &mut self.engines {
                    let is_meant = match &to {
                        Destination::All => engine.config().name != from,
                        Destination::Host(host) | Destination::Reply(host) => {
                            *host == engine.config().name
                        }
                        Destination::Neighbour(_) => false,
                    };
                    if is_meant {
                        engine.handle_message(self.clock.now(), &from, &bytes);
                    }
                }
            }
        }
    }

    /// Lets time pass until nothing is left to do: only what engines want to be woken for.
    pub(crate) fn settle(&mut self) {
        for _ in 0..8 {
            self.finish_encodings();
            while self.engines.iter_mut().any(|engine| {
                let now = self.clock.now();
                engine.build_part(now, 16)
            }) {}
            self.tick();
        }
    }

    /// The home's set holds exactly these keys, in catalogue and filter; every other host has that
    /// filter; and what everybody takes is counted.
    pub(crate) fn check(&self, keys: impl Iterator<Item = u64>) {
        let local = self.local();
        let home = local.home();
        let expected: Vec<u64> = keys.collect();
        assert_eq!(home.catalogue().len(), expected.len() as u64, "no change is lost");
        assert!(expected.iter().all(|number| home.contains(&key(*number))), "no key is lost");
        let mut fresh = MemoryCatalogue::new();
        home.catalogue().for_each(&mut |key, component| fresh.insert(key, component));
        let standing = home.rung().map(RungChoice::standing);
        let fresh = Home::restarted(hasher(), *home.plan(), AT_ONCE, fresh, standing);
        assert_eq!(home.filter(), fresh.expect("built").filter(), "the filter is the catalogue's");
        assert_eq!(home.misses(), 0, "everything was published");
        drop(home);
        let published = self.engines[0].published_checksum(&name("set"));
        for engine in &self.engines[1..] {
            let replica = engine.replica_checksum(&name("set"), &name("home"));
            assert_eq!(replica, published, "replicas are what was published");
        }
        self.engines.iter().for_each(Protocol::validate);
    }
}
