//! Several hosts of one name: which one is asked whether it still replies, which is refused, and
//! which stops. The rules are in `rivals`.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpStream;
use umbel::replica::{Incarnation, Name};

use super::{ANSWER, Driver};
use crate::hello::Hello;
use crate::host::Host;
use crate::network::{NetworkEvent, Reply};
use crate::peer_request::{PeerRequest, decode_life};
use crate::rivals::{self, MAX_LIVES, Presence, TEST_EVERY, Verdict};

/// How often to search for another host of this host's name, and the pause in between.
const NAMESAKE_TRIES: usize = 6;
const NAMESAKE_PAUSE: Duration = Duration::from_secs(1);
/// How long a connection to the address of a host that vanished may take.
const CONNECTION: Duration = Duration::from_millis(500);

impl Driver {
    /// Another incarnation of a host is seen than the accepted one, or the last one: both are
    /// tested.
    pub(super) fn test_rival(&mut self, host: &Name, held: Incarnation, life: Incarnation) {
        self.rivals.appeared(self.inner.now(), host, held, life);
        self.inner.cluster.set_contested(self.rivals.names());
    }

    /// An incarnation of a host is gone. Another one that is seen may take its place.
    pub(super) fn replace_gone(&mut self, host: Name, life: Incarnation, has_vanished: bool) {
        let now = self.inner.now();
        if let Some(next) = self.rivals.gone(now, &host, life, has_vanished) {
            self.inner.sets.lock().protocol.handle_replied(now, &host, next);
            self.introduce(host);
        }
        self.inner.cluster.set_contested(self.rivals.names());
    }

    /// Asks all hosts of the names that are due for a test, and searches for other hosts of this
    /// host's name while one is seen.
    pub(super) fn test_names(&mut self, now: Duration) {
        for host in self.rivals.due(now) {
            let cluster = &self.inner.cluster;
            let (network, inbox) = (Arc::clone(&cluster.network), cluster.inbox.clone());
            let hello = PeerRequest::Hello(&cluster.greetings().own().encode()).encode();
            let vanished = self.inner.sets.lock().protocol.vanished(now, &host);
            let address = vanished.and_then(|life| self.address_of(&host, life));
            self.inner.lifecycle.runtime.spawn(async move {
                let asked = network.ask_lives(&host, hello, ANSWER);
                let (greetings, is_refused) = tokio::join!(asked, refuses_connections(address));
                let refused = vanished.filter(|_| is_refused);
                inbox.put(NetworkEvent::Tested { host, greetings, refused });
            });
        }
        if !self.namesakes.is_empty() && now >= self.namesakes_tested + TEST_EVERY {
            self.namesakes_tested = now;
            self.look_for_namesake();
        }
    }

    /// The address at which an incarnation of a host listens, if its greeting named one. A loopback
    /// address belongs to another machine, unless this host listens on loopback too.
    fn address_of(&self, host: &Name, life: Incarnation) -> Option<SocketAddr> {
        let greetings = self.inner.cluster.greetings();
        let hello = greetings.of(host).filter(|hello| hello.incarnation == life.0);
        let is_here = greetings.own().listens().is_some_and(|own| own.ip().is_loopback());
        hello.and_then(Hello::listens).filter(|address| is_here || !address.ip().is_loopback())
    }

    /// When the next test of a name is due.
    pub(super) fn next_name_test(&self) -> Duration {
        let own = self.namesakes_tested + TEST_EVERY;
        if self.namesakes.is_empty() { self.rivals.next() } else { own.min(self.rivals.next()) }
    }

    /// Another incarnation of this host's own name is seen: another host, or a remnant of this
    /// host's previous life.
    pub(super) fn namesake_appeared(&mut self, life: Incarnation) {
        if life != self.inner.cluster.incarnation && self.namesakes.len() < MAX_LIVES {
            self.namesakes.insert(life);
            self.look_for_namesake();
        }
    }

