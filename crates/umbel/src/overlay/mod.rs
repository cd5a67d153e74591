//! A cluster in which hosts know only their neighbours: one router per set, over the configured
//! links.
//!
//! ```text
//! add, remove, search   ─► Overlay ─► Router of the set ─► transmits
//! messages, neighbour   ─► Overlay ─► Router of the set ─► transmits, events (`Located`)
//! ```
//!
//! A set is known here while this host or one within range is a home of it. Routers of other sets
//! are created when a message or a query needs one, and dropped after a time without use.
//!
//! Always true: messages from hosts other than configured neighbours change nothing. Every query
//! ends in an [`Event::Located`]. The number of other hosts' sets that are routed here is limited.
//! Messages to send wait only in the queues of the routers.
//!
//! Not here: filters, distances, where queries go ([`crate::route`]); sockets; which links to
//! have.

mod links;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::coverage::Gap;
use crate::design::ladder::Standing;
use crate::params::ParamError;
use crate::protocol::{Destination, Event, HomeRef, Protocol, Transmit};
use crate::replica::{Counters, Epoch, Incarnation, Name, Policy, SetPlan};
use crate::route::message::Message;
use crate::route::{self, QueryId, Router, Search};
use links::Links;
pub use status::KnownHost;

/// The configuration of a host of an overlay, set when it starts.
#[derive(Debug, Clone)]
pub struct OverlayConfig {
    /// The configuration of every router; each router replaces the name of the set.
    pub router: route::RouterConfig,
    /// The neighbours. Messages from other hosts are refused.
    pub neighbours: Vec<Name>,
    /// The most sets of other hosts that are routed here.
    pub max_sets: usize,
}

/// One host's side of an overlay.
#[derive(Debug)]
pub struct Overlay<C> {
    template: route::RouterConfig,
    max_sets: usize,
    links: Links,
    sets: BTreeMap<Name, Routed<C>>,
    /// The last epochs of sets that were dropped: they continue from there.
    epochs: BTreeMap<Name, Epoch>,
    /// Sets whose routers have messages to send, and events.
    sending: BTreeSet<Name>,
    reporting: BTreeSet<Name>,
    /// Events about links, and about messages that no router could handle.
    events: VecDeque<Event>,
    refused: u64,
    /// The counters of routers that were dropped.
    past: route::RouterCounters,
}

/// A set, and its router.
#[derive(Debug)]
struct Routed<C> {
    router: Router<C>,
    /// The plan of an own set, which a mesh would use.
    plan: Option<SetPlan>,
    /// Since when the set is unknown and unused.
    idle_since: Option<Duration>,
}

impl<C: Catalogue> Routed<C> {
    /// Whether any known host has the set.
    fn exists(&self) -> bool {
        self.router.home().is_some() || self.router.homes().next().is_some()
    }

    /// Whether the router can be dropped: nothing would be lost but a greeting of a neighbour.
    fn is_idle(&self) -> bool {
        !self.exists() && self.router.queries() == 0 && !self.router.has_events()
    }
}

