//! A host in an overlay: a router for each set, over the links that are configured.
//!
//! ```text
//! add, remove, locate   any thread ─► Overlay ─► Router of the set ─► transmits
//! messages              neighbour ─► Overlay ─► Router of the set ─► transmits, answers
//! ```
//!
//! A set is known here while this host or one within range is a home of it. Routers of other
//! sets are made when a message or a question needs one, and forgotten after a time without use.
//!
//! Always true: what comes from anybody but a configured neighbour changes nothing; every
//! question that was asked is answered, since queries end; no more sets are passed on than the
//! limit says.
//!
//! Not here: filters, distances, where queries go (`umbel::route`); sockets (`network`).

mod links;
mod settings;
mod told;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;
use umbel::replica::{Epoch, Home, Incarnation, Name, Policy, SetPlan};
use umbel::route::{self, Config, Counters, Event, Located, QueryId, Router, Search, Transmit};

use crate::catalogue::HostCatalogue;
use crate::error::HostError;
use links::Links;

/// A host's share of an overlay.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// What every router is told.
    template: Config,
    /// Most sets of others that are passed on.
    most_sets: usize,
    links: Links,
    sets: BTreeMap<Name, Routed>,
    /// How far sets were published that are forgotten: they go on counting from there.
    epochs: BTreeMap<Name, Epoch>,
    waiting: HashMap<(Name, QueryId), oneshot::Sender<Located>>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<(Name, Event)>,
    /// Whether sets have come or gone since somebody looked.
    changed: bool,
    /// Messages that no router could be given.
    refused: u64,
    /// What routers counted that are forgotten.
    past: Counters,
}

/// A set, and its router.
#[derive(Debug)]
struct Routed {
    router: Router<HostCatalogue>,
    /// What the set is planned for where everybody knows everybody; for own sets.
    plan: Option<SetPlan>,
    /// Since when nothing is known of it and nobody asks.
    idle_since: Option<Duration>,
}

impl Routed {
    /// Whether somebody is known to have the set.
    fn has_home(&self) -> bool {
        self.router.home().is_some() || self.router.homes().next().is_some()
    }

    /// Whether nothing would be lost with it.
    fn is_idle(&self) -> bool {
        !self.has_home() && self.router.queries() == 0
    }
}

impl Overlay {
    // ---- own sets

    /// Owns a set from now on, with the keys that its catalogue holds.
    pub(crate) fn create(
        &mut self,
        now: Duration,
        set: &Name,
        plan: SetPlan,
        catalogue: HostCatalogue,
    ) -> Result<(), umbel::params::ParamError> {
        self.open(now, set)?;
        let Some(routed) = self.sets.get_mut(set) else { return Ok(()) };
        routed.router.set_policy(now, plan.policy);
        routed.router.own(now, catalogue)?;
        routed.plan = Some(plan);
        self.drain(set);
        Ok(())
    }

    /// Owns a set no longer; whether it did.
    pub(crate) fn delete(&mut self, set: &Name) -> bool {
        let Some(routed) = self.sets.get_mut(set) else { return false };
        routed.plan = None;
        let owned = routed.router.disown().is_some();
        self.drain(set);
        owned
    }

    /// Changes an own set; `None` if there is none.
    pub(crate) fn change<T>(
        &mut self,
        set: &Name,
        change: impl FnOnce(&mut Router<HostCatalogue>) -> T,
    ) -> Option<T> {
        let routed = self.sets.get_mut(set).filter(|routed| routed.router.home().is_some())?;
        let changed = change(&mut routed.router);
        self.drain(set);
        Some(changed)
    }

    pub(crate) fn set_policy(&mut self, now: Duration, set: &Name, policy: Policy) -> bool {
        if let Some(plan) = self.sets.get_mut(set).and_then(|routed| routed.plan.as_mut()) {
            plan.policy = policy;
        }
        self.change(set, |router| router.set_policy(now, policy)).is_some()
    }

    pub(crate) fn home(&self, set: &Name) -> Option<&Home<HostCatalogue>> {
        self.sets.get(set)?.router.home()
    }

    pub(crate) fn plan(&self, set: &Name) -> Option<SetPlan> {
        self.sets.get(set)?.plan
    }

    // ---- questions

