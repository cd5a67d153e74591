//! How the ports for clients are opened, whatever is spoken there.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// What is waited after an error of `accept`: there may be no descriptors for a while.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Listens at an address; with port 0 the system chooses one.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A host that restarts takes its port again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
