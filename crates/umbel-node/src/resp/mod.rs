//! The port for Redis clients: RESP2 and RESP3, pipelined.
//!
//! ```text
//! socket ─► ReadBuffer ─► Parser ─► Burst ─► Host
//!    ▲                    spans     runs of    │ answers
//!    └────── settled ◄── Replies ◄─ keys ◄─────┘
//! ```
//!
//! A task a connection. Everything that is whole in the read buffer is a *burst*: its commands
//! run one after the other, neighbours that ask the same of one set as one batch of keys,
//! their replies are gathered, the writes among them are waited for once (`Host::settled`),
//! and then the replies are sent. So a pipeline shares one group commit and one system call.
//!
//! Always true: replies come in the order of requests; a write is told only when it has
//! settled; an error closes the connection only if the protocol itself is broken; what a
//! connection holds is bounded, whatever its client sends and however slowly it reads.
//!
//! Strangers, who have not logged in (or, without users, not sent a command), keep nobody out:
//! they have a deadline, may send small requests only, take nothing of the memory for large ones,
//! and are closed first when the port is full.

use std::time::Duration;

mod buffer;
mod burst;
mod clients;
mod commands;
mod connection;
mod context;
mod database;
mod dumps;
mod error_line;
mod glob;
mod login;
mod reply;
pub mod request;
mod run;
mod server;
mod slow;
mod strings;

pub use server::Server;

use request::RequestLimits;

/// How much clients may ask for, and how long they are waited for at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. If one more comes, the stranger that has been connected longest is
    /// closed; if there is none, the new one is told so and closed. Default: 10,000.
    pub connections: usize,
    /// How long a connection may be a stranger's: until it logs in or, where there are no users,
    /// sends its first command. Default: 30 s.
    pub login_time: Duration,
    /// What one request may weigh.
    pub request: RequestLimits,
    /// Bytes of read buffers of all connections together, beyond the 64 KiB that each may
    /// have. Default: 1 GiB.
    pub large_requests_bytes: usize,
    /// How long a client may say nothing, or leave its replies unread; `None`: for ever.
    pub idle: Option<Duration>,
    /// Bytes of replies of a pipeline that are gathered before they are sent; nothing more is
    /// read until they are. Default: 64 KiB.
    pub reply_bytes: usize,
    /// What a connection may take to finish its burst once the server is to stop.
    /// Default: 5 s.
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            login_time: Duration::from_secs(30),
            request: RequestLimits::default(),
            large_requests_bytes: 1 << 30,
            idle: None,
            reply_bytes: 64 << 10,
            stop_grace: Duration::from_secs(5),
        }
    }
}

/// Serves one connection over any stream until it ends.
#[cfg(all(any(test, feature = "fuzzing"), feature = "http"))]
pub(crate) async fn serve_one<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    host: crate::Host,
    stream: S,
    limits: Limits,
) -> std::io::Result<()> {
    let clients = clients::Clients::new(limits, ([127, 0, 0, 1], 1).into());
    let admission = clients.admit(([127, 0, 0, 1], 2).into()).expect("there is room for one");
    let (_open, stopped) = tokio::sync::watch::channel(false);
    connection::Connection::new(stream, host, admission).serve(stopped).await
}
