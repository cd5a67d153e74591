//! The one loop that drives a host: what happens goes into the engine, what the engine has to
//! say goes to the network.
//!
//! It sleeps until the engine's next timeout, the next key expires, or something happens.

mod looks;
mod names;

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use umbel::protocol::{Destination, Event, Transmit};
use umbel::replica::{Incarnation, Name};

use crate::hello::{Difference, Hello};
use crate::host::{Happened, Host, Inner, LOOK_EVERY, State};
use crate::introductions::Introductions;
use crate::network::{Happening, Happenings, Reply};
use crate::question::{Question, decode_hosts, encode_hosts, encode_life};
use crate::rivals::Rivals;

/// Happenings that are dealt with before anything is sent.
const BURST: usize = 64;
/// From one greeting to the next, on average, when nothing has changed.
const GREET_EVERY: Duration = Duration::from_secs(30);
/// From one greeting to the next at least: after a change, and for whoever is new.
const GREET_SOON: Duration = Duration::from_secs(3);
/// The same complaint is logged once in this time.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// How long a host may take to answer a question of the protocol. The same one is not sent again
/// meanwhile, so that a reply that is lost costs this long.
const ANSWER: Duration = Duration::from_secs(3);

/// A request to a host: to whom, and its bytes.
type Request = (Name, Vec<u8>);

