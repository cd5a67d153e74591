//! One connection: reads, executes complete requests, waits for its writes, replies.
//!
//! Always true: nothing more is read before the client's side has taken the replies to what was
//! read, so that a client that does not read is no longer served instead of filling memory. Pending
//! replies take at most `Limits::reply_bytes` and one command's reply (of `WHO`, one part of it). A
//! client that neither sends nor reads for `Limits::idle` is closed, and so is one that remains a
//! stranger for longer than `Limits::login_time`.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use super::buffer::ReadBuffer;
use super::burst::{Burst, Next};
use super::clients::{Admission, Clients};
use super::commands;
use super::context::Context;
use super::reply::Replies;
use super::request::{Arguments, Parser, Request, RequestLimits, Step};
use super::run::{Run, Spare};
use super::slow::Waiting;
use super::transaction::{Queue, Transaction};
use crate::access::Identity;
use crate::{Host, Ticket};

/// A client's connection.
#[derive(Debug)]
pub(super) struct Connection<S> {
    socket: S,
    host: Host,
    admission: Admission,
    replies: Replies,
    parser: Parser,
    buffer: ReadBuffer,
    spare: Spare,
    identity: Identity,
    transaction: Transaction,
    /// When the connection is closed if it is still a stranger then; `None`: it is not a stranger.
    deadline: Option<Instant>,
}

/// Whether a connection continues after a burst.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Close,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn new(socket: S, host: Host, admission: Admission) -> Self {
        let parser = Parser::new(admission.clients.limits.request);
        let buffer = ReadBuffer::new(&admission.clients.budget);
        let replies = Replies::default();
        let identity = host.access().stranger();
        let spare = Spare::default();
        let deadline = Some(Instant::now() + admission.clients.limits.login_time);
        let transaction = Transaction::default();
        Self {
            socket,
            host,
            admission,
            replies,
            parser,
            buffer,
            spare,
            identity,
            transaction,
            deadline,
        }
    }

    /// Serves until the client leaves, violates the protocol, or the server stops.
    pub(super) async fn serve(mut self, mut stop: watch::Receiver<bool>) -> io::Result<()> {
        let mut stops = stop.clone();
        let mut stopped = std::pin::pin!(stops.wait_for(|stopped| *stopped));
        let client = Arc::clone(&self.admission.client);
        while !*stop.borrow_and_update() {
            let patience = patience(&self.admission.clients, self.deadline);
            let room = match self.buffer.room() {
                Ok(room) => room,
                Err(over) => return self.close_with(&over.to_string()).await,
            };
            let read = tokio::select! {
                biased;
                read = within(patience, self.socket.read_buf(room)) => read?,
                () = client.leave.notified() => break,
                _ = &mut stopped => break,
            };
            if read == 0 || self.burst().await? == Then::Close {
                break;
            }
            self.note_deadline();
        }
        self.socket.shutdown().await
    }

    /// Updates the deadline of a stranger.
    fn note_deadline(&mut self) {
        let Admission { clients, client } = &self.admission;
        self.deadline = match self.deadline {
            _ if !client.is_stranger() => None,
            None => Some(Instant::now() + clients.limits.login_time),
            deadline => deadline,
        };
    }

    /// Executes every complete request in the buffer and sends the replies.
    async fn burst(&mut self) -> io::Result<Then> {
        let Self { socket, host, admission, replies, parser, buffer, spare, deadline, .. } = self;
        let (identity, transaction) = (&mut self.identity, &mut self.transaction);
        let begun = Instant::now();
        let mut run = Run::new(std::mem::take(spare));
        let limits = admission.clients.limits;
        let mut sender = Sender {
            socket,
            waiting: Waiting::default(),
            send_at: limits.reply_bytes,
            deadline: *deadline,
            is_all_executed: false,
            failure: None,
        };
        host.access().renew(identity);
        let mut burst = Burst::new(Context {
            host,
            clients: &admission.clients,
            client: &admission.client,
            identity,
            is_identity_new: false,
            replies,
            transaction,
            ticket: Ticket::NONE,
            last_name: None,
            commands: 0,
            quit: false,
        });
        let mut consumed = 0;
        let has_users = !host.access().is_open();
        let broken = loop {
            if has_users {
                parser.set_limits(if burst.context.identity.user().is_some() {
                    limits.request
                } else {
                    RequestLimits::BEFORE_LOGIN
                });
            }
            match parser.next(&buffer.unread()[consumed..]) {
                Ok(Step::More(_)) => break None,
                Err(error) => break Some(error),
                Ok(Step::Empty(bytes)) => consumed += bytes,
                Ok(Step::Request(request, bytes)) => {
                    consumed += bytes;
                    match request {
                        Request::Array(arguments) => {
                            sender.request(&mut burst, &mut run, arguments).await?;
                        }
                        // The arguments of an inline command are borrowed from the parser until its
                        // next request: execute the command now.
                        Request::Inline(arguments) => {
                            sender.finish(&mut burst.context, &mut run).await?;
                            let mut own = Run::new(Spare::default());
                            sender.request(&mut burst, &mut own, arguments).await?;
                            sender.finish(&mut burst.context, &mut own).await?;
                        }
                    }
                    if burst.context.quit {
                        break None;
                    }
                }
            }
        };
        sender.finish(&mut burst.context, &mut run).await?;
        sender.answer_waiting(&mut burst.context).await?;
        if let Some(error) = &broken {
            tracing::debug!(peer = %burst.context.client.peer, %error, "a Redis client is sent away");
            burst.context.replies.error(&error.to_string());
        }
        burst.context.note();
        sender.send(&mut burst.context).await?;
        burst.context.note_burst(begun);
        let closes = burst.context.quit || broken.is_some();
        *spare = run.into_spare();
        buffer.consume(consumed);
        Ok(if closes { Then::Close } else { Then::GoOn })
    }

    async fn close_with(mut self, reason: &str) -> io::Result<()> {
        self.replies.error(reason);
        self.socket.write_all(self.replies.bytes()).await?;
        self.socket.shutdown().await
    }
}

