//! One host's side of routing: its own filter, its links, the queries that pass through.
//!
//! Call order as for the replica engine: any `handle_*`, `add`, `remove` or `locate`, then
//! `poll_transmit` and `poll_event` until both return `None`, then sleep until `poll_timeout` or
//! the next event, and call `handle_timeout`. `now` is the time since any fixed moment and never
//! goes back. The driver reports which links there are: `handle_link_up`, `handle_link_down`.
//!
//! Distances are those of a distance-vector protocol whose infinity is the plan's depth: a home is
//! advertised over all links but the nearest one, as one hop farther than over that one. So every
//! filter travels `d` hops, each version once per link, and what is withdrawn is gone everywhere
//! after at most `d` rounds.
//!
//! Always true: the same inputs give the same outputs, bit for bit. A home is advertised only while
//! some link admits it. Queries end when their time is over, whatever messages are lost. Queues and
//! lists are bounded, and what does not fit is dropped and counted.
//!
//! Not here: sockets and clocks; which links to have.

mod adverts;
mod config;
mod learning;
mod namesakes;
mod own;
mod queries;
mod replan;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use config::RouterConfig;
use namesakes::Contested;
pub(crate) use own::Hidden;
use queries::Passing;
pub use replan::Survey;

use super::event::{QueryId, RouterCounters, RouterEvent};
use super::heard::Link;
use super::message::{Facts, Hello, Message, Numbered, Version};
use super::table::{HomeId, LinkId, RouteTable, Stored};
use crate::bits::BitVector;
use crate::catalogue::Catalogue;
use crate::codec::{DecodeError, Reader};
use crate::params::ParamError;
use crate::replica::image::Image;
use crate::replica::paged::{MAX_COMPONENTS, Target, decode_changes, encode_changes};
use crate::replica::{Epoch, Home, Incarnation, Name};
use crate::scheme::Scheme;

/// A message to be sent over a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The neighbour.
    pub to: Name,
    /// The message.
    pub bytes: Vec<u8>,
}

/// A home's filter as it was last published.
#[derive(Debug, Clone)]
struct Published {
    version: Version,
    scheme: Scheme,
    checksum: u64,
    /// The whole filter, encoded as a change from nothing.
    coded: Vec<u8>,
    /// The change from an earlier epoch to this one, with that epoch.
    delta: Option<(Epoch, Vec<u8>)>,
    facts: Facts,
}

impl Published {
    const fn checksum(&self) -> (Incarnation, Epoch, u64) {
        (self.version.incarnation, self.version.epoch, self.checksum)
    }

    /// The filter as bits.
    fn image(&self) -> Image {
        decoded(&self.scheme, &self.coded, usize::MAX).expect("what is stored was decoded before")
    }
}

/// Another home that some link admits.
#[derive(Debug)]
struct Known {
    id: HomeId,
    published: Published,
    /// Whether the home itself sent it, over its own link.
    is_own_word: bool,
    /// Whether the home was ever admitted from a link, so that its loss is reported.
    is_reached: bool,
}

/// The filters of known homes, by their ids.
struct Store<'a> {
    homes: &'a BTreeMap<Name, Known>,
    names: &'a BTreeMap<HomeId, Name>,
}

impl Stored for Store<'_> {
    fn load(&self, home: HomeId) -> Option<(Scheme, Vec<BitVector>)> {
        let known = self.homes.get(self.names.get(&home)?)?;
        let image = known.published.image();
        let bits = image.components().iter().map(|component| BitVector::clone(&component.bits));
        Some((known.published.scheme, bits.collect()))
    }
}

/// The most messages or events that may wait to be polled; more are dropped and counted.
const QUEUE: usize = 65_536;

