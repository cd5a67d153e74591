//! A host's share of the protocol: its own sets, and replicas of everybody else's.
//!
//! Call order: any `handle_*` or `add`/`remove`, then `poll_transmit` and `poll_event` until
//! both return `None`, then sleep until `poll_timeout` or the next happening, and
//! `handle_timeout`. Calls may be interleaved as they come. `now` is the time since any
//! fixed moment and never goes back.
//!
//! Always true: same inputs, same outputs, bit for bit; a host speaks for itself alone
//! (messages in another's name are refused and counted); queues are bounded, and what does
//! not fit is dropped and counted, which is loss like any other and repaired like it.
//!
//! Not here: sockets, clocks, liveliness (the driver calls `handle_alive`, `handle_gone`).

mod budget;
mod checks;
mod config;
mod peers;
mod planning;
mod receiving;
mod sending;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use budget::Refusals;
pub use budget::{Reason, Refusal, replica_bytes_of};
pub use config::Config;
use peers::Peer;
pub use peers::PeerInfo;

use super::event::{Counters, Event};
use super::home::{Home, SetPlan};
use super::message::Message;
use super::policy::Policy;
use super::receiver::{Received, Receiver, Sampled};
use super::replicas::Replicas;
use super::{Epoch, Incarnation, Name};
use crate::bank::{BatchCandidates, HeapRows, Rows};
use crate::catalogue::Catalogue;
use crate::design::ladder::{ExpectedHosts, Rung, RungChoice, Standing};
use crate::key_hash::KeyHash;
use crate::params::ParamError;
use crate::scheme::Scheme;

/// A message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// To whom.
    pub to: Destination,
    /// The message.
    pub bytes: Vec<u8>,
}

/// To whom a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Every other host.
    All,
    /// One host, which is asked for something.
    Host(Name),
    /// One host, in answer to what it asked for.
    Reply(Name),
}

/// What is known of another host's set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicaInfo {
    /// The home's life.
    pub incarnation: Incarnation,
    /// The update that answers, unless the home's newest life has sent none yet.
    pub epoch: Option<Epoch>,
    /// Since the last update or image arrived.
    pub age: Duration,
    /// Whether nothing newer is known of.
    pub is_current: bool,
    /// Keys that the home says it holds.
    pub items: u64,
    /// Members that the home named, and how many the replica denied: the measured miss rate.
    pub sampled: Sampled,
    /// What arrived of it.
    pub received: Received,
}

/// One set: what this host owns of it, and replicas of what others own.
#[derive(Debug)]
struct Set<C, R: Rows> {
    own: Option<Own<C>>,
    /// Of an own set that was deleted: its last epoch and scheme, so that others hear of it
    /// and a new set of that name goes on counting.
    deleted: Option<(Epoch, Scheme)>,
    replicas: Arc<Replicas<R>>,
    receivers: BTreeMap<Name, Receiver>,
}

impl<C, R: Rows> Set<C, R> {
    /// Whether anybody has the set, as far as is known here.
    fn exists(&self) -> bool {
        self.own.is_some() || self.receivers.values().any(|receiver| !receiver.is_withdrawn())
    }
}

#[derive(Debug)]
struct Own<C> {
    home: Home<C>,
    epoch: Epoch,
    /// Hosts that the set is planned for, unless its plan says.
    hosts: ExpectedHosts,
    /// Bytes that it took when last looked at.
    bytes: u64,
    /// The rung and whether the target is broken, as they were told of.
    rung: Option<Rung>,
    is_broken: bool,
}

/// Messages and events that wait to be polled; more are dropped and counted.
const QUEUE: usize = 65_536;
/// Digests of members in an announcement.
const SAMPLES: usize = 8;

/// A host's share of the replica protocol.
#[derive(Debug)]
pub struct Engine<C, R: Rows = HeapRows> {
    config: Config,
    sets: BTreeMap<Name, Set<C, R>>,
    peers: BTreeMap<Name, Peer>,
    /// Hosts that said that they leave: which life of theirs, and when.
    left: BTreeMap<Name, (Incarnation, Duration)>,
    next_announce: Duration,
    random: u64,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    counters: Counters,
    refusals: Refusals,
    /// Bytes that all replicas are charged.
    charged: u64,
    /// Bytes that own sets take.
    own_bytes: u64,
}

