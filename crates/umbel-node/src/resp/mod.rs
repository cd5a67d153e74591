//! The port for Redis clients: RESP2 and RESP3, pipelined.
//!
//! ```text
//! socket ─► ReadBuffer ─► Parser ─► Burst ─► Host
//!    ▲                    spans     runs of    │ answers
//!    └────── settled ◄── Replies ◄─ keys ◄─────┘
//! ```
//!
//! There is one task per connection. All complete requests in the read buffer are a *burst*. Its
//! commands run one after the other; neighbours with the same operation on the same set run as one
//! batch of keys. Their replies are collected, the writes among them are waited for once
//! (`Host::settled`), and then the replies are sent. So a pipeline shares one group commit and one
//! system call.
//!
//! Always true: replies come in the order of requests; a write is acknowledged only when it is
//! durable; an error closes the connection only if the protocol itself is violated; the memory of a
//! connection is bounded, whatever its client sends and however slowly it reads.
//!
//! Strangers are connections that have not logged in or, if no users are configured, have not sent
//! a command. They cannot keep others out: they have a deadline, may send only small requests, get
//! nothing of the memory for large ones, and are closed first when the port is full.

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
mod transaction;

pub use server::Server;

use request::RequestLimits;

/// Limits for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections. When one more arrives, the stranger that has been connected
    /// longest is closed; if there is none, the new connection gets an error and is closed.
    /// Default: 10,000.
    pub connections: usize,
    /// How long a connection may be a stranger: until it logs in or, if no users are configured,
    /// sends its first command. Default: 30 s.
    pub login_time: Duration,
    /// Limits for one request.
    pub request: RequestLimits,
    /// Maximum bytes of the read buffers of all connections together, beyond the 64 KiB that each
    /// connection may have. Default: 1 GiB.
    pub large_requests_bytes: usize,
    /// How long a client may send nothing, or leave its replies unread; `None`: for ever.
    pub idle: Option<Duration>,
    /// Bytes of replies of a pipeline that are collected before they are sent; nothing more is read
    /// until they are. Default: 64 KiB.
    pub reply_bytes: usize,
    /// How long a connection may take to finish its burst when the server stops. Default: 5 s.
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
    let clients = clients::Clients::new(limits, ([127, 0, 0, 1], 1).into(), Default::default());
    let admission = clients.admit(([127, 0, 0, 1], 2).into()).expect("there is room for one");
    let (_open, stopped) = tokio::sync::watch::channel(false);
    connection::Connection::new(stream, host, admission).serve(stopped).await
}
