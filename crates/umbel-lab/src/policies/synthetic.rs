//! Steady churn: hosts that start with random keys, gain some and lose some every second.

use super::event::Event;
use super::ids::Id;
use crate::random::Random;

/// Parameters of steady churn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthetic {
    /// Hosts.
    pub hosts: usize,
    /// Keys of each host at the start, all published.
    pub items: u64,
    /// Keys added to each host per second; fractions accumulate.
    pub adds: f64,
    /// Keys removed from each host per second, any member equally likely.
    pub removes: f64,
    /// Lookups of each host per second, for keys of other hosts.
    pub lookups: f64,
    /// Seconds.
    pub steps: u64,
    /// Seed of all choices.
    pub seed: u64,
}

impl Synthetic {
    pub(super) fn replay(&self, mut happen: impl FnMut(Event)) {
        let mut world = World {
            random: Random::of_trial(self.seed, "policies", 0),
            next: 0,
            members: vec![Vec::new(); self.hosts],
        };
        for host in 0..self.hosts {
            (0..self.items).for_each(|_| happen(Event::Held { host, key: world.gain(host) }));
        }
        happen(Event::Started);
        let mut due = Due::default();
        for _ in 0..self.steps {
            due.grow(self);
            for host in 0..self.hosts {
                world.churn(host, &due, &mut happen);
            }
            for host in 0..self.hosts {
                world.ask(host, &due, &mut happen);
            }
            due.spend();
            happen(Event::SecondPassed);
        }
    }
}

/// The keys of all hosts.
struct World {
    random: Random,
    /// The next key: no two hosts hold the same.
    next: Id,
    members: Vec<Vec<Id>>,
}

impl World {
    fn gain(&mut self, host: usize) -> Id {
        self.members[host].push(self.next);
        self.next += 1;
        self.next - 1
    }

    fn lose(&mut self, host: usize) -> Option<Id> {
        let members = &mut self.members[host];
        (!members.is_empty()).then(|| members.swap_remove(self.random.below(members.len())))
    }

    /// One second of one host: adds and removals evenly mixed, removals first, so that equal
    /// churn never passes the size at the start.
    fn churn(&mut self, host: usize, due: &Due, happen: &mut impl FnMut(Event)) {
        let (mut adds, mut removes) = (due.adds as u64, due.removes as u64);
        while adds + removes > 0 {
            let behind = removes as f64 * due.adds >= adds as f64 * due.removes;
            if removes > 0 && behind {
                removes -= 1;
                if let Some(key) = self.lose(host) {
                    happen(Event::Removed { host, key });
                }
            } else {
                adds -= 1;
                happen(Event::Added { host, key: self.gain(host) });
            }
        }
    }

    fn ask(&mut self, host: usize, due: &Due, happen: &mut impl FnMut(Event)) {
        for _ in 0..due.lookups as u64 {
            if let Some(key) = self.somebody_elses(host) {
                happen(Event::Asked { host, key });
            }
        }
    }

    /// A random key of a random other host, if it has any.
    fn somebody_elses(&mut self, host: usize) -> Option<Id> {
        let others = self.members.len() - 1;
        if others == 0 {
            return None;
        }
        let other = (host + 1 + self.random.below(others)) % self.members.len();
        let theirs = &self.members[other];
        (!theirs.is_empty()).then(|| theirs[self.random.below(theirs.len())])
    }
}

/// What is to happen at each host in this second, including fractions of keys.
#[derive(Default)]
struct Due {
    adds: f64,
    removes: f64,
    lookups: f64,
}

impl Due {
    fn grow(&mut self, churn: &Synthetic) {
        self.adds += churn.adds;
        self.removes += churn.removes;
        self.lookups += churn.lookups;
    }

    fn spend(&mut self) {
        self.adds = self.adds.fract();
        self.removes = self.removes.fract();
        self.lookups = self.lookups.fract();
    }
}
