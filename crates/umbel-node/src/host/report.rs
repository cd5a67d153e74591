//! Reports on the sets, on the other hosts and on this host.

use umbel::catalogue::Catalogue as _;
use umbel::mesh::{Engine, PeerInfo, Refusal, ReplicaInfo};
use umbel::overlay::Overlay;
use umbel::replica::{Home, Name};

#[cfg(feature = "http")]
use super::Distribution;
use super::greetings::Greetings;
use super::info::seconds;
use super::sets::State;
use super::{Host, HostInfo, Routing, SetInfo, Status};
use crate::catalogue::HostCatalogue;
use crate::error::HostError;
use crate::settings::agreement;

impl Host {
    /// The names of the sets that any host is known to have, in order.
    #[must_use]
    pub fn sets(&self) -> Vec<String> {
        self.inner.sets.names()
    }

    /// The names of this host's own sets, in order.
    #[cfg(feature = "resp")]
    pub(crate) fn own_sets(&self) -> Vec<String> {
        self.inner.sets.lock().own.keys().map(|name| name.as_str().to_owned()).collect()
    }

    /// The number of sets that any host is known to have.
    #[must_use]
    pub fn set_count(&self) -> usize {
        self.inner.sets.count()
    }

    /// Whether any host is known to have the set. Waits for no change of any set.
    #[must_use]
    pub fn knows(&self, set: &str) -> bool {
        self.inner.sets.known(set).is_some()
    }

    /// Whether a set is a set of chains, here or at another host: lookups of single keys are
    /// unreliable there.
    #[must_use]
    pub fn is_loose(&self, set: &str) -> bool {
        self.inner.sets.known(set).is_some_and(|known| {
            let replicas = known.replicas.as_ref();
            replicas.is_some_and(|here| here.is_loose())
                || known.own.as_ref().is_some_and(|own| own.is_loose())
        })
    }

    /// The depths and times of the chain queries of a set, if there were any.
    #[cfg(feature = "http")]
    pub(crate) fn chain_distributions(&self, set: &str) -> Option<[Distribution; 2]> {
        self.inner.sets.known(set)?.chains.distributions()
    }

    /// One set, including how much its filter and the published copy disagree: this takes a pass
    /// over all bits, milliseconds for a large filter.
    ///
    /// # Errors
    /// If no host has it.
    pub fn full_set_info(&self, set: &str) -> Result<SetInfo, HostError> {
        let mut info = self.set_info(set)?;
        let own = self.inner.sets.find(set).ok().and_then(|known| known.own.clone());
        info.disagreement = own.and_then(|own| own.disagreement(&self.inner.sets));
        Ok(info)
    }

    /// One set without [`SetInfo::disagreement`]: see [`Self::full_set_info`].
    ///
    /// # Errors
    /// If no host has it.
    pub fn set_info(&self, set: &str) -> Result<SetInfo, HostError> {
        let known = match self.inner.sets.find(set) {
            Ok(known) => known,
            Err(error) => return self.refused_set_info(set).ok_or(error),
        };
        // Before the lock of the state is taken: see the lock order in `sets`.
        let own = known.own.as_ref().map(|own| (own.terms(), own.expiring()));
        let mut info = self.describe(&self.inner.sets.lock(), &known.name, &mut |_, _| ());
        if let Some((terms, expiring)) = own.filter(|_| info.own) {
            info.lifetime = terms.lifetime.map(seconds);
            info.confirm = Some(terms.confirm.to_string());
            info.expiring = expiring;
        }
        Ok(info)
    }

    /// A set that another host has and this one did not accept, with the reason.
    fn refused_set_info(&self, set: &str) -> Option<SetInfo> {
        let (name, state) = (Name::new(set)?, self.inner.sets.lock());
        let mut refusals = state.protocol.mesh()?.refusals();
        let is_refused = refusals.any(|(_, refused, _)| refused == Some(&name));
        is_refused.then(|| self.describe(&state, &name, &mut |_, _| ()))
    }

