//! Sets: made, published, deleted, and told of.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::RwLock;
use umbel::catalogue::{Catalogue as _, MemoryCatalogue};
use umbel::replica::{Home, Name, SetPlan};

use super::info::seconds;
use super::route::{in_overlay, others_in_overlay};
use super::{Host, HostInfo, OwnSet, Routing, SetInfo, State, Status};
use crate::catalogue::{
    FolderCatalogue, HostCatalogue, OwnCatalogue, SetNumber, SetRecord, Ticket,
};
use crate::confirm::Confirm;
use crate::error::HostError;
use crate::lifetimes::Lifetimes;

impl Host {
    /// Publishes everything of an own set now, removals included.
    ///
    /// # Errors
    /// If this host has no such set of its own.
    pub fn publish(&self, set: &str) -> Result<(), HostError> {
        let (name, mut state) = self.own_set(set)?;
        state.engine.publish(self.inner.now(), &name);
        self.inner.wake_if_urgent(&state, &name);
        Ok(())
    }

    /// Deletes an own set with all its keys; whether there was one.
    ///
    /// # Errors
    /// If the catalogue has failed.
    pub fn delete(&self, set: &str) -> Result<(bool, Ticket), HostError> {
        let Ok((name, mut state)) = self.own_set(set) else {
            self.inner.check()?;
            return Ok((false, Ticket::NONE));
        };
        state.engine.delete(&name);
        if let (Some(own), Some(journal)) = (state.own.remove(&name), &self.inner.journal) {
            journal.delete_set(set, own.number);
        }
        self.inner.refresh_directory(&state);
        self.inner.wake_if_urgent(&state, &name);
        Ok((true, self.inner.ticket()))
    }

    /// An own set, with the state locked.
    pub(super) fn own_set(
        &self,
        set: &str,
    ) -> Result<(Name, parking_lot::MutexGuard<'_, State>), HostError> {
        let known = self.find(set)?;
        let state = self.inner.state.lock();
        self.inner.check()?;
        if !state.own.contains_key(&known.name) {
            return Err(HostError::NotOwn(set.to_owned()));
        }
        Ok((known.name.clone(), state))
    }

