//! The HTTP API: JSON for questions and sets, lines for bulk loads, problem details for errors.
//!
//! ```text
//! socket ─► TLS ─► Watched ─► hyper ─► Metrics ─► Problems ─► Guard ─► one handler a route ─► Host
//!             │ phase and progress                      open, read, write, admin
//!           Clients: deadlines, the limit, who has to go first
//! ```
//!
//! `routes` has the one list of routes, in groups by what a client must be allowed to do; the
//! description at `/openapi.json` is made from the handlers themselves.
//!
//! Always true: every error that a handler or a route gives is a problem (RFC 9457) and means
//! that nothing changed, unless it says otherwise; a write is told only when it has settled;
//! what a connection holds is bounded, whatever its client sends and however slowly it reads;
//! a client that sends half of a request keeps nobody else out.
//!
//! A connection is anything that can be read and written; with a certificate, TLS. Every group
//! but the open one passes through `guard`, which asks `access` whose the bearer token is.

mod authority;
mod body;
mod bulk;
mod clients;
mod connection;
mod events;
mod fetch;
mod guard;
mod health;
mod hosts;
mod key_text;
mod keys;
mod lifetime;
mod lines;
mod locate;
mod metrics;
mod missing;
mod openapi;
mod origin;
mod problem;
mod routes;
mod server;
mod sets;
mod watched;
mod who;

use std::sync::Arc;
use std::time::Duration;

use crate::Host;
use crate::settings::Settings;

pub use routes::description;
pub use server::Server;

/// How much clients may ask for, and how long they are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. If one more comes, the one that has waited longest without a
    /// request has to go; if there is none, the new one is told so and closed. Default: 10,000.
    pub connections: usize,
    /// Bytes of a request's line and headers together. Default: 128 KiB, enough for the longest
    /// key in a path.
    pub header_bytes: usize,
    /// Bytes of a body that is read whole: questions about many keys, plans of sets. Bulk loads
    /// are streamed and have no such limit. Default: 4 MiB.
    pub question_bytes: usize,
    /// From a request's first byte to the end of its headers. Default: 10 s.
    pub header_time: Duration,
    /// Without a byte in either direction a connection is closed after this. Default: 75 s.
    pub idle_time: Duration,
    /// Bytes a second that a request's body brings at least, on average over `idle_time`; 0: any
    /// byte will do. Default: 16.
    pub body_rate: u32,
    /// What a request may take to finish once the server is to stop. Default: 5 s.
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            header_bytes: 128 << 10,
            question_bytes: 4 << 20,
            header_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(75),
            body_rate: 16,
            stop_grace: Duration::from_secs(5),
        }
    }
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        Self {
            connections: settings.limits.http_connections,
            header_bytes: settings.limits.http_header_bytes,
            question_bytes: settings.limits.http_question_bytes,
            header_time: settings.timing.http_header,
            idle_time: settings.timing.http_idle,
            body_rate: settings.limits.http_body_rate,
            stop_grace: settings.timing.stop,
        }
    }
}

/// What handlers work on.
#[derive(Debug, Clone)]
struct App {
    host: Host,
    metrics: Arc<metrics::Metrics>,
}

impl axum::extract::FromRef<App> for Host {
    fn from_ref(app: &App) -> Self {
        app.host.clone()
    }
}

/// Serves connections over any stream, without a port.
#[cfg(all(any(test, feature = "fuzzing"), feature = "resp"))]
pub(crate) struct Harness {
    clients: Arc<clients::Clients>,
    connections: connection::Connections,
    _open: tokio::sync::watch::Sender<bool>,
}

#[cfg(all(any(test, feature = "fuzzing"), feature = "resp"))]
impl Harness {
    pub(crate) fn new(host: Host) -> Self {
        let limits = Limits { header_bytes: 8192, question_bytes: 8192, ..Limits::default() };
        let clients = clients::Clients::new(&limits);
        let app = App { metrics: Arc::new(metrics::Metrics::new(&host, &clients)), host };
        let (open, stopped) = tokio::sync::watch::channel(false);
        let router = routes::router(app, authority::Names::ANY, &limits, stopped.clone());
        let connections = connection::Connections { router, limits, stopped };
        Self { clients, connections, _open: open }
    }

    pub(crate) async fn serve<S>(&self, stream: S)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let admission = self.clients.admit().expect("there is room for one");
        let _ = self.connections.clone().serve(stream, [127, 0, 0, 1].into(), admission).await;
    }
}
