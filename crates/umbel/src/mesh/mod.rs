//! A cluster in which every host knows every other: each host has its own sets, and replicas of the
//! sets of all other hosts.
//!
//! Always true: the same inputs give the same outputs, bit for bit. A host sends messages only in
//! its own name; messages in the name of another host are refused and counted. Queues are bounded.
//! A message that does not fit is dropped and counted, and repaired like any other lost message.
//!
//! Each own set has its own lock ([`LocalSet`]) and can be changed without the engine. `local` says
//! who holds what, and in which order locks are taken.
//!
//! Not here: sockets, clocks, liveliness (the driver calls `handle_alive`, `handle_gone`).

mod agenda;
mod budget;
mod checks;
mod chores;
mod config;
mod encoding;
mod gaps;
mod listing;
mod local;
mod peer_sets;
mod peers;
mod planning;
mod published;
mod receiving;
mod requests;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agenda::Agenda;
use budget::Refusals;
pub use budget::{Reason, Refusal, replica_bytes_of};
use chores::Chores;
pub use config::{MeshConfig, Work};
pub use encoding::{EncodedUpdate, Encoding};
pub use local::LocalSet;
use peers::Peer;
pub use peers::PeerInfo;
use published::PublishedSets;

use crate::bank::{BatchCandidates, HeapRows, Rows};
use crate::catalogue::Catalogue;
use crate::coverage::Gap;
use crate::design::ladder::{ExpectedHosts, Standing};
use crate::key_hash::KeyHash;
use crate::params::ParamError;
use crate::protocol::{Destination, Event, HomeRef, Protocol, Transmit};
use crate::replica::message::{Changes, Leave, Message, Page, Update};
use crate::replica::own_memory::{Charge, OwnMemory};
use crate::replica::receiver::Receiver;
use crate::replica::{
    Counters, Epoch, Home, Incarnation, Name, Policy, Received, Replicas, Sampled, SetPlan,
    memory_of,
};

/// What is known about the replica of another host's set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicaInfo {
    /// The incarnation of the home.
    pub incarnation: Incarnation,
    /// The epoch that lookups use; `None` if nothing has arrived yet from the newest incarnation of
    /// the home.
    pub epoch: Option<Epoch>,
    /// Time since the last update or image arrived.
    pub age: Duration,
    /// Whether no newer epoch is known.
    pub is_current: bool,
    /// Number of updates between this replica and the newest announced one.
    pub lag_epochs: u64,
    /// Time since the first of these was announced.
    pub lag: Duration,
    /// Number of keys that the home reports.
    pub items: u64,
    /// Members that the home sampled, and how many of them the replica denied: the measured miss
    /// rate.
    pub sampled: Sampled,
    /// What was received for this replica.
    pub received: Received,
}

/// One set: what this host owns of it, and replicas of what others own.
#[derive(Debug)]
struct Set<C, R: Rows> {
    own: Option<Arc<LocalSet<C>>>,
    replicas: Arc<Replicas<R>>,
    receivers: BTreeMap<Name, Receiver>,
}

impl<C, R: Rows> Set<C, R> {
    /// Whether any known host has the set.
    fn exists(&self) -> bool {
        self.own.is_some() || !self.receivers.is_empty()
    }
}

/// The most messages or events that may wait to be polled; more are dropped and counted.
const QUEUE: usize = 65_536;
/// Digests of members in an announcement.
const SAMPLES: usize = 4;