    /// One set; `each` is called with every replica of it here.
    pub(super) fn describe(
        &self,
        state: &State,
        name: &Name,
        each: &mut dyn FnMut(&Name, &ReplicaInfo),
    ) -> SetInfo {
        let now = self.inner.now();
        let mut info = SetInfo { set: name.as_str().to_owned(), ..SetInfo::default() };
        if let Some(home) = state.protocol.home(name) {
            describe_own(&mut info, &home);
        }
        info.items_everywhere = info.items;
        let Some(engine) = state.protocol.mesh() else { return in_overlay(info, state, name) };
        let (mut members, mut denied) = (0, 0);
        for host in engine.replicas(name) {
            let Some(replica) = engine.replica(now, name, host) else { continue };
            each(host, &replica);
            info.replicas += 1;
            info.items_everywhere += replica.items;
            info.updates_received += replica.received.updates;
            info.bytes_received += replica.received.bytes;
            members += replica.sampled.members;
            denied += replica.sampled.denied;
        }
        info.measured_miss = (members > 0).then(|| denied as f64 / members as f64);
        if let Some(known) = self.inner.sets.known(name.as_str()) {
            (info.lookups_confirmed, info.measured_false_positive) = known.confirmed.rate();
            [info.cache_asked, info.cache_disagreements, info.cache_unanswered] =
                known.confirmed.cache();
            let lookups = known.lookups.late();
            (info.late_lookups, info.late_share) = (lookups.late, lookups.share);
            info.chain_lookups = known.chains.count();
            info.loose |= known.replicas.as_ref().is_some_and(|here| here.is_loose());
            info.replica_bytes = known.replicas.as_ref().map_or(0, |here| here.memory_bytes());
        }
        let of_set = engine.refusals().filter(|(_, set, _)| *set == Some(name));
        info.not_accepted =
            of_set.map(|(host, _, refusal)| format!("{host}: {}", refusal.reason)).collect();
        info
    }

