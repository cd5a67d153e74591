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
use crate::network::Happening;
use crate::question::Question;
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

    /// Believes another life of a host if the one before does not reply; refuses it if it does.
    pub(super) fn decide(
        &mut self,
        host: &Name,
        held: Incarnation,
        life: Incarnation,
        greetings: &[Vec<u8>],
    ) {
        let hellos = greetings.iter().filter_map(|bytes| Hello::decode(bytes));
        let mut hellos = hellos.filter(|hello| hello.name == host.as_str());
        let replied = hellos.find(|hello| hello.incarnation == held.0);
        match self.rivals.tested(host, held, life, replied.is_some()) {
            None => {}
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
        let is_other = |bytes: &Vec<u8>| {
            let hello = Hello::decode(bytes).filter(|hello| hello.name == name.as_str());
            hello.is_some_and(|hello| hello.incarnation == other.0)
        };
        for _ in 0..NAMESAKE_TRIES {
            if network.ask_lives(name, hello.clone(), ANSWER).await.iter().any(is_other) {
                let question = Question::Life { of: name.clone() }.encode();
                let answers = network.ask_all(question, ANSWER).await;
                let lives = answers.iter().filter_map(|answer| answer.as_slice().try_into().ok());
                let lives: Vec<u64> = lives.map(u64::from_le_bytes).collect();
                return rivals::must_stop(cluster.incarnation, other, &lives);
            }
            // The link to it may be on its way.
            tokio::time::sleep(NAMESAKE_PAUSE).await;
        }
        false
    }
}

/// Where somebody listens, in a sentence.
fn at(address: Option<SocketAddr>) -> String {
    address.map(|address| format!(" at {address}")).unwrap_or_default()
}
