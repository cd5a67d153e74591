//! What a connection has read, executed: commands in, replies out, nothing awaited.
//!
//! Not here: sockets and waiting (`connection`). A command that must wait for other hosts is
//! handed back as [`Next::Slow`].

use std::borrow::Cow;
use std::time::Instant;

use super::clients::{Client, Clients};
use super::commands::{self, Action, Command};
use super::reply::Replies;
use super::request::Arguments;
use super::run::Run;
use super::slow::Slow;
use crate::{Host, Ticket};

/// What commands work on.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) host: &'a Host,
    pub(super) clients: &'a Clients,
    pub(super) client: &'a Client,
    pub(super) replies: &'a mut Replies,
    /// What must settle before the replies are sent.
    pub(super) ticket: Ticket,
    /// The command that was executed last.
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
        if let Some(Command { action: Action::Run(question), .. }) = command
            && arguments.len() > 2
        {
            let set = arguments.get(1).unwrap_or_default();
            if !run.takes(*question, set, arguments.len() - 2) {
                return Next::Finish;
            }
            run.join(*question, set, arguments.from(2));
            self.last = command;
            self.commands += 1;
            return Next::Joined;
        }
        if !run.is_empty() {
            return Next::Finish;
        }
        self.commands += 1;
        self.alone(command, arguments)
    }

    fn alone(&mut self, command: Option<&'static Command>, arguments: Arguments<'_, '_>) -> Next {
        let start = self.replies.len();
        let outcome = match command {
            None => Err(commands::unknown(arguments)),
            Some(command) => {
                self.last = Some(command);
                self.execute(command, arguments)
            }
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
        if !command.accepts(arguments.len()) {
            return Err(command.wrong_number());
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
