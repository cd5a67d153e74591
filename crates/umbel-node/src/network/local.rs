//! Hosts of one process: for tests, and for a host on its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use umbel::replica::Name;

use super::{Boxed, Happening, Inbox, Member, Network, Reply};

/// By cluster and name.
type Members = HashMap<(Name, Name), (Member, Inbox)>;

/// A network of hosts in this process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LocalNetwork {
    members: Arc<Mutex<Members>>,
}

impl LocalNetwork {
    /// A network that nobody has joined yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins: sees everybody who is there, and is seen by them.
    pub(crate) fn join(&self, me: Member, inbox: Inbox) -> LocalMember {
        let member = LocalMember { network: self.clone(), me };
        for (other, other_inbox) in member.others() {
            inbox.put(alive(&other));
            other_inbox.put(alive(&member.me));
        }
        let id = (member.me.cluster.clone(), member.me.name.clone());
        self.lock().insert(id, (member.me.clone(), inbox));
        member
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn alive(member: &Member) -> Happening {
    Happening::Alive { host: member.name.clone(), incarnation: member.incarnation }
}

/// One host's place in a network of one process.
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
            .filter(|(other, _)| other.cluster == self.me.cluster && other.name != self.me.name);
        others.cloned().collect()
    }

    fn asked(&self, inbox: &Inbox, bytes: Vec<u8>) -> oneshot::Receiver<Vec<u8>> {
        let (answer, answered) = oneshot::channel();
        let reply = Reply::new(move |bytes| drop(answer.send(bytes)));
        inbox.put(Happening::Asked { from: self.me.name.clone(), bytes, reply });
        answered
    }
}

impl Network for LocalMember {
    fn say(&self, bytes: Vec<u8>) {
        for (_, inbox) in self.others() {
            inbox.put(Happening::Said { from: self.me.name.clone(), bytes: bytes.clone() });
        }
    }

    fn greet(&self, bytes: Vec<u8>) {
        let members: Vec<Inbox> =
            self.network.lock().values().map(|(_, inbox)| inbox.clone()).collect();
        for inbox in members {
            inbox.put(Happening::Greeted { bytes: bytes.clone() });
        }
    }

    fn ask(&self, host: &Name, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Option<Vec<u8>>> {
        let id = (self.me.cluster.clone(), host.clone());
        let inbox = self.network.lock().get(&id).map(|(_, inbox)| inbox.clone());
        Box::pin(async move {
            let answered = self.asked(&inbox?, bytes);
            tokio::time::timeout(timeout, answered).await.ok()?.ok()
        })
    }

    fn ask_all(&self, bytes: Vec<u8>, timeout: Duration) -> Boxed<'_, Vec<Vec<u8>>> {
        Box::pin(async move {
            let asked: Vec<_> =
                self.others().iter().map(|(_, inbox)| self.asked(inbox, bytes.clone())).collect();
            let deadline = tokio::time::Instant::now() + timeout;
            let mut answers = Vec::new();
            for answered in asked {
                if let Ok(Ok(answer)) = tokio::time::timeout_at(deadline, answered).await {
                    answers.push(answer);
                }
            }
            answers
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.network.lock().remove(&(self.me.cluster.clone(), self.me.name.clone()));
            for (_, inbox) in self.others() {
                let (host, incarnation) = (self.me.name.clone(), self.me.incarnation);
                inbox.put(Happening::Gone { host, incarnation });
            }
        })
    }
}
