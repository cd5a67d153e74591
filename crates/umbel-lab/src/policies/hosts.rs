//! All hosts of a history under one policy.
//!
//! Every host is a real home. An update arrives the moment it is sent, so what a host would answer
//! about another is that one's published copy.
//!
//! Always true: `holders` contains for every key the number of hosts that have it; an update that
//! is due is sent before anything else happens.

use std::time::Duration;

use umbel::design::replica::UPDATE_HEADER_BYTES;
use umbel::params::ParamError;
use umbel::replica::{Home, Policy, Rule, Sent, SetPlan};
use umbel::{HashId, KeyHasher, Seed};

use super::event::Event;
use super::ids::{Id, IdMap, Ids, bytes};
use super::{Outcome, Setting};

/// All hosts, and the results so far.
#[derive(Debug)]
pub(super) struct Hosts {
    policy: Policy,
    hasher: KeyHasher,
    pub(super) homes: Vec<Home<Ids>>,
    holders: IdMap<u32>,
    pub(super) now: Duration,
    /// Sums of `mean_miss` and `mean_false_positive` until the end.
    so_far: Outcome,
    seconds: u64,
    /// What was sent before the history started.
    before: Sent,
}

impl Hosts {
    /// Hosts without a key.
    pub(super) fn new(hosts: usize, plan: SetPlan, setting: &Setting) -> Result<Self, ParamError> {
        let hasher = KeyHasher::new(HashId::Xxh3, Seed::from_number(setting.seed));
        let home = |_| Home::new(hasher, plan, setting.intervals, Ids::default());
        Ok(Self {
            policy: plan.policy,
            hasher,
            homes: (0..hosts).map(home).collect::<Result<_, _>>()?,
            holders: IdMap::default(),
            now: Duration::ZERO,
            so_far: Outcome::default(),
            seconds: 0,
            before: Sent::default(),
        })
    }

    /// Applies an event, and sends updates that become due.
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Held { host, key } => self.add(host, key),
            Event::Started => self.start(),
            Event::Added { host, key } => {
                self.add(host, key);
                self.changed(host);
            }
            Event::Removed { host, key } => {
                self.remove(host, key);
                self.changed(host);
            }
            Event::Asked { host, key } => self.ask(host, key),
            Event::Now { milliseconds } => self.advance(Duration::from_millis(milliseconds)),
            Event::SecondPassed => self.pass_second(),
        }
    }

    fn add(&mut self, host: usize, key: Id) {
        if self.homes[host].add(self.now, &bytes(key)) {
            *self.holders.entry(key).or_default() += 1;
        }
    }

    fn remove(&mut self, host: usize, key: Id) {
        if self.homes[host].remove(self.now, &bytes(key)) {
            let holders = self.holders.get_mut(&key).expect("a held key has a holder");
            *holders -= 1;
            if *holders == 0 {
                self.holders.remove(&key);
            }
        }
    }

    fn changed(&mut self, host: usize) {
        self.homes[host].publish_if_due(self.now);
        self.so_far.max_miss = self.so_far.max_miss.max(miss(&self.homes[host]));
    }

    /// Queries the copies of all other hosts. A host does not query for a key that it has itself.
    fn ask(&mut self, host: usize, key: Id) {
        let key_bytes = bytes(key);
        if self.homes[host].contains(&key_bytes) {
            return;
        }
        let hash = self.hasher.hash(&key_bytes);
        let (mut found, mut vain) = (0, 0);
        for (other, home) in self.homes.iter().enumerate() {
            if other != host && home.published_claims(hash) {
                let holds = home.contains(&key_bytes);
                found += u64::from(holds);
                vain += u64::from(!holds);
            }
        }
        let is_held = self.holders.contains_key(&key);
        self.so_far.lookups += 1;
        self.so_far.remote_hits += u64::from(found > 0);
        self.so_far.missed_remote_hits += u64::from(found == 0 && is_held);
        self.so_far.false_probes += vain;
    }

    /// Publishes what the hosts have from the start, whatever the policy. It is not counted.
    fn start(&mut self) {
        for home in &mut self.homes {
            home.set_policy(Policy::new(Rule::Miss { miss: 0.0, ghost: 0.0 }));
            home.publish_if_due(self.now);
            home.set_policy(self.policy);
        }
        self.before = self.sent();
    }

    /// Advances the time, and sends what is due by then.
    fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        for home in &mut self.homes {
            home.publish_if_due(self.now);
        }
    }

    fn pass_second(&mut self) {
        self.seconds += 1;
        self.advance(Duration::from_secs(self.seconds));
        let hosts = self.homes.len() as f64;
        for home in &mut self.homes {
            self.so_far.mean_miss += miss(home) / hosts;
            self.so_far.mean_false_positive += home.published_false_positive() / hosts;
        }
    }

    fn sent(&self) -> Sent {
        self.homes.iter().map(Home::sent).fold(Sent::default(), |sum, sent| Sent {
            updates: sum.updates + sent.updates,
            bytes: sum.bytes + sent.bytes,
            full_broadcast_bytes: sum.full_broadcast_bytes + sent.full_broadcast_bytes,
        })
    }

    /// The results of the history.
    pub(super) fn outcome(self) -> Outcome {
        let (sent, before) = (self.sent(), self.before);
        let updates = sent.updates - before.updates;
        let seconds = self.seconds.max(1) as f64;
        let held = self.so_far.remote_hits + self.so_far.missed_remote_hits;
        Outcome {
            policy: self.policy.to_string(),
            updates,
            bytes: sent.bytes - before.bytes + updates * UPDATE_HEADER_BYTES as u64,
            full_broadcast_bytes: sent.full_broadcast_bytes - before.full_broadcast_bytes,
            mean_miss: self.so_far.mean_miss / seconds,
            lookups_missed: (held > 0).then(|| self.so_far.missed_remote_hits as f64 / held as f64),
            mean_false_positive: self.so_far.mean_false_positive / seconds,
            ..self.so_far
        }
    }
}

/// Share of a home's members that its copy denies, from the home's exact count.
pub(super) fn miss(home: &Home<Ids>) -> f64 {
    home.misses() as f64 / home.filter().items().max(1) as f64
}