/// One host's side of the replica protocol.
#[derive(Debug)]
pub struct Engine<C, R: Rows = HeapRows> {
    config: MeshConfig,
    sets: BTreeMap<Name, Set<C, R>>,
    peers: BTreeMap<Name, Peer>,
    /// The incarnations that the driver reports as alive.
    seen: BTreeMap<Name, Incarnation>,
    /// What this host has published.
    published: PublishedSets,
    /// Sequence number of the publication whose set was sampled last.
    sampled_at: u64,
    /// Own sets that serve data which may expire, and when to check them.
    serving: Agenda,
    /// Hosts that announced that they leave: their incarnation, and when.
    left: BTreeMap<Name, (Incarnation, Duration)>,
    /// Hosts that disappeared without leaving, and when.
    lost: BTreeMap<Name, Duration>,
    next_announce: Duration,
    last_announce: Option<Duration>,
    /// Time of the last input: a gap shows that this host was stopped for a while.
    awake: Duration,
    random: u64,
    transmits: VecDeque<Transmit>,
    /// Replies with pages and changes, which are long: sent only when `transmits` is empty.
    replies: VecDeque<Transmit>,
    events: VecDeque<Event>,
    /// Updates that no thread has begun to encode, and the sets of all unsent updates.
    encodings: VecDeque<Encoding>,
    unsent: BTreeSet<Name>,
    counters: Counters,
    refusals: Refusals,
    /// Bytes charged for all replicas together.
    charged: u64,
    own_memory: Arc<OwnMemory>,
    chores: Arc<Chores>,
}

impl<C: Catalogue> Engine<C> {
    /// A host that owns no sets yet and knows no other host.
    #[must_use]
    pub fn new(config: MeshConfig) -> Self {
        Self::with_rows(config)
    }
}

impl<C: Catalogue, R: Rows> Engine<C, R> {
    /// As [`Engine::new`], with the caller's implementation of rows.
    #[must_use]
    pub fn with_rows(config: MeshConfig) -> Self {
        let random = config.seed;
        let published = PublishedSets::new(config.incarnation);
        let own_memory = Arc::new(OwnMemory::new(config.own_bytes));
        Self {
            config,
            sets: BTreeMap::new(),
            peers: BTreeMap::new(),
            seen: BTreeMap::new(),
            published,
            sampled_at: 0,
            serving: Agenda::new(),
            left: BTreeMap::new(),
            lost: BTreeMap::new(),
            next_announce: Duration::ZERO,
            last_announce: None,
            awake: Duration::ZERO,
            random,
            transmits: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            encodings: VecDeque::new(),
            unsent: BTreeSet::new(),
            counters: Counters::ZERO,
            refusals: Refusals::new(),
            charged: 0,
            own_memory,
            chores: Arc::new(Chores::new()),
        }
    }

    // ---- questions

    /// Which other hosts may hold a key, sorted by name; `None` if no known host has the set.
    #[must_use]
    pub fn who(&self, set: &Name, hash: KeyHash) -> Option<Vec<Name>> {
        let mut hosts = Vec::new();
        let show = |named: &[&Name]| hosts.extend(named.iter().map(|host| (*host).clone()));
        self.shared_replicas(set)?.who(&[hash], &mut BatchCandidates::new(), show);
        Some(hosts)
    }

    /// The replicas of a set, which other threads can use for lookups while this one goes on;
    /// `None` if no known host has the set.
    #[must_use]
    pub fn shared_replicas(&self, set: &Name) -> Option<&Arc<Replicas<R>>> {
        self.sets.get(set).filter(|set| set.exists()).map(|set| &set.replicas)
    }

