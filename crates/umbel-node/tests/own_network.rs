//! Hosts on a network of the caller's own: a table of inboxes that loses every third message.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use umbel::replica::Name;
use umbel_node::Host;
use umbel_node::network::{Boxed, Inbox, Join, Member, Network, NetworkEvent, Reply};

#[derive(Debug, Clone, Default)]
struct Lossy {
    inboxes: Arc<Mutex<BTreeMap<Name, (Member, Inbox)>>>,
    sent: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Place {
    network: Lossy,
    me: Member,
}

impl Lossy {
    fn alive(member: &Member) -> NetworkEvent {
        NetworkEvent::Alive { host: member.name.clone(), incarnation: member.incarnation }
    }
}

impl Join for Lossy {
    fn join(&self, me: Member, inbox: Inbox) -> Arc<dyn Network> {
        let mut inboxes = self.inboxes.lock().expect("in a test");
        for (other, its_inbox) in inboxes.values() {
            its_inbox.put(Self::alive(&me));
            inbox.put(Self::alive(other));
        }
        inboxes.insert(me.name.clone(), (me.clone(), inbox));
        Arc::new(Place { network: self.clone(), me })
    }
}

impl Place {
    /// The inboxes of all others, or none if the message is lost.
    fn others(&self) -> Vec<(Name, Inbox)> {
        if self.network.sent.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            return Vec::new();
        }
        let inboxes = self.network.inboxes.lock().expect("in a test");
        let others = inboxes.iter().filter(|(name, _)| **name != self.me.name);
        others.map(|(name, (_, inbox))| (name.clone(), inbox.clone())).collect()
    }

    fn message(&self, bytes: Vec<u8>) -> NetworkEvent {
        NetworkEvent::Message { from: self.me.name.clone(), bytes }
    }
}

impl Network for Place {
    fn publish_to_all(&self, bytes: Vec<u8>) {
        self.others().into_iter().for_each(|(_, inbox)| inbox.put(self.message(bytes.clone())));
    }

    fn send_to(&self, host: &Name, bytes: Vec<u8>) {
        let to = self.others().into_iter().find(|(name, _)| name == host);
        to.into_iter().for_each(|(_, inbox)| inbox.put(self.message(bytes.clone())));
    }

    fn greet(&self, bytes: Vec<u8>) {
        let greeting = || NetworkEvent::Greeting { bytes: bytes.clone() };
        self.others().into_iter().for_each(|(_, inbox)| inbox.put(greeting()));
    }

    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>> {
        let to = self.others().into_iter().find(|(name, _)| name == host);
        let from = self.me.name.clone();
        Box::pin(async move {
            let (sender, answer) = tokio::sync::oneshot::channel();
            let reply = Reply::new(move |bytes| drop(sender.send(bytes)));
            to?.1.put(NetworkEvent::Request { from, bytes, reply });
            tokio::time::timeout(timeout, answer).await.ok()?.ok()
        })
    }

    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<(Name, Vec<u8>)>> {
        let names: Vec<Name> = self.others().into_iter().map(|(name, _)| name).collect();
        Box::pin(async move {
            let mut answers = Vec::new();
            for name in names {
                let answer = self.ask(&name, bytes.clone(), timeout).await;
                answers.extend(answer.map(|answer| (name, answer)));
            }
            answers
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        let gone =
            || NetworkEvent::Gone { host: self.me.name.clone(), incarnation: self.me.incarnation };
        let mut inboxes = self.network.inboxes.lock().expect("in a test");
        inboxes.remove(&self.me.name);
        inboxes.values().for_each(|(_, inbox)| inbox.put(gone()));
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_find_each_others_keys_over_a_network_of_the_callers_own() {
    let network = Lossy::default();
    let start = async |name| {
        let host = Host::builder().name(name).network(network.clone());
        host.start().await.expect("started")
    };
    let (fern, lily) = (start("fern").await, start("lily").await);
    fern.add_key("images", b"logo.png").await.expect("added");
    fern.ready().await;
    lily.ready().await;
    for _ in 0..4000 {
        if lily.who_has("images", b"logo.png").expect("a set") == ["fern"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(lily.who_has("images", b"logo.png").expect("a set"), ["fern"]);
    lily.stop().await;
    fern.stop().await;
}
