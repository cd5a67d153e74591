//! The connections of a server: admit, count, list.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Limits;
use super::buffer::Budget;
use super::database::Database;
use super::dumps::Dumps;
use super::reply::Protocol;
use super::strings::Strings;
use crate::client_counts::ClientCounts;

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
    pub(super) counts: Arc<ClientCounts>,
}

impl Clients {
    pub(super) fn new(limits: Limits, local: SocketAddr, counts: Arc<ClientCounts>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            local,
            since: Instant::now(),
            budget: Budget::new(limits.large_requests_bytes),
            strings: Strings::default(),
            dumps: Dumps::default(),
            open: Mutex::default(),
            counts,
        })
    }

    /// Admits a connection. If the server is full, the stranger that has been connected longest is
    /// closed; if there is none, the new connection is refused.
    pub(super) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Admission> {
        let mut open = self.open.lock();
        if open.len() >= self.limits.connections {
            let stranger = open.values().find(|client| client.is_stranger()).cloned();
            let Some(stranger) = stranger else {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            open.remove(&stranger.id);
            self.counts.evicted.fetch_add(1, Ordering::Relaxed);
            stranger.leave.notify_one();
        }
        let id = self.counts.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, peer));
        open.insert(id, Arc::clone(&client));
        self.counts.open.store(open.len() as u64, Ordering::Relaxed);
        Some(Admission { clients: Arc::clone(self), client })
    }

    /// All open connections, in the order of their arrival.
    pub(super) fn list(&self) -> Vec<Arc<Client>> {
        self.open.lock().values().cloned().collect()
    }

    pub(super) fn count_commands(&self, commands: u64) {
        self.counts.commands.fetch_add(commands, Ordering::Relaxed);
    }

    /// Totals since the start: connections accepted, refused, and closed to make room; commands.
    pub(super) fn totals(&self) -> [u64; 4] {
        let [_, accepted, refused, evicted, commands, _] = self.counts.all();
        [accepted, refused, evicted, commands]
    }
}

/// A connection's place in the list, released when dropped.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) clients: Arc<Clients>,
    pub(super) client: Arc<Client>,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut open = self.clients.open.lock();
        open.remove(&self.client.id);
        self.clients.counts.open.store(open.len() as u64, Ordering::Relaxed);
    }
}

/// One connection, as others see it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) since: Instant,
    pub(super) info: Mutex<ClientInfo>,
    is_known: AtomicBool,
    database: AtomicU8,
    /// Notified when it must close to make room for another one.
    pub(super) leave: Notify,
}

/// What a client set about itself, and its last command.
#[derive(Debug, Default)]
pub(super) struct ClientInfo {
    pub(super) name: String,
    /// The user that is logged in; empty: none.
    pub(super) user: String,
    pub(super) library: String,
    pub(super) library_version: String,
    pub(super) protocol: Protocol,
    /// The last command and when it arrived.
    pub(super) last: Option<(&'static str, Instant)>,
}

impl Client {
    fn new(id: u64, peer: SocketAddr) -> Self {
        Self {
            id,
            peer,
            since: Instant::now(),
            info: Mutex::default(),
            is_known: AtomicBool::new(false),
            database: AtomicU8::new(0),
            leave: Notify::new(),
        }
    }

    /// Whether it has neither logged in nor, if no users are configured, sent a command.
    pub(super) fn is_stranger(&self) -> bool {
        !self.is_known.load(Ordering::Relaxed)
    }

    /// Sets whether it has.
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
        let info = self.info.lock();
        let (command, at) = info.last.unwrap_or(("NULL", self.since));
        format!(
            "id={} addr={} laddr={local} fd=0 name={} age={} idle={} flags=N db={} cmd={} user={} \
             lib-name={} lib-ver={} resp={}",
            self.id,
            self.peer,
            info.name,
            self.since.elapsed().as_secs(),
            at.elapsed().as_secs(),
            self.database().number(),
            command.to_ascii_lowercase(),
            if info.user.is_empty() { "default" } else { &info.user },
            info.library,
            info.library_version,
            info.protocol.number(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_make_room_and_those_who_are_known_do_not() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let limits = Limits { connections: 2, ..Limits::default() };
        let clients = Clients::new(limits, address, Arc::default());
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
        let limits = Limits { connections: 2, ..Limits::default() };
        let clients = Clients::new(limits, address, Arc::default());
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
