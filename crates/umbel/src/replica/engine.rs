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

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::event::{Counters, Event};
use super::fetch::PageId;
use super::home::{Home, SetPlan};
use super::message::{Announce, AnnouncedSet, Message, Page, Request, Update};
use super::paged::{self, PAGE_BITS};
use super::policy::Policy;
use super::publisher::{Intervals, Publication};
use super::receiver::{Receiver, Refused, Sampled};
use super::{Epoch, Incarnation, Name};
use crate::bank::{Bank, BatchCandidates, ColumnId};
use crate::catalogue::Catalogue;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::params::ParamError;
use crate::scheme::Scheme;

/// What a host is told once, when it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The host's own name.
    pub name: Name,
    /// This life of it: see [`Incarnation::next`].
    pub incarnation: Incarnation,
    /// How everybody in the cluster hashes keys.
    pub hasher: KeyHasher,
    /// Update intervals where a policy is silent.
    pub intervals: Intervals,
    /// From one announcement to the next.
    pub announce_every: Duration,
    /// How long a host that disappeared keeps answering through its replicas.
    pub grace: Duration,
    /// How long a host may say nothing at all before it counts as gone.
    pub silence: Duration,
    /// How long to wait for a page the first time; doubled with every try, up to 64 times.
    pub page_patience: Duration,
    /// Most bits that are accepted of one home's set, all components together.
    pub max_bits: u64,
    /// Memory for the rows of one set's bank.
    pub bank_bytes: u64,
    /// Seed of what looks random: which members are sampled, jitter of retries.
    pub seed: u64,
}

impl Config {
    /// The defaults for a host of this name and life.
    #[must_use]
    pub const fn new(name: Name, incarnation: Incarnation, hasher: KeyHasher) -> Self {
        Self {
            name,
            incarnation,
            hasher,
            intervals: Intervals {
                shortest: Duration::from_secs(1),
                longest: Duration::from_secs(600),
            },
            announce_every: Duration::from_secs(3),
            grace: Duration::from_secs(4),
            silence: Duration::from_secs(15),
            page_patience: Duration::from_millis(1000),
            max_bits: 1 << 33,
            bank_bytes: 1 << 34,
            seed: 0,
        }
    }
}

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
    /// One host.
    Host(Name),
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
}

/// One set: what this host owns of it, and replicas of what others own.
#[derive(Debug)]
struct Set<C> {
    own: Option<Own<C>>,
    bank: Bank,
    receivers: BTreeMap<Name, Receiver>,
    /// Whose column it is.
    owners: BTreeMap<ColumnId, Name>,
}

#[derive(Debug)]
struct Own<C> {
    home: Home<C>,
    epoch: Epoch,
    /// Rebuilds that were told of.
    rebuilds: u64,
}

/// Another host.
#[derive(Debug)]
struct Peer {
    incarnation: Incarnation,
    heard: Duration,
    /// When it disappeared.
    gone_since: Option<Duration>,
}

/// Messages and events that wait to be polled; more are dropped and counted.
const QUEUE: usize = 65_536;
/// Digests of members in an announcement.
const SAMPLES: usize = 8;

/// A host's share of the replica protocol.
#[derive(Debug)]
pub struct Engine<C> {
    config: Config,
    sets: BTreeMap<Name, Set<C>>,
    peers: BTreeMap<Name, Peer>,
    next_announce: Duration,
    random: u64,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl<C: Catalogue> Engine<C> {
    /// A host that owns nothing yet and has heard of nobody.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        let random = config.seed;
        Self {
            config,
            sets: BTreeMap::new(),
            peers: BTreeMap::new(),
            next_announce: Duration::ZERO,
            random,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::ZERO,
        }
    }

    // ---- own sets

    /// Owns a set from now on, with the keys that its catalogue holds.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory.
    pub fn create(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
    ) -> Result<(), ParamError> {
        let home = Home::new(self.config.hasher, plan, self.config.intervals, catalogue)?;
        self.set_mut(set).own = Some(Own { home, epoch: Epoch(0), rebuilds: 0 });
        self.publish_if_due(now, set);
        Ok(())
    }

