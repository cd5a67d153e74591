//! Fuzz targets: everything of a host that takes bytes from outside.
//!
//! Each function takes any bytes, and panics if a promise is broken. The targets in `fuzz/` call
//! them with the fuzzer's inputs, and a test of every build with the seeds in `fuzz/seeds`.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::Runtime;
use umbel::replica::{Incarnation, Name, Policy};
use umbel::text::is_unsafe;
use umbel::{HashId, KeyHasher, Seed};

use crate::hello::Hello;
use crate::peer_request::{PeerRequest, decode_hosts};
use crate::resp::request::{Parser, Request, RequestLimits, Step};
use crate::settings::{Draft, Layer};
use crate::{Confirm, Host, LocalNetwork};

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All functions, by the names of their fuzz targets.
pub const TARGETS: &[(&str, Target)] = &[
    ("configuration", configuration),
    ("greeting", greeting),
    ("http_request", http_request),
    ("names", names),
    ("peer_request", peer_request),
    ("policy", policy),
    ("resp_command", resp_command),
    ("resp_request", resp_request),
];

/// A greeting: rejected, or safe to display and unchanged by a round trip.
pub fn greeting(bytes: &[u8]) {
    let Some(hello) = Hello::decode(bytes) else { return };
    let again = hello.encode();
    assert!(again.len() > 8192 || Hello::decode(&again).as_ref() == Some(&hello));
    let name = Name::new("own").expect("a name");
    let own = Hello::new(
        &name,
        &name,
        Incarnation(1),
        &KeyHasher::new(HashId::SipHash13, Seed::default()),
    );
    let difference = own.differs_from(&hello).map(|difference| difference.to_string());
    assert!(difference.is_none_or(|difference| !difference.contains(is_unsafe)));
    let _ = hello.listens();
}

/// A request from one host to another, and the reply that lists hosts.
pub fn peer_request(bytes: &[u8]) {
    if let Some(peer_request) = PeerRequest::decode(bytes) {
        assert_eq!(PeerRequest::decode(&peer_request.encode()).as_ref(), Some(&peer_request));
    }
    let _ = decode_hosts(bytes);
}

/// A configuration file: rejected with a message, or settings that keep their promises.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    // The file would be read, whatever it is.
    if text.contains("hash_key_file") {
        return;
    }
    let drafted =
        Layer::toml(Path::new("umbel.toml"), text).and_then(|layer| Draft::new().with(layer));
    let Ok(draft) = drafted.map_err(|error| error.to_string()) else { return };
    let _ = draft.shown();
    let Ok(settings) = draft.settings().map_err(|error| error.to_string()) else { return };
    let ports = [settings.resp, settings.http].into_iter().flatten();
    let is_guarded = settings.users.is_some() && settings.tls.is_some();
    for port in ports {
        assert!(port.ip().is_loopback() || is_guarded || settings.allow_remote, "{port}");
    }
}

/// A policy as text: rejected, or unchanged by a round trip.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(policy) = text.parse::<Policy>() {
        assert_eq!(policy.to_string().parse::<Policy>().as_ref(), Ok(&policy), "{text}");
    }
}

/// Names of hosts, sets and prefixes, and templates for asking caches.
pub fn names(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(name) = Name::new(text) {
        assert!(!name.as_str().contains(is_unsafe));
    }
    if let Ok(name) = text.parse::<umbel::prefix::Name>() {
        assert_eq!(name.to_string().parse().as_ref(), Ok(&name), "{text}");
        assert!(!name.as_str().contains(is_unsafe));
    }
    if let Ok(Confirm::Cache(template)) = text.parse::<Confirm>() {
        let url = template.url("http://own:80", "set", b"k@evil/?#{set}");
        let url = url.expect("no part of the key leads out");
        let server = template.origin().unwrap_or_else(|| "http://own:80".to_owned());
        assert!(url.to_ascii_lowercase().starts_with(&server), "{text}: {url}");
    }
}

/// Bytes of a Redis client, split into pieces whose length is the first byte: they yield requests
/// within their limits or an error, and the same as in one piece.
pub fn resp_request(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let whole = parse(bytes, bytes.len().max(1));
    assert_eq!(parse(bytes, usize::from(*piece).max(1)), whole);
}

