//! The connections there are: admitted, counted, listed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Limits;
use super::buffer::Budget;
use super::database::Database;
use super::dumps::Dumps;
use super::reply::Protocol;
use super::strings::Strings;

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) limits: Limits,
    /// Where the server listens.
    pub(super) local: SocketAddr,
    pub(super) since: Instant,
    pub(super) budget: Arc<Budget>,
    pub(super) strings: Strings,
    pub(super) dumps: Dumps,
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
    accepted: AtomicU64,
    refused: AtomicU64,
    evicted: AtomicU64,
    commands: AtomicU64,
}

impl Clients {
    pub(super) fn new(limits: Limits, local: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            limits,
            local,
            since: Instant::now(),
            budget: Budget::new(limits.large_requests_bytes),
            strings: Strings::default(),
            dumps: Dumps::default(),
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            commands: AtomicU64::new(0),
        })
    }

    /// Takes a connection in. If it is full, the stranger that has been here longest leaves; if
    /// there is none, nobody is taken in.
    pub(super) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Admission> {
        let mut open = self.open.lock();
        if open.len() >= self.limits.connections {
            let stranger = open.values().find(|client| client.is_stranger()).cloned();
            let Some(stranger) = stranger else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            open.remove(&stranger.id);
            self.evicted.fetch_add(1, Ordering::Relaxed);
            stranger.leave.notify_one();
        }
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, peer));
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

    /// Connections accepted, refused, and closed to make room; commands; since the start.
    pub(super) fn totals(&self) -> [u64; 4] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [of(&self.accepted), of(&self.refused), of(&self.evicted), of(&self.commands)]
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
    is_known: AtomicBool,
    database: AtomicU8,
    /// Notified when it has to make room.
    pub(super) leave: Notify,
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
    fn new(id: u64, peer: SocketAddr) -> Self {
        let (since, told, is_known) = (Instant::now(), Mutex::default(), AtomicBool::new(false));
        let (database, leave) = (AtomicU8::new(0), Notify::new());
        Self { id, peer, since, told, is_known, database, leave }
    }

    /// Whether it has neither logged in nor, where there are no users, sent a command.
    pub(super) fn is_stranger(&self) -> bool {
        !self.is_known.load(Ordering::Relaxed)
    }

    /// Notes whether it has.
    pub(super) fn set_known(&self, is_known: bool) {
        self.is_known.store(is_known, Ordering::Relaxed);
    }

    /// The database that it has selected.
    pub(super) fn database(&self) -> Database {
        Database::new(self.database.load(Ordering::Relaxed)).unwrap_or_default()
    }

    pub(super) fn select(&self, database: Database) {
        self.database.store(database.number(), Ordering::Relaxed);
    }

    /// A line of `CLIENT LIST`, in the form that Redis clients parse.
    pub(super) fn line(&self, local: SocketAddr) -> String {
        let told = self.told.lock();
        let (command, at) = told.last.unwrap_or(("NULL", self.since));
        format!(
            "id={} addr={} laddr={local} fd=0 name={} age={} idle={} flags=N db={} cmd={} user={} \
             lib-name={} lib-ver={} resp={}",
            self.id,
            self.peer,
            told.name,
            self.since.elapsed().as_secs(),
            at.elapsed().as_secs(),
            self.database().number(),
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
    fn strangers_make_room_and_those_who_are_known_do_not() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let clients = Clients::new(Limits { connections: 2, ..Limits::default() }, address);
        let ids = || clients.list().iter().map(|client| client.id).collect::<Vec<_>>();
        let known = clients.admit(address).unwrap();
        known.client.set_known(true);
        let stranger = clients.admit(address).unwrap();
        let third = clients.admit(address).unwrap();
        assert_eq!(ids(), [1, 3]);
        drop(stranger);
        assert_eq!(ids(), [1, 3], "it had left already");
        third.client.set_known(true);
        assert!(clients.admit(address).is_none());
        third.client.set_known(false);
        assert!(clients.admit(address).is_some(), "its user was removed");
        assert_eq!(clients.totals(), [4, 1, 2, 0]);
    }

    #[test]
    fn no_more_are_admitted_than_there_are_places() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let clients = Clients::new(Limits { connections: 2, ..Limits::default() }, address);
        let first = clients.admit(address).unwrap();
        let second = clients.admit(address).unwrap();
        first.client.set_known(true);
        second.client.set_known(true);
        assert!(clients.admit(address).is_none());
        drop(first);
        let third = clients.admit(address).unwrap();
        assert_eq!(third.client.id, 3);
        assert_eq!(clients.list().iter().map(|client| client.id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(clients.totals(), [3, 1, 0, 0]);
    }
}
