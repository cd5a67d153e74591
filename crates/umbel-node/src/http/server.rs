//! The HTTP port: accepts connections.

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::authority::Names;
use super::clients::Clients;
use super::connection::Connections;
use super::{App, Limits, routes};
use crate::Host;
use crate::listen::{Port, accept, listen};

/// A port for HTTP.
pub struct Server {
    listener: TcpListener,
    local: SocketAddr,
    app: App,
    clients: Arc<Clients>,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens at `address`; with port 0 the system chooses one. Uses TLS if the host has a
    /// certificate for clients.
    ///
    /// # Errors
    /// If the address is taken or not this machine's.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn bind(address: SocketAddr, host: Host, limits: Limits) -> io::Result<Self> {
        let listener = listen(address)?;
        let local = listener.local_addr()?;
        let clients = Clients::new(&limits);
        #[cfg(feature = "tls")]
        let tls = host.inner.ports.certificates.as_ref().map(crate::tls::Certificates::acceptor);
        #[cfg(feature = "tls")]
        let has_tls = tls.is_some();
        #[cfg(not(feature = "tls"))]
        let has_tls = false;
        let app = App::new(host, &clients, local.port(), has_tls);
        Ok(Self {
            listener,
            local,
            app,
            clients,
            limits,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Names under which this port may be addressed.
    fn names(&self) -> Names {
        #[cfg(feature = "tls")]
        let has_tls = self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let has_tls = false;
        Names::of_host(&self.app.host, self.local, has_tls)
    }

    /// Serves clients until `stop` resolves; then it accepts no more connections, finishes running
    /// requests and closes all connections within [`Limits::stop_grace`].
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let (stop_connections, stopped) = watch::channel(false);
        let names = self.names();
        tokio::spawn(Arc::clone(&self.app.feed).run(stopped.clone()));
        let router = routes::router(self.app.clone(), names, &self.limits, stopped.clone());
        let entrance = Entrance {
            connections: Connections { router, limits: self.limits, stopped },
            clients: self.clients,
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        accept(self.listener, entrance, stop_connections, stop).await;
    }
}

/// Accepts connections while the port is open.
struct Entrance {
    connections: Connections,
    clients: Arc<Clients>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Port for Entrance {
    const CLIENT: &'static str = "an HTTP client";

    fn stop_grace(&self) -> Duration {
        self.connections.limits.stop_grace
    }

    fn take_in(&self, socket: TcpStream, peer: SocketAddr, tasks: &mut JoinSet<()>) {
        let Some(admission) = self.clients.admit() else {
            // Its send buffer is empty, so this does not block; if the write fails, the socket is
            // just closed.
            let written = socket.into_std().and_then(|mut socket| socket.write(FULL));
            return drop(written);
        };
        // Responses are sent in one piece; Nagle's algorithm would only delay them.
        let _ = socket.set_nodelay(true);
        let (connections, from) = (self.connections.clone(), peer.ip());
        #[cfg(feature = "tls")]
        let (tls, handshake) = (self.tls.clone(), connections.limits.header_time);
        tasks.spawn(async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let client = Arc::clone(&admission.client);
                let handshake = tokio::select! {
                    handshake = tokio::time::timeout(handshake, tls.accept(socket)) => handshake,
                    () = client.leave.notified() => return,
                };
                match handshake {
                    Ok(Ok(socket)) => log(peer, connections.serve(socket, from, admission).await),
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS with an HTTP client"),
                    Err(_) => tracing::debug!(%peer, "an HTTP client took too long to begin TLS"),
                }
                return;
            }
            log(peer, connections.serve(socket, from, admission).await);
        });
    }
}

fn log(peer: SocketAddr, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "an HTTP client's connection broke");
    }
}

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"code\":\"too_many_connections\",\"detail\":\"as many clients are served as there may be: try later\"}";