    /// Makes an own set with the host's defaults.
    pub(super) fn create(&self, state: &mut State, set: &str) -> Result<Name, HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let live = self.inner.live();
        let defaults = &live.set;
        let plan = self.default_plan();
        self.create_planned(state, &name, plan, defaults.lifetime, &defaults.confirm)?;
        Ok(name)
    }

    pub(super) fn default_plan(&self) -> SetPlan {
        let set = &self.inner.live().set;
        SetPlan {
            false_positive: set.false_positive.get(),
            capacity: set.capacity,
            expected_hosts: set.expected_hosts,
            policy: set.policy,
            ..SetPlan::default()
        }
    }

    pub(super) fn create_planned(
        &self,
        state: &mut State,
        name: &Name,
        plan: SetPlan,
        lifetime: Option<Duration>,
        confirm: &Confirm,
    ) -> Result<(), HostError> {
        let most = self.inner.settings.limits.sets;
        if state.own.len() >= most {
            return Err(HostError::TooManySets(most));
        }
        let number = SetNumber(state.next_number);
        let catalogue = match &self.inner.journal {
            Some(journal) => {
                HostCatalogue::Folder(FolderCatalogue::empty(Arc::clone(journal), number))
            }
            None => {
                let keys = MemoryCatalogue::with_seed(self.inner.incarnation.0);
                HostCatalogue::Memory(Arc::new(RwLock::new(keys)))
            }
        };
        self.own_catalogue(state, name, plan, lifetime, catalogue)?;
        if let Some(own) = state.own.get_mut(name).filter(|own| own.confirm != *confirm) {
            own.confirm.clone_from(confirm);
            self.inner.refresh_directory(state);
        }
        self.remember(state, name);
        Ok(())
    }

    /// Owns a set whose keys are in a catalogue that is there already.
    fn own_catalogue(
        &self,
        state: &mut State,
        name: &Name,
        plan: SetPlan,
        lifetime: Option<Duration>,
        catalogue: HostCatalogue,
    ) -> Result<(), HostError> {
        state.engine.create(self.inner.now(), name, plan, catalogue)?;
        let number = SetNumber(state.next_number);
        state.next_number += 1;
        let confirm = self.inner.live().set.confirm.clone();
        let own = OwnSet { number, lifetime, confirm, lifetimes: Lifetimes::default() };
        state.own.insert(name.clone(), own);
        self.inner.refresh_directory(state);
        Ok(())
    }

    /// Owns a set whose keys are in the embedder's own catalogue.
    pub(crate) fn own_foreign(&self, set: &str, keys: OwnCatalogue) -> Result<(), HostError> {
        let name = Name::new(set).ok_or(HostError::SetName)?;
        let mut state = self.inner.state.lock();
        let catalogue = HostCatalogue::Own(Arc::new(RwLock::new(keys)));
        let (plan, lifetime) = (self.default_plan(), self.inner.live().set.lifetime);
        self.own_catalogue(&mut state, &name, plan, lifetime, catalogue)
    }

    /// Owns the sets that the folder holds, with the keys in them.
    pub(crate) fn own_stored(&self) -> Result<(), HostError> {
        let Some(journal) = &self.inner.journal else { return Ok(()) };
        for (set, record) in journal.sets()? {
            let name = Name::new(&set).ok_or(HostError::SetName)?;
            let damaged = |what: &str| HostError::Catalogue(format!("the {what} of set '{set}'"));
            let policy = record.policy.parse().map_err(|_| damaged("policy"))?;
            let plan = SetPlan {
                false_positive: record.false_positive,
                capacity: record.capacity,
                expected_hosts: record.expected_hosts,
                policy,
                ..SetPlan::default()
            };
            let catalogue = FolderCatalogue::open(Arc::clone(journal), record.number);
            journal.check()?;
            let catalogue = HostCatalogue::Folder(catalogue);
            tracing::info!(set, keys = catalogue.len(), "building the filter");
            let mut state = self.inner.state.lock();
            let lifetime = record.lifetime_ms.map(Duration::from_millis);
            self.own_catalogue(&mut state, &name, plan, lifetime, catalogue)?;
            if let Some(own) = state.own.get_mut(&name) {
                own.number = record.number;
                // Of a record that is older than this: as the host's settings say.
                if let Some(confirm) = &record.confirm {
                    own.confirm = confirm.parse().map_err(|_| damaged("confirmation"))?;
                }
                for (key, at) in journal.lifetimes(record.number) {
                    own.lifetimes.set(&key, Some(at));
                }
            }
            state.next_number = state.next_number.max(record.number.0 + 1);
            self.inner.refresh_directory(&state);
        }
        journal.check()
    }

    /// Writes down what a set is planned for.
    pub(super) fn remember(&self, state: &State, name: &Name) {
        let (Some(journal), Some(own), Some(plan)) =
            (&self.inner.journal, state.own.get(name), state.engine.plan(name))
        else {
            return;
        };
        let record = SetRecord {
            number: own.number,
            false_positive: plan.false_positive,
            capacity: plan.capacity,
            expected_hosts: plan.expected_hosts,
            policy: plan.policy.to_string(),
            lifetime_ms: own.lifetime.map(|time| time.as_millis() as u64),
            confirm: Some(own.confirm.to_string()),
        };
        journal.put_set(name.as_str(), &record);
    }

    // ---- what is told

    /// The names of the sets that somebody is known to have, in order.
    #[must_use]
    pub fn sets(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.inner.directory.read().keys().map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }

    /// Whether somebody is known to have the set. Waits for no change of any set.
    #[must_use]
    pub fn knows(&self, set: &str) -> bool {
        self.inner.known(set).is_some()
    }

    /// One set.
    ///
    /// # Errors
    /// If nobody has it.
    pub fn set_info(&self, set: &str) -> Result<SetInfo, HostError> {
        let known = self.find(set)?;
        Ok(self.describe(&self.inner.state.lock(), &known.name))
    }

    fn describe(&self, state: &State, name: &Name) -> SetInfo {
        let now = self.inner.now();
        let mut info = SetInfo { set: name.as_str().to_owned(), ..SetInfo::default() };
        if let Some(home) = state.engine.home(name) {
            describe_own(&mut info, home);
        }
        if let Some(own) = state.own.get(name) {
            info.lifetime = own.lifetime.map(seconds);
            info.expiring = own.lifetimes.len() as u64;
            info.confirm = Some(own.confirm.to_string());
        }
        info.items_everywhere = info.items;
        let Some(engine) = state.engine.mesh() else { return in_overlay(info, state, name) };
        let (mut members, mut denied) = (0, 0);
        for host in engine.replicas(name) {
            let Some(replica) = engine.replica(now, name, host) else { continue };
            info.replicas += 1;
            info.items_everywhere += replica.items;
            info.updates_received += replica.received.updates;
            info.bytes_received += replica.received.bytes;
            members += replica.sampled.members;
            denied += replica.sampled.denied;
        }
        info.measured_miss = (members > 0).then(|| denied as f64 / members as f64);
        if let Some(known) = self.inner.known(name.as_str()) {
            (info.lookups_confirmed, info.measured_false_positive) = known.confirmed.rate();
            [info.cache_asked, info.cache_disagreements, info.cache_unanswered] =
                known.confirmed.cache();
            info.replica_bytes = known.replicas.as_ref().map_or(0, |here| here.memory_bytes());
        }
        info
    }

    /// The hosts of the cluster: this one first, then the others by name. In an overlay the
    /// others are the neighbours, then the homes within range.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostInfo> {
        let state = self.inner.state.lock();
        let now = self.inner.now();
        let own_sets = state.own.keys().map(|name| name.as_str().to_owned()).collect();
        let epochs = state.own.keys().map(|name| state.engine.epoch(name));
        let mut hosts = vec![HostInfo {
            name: self.name().as_str().to_owned(),
            state: "self",
            incarnation: self.inner.incarnation.0,
            advertise: state.hello.advertise.clone(),
            resp: state.hello.resp.clone(),
            http: state.hello.http.clone(),
            sets: own_sets,
            epochs: epochs.collect(),
            age: None,
            current: true,
        }];
        let Some(engine) = state.engine.mesh() else { return others_in_overlay(hosts, &state) };
        for (name, peer) in engine.peers(now) {
            let hello = state.hellos.get(name);
            let mut info = HostInfo {
                name: name.as_str().to_owned(),
                state: if peer.is_suspected { "suspected" } else { "up" },
                incarnation: peer.incarnation.0,
                advertise: hello.and_then(|hello| hello.advertise.clone()),
                resp: hello.and_then(|hello| hello.resp.clone()),
                http: hello.and_then(|hello| hello.http.clone()),
                sets: Vec::new(),
                epochs: Vec::new(),
                age: None,
                current: peer.is_known,
            };
            for set in engine.sets() {
                let Some(replica) = engine.replica(now, set, name) else { continue };
                info.sets.push(set.as_str().to_owned());
                info.epochs.push(replica.epoch.map_or(0, |epoch| epoch.0));
                let age = seconds(replica.age);
                info.age = Some(info.age.map_or(age, |least: f64| least.min(age)));
                info.current &= replica.is_current;
            }
            hosts.push(info);
        }
        hosts
    }

    /// This host's own state.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = self.inner.state.lock();
        let (known, expected) = state.known_hosts(self.inner.now());
        let counters = state.engine.counters();
        let routing = state.engine.overlay().map(|overlay| Routing::of(overlay, None));
        Status {
            routing,
            name: self.name().as_str().to_owned(),
            cluster: self.inner.settings.cluster.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            build: crate::build_info::text(),
            incarnation: self.inner.incarnation.0,
            uptime: seconds(self.inner.now()),
            ready: self.inner.ready.load(Ordering::Acquire),
            hosts_known: known,
            hosts_expected: expected,
            sets: state.engine.sets().len() as u64,
            durable: self.inner.journal.is_some(),
            messages: counters.messages,
            refused: counters.refused,
            gaps: counters.gaps,
            mismatches: counters.mismatches,
            updates_sent: counters.updates_sent,
            update_bytes_sent: counters.update_bytes_sent,
            page_bytes_sent: counters.page_bytes_sent,
            dropped: counters.dropped + self.inner.inbox.dropped(),
            name_taken: self.inner.name_taken.load(Ordering::Relaxed),
            failed_logins: self.inner.access.counts().0,
        }
    }
}

fn describe_own(info: &mut SetInfo, home: &Home<HostCatalogue>) {
    let (filter, fresh, sent) = (home.filter(), home.freshness(), home.sent());
    let shape = filter.scheme().shape();
    info.own = true;
    info.items = home.catalogue().len();
    info.capacity = Some(filter.capacity());
    info.components = Some(filter.components().len() as u64);
    info.bits = Some(shape.bits());
    info.hashes = Some(shape.hashes().into());
    info.policy = Some(home.policy().to_string());
    info.false_positive = Some(home.plan().false_positive);
    info.expected_hosts = Some(home.plan().expected_hosts.into());
    info.estimated_false_positive = Some(fresh.false_positive);
    info.disagreement = Some(fresh.disagreement);
    info.miss = Some(fresh.miss);
    info.ghost = Some(fresh.ghost);
    info.updates_sent = sent.updates;
    info.bytes_sent = sent.bytes;
    info.full_broadcast_bytes = sent.full_broadcast_bytes;
    info.rebuilds = home.rebuilds();
}