    /// Replies with the greeting of the host of a name, if the host known under that name still
    /// replies.
    pub(super) fn name_holder(&self, host: Name, reply: Reply) {
        let cluster = &self.inner.cluster;
        let own = cluster.greetings().own().clone();
        if own.name == host.as_str() {
            return reply.send(own.encode());
        }
        let state = self.inner.sets.lock();
        let vanished = || state.protocol.vanished(self.inner.now(), &host);
        let held = state.protocol.live_of(&host).or_else(vanished);
        drop(state);
        let Some(held) = held else { return reply.send(Vec::new()) };
        let (network, hello) =
            (Arc::clone(&cluster.network), PeerRequest::Hello(&own.encode()).encode());
        self.inner.lifecycle.runtime.spawn(async move {
            let mut replies = network.ask_lives(&host, hello, ANSWER).await.into_iter();
            reply
                .send(replies.find(|bytes| is_greeting_of(bytes, &host, held)).unwrap_or_default());
        });
    }

    /// Accepts another incarnation of a host if the previous one does not reply; refuses it
    /// otherwise. `refused` is an incarnation whose address refuses connections.
    pub(super) fn decide(
        &mut self,
        host: &Name,
        greetings: &[Vec<u8>],
        refused: Option<Incarnation>,
    ) {
        let hellos: Vec<Hello> = greetings
            .iter()
            .filter_map(|bytes| Hello::decode(bytes))
            .filter(|hello| hello.name == host.as_str())
            .collect();
        let replied = hellos.iter().map(|hello| Incarnation(hello.incarnation)).collect();
        let presence = self.presence(host, &hellos, refused);
        let verdict = self.rivals.tested(self.inner.now(), host, &replied, presence);
        self.inner.cluster.set_contested(self.rivals.names());
        match verdict {
            Verdict::Wait => {}
            Verdict::Believe(life) => {
                self.believe(host.clone(), life);
                // Its greeting was not accepted before.
                let is_its = |hello: &&Hello| hello.incarnation == life.0;
                if let Some(hello) = hellos.iter().find(is_its) {
                    self.greeted(&hello.encode());
                }
            }
            Verdict::Refuse(held) => {
                let address = hellos.iter().find(|hello| hello.incarnation == held.0);
                let address = address.and_then(Hello::listens);
                self.complain(format!(
                    "another host is called '{host}' and is refused: the one that is known{} replies",
                    at(address)
                ));
                let network = Arc::clone(&self.inner.cluster.network);
                let (host, request) =
                    (host.clone(), PeerRequest::NameHeld { life: held, address }.encode());
                self.inner.lifecycle.runtime.spawn(async move {
                    network.ask_lives(&host, request, ANSWER).await;
                });
            }
        }
    }

    /// What is known of the accepted incarnation of a host whose name was just tested, given the
    /// replies.
    fn presence(&self, host: &Name, hellos: &[Hello], refused: Option<Incarnation>) -> Presence {
        let vanished = self.inner.sets.lock().protocol.vanished(self.inner.now(), host);
        let Some(life) = vanished.filter(|life| self.rivals.accepted(host) == Some(*life)) else {
            return Presence::Normal;
        };
        let Some(address) = self.address_of(host, life) else {
            return Presence::Vanished { has_address: false };
        };
        let mut others = hellos.iter().filter(|hello| hello.incarnation != life.0);
        match refused == Some(life) || others.any(|other| other.listens() == Some(address)) {
            true => Presence::Dead,
            false => Presence::Vanished { has_address: true },
        }
    }

