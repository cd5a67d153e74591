//! How the ports for clients are opened and closed, for any protocol.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Pause after an error of `accept`: there may be no free file descriptors for a while. Clients
/// wait in the backlog meanwhile.
const PAUSE: Duration = Duration::from_millis(50);
/// Errors of `accept` are logged at most this often.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// Listens at an address; with port 0 the system chooses one.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A host that restarts can bind its port again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How a port handles its connections.
pub(crate) trait Port {
    /// The kind of client, for the log: "a Redis client".
    const CLIENT: &'static str;

    /// How long clients may take to finish running requests once the port is closed.
    fn stop_grace(&self) -> Duration;

    /// Serves a connection in a task of its own, until it ends or the port is closed.
    fn take_in(&self, socket: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>);
}

/// Accepts connections until `stop` resolves; then it accepts no more, and all are notified and
/// closed within the port's grace time.
pub(crate) async fn accept<P: Port>(
    listener: TcpListener,
    port: P,
    stop_connections: watch::Sender<bool>,
    stop: impl Future<Output = ()> + Send,
) {
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    let mut logged: Option<Instant> = None;
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => port.take_in(socket, peer, &mut connections),
                Err(error) => {
                    if logged.is_none_or(|at| at.elapsed() >= LOGGED_EVERY) {
                        tracing::warn!(%error, "cannot accept {} for now", P::CLIENT);
                        logged = Some(Instant::now());
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    stop_connections.send_replace(true);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(port.stop_grace(), all).await.is_err() {
        tracing::warn!(connections = connections.len(), "closed while still busy");
    }
}