impl<C: Catalogue> Engine<C> {
    /// A host that owns nothing yet and has heard of nobody.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self::with_rows(config)
    }
}

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// As [`Engine::new`], with rows of the caller's kind.
    #[must_use]
    pub const fn with_rows(config: Config) -> Self {
        let random = config.seed;
        Self {
            config,
            sets: BTreeMap::new(),
            peers: BTreeMap::new(),
            left: BTreeMap::new(),
            next_announce: Duration::ZERO,
            random,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::ZERO,
            refusals: Refusals::new(),
            charged: 0,
            own_bytes: 0,
        }
    }

    // ---- own sets

    /// Owns a set from now on, with the keys that its catalogue holds.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    pub fn create(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
    ) -> Result<(), ParamError> {
        self.restore(now, set, plan, catalogue, None)
    }

    /// As [`Self::create`], for a set that stood on a rung before: if its keys still fit, it
    /// has the same bits as then, and hosts that have them need nothing.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    pub fn restore(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
        before: Option<Standing>,
    ) -> Result<(), ParamError> {
        let (hasher, intervals) = (self.config.hasher, self.config.intervals);
        let home = Home::restarted(hasher, plan, intervals, catalogue, before)?;
        let here = self.set_mut(set);
        let epoch = here.deleted.take().map_or(Epoch(0), |(epoch, _)| epoch);
        let rung = home.rung().map(RungChoice::rung);
        let remembered = |before: Standing| ExpectedHosts::remembered(now, before.hosts);
        let hosts = before.map_or_else(ExpectedHosts::new, remembered);
        here.own = Some(Own { home, epoch, hosts, bytes: 0, rung, is_broken: false });
        self.publish_if_due(now, set);
        Ok(())
    }

    /// Another plan for an own set: its filter is built again, and the old one answers until
    /// the new one is published. Returns whether there is such a set.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory; nothing changes
    /// then.
    pub fn replan(&mut self, now: Duration, set: &Name, plan: SetPlan) -> Result<bool, ParamError> {
        self.limit_own(set);
        let Some(own) = self.own_mut(set) else { return Ok(false) };
        own.home.replan(now, plan)?;
        self.publish_if_due(now, set);
        Ok(true)
    }

    /// Owns a set no longer, and says so; returns its catalogue.
    pub fn delete(&mut self, set: &Name) -> Option<C> {
        let here = self.sets.get_mut(set)?;
        let own = here.own.take()?;
        let scheme = *own.home.kept().scheme();
        here.deleted = Some((own.epoch, scheme));
        self.release_own(&own);
        if own.epoch > Epoch(0) {
            self.send_withdrawal(set);
        }
        Some(own.home.into_catalogue())
    }

    /// Adds a key to an own set; `None` if this host owns no such set, else whether it is
    /// new.
    pub fn add(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<bool> {
        self.limit_own(set);
        let new = self.own_mut(set)?.home.add(now, key);
        self.publish_if_due(now, set);
        Some(new)
    }

    /// Adds many keys at once, so that they make one update at most; `told` hears of each
    /// whether it is new. Returns whether this host owns such a set.
    pub fn add_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[K],
        told: impl FnMut(bool),
    ) -> bool {
        self.limit_own(set);
        let Some(own) = self.own_mut(set) else { return false };
        own.home.add_many(now, keys, told);
        self.publish_if_due(now, set);
        true
    }

    /// Removes many keys at once; `told` hears of each whether it was held. Returns whether
    /// this host owns such a set.
    pub fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[K],
        mut told: impl FnMut(bool),
    ) -> bool {
        let Some(own) = self.own_mut(set) else { return false };
        keys.iter().for_each(|key| told(own.home.remove(now, key.as_ref())));
        self.publish_if_due(now, set);
        true
    }

    /// Removes a key from an own set; `None` if this host owns no such set, else whether it
    /// was held.
    pub fn remove(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<bool> {
        let held = self.own_mut(set)?.home.remove(now, key);
        self.publish_if_due(now, set);
        Some(held)
    }

    /// Publishes everything of an own set now, clears included; whether there is such a set.
    pub fn publish(&mut self, now: Duration, set: &Name) -> bool {
        let Some(own) = self.own_mut(set) else { return false };
        let publication = own.home.publish(now);
        self.send_update(set, publication);
        true
    }

    /// Another policy for an own set; whether there is such a set.
    pub fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool {
        let Some(own) = self.own_mut(set) else { return false };
        own.home.set_policy(policy);
        self.publish_if_due(now, set);
        true
    }

    /// An own set.
    #[must_use]
    pub fn home(&self, set: &Name) -> Option<&Home<C>> {
        Some(&self.sets.get(set)?.own.as_ref()?.home)
    }

    // ---- questions

    /// Which other hosts may hold a key, in the order of their names; `None` if nobody is
    /// known to have the set.
    #[must_use]
    pub fn who(&self, set: &Name, hash: KeyHash) -> Option<Vec<Name>> {
        let mut hosts = Vec::new();
        let show = |named: &[&Name]| hosts.extend(named.iter().map(|host| (*host).clone()));
        self.shared_replicas(set)?.who(&[hash], &mut BatchCandidates::new(), show);
        Some(hosts)
    }

    /// The replicas of a set, to be asked from other threads while this one goes on; `None`
    /// if nobody is known to have the set.
    #[must_use]
    pub fn shared_replicas(&self, set: &Name) -> Option<&Arc<Replicas<R>>> {
        self.sets.get(set).filter(|set| set.exists()).map(|set| &set.replicas)
    }

    /// Hashes a key as everybody in the cluster does.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.config.hasher.hash(key)
    }

    /// The sets that are known of, own and others'.
    pub fn sets(&self) -> impl Iterator<Item = &Name> {
        self.sets.iter().filter(|(_, set)| set.exists()).map(|(name, _)| name)
    }

    /// The hosts whose replicas answer for a set, or are on their way.
    pub fn replicas(&self, set: &Name) -> impl Iterator<Item = &Name> {
        let receivers = self.sets.get(set).into_iter().flat_map(|set| &set.receivers);
        receivers.filter(|(_, receiver)| !receiver.is_withdrawn()).map(|(host, _)| host)
    }

    /// How fresh another host's replica is.
    #[must_use]
    pub fn replica(&self, now: Duration, set: &Name, host: &Name) -> Option<ReplicaInfo> {
        let receiver = self.sets.get(set)?.receivers.get(host)?;
        Some(ReplicaInfo {
            incarnation: receiver.incarnation(),
            epoch: receiver.epoch(),
            age: now.saturating_sub(receiver.updated()),
            is_current: receiver.is_current(),
            items: receiver.items,
            sampled: receiver.sampled,
            received: receiver.received,
        })
    }

    /// What happened so far, in numbers.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The host's own name and life.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    // ---- what happened

    /// A message arrived. Whatever it holds, nothing worse than a count comes of it.
    pub fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        self.counters.messages += 1;
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            Err(error) => return self.refuse(from, error.to_string()),
        };
        let life = match message.speaker() {
            Some((home, _)) if home != from => {
                return self.refuse(from, format!("it speaks for {home}"));
            }
            speaker => speaker.map(|(_, life)| life),
        };
        if from == &self.config.name {
            return self.event(Event::NameTaken);
        }
        if self.has_left(from, life) || !self.admits_peer(from) {
            // Said before it left, and overtaken; or one host too many.
            return;
        }
        self.heard(now, from);
        match message {
            Message::Update(update) => self.handle_update(now, &update),
            Message::Announce(announce) => self.handle_announce(now, &announce),
            Message::Page(page) => self.handle_page(now, &page),
            Message::Request(request) => self.handle_request(from, &request),
            Message::Leave(leave) => self.handle_leave(now, from, leave.incarnation),
        }
        self.ask_for_pages(now, from);
    }

    /// The driver saw a host, in this life of it.
    pub fn handle_alive(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        if host == &self.config.name {
            if incarnation != self.config.incarnation {
                self.event(Event::NameTaken);
            }
            return;
        }
        if self.has_left(host, Some(incarnation)) || !self.admits_peer(host) {
            return;
        }
        self.heard(now, host);
        if let Some(peer) = self.peers.get_mut(host) {
            peer.incarnation = peer.incarnation.max(incarnation);
        }
    }

    /// The driver no longer sees a host: after the grace time its replicas answer no more.
    pub fn handle_gone(&mut self, now: Duration, host: &Name) {
        let peer = self.peers.get_mut(host).filter(|peer| peer.gone_since.is_none());
        if let Some(peer) = peer {
            peer.gone_since = Some(now);
            self.event(Event::Suspected(host.clone()));
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.expire(now);
        self.count_homes(now);
        let sets: Vec<Name> = self.sets.keys().cloned().collect();
        sets.iter().for_each(|set| self.publish_if_due(now, set));
        if now >= self.next_announce {
            self.announce();
            self.next_announce = now + self.config.announce_every;
        }
        let peers: Vec<Name> = self.peers.keys().cloned().collect();
        peers.iter().for_each(|peer| self.ask_for_pages(now, peer));
    }

    // ---- what to do

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Whether there is something to send or tell, or an own set's next timeout comes before
    /// `then`: whether a driver that sleeps until then should be woken.
    #[must_use]
    pub fn is_urgent(&self, set: &Name, then: Duration) -> bool {
        let own = self.sets.get(set).and_then(|set| set.own.as_ref());
        let timeout = own.and_then(|own| own.home.next_timeout());
        !self.transmits.is_empty()
            || !self.events.is_empty()
            || timeout.is_some_and(|timeout| timeout < then)
    }

    /// The next thing that somebody may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Duration {
        let own = self.sets.values().filter_map(|set| set.own.as_ref()?.home.next_timeout());
        let receivers = self.sets.values().flat_map(|set| set.receivers.values());
        let pages = receivers.filter_map(Receiver::next_timeout);
        let peers = self.peers.values().map(|peer| self.expiry(peer));
        own.chain(pages).chain(peers).fold(self.next_announce, Duration::min)
    }

    fn own_mut(&mut self, set: &Name) -> Option<&mut Own<C>> {
        self.sets.get_mut(set)?.own.as_mut()
    }

    fn set_mut(&mut self, name: &Name) -> &mut Set<C, R> {
        let hasher = self.config.hasher;
        self.sets.entry(name.clone()).or_insert_with(|| Set {
            own: None,
            deleted: None,
            replicas: Arc::new(Replicas::new(hasher)),
            receivers: BTreeMap::new(),
        })
    }
}