    /// The hosts of the cluster: this one first, then the others by name. In an overlay the
    /// others are the neighbours, then the homes within range.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostInfo> {
        let state = self.inner.sets.lock();
        let now = self.inner.now();
        let own_sets = state.own.keys().map(|name| name.as_str().to_owned()).collect();
        let epochs = state.own.keys().map(|name| state.protocol.epoch(name).0);
        let greetings = self.inner.cluster.greetings();
        let mut hosts = vec![HostInfo {
            name: self.name().as_str().to_owned(),
            state: "self",
            incarnation: self.inner.cluster.incarnation.0,
            advertise: greetings.own().advertise.clone(),
            resp: greetings.own().resp.clone(),
            http: greetings.own().http.clone(),
            sets: own_sets,
            epochs: epochs.collect(),
            age: None,
            current: true,
            not_accepted: Vec::new(),
        }];
        let Some(engine) = state.protocol.mesh() else {
            return others_in_overlay(hosts, &state, &greetings);
        };
        let sets = state.protocol.sets();
        for (name, peer) in engine.peers(now) {
            let hello = greetings.of(name);
            let mut info = HostInfo {
                name: name.as_str().to_owned(),
                state: match peer {
                    PeerInfo { is_away: true, .. } => "away",
                    PeerInfo { is_suspected: true, .. } => "suspected",
                    _ => "up",
                },
                incarnation: peer.incarnation.0,
                advertise: hello.and_then(|hello| hello.advertise.clone()),
                resp: hello.and_then(|hello| hello.resp.clone()),
                http: hello.and_then(|hello| hello.http.clone()),
                sets: Vec::new(),
                epochs: Vec::new(),
                age: None,
                current: peer.gap.is_none(),
                not_accepted: Vec::new(),
            };
            for set in &sets {
                let Some(replica) = engine.replica(now, set, name) else { continue };
                info.sets.push(set.as_str().to_owned());
                info.epochs.push(replica.epoch.map_or(0, |epoch| epoch.0));
                let age = seconds(replica.age);
                info.age = Some(info.age.map_or(age, |min: f64| min.min(age)));
                info.current &= replica.is_current;
            }
            hosts.push(info);
        }
        for (name, set, refusal) in engine.refusals() {
            let text = match set {
                Some(set) => format!("{set}: {}", refusal.reason),
                None => refusal.reason.to_string(),
            };
            match hosts.iter_mut().find(|host| host.name == name.as_str()) {
                Some(host) => host.not_accepted.push(text),
                None => hosts.push(HostInfo::refused(name, text)),
            }
        }
        hosts
    }

    /// What is not accepted at present: the host, the set (empty: the host as a whole), a label for
    /// the reason, and how often.
    pub(crate) fn refusals(&self) -> Vec<([String; 3], u64)> {
        let state = self.inner.sets.lock();
        let Some(engine) = state.protocol.mesh() else { return Vec::new() };
        let refusal = |(host, set, refusal): (&Name, Option<&Name>, &Refusal)| {
            let set = set.map(ToString::to_string).unwrap_or_default();
            ([host.to_string(), set, refusal.reason.label().to_owned()], refusal.count)
        };
        engine.refusals().map(refusal).collect()
    }

    /// What is not accepted at present, in words: of which host, which set, and why. By name, at
    /// most `max`.
    #[cfg(feature = "http")]
    pub(crate) fn refusal_texts(&self, max: usize) -> Vec<String> {
        let state = self.inner.sets.lock();
        let Some(engine) = state.protocol.mesh() else { return Vec::new() };
        let text = |(host, set, refusal): (&Name, Option<&Name>, &Refusal)| match set {
            Some(set) => format!("{set} of {host}: {}", refusal.reason),
            None => format!("{host}: {}", refusal.reason),
        };
        engine.refusals().take(max).map(text).collect()
    }

    /// This host's own state.
    #[must_use]
    pub fn status(&self) -> Status {
        let coverage = self.coverage();
        let state = self.inner.sets.lock();
        let counters = state.protocol.counters();
        let routing = state.protocol.overlay().map(|overlay| Routing::of(overlay, None));
        let engine = state.protocol.mesh();
        let links = self.inner.cluster.network.links();
        let failure = self.catalogue_failure();
        Status {
            routing,
            name: self.name().as_str().to_owned(),
            cluster: self.inner.settings.cluster.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            build: crate::build_info::text(),
            incarnation: self.inner.cluster.incarnation.0,
            uptime: seconds(self.inner.now()),
            ready: self.inner.lifecycle.is_ready(),
            complete: coverage.complete,
            hosts_known: coverage.hosts_known,
            hosts_expected: coverage.hosts_expected,
            missing_hosts: coverage.missing_hosts.iter().map(ToString::to_string).collect(),
            sets: state.protocol.sets().len() as u64,
            durable: self.inner.sets.is_durable(),
            writable: failure.is_none(),
            catalogue_failure: failure.map(|reason| reason.to_string()),
            messages: counters.messages,
            refused: counters.refused,
            not_accepted: engine.map_or(0, |engine| engine.refusals().count() as u64),
            replica_bytes: engine.map_or(0, Engine::replica_bytes_charged),
            replica_bytes_limit: engine.map_or(0, |engine| engine.config().replica_bytes),
            own_bytes: engine.map_or(0, Engine::own_bytes),
            gaps: counters.gaps,
            mismatches: counters.mismatches,
            updates_sent: counters.updates_sent,
            update_bytes_sent: counters.update_bytes_sent,
            page_bytes_sent: counters.page_bytes_sent,
            dropped: counters.dropped + self.inner.cluster.inbox.dropped(),
            name_taken: self.inner.cluster.name_taken(),
            links_opened: links.opened,
            links_reopened: links.reopened,
            waiting_for: links.waiting_for,
            watches: self.inner.watches.count(),
            watch_failures: self.inner.watches.failures(),
            failed_logins: self.inner.ports.access.counts().0,
        }
    }
}

impl HostInfo {
    /// A host that is not accepted at all.
    fn refused(name: &Name, reason: String) -> Self {
        Self {
            name: name.as_str().to_owned(),
            state: "refused",
            incarnation: 0,
            advertise: None,
            resp: None,
            http: None,
            sets: Vec::new(),
            epochs: Vec::new(),
            age: None,
            current: false,
            not_accepted: vec![reason],
        }
    }
}