pub(crate) struct Driver {
    inner: Arc<Inner>,
    next_greeting: Duration,
    last_greeting: Duration,
    /// As it was last sent.
    greeting: Vec<u8>,
    introductions: Introductions,
    /// When the hosts that should be known were last looked at.
    looked: Cell<Duration>,
    /// When all hosts had last said who they are, or were asked for it.
    asked_for_greetings: Cell<Duration>,
    /// Happenings that had been dropped by then.
    dropped: u64,
    rivals: Rivals,
    /// Later lives of neighbours that others spoke of.
    rumours: HashMap<Name, Incarnation>,
    /// Other lives of this host's own name that are seen.
    namesakes: BTreeSet<Incarnation>,
    /// When such a host was last looked for because one is seen.
    namesakes_tested: Duration,
    /// Whether another host of this one's name is being looked for.
    is_contested: Arc<AtomicBool>,
    /// Requests to hosts that have not been answered yet: they are not sent again meanwhile.
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
    pub(crate) fn run(mut self, happenings: &Happenings) {
        self.looked.set(self.inner.now());
        while !self.inner.lifecycle.is_stopping() {
            let wait = self.sleep_until().saturating_sub(self.inner.now());
            let first = happenings.wait(wait);
            self.notice_stop();
            match first {
                Ok(first) => {
                    self.handle(first);
                    happenings.waiting().take(BURST).for_each(|next| self.handle(next));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tick();
        }
    }

    /// When there is something to do although nothing happens. Whoever changes the state in
    /// a way that cannot wait so long wakes us.
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

    fn handle(&mut self, happening: Happening) {
        let now = self.inner.now();
        match happening {
            Happening::Said { from, bytes } => {
                self.inner.sets.lock().protocol.handle_message(now, &from, &bytes);
            }
            Happening::Asked { from, bytes, reply } => self.answer(&from, &bytes, reply),
            Happening::Greeted { bytes } => self.greeted(&bytes),
            Happening::Alive { host, incarnation } => {
                if host == self.inner.settings.name {
                    return self.namesake_appeared(incarnation);
                }
                match self.held_against(&host, incarnation) {
                    Some(held) => self.test_rival(&host, held, incarnation),
                    None => self.believe(host, incarnation),
                }
            }
            Happening::Gone { host, incarnation } => {
                if host == self.inner.settings.name {
                    self.namesakes.remove(&incarnation);
                    return;
                }
                let mut state = self.inner.sets.lock();
                // Another life of its name says nothing about the one that is believed.
                if state.protocol.live_of(&host).is_none_or(|live| live == incarnation) {
                    state.protocol.handle_gone(now, &host, incarnation);
                }
                drop(state);
                if let Some(life) = self.rivals.gone(&host, incarnation) {
                    self.believe(host, life);
                }
            }
            Happening::Tested { host, greetings } => self.decide(&host, &greetings),
            Happening::Excluded { host } => {
                self.inner.sets.lock().protocol.handle_excluded(now, &host);
            }
            Happening::Unexpected { host } => {
                self.inner.sets.lock().protocol.handle_unexpected(&host);
            }
            Happening::Hosts { from, hosts } => self.learn_hosts(&from, &hosts),
            Happening::LinkReopened { host } => {
                let host = host.as_str().to_owned();
                let _ = self.inner.events.send(Happened::LinkReopened { host });
            }
            Happening::Woken => {}
        }
    }

    /// Exchanges greetings with a host that has just appeared. One of the two does: everybody
    /// else hears the next one in its time.
    fn introduce(&self, host: Name) {
        if self.inner.settings.name < host {
            self.ask_greeting(host);
        }
    }

    /// Asks a host who it is, and tells it who this one is.
    fn ask_greeting(&self, host: Name) {
        let cluster = &self.inner.cluster;
        let (network, inbox) = (Arc::clone(&cluster.network), cluster.inbox.clone());
        let own = Question::Hello(&cluster.greetings().own().encode()).encode();
        self.inner.lifecycle.runtime.spawn(async move {
            let answer = network.ask(&host, own, ANSWER).await;
            let is_its = |bytes: &Vec<u8>| {
                Hello::decode(bytes).is_some_and(|hello| hello.name == host.as_str())
            };
            if let Some(bytes) = answer.filter(is_its) {
                inbox.put(Happening::Greeted { bytes });
            }
        });
    }

    fn answer(&mut self, from: &Name, bytes: &[u8], reply: Reply) {
        match Question::decode(bytes) {
            Some(Question::Protocol(bytes)) => {
                let mut state = self.inner.sets.lock();
                // Pages: neighbours of an overlay ask for none.
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
            Some(Question::Holds { set, keys }) if self.inner.sets.asks_its_cache(set) => {
                let host = Host { inner: Arc::clone(&self.inner) };
                let set = set.to_owned();
                let keys: Vec<Vec<u8>> = keys.into_iter().map(<[u8]>::to_vec).collect();
                self.inner.lifecycle.runtime.spawn(async move {
                    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                    reply.send(host.holds(&set, &keys).await);
                });
            }
            Some(Question::Holds { set, keys }) => reply.send(self.inner.sets.holds(set, &keys)),
            Some(Question::Life { of }) => {
                let state = self.inner.sets.lock();
                let life = state.protocol.incarnation_of(&of);
                let is_seen = state.protocol.live_of(&of).is_some();
                drop(state);
                // This host's own name: another one asks.
                let is_own = of == self.inner.settings.name && *from == of;
                let life = if is_own { Some(self.inner.cluster.incarnation) } else { life };
                reply.send(encode_life(life, is_seen || is_own));
            }
            Some(Question::Hello(greeting)) => {
                if Hello::decode(greeting).is_some_and(|hello| hello.name == from.as_str()) {
                    self.greeted(greeting);
                }
                reply.send(self.inner.cluster.greetings().own().encode());
            }
            Some(Question::Holder { of }) => self.name_holder(of, reply),
            Some(Question::NameHeld { life, address }) => {
                reply.send(Vec::new());
                if life != self.inner.cluster.incarnation {
                    self.name_taken();
                    if let Some(address) = address {
                        self.inner.cluster.network.learn(&self.inner.settings.name, address);
                    }
                    self.look_for_namesake();
                }
            }
            Some(Question::Hosts) => {
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
                let most = self.inner.settings.limits.hosts;
                self.inner.cluster.greetings().refuse(name, &difference, most);
            }
            return self.complain(format!("host '{}' is refused: {difference}", hello.name));
        }
        let life = Incarnation(hello.incarnation);
        let held = self.inner.sets.lock().protocol.live_of(&name);
        if let Some(held) = held.filter(|held| *held != life) {
            self.test_rival(&name, held, life);
            if self.rivals.is_refused(&name, life) {
                return;
            }
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

    /// Greets everybody in reach, if it is time to.
    fn greet(&mut self, now: Duration) {
        if now < self.next_greeting {
            return;
        }
        let hello = self.inner.cluster.greetings().own().encode();
        // Hosts that started together do not greet together.
        let share = f64::from(now.subsec_nanos() % 1000) / 1000.0;
        // What is new is said twice: a greeting may be lost.
        let every = if hello == self.greeting { GREET_EVERY } else { GREET_SOON };
        self.next_greeting = now + every.mul_f64(0.8 + 0.4 * share);
        self.last_greeting = now;
        self.greeting.clone_from(&hello);
        self.inner.cluster.network.greet(hello);
    }

    /// Greets before it is time to: somebody does not know this host, or not as it is now.
    fn greet_soon(&mut self) {
        self.next_greeting = self.next_greeting.min(self.last_greeting + GREET_SOON);
    }

    /// Asks a host that knows others which ones, and links up with those.
    fn ask_for_hosts(&mut self, now: Duration) {
        if now < self.introductions.next() {
            return;
        }
        let different = self.inner.cluster.greetings().knowing_others();
        let Some(host) = self.introductions.due(now, &different) else { return };
        let cluster = &self.inner.cluster;
        let (network, inbox) = (Arc::clone(&cluster.network), cluster.inbox.clone());
        self.inner.lifecycle.runtime.spawn(async move {
            let answer = network.ask(&host, Question::Hosts.encode(), ANSWER).await;
            if let Some(hosts) = answer.and_then(|bytes| decode_hosts(&bytes)) {
                inbox.put(Happening::Hosts { from: host, hosts });
            }
        });
    }

    /// A host said which others it knows.
    fn learn_hosts(&self, from: &Name, hosts: &[(Name, SocketAddr)]) {
        let cluster = &self.inner.cluster;
        hosts.iter().for_each(|(host, address)| cluster.network.learn(host, *address));
        cluster.greetings().list(from, hosts, self.inner.settings.limits.hosts);
    }

    /// The life of a host that is believed instead of this one. Where nobody is seen, a later life that
    /// was: this one may be what is left of an earlier one.
    fn held_against(&self, host: &Name, life: Incarnation) -> Option<Incarnation> {
        let state = self.inner.sets.lock();
        let live = state.protocol.live_of(host);
        // Of an overlay's hosts others speak, truly or not.
        let is_mesh = state.protocol.mesh().is_some();
        let latest = state.protocol.incarnation_of(host).filter(|latest| is_mesh && *latest > life);
        live.or(latest).filter(|held| *held != life)
    }

    /// A life of a host is the one to be believed from now on.
    fn believe(&self, host: Name, life: Incarnation) {
        self.inner.sets.lock().protocol.handle_alive(self.inner.now(), &host, life);
        self.introduce(host);
    }

    /// Lets time pass, sends what there is to send, and tells what there is to tell.
    fn tick(&mut self) {
        let now = self.inner.now();
        let mut is_polled = false;
        let turns = self.inner.sets.long_turns(now);
        let (transmits, events) = {
            let mut state = self.inner.sets.lock();
            if now >= state.protocol.poll_timeout() {
                // Whose replicas are about to go is missing before they do.
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
        events.into_iter().for_each(|event| self.tell(event));
        self.greet(now);
        self.ask_for_hosts(now);
        self.test_names(now);
    }

    /// Counts lookups that came too early for what an update brought, and reports them.
    fn recheck_lookups(&self, set: &Name, home: &Name, since: Duration) {
        let lookups = self.inner.sets.recheck_lookups(set, home, since);
        if lookups > 0 {
            let (set, host) = (set.as_str().to_owned(), home.as_str().to_owned());
            let _ = self.inner.events.send(Happened::LateLookups { set, host, lookups });
        }
    }

    /// Brings the directory of sets up to date: the sets that were updated, or all of them where
    /// an event does not say which.
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
            Destination::All => self.inner.cluster.network.say(bytes),
            Destination::Neighbour(host) => self.inner.cluster.network.tell(&host, bytes),
            Destination::Host(host) => {
                let (network, inbox) =
                    (Arc::clone(&self.inner.cluster.network), self.inner.cluster.inbox.clone());
                let question = Question::Protocol(&bytes).encode();
                let request = (host.clone(), bytes);
                if !self.under_way.lock().insert(request.clone()) {
                    return;
                }
                let under_way = Arc::clone(&self.under_way);
                self.inner.lifecycle.runtime.spawn(async move {
                    let answer = network.ask(&host, question, ANSWER).await;
                    under_way.lock().remove(&request);
                    if let Some(bytes) = answer {
                        inbox.put(Happening::Said { from: host, bytes });
                    }
                });
            }
            // Whoever asked is gone, or asks again.
            Destination::Reply(_) => {}
        }
    }

    fn tell(&mut self, event: Event) {
        if let Some(happened) = happened(&event) {
            // Nobody need listen.
            let _ = self.inner.events.send(happened);
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

    /// Logs, unless the same was logged a moment ago.
    fn complain(&mut self, text: String) {
        let now = Instant::now();
        self.complaints.retain(|_, at| now.duration_since(*at) < COMPLAIN_EVERY);
        if let Entry::Vacant(new) = self.complaints.entry(text) {
            tracing::warn!("{}", new.key());
            new.insert(now);
        }
    }
}

/// An event of the protocol, for whoever listens; refusals are for the log.
fn happened(event: &Event) -> Option<Happened> {
    let text = |name: &Name| name.as_str().to_owned();
    Some(match event {
        Event::Up(host) => Happened::HostUp { host: text(host) },
        Event::Suspected(host) => Happened::HostSuspected { host: text(host) },
        Event::Down(host) => Happened::HostDown { host: text(host) },
        Event::Published { set, epoch, bytes } => {
            Happened::UpdateSent { set: text(set), epoch: epoch.0, bytes: *bytes }
        }
        Event::Updated { set, home, epoch, .. } => {
            Happened::UpdateReceived { set: text(set), host: text(home), epoch: epoch.0 }
        }
        Event::Broken(set) => Happened::TargetBroken { set: text(set) },
        Event::Reshaped(set) => Happened::Rebuilt { set: text(set) },
        Event::NameTaken => Happened::NameTaken {},
        _ => return None,
    })
}
