//! What commands work on: the host, the client, and the replies to it.
//!
//! Not here: the list of commands and how they are executed (`commands`, `burst`).

use std::borrow::Cow;
use std::time::Instant;

use super::clients::{Client, Clients};
use super::database::Database;
use super::reply::Replies;
use super::transaction::Transaction;
use crate::access::Identity;
use crate::{Host, Ticket};

/// What commands work on.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) host: &'a Host,
    pub(super) clients: &'a Clients,
    pub(super) client: &'a Client,
    /// The user of the client.
    pub(super) identity: &'a mut Identity,
    /// Whether the user has changed: what was permitted before may not be now.
    pub(super) is_identity_new: bool,
    pub(super) replies: &'a mut Replies,
    /// The commands queued since `MULTI`.
    pub(super) transaction: &'a mut Transaction,
    /// The writes that must be durable before the replies are sent.
    pub(super) ticket: Ticket,
    /// The name of the command that was executed last.
    pub(super) last_name: Option<&'static str>,
    pub(super) commands: u64,
    /// Whether the connection is to be closed.
    pub(super) quit: bool,
}

/// Why a command is refused, in one line; nothing changed.
pub(super) type Refusal = Cow<'static, str>;

impl Context<'_> {
    /// The database that the client has selected.
    pub(super) fn database(&self) -> Database {
        self.client.database()
    }

    /// Whether a key of the client's database is a string.
    pub(super) fn is_string(&self, key: &[u8]) -> bool {
        self.clients.strings.contains(self.database(), key)
    }

    /// Changes the user of the client.
    pub(super) fn set_identity(&mut self, identity: Identity) {
        *self.identity = identity;
        self.is_identity_new = true;
    }

    /// Marks the reply from `from` on as the reply to a write, which must be durable first.
    pub(super) fn wrote(&mut self, ticket: Ticket, from: usize) {
        self.ticket = self.ticket.max(ticket);
        self.replies.mark_write(from);
    }

    /// Records statistics for `CLIENT LIST` and `INFO`.
    pub(super) fn note(&self) {
        self.clients.count_commands(self.commands);
        let mut info = self.client.info.lock();
        info.protocol = self.replies.protocol();
        if let Some(last) = self.last_name {
            info.last = Some((last, Instant::now()));
        }
    }

    /// Records how long the commands of a burst took, and counts the errors in its replies.
    pub(super) fn note_burst(&mut self, begun: Instant) {
        let counts = &self.clients.counts;
        if self.commands > 0 {
            counts.bursts.observe(begun.elapsed());
        }
        let errors = self.replies.take_errors();
        if errors > 0 {
            counts.errors.fetch_add(errors, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Updates whether the client is a stranger: one that has not logged in or, if no users are
    /// configured, has not sent a command.
    pub(super) fn note_acquaintance(&self) {
        self.client.set_known(match self.host.access().is_open() {
            true => self.last_name.is_some() || self.client.info.lock().last.is_some(),
            false => self.identity.user().is_some(),
        });
    }
}
