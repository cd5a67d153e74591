//! ZeroMQ's protocol: the part of it that a subscriber, a client of a replay socket and a stand-in
//! for an engine need. It is ZMTP 3.0 with the mechanism NULL, over TCP.
//!
//! A [`Connection`] does not reconnect: when it is lost, its user gets an error and opens a new
//! one. A follower must know that an engine was disconnected; sockets that reconnect by themselves
//! hide it.
//!
//! Always true: frames and messages are bounded ([`MAX_FRAME`], [`MAX_FRAMES`]); whatever a peer
//! sends causes at worst an error.

mod frame;

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use frame::{MAX_FRAME, MAX_FRAMES};

/// How often a waiting thread checks the stop flag.
const TICK: Duration = Duration::from_millis(100);
/// Timeout for connecting, for the peer's greeting, and for writing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Address of a socket of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// The endpoint of a rank: the same host, with the rank added to the port. The ranks of an
    /// engine publish at consecutive ports.
    #[must_use]
    pub fn of_rank(&self, rank: u16) -> Option<Self> {
        let port = self.port.checked_add(rank)?;
        Some(Self { host: self.host.clone(), port })
    }
}

impl std::str::FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            "an endpoint such as tcp://127.0.0.1:5557 is needed; where the engine binds tcp://*:5557, \
             name the engine's own address"
                .to_owned()
        };
        let address = text.strip_prefix("tcp://").ok_or_else(refused)?;
        let (host, port) = address.rsplit_once(':').ok_or_else(refused)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(refused)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_host = !bare.is_empty() && !bare.contains(['*', '/', ' ', '[', ']']);
        if is_host { Ok(Self { host: bare.to_owned(), port }) } else { Err(refused()) }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "tcp://[{}]:{}", self.host, self.port),
            false => write!(f, "tcp://{}:{}", self.host, self.port),
        }
    }
}

/// The frames of one message.
pub type Message = Vec<Vec<u8>>;

/// A connection to a ZeroMQ socket.
#[derive(Debug)]
pub struct Connection {
    input: BufReader<Patient>,
    output: TcpStream,
}

/// A socket whose blocking reads wake up every tick to check for the stop flag and the deadline.
#[derive(Debug)]
struct Patient {
    stream: TcpStream,
    stop: Arc<AtomicBool>,
    /// When a read times out.
    deadline: Option<Instant>,
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(bytes) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(io::Error::other("stopped"));
                    }
                    if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Connection {
    /// Connects to an engine's PUB socket and subscribes to a topic; an empty topic means all.
    ///
    /// # Errors
    /// If nobody listens there, or it is not a PUB socket.
    pub fn subscribe(to: &Endpoint, topic: &[u8], stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let mut connection = Self::connect(to, "SUB", &["PUB", "XPUB"], stop)?;
        connection.send(&[&[&[1], topic].concat()])?;
        Ok(connection)
    }

    /// Connects to an engine's ROUTER socket.
    ///
    /// # Errors
    /// If nobody listens there, or it is not a ROUTER socket.
    pub fn deal(to: &Endpoint, stop: &Arc<AtomicBool>) -> io::Result<Self> {
        Self::connect(to, "DEALER", &["ROUTER"], stop)
    }

    fn connect(
        to: &Endpoint,
        own: &str,
        peers: &[&str],
        stop: &Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in (to.host.as_str(), to.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return Self::greet(stream, own, peers, stop),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Performs the handshake, on a connection that either side has opened.
    pub(crate) fn greet(
        stream: TcpStream,
        own: &str,
        peers: &[&str],
        stop: &Arc<AtomicBool>,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let output = stream.try_clone()?;
        let patient = Patient { stream, stop: Arc::clone(stop), deadline: None };
        let mut connection = Self { input: BufReader::with_capacity(1 << 16, patient), output };
        connection.limit(Some(PATIENCE));
        connection.output.write_all(&frame::greeting())?;
        let mut greeting = [0; frame::GREETING];
        connection.input.read_exact(&mut greeting)?;
        frame::check_greeting(&greeting)?;
        connection.output.write_all(&frame::ready(own))?;
        let (is_command, body) = frame::read(&mut connection.input)?.0;
        let kind = if is_command { frame::socket_type(&body)? } else { None };
        match kind {
            Some(kind) if peers.iter().any(|peer| peer.as_bytes() == kind) => {}
            kind => {
                let kind = String::from_utf8_lossy(kind.unwrap_or(b"no")).into_owned();
                let expected = peers.join(" or ");
                return Err(frame::broken(format!(
                    "a {kind} socket, where {expected} is expected"
                )));
            }
        }
        connection.limit(None);
        Ok(connection)
    }

    /// Sets a deadline for reading, this long from now; `None` means no deadline.
    pub fn limit(&mut self, time: Option<Duration>) {
        self.input.get_mut().deadline = time.map(|time| Instant::now() + time);
    }

    /// Sends one message.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame::write(frames, &mut bytes);
        self.output.write_all(&bytes)
    }

    /// Waits for a message, and replaces the frames in `message` by its frames. Meanwhile it
    /// replies to heartbeats (PING).
    ///
    /// # Errors
    /// If the connection is lost, the bytes are not a valid message, or this thread should stop.
    pub fn receive(&mut self, message: &mut Message) -> io::Result<()> {
        message.clear();
        loop {
            let ((is_command, body), has_more) = frame::read(&mut self.input)?;
            if is_command {
                if let Some(pong) = frame::pong(&body) {
                    self.output.write_all(&pong)?;
                }
                continue;
            }
            message.push(body);
            if !has_more {
                return Ok(());
            }
            if message.len() >= MAX_FRAMES {
                return Err(frame::broken(format!("a message of more than {MAX_FRAMES} frames")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_addresses_to_connect_to() {
        for text in ["tcp://127.0.0.1:5557", "tcp://[::1]:5557", "tcp://worker-3:1"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "5557",
            "tcp://",
            "tcp://*:5557",
            "tcp://a",
            "tcp://a:0",
            "tcp://a:65536",
            "tcp://:5557",
            "ipc:///tmp/x",
            "inproc://x",
            "udp://a:1",
            "tcp://a b:1",
        ] {
            assert!(
                text.parse::<Endpoint>().unwrap_err().contains("tcp://127.0.0.1:5557"),
                "{text}"
            );
        }
        let endpoint: Endpoint = "tcp://a:65530".parse().unwrap();
        assert_eq!(endpoint.of_rank(5).unwrap().to_string(), "tcp://a:65535");
        assert_eq!(endpoint.of_rank(6), None);
    }
}
