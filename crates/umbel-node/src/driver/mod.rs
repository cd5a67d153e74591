//! The main loop of a host: passes events to the protocol, and its messages to the network.
//!
//! It sleeps until the protocol's next timeout, until the next key expires, or until an event
//! arrives.

mod looks;
mod names;

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use umbel::protocol::{Destination, Event, Transmit};
use umbel::replica::{Incarnation, Name};

use crate::hello::{Difference, Hello};
use crate::host::{Host, HostEvent, Inner, LOOK_EVERY, State};
use crate::introductions::Introductions;
use crate::network::{NetworkEvent, NetworkEvents, Reply};
use crate::peer_request::{PeerRequest, decode_hosts, encode_hosts, encode_life};
use crate::rivals::Rivals;

/// Maximum number of events that are handled before anything is sent.
const BURST: usize = 64;
/// Maximum time for which events are handled before anything is sent.
const BURST_TIME: Duration = Duration::from_millis(50);
/// Average interval between two greetings when nothing has changed.
const GREET_EVERY: Duration = Duration::from_secs(30);
/// Minimum interval between two greetings: after a change, or for a new host.
const GREET_SOON: Duration = Duration::from_secs(3);
/// The same warning is logged at most once in this time.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// How long a host may take to reply to a request of the protocol. The same request is not repeated
/// meanwhile, so a lost reply costs this much time.
const ANSWER: Duration = Duration::from_secs(3);

/// A request: the receiver and the bytes.
type Request = (Name, Vec<u8>);

pub(crate) struct Driver {
    inner: Arc<Inner>,
    next_greeting: Duration,
    last_greeting: Duration,
    /// The greeting that was sent last.
    greeting: Vec<u8>,
    introductions: Introductions,
    /// When the coverage was last computed.
    looked: Cell<Duration>,
    /// When all hosts had last greeted this one, or were asked to.
    asked_for_greetings: Cell<Duration>,
    /// The number of dropped events at that time.
    dropped: u64,
    rivals: Rivals,
    /// Later incarnations of neighbours that other hosts reported.
    rumours: HashMap<Name, Incarnation>,
    /// Other incarnations of this host's own name that are seen.
    namesakes: BTreeSet<Incarnation>,
    /// When such a host was last searched for because one is seen.
    namesakes_tested: Duration,
    /// Whether a search for another host of this name is running.
    is_contested: Arc<AtomicBool>,
    /// Requests that have not been answered yet: they are not repeated meanwhile.
    under_way: Arc<Mutex<HashSet<Request>>>,
    complaints: HashMap<String, Instant>,
}

