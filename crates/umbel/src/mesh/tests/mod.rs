//! The protocol against its promises, in small worlds without faults or with chosen ones.
//! Random faults are the lab's.

mod budgets;
mod chains;
mod coverage;
mod encoding;
mod following;
mod hosts;
mod lists;
mod rungs;
mod updates;

use std::time::Duration;

use super::*;
use crate::catalogue::MemoryCatalogue;
use crate::{HashId, KeyHasher, Seed};
use proptest::prelude::*;

use crate::replica::tests::{AT_ONCE, denied, hasher, key, name, plan};
use crate::replica::{Intervals, paged};

/// Engines and the messages between them, delivered at once or not at all.
struct Cluster {
    engines: Vec<Engine<MemoryCatalogue>>,
    now: Duration,
}

impl Cluster {
    fn of(names: &[&str]) -> Self {
        let engine = |text: &&str| {
            let mut config = MeshConfig::new(name(text), Incarnation(1), hasher());
            config.intervals = AT_ONCE;
            Engine::new(config)
        };
        Self { engines: names.iter().map(engine).collect(), now: Duration::from_secs(1) }
    }

    /// Two hosts, of which `b` has heard of the ten keys of `a`.
    fn pair() -> Self {
        let mut cluster = Self::of(&["a", "b"]);
        cluster.create(0, plan("miss:0", 100));
        cluster.add(0, 0..10);
        cluster.deliver(|_, _, _| true);
        cluster
    }

    fn create(&mut self, index: usize, plan: SetPlan) {
        self.engines[index].create(self.now, &name("set"), plan, MemoryCatalogue::new()).unwrap();
    }

    fn add(&mut self, index: usize, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            assert_eq!(self.engines[index].add(self.now, &name("set"), &key(number)), Some(true));
        }
    }

    /// Delivers messages until none are left; `passes` says which get through.
    fn deliver(&mut self, mut passes: impl FnMut(&Name, &Name, &[u8]) -> bool) {
        loop {
            let mut sent = Vec::new();
            for engine in &mut self.engines {
                let from = engine.config().name.clone();
                while let Some(transmit) = engine.poll_transmit() {
                    sent.push((from.clone(), transmit));
                }
            }
            if sent.is_empty() {
                return;
            }
            for (from, Transmit { to, bytes }) in sent {
                for engine in &mut self.engines {
                    let me = engine.config().name.clone();
                    let meant = match &to {
                        Destination::All => me != from,
                        Destination::Host(host) | Destination::Reply(host) => *host == me,
                        Destination::Neighbour(_) => panic!("a mesh has no neighbours"),
                    };
                    if meant && passes(&from, &me, &bytes) {
                        engine.handle_message(self.now, &from, &bytes);
                    }
                }
            }
        }
    }

    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.engines.iter_mut().for_each(|engine| engine.handle_timeout(self.now));
            self.deliver(|_, _, _| true);
        }
    }

    /// Who, as the host at `index` sees it.
    fn who(&self, index: usize, number: u64) -> Vec<String> {
        let engine = &self.engines[index];
        let found = engine.who(&name("set"), engine.hash(&key(number)));
        found.unwrap_or_default().iter().map(|host| host.as_str().to_owned()).collect()
    }

    fn agree(&self, home: usize, host: usize) {
        let home = &self.engines[home];
        let published = home.published_checksum(&name("set"));
        assert_eq!(
            self.engines[host].replica_checksum(&name("set"), &home.config().name),
            published
        );
        self.engines[host].validate();
    }
}
