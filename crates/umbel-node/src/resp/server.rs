//! The port for Redis clients: accepts connections.

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Limits;
use super::clients::Clients;
use super::connection::Connection;
use crate::Host;
use crate::listen::{Port, accept, listen};

/// A port for Redis clients.
pub struct Server {
    listener: TcpListener,
    host: Host,
    clients: Arc<Clients>,
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
        let clients = Clients::new(
            limits,
            listener.local_addr()?,
            Arc::clone(&host.inner.ports.redis_clients),
        );
        Ok(Self {
            #[cfg(feature = "tls")]
            tls: host.inner.ports.certificates.as_ref().map(crate::tls::Certificates::acceptor),
            listener,
            host,
            clients,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.clients.local
    }

    /// Serves clients until `stop` resolves; then it accepts no more connections, finishes running
    /// bursts and closes all connections within [`Limits::stop_grace`].
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let (stop_connections, stopped) = watch::channel(false);
        let entrance = Entrance {
            host: self.host,
            clients: self.clients,
            stopped,
            #[cfg(feature = "tls")]
            tls: self.tls,
        };
        accept(self.listener, entrance, stop_connections, stop).await;
    }
}

/// Accepts connections while the port is open.
struct Entrance {
    host: Host,
    clients: Arc<Clients>,
    stopped: watch::Receiver<bool>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Entrance {
    const FULL: &[u8] = b"-ERR max number of clients reached\r\n";
}

impl Port for Entrance {
    const CLIENT: &'static str = "a Redis client";

    fn stop_grace(&self) -> Duration {
        self.clients.limits.stop_grace
    }

    fn take_in(&self, socket: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>) {
        let Some(admission) = self.clients.admit(peer) else {
            // Its send buffer is empty, so this does not block; if the write fails, the socket is
            // just closed.
            let written = socket.into_std().and_then(|mut socket| socket.write(Self::FULL));
            return drop(written);
        };
        // Replies are sent in one piece; Nagle's algorithm would only delay them.
        let _ = socket.set_nodelay(true);
        let (host, stopped) = (self.host.clone(), self.stopped.clone());
        #[cfg(feature = "tls")]
        let (tls, handshake) = (self.tls.clone(), self.clients.limits.login_time);
        connections.spawn(async move {
            let served = async {
                #[cfg(feature = "tls")]
                if let Some(tls) = tls {
                    let client = std::sync::Arc::clone(&admission.client);
                    let shaken = tokio::time::timeout(handshake, tls.accept(socket));
                    let socket = tokio::select! {
                        shaken = shaken => shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??,
                        () = client.leave.notified() => return Ok(()),
                    };
                    return Connection::new(socket, host, admission).serve(stopped).await;
                }
                Connection::new(socket, host, admission).serve(stopped).await
            };
            if let Err(error) = served.await {
                tracing::debug!(%peer, %error, "a Redis client's connection broke");
            }
        });
    }
}