    /// Hashes a key as all hosts of the cluster do.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.config.hasher.hash(key)
    }

    /// The hosts that have a replica of this set here, complete or being fetched.
    pub fn replicas(&self, set: &Name) -> impl Iterator<Item = &Name> {
        let receivers = self.sets.get(set).into_iter().flat_map(|set| &set.receivers);
        receivers.map(|(host, _)| host)
    }

    /// How fresh another host's replica is.
    #[must_use]
    pub fn replica(&self, now: Duration, set: &Name, host: &Name) -> Option<ReplicaInfo> {
        let receiver = self.sets.get(set)?.receivers.get(host)?;
        let (lag_epochs, since) = receiver.lag().unwrap_or((0, now));
        Some(ReplicaInfo {
            lag_epochs,
            lag: now.saturating_sub(since),
            incarnation: receiver.incarnation(),
            epoch: receiver.epoch(),
            age: now.saturating_sub(receiver.updated()),
            is_current: receiver.is_current(),
            items: receiver.items,
            sampled: receiver.sampled,
            received: receiver.received,
        })
    }

    /// The configuration of this host.
    #[must_use]
    pub const fn config(&self) -> &MeshConfig {
        &self.config
    }

    /// An own set, which other threads can change while this one goes on.
    #[must_use]
    pub fn local_set(&self, set: &Name) -> Option<&Arc<LocalSet<C>>> {
        self.sets.get(set)?.own.as_ref()
    }

    /// The own sets that [`Protocol::handle_timeout`] will poll at this time.
    #[must_use]
    pub fn due_sets(&self, now: Duration) -> Vec<Name> {
        self.chores.polls_due(now)
    }

    /// The own sets for which a build in steps was started since the last call. Some of these
    /// builds may be finished already.
    #[must_use]
    pub fn take_builds(&self) -> BTreeSet<Name> {
        self.chores.take_builds()
    }

    /// Makes this host own a set whose home was built elsewhere, with this host's hasher and
    /// intervals. Otherwise the same as [`Protocol::restore`].
    pub fn adopt(&mut self, now: Duration, set: &Name, home: Home<C>, before: Option<Standing>) {
        self.adopt_charged(now, set, home, before, Charge::new(&self.own_memory));
    }

    /// As [`Self::adopt`], for a home whose memory is reserved already.
    fn adopt_charged(
        &mut self,
        now: Duration,
        set: &Name,
        mut home: Home<C>,
        before: Option<Standing>,
        charge: Charge,
    ) {
        home.charge_to(charge);
        let chores = Arc::clone(&self.chores);
        let work = self.config.work;
        if work == Work::Deferred {
            home.build_in_steps(self.config.max_keys_at_once);
        }
        // Other hosts keep using their old replicas until this incarnation publishes the set: do
        // that at once.
        let has_keys = !home.catalogue().is_empty();
        let epoch = self.published.first_epoch();
        let here = self.set_mut(set);
        let remembered = |before: Standing| ExpectedHosts::remembered(now, before.hosts);
        let hosts = before.map_or_else(ExpectedHosts::new, remembered);
        let local = LocalSet::new(set.clone(), home, epoch, hosts, chores, work);
        if let Some(old) = here.own.replace(Arc::new(local)) {
            old.close();
        }
        if has_keys && let Some(local) = self.local_set(set) {
            local.request_publish(now);
        }
        self.publish_if_due(now, set);
        // Send it before the next list: other hosts drop the sets that a returning home does not
        // list.
        self.encode_at_once(now, set);
    }

    /// Publishes an own set that was changed, unless that is left to `handle_timeout`.
    fn after_change(&mut self, now: Duration, set: &Name) {
        if self.config.work == Work::AtOnce {
            self.publish_if_due(now, set);
        }
    }

    fn set_mut(&mut self, name: &Name) -> &mut Set<C, R> {
        let hasher = self.config.hasher;
        self.sets.entry(name.clone()).or_insert_with(|| Set {
            own: None,
            replicas: Arc::new(Replicas::new(hasher)),
            receivers: BTreeMap::new(),
        })
    }
}

impl<C: Catalogue, R: Rows> Protocol<C> for Engine<C, R> {
    // ---- own sets

    fn restore(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
        before: Option<Standing>,
    ) -> Result<(), ParamError> {
        let mut charge = Charge::new(&self.own_memory);
        let rung = plan.rung_for(0)?;
        // Keys that exist already must be found, even if that exceeds the memory limit.
        if catalogue.is_empty() && !charge.reserve(memory_of(rung)) {
            return Err(ParamError::Memory(rung.bits()));
        }
        let (hasher, intervals) = (self.config.hasher, self.config.intervals);
        let home = Home::restarted(hasher, plan, intervals, catalogue, before)?;
        self.adopt_charged(now, set, home, before, charge);
        Ok(())
    }

    fn replan(&mut self, now: Duration, set: &Name, plan: SetPlan) -> Result<bool, ParamError> {
        let Some(local) = self.local_set(set) else { return Ok(false) };
        let replanned = local.replan(now, plan)?;
        self.after_change(now, set);
        Ok(replanned)
    }

    fn delete(&mut self, set: &Name) -> bool {
        let Some(here) = self.sets.get_mut(set) else { return false };
        let Some(local) = here.own.take() else { return false };
        self.unsent.remove(set);
        let epoch = local.close();
        let (has_published, scheme) = {
            let state = local.lock();
            (state.served.has_published(), *state.home.kept().scheme())
        };
        if has_published {
            self.send_withdrawal(set, epoch.next(), scheme);
        }
        self.drop_if_unused(set);
        true
    }

