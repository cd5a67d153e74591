//! A network of hosts in one process: for tests, and for a single host.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use umbel::replica::Name;

use super::{Boxed, Inbox, Join, Member, Network, NetworkEvent, Reply};

/// Members by cluster and name.
type Members = HashMap<(Name, Name), (Member, Inbox)>;

/// Pairs of hosts that are disconnected, each pair in the order of names.
type Cuts = BTreeSet<(String, String)>;

/// A network of hosts in this process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LocalNetwork {
    members: Arc<Mutex<Members>>,
    cuts: Arc<Mutex<Cuts>>,
}

impl LocalNetwork {
    /// An empty network.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins: the new member sees all members, and they see it.
    fn member(&self, me: Member, inbox: Inbox) -> LocalMember {
        let member = LocalMember { network: self.clone(), me };
        for (other, other_inbox) in member.others() {
            inbox.put(alive(&other));
            other_inbox.put(alive(&member.me));
        }
        let id = (member.me.cluster.clone(), member.me.name.clone());
        self.lock().insert(id, (member.me.clone(), inbox));
        member
    }

    /// Disconnects two hosts, in all clusters: each sees the other disappear, and no message passes
    /// between them.
    pub fn disconnect(&self, one: &str, other: &str) {
        let is_new = self.cuts().insert(pair(one, other));
        self.show(one, other, |member| is_new.then(|| gone(member)));
    }

    /// Connects two hosts again: each sees the other appear.
    pub fn reconnect(&self, one: &str, other: &str) {
        let was_cut = self.cuts().remove(&pair(one, other));
        self.show(one, other, |member| was_cut.then(|| alive(member)));
    }

    /// Sends two hosts an event about each other.
    fn show(&self, one: &str, other: &str, what: impl Fn(&Member) -> Option<NetworkEvent>) {
        let members = self.lock();
        let named = |name: &str| {
            let members = members.values().filter(|(member, _)| member.name.as_str() == name);
            members.cloned().collect::<Vec<_>>()
        };
        let (ones, others) = (named(one), named(other));
        for (from, to) in [(&ones, &others), (&others, &ones)] {
            for (member, (_, inbox)) in
                from.iter().flat_map(|from| to.iter().map(move |to| (from, to)))
            {
                if let Some(event) = what(&member.0) {
                    inbox.put(event);
                }
            }
        }
    }

    fn is_cut(&self, one: &Name, other: &Name) -> bool {
        let cuts = self.cuts();
        !cuts.is_empty() && cuts.contains(&pair(one.as_str(), other.as_str()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cuts(&self) -> std::sync::MutexGuard<'_, Cuts> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Join for LocalNetwork {
    fn join(&self, me: Member, inbox: Inbox) -> Arc<dyn Network> {
        Arc::new(self.member(me, inbox))
    }
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.min(other).to_owned(), one.max(other).to_owned())
}

fn gone(member: &Member) -> NetworkEvent {
    NetworkEvent::Gone { host: member.name.clone(), incarnation: member.incarnation }
}

fn alive(member: &Member) -> NetworkEvent {
    NetworkEvent::Alive { host: member.name.clone(), incarnation: member.incarnation }
}

/// One host as a member of a network in one process.
#[derive(Debug)]
pub(crate) struct LocalMember {
    network: LocalNetwork,
    me: Member,
}

impl LocalMember {
    fn others(&self) -> Vec<(Member, Inbox)> {
        let members = self.network.lock();
        let others = members
            .values()
            .filter(|(other, _)| other.cluster == self.me.cluster && other.name != self.me.name)
            .filter(|(other, _)| !self.network.is_cut(&self.me.name, &other.name));
        others.cloned().collect()
    }

    /// Another host of the cluster, if it can be reached.
    fn other(&self, host: &Name) -> Option<Inbox> {
        let id = (self.me.cluster.clone(), host.clone());
        let inbox = self.network.lock().get(&id).map(|(_, inbox)| inbox.clone());
        inbox.filter(|_| !self.network.is_cut(&self.me.name, host))
    }

    fn asked(&self, inbox: &Inbox, bytes: Vec<u8>) -> oneshot::Receiver<Vec<u8>> {
        let (answer, answered) = oneshot::channel();
        let reply = Reply::new(move |bytes| drop(answer.send(bytes)));
        inbox.put(NetworkEvent::Request { from: self.me.name.clone(), bytes, reply });
        answered
    }
}

impl Network for LocalMember {
    fn publish_to_all(&self, bytes: Vec<u8>) {
        for (_, inbox) in self.others() {
            inbox.put(NetworkEvent::Message { from: self.me.name.clone(), bytes: bytes.clone() });
        }
    }

    fn send_to(&self, host: &Name, bytes: Vec<u8>) {
        if let Some(inbox) = self.other(host) {
            inbox.put(NetworkEvent::Message { from: self.me.name.clone(), bytes });
        }
    }

    fn greet(&self, bytes: Vec<u8>) {
        let members: Vec<(Member, Inbox)> = self.network.lock().values().cloned().collect();
        let reached =
            |(member, _): &&(Member, Inbox)| !self.network.is_cut(&self.me.name, &member.name);
        for (_, inbox) in members.iter().filter(reached) {
            inbox.put(NetworkEvent::Greeting { bytes: bytes.clone() });
        }
    }

    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>> {
        let inbox = self.other(host);
        Box::pin(async move {
            let answered = self.asked(&inbox?, bytes);
            tokio::time::timeout(timeout, answered).await.ok()?.ok()
        })
    }

    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<(Name, Vec<u8>)>> {
        Box::pin(async move {
            let others = self.others().into_iter();
            let asked: Vec<_> = others
                .map(|(other, inbox)| (other.name, self.asked(&inbox, bytes.clone())))
                .collect();
            let deadline = tokio::time::Instant::now() + timeout;
            let mut answers = Vec::new();
            for (host, answered) in asked {
                if let Ok(Ok(answer)) = tokio::time::timeout_at(deadline, answered).await {
                    answers.push((host, answer));
                }
            }
            answers
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.network.lock().remove(&(self.me.cluster.clone(), self.me.name.clone()));
            for (_, inbox) in self.others() {
                inbox.put(gone(&self.me));
            }
        })
    }
}