/// One host's side of routing one set.
#[derive(Debug)]
pub struct Router<C> {
    config: RouterConfig,
    plan: Numbered,
    /// The own keys, if this host is a home.
    own: Option<Home<C>>,
    /// Which of these keys are no longer held although they have not been removed.
    hidden: Option<Hidden>,
    /// The epoch of their last published update.
    epoch: Epoch,
    /// What was published of the own set.
    published: Option<Published>,
    /// Neighbours that the driver reported.
    neighbours: BTreeSet<Name>,
    /// The links to those neighbours that are up.
    links: BTreeMap<Name, Link>,
    link_names: BTreeMap<LinkId, Name>,
    homes: BTreeMap<Name, Known>,
    home_names: BTreeMap<HomeId, Name>,
    table: RouteTable,
    /// Homes about which neighbours may need new information.
    news: BTreeSet<Name>,
    contested: BTreeMap<Name, Contested>,
    passing: BTreeMap<QueryId, Passing>,
    timers: BTreeSet<(Duration, QueryId)>,
    next_id: u32,
    next_query: u64,
    next_hello: Duration,
    /// Number of consecutive hellos at which the measured values differed from the plan.
    drifting: u32,
    random: u64,
    transmits: VecDeque<Transmit>,
    events: VecDeque<RouterEvent>,
    counters: RouterCounters,
}

impl<C: Catalogue> Router<C> {
    /// A host that has no links yet and publishes what its catalogue holds.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges, or there is no memory.
    pub fn new(now: Duration, config: RouterConfig, catalogue: C) -> Result<Self, ParamError> {
        let mut router = Self::without_keys(now, config)?;
        router.own(now, catalogue)?;
        Ok(router)
    }

    /// A host that has no links yet and no keys: it forwards the adverts and queries of others.
    ///
    /// # Errors
    /// If the plan's numbers are outside their ranges.
    pub fn without_keys(now: Duration, config: RouterConfig) -> Result<Self, ParamError> {
        let (plan, hasher) = (config.plan, config.hasher);
        plan.shape()?;
        Ok(Self {
            plan: Numbered { number: 0, by: config.name.clone(), plan },
            own: None,
            hidden: None,
            epoch: config.epoch,
            published: None,
            neighbours: BTreeSet::new(),
            links: BTreeMap::new(),
            link_names: BTreeMap::new(),
            homes: BTreeMap::new(),
            home_names: BTreeMap::new(),
            table: RouteTable::new(&plan, hasher),
            news: BTreeSet::new(),
            contested: BTreeMap::new(),
            passing: BTreeMap::new(),
            timers: BTreeSet::new(),
            next_id: 0,
            next_query: 0,
            next_hello: now,
            drifting: 0,
            random: config.seed,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: RouterCounters::default(),
            config,
        })
    }

    // ---- questions

    /// The neighbours whose links are up.
    pub fn neighbours(&self) -> impl Iterator<Item = &Name> {
        self.links.keys()
    }

    /// The homes within range, each with its nearest neighbour and distance.
    pub fn homes(&self) -> impl Iterator<Item = (&Name, &Name, u8)> {
        self.homes.iter().filter_map(|(home, known)| {
            let (link, hops) = self.nearest(known.id)?;
            Some((home, self.link_names.get(&link)?, hops))
        })
    }

    /// The neighbours whose links claim a key, nearest first.
    #[must_use]
    pub fn claiming(&self, key: &[u8]) -> Vec<&Name> {
        let found = self.table.matches(self.config.hasher.hash(key));
        found.iter().filter_map(|found| self.link_names.get(&found.link)).collect()
    }

    /// The homes within range that may hold a key, sorted by name; `None` if entries do not store
    /// homes separately: only a CUBF does.
    #[must_use]
    pub fn who(&self, key: &[u8]) -> Option<Vec<&Name>> {
        let homes = self.table.homes_claiming(self.config.hasher.hash(key))?;
        let mut names: Vec<&Name> =
            homes.iter().filter_map(|home| self.home_names.get(home)).collect();
        names.sort_unstable();
        Some(names)
    }

    /// The incarnation and the last known update of a home within range.
    #[must_use]
    pub fn version_of(&self, home: &Name) -> Option<(Incarnation, Epoch)> {
        let version = self.homes.get(home)?.published.version;
        Some((version.incarnation, version.epoch))
    }

