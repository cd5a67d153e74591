//! Hosts with an HTTP port, and a client that sees every byte.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use umbel_node::http::{Limits, Server};
use umbel_node::{Host, LocalNetwork};

/// A host with a port, stopped when dropped.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<()>>,
    pub(crate) runtime: Runtime,
}

impl Port {
    pub(crate) fn open() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::of("here", &LocalNetwork::new(), limits, &[])
    }

    pub(crate) fn of(
        name: &str,
        network: &LocalNetwork,
        limits: Limits,
        settings: &[(&str, &str)],
    ) -> Self {
        let runtime = Runtime::new().expect("in a test");
        let mut builder = Host::builder().name(name).local(network);
        for (key, value) in settings {
            builder = builder.set(key, [*value]);
        }
        let host = runtime.block_on(builder.start()).expect("in a test");
        let guard = runtime.enter();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), host.clone(), limits);
        let server = server.expect("in a test");
        let (stop, stopped) = oneshot::channel::<()>();
        let address = server.local_addr();
        let served = runtime.spawn(server.run(async { drop(stopped.await) }));
        drop(guard);
        Self { address, host, stop: Some(stop), served: Some(served), runtime }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// A request with a body, and its answer.
    pub(crate) fn send(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        self.send_as(method, path, "text/plain", body)
    }

    pub(crate) fn json(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send_as(method, path, "application/json", body.as_bytes())
    }

    fn send_as(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
        self.send_with(method, path, &[("content-type", kind)], body)
    }

    /// A request with these headers.
    pub(crate) fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut socket = self.begin(method, path, headers, body);
        Answer::read(&mut socket)
    }

    /// Sends a request and reads nothing.
    pub(crate) fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> TcpStream {
        let mut socket = self.connect();
        let length = body.len();
        let more: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\
             content-length: {length}\r\n\r\n"
        );
        let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body));
        socket
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, b"")
    }

    /// Lets the server finish.
    pub(crate) fn stop(mut self) {
        drop(self.stop.take());
        self.runtime.block_on(self.served.take().expect("in a test")).expect("in a test");
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("in a test");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("in a test");
    socket.set_nodelay(true).expect("in a test");
    socket
}

/// What came back until the connection ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn read(socket: &mut TcpStream) -> Self {
        let bytes = rest(socket);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer");
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = &bytes[end + 4..];
        let chunked = head.contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(body) } else { body.to_vec() };
        Self { status: status.expect("a status"), head, body }
    }

    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }

    /// A problem as the standard has it, with this status and this word for programs.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!((self.status, &problem["status"]), (status, &status.into()), "{problem}");
        assert_eq!((&problem["type"], &problem["code"]), (&"about:blank".into(), &code.into()));
        let detail = problem["detail"].as_str().expect("a line for people");
        assert!(!detail.is_empty() && !detail.contains('\n'), "{detail}");
    }
}

pub(crate) fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65536]);
    loop {
        match socket.read(&mut piece) {
            Ok(0) => return bytes,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return bytes,
            Err(error) => panic!("{error}"),
        }
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    body
}

/// Waits until something is so, and complains after a while.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "not within half a minute: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Listens on a free port, and serves every connection in a thread of its own.
pub(crate) fn serve_each(
    serve: impl Fn(std::net::TcpStream) + Clone + Send + 'static,
) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(socket.expect("a client")));
        }
    });
    address
}