impl Driver {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        let introductions = Introductions::new(inner.cluster.incarnation.0);
        Self {
            inner,
            next_greeting: Duration::ZERO,
            last_greeting: Duration::ZERO,
            greeting: Vec::new(),
            introductions,
            looked: Cell::new(Duration::ZERO),
            asked_for_greetings: Cell::new(Duration::ZERO),
            dropped: 0,
            rivals: Rivals::default(),
            rumours: HashMap::new(),
            namesakes: BTreeSet::new(),
            namesakes_tested: Duration::ZERO,
            is_contested: Arc::default(),
            under_way: Arc::default(),
            complaints: HashMap::new(),
        }
    }

    /// Runs until the host stops.
    pub(crate) fn run(mut self, events: &NetworkEvents) {
        self.looked.set(self.inner.now());
        while !self.inner.lifecycle.is_stopping() {
            let wait = self.sleep_until().saturating_sub(self.inner.now());
            let first = events.wait(wait);
            self.notice_stop();
            if let Some(first) = first {
                self.handle_burst(first, events);
            }
            self.tick();
        }
    }

    /// Handles an event, and those that are queued already: some of them, so that messages are sent
    /// and timeouts handled however many arrive, and however long each takes.
    fn handle_burst(&mut self, first: NetworkEvent, events: &NetworkEvents) {
        let start = Instant::now();
        self.handle(first);
        for _ in 0..BURST {
            if start.elapsed() >= BURST_TIME {
                break;
            }
            let Some(next) = events.next_waiting() else { break };
            self.handle(next);
        }
    }

    /// When there is work to do even if no event arrives. A change that cannot wait so long wakes
    /// the driver.
    fn sleep_until(&self) -> Duration {
        let sets = &self.inner.sets;
        self.inner.cluster.clear_wake();
        sets.set_sleeping_until(Duration::MAX);
        let expiry = sets.expire().unwrap_or(Duration::MAX);
        let asking = self.introductions.next();
        let timeout = sets.lock().protocol.poll_timeout();
        let look = self.looked.get() + LOOK_EVERY;
        let names = self.next_name_test();
        let until = timeout.min(self.next_greeting).min(expiry).min(asking).min(look).min(names);
        sets.set_sleeping_until(until);
        until
    }

    fn handle(&mut self, event: NetworkEvent) {
        let now = self.inner.now();
        match event {
            NetworkEvent::Message { from, bytes } => {
                self.inner.sets.lock().protocol.handle_message(now, &from, &bytes);
            }
            NetworkEvent::Request { from, bytes, reply } => self.answer(&from, &bytes, reply),
            NetworkEvent::Greeting { bytes } => self.greeted(&bytes),
            NetworkEvent::Alive { host, incarnation } => {
                if host == self.inner.settings.name {
                    return self.namesake_appeared(incarnation);
                }
                match self.held_against(&host, incarnation) {
                    Some(held) => self.test_rival(&host, held, incarnation),
                    None => {
                        self.rivals.returned(now, &host, incarnation);
                        self.believe(host, incarnation);
                    }
                }
            }
            NetworkEvent::Gone { host, incarnation } => {
                if host == self.inner.settings.name {
                    self.namesakes.remove(&incarnation);
                    return;
                }
                let mut state = self.inner.sets.lock();
                // Ignore incarnations of this name other than the accepted one.
                if state.protocol.live_of(&host).is_none_or(|live| live == incarnation) {
                    state.protocol.handle_gone(now, &host, incarnation);
                }
                let has_vanished = state.protocol.vanished(now, &host) == Some(incarnation);
                drop(state);
                self.replace_gone(host, incarnation, has_vanished);
            }
            NetworkEvent::Tested { host, greetings, refused } => {
                self.decide(&host, &greetings, refused);
            }
            NetworkEvent::Excluded { host } => {
                self.inner.sets.lock().protocol.handle_excluded(now, &host);
            }
            NetworkEvent::Unexpected { host } => {
                self.inner.sets.lock().protocol.handle_unexpected(&host);
            }
            NetworkEvent::Hosts { from, hosts } => self.learn_hosts(&from, &hosts),
            NetworkEvent::LinkReopened { host } => {
                let host = host.as_str().to_owned();
                let _ = self.inner.events.send(HostEvent::LinkReopened { host });
            }
            NetworkEvent::Woken => {}
        }
    }

    /// Exchanges greetings with a host that has just appeared. Only one of the two hosts starts it:
    /// all others receive the next regular greeting.
    fn introduce(&self, host: Name) {
        if self.inner.settings.name < host {
            self.ask_greeting(host);
        }
    }

    /// Asks a host for its greeting, and sends it this host's.
    fn ask_greeting(&self, host: Name) {
        let cluster = &self.inner.cluster;
        let (network, inbox) = (Arc::clone(&cluster.network), cluster.inbox.clone());
        let own = PeerRequest::Hello(&cluster.greetings().own().encode()).encode();
        self.inner.lifecycle.runtime.spawn(async move {
            let answer = network.ask(&host, own, ANSWER).await;
            let is_its = |bytes: &Vec<u8>| {
                Hello::decode(bytes).is_some_and(|hello| hello.name == host.as_str())
            };
            if let Some(bytes) = answer.filter(is_its) {
                inbox.put(NetworkEvent::Greeting { bytes });
            }
        });
    }

    fn answer(&mut self, from: &Name, bytes: &[u8], reply: Reply) {
        match PeerRequest::decode(bytes) {
            Some(PeerRequest::Protocol(bytes)) => {
                let mut state = self.inner.sets.lock();
                // These are requests for pages: neighbours of an overlay send none.
                if state.protocol.overlay().is_some() {
                    return;
                }
                state.protocol.handle_message(self.inner.now(), from, bytes);
                let mut reply = Some(reply);
                let transmits: Vec<Transmit> =
                    std::iter::from_fn(|| state.protocol.poll_transmit()).collect();
                drop(state);
                for Transmit { to, bytes } in transmits {
                    match to {
                        Destination::Reply(host) if host == *from => {
                            if let Some(reply) = reply.take() {
                                reply.send(bytes);
                            }
                        }
                        to => self.transmit(to, bytes),
                    }
                }
            }
            Some(PeerRequest::Holds { set, keys }) if self.inner.sets.asks_its_cache(set) => {
                let host = Host { inner: Arc::clone(&self.inner) };
                let set = set.to_owned();
                let keys: Vec<Vec<u8>> = keys.into_iter().map(<[u8]>::to_vec).collect();
                self.inner.lifecycle.runtime.spawn(async move {
                    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                    reply.send(host.holds(&set, &keys).await);
                });
            }
            Some(PeerRequest::Holds { set, keys }) => reply.send(self.inner.sets.holds(set, &keys)),
            #[cfg(feature = "http")]
            Some(PeerRequest::Object { set, key, transfer, offset }) => {
                let host = Host { inner: Arc::clone(&self.inner) };
                let (set, key, id) = (set.to_owned(), key.to_vec(), (from.clone(), transfer));
                self.inner.lifecycle.runtime.spawn(async move {
                    reply.send(host.object_piece(id, &set, &key, offset).await.encode());
                });
            }
            #[cfg(not(feature = "http"))]
            Some(PeerRequest::Object { .. }) => {}
            Some(PeerRequest::Life { of }) => {
                let state = self.inner.sets.lock();
                let life = state.protocol.incarnation_of(&of);
                let is_seen = state.protocol.live_of(&of).is_some();
                drop(state);
                // This host's own name: another host of that name asks.
                let is_own = of == self.inner.settings.name && *from == of;
                let life = if is_own { Some(self.inner.cluster.incarnation) } else { life };
                reply.send(encode_life(life, is_seen || is_own));
            }
            Some(PeerRequest::Hello(greeting)) => {
                if Hello::decode(greeting).is_some_and(|hello| hello.name == from.as_str()) {
                    self.greeted(greeting);
                }
                reply.send(self.inner.cluster.greetings().own().encode());
            }
            Some(PeerRequest::Holder { of }) => self.name_holder(of, reply),
            Some(PeerRequest::NameHeld { life, address }) => {
                reply.send(Vec::new());
                if life != self.inner.cluster.incarnation {
                    self.name_taken();
                    if let Some(address) = address {
                        self.inner.cluster.network.learn(&self.inner.settings.name, address);
                    }
                    self.look_for_namesake();
                }
            }
            Some(PeerRequest::Hosts) => {
                let hosts = encode_hosts(self.inner.cluster.greetings().hosts().into_iter());
                reply.send(hosts);
            }
            None => tracing::debug!(%from, "a question that is not to be understood"),
        }
    }

    fn greeted(&mut self, bytes: &[u8]) {
        let Some(hello) = Hello::decode(bytes) else {
            return self.complain("a host in reach says something that is no greeting".into());
        };
        let own = self.inner.cluster.greetings().own().clone();
        if hello.name == own.name && hello.cluster == own.cluster {
            if hello.incarnation != own.incarnation {
                self.greet_soon();
                self.name_taken();
                self.look_for_namesake();
            }
            return;
        }
        let difference = own.differs_from(&hello);
        let Some(name) = Name::new(&hello.name) else { return };
        if hello.cluster == self.inner.settings.cluster.as_str() {
            let mut state = self.inner.sets.lock();
            state.protocol.handle_greeting(self.inner.now(), &name, difference.is_none());
        }
        if let Some(difference) = difference {
            self.greet_soon();
            if !matches!(difference, Difference::Cluster(..)) {
                let max = self.inner.settings.limits.hosts;
                self.inner.cluster.greetings().refuse(name, &difference, max);
            }
            return self.complain(format!("host '{}' is refused: {difference}", hello.name));
        }
        let life = Incarnation(hello.incarnation);
        let held = {
            let state = self.inner.sets.lock();
            let vanished = || state.protocol.vanished(self.inner.now(), &name);
            state.protocol.live_of(&name).or_else(vanished)
        };
        if let Some(held) = held.filter(|held| *held != life) {
            return self.test_rival(&name, held, life);
        }
        if let Some(address) = hello.listens() {
            self.inner.cluster.network.learn(&name, address);
        }
        let mut greetings = self.inner.cluster.greetings();
        if greetings.has_room_for(&name, self.inner.settings.limits.hosts) {
            greetings.insert(name, hello);
        }
        let is_different = !greetings.knowing_others().is_empty();
        let hosts = greetings.own().hosts.clone();
        drop(greetings);
        self.introductions.heard(self.inner.now(), hosts.as_deref(), is_different);
        if hosts != own.hosts {
            self.greet_soon();
        }
    }

    /// Greets all hosts in reach, if it is time to.
    fn greet(&mut self, now: Duration) {
        if now < self.next_greeting {
            return;
        }
        let hello = self.inner.cluster.greetings().own().encode();
        // Random intervals: hosts that started together do not greet together.
        let share = f64::from(now.subsec_nanos() % 1000) / 1000.0;
        // A changed greeting is sent twice, because one may be lost.
        let every = if hello == self.greeting { GREET_EVERY } else { GREET_SOON };
        self.next_greeting = now + every.mul_f64(0.8 + 0.4 * share);
        self.last_greeting = now;
        self.greeting.clone_from(&hello);
        self.inner.cluster.network.greet(hello);
    }

    /// Greets earlier: another host does not know this one, or not its current greeting.
    fn greet_soon(&mut self) {
        self.next_greeting = self.next_greeting.min(self.last_greeting + GREET_SOON);
    }

    /// Asks a host that knows other hosts for its list, and connects to those.
    fn ask_for_hosts(&mut self, now: Duration) {
        if now < self.introductions.next() {
            return;
        }
        let different = self.inner.cluster.greetings().knowing_others();
        let Some(host) = self.introductions.due(now, &different) else { return };
        let cluster = &self.inner.cluster;
        let (network, inbox) = (Arc::clone(&cluster.network), cluster.inbox.clone());
        self.inner.lifecycle.runtime.spawn(async move {
            let answer = network.ask(&host, PeerRequest::Hosts.encode(), ANSWER).await;
            if let Some(hosts) = answer.and_then(|bytes| decode_hosts(&bytes)) {
                inbox.put(NetworkEvent::Hosts { from: host, hosts });
            }
        });
    }

    /// Handles a host's list of the hosts that it knows.
    fn learn_hosts(&self, from: &Name, hosts: &[(Name, SocketAddr)]) {
        let cluster = &self.inner.cluster;
        hosts.iter().for_each(|(host, address)| cluster.network.learn(host, *address));
        cluster.greetings().list(from, hosts, self.inner.settings.limits.hosts);
    }

    /// The incarnation of a host that is accepted instead of `life`, if there is one: the one that
    /// is seen, or that vanished a moment ago. Otherwise a later one that was seen counts: `life`
    /// may be a remnant of an earlier one.
    fn held_against(&self, host: &Name, life: Incarnation) -> Option<Incarnation> {
        let state = self.inner.sets.lock();
        let vanished = || state.protocol.vanished(self.inner.now(), host);
        let live = state.protocol.live_of(host).or_else(vanished);
        // In an overlay, incarnations are also reported by other hosts, correctly or not.
        let is_mesh = state.protocol.mesh().is_some();
        let latest = state.protocol.incarnation_of(host).filter(|latest| is_mesh && *latest > life);
        live.or(latest).filter(|held| *held != life)
    }

    /// Accepts an incarnation of a host from now on.
    fn believe(&self, host: Name, life: Incarnation) {
        self.inner.sets.lock().protocol.handle_alive(self.inner.now(), &host, life);
        self.introduce(host);
    }

    /// Handles timeouts, sends messages, and reports events.
    fn tick(&mut self) {
        let now = self.inner.now();
        let mut is_polled = false;
        let turns = self.inner.sets.long_turns(now);
        let (transmits, events) = {
            let mut state = self.inner.sets.lock();
            if now >= state.protocol.poll_timeout() {
                // A host whose replicas are about to be dropped must be reported missing before
                // that.
                self.look(&state, now);
                state.protocol.handle_timeout(now);
                self.inner.sets.offer_updates(&mut state);
                is_polled = true;
            }
            let transmits: Vec<Transmit> =
                std::iter::from_fn(|| state.protocol.poll_transmit()).collect();
            let events = state.take_events();
            self.refresh_directory(&state, &events);
            self.look_if_due(&state, now, &events);
            (transmits, events)
        };
        transmits.into_iter().for_each(|Transmit { to, bytes }| self.transmit(to, bytes));
        drop(turns);
        if is_polled {
            self.inner.sets.offer_builds();
        }
        for event in &events {
            match event {
                Event::Reshaped(set) => self.inner.sets.record(set),
                Event::Updated { set, home, since, .. } => {
                    self.recheck_lookups(set, home, *since);
                }
                _ => {}
            }
        }
        events.into_iter().for_each(|event| self.emit(event));
        self.greet(now);
        self.ask_for_hosts(now);
        self.test_names(now);
    }

    /// Counts and reports lookups that came too early: before this update arrived.
    fn recheck_lookups(&self, set: &Name, home: &Name, since: Duration) {
        let lookups = self.inner.sets.recheck_lookups(set, home, since);
        if lookups > 0 {
            let (set, host) = (set.as_str().to_owned(), home.as_str().to_owned());
            let share = self.inner.sets.late_share(&set).unwrap_or_default();
            let event = HostEvent::LateLookups { set, host, lookups, share };
            let _ = self.inner.events.send(event);
        }
    }

    /// Updates the directory of sets: for the sets that were updated, or for all sets if an event
    /// does not name one.
    fn refresh_directory(&self, state: &State, events: &[Event]) {
        let sets = &self.inner.sets;
        let outdated: Vec<&Event> =
            events.iter().filter(|event| sets.is_outdated_by(state, event)).collect();
        let names = outdated.iter().map(|event| match event {
            Event::Updated { set, .. } => Some(set),
            _ => None,
        });
        match names.collect::<Option<Vec<_>>>() {
            Some(names) => sets.refresh_sets(state, names),
            None => sets.refresh_directory(state),
        }
    }

    fn transmit(&self, to: Destination, bytes: Vec<u8>) {
        match to {
            Destination::All => self.inner.cluster.network.publish_to_all(bytes),
            Destination::Neighbour(host) => self.inner.cluster.network.send_to(&host, bytes),
            Destination::Host(host) => {
                let (network, inbox) =
                    (Arc::clone(&self.inner.cluster.network), self.inner.cluster.inbox.clone());
                let peer_request = PeerRequest::Protocol(&bytes).encode();
                let request = (host.clone(), bytes);
                if !self.under_way.lock().insert(request.clone()) {
                    return;
                }
                let under_way = Arc::clone(&self.under_way);
                self.inner.lifecycle.runtime.spawn(async move {
                    let answer = network.ask(&host, peer_request, ANSWER).await;
                    under_way.lock().remove(&request);
                    if let Some(bytes) = answer {
                        inbox.put(NetworkEvent::Message { from: host, bytes });
                    }
                });
            }
            // The host that sent the request is gone, or will repeat it.
            Destination::Reply(_) => {}
        }
    }

    fn emit(&mut self, event: Event) {
        if let Some(host_event) = host_event(&event) {
            // There may be no subscriber.
            let _ = self.inner.events.send(host_event);
        }
        match event {
            Event::Up(host) => tracing::info!(%host, "host is up"),
            Event::Suspected(host) => tracing::info!(%host, "host disappeared"),
            Event::Down(host) => {
                tracing::info!(%host, "host is gone: its replicas answer no more");
                self.inner.cluster.greetings().remove(&host);
            }
            Event::Updated { set, home, epoch, .. } => {
                tracing::debug!(%set, %home, epoch = epoch.0, "replica updated");
            }
            Event::Reshaped(set) => {
                tracing::debug!(%set, "the set stands on another rung");
            }
            Event::Refused { from, reason } => {
                self.complain(format!("a message of host '{from}' is refused: {reason}"));
            }
            Event::NameTaken => self.name_taken(),
            Event::Namesake { host, life } => self.check_rumour(host, life),
            Event::LinkUp(host) => tracing::info!(%host, "link is up"),
            Event::LinkDown(host) => tracing::info!(%host, "link is down"),
            Event::Replanned { set, items, filters } => {
                tracing::info!(%set, items, filters, "the overlay agreed on another plan");
            }
            event => tracing::debug!(?event),
        }
    }

    /// Logs a warning, unless the same one was logged a moment ago.
    fn complain(&mut self, text: String) {
        let now = Instant::now();
        self.complaints.retain(|_, at| now.duration_since(*at) < COMPLAIN_EVERY);
        if let Entry::Vacant(new) = self.complaints.entry(text) {
            tracing::warn!("{}", new.key());
            new.insert(now);
        }
    }
}

/// The event for subscribers; refusals are only logged.
fn host_event(event: &Event) -> Option<HostEvent> {
    let text = |name: &Name| name.as_str().to_owned();
    Some(match event {
        Event::Up(host) => HostEvent::HostUp { host: text(host) },
        Event::Suspected(host) => HostEvent::HostSuspected { host: text(host) },
        Event::Down(host) => HostEvent::HostDown { host: text(host) },
        Event::Published { set, epoch, bytes } => {
            HostEvent::UpdateSent { set: text(set), epoch: epoch.0, bytes: *bytes }
        }
        Event::Updated { set, home, epoch, .. } => {
            HostEvent::UpdateReceived { set: text(set), host: text(home), epoch: epoch.0 }
        }
        Event::Broken(set) => HostEvent::TargetBroken { set: text(set) },
        Event::Reshaped(set) => HostEvent::Rebuilt { set: text(set) },
        Event::NameTaken => HostEvent::NameTaken {},
        _ => return None,
    })
}