    /// The incarnation, epoch and checksum of the filter that is held of another home.
    #[must_use]
    pub fn held_checksum(&self, home: &Name) -> Option<(Incarnation, Epoch, u64)> {
        self.homes.get(home).map(|known| known.published.checksum())
    }

    /// The incarnation, epoch and checksum of what this host last published.
    #[must_use]
    pub fn published_checksum(&self) -> Option<(Incarnation, Epoch, u64)> {
        self.published.as_ref().map(Published::checksum)
    }

    /// Number of keys that the other homes within range report.
    #[must_use]
    pub fn items_in_range(&self) -> u64 {
        let items = self.homes.values().map(|known| known.published.facts.items);
        items.fold(0, u64::saturating_add)
    }

    /// Number of filters in the entry of a neighbour's link, and the probability that the entry
    /// claims an absent key.
    #[must_use]
    pub fn entry(&self, neighbour: &Name) -> Option<(u64, f64)> {
        let link = self.links.get(neighbour)?.id;
        Some((self.table.filters(link), self.table.false_positive(link)))
    }

    /// The plan in force.
    #[must_use]
    pub const fn plan(&self) -> &super::Plan {
        &self.plan.plan
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &RouterCounters {
        &self.counters
    }

    /// The configuration of this router.
    #[must_use]
    pub const fn config(&self) -> &RouterConfig {
        &self.config
    }

    /// Bytes that table, kept filters and lists take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let kept = self.homes.values().map(|known| {
            let delta = known.published.delta.as_ref().map_or(0, |(_, bytes)| bytes.len());
            (size_of::<(Name, Known)>() + known.published.coded.len() + delta) as u64
        });
        self.table.memory_bytes() + kept.sum::<u64>()
    }

    /// Number of queries in progress here, and of finished ones that are still remembered.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.passing.len()
    }

    // ---- what happened

    /// There is a link to this neighbour.
    pub fn handle_link_up(&mut self, now: Duration, neighbour: &Name) {
        if neighbour == &self.config.name {
            return;
        }
        self.neighbours.insert(neighbour.clone());
        self.connect(now, neighbour);
        self.hello(neighbour);
        self.advertise_changes();
    }

    /// The link to this neighbour is gone.
    pub fn handle_link_down(&mut self, now: Duration, neighbour: &Name) {
        self.neighbours.remove(neighbour);
        self.disconnect(now, neighbour);
        self.advertise_changes();
    }

    /// A message arrived. Malformed messages are only counted and reported.
    pub fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        match Message::decode(bytes) {
            Ok((set, message)) if set == self.config.set => self.handle(now, from, message),
            Ok((set, _)) => self.reject(from, format!("it is about the set {set}")),
            Err(error) => self.reject(from, error.to_string()),
        }
    }

    /// A message that cannot be handled arrived.
    fn reject(&mut self, from: &Name, reason: String) {
        self.counters.messages += 1;
        self.refuse(from, reason);
    }

    /// A message about this set arrived.
    pub(crate) fn handle(&mut self, now: Duration, from: &Name, message: Message) {
        self.counters.messages += 1;
        if !self.neighbours.contains(from) {
            return self.refuse(from, String::from("it comes from no neighbour"));
        }
        self.connect(now, from);
        if let Some(link) = self.links.get_mut(from) {
            link.heard_at = now;
        }
        match message {
            Message::Advert(advert) => self.handle_advert(now, from, advert),
            Message::Reach(reach) => self.handle_reach(now, from, &reach),
            Message::Hello(hello) => self.handle_hello(now, from, &hello),
            Message::Have(homes) => self.handle_have(from, homes),
            Message::Query(query) => self.handle_query(now, from, query),
            Message::Reply(reply) => self.handle_reply(now, from, reply),
        }
        self.advertise_changes();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.publish_if_due(now);
        let silent =
            self.links.iter().filter(|(_, link)| now >= link.heard_at + self.config.silence);
        let silent: Vec<Name> = silent.map(|(name, _)| name.clone()).collect();
        silent.iter().for_each(|neighbour| self.disconnect(now, neighbour));
        if now >= self.next_hello {
            self.next_hello = now + self.config.hello_every;
            self.replan_if_drifting(now);
            self.look_for_namesakes(now);
            let all: Vec<Name> = self.neighbours.iter().cloned().collect();
            all.iter().for_each(|neighbour| self.hello(neighbour));
        }
        self.expire_queries(now);
        self.advertise_changes();
    }

    // ---- what to do

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Whether there is a message to send.
    pub(crate) fn has_transmits(&self) -> bool {
        !self.transmits.is_empty()
    }

    /// Whether there is an event to poll.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<RouterEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Duration {
        let query = self.timers.first().map(|(when, _)| *when);
        let silent = self.links.values().map(|link| link.heard_at + self.config.silence).min();
        let own = self.own.as_ref().and_then(Home::next_timeout);
        [query, silent, own].into_iter().flatten().fold(self.next_hello, Duration::min)
    }

    /// Checks the table, and that the known homes are exactly those that are admitted.
    ///
    /// # Panics
    /// If a promise is broken: a bug in this crate.
    pub fn validate(&self) {
        self.table.validate();
        for (home, known) in &self.homes {
            assert!(!self.table.via(known.id).is_empty(), "{home} is admitted from some link");
            assert_eq!(self.home_names.get(&known.id), Some(home));
            assert_eq!(known.published.image().checksum(), known.published.checksum);
        }
        assert_eq!(self.homes.len(), self.home_names.len());
        assert_eq!(self.links.len(), self.link_names.len());
        for (id, passing) in &self.passing {
            assert!(self.timers.contains(&(passing.timer, id.clone())), "a query has a timer");
        }
        assert_eq!(self.timers.len(), self.passing.len());
    }

    // ---- helpers

    fn send(&mut self, to: &Name, message: &Message) -> usize {
        let bytes = message.encode(&self.config.set);
        let sent = bytes.len();
        if self.transmits.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            self.transmits.push_back(Transmit { to: to.clone(), bytes });
        }
        sent
    }

    fn hello(&mut self, neighbour: &Name) {
        let sum =
            self.links.get(neighbour).map_or(0, |link| super::heard::sum_of(&link.advertised));
        let (incarnation, plan) = (self.config.incarnation, self.plan.clone());
        self.send(neighbour, &Message::Hello(Hello { incarnation, sum, plan }));
    }

    fn refuse(&mut self, from: &Name, reason: String) {
        self.counters.refused += 1;
        self.event(RouterEvent::Refused { from: from.clone(), reason });
    }

    fn event(&mut self, event: RouterEvent) {
        if self.events.len() >= QUEUE {
            self.counters.dropped += 1;
        } else {
            self.events.push_back(event);
        }
    }

    const fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Encodes a whole filter as a change from nothing.
pub(super) fn coded(image: &Image) -> Vec<u8> {
    let nothing = Image::new(*image.scheme(), Vec::new());
    let target = |component: &crate::replica::image::ImageComponent| Target {
        id: component.id,
        bits: Arc::clone(&component.bits),
        added: Vec::new(),
    };
    let targets: Vec<Target> = image.components().iter().map(target).collect();
    let mut out = Vec::new();
    encode_changes(&mut out, &nothing, &targets, &[]);
    out
}

/// Reads what [`coded`] wrote, or any change from nothing.
fn decoded(scheme: &Scheme, bytes: &[u8], max: usize) -> Result<Image, DecodeError> {
    changed(&Image::new(*scheme, Vec::new()), bytes, max)
}

/// The image that a change leads to.
fn changed(base: &Image, bytes: &[u8], max: usize) -> Result<Image, DecodeError> {
    let mut reader = Reader::new(bytes);
    let changes = decode_changes(&mut reader, base, max.min(MAX_COMPONENTS))?;
    reader.end()?;
    let mut image = base.clone();
    image.apply(&changes);
    if image.components().len() > max {
        return Err(DecodeError::Malformed("more components than are accepted"));
    }
    Ok(image)
}
