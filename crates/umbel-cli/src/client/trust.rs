//! Connects to a host: over plain TCP, or over TLS with a trusted certificate authority.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use umbel_node::tls::client_config;

use super::{Address, describe};

/// Hosts are usually on the same network: one that has not accepted a connection after this time
/// is considered down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Long, because a host may sync a disk, or query every other host, before it replies.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Where systems keep their trusted certificate authorities.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Whom to believe.
#[derive(Args, Clone, Default)]
pub(super) struct Trust {
    /// Use TLS; trust the system's certificate authorities unless --ca names another
    #[arg(long, env = "UMBEL_TLS", global = true)]
    tls: bool,
    /// Use TLS and trust this certificate authority
    #[arg(long, value_name = "FILE", env = "UMBEL_CA", global = true)]
    ca: Option<PathBuf>,
}

impl Trust {
    /// The certificate authority's file, if TLS is to be used.
    fn authority(&self) -> anyhow::Result<Option<PathBuf>> {
        match (&self.ca, self.tls) {
            (Some(ca), _) => Ok(Some(ca.clone())),
            (None, false) => Ok(None),
            (None, true) => {
                let found = SYSTEM.iter().map(Path::new).find(|path| path.exists());
                let found = found.ok_or_else(|| {
                    anyhow!("this system's authorities are not found: name one with --ca FILE")
                })?;
                Ok(Some(found.to_owned()))
            }
        }
    }

    pub(super) fn connect(&self, address: &Address) -> anyhow::Result<Stream> {
        let authority = self.authority()?;
        let failed = |error: io::Error| describe(address, &error.into());
        let socket = reach(address).map_err(failed)?;
        let Some(authority) = authority else { return Ok(Stream::Plain(socket)) };
        let config = client_config(&authority)?;
        let host = ServerName::try_from(address.host.clone())
            .with_context(|| format!("{address}: a certificate cannot have such a name"))?;
        let mut tls = StreamOwned::new(ClientConnection::new(config, host)?, socket);
        // Complete the handshake now, so that a failure is reported as a TLS error.
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock).map_err(|error| refused(address, &error))?;
        }
        Ok(Stream::Tls(Box::new(tls)))
    }
}

fn refused(address: &Address, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "{address}: no TLS that can be believed ({error}): is --ca the authority of its \
         certificate, is the certificate of this name, and does it speak TLS?"
    )
}

/// Connects to the first address of a name that accepts.
fn reach(address: &Address) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotConnected, "the name has no address");
    for candidate in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                socket.set_write_timeout(Some(ANSWER_TIMEOUT))?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A connection to a host.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// How long to wait for the next reply.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.set_read_timeout(Some(patience)),
            Self::Tls(tls) => tls.sock.set_read_timeout(Some(patience)),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buffer),
            Self::Tls(tls) => tls.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}
