//! Steady churn: hosts that start with random keys, gain some and lose some every second.

use super::history::Event;
use super::ids::Id;
use crate::random::Random;

/// How large, how many, how fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthetic {
    /// Hosts.
    pub hosts: usize,
    /// Keys of each host at the start, all published.
    pub items: u64,
    /// Keys that come to each host in a second; a part of a key adds up.
    pub adds: f64,
    /// Keys that go from each host in a second, any member equally likely.
    pub removes: f64,
    /// Times in a second that each host asks for a key of another host.
    pub lookups: f64,
    /// Seconds.
    pub steps: u64,
    /// Where all choices come from.
    pub seed: u64,
}

impl Synthetic {
    pub(super) fn replay(&self, mut happen: impl FnMut(Event)) {
        let mut random = Random::of_trial(self.seed, "policies", 0);
        let mut next: Id = 0;
        let mut members: Vec<Vec<Id>> = vec![Vec::new(); self.hosts];
        for (host, members) in members.iter_mut().enumerate() {
            for _ in 0..self.items {
                members.push(next);
                happen(Event::Held { host, key: next });
                next += 1;
            }
        }
        happen(Event::Started);
        let mut due = Due::default();
        for _ in 0..self.steps {
            due.grow(self);
            for host in 0..self.hosts {
                let mine = &mut members[host];
                // Evenly mixed, removals first: equal churn never passes the size at the start.
                let (mut adds, mut removes) = (due.adds as u64, due.removes as u64);
                while adds + removes > 0 {
                    let remove =
                        removes > 0 && removes as f64 * due.adds >= adds as f64 * due.removes;
                    if !remove {
                        adds -= 1;
                        mine.push(next);
                        happen(Event::Added { host, key: next });
                        next += 1;
                        continue;
                    }
                    removes -= 1;
                    if !mine.is_empty() {
                        let key = mine.swap_remove(random.below(mine.len()));
                        happen(Event::Removed { host, key });
                    }
                }
            }
            for host in 0..self.hosts {
                for _ in 0..due.lookups as u64 {
                    if let Some(key) = somebody_elses(&members, host, &mut random) {
                        happen(Event::Asked { host, key });
                    }
                }
            }
            due.spend();
            happen(Event::SecondPassed);
        }
    }
}

/// What is to happen at each host, parts of keys included.
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

/// A random key of a random other host, if it has any.
fn somebody_elses(members: &[Vec<Id>], host: usize, random: &mut Random) -> Option<Id> {
    let others = members.len() - 1;
    if others == 0 {
        return None;
    }
    let theirs = &members[(host + 1 + random.below(others)) % members.len()];
    (!theirs.is_empty()).then(|| theirs[random.below(theirs.len())])
}