    /// Adds a key to an own set; `None` if this host owns no such set, else whether it is
    /// new.
    pub fn add(&mut self, now: Duration, set: &Name, key: &[u8]) -> Option<bool> {
        let new = self.own_mut(set)?.home.add(now, key);
        self.publish_if_due(now, set);
        Some(new)
    }

    /// Adds many keys at once, so that they make one update at most; returns how many are
    /// new.
    pub fn add_many<K: AsRef<[u8]>>(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[K],
    ) -> Option<u64> {
        let own = self.own_mut(set)?;
        let new = keys.iter().filter(|key| own.home.add(now, key.as_ref())).count();
        self.publish_if_due(now, set);
        Some(new as u64)
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

    /// Which other hosts may hold a key, in the order of their names; `None` if nobody has
    /// ever heard of the set.
    #[must_use]
    pub fn who(&self, set: &Name, hash: KeyHash) -> Option<Vec<&Name>> {
        let set = self.sets.get(set)?;
        let mut found = BatchCandidates::new();
        set.bank.who_batch(&[hash], &mut found);
        let mut hosts: Vec<&Name> = found.of(0).iter().filter_map(|c| set.owners.get(c)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        Some(hosts)
    }

    /// Hashes a key as everybody in the cluster does.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.config.hasher.hash(key)
    }

    /// The sets that are known of, own and others'.
    pub fn sets(&self) -> impl Iterator<Item = &Name> {
        self.sets.keys()
    }

    /// The hosts whose replicas answer for a set, or are on their way.
    pub fn replicas(&self, set: &Name) -> impl Iterator<Item = &Name> {
        self.sets.get(set).into_iter().flat_map(|set| set.receivers.keys())
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
        let speaks_for = match &message {
            Message::Update(update) => &update.home,
            Message::Announce(announce) => &announce.home,
            Message::Page(page) => &page.home,
            Message::Request(_) => from,
        };
        if speaks_for != from {
            return self.refuse(from, format!("it speaks for {speaks_for}"));
        }
        if from == &self.config.name {
            return self.event(Event::NameTaken);
        }
        self.heard(now, from);
        match message {
            Message::Update(update) => self.handle_update(now, &update),
            Message::Announce(announce) => self.handle_announce(now, &announce),
            Message::Page(page) => self.handle_page(now, &page),
            Message::Request(request) => self.handle_request(from, &request),
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

    // ---- helpers: sending

    fn publish_if_due(&mut self, now: Duration, set: &Name) {
        let Some(own) = self.own_mut(set) else { return };
        let rebuilds = own.home.rebuilds() - own.rebuilds;
        own.rebuilds += rebuilds;
        if let Some(publication) = own.home.poll(now) {
            self.send_update(set, publication);
        }
        if rebuilds > 0 {
            self.counters.rebuilds += rebuilds;
            self.event(Event::Reshaped(set.clone()));
        }
    }

    fn send_update(&mut self, set: &Name, publication: Publication) {
        let (home, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let Some(own) = self.own_mut(set) else { return };
        let base = (!publication.from_nothing).then_some(own.epoch);
        own.epoch = own.epoch.next();
        let update = Update {
            home,
            set: set.clone(),
            incarnation,
            epoch: own.epoch,
            base,
            scheme: *own.home.kept().scheme(),
            checksum: own.home.kept().checksum(),
            changes: publication.changes,
        };
        let bytes = Message::Update(update).encode();
        self.counters.updates_sent += 1;
        self.counters.update_bytes_sent += bytes.len() as u64;
        self.transmit(Destination::All, bytes);
    }

    fn announce(&mut self) {
        let mut random = self.random;
        let own = self.sets.iter().filter_map(|(name, set)| Some((name, set.own.as_ref()?)));
        let sets = own.filter(|(_, own)| own.epoch > Epoch(0)).map(|(name, own)| AnnouncedSet {
            set: name.clone(),
            scheme: *own.home.kept().scheme(),
            epoch: own.epoch,
            checksum: own.home.kept().checksum(),
            items: own.home.catalogue().len(),
            samples: own.home.sample(SAMPLES, |below| next_random(&mut random) % below),
        });
        let sets = sets.collect();
        self.random = random;
        let (home, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let bytes = Message::Announce(Announce { home, incarnation, sets }).encode();
        self.transmit(Destination::All, bytes);
    }

    /// Asks a host for the pages of its sets that are on their way.
    fn ask_for_pages(&mut self, now: Duration, host: &Name) {
        let first = self.config.page_patience;
        let jitter = 1.0 + (next_random(&mut self.random) >> 11) as f64 / (1u64 << 53) as f64 / 4.0;
        let patience = |tries: u32| (first * (1 << tries.min(6))).mul_f64(jitter);
        let mut requests: Vec<(Name, Incarnation, Option<PageId>)> = Vec::new();
        for (name, set) in &mut self.sets {
            if let Some(receiver) = set.receivers.get_mut(host) {
                let incarnation = receiver.incarnation();
                let pages = receiver.requests(now, patience);
                requests.extend(pages.into_iter().map(|page| (name.clone(), incarnation, page)));
            }
        }
        for (set, incarnation, page) in requests {
            let (component, page) = (page.map(|(id, _)| id), page.map_or(0, |(_, page)| page));
            let request = Request { home: host.clone(), set, incarnation, component, page };
            let bytes = Message::Request(request).encode();
            self.counters.requests_sent += 1;
            self.transmit(Destination::Host(host.clone()), bytes);
        }
    }

    fn transmit(&mut self, to: Destination, bytes: Vec<u8>) {
        if self.transmits.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            self.transmits.push_back(Transmit { to, bytes });
        }
    }

    fn event(&mut self, event: Event) {
        if self.events.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            self.events.push_back(event);
        }
    }

    // ---- helpers: receiving

    fn handle_update(&mut self, now: Duration, update: &Update) {
        if let Err(reason) = self.accepts(&update.scheme) {
            return self.refuse(&update.home, reason);
        }
        let (life, most) = (update.incarnation, self.most_components(&update.scheme));
        self.with_receiver(now, &update.set, &update.home, life, |receiver, bank, counters| {
            receiver.update(now, update, most, bank, counters)
        });
    }

    fn handle_page(&mut self, now: Duration, page: &Page) {
        if let Err(reason) = self.accepts(&page.scheme) {
            return self.refuse(&page.home, reason);
        }
        if page.components.len() > self.most_components(&page.scheme) {
            return self.refuse(&page.home, String::from("its image has too many components"));
        }
        if self.sets.get(&page.set).is_none_or(|set| !set.receivers.contains_key(&page.home)) {
            return;
        }
        self.with_receiver(
            now,
            &page.set,
            &page.home,
            page.incarnation,
            |receiver, bank, counters| receiver.page(now, page, bank, counters),
        );
    }

    fn handle_announce(&mut self, now: Duration, announce: &Announce) {
        let Announce { home, incarnation, sets } = announce;
        for set in sets {
            if let Err(reason) = self.accepts(&set.scheme) {
                self.refuse(home, reason);
                continue;
            }
            self.with_receiver(now, &set.set, home, *incarnation, |receiver, _, counters| {
                receiver.announced(now, *incarnation, set, counters);
                Ok(())
            });
        }
        self.forget_unannounced(announce);
    }

    /// A set that a home's new life does not name is no longer there.
    fn forget_unannounced(&mut self, announce: &Announce) {
        for (name, set) in &mut self.sets {
            let named = announce.sets.iter().any(|announced| announced.set == *name);
            let receiver = set.receivers.get_mut(&announce.home);
            // In the same life, an announcement from before the first update may come late.
            let Some(receiver) = receiver.filter(|receiver| {
                let life = receiver.incarnation();
                let nothing_here = announce.incarnation == life && receiver.epoch().is_none();
                !named && (announce.incarnation > life || nothing_here)
            }) else {
                continue;
            };
            receiver.expire(&mut set.bank);
            set.receivers.remove(&announce.home);
            set.owners.retain(|_, owner| *owner != announce.home);
        }
    }

    fn handle_request(&mut self, from: &Name, request: &Request) {
        if request.home != self.config.name || request.incarnation != self.config.incarnation {
            self.counters.old_lives += 1;
            return;
        }
        let Some(own) = self.sets.get(&request.set).and_then(|set| set.own.as_ref()) else {
            return;
        };
        let image = own.home.kept();
        let component = match request.component {
            Some(id) => image.component(id),
            None => image.components().first(),
        };
        let page = if request.component.is_some() { request.page } else { 0 };
        // A component that is no more, or a page that never was: the answer names those
        // that are, and gives the first.
        let (component, page) = match component {
            Some(component) if page < paged::pages(image.scheme().shape()) => {
                (Some(component), page)
            }
            _ => (image.components().first(), 0),
        };
        let mut bytes = Vec::new();
        if let Some(component) = component {
            let len = paged::page_len(image.scheme().shape(), page);
            paged::encode_page(&mut bytes, &component.bits.slice(page * PAGE_BITS, len));
        }
        let reply = Page {
            home: self.config.name.clone(),
            set: request.set.clone(),
            incarnation: self.config.incarnation,
            epoch: own.epoch,
            scheme: *image.scheme(),
            checksum: image.checksum(),
            components: image.components().iter().map(|component| component.id).collect(),
            of: component.map(|component| (component.id, page)),
            bytes,
        };
        let bytes = Message::Page(reply).encode();
        self.counters.page_bytes_sent += bytes.len() as u64;
        self.transmit(Destination::Host(from.clone()), bytes);
    }

    /// Lets a replica take a message, and keeps the table of columns in step.
    fn with_receiver(
        &mut self,
        now: Duration,
        set: &Name,
        home: &Name,
        incarnation: Incarnation,
        take: impl FnOnce(&mut Receiver, &mut Bank, &mut Counters) -> Result<(), Refused>,
    ) {
        let mut counters = std::mem::take(&mut self.counters);
        let set_name = set;
        let set = self.set_mut(set);
        let receiver =
            set.receivers.entry(home.clone()).or_insert_with(|| Receiver::new(now, incarnation));
        let before: Vec<ColumnId> = receiver.columns().collect();
        let epoch = receiver.epoch();
        let outcome = take(receiver, &mut set.bank, &mut counters);
        let after: Vec<ColumnId> = receiver.columns().collect();
        let arrived = receiver.epoch().filter(|now| Some(*now) != epoch);
        if before != after {
            before.iter().for_each(|column| drop(set.owners.remove(column)));
            set.owners.extend(after.into_iter().map(|column| (column, home.clone())));
        }
        self.counters = counters;
        if let Some(epoch) = arrived {
            let (set, home) = (set_name.clone(), home.clone());
            self.event(Event::Updated { set, home, epoch });
        }
        if let Err(refused) = outcome {
            self.refuse(home, refused.to_string());
        }
    }

    /// Whether a filter of this scheme may be held here.
    fn accepts(&self, scheme: &Scheme) -> Result<(), String> {
        let own = Scheme::new(*scheme.shape(), self.config.hasher);
        own.check(scheme).map_err(|mismatch| mismatch.to_string())?;
        if scheme.shape().bits() > self.config.max_bits {
            let (bits, most) = (scheme.shape().bits(), self.config.max_bits);
            return Err(format!("its filter has {bits} bits, and {most} are accepted"));
        }
        Ok(())
    }

    /// How many components of this scheme one home may have here.
    fn most_components(&self, scheme: &Scheme) -> usize {
        let most = self.config.max_bits / scheme.shape().bits();
        paged::MOST_COMPONENTS.min(most as usize)
    }

    fn refuse(&mut self, from: &Name, reason: String) {
        self.counters.refused += 1;
        self.event(Event::Refused { from: from.clone(), reason });
    }

    // ---- helpers: hosts

    fn heard(&mut self, now: Duration, host: &Name) {
        let known = self.peers.get_mut(host);
        match known {
            Some(peer) => {
                peer.heard = now;
                if peer.gone_since.take().is_some() {
                    self.event(Event::Up(host.clone()));
                }
            }
            None => {
                let peer = Peer { incarnation: Incarnation(0), heard: now, gone_since: None };
                self.peers.insert(host.clone(), peer);
                self.event(Event::Up(host.clone()));
            }
        }
    }

    /// When a host counts as gone for good, unless it is heard of.
    fn expiry(&self, peer: &Peer) -> Duration {
        let silent = peer.heard + self.config.silence;
        peer.gone_since.map_or(silent, |since| silent.min(since + self.config.grace))
    }

    fn expire(&mut self, now: Duration) {
        let expired = self.peers.iter().filter(|(_, peer)| now >= self.expiry(peer));
        let expired: Vec<Name> = expired.map(|(name, _)| name.clone()).collect();
        for host in expired {
            self.peers.remove(&host);
            for set in self.sets.values_mut() {
                if let Some(mut receiver) = set.receivers.remove(&host) {
                    receiver.expire(&mut set.bank);
                }
                set.owners.retain(|_, owner| *owner != host);
            }
            self.event(Event::Down(host));
        }
        self.sets.retain(|_, set| set.own.is_some() || !set.receivers.is_empty());
    }

    fn own_mut(&mut self, set: &Name) -> Option<&mut Own<C>> {
        self.sets.get_mut(set)?.own.as_mut()
    }

    fn set_mut(&mut self, name: &Name) -> &mut Set<C> {
        let (hasher, limit) = (self.config.hasher, self.config.bank_bytes);
        self.sets.entry(name.clone()).or_insert_with(|| Set {
            own: None,
            bank: Bank::with_limit(hasher, limit),
            receivers: BTreeMap::new(),
            owners: BTreeMap::new(),
        })
    }
}

/// What lab and tests look at: images as they are, compared with what homes published.
impl<C: Catalogue> Engine<C> {
    /// The checksum of what another host's replica holds, with the life and epoch of it: the
    /// last good image, even if a newer life is known of.
    #[must_use]
    pub fn replica_checksum(&self, set: &Name, host: &Name) -> Option<(Incarnation, Epoch, u64)> {
        self.sets.get(set)?.receivers.get(host)?.installed_checksum()
    }

    /// The checksum, life and epoch of what this host last published of an own set.
    #[must_use]
    pub fn published_checksum(&self, set: &Name) -> Option<(Incarnation, Epoch, u64)> {
        let own = self.sets.get(set)?.own.as_ref()?;
        Some((self.config.incarnation, own.epoch, own.home.kept().checksum()))
    }

    /// Checks that the bank's columns are exactly the images of the replicas.
    ///
    /// # Panics
    /// If a promise is broken: a bug in this crate.
    pub fn validate(&self) {
        for set in self.sets.values() {
            let mut columns = 0;
            for (host, receiver) in &set.receivers {
                let image = receiver.image();
                let components = image.map_or(&[][..], |image| image.components());
                assert_eq!(receiver.columns().count(), components.len());
                for column in receiver.columns() {
                    assert_eq!(set.owners.get(&column), Some(host), "columns have owners");
                    let bits = set.bank.read(column).expect("the column is there");
                    assert!(components.iter().any(|c| c.bits == bits), "columns hold the image");
                    columns += 1;
                }
            }
            assert_eq!(set.bank.columns(), columns, "no column without an image");
            assert_eq!(set.owners.len(), columns, "no owner without a column");
        }
    }
}

/// `SplitMix64`: what looks random here repeats from the seed.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
