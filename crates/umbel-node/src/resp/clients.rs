//! The connections there are: admitted, counted, listed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::Limits;
use super::buffer::Budget;
use super::reply::Protocol;

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) limits: Limits,
    /// Where the server listens.
    pub(super) local: SocketAddr,
    pub(super) since: Instant,
    pub(super) budget: Arc<Budget>,
    /// Whose run changes sets now. Others wait for it without keeping a thread.
    pub(super) turn: tokio::sync::Mutex<()>,
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
    accepted: AtomicU64,
    refused: AtomicU64,
    commands: AtomicU64,
}

impl Clients {
    pub(super) fn new(limits: Limits, local: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            limits,
            local,
            since: Instant::now(),
            budget: Budget::new(limits.large_requests_bytes),
            turn: tokio::sync::Mutex::default(),
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            commands: AtomicU64::new(0),
        })
    }

    /// Takes a connection in, or not, if there are too many.
    pub(super) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Admission> {
        let mut open = self.open.lock();
        if open.len() >= self.limits.connections {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client { id, peer, since: Instant::now(), told: Mutex::default() });
        open.insert(id, Arc::clone(&client));
        Some(Admission { clients: Arc::clone(self), client })
    }

    /// All of now, in the order of their arrival.
    pub(super) fn list(&self) -> Vec<Arc<Client>> {
        self.open.lock().values().cloned().collect()
    }

    pub(super) fn count_commands(&self, commands: u64) {
        self.commands.fetch_add(commands, Ordering::Relaxed);
    }

    /// Connections accepted, connections refused, commands, since the start.
    pub(super) fn totals(&self) -> (u64, u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (of(&self.accepted), of(&self.refused), of(&self.commands))
    }
}

/// A place among the connections, given back when dropped.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) clients: Arc<Clients>,
    pub(super) client: Arc<Client>,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.clients.open.lock().remove(&self.client.id);
    }
}

/// One connection, as others see it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) since: Instant,
    pub(super) told: Mutex<Told>,
}

/// What a client told of itself, and what it did last.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) name: String,
    /// Who logged in; empty: nobody.
    pub(super) user: String,
    pub(super) library: String,
    pub(super) library_version: String,
    pub(super) protocol: Protocol,
    /// The last command and when it came.
    pub(super) last: Option<(&'static str, Instant)>,
}

impl Client {
    /// A line of `CLIENT LIST`, in the form that Redis clients parse.
    pub(super) fn line(&self, local: SocketAddr) -> String {
        let told = self.told.lock();
        let (command, at) = told.last.unwrap_or(("NULL", self.since));
        format!(
            "id={} addr={} laddr={local} fd=0 name={} age={} idle={} flags=N db=0 cmd={} user={} \
             lib-name={} lib-ver={} resp={}",
            self.id,
            self.peer,
            told.name,
            self.since.elapsed().as_secs(),
            at.elapsed().as_secs(),
            command.to_ascii_lowercase(),
            if told.user.is_empty() { "default" } else { &told.user },
            told.library,
            told.library_version,
            told.protocol.number(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_admitted_than_there_are_places() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let clients = Clients::new(Limits { connections: 2, ..Limits::default() }, address);
        let first = clients.admit(address).unwrap();
        let _second = clients.admit(address).unwrap();
        assert!(clients.admit(address).is_none());
        drop(first);
        let third = clients.admit(address).unwrap();
        assert_eq!(third.client.id, 3);
        assert_eq!(clients.list().iter().map(|client| client.id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(clients.totals(), (3, 1, 0));
    }
}
