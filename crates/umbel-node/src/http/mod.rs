//! The HTTP API: JSON for queries and sets, lines for bulk loads, problem details for errors.
//!
//! ```text
//! socket ─► TLS ─► Watched ─► hyper ─► Metrics ─► Problems ─► Guard ─► one handler a route ─► Host
//!             │ phase and progress                      open, read, write, admin
//!           Clients: deadlines, the limit, who has to go first
//! ```
//!
//! `routes` has the only list of routes, grouped by the permission that a client needs; the
//! description at `/openapi.json` is generated from the handlers themselves.
//!
//! Always true: every error of a handler or a route is a problem (RFC 9457) and means that nothing
//! changed, unless it says otherwise; a write is acknowledged only when it is durable; the memory
//! of a connection is bounded, whatever its client sends and however slowly it reads; a client that
//! sends half of a request keeps nobody else out.
//!
//! A connection is any stream that can be read and written; with a certificate, TLS. Every group
//! except the open one passes through `guard`, which asks `access` for the user of the bearer
//! token, or `sessions` for the user of the cookie. For people there is the `dashboard`: a page and
//! a feed of live data for it.

mod authority;
mod body;
mod bulk;
mod chain;
mod clients;
mod connection;
mod dashboard;
mod events;
mod fetch;
mod guard;
mod health;
mod hosts;
mod key_list;
mod key_text;
mod keys;
mod lifetime;
mod lines;
mod listing;
mod locate;
mod metrics;
mod missing;
mod names;
mod objects;
mod oci;
mod openapi;
mod origin;
mod plan;
mod problem;
mod routes;
mod server;
mod sessions;
mod sets;
mod watched;
mod who;

use std::sync::Arc;
use std::time::Duration;

use crate::Host;
use crate::settings::Settings;

pub use routes::description;
pub use server::Server;

/// Limits for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections. When one more arrives, the one that has been without a
    /// request longest is closed; if there is none, the new connection gets an error and is closed.
    /// Default: 10,000.
    pub connections: usize,
    /// Maximum bytes of a request's line and headers together. Default: 128 KiB, enough for the
    /// longest key in a path.
    pub header_bytes: usize,
    /// Maximum bytes of a body that is read completely: queries about many keys, plans of sets.
    /// Bulk loads are streamed and have no such limit. Default: 4 MiB.
    pub question_bytes: usize,
    /// Maximum time from a request's first byte to the end of its headers. Default: 10 s.
    pub header_time: Duration,
    /// A connection is closed after this time without a byte in either direction. Default: 75 s.
    pub idle_time: Duration,
    /// Minimum rate of a request's body in bytes per second, on average over `idle_time`; 0: any
    /// byte is enough. Default: 16.
    pub body_rate: u32,
    /// How long a request may take to finish when the server stops. Default: 5 s.
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
    feed: Arc<dashboard::Feed>,
    sessions: Arc<sessions::Sessions>,
}

impl App {
    /// The state of the handlers of a port, with or without TLS.
    fn new(host: Host, clients: &Arc<clients::Clients>, port: u16, has_tls: bool) -> Self {
        Self {
            metrics: Arc::new(metrics::Metrics::new(&host, clients)),
            feed: dashboard::Feed::new(&host),
            sessions: sessions::Sessions::new(Arc::clone(host.access()), port, has_tls),
            host,
        }
    }
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
        let app = App::new(host, &clients, 7441, false);
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
