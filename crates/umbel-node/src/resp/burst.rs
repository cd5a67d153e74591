//! Executes what a connection has read: commands in, replies out, without awaiting anything.
//!
//! Not here: sockets and waiting (`connection`). A command that must wait for other hosts is
//! returned as [`Next::Slow`].

use super::commands::{self, Action, Command, FilterHandler, Need};
use super::context::{Context, Refusal};
use super::login::Login;
use super::request::Arguments;
use super::run::{Form, Run};
use super::slow::Slow;
use super::transaction::Queue;

/// What the connection must do after a request.
#[derive(Debug)]
pub(super) enum Next {
    /// Go on with the next request: the reply is written.
    Go,
    /// The command joined the run, or began one: no reply is written yet.
    Joined,
    /// Finish the run, then pass the same request again: it does not fit into the run.
    Finish,
    /// Wait for other hosts. The run is finished.
    Slow(Slow),
    /// Wait until the client is authenticated. The run is finished.
    Login(Login),
    /// Execute the commands of a transaction. The run is finished.
    Execute(Queue),
}

/// The commands of a burst, executed one after the other.
#[derive(Debug)]
pub(super) struct Burst<'a> {
    pub(super) context: Context<'a>,
    /// The command that was executed last; so it is permitted.
    last: Option<&'static Command>,
}

impl<'a> Burst<'a> {
    pub(super) const fn new(context: Context<'a>) -> Self {
        Self { context, last: None }
    }

    /// Remembers that a command is permitted.
    fn set_last(&mut self, command: &'static Command) {
        self.last = Some(command);
        self.context.last_name = Some(command.name);
    }

