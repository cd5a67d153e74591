//! What commands work on: the host, the client that asks, and the replies to it.
//!
//! Not here: which commands there are and how they are executed (`commands`, `burst`).

use std::borrow::Cow;
use std::time::Instant;

use super::clients::{Client, Clients};
use super::database::Database;
use super::reply::Replies;
use crate::access::Identity;
use crate::{Host, Ticket};

/// What commands work on.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) host: &'a Host,
    pub(super) clients: &'a Clients,
    pub(super) client: &'a Client,
    /// Who asks.
    pub(super) identity: &'a mut Identity,
    /// Whether another one asks than before: what was permitted may be so no longer.
    pub(super) is_identity_new: bool,
    pub(super) replies: &'a mut Replies,
    /// What must settle before the replies are sent.
    pub(super) ticket: Ticket,
    /// The name of the command that was executed last.
    pub(super) last_name: Option<&'static str>,
    pub(super) commands: u64,
    /// The client asked to be let go.
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

    /// From now on somebody else asks.
    pub(super) fn set_identity(&mut self, identity: Identity) {
        *self.identity = identity;
        self.is_identity_new = true;
    }

    /// The reply from `from` on tells of a write, which must settle first.
    pub(super) fn wrote(&mut self, ticket: Ticket, from: usize) {
        self.ticket = self.ticket.max(ticket);
        self.replies.mark_write(from);
    }

    /// Notes for `CLIENT LIST` and `INFO` what was done.
    pub(super) fn note(&self) {
        self.clients.count_commands(self.commands);
        let mut told = self.client.told.lock();
        told.protocol = self.replies.protocol();
        if let Some(last) = self.last_name {
            told.last = Some((last, Instant::now()));
        }
    }

    /// Notes whether the client is a stranger by now: one without a user or, where there are no
    /// users, without a command.
    pub(super) fn note_acquaintance(&self) {
        self.client.set_known(match self.host.access().is_open() {
            true => self.client.told.lock().last.is_some(),
            false => self.identity.user().is_some(),
        });
    }
}