    fn add_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool {
        let owns = self.local_set(set).is_some_and(|local| local.add_many(now, keys, on_result));
        self.after_change(now, set);
        owns
    }

    fn remove_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool {
        let owns = self.local_set(set).is_some_and(|local| local.remove_many(now, keys, on_result));
        self.after_change(now, set);
        owns
    }

    fn publish(&mut self, now: Duration, set: &Name) -> bool {
        let owns = self.local_set(set).is_some_and(|local| local.request_publish(now));
        self.after_change(now, set);
        owns
    }

    fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool {
        let owns = self.local_set(set).is_some_and(|local| local.set_policy(now, policy));
        self.after_change(now, set);
        owns
    }

    fn home(&self, set: &Name) -> Option<HomeRef<'_, C>> {
        self.local_set(set).map(|local| -> HomeRef<'_, C> { Box::new(local.home()) })
    }

    fn plan(&self, set: &Name) -> Option<SetPlan> {
        self.home(set).map(|home| *home.plan())
    }

    fn epoch(&self, set: &Name) -> Epoch {
        self.local_set(set).map_or(Epoch(0), |local| local.epoch())
    }

    // ---- what is known

    fn sets(&self) -> Vec<&Name> {
        self.sets.iter().filter(|(_, set)| set.exists()).map(|(name, _)| name).collect()
    }

    fn has_set(&self, set: &Name) -> bool {
        self.sets.get(set).is_some_and(Set::exists)
    }

    fn heard_of(&self, now: Duration) -> Vec<(Name, Option<Gap>)> {
        self.gaps(now)
    }

    fn live_of(&self, host: &Name) -> Option<Incarnation> {
        self.seen.get(host).copied()
    }

    fn vanished(&self, now: Duration, host: &Name) -> Option<Incarnation> {
        self.vanished_life(now, host)
    }

