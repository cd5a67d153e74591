//! Objects that are fetched: redirects, origins, and objects that pass through a host.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use umbel_node::LocalNetwork;
use umbel_node::http::Limits;

use super::client::{Port, eventually, rest, serve_each};

/// A small HTTP server that stands for a cache with objects, and notes what it was asked.
#[derive(Clone, Default)]
struct Cache {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// How many bytes of an object it sends before it breaks off.
    breaks_after: Arc<Mutex<Option<usize>>>,
    /// Whether it says how long an object is.
    is_chunked: Arc<Mutex<bool>>,
}

impl Cache {
    fn open() -> (Self, SocketAddr) {
        let cache = Self::default();
        let server = cache.clone();
        let address = serve_each(move |socket| server.serve(socket));
        (cache, address)
    }

    fn serve(&self, mut socket: std::net::TcpStream) {
        let mut lines = BufReader::new(socket.try_clone().expect("a socket")).lines();
        while let Some(Ok(first)) = lines.next() {
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let request = first.trim_end_matches(" HTTP/1.1").to_owned();
            let (method, path) = request.split_once(' ').expect("a request");
            let (method, path) = (method.to_owned(), path.to_owned());
            self.asked.lock().expect("a lock").push(request);
            let object = self.objects.lock().expect("a lock").get(&path).cloned();
            let sent = self.answer(&mut socket, &method, object);
            if sent.is_err() || self.breaks_after.lock().expect("a lock").is_some() {
                return;
            }
        }
    }

    fn answer(
        &self,
        socket: &mut std::net::TcpStream,
        method: &str,
        object: Option<Vec<u8>>,
    ) -> std::io::Result<()> {
        let Some(object) = object else {
            return socket.write_all(b"HTTP/1.1 404 None\r\ncontent-length: 0\r\n\r\n");
        };
        let kind = "content-type: image/png\r\ncache-control: max-age=60\r\nset-cookie: a=b\r\n";
        if *self.is_chunked.lock().expect("a lock") {
            write!(socket, "HTTP/1.1 200 Yes\r\n{kind}transfer-encoding: chunked\r\n\r\n")?;
            for chunk in object.chunks(10_000) {
                write!(socket, "{:x}\r\n", chunk.len())?;
                socket.write_all(chunk)?;
                socket.write_all(b"\r\n")?;
            }
            return socket.write_all(b"0\r\n\r\n");
        }
        write!(socket, "HTTP/1.1 200 Yes\r\n{kind}content-length: {}\r\n\r\n", object.len())?;
        let end = self.breaks_after.lock().expect("a lock").unwrap_or(object.len());
        if method == "GET" { socket.write_all(&object[..end]) } else { Ok(()) }
    }

    fn put(&self, path: &str, object: &[u8]) {
        self.objects.lock().expect("a lock").insert(path.to_owned(), object.to_vec());
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a lock").clone()
    }
}

fn port(name: &str, network: &LocalNetwork, cache: SocketAddr, more: &[(&str, &str)]) -> Port {
    let advertise = format!("http://{cache}/o");
    let own = [("advertise", advertise.as_str()), ("set.confirm", "HEAD {advertise}/{key}")];
    Port::of(name, network, Limits::default(), &[&own, more].concat())
}

/// Two hosts with a cache each; the first has heard of the keys of the second.
fn pair(keys: &str, more: &[(&str, &str)]) -> (Port, Cache, Port, Cache) {
    let network = LocalNetwork::new();
    let (near, near_at) = Cache::open();
    let (far, far_at) = Cache::open();
    let asker = port("near", &network, near_at, more);
    let holder = port("far", &network, far_at, more);
    holder.send("POST", "/v1/sets/s/keys", keys.as_bytes());
    holder.send("POST", "/v1/sets/s/publish", b"");
    for key in keys.lines() {
        eventually("the asker has heard", || {
            let who = asker.get(&format!("/v1/sets/s/who/{key}"));
            who.status == 200 && who.json()["hosts"].as_array().is_some_and(|all| !all.is_empty())
        });
    }
    (asker, near, holder, far)
}

/// Before, a cache that had just missed asked itself by way of its host, and the answer removed the
/// key that was being added at the same moment.
#[test]
fn a_host_that_is_left_out_does_not_ask_its_own_cache() {
    let (asker, near, _holder, far) = pair("k", &[]);
    far.put("/o/k", b"object");
    asker.send("PUT", "/v1/sets/s/keys/k", b"");
    eventually("the greeting has arrived", || {
        asker.get("/v1/sets/s/fetch/k?except=self").status == 307
    });
    let fetch = asker.get("/v1/sets/s/fetch/k?except=self");
    assert!(fetch.header("location").unwrap().ends_with("/o/k"));
    assert_eq!(near.asked(), [""; 0]);
    assert_eq!(asker.get("/v1/sets/s/keys/k").status, 200, "it is still held");
    asker.get("/v1/sets/s/fetch/k?except=self,far").is_problem(404, "no_holder");
    asker.get("/v1/sets/s/fetch/k?except=near,far&via=proxy").is_problem(404, "no_holder");
    assert_eq!(asker.get("/v1/sets/s/fetch/k?except=near,unheard-of").status, 307);
    for names in ["", ",", "self,", "a%20b"] {
        asker.get(&format!("/v1/sets/s/fetch/k?except={names}")).is_problem(400, "except");
    }
}