    /// Other hosts of an overlay report a later incarnation of a neighbour, or two incarnations of
    /// a home. If the neighbour is still alive in the known incarnation, another host has its name,
    /// and the neighbour is notified.
    pub(super) fn check_rumour(&mut self, host: Name, life: Incarnation) {
        let held = self.inner.sets.lock().protocol.live_of(&host);
        if self.rumours.insert(host.clone(), life) == Some(life) {
            return;
        }
        let Some(held) = held else {
            return self.complain(format!(
                "two hosts of the overlay are called '{host}', and the keys of one are denied here: give \
                 one of them another name"
            ));
        };
        let cluster = &self.inner.cluster;
        let network = Arc::clone(&cluster.network);
        let hello = PeerRequest::Hello(&cluster.greetings().own().encode()).encode();
        self.inner.lifecycle.runtime.spawn(async move {
            let replies = network.ask_lives(&host, hello, ANSWER).await;
            if replies.iter().any(|bytes| is_greeting_of(bytes, &host, held)) {
                tracing::warn!(%host, "another host of the overlay has the name of a neighbour");
                let request = PeerRequest::NameHeld { life, address: None }.encode();
                network.ask_lives(&host, request, ANSWER).await;
            }
        });
    }

    /// Searches for another host with this host's name. If one replies, one of the two stops.
    pub(super) fn look_for_namesake(&self) {
        if self.is_contested.swap(true, Ordering::SeqCst) {
            return;
        }
        let (host, is_contested) =
            (Host { inner: Arc::clone(&self.inner) }, Arc::clone(&self.is_contested));
        self.inner.lifecycle.runtime.spawn(async move {
            if let Some(other) = host.gives_way_to().await {
                let name = &host.inner.settings.name;
                host.inner.lifecycle.fail(&format!(
                    "another host is called '{name}' and replies{}: give this one another name, or stop the other one first",
                    at(other.listens())
                ));
                host.stop().await;
            }
            is_contested.store(false, Ordering::SeqCst);
        });
    }

    pub(super) fn name_taken(&mut self) {
        self.inner.cluster.count_name_taken();
        let name = &self.inner.settings.name;
        self.complain(format!(
            "another host is called '{name}' too: give one of them another name"
        ));
    }
}

impl Host {
    /// The other host of this name, if one replies and this host must stop.
    async fn gives_way_to(&self) -> Option<Hello> {
        let cluster = &self.inner.cluster;
        let (network, name) = (&cluster.network, &self.inner.settings.name);
        let hello = PeerRequest::Hello(&cluster.greetings().own().encode()).encode();
        for _ in 0..NAMESAKE_TRIES {
            let answers = network.ask_lives(name, hello.clone(), ANSWER).await;
            let others: Vec<Hello> = answers
                .iter()
                .filter_map(|bytes| Hello::decode(bytes))
                .filter(|hello| hello.is_other(name, cluster.incarnation))
                .collect();
            if !others.is_empty() {
                let lives = self.lives_believed_by_others().await;
                let must_stop = |other: &Hello| {
                    rivals::must_stop(cluster.incarnation, Incarnation(other.incarnation), &lives)
                };
                return others.into_iter().find(must_stop);
            }
            // The link to it may still be opening.
            tokio::time::sleep(NAMESAKE_PAUSE).await;
        }
        None
    }

    /// The incarnations of this host's name that other hosts accept.
    async fn lives_believed_by_others(&self) -> Vec<u64> {
        let name = &self.inner.settings.name;
        let peer_request = PeerRequest::Life { of: name.clone() }.encode();
        let answers = self.inner.cluster.network.ask_all(peer_request, ANSWER).await;
        let life = |(host, answer): (Name, Vec<u8>)| Some((host, decode_life(&answer)?.0));
        rivals::votes(name, answers.into_iter().filter_map(life))
    }
}

/// Whether nothing listens at an address: connections are refused. A machine that does not reply at
/// all may be out of reach only.
async fn refuses_connections(address: Option<SocketAddr>) -> bool {
    let Some(address) = address else { return false };
    let connected = tokio::time::timeout(CONNECTION, TcpStream::connect(address)).await;
    matches!(connected, Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused)
}

fn is_greeting_of(bytes: &[u8], host: &Name, life: Incarnation) -> bool {
    let hello = Hello::decode(bytes).filter(|hello| hello.name == host.as_str());
    hello.is_some_and(|hello| hello.incarnation == life.0)
}

/// The address of a host, as part of a message.
fn at(address: Option<SocketAddr>) -> String {
    address.map(|address| format!(" at {address}")).unwrap_or_default()
}