    /// The sets of which this host or one within range is a home; not those that were merely
    /// asked for.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &Name> {
        self.sets.iter().filter(|(_, routed)| routed.has_home()).map(|(set, _)| set)
    }

    /// The homes within range that may hold a key.
    ///
    /// # Errors
    /// If entries do not keep homes apart.
    pub(crate) fn who(&self, set: &Name, key: &[u8]) -> Result<Vec<&Name>, HostError> {
        let Some(routed) = self.sets.get(set) else { return Ok(Vec::new()) };
        routed.router.who(key).ok_or(HostError::InOverlay(
            "entries of this kind do not keep hosts apart: ask UMBEL.LOCATE",
        ))
    }

    /// Sends out a query; its answer comes in time, found or not.
    ///
    /// # Errors
    /// If there is no room for another set.
    pub(crate) fn locate(
        &mut self,
        now: Duration,
        set: &Name,
        key: &[u8],
        search: impl FnOnce(Search) -> Search,
    ) -> Result<oneshot::Receiver<Located>, HostError> {
        if !self.has_room(set) {
            return Err(HostError::TooManySets(self.most_sets));
        }
        self.open(now, set)?;
        let (sender, receiver) = oneshot::channel();
        if let Some(Routed { router, .. }) = self.sets.get_mut(set) {
            let Config { walk, patience, .. } = *router.config();
            let search = search(Search { hops: router.plan().depth, walk, patience });
            let id = router.search(now, key, search);
            self.waiting.insert((set.clone(), id), sender);
        }
        self.drain(set);
        Ok(receiver)
    }

    // ---- what happened

    /// A message arrived.
    pub(crate) fn handle_message(&mut self, now: Duration, from: &Name, bytes: &[u8]) {
        if !self.links.knows(from) {
            return self.refuse(from, "it comes from no neighbour");
        }
        if self.links.heard(from) {
            self.link_up(now, from);
        }
        let Some(set) = route::set_of(bytes) else {
            return self.refuse(from, "it is no message of an overlay");
        };
        if !self.sets.contains_key(&set) {
            if route::opens(bytes).is_none() {
                return;
            }
            if !self.has_room(&set) || self.open(now, &set).is_err() {
                return self.refuse(from, "it is about more sets than are passed on");
            }
        }
        if let Some(routed) = self.sets.get_mut(&set) {
            routed.router.handle_message(now, from, bytes);
        }
        self.drain(&set);
    }

    pub(crate) fn handle_alive(&mut self, now: Duration, host: &Name, life: Incarnation) {
        if self.links.alive(host, life) {
            // Of another life: it knows nothing of what the last one was told.
            self.link_down(now, host);
            self.link_up(now, host);
        }
    }

    pub(crate) fn handle_gone(&mut self, now: Duration, host: &Name, life: Incarnation) {
        if self.links.gone(host, life) {
            tracing::info!(%host, "link is down");
            self.link_down(now, host);
        }
    }

    /// A neighbour said who it is, and whether it fits.
    pub(crate) fn handle_greeting(&mut self, now: Duration, host: &Name, fits: bool) {
        if self.links.greeted(host, fits) {
            self.link_down(now, host);
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        let due = self.sets.iter().filter(|(_, routed)| routed.router.poll_timeout() <= now);
        let due: Vec<Name> = due.map(|(set, _)| set.clone()).collect();
        for set in &due {
            if let Some(routed) = self.sets.get_mut(set) {
                routed.router.handle_timeout(now);
            }
            self.drain(set);
            self.forget_if_idle(now, set);
        }
    }

    // ---- what to do

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<(Name, Event)> {
        self.events.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Duration {
        let timeouts = self.sets.values().map(|routed| routed.router.poll_timeout());
        timeouts.min().unwrap_or(Duration::MAX)
    }

    /// Whether sets have come or gone since this was last asked.
    pub(crate) const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.changed, false)
    }

    /// Whether there is something to send or tell, or a timeout of a set before `then`.
    pub(crate) fn is_urgent(&self, set: &Name, then: Duration) -> bool {
        let timeout = self.sets.get(set).map(|routed| routed.router.poll_timeout());
        !self.transmits.is_empty()
            || !self.events.is_empty()
            || timeout.is_some_and(|timeout| timeout < then)
    }

    // ---- helpers

    fn has_room(&self, set: &Name) -> bool {
        let passed_on = self.sets.values().filter(|routed| routed.router.home().is_none());
        self.sets.contains_key(set) || passed_on.count() < self.most_sets
    }

    /// A router for a set that has none yet.
    fn open(&mut self, now: Duration, set: &Name) -> Result<(), umbel::params::ParamError> {
        if self.sets.contains_key(set) {
            return Ok(());
        }
        let epoch = self.epochs.get(set).copied().unwrap_or(Epoch(0));
        // Sets of one host walk different ways.
        let seed = self.template.hasher.hash(set.as_str().as_bytes()).get() ^ self.template.seed;
        let config = Config { set: set.clone(), epoch, seed, ..self.template.clone() };
        let mut router = Router::without_keys(now, config)?;
        self.links.up().for_each(|neighbour| router.handle_link_up(now, neighbour));
        self.sets.insert(set.clone(), Routed { router, plan: None, idle_since: None });
        Ok(())
    }

    fn link_up(&mut self, now: Duration, neighbour: &Name) {
        tracing::info!(host = %neighbour, "link is up");
        self.each(|router| router.handle_link_up(now, neighbour));
    }

    fn link_down(&mut self, now: Duration, neighbour: &Name) {
        self.each(|router| router.handle_link_down(now, neighbour));
    }

    fn each(&mut self, mut change: impl FnMut(&mut Router<HostCatalogue>)) {
        let sets: Vec<Name> = self.sets.keys().cloned().collect();
        for set in &sets {
            if let Some(routed) = self.sets.get_mut(set) {
                change(&mut routed.router);
            }
            self.drain(set);
        }
    }

    /// Collects what a router has to say, and answers whoever waits.
    fn drain(&mut self, set: &Name) {
        let Some(Routed { router, .. }) = self.sets.get_mut(set) else { return };
        self.transmits.extend(std::iter::from_fn(|| router.poll_transmit()));
        while let Some(event) = router.poll_event() {
            match event {
                Event::Located(located) => {
                    let id = (set.clone(), located.query.clone());
                    if let Some(asker) = self.waiting.remove(&id) {
                        // Whoever asked may have gone away meanwhile.
                        let _ = asker.send(located);
                    }
                }
                event => {
                    self.changed |= matches!(event, Event::Reached(_) | Event::Lost(_));
                    self.events.push_back((set.clone(), event));
                }
            }
        }
    }

    fn refuse(&mut self, from: &Name, reason: &str) {
        self.refused += 1;
        let refused = Event::Refused { from: from.clone(), reason: reason.to_owned() };
        self.events.push_back((self.template.set.clone(), refused));
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
            told::add(&mut self.past, router.counters());
            if router.epoch() > Epoch(0) {
                self.epochs.insert(set.clone(), router.epoch());
            }
        }
    }
}

#[cfg(test)]
mod tests;