#[test]
fn what_nobody_holds_is_fetched_from_the_origin_of_the_configuration() {
    let (asker, _, _holder, far) = pair("k", &[("origins", "s=http://origin.example/{set}/{key}")]);
    far.put("/o/k", b"object");
    let origin = asker.get("/v1/sets/s/fetch/a%20b/c?else=origin");
    assert_eq!(origin.status, 307);
    assert_eq!(origin.header("location"), Some("http://origin.example/s/a%20b/c"));
    eventually("the greeting has arrived", || {
        let held = asker.get("/v1/sets/s/fetch/k?else=origin");
        held.header("location").unwrap().starts_with("http://127.0.0.1")
    });
    let proxied = asker.get("/v1/sets/s/fetch/none?else=origin&via=proxy");
    assert_eq!(proxied.header("location"), Some("http://origin.example/s/none"));
    // Neither a key nor anything else of a request chooses the server.
    let hostile = asker.get("/v1/sets/s/fetch/%40evil.example%2F%3F%23?else=origin");
    let location = hostile.header("location").unwrap();
    assert_eq!(location, "http://origin.example/s/%40evil.example/%3f%23");
    asker.get("/v1/sets/s/fetch/..%2Fsecret?else=origin").is_problem(404, "no_origin");
    asker.get("/v1/sets/other/fetch/k?else=origin").is_problem(404, "no_origin");
    asker.get("/v1/sets/s/fetch/k?else=http://evil.example").is_problem(400, "request");
    let every = Port::of(
        "every",
        &LocalNetwork::new(),
        Limits::default(),
        &[("origins", "https://origin.example/{key}")],
    );
    let origin = every.get("/v1/sets/unknown/fetch/k?else=origin");
    assert_eq!(origin.header("location"), Some("https://origin.example/k"));
}

#[test]
fn an_object_passes_through_the_host_that_is_asked() {
    let (asker, near, holder, far) = pair("small\nempty\nlarge\nown", &[]);
    // Several pieces, and a last one that is not full.
    let large: Vec<u8> = (0..700_000_u32).map(|number| (number % 251) as u8).collect();
    far.put("/o/small", b"object");
    far.put("/o/empty", b"");
    far.put("/o/large", &large);
    for is_chunked in [false, true] {
        *far.is_chunked.lock().expect("a lock") = is_chunked;
        for (key, object) in [("small", &b"object"[..]), ("empty", b""), ("large", &large)] {
            let fetch = asker.get(&format!("/v1/sets/s/fetch/{key}?via=proxy&except=self"));
            assert_eq!((fetch.status, fetch.header("umbel-host")), (200, Some("far")), "{key}");
            assert!(fetch.body == object, "{key}");
        }
    }
    assert_eq!(near.asked(), [""; 0], "nobody else's cache is read");
    let fetch = asker.get("/v1/sets/s/fetch/small?via=proxy");
    assert_eq!(fetch.header("content-type"), Some("image/png"));
    assert_eq!(fetch.header("cache-control"), Some("max-age=60"));
    assert_eq!(fetch.header("set-cookie"), None);
    assert!(fetch.header("content-security-policy").unwrap().contains("sandbox"));
    let own = holder.get("/v1/sets/s/fetch/small?via=proxy");
    assert_eq!((&own.body[..], own.header("umbel-host")), (&b"object"[..], Some("far")));
    let head = asker.send("HEAD", "/v1/sets/s/fetch/small?via=proxy", b"");
    assert_eq!((head.status, &head.body[..]), (200, &b""[..]));
    // What the cache has lost leaves the catalogue, as when it is confirmed.
    asker.get("/v1/sets/s/fetch/own?via=proxy").is_problem(404, "no_holder");
    eventually("it is repaired", || holder.get("/v1/sets/s/keys/own").status == 404);
}

#[test]
fn an_object_that_breaks_off_does_not_look_whole() {
    let (asker, _, _holder, far) = pair("k", &[]);
    far.put("/o/k", &[7; 700_000]);
    *far.breaks_after.lock().expect("a lock") = Some(300_000);
    let sent = rest(&mut asker.begin("GET", "/v1/sets/s/fetch/k?via=proxy", &[], b""));
    // What arrived may be lost with the connection, even before the first piece was read.
    let text = String::from_utf8_lossy(&sent);
    let is_problem = text.starts_with("HTTP/1.1 502");
    assert!(sent.is_empty() || is_problem || text.contains("content-length: 700000"));
    assert!(sent.len() < 700_000);
    // Before the first piece it is an error of its own.
    *far.breaks_after.lock().expect("a lock") = Some(10);
    asker.get("/v1/sets/s/fetch/k?via=proxy").is_problem(502, "unreadable");
}

#[test]
fn large_objects_and_many_at_once_are_refused() {
    let (asker, _, _holder, far) = pair("k\nl", &[("limits.proxy_bytes", "1024")]);
    far.put("/o/k", &[7; 1024]);
    far.put("/o/l", &[7; 1025]);
    assert_eq!(asker.get("/v1/sets/s/fetch/k?via=proxy").body, [7; 1024]);
    for is_chunked in [false, true] {
        *far.is_chunked.lock().expect("a lock") = is_chunked;
        asker.get("/v1/sets/s/fetch/l?via=proxy").is_problem(502, "object_too_large");
    }

    let (asker, _, _holder, far) = pair("k", &[("limits.proxies", "1")]);
    far.put("/o/k", &[7; 8 << 20]);
    // A client that does not read keeps its object waiting, and its place.
    let slow = asker.begin("GET", "/v1/sets/s/fetch/k?via=proxy", &[], b"");
    eventually("it is on its way", || !far.asked().is_empty());
    eventually("there is no place", || {
        let second = asker.get("/v1/sets/s/fetch/k?via=proxy");
        second.status == 503 && second.json()["code"] == "too_many_proxies"
    });
    drop(slow);
    eventually("there is a place again", || {
        asker.get("/v1/sets/s/fetch/k?via=proxy").body.len() == 8 << 20
    });
}