fn describe_own(info: &mut SetInfo, home: &Home<HostCatalogue>) {
    let (filter, sent) = (home.filter(), home.sent());
    let (miss, ghost) = home.miss_and_ghost();
    let shape = filter.scheme().shape();
    info.own = true;
    info.items = home.catalogue().len();
    match home.rung() {
        Some(choice) => {
            info.capacity = home.plan().capacity;
            let takes = choice.filter_takes();
            info.takes = Some(takes);
            info.full = Some(info.items as f64 / takes.max(1) as f64);
            info.rung = Some(choice.filter_rung().exponent().into());
            info.published_rung = Some(choice.rung().exponent().into());
            info.expected_hosts = Some(choice.hosts().into());
        }
        None => {
            info.capacity = Some(filter.capacity());
            info.components = Some(filter.components().len() as u64);
        }
    }
    info.bits = Some(shape.bits());
    info.hashes = Some(shape.hashes().into());
    info.policy = Some(home.policy().to_string());
    let chains = home.plan().chains;
    info.false_positive =
        Some(chains.map_or(home.plan().false_positive, |promise| promise.over_estimate));
    info.loose = home.plan().is_loose();
    info.chain_step = chains.map(|promise| promise.step.into());
    info.estimated_false_positive = Some(home.published_false_positive());
    info.miss = Some(miss);
    info.ghost = Some(ghost);
    info.updates_sent = sent.updates;
    info.bytes_sent = sent.bytes;
    info.full_broadcast_bytes = sent.full_broadcast_bytes;
    info.rebuilds = home.rebuilds();
}

impl Routing {
    /// Routing of one set, or of all together.
    fn of(overlay: &Overlay<HostCatalogue>, set: Option<&Name>) -> Self {
        let (homes, counters) = match set.and_then(|set| overlay.routing(set)) {
            Some((homes, counters)) => (homes, counters),
            None => {
                let homes = overlay.known().into_iter().filter(|host| !host.sets.is_empty());
                (homes.map(|host| host.name).collect(), overlay.route_counters())
            }
        };
        let texts = |names: Vec<&Name>| names.iter().map(|name| name.as_str().to_owned()).collect();
        Self {
            overlay: agreement(&overlay.agreed_plan(set), overlay.is_measured()),
            links: texts(overlay.neighbours(false)),
            links_up: texts(overlay.neighbours(true)),
            homes: texts(homes),
            queries_asked: counters.asked,
            queries_not_found: counters.not_found,
            queries_answered: counters.answered,
            queries_given_up: counters.expired_queries,
            forwards: counters.claimed_forwards,
            wrong_forwards: counters.wrong_forwards,
            walk_forwards: counters.walk_forwards,
            filters_sent: counters.adverts_sent,
            filters_refused: counters.refused_filters,
        }
    }
}

/// Adds what is reported of a set in an overlay.
fn in_overlay(mut info: SetInfo, state: &State, set: &Name) -> SetInfo {
    // The promise over all hosts has no meaning here: the plan's rate is per link.
    (info.false_positive, info.expected_hosts) = (None, None);
    if let Some(overlay) = state.protocol.overlay() {
        let routing = Routing::of(overlay, Some(set));
        info.replicas = routing.homes.len() as u64;
        info.items_everywhere += overlay.items_in_range(set);
        info.replica_bytes = overlay.memory_bytes(set);
        info.routing = Some(routing);
    }
    info
}

/// Adds the other hosts that the overlay knows.
fn others_in_overlay(
    mut hosts: Vec<HostInfo>,
    state: &State,
    greetings: &Greetings,
) -> Vec<HostInfo> {
    let seen = state.protocol.overlay().map(Overlay::known).unwrap_or_default();
    hosts.extend(seen.into_iter().map(|host| {
        let hello = greetings.of(host.name);
        HostInfo {
            name: host.name.as_str().to_owned(),
            state: host.state,
            incarnation: host.incarnation.map_or(0, |life| life.0),
            advertise: hello.and_then(|hello| hello.advertise.clone()),
            resp: hello.and_then(|hello| hello.resp.clone()),
            http: hello.and_then(|hello| hello.http.clone()),
            sets: host.sets.iter().map(|(set, _)| set.as_str().to_owned()).collect(),
            epochs: host.sets.iter().map(|(_, epoch)| epoch.0).collect(),
            age: None,
            current: host.state != "down",
            not_accepted: Vec::new(),
        }
    }));
    hosts
}