/// Why no query was sent out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SearchError {
    /// The set is not known, and there are already as many sets of other hosts as allowed: this
    /// many.
    TooManySets(usize),
    /// There is no router with these parameters.
    Param(ParamError),
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManySets(max) => write!(f, "{max} sets of others are passed on already"),
            Self::Param(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SearchError {}

impl From<ParamError> for SearchError {
    fn from(error: ParamError) -> Self {
        Self::Param(error)
    }
}

/// Messages that could not be handled and links that changed, as events that wait to be polled;
/// more are dropped and counted.
const MAX_EVENTS: usize = 65_536;

impl<C: Catalogue> Overlay<C> {
    /// A host that has no set yet, and no link that is up.
    #[must_use]
    pub fn new(config: OverlayConfig) -> Self {
        Self {
            template: config.router,
            max_sets: config.max_sets,
            links: Links::new(config.neighbours),
            sets: BTreeMap::new(),
            epochs: BTreeMap::new(),
            sending: BTreeSet::new(),
            reporting: BTreeSet::new(),
            events: VecDeque::new(),
            refused: 0,
            past: route::RouterCounters::default(),
        }
    }

    // ---- questions

    /// The homes within range that may hold a key; `None` if entries do not store homes separately.
    #[must_use]
    pub fn who(&self, set: &Name, key: &[u8]) -> Option<Vec<&Name>> {
        self.sets.get(set).map_or(Some(Vec::new()), |routed| routed.router.who(key))
    }

    /// Sends a query. `limits` can change the default limits. It ends in an [`Event::Located`] with
    /// this set and id, whether something is found or not.
    ///
    /// # Errors
    /// If there is no room for another set.
    pub fn search(
        &mut self,
        now: Duration,
        set: &Name,
        key: &[u8],
        limits: impl FnOnce(Search) -> Search,
    ) -> Result<QueryId, SearchError> {
        let router = self.open(now, set)?;
        let route::RouterConfig { walk, patience, .. } = *router.config();
        let search = limits(Search { hops: router.plan().depth, walk, patience });
        let id = router.search(now, key, search);
        self.after_change(set);
        Ok(id)
    }

    /// Hides keys of an own set that are no longer held, such as expired ones, until they are
    /// removed. Returns whether there is such a set.
    pub fn hide(
        &mut self,
        set: &Name,
        is_hidden: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    ) -> bool {
        self.change_own(set, |router| router.hide(is_hidden))
    }

    // ---- helpers

    /// The router of a set, which is created if it does not exist yet.
    fn open(&mut self, now: Duration, set: &Name) -> Result<&mut Router<C>, SearchError> {
        if !self.sets.contains_key(set) {
            let others = self.sets.values().filter(|routed| routed.router.home().is_none());
            if others.count() >= self.max_sets {
                return Err(SearchError::TooManySets(self.max_sets));
            }
            let routed = self.new_router(now, set)?;
            self.sets.insert(set.clone(), routed);
        }
        Ok(&mut self.sets.get_mut(set).expect("it is there or was made").router)
    }

    fn new_router(&self, now: Duration, set: &Name) -> Result<Routed<C>, ParamError> {
        let epoch = self.epochs.get(set).copied().unwrap_or(Epoch(0));
        // Give each set its own seed, so that their random walks differ.
        let seed = self.template.hasher.hash(set.as_str().as_bytes()).get() ^ self.template.seed;
        let config = route::RouterConfig { set: set.clone(), epoch, seed, ..self.template.clone() };
        let mut router = Router::without_keys(now, config)?;
        self.links.up().for_each(|neighbour| router.handle_link_up(now, neighbour));
        Ok(Routed { router, plan: None, idle_since: None })
    }

    /// Changes an own set. Returns whether there is one.
    fn change_own<T>(&mut self, set: &Name, change: impl FnOnce(&mut Router<C>) -> T) -> bool {
        let own = self.sets.get_mut(set).filter(|routed| routed.router.home().is_some());
        let Some(routed) = own else { return false };
        change(&mut routed.router);
        self.after_change(set);
        true
    }

    /// Records whether a router has something to send or to report.
    fn after_change(&mut self, set: &Name) {
        let Some(Routed { router, .. }) = self.sets.get(set) else { return };
        if router.has_transmits() && !self.sending.contains(set) {
            self.sending.insert(set.clone());
        }
        if router.has_events() && !self.reporting.contains(set) {
            self.reporting.insert(set.clone());
        }
    }

    fn change_all(&mut self, mut change: impl FnMut(&mut Router<C>)) {
        let sets: Vec<Name> = self.sets.keys().cloned().collect();
        for set in &sets {
            if let Some(routed) = self.sets.get_mut(set) {
                change(&mut routed.router);
            }
            self.after_change(set);
        }
    }

    fn link_up(&mut self, now: Duration, neighbour: &Name) {
        self.event(Event::LinkUp(neighbour.clone()));
        self.change_all(|router| router.handle_link_up(now, neighbour));
    }

    fn link_down(&mut self, now: Duration, neighbour: &Name) {
        self.event(Event::LinkDown(neighbour.clone()));
        self.change_all(|router| router.handle_link_down(now, neighbour));
    }

    fn refuse(&mut self, from: &Name, reason: String) {
        self.refused += 1;
        self.event(Event::Refused { from: from.clone(), reason });
    }

    fn event(&mut self, event: Event) {
        if self.events.len() >= MAX_EVENTS {
            self.past.dropped += 1;
        } else {
            self.events.push_back(event);
        }
    }

    fn forget_if_idle(&mut self, now: Duration, set: &Name) {
        let Some(routed) = self.sets.get_mut(set) else { return };
        if !routed.is_idle() {
            routed.idle_since = None;
            return;
        }
        let since = *routed.idle_since.get_or_insert(now);
        if now < since + self.template.silence {
            return;
        }
        if let Some(Routed { router, .. }) = self.sets.remove(set) {
            status::add(&mut self.past, router.counters());
            if router.epoch() > Epoch(0) {
                self.epochs.insert(set.clone(), router.epoch());
            }
        }
    }
}

impl<C: Catalogue> Protocol<C> for Overlay<C> {
    // ---- own sets

    /// Only the policy of the plan is used. The shape is the one that all hosts of the overlay
    /// agreed on, whatever rung the set was on before.
    fn restore(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: C,
        _before: Option<Standing>,
    ) -> Result<(), ParamError> {
        if !self.sets.contains_key(set) {
            let routed = self.new_router(now, set)?;
            self.sets.insert(set.clone(), routed);
        }
        let Some(routed) = self.sets.get_mut(set) else { return Ok(()) };
        routed.router.set_policy(now, plan.policy);
        routed.router.own(now, catalogue)?;
        routed.plan = Some(plan);
        self.after_change(set);
        Ok(())
    }

    /// Not supported: a host cannot choose a set's shape alone.
    fn replan(&mut self, _now: Duration, _set: &Name, _plan: SetPlan) -> Result<bool, ParamError> {
        Ok(false)
    }

    fn delete(&mut self, set: &Name) -> bool {
        let Some(routed) = self.sets.get_mut(set) else { return false };
        routed.plan = None;
        let owned = routed.router.disown().is_some();
        self.after_change(set);
        owned
    }

    fn add_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool {
        self.change_own(set, |router| router.add_many(now, keys, on_result))
    }

    fn remove_many(
        &mut self,
        now: Duration,
        set: &Name,
        keys: &[&[u8]],
        on_result: &mut dyn FnMut(bool),
    ) -> bool {
        self.change_own(set, |router| router.remove_many(now, keys, on_result))
    }

    fn publish(&mut self, now: Duration, set: &Name) -> bool {
        self.change_own(set, |router| router.publish(now))
    }

    fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool {
        if let Some(plan) = self.sets.get_mut(set).and_then(|routed| routed.plan.as_mut()) {
            plan.policy = policy;
        }
        self.change_own(set, |router| router.set_policy(now, policy))
    }

    fn home(&self, set: &Name) -> Option<HomeRef<'_, C>> {
        self.sets.get(set)?.router.home().map(|home| -> HomeRef<'_, C> { Box::new(home) })
    }

    fn plan(&self, set: &Name) -> Option<SetPlan> {
        self.sets.get(set)?.plan
    }

    fn epoch(&self, set: &Name) -> Epoch {
        self.sets.get(set).map_or(Epoch(0), |routed| routed.router.epoch())
    }

    // ---- what is known

    fn sets(&self) -> Vec<&Name> {
        self.sets.iter().filter(|(_, routed)| routed.exists()).map(|(set, _)| set).collect()
    }

    fn has_set(&self, set: &Name) -> bool {
        self.sets.get(set).is_some_and(Routed::exists)
    }

    /// The neighbours, and names that two hosts share. About other hosts an overlay knows only what
    /// its queries find.
    fn heard_of(&self, _now: Duration) -> Vec<(Name, Option<Gap>)> {
        let namesakes = self.sets.values().flat_map(|routed| routed.router.namesakes());
        let namesakes: BTreeSet<&Name> = namesakes.collect();
        let gap = |host: &Name, is_up: bool| match is_up {
            false => Some(Gap::Unreachable),
            true => namesakes.contains(host).then_some(Gap::SharedName),
        };
        let neighbours = self.links.all().map(|(host, is_up, _)| (host.clone(), gap(host, is_up)));
        let is_neighbour = |host: &Name| self.links.all().any(|(link, ..)| link == host);
        let others = namesakes.iter().filter(|host| !is_neighbour(host));
        neighbours.chain(others.map(|host| ((*host).clone(), Some(Gap::SharedName)))).collect()
    }

    fn live_of(&self, host: &Name) -> Option<Incarnation> {
        let (_, is_up, life) = self.links.all().find(|(name, ..)| *name == host)?;
        life.filter(|_| is_up)
    }

    fn incarnation_of(&self, host: &Name) -> Option<Incarnation> {
        let link = self.links.all().find(|(name, ..)| *name == host).and_then(|(.., life)| life);
        let homes = self.sets.values().filter_map(|routed| routed.router.version_of(host));
        homes.map(|(life, _)| life).chain(link).max()
    }

    fn counters(&self) -> Counters {
        let counted = self.route_counters();
        Counters {
            messages: counted.messages,
            refused: counted.refused,
            gaps: counted.gaps,
            updates_sent: counted.adverts_sent,
            update_bytes_sent: counted.advert_bytes_sent,
            dropped: counted.dropped,
            ..Counters::default()
        }
    }

    fn validate(&self) {
        self.sets.values().for_each(|routed| routed.router.validate());
    }

    // ---- what happened

    fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        if !self.links.knows(from) {
            return self.refuse(from, String::from("it comes from no neighbour"));
        }
        if self.links.heard(from) {
            self.link_up(now, from);
        }
        let (set, message) = match Message::decode(bytes) {
            Ok(decoded) => decoded,
            Err(error) => return self.refuse(from, error.to_string()),
        };
        if !self.sets.contains_key(&set) && !message.opens_set() {
            return;
        }
        match self.open(now, &set) {
            Ok(router) => router.handle(now, from, message),
            Err(_) => return self.refuse(from, String::from("it is about one set too many")),
        }
        self.after_change(&set);
    }

    fn handle_alive(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        let was_up = self.links.up().any(|up| up == host);
        if self.links.alive(host, incarnation) {
            // A new incarnation: it knows nothing of what was sent to the previous one.
            if was_up {
                self.link_down(now, host);
            }
            self.link_up(now, host);
        }
    }

    fn handle_gone(&mut self, now: Duration, host: &Name, incarnation: Incarnation) {
        if self.links.gone(host, incarnation) {
            self.link_down(now, host);
        }
    }

    fn handle_excluded(&mut self, now: Duration, host: &Name) {
        self.handle_gone(now, host, Incarnation(u64::MAX));
    }

    fn handle_greeting(&mut self, now: Duration, host: &Name, fits: bool) {
        if self.links.greeted(host, fits) {
            self.link_down(now, host);
        }
    }

    fn handle_timeout(&mut self, now: Duration) {
        let due = self.sets.iter().filter(|(_, routed)| routed.router.poll_timeout() <= now);
        let due: Vec<Name> = due.map(|(set, _)| set.clone()).collect();
        for set in &due {
            if let Some(routed) = self.sets.get_mut(set) {
                routed.router.handle_timeout(now);
            }
            self.after_change(set);
            self.forget_if_idle(now, set);
        }
    }

    /// Nothing to send: neighbours see the link go down, and drop what they learnt over it.
    fn leave(&mut self, _now: Duration, _absence: Duration) {}

    // ---- what to do

    fn poll_transmit(&mut self) -> Option<Transmit> {
        while let Some(set) = self.sending.first() {
            let router = self.sets.get_mut(set).map(|routed| &mut routed.router);
            if let Some(route::Transmit { to, bytes }) = router.and_then(Router::poll_transmit) {
                return Some(Transmit { to: Destination::Neighbour(to), bytes });
            }
            self.sending.pop_first();
        }
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        while let Some(set) = self.reporting.first() {
            let router = self.sets.get_mut(set).map(|routed| &mut routed.router);
            match router.and_then(Router::poll_event) {
                Some(event) => {
                    if let Some(event) = event_of(set, event) {
                        return Some(event);
                    }
                }
                None => drop(self.reporting.pop_first()),
            }
        }
        None
    }

    fn poll_timeout(&self) -> Duration {
        let timeouts = self.sets.values().map(|routed| routed.router.poll_timeout());
        timeouts.min().unwrap_or(Duration::MAX)
    }

    fn is_urgent(&self, set: &Name, then: Duration) -> bool {
        let timeout = self.sets.get(set).map(|routed| routed.router.poll_timeout());
        !self.sending.is_empty()
            || !self.reporting.is_empty()
            || !self.events.is_empty()
            || timeout.is_some_and(|timeout| timeout < then)
    }
}

/// Converts an event of a router; `None` if it only matters inside the router.
fn event_of(set: &Name, event: route::RouterEvent) -> Option<Event> {
    let set = set.clone();
    Some(match event {
        route::RouterEvent::Reached(home) => Event::Reached { set, home },
        route::RouterEvent::Lost(home) => Event::Lost { set, home },
        route::RouterEvent::Located(located) => Event::Located { set, located },
        route::RouterEvent::Replanned { items, filters } => {
            Event::Replanned { set, items, filters }
        }
        route::RouterEvent::Refused { from, reason } => Event::Refused { from, reason },
        route::RouterEvent::NameTaken => Event::NameTaken,
        route::RouterEvent::Namesake { host, life } => Event::Namesake { host, life },
        route::RouterEvent::Up(_)
        | route::RouterEvent::Down(_)
        | route::RouterEvent::Found { .. } => return None,
    })
}