    /// Executes one request, or adds it to the run.
    #[inline]
    pub(super) fn request<'bytes>(
        &mut self,
        run: &mut Run<'bytes>,
        arguments: Arguments<'bytes, '_>,
    ) -> Next {
        if std::mem::take(&mut self.context.is_identity_new) {
            self.last = None;
        }
        let name = arguments.get(0).unwrap_or_default();
        if self.context.transaction.is_open()
            && let Some(next) = self.in_transaction(name, arguments)
        {
            debug_assert!(run.is_empty(), "MULTI finished the run, and nothing has joined since");
            self.context.commands += 1;
            return next;
        }
        // Pipelines often repeat one command: try the last one first.
        let command = match self.last {
            Some(last) if last.name.as_bytes().eq_ignore_ascii_case(name) => Some(last),
            _ => commands::find(name),
        };
        if let Some(command @ Command { action: Action::Run(question, form), .. }) = command
            && arguments.len() > 2
            && (arguments.len() == 3 || *form != Form::Flag)
            && self.permits(command)
        {
            let set = arguments.get(1).unwrap_or_default();
            if !run.takes(*question, set, arguments.len() - 2) {
                return Next::Finish;
            }
            run.join(*question, *form, set, arguments.from(2));
            self.set_last(command);
            self.context.commands += 1;
            return Next::Joined;
        }
        if !run.is_empty() {
            return Next::Finish;
        }
        self.context.commands += 1;
        self.alone(command, arguments)
    }

    /// Queues a command, or ends the transaction; `None`: the command is executed at once in spite
    /// of the transaction.
    fn in_transaction(&mut self, name: &[u8], arguments: Arguments<'_, '_>) -> Option<Next> {
        let command = commands::find(name);
        if command.is_none_or(is_method) && is_http(arguments) {
            self.refuse_http();
            return Some(Next::Go);
        }
        match command.map(|command| command.name) {
            Some("QUIT" | "RESET") => return None,
            // Refused, but the transaction continues.
            Some("MULTI") => self.context.replies.error("MULTI calls can not be nested"),
            Some("WATCH") => self.context.replies.error("WATCH inside MULTI is not allowed"),
            Some("EXEC") if arguments.len() == 1 => return Some(self.exec()),
            Some("DISCARD") if arguments.len() == 1 => {
                drop(self.context.transaction.take());
                self.context.replies.ok();
            }
            _ => self.queue(command, arguments),
        }
        Some(Next::Go)
    }

    fn exec(&mut self) -> Next {
        match self.context.transaction.take() {
            Some(queue) if queue.is_broken() => {
                let why = "Transaction discarded because of previous errors.";
                self.context.replies.coded_error("EXECABORT", why);
                Next::Go
            }
            Some(queue) => Next::Execute(queue),
            None => Next::Go,
        }
    }

    /// Queues a command if everything that can be checked in advance is right.
    fn queue(&mut self, command: Option<&'static Command>, arguments: Arguments<'_, '_>) {
        let start = self.context.replies.len();
        let checked = match command {
            None => Err(commands::unknown(arguments)),
            Some(command) => self.check(command, arguments),
        };
        let pushed = checked.and_then(|is_permitted| match is_permitted {
            true => {
                self.context.transaction.push(arguments).map_err(|error| error.to_string().into())
            }
            false => {
                self.context.transaction.refuse();
                Ok(())
            }
        });
        match pushed {
            Ok(()) if self.context.replies.len() == start => self.context.replies.simple("QUEUED"),
            Ok(()) => {}
            Err(refusal) => {
                self.context.transaction.refuse();
                self.context.replies.error(&refusal);
            }
        }
    }

    /// Whether the client may queue a command; if not, the error is written.
    fn check(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_, '_>,
    ) -> Result<bool, Refusal> {
        if let Some((code, text)) = self.refused(command) {
            self.context.replies.coded_error(code, &text);
            return Ok(false);
        }
        if !command.accepts(arguments.len()) {
            return Err(command.wrong_number());
        }
        match command.action {
            Action::Login(_) => Err("Command not allowed inside a transaction".into()),
            Action::Parent(parent) => match arguments.get(1) {
                Some(name) => match parent.find(name) {
                    Some(child) => self.check(child, arguments),
                    None if name.eq_ignore_ascii_case(b"HELP") => Ok(true),
                    None => Err(commands::unknown_child(command, name)),
                },
                None if parent.alone.is_none() => Err(command.wrong_number()),
                None => Ok(true),
            },
            _ => Ok(true),
        }
    }

    /// Whether the client may use a command, or one of its children.
    fn permits(&self, command: &'static Command) -> bool {
        self.last.is_some_and(|last| std::ptr::eq(last, command)) || self.refused(command).is_none()
    }

    /// Why the client may not use a command: error code and text.
    fn refused(&self, command: &'static Command) -> Option<(&'static str, String)> {
        let needed = match command.need() {
            Need::Nothing => return None,
            _ if self.context.host.access().is_open() => return None,
            needed => needed,
        };
        let user = match self.context.identity.user() {
            None => return Some(("NOAUTH", "Authentication required.".to_owned())),
            Some(user) => user,
        };
        match needed {
            Need::Permission(needed) if !self.context.identity.permissions().has(needed) => Some((
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
        let start = self.context.replies.len();
        let outcome = match command {
            command if command.is_none_or(is_method) && is_http(arguments) => {
                self.refuse_http();
                return Next::Go;
            }
            None => Err(commands::unknown(arguments)),
            Some(command) => self.execute(command, arguments),
        };
        outcome.unwrap_or_else(|refusal| {
            self.context.replies.truncate(start);
            self.context.replies.error(&refusal);
            Next::Go
        })
    }

    /// Executes a filter command, whose errors have the same text as in Redis.
    fn filter(&mut self, handle: FilterHandler, arguments: Arguments<'_, '_>) {
        let start = self.context.replies.len();
        if let Err(line) = handle(&mut self.context, arguments) {
            self.context.replies.truncate(start);
            self.context.replies.error_line(&line);
        }
    }

    /// Closes the connection of a browser: any web page can make it send whatever the page likes.
    fn refuse_http(&mut self) {
        let peer = self.context.client.peer;
        tracing::warn!(%peer, "closed a connection that speaks HTTP to the port for Redis clients");
        self.context.quit = true;
    }

    fn execute(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_, '_>,
    ) -> Result<Next, Refusal> {
        if let Some((code, text)) = self.refused(command) {
            self.context.replies.coded_error(code, &text);
            return Ok(Next::Go);
        }
        if !command.accepts(arguments.len()) {
            return Err(command.wrong_number());
        }
        if !command.is_child() {
            self.set_last(command);
        }
        match command.action {
            Action::Plain(handle) => handle(&mut self.context, arguments)?,
            Action::Filter(handle) => self.filter(handle, arguments),
            Action::Parent(parent) => {
                let Some(name) = arguments.get(1) else {
                    return parent.alone.map_or_else(
                        || Err(command.wrong_number()),
                        |alone| alone(&mut self.context, arguments).map(|()| Next::Go),
                    );
                };
                return match parent.find(name) {
                    Some(child) => self.execute(child, arguments),
                    None if name.eq_ignore_ascii_case(b"HELP") => {
                        commands::help(command, parent, self.context.replies);
                        Ok(Next::Go)
                    }
                    None => Err(commands::unknown_child(command, name)),
                };
            }
            Action::Slow(read) => return Ok(slow(read(arguments))),
            Action::Either(_, read) if command.is_slow(arguments.len()) => {
                return Ok(slow(read(arguments)));
            }
            Action::Either(handle, _) => handle(&mut self.context, arguments)?,
            Action::Login(read) => {
                return Ok(read(&mut self.context, arguments)?.map_or(Next::Go, Next::Login));
            }
            // Commands with keys have joined a run above; one without keys has too few arguments.
            Action::Run(..) => return Err(command.wrong_number()),
        }
        Ok(Next::Go)
    }
}

/// Whether a command has the name of an HTTP method.
fn is_method(command: &Command) -> bool {
    command.name == "GET"
}

/// Whether a request is the first line of an HTTP request, or the `Host` header. Redis closes such
/// connections too.
fn is_http(arguments: Arguments<'_, '_>) -> bool {
    let name = arguments.get(0).unwrap_or_default();
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
    let last = arguments.get(arguments.len().saturating_sub(1)).unwrap_or_default();
    is("HOST:")
        || is("POST")
        || (methods.iter().any(|method| is(method)) && last.starts_with(b"HTTP/"))
}

/// A command that must wait; an error waits as well, so that replies keep their order.
fn slow(read: Result<Slow, Refusal>) -> Next {
    Next::Slow(read.unwrap_or_else(Slow::Refused))
}
