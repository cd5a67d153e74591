//! What a connection has read, executed: commands in, replies out, nothing awaited.
//!
//! Not here: sockets and waiting (`connection`). A command that must wait for other hosts is
//! handed back as [`Next::Slow`].

use std::borrow::Cow;
use std::time::Instant;

use super::clients::{Client, Clients};
use super::commands::{self, Action, Command, Need};
use super::login::Login;
use super::reply::Replies;
use super::request::Arguments;
use super::run::Run;
use super::slow::Slow;
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
    pub(super) replies: &'a mut Replies,
    /// What must settle before the replies are sent.
    pub(super) ticket: Ticket,
    /// The command that was executed last; so it was permitted.
    pub(super) last: Option<&'static Command>,
    pub(super) commands: u64,
    /// The client asked to be let go.
    pub(super) quit: bool,
}

/// Why a command is refused, in one line; nothing changed.
pub(super) type Refusal = Cow<'static, str>;

/// What the connection is to do after a request.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing: it was answered.
    Go,
    /// It joined the run, or began one: nothing is written yet.
    Joined,
    /// Finish the run, then hand in the same request again: it fits no more.
    Finish,
    /// Wait for other hosts. The run is finished.
    Slow(Slow),
    /// Wait until the client has shown who it is. The run is finished.
    Login(Login),
}

impl Context<'_> {
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
        if let Some(last) = self.last {
            told.last = Some((last.name, Instant::now()));
        }
    }

    /// Executes one request, or lets it join the run.
    #[inline]
    pub(super) fn request<'bytes>(
        &mut self,
        run: &mut Run<'bytes>,
        arguments: Arguments<'bytes, '_>,
    ) -> Next {
        let name = arguments.get(0).unwrap_or_default();
        // Pipelines repeat themselves.
        let command = match self.last {
            Some(last) if last.name.as_bytes().eq_ignore_ascii_case(name) => Some(last),
            _ => commands::find(name),
        };
        if let Some(command @ Command { action: Action::Run(question), .. }) = command
            && arguments.len() > 2
            && self.permits(command)
        {
            let set = arguments.get(1).unwrap_or_default();
            if !run.takes(*question, set, arguments.len() - 2) {
                return Next::Finish;
            }
            run.join(*question, set, arguments.from(2));
            self.last = Some(command);
            self.commands += 1;
            return Next::Joined;
        }
        if !run.is_empty() {
            return Next::Finish;
        }
        self.commands += 1;
        self.alone(command, arguments)
    }

    /// Whether the client may use a command, or one of its children.
    fn permits(&self, command: &'static Command) -> bool {
        self.last.is_some_and(|last| std::ptr::eq(last, command)) || self.refused(command).is_none()
    }

    /// Why the client may not use a command, as a code and a text.
    fn refused(&self, command: &'static Command) -> Option<(&'static str, String)> {
        let needed = match command.need() {
            Need::Nothing => return None,
            _ if self.host.access().is_open() => return None,
            needed => needed,
        };
        let user = match self.identity.user() {
            None => return Some(("NOAUTH", "Authentication required.".to_owned())),
            Some(user) => user,
        };
        match needed {
            Need::Permission(needed) if !self.identity.permissions().has(needed) => Some((
                "NOPERM",
                format!(
                    "User {user} has no permissions to run the '{}' command: it needs '{needed}'",
                    command.full_name()
                ),
            )),
            _ => None,
        }
    }

    fn alone(&mut self, command: Option<&'static Command>, arguments: Arguments<'_, '_>) -> Next {
        let start = self.replies.len();
        let outcome = match command {
            None => Err(commands::unknown(arguments)),
            Some(command) => self.execute(command, arguments),
        };
        outcome.unwrap_or_else(|refusal| {
            self.replies.truncate(start);
            self.replies.error(&refusal);
            Next::Go
        })
    }

    fn execute(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_, '_>,
    ) -> Result<Next, Refusal> {
        if let Some((code, text)) = self.refused(command) {
            self.replies.coded_error(code, &text);
            return Ok(Next::Go);
        }
        if !command.accepts(arguments.len()) {
            return Err(command.wrong_number());
        }
        if !command.is_child() {
            self.last = Some(command);
        }
        match command.action {
            Action::Plain(handle) => handle(self, arguments)?,
            Action::Parent(parent) => {
                let Some(name) = arguments.get(1) else {
                    return parent.alone.map_or_else(
                        || Err(command.wrong_number()),
                        |alone| alone(self, arguments).map(|()| Next::Go),
                    );
                };
                return match parent.find(name) {
                    Some(child) => self.execute(child, arguments),
                    None if name.eq_ignore_ascii_case(b"HELP") => {
                        commands::help(command, parent, self.replies);
                        Ok(Next::Go)
                    }
                    None => Err(commands::unknown_child(command, name)),
                };
            }
            Action::Slow(read) => return Ok(slow(read(arguments))),
            Action::Either(_, read) if command.is_slow(arguments.len()) => {
                return Ok(slow(read(arguments)));
            }
            Action::Either(handle, _) => handle(self, arguments)?,
            Action::Login(read) => {
                return Ok(read(self, arguments)?.map_or(Next::Go, Next::Login));
            }
            // Commands with keys have joined a run; one without is refused above.
            Action::Run(_) => return Err(command.wrong_number()),
        }
        Ok(Next::Go)
    }
}

/// What is to be waited for; an error waits as well, so that replies keep their order.
fn slow(read: Result<Slow, Refusal>) -> Next {
    Next::Slow(read.unwrap_or_else(Slow::Refused))
}