    fn incarnation_of(&self, host: &Name) -> Option<Incarnation> {
        self.peers.get(host).map(|peer| peer.incarnation)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    /// The banks' columns are exactly the images of the replicas, and all are charged.
    fn validate(&self) {
        for set in self.sets.values() {
            let expected: Vec<_> = set.receivers.values().filter_map(Receiver::expected).collect();
            set.replicas.validate(&expected);
        }
        self.validate_budgets();
        self.validate_peers();
    }

    // ---- what happened

    fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        self.counters.messages += 1;
        self.wake(now);
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
            // Sent before the peer left and delivered late, or one peer more than accepted: ignore
            // it.
            return;
        }
        let has_vanished = self.vanished(now, from).is_some();
        if life.is_some_and(|life| self.is_rival(now, from, life)) {
            return self.refuse_rival(from, has_vanished);
        }
        // Whether a host that vanished is back, the driver says: this message may be late, or from
        // another host of that name.
        if !has_vanished {
            self.heard(now, from);
        }
        // After an update or pages only that set can need requests; other messages are not about
        // one set.
        let about = match &message {
            Message::Update(Update { set, .. })
            | Message::Page(Page { set, .. })
            | Message::Changes(Changes { set, .. }) => Some(set.clone()),
            _ => None,
        };
        match message {
            Message::Update(update) => self.handle_update(now, update),
            Message::Announce(announce) => self.handle_announce(now, &announce),
            Message::Page(page) => self.handle_page(now, &page),
            Message::Changes(changes) => self.handle_changes(now, &changes),
            Message::ListRequest(request) => self.handle_list_request(from, &request),
            Message::List(list) => self.handle_list(now, &list),
            Message::Request(request) => self.handle_request(now, from, &request),
            Message::Leave(leave) => self.handle_leave(now, &leave),
        }
        self.request_missing(now, from, about.as_ref());
    }

    fn handle_alive(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        if host == &self.config.name {
            if incarnation != self.config.incarnation {
                self.event(Event::NameTaken);
            }
            return;
        }
        if self.has_left(host, Some(incarnation)) || !self.admits_peer(host) {
            return;
        }
        self.wake(now);
        // We know a later incarnation that is gone now: forget what it sent.
        if self.peers.get(host).is_some_and(|peer| peer.incarnation > incarnation) {
            self.forget(host.clone());
        }
        self.heard(now, host);
        self.live_anew(host, incarnation);
        if self.seen.len() < self.config.max_peers || self.seen.contains_key(host) {
            self.seen.insert(host.clone(), incarnation);
        }
        self.make_up_for_refused(host);
    }

    fn handle_replied(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        if self.left.get(host).is_some_and(|(left, _)| *left > incarnation) {
            self.left.remove(host);
        }
        self.handle_alive(now, host, incarnation);
    }

    /// After the grace time its replicas are no longer used.
    fn handle_gone(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        self.wake(now);
        let was_seen = self.seen.get(host) == Some(&incarnation);
        if was_seen {
            self.seen.remove(host);
        }
        let peer = self.peers.get_mut(host).filter(|peer| peer.incarnation <= incarnation);
        if let Some(peer) = peer.filter(|peer| peer.gone_since.is_none()) {
            peer.gone_since = Some(now);
            peer.was_seen = was_seen && peer.incarnation == incarnation;
            self.event(Event::Suspected(host.clone()));
        }
    }

    /// Its replicas are no longer used from now on.
    fn handle_excluded(&mut self, now: Duration, host: &Name) {
        self.lost.remove(host);
        self.seen.remove(host);
        if self.peers.contains_key(host) {
            self.forget(host.clone());
            self.expire(now);
        }
    }

    fn handle_unexpected(&mut self, host: &Name) {
        self.lost.remove(host);
    }

    fn handle_stopped(&mut self, now: Duration) {
        self.wake(now);
        let peers = self.peers.iter_mut();
        let steps: Vec<_> = peers.map(|(name, peer)| (name.clone(), peer.sets.doubt())).collect();
        steps.into_iter().for_each(|(peer, step)| self.follow_list(&peer, Some(step)));
    }

    /// Ignored: each message shows by itself whether it is compatible.
    fn handle_greeting(&mut self, _now: Duration, _host: &Name, _fits: bool) {}

    fn handle_timeout(&mut self, now: Duration) {
        self.wake(now);
        self.expire(now);
        self.expire_served(now);
        let announces = now >= self.next_announce;
        if announces {
            self.count_homes(now);
        }
        self.publish_all_due(now);
        if announces {
            self.announce();
            self.last_announce = Some(now);
            self.next_announce = now + self.config.announce_every;
        }
        self.request_all_missing(now);
    }

    fn build_part(&mut self, now: Duration, keys: usize) -> bool {
        if let Some(encoding) = self.poll_encoding() {
            self.handle_encoded(now, encoding.encode());
            return true;
        }
        while let Some(set) = self.chores.take_build() {
            // Skip a set that was deleted or built in the meantime.
            let Some(local) = self.local_set(&set).filter(|local| local.is_building()) else {
                continue;
            };
            let has_more = local.build_part(now, keys);
            if local.is_building() {
                self.chores.build(&set);
            }
            return has_more;
        }
        false
    }

    fn leave(&mut self, now: Duration, absence: Duration) {
        if !absence.is_zero() {
            self.encode_all(now);
            self.publish_all_missed(now);
            self.encode_all(now);
        }
        let (home, incarnation) = (self.config.name.clone(), self.config.incarnation);
        let leave = Leave { home, incarnation, absence };
        self.transmit(Destination::All, Message::Leave(leave).encode());
    }

    // ---- what to do

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front().or_else(|| self.replies.pop_front())
    }

    fn is_urgent(&self, set: &Name, then: Duration) -> bool {
        let timeout = self.local_set(set).and_then(|local| local.next_timeout());
        !self.transmits.is_empty()
            || !self.replies.is_empty()
            || !self.events.is_empty()
            || timeout.is_some_and(|timeout| timeout < then)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Duration {
        let peers = self.peers.values().map(|peer| self.expiry(peer));
        let first = self.next_announce.min(self.chores.first_poll());
        self.request_timeouts().chain(peers).fold(first, Duration::min)
    }
}
