//! Hosts of one name: who is asked whether it still replies, who is refused, and who stops. The
//! rules are in `rivals`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use umbel::replica::{Incarnation, Name};

use super::{ANSWER, Driver};
use crate::hello::Hello;
use crate::host::Host;
use crate::network::{Happening, Reply};
use crate::question::{Question, decode_life};
use crate::rivals;

/// How often another host of this one's name is looked for, and how long between.
const NAMESAKE_TRIES: usize = 6;
const NAMESAKE_PAUSE: Duration = Duration::from_secs(1);

impl Driver {
    /// Another life of a host appeared than the one that is believed: asks whether that one still
    /// replies.
    pub(super) fn test_rival(&mut self, host: Name, held: Incarnation, life: Incarnation) {
        if !self.rivals.appeared(&host, held, life) {
            return;
        }
        let cluster = &self.inner.cluster;
        let (network, inbox) = (Arc::clone(&cluster.network), cluster.inbox.clone());
        let hello = Question::Hello(&cluster.greetings().own().encode()).encode();
        self.inner.lifecycle.runtime.spawn(async move {
            let greetings = network.ask_lives(&host, hello, ANSWER).await;
            inbox.put(Happening::Tested { host, held, life, greetings });
        });
    }

    /// Replies who has a name, if the host that is known under it still replies.
    pub(super) fn name_holder(&self, host: Name, reply: Reply) {
        let cluster = &self.inner.cluster;
        let own = cluster.greetings().own().clone();
        if own.name == host.as_str() {
            return reply.send(own.encode());
        }
        let Some(held) = self.inner.sets.lock().protocol.live_of(&host) else {
            return reply.send(Vec::new());
        };
        let (network, hello) =
            (Arc::clone(&cluster.network), Question::Hello(&own.encode()).encode());
        self.inner.lifecycle.runtime.spawn(async move {
            let mut replies = network.ask_lives(&host, hello, ANSWER).await.into_iter();
            reply
                .send(replies.find(|bytes| is_greeting_of(bytes, &host, held)).unwrap_or_default());
        });
    }

    /// Believes another life of a host if the one before does not reply; refuses it if it does.
    pub(super) fn decide(
        &mut self,
        host: &Name,
        held: Incarnation,
        life: Incarnation,
        greetings: &[Vec<u8>],
    ) {
        let replied = |life| greetings.iter().find(|bytes| is_greeting_of(bytes, host, life));
        let (is_there, replied) = (replied(life).is_some(), replied(held));
        let replied = replied.and_then(|bytes| Hello::decode(bytes));
        match self.rivals.tested(host, held, life, replied.is_some()) {
            None => {}
            // A token may outlive its host.
            Some(false) if !is_there => {}
            Some(true) => self.believe(host.clone(), life),
            Some(false) => {
                let address = replied.and_then(|hello| hello.listens());
                self.complain(format!(
                    "another host is called '{host}' and is refused: the one that is known{} replies",
                    at(address)
                ));
                let network = Arc::clone(&self.inner.cluster.network);
                let (host, told) =
                    (host.clone(), Question::NameHeld { life: held, address }.encode());
                self.inner.lifecycle.runtime.spawn(async move {
                    network.ask_lives(&host, told, ANSWER).await;
                });
            }
        }
    }

    /// Others of an overlay speak of a later life of a neighbour, or of two lives of a home. If the
    /// neighbour still lives in the one that is known, another host has its name, and it is told so.
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
        let hello = Question::Hello(&cluster.greetings().own().encode()).encode();
        self.inner.lifecycle.runtime.spawn(async move {
            let replies = network.ask_lives(&host, hello, ANSWER).await;
            if replies.iter().any(|bytes| is_greeting_of(bytes, &host, held)) {
                tracing::warn!(%host, "another host of the overlay has the name of a neighbour");
                let told = Question::NameHeld { life, address: None }.encode();
                network.ask_lives(&host, told, ANSWER).await;
            }
        });
    }

    /// Looks whether another host lives under this host's name. If it replies, one of the two
    /// stops.
    pub(super) fn look_for_namesake(&self, life: Incarnation, address: Option<SocketAddr>) {
        if self.is_contested.swap(true, Ordering::SeqCst) {
            return;
        }
        let (host, is_contested) =
            (Host { inner: Arc::clone(&self.inner) }, Arc::clone(&self.is_contested));
        self.inner.lifecycle.runtime.spawn(async move {
            if host.gives_way_to(life).await {
                let name = &host.inner.settings.name;
                host.inner.lifecycle.fail(&format!(
                    "another host is called '{name}' and replies{}: give this one another name, or stop the other one first",
                    at(address)
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
    /// Whether this host is the one to stop of the two that have its name, if the other one, in
    /// this life of it, replies.
    async fn gives_way_to(&self, other: Incarnation) -> bool {
        let cluster = &self.inner.cluster;
        let (network, name) = (&cluster.network, &self.inner.settings.name);
        let hello = Question::Hello(&cluster.greetings().own().encode()).encode();
        let is_other = |bytes: &Vec<u8>| is_greeting_of(bytes, name, other);
        for _ in 0..NAMESAKE_TRIES {
            if network.ask_lives(name, hello.clone(), ANSWER).await.iter().any(is_other) {
                let question = Question::Life { of: name.clone() }.encode();
                let answers = network.ask_all(question, ANSWER).await;
                let lives = answers.iter().filter_map(|answer| decode_life(answer));
                let lives: Vec<u64> = lives.map(|(life, _)| life).collect();
                return rivals::must_stop(cluster.incarnation, other, &lives);
            }
            // The link to it may be on its way.
            tokio::time::sleep(NAMESAKE_PAUSE).await;
        }
        false
    }
}

fn is_greeting_of(bytes: &[u8], host: &Name, life: Incarnation) -> bool {
    let hello = Hello::decode(bytes).filter(|hello| hello.name == host.as_str());
    hello.is_some_and(|hello| hello.incarnation == life.0)
}

/// Where somebody listens, in a sentence.
fn at(address: Option<SocketAddr>) -> String {
    address.map(|address| format!(" at {address}")).unwrap_or_default()
}