/// The arguments of all requests, and whether the protocol was violated.
fn parse(bytes: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, bool) {
    let limits = RequestLimits { arguments: 16, argument_bytes: 64, request_bytes: 512 };
    let mut parser = Parser::new(limits);
    let (mut requests, mut start, mut end) = (Vec::new(), 0, 0);
    while end < bytes.len() {
        end = (end + piece).min(bytes.len());
        loop {
            match parser.next(&bytes[start..end]) {
                Err(_) => return (requests, true),
                Ok(Step::More(needed)) => {
                    assert!(needed > end - start);
                    break;
                }
                Ok(Step::Empty(consumed)) => start += consumed,
                Ok(Step::Request(request, consumed)) => {
                    start += consumed;
                    let words: Vec<Vec<u8>> = match request {
                        Request::Array(words) => words.from(0).map(<[u8]>::to_vec).collect(),
                        Request::Inline(words) => words.from(0).map(<[u8]>::to_vec).collect(),
                    };
                    assert!(!words.is_empty() && consumed <= limits.request_bytes);
                    requests.push(words);
                }
            }
        }
    }
    (requests, false)
}

/// Commands of a Redis client, including the parser.
pub fn resp_command(bytes: &[u8]) {
    let limits = crate::resp::Limits {
        request: RequestLimits { arguments: 64, argument_bytes: 4096, request_bytes: 16 << 10 },
        idle: Some(PATIENCE),
        ..crate::resp::Limits::default()
    };
    exchange(bytes, move |stream| async move {
        let _ = crate::resp::serve_one(subject().host.clone(), stream, limits).await;
    });
}

/// Requests of an HTTP client.
pub fn http_request(bytes: &[u8]) {
    // A stream of events continues until the host stops.
    if bytes.windows(7).any(|seven| seven.eq_ignore_ascii_case(b"/events")) {
        return;
    }
    exchange(bytes, |stream| async move {
        subject().http.serve(stream).await;
    });
}

/// How long a reply may take: the host is alone and in memory.
const PATIENCE: Duration = Duration::from_secs(20);
/// The sets are deleted after this many inputs, so that memory stays bounded.
const CLEARED_EVERY: u64 = 64;

/// The host that all inputs are sent to.
struct Subject {
    host: Host,
    http: crate::http::Harness,
    runtime: Runtime,
    inputs: AtomicU64,
}

fn subject() -> &'static Subject {
    static SUBJECT: OnceLock<Subject> = OnceLock::new();
    SUBJECT.get_or_init(|| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().expect("threads");
        let host = Host::builder().name("subject").local(&LocalNetwork::new());
        let host = host.set("limits.sets", ["32"]).set("limits.filter_bits", ["1048576"]);
        let host = runtime.block_on(host.start()).expect("a host");
        Subject {
            http: crate::http::Harness::new(host.clone()),
            host,
            runtime,
            inputs: AtomicU64::new(0),
        }
    })
}

/// Sends the bytes to one end of a connection that is served at the other, and reads until it ends;
/// afterwards the host must still answer.
fn exchange<F: Future<Output = ()> + Send>(
    bytes: &[u8],
    serve: impl FnOnce(DuplexStream) -> F + Send,
) {
    let subject = subject();
    let (mut client, server) = tokio::io::duplex(4096);
    subject.runtime.block_on(async {
        let talk = async {
            // The server may stop reading at any time, and replies while it reads.
            let (mut from, mut to) = tokio::io::split(&mut client);
            let send = async {
                let _ = to.write_all(bytes).await;
                let _ = to.shutdown().await;
            };
            let mut replies = Vec::new();
            let receive = from.read_to_end(&mut replies);
            let _ = tokio::join!(send, receive);
        };
        let both = async { tokio::join!(serve(server), talk) };
        tokio::time::timeout(PATIENCE, both).await.expect("a connection ends with its client");
    });
    let _ = subject.host.status();
    if subject.inputs.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEARED_EVERY) {
        for set in subject.host.sets() {
            let _ = subject.host.delete(&set);
        }
    }
}

#[cfg(test)]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_survived() {
        replay::replay(TARGETS, |_| None);
    }
}