/// What executing a burst waits for: the socket, and other hosts.
struct Sender<'a, S> {
    socket: &'a mut S,
    waiting: Waiting,
    send_at: usize,
    /// When the connection is closed if it is still a stranger then.
    deadline: Option<Instant>,
    /// Whether commands are executed even if their replies cannot be sent: those of a transaction
    /// are.
    is_all_executed: bool,
    failure: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sender<'_, S> {
    async fn request<'bytes>(
        &mut self,
        burst: &mut Burst<'_>,
        run: &mut Run<'bytes>,
        arguments: Arguments<'bytes, '_>,
    ) -> io::Result<()> {
        // Replies must keep the order of requests: any other command first waits for the slow
        // commands before it.
        if !self.waiting.is_empty() && !commands::is_slow(arguments) {
            self.answer_waiting(&mut burst.context).await?;
        }
        loop {
            match burst.request(run, arguments) {
                Next::Go | Next::Joined => {}
                Next::Finish => {
                    self.finish(&mut burst.context, run).await?;
                    continue;
                }
                Next::Login(login) => {
                    // Send earlier replies now: a login may be delayed.
                    self.send(&mut burst.context).await?;
                    login.answer(&mut burst.context).await;
                }
                Next::Execute(queue) => return self.execute(burst, &queue).await,
                Next::Slow(slow) => {
                    self.waiting.push(slow);
                    if self.waiting.is_full() {
                        self.answer_waiting(&mut burst.context).await?;
                    }
                }
            }
            if burst.context.replies.len() >= self.send_at {
                self.send(&mut burst.context).await?;
            }
            return Ok(());
        }
    }

    /// Executes all commands of a transaction, even if the client disconnects meanwhile.
    async fn execute(&mut self, burst: &mut Burst<'_>, queue: &Queue) -> io::Result<()> {
        burst.context.replies.array(queue.commands());
        let mut parser = Parser::new(burst.context.clients.limits.request);
        let mut run = Run::new(Spare::default());
        let mut rest = queue.requests();
        self.is_all_executed = true;
        while let Ok(Step::Request(Request::Array(arguments), bytes)) = parser.next(rest) {
            rest = &rest[bytes..];
            Box::pin(self.request(burst, &mut run, arguments)).await?;
        }
        self.finish(&mut burst.context, &mut run).await?;
        self.answer_waiting(&mut burst.context).await?;
        self.is_all_executed = false;
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Executes the commands in the run.
    async fn finish(&mut self, context: &mut Context<'_>, run: &mut Run<'_>) -> io::Result<()> {
        while !run.is_empty() {
            let turn = match run.changed_set(context.database()) {
                Some(set) => context.host.turn(&set).await,
                None => None,
            };
            let done = run.advance(context);
            drop(turn);
            if !done {
                tokio::task::yield_now().await;
            }
            if context.replies.len() >= self.send_at {
                self.send(context).await?;
            }
        }
        Ok(())
    }

    async fn answer_waiting(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // Send earlier replies now: they need not wait for other hosts.
        self.send(context).await?;
        self.waiting.answer(context.host, context.replies).await;
        Ok(())
    }

    /// Waits until the writes are durable, then sends all replies. A stranger that does not read
    /// them is closed at its deadline, or earlier to make room.
    async fn send(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        // Before the replies are sent: a client that has read one must not be closed to make room
        // for a stranger.
        context.note_acquaintance();
        if !context.client.is_stranger() {
            self.deadline = None;
        }
        if context.ticket != Ticket::NONE {
            if let Err(error) = context.host.settled(context.ticket).await {
                context.replies.fail_writes(&error.to_string());
            }
            context.ticket = Ticket::NONE;
        }
        if !context.replies.is_empty() {
            let sent = async {
                self.socket.write_all(context.replies.bytes()).await?;
                self.socket.flush().await
            };
            let sent = match &self.failure {
                Some(_) => Ok(()),
                None => tokio::select! {
                    biased;
                    sent = within(patience(context.clients, self.deadline), sent) => sent,
                    () = context.client.leave.notified() => Err(made_room()),
                },
            };
            context.replies.clear();
            match sent {
                Err(error) if self.is_all_executed => self.failure = Some(error),
                sent => return sent,
            }
        }
        Ok(())
    }
}

/// How long to wait for a client to send or to read, if it is closed at `deadline`.
fn patience(clients: &Clients, deadline: Option<Instant>) -> Option<Duration> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    left.into_iter().chain(clients.limits.idle).min()
}

fn made_room() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "closed to make room for another client")
}

/// Waits for a client, at most for `idle` if that is set.
async fn within<T>(
    idle: Option<Duration>,
    waited: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match idle {
        None => waited.await,
        Some(idle) => tokio::time::timeout(idle, waited)
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "idle for too long"))),
    }
}
