//! Keys that are confirmed by the cache whose objects they name.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use umbel_node::LocalNetwork;
use umbel_node::http::Limits;

use super::client::{Port, eventually, serve_each};

/// A small HTTP server that stands for a cache: it knows some paths, and what it was asked.
#[derive(Clone, Default)]
struct Cache {
    objects: Arc<Mutex<BTreeSet<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// The status for everything, if it is out of order.
    broken: Arc<Mutex<Option<u16>>>,
    /// Where it says that everything is, if so.
    elsewhere: Arc<Mutex<Option<String>>>,
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
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let held = self.objects.lock().expect("a lock").contains(&path);
            let status =
                self.broken.lock().expect("a lock").unwrap_or(if held { 200 } else { 404 });
            self.asked.lock().expect("a lock").push(request);
            let elsewhere = self.elsewhere.lock().expect("a lock").clone();
            let status = if elsewhere.is_some() { 302 } else { status };
            let location = elsewhere.map(|place| format!("location: {place}\r\n"));
            let location = location.unwrap_or_default();
            let answer = format!("HTTP/1.1 {status} So\r\n{location}content-length: 0\r\n\r\n");
            if socket.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn put(&self, path: &str) {
        self.objects.lock().expect("a lock").insert(path.to_owned());
    }

    fn drop_object(&self, path: &str) {
        self.objects.lock().expect("a lock").remove(path);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a lock").clone()
    }
}

fn port(name: &str, network: &LocalNetwork, cache: SocketAddr) -> Port {
    let advertise = format!("http://{cache}/o");
    let settings = [("advertise", advertise.as_str()), ("set.confirm", "HEAD {advertise}/{key}")];
    Port::of(name, network, Limits::default(), &settings)
}

#[test]
fn a_cache_that_lost_an_object_is_believed_and_the_catalogue_repaired() {
    let (cache, address) = Cache::open();
    let port = port("here", &LocalNetwork::new(), address);
    cache.put("/o/layer/cat%201");
    cache.put("/o/lost");
    port.send("POST", "/v1/sets/s/keys", b"layer/cat 1\nlost\nnever stored\n");
    let missing = port.send("POST", "/v1/sets/s/missing", b"layer/cat 1\nlost\nunknown\n").json();
    assert_eq!(missing["missing"], json!(["unknown"]));
    assert!(cache.asked().contains(&"HEAD /o/layer/cat%201".to_owned()), "{:?}", cache.asked());
    assert!(!cache.asked().iter().any(|asked| asked.contains("unknown")), "only claims are asked");
    cache.drop_object("/o/lost");
    let located = port.get("/v1/sets/s/locate/lost").json();
    assert_eq!((&located["hosts"], &located["complete"]), (&json!([]), &true.into()));
    eventually("the key is no longer held", || port.get("/v1/sets/s/keys/lost").status == 404);
    port.get("/v1/sets/s/fetch/never%20stored").is_problem(404, "no_holder");
    eventually("nor this", || port.get("/v1/sets/s/keys/never%20stored").status == 404);
    let fetch = port.get("/v1/sets/s/fetch/layer/cat%201");
    assert_eq!(fetch.header("location"), Some(&*format!("http://{address}/o/layer/cat%201")));
    let info = port.get("/v1/sets/s").json();
    assert_eq!((&info["cache_disagreements"], &info["cache_unanswered"]), (&2.into(), &0.into()));
    assert_eq!((&info["items"], &info["confirm"]), (&1.into(), &"HEAD {advertise}/{key}".into()));
    let metrics = port.get("/metrics").text();
    assert!(metrics.contains("umbel_set_cache_disagreements_total{set=\"s\"} 2.0"), "{metrics}");
}

#[test]
fn a_cache_that_does_not_answer_confirms_nothing_and_loses_nothing() {
    let (cache, address) = Cache::open();
    let port = port("here", &LocalNetwork::new(), address);
    cache.put("/o/k");
    port.send("PUT", "/v1/sets/s/keys/k", b"");
    for status in [500, 301, 405, 503] {
        *cache.broken.lock().unwrap() = Some(status);
        let located = port.get("/v1/sets/s/locate/k").json();
        assert_eq!((&located["hosts"], &located["complete"]), (&json!([]), &false.into()));
    }
    *cache.broken.lock().unwrap() = None;
    // A key that would lead out of the folder is not asked for.
    port.send("PUT", "/v1/sets/s/keys/..%2Fk", b"");
    assert_eq!(port.get("/v1/sets/s/locate/..%2Fk").json()["complete"], false);
    assert_eq!(port.get("/v1/sets/s/locate/k").json()["hosts"], json!(["here"]));
    let info = port.get("/v1/sets/s").json();
    assert_eq!((&info["items"], &info["cache_disagreements"]), (&2.into(), &0.into()));
    assert_eq!((&info["cache_asked"], &info["cache_unanswered"]), (&6.into(), &5.into()));
}

#[test]
fn a_home_asks_its_own_cache_when_another_host_asks_it() {
    let network = LocalNetwork::new();
    let (cache, address) = Cache::open();
    let home = port("home", &network, address);
    let asker = Port::of("asker", &network, Limits::default(), &[]);
    cache.put("/o/kept");
    home.send("POST", "/v1/sets/s/keys", b"kept\nlost\n");
    home.send("POST", "/v1/sets/s/publish", b"");
    let who = |key: &str| asker.get(&format!("/v1/sets/s/who/{key}"));
    eventually("the asker has heard", || {
        who("lost").status == 200 && who("lost").json()["hosts"] == json!(["home"])
    });
    let missing = asker.send("POST", "/v1/sets/s/missing", b"kept\nlost\n").json();
    assert_eq!(missing["missing"], json!(["lost"]));
    eventually("the home has repaired", || home.get("/v1/sets/s").json()["items"] == 1);
    eventually("the asker knows where to fetch", || {
        let fetch = asker.get("/v1/sets/s/fetch/kept");
        fetch.header("location") == Some(&*format!("http://{address}/o/kept"))
    });
    *cache.broken.lock().unwrap() = Some(500);
    assert_eq!(asker.get("/v1/sets/s/locate/kept").json()["complete"], false);
}

#[test]
fn how_a_set_is_confirmed_can_be_changed_and_survives_a_restart() {
    let (cache, address) = Cache::open();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let open = || {
        let settings = [("data", data), ("advertise", &*format!("http://{address}"))];
        Port::of("here", &LocalNetwork::new(), Limits::default(), &settings)
    };
    let port = open();
    port.send("PUT", "/v1/sets/s/keys/k", b"");
    assert_eq!(port.get("/v1/sets/s/locate/k").json()["hosts"], json!(["here"]));
    assert_eq!(cache.asked(), [""; 0]);
    let how = "GET {advertise}/{set}/{key64}";
    let patched = port.json("PATCH", "/v1/sets/s", &json!({ "confirm": how }).to_string());
    assert_eq!(patched.json()["confirm"], how);
    cache.put("/s/aw");
    assert_eq!(port.get("/v1/sets/s/locate/k").json()["hosts"], json!(["here"]));
    assert_eq!(cache.asked(), ["GET /s/aw"]);
    port.runtime.block_on(port.host.stop());
    drop(port);
    let port = open();
    assert_eq!(port.get("/v1/sets/s").json()["confirm"], how);
    assert_eq!(port.get("/v1/sets/s/locate/k").json()["hosts"], json!(["here"]));
    assert_eq!(cache.asked().len(), 2);
    port.json("PATCH", "/v1/sets/s", r#"{"confirm":"none"}"#);
    port.get("/v1/sets/s/locate/k");
    assert_eq!(cache.asked().len(), 2);
}

/// Before, an admin could have a host ask any address, and learn from `LOCATE` what was there.
#[test]
fn a_host_asks_no_server_that_its_configuration_does_not_name() {
    let (inside, address) = Cache::open();
    inside.put("/latest/meta-data/role");
    let plan = format!("{{\"confirm\":\"GET http://{address}/latest/meta-data/{{key}}\"}}");
    let port = Port::open();
    port.json("PUT", "/v1/sets/s", &plan).is_problem(400, "confirm");
    port.json("PUT", "/v1/sets/t", "{}");
    port.json("PATCH", "/v1/sets/t", &plan).is_problem(400, "confirm");
    port.get("/v1/sets/s").is_problem(404, "no_such_set");
    port.send("PUT", "/v1/sets/t/keys/role", b"");
    assert_eq!(port.get("/v1/sets/t/locate/role").json()["hosts"], json!(["here"]));
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());

    let origin = format!("http://{address}");
    let permitted = [("confirm_origins", origin.as_str())];
    let port = Port::of("here", &LocalNetwork::new(), Limits::default(), &permitted);
    assert_eq!(port.json("PUT", "/v1/sets/s", &plan).status, 201);
    port.send("PUT", "/v1/sets/s/keys/role", b"");
    assert_eq!(port.get("/v1/sets/s/locate/role").json()["hosts"], json!(["here"]));
    assert_eq!(inside.asked(), ["GET /latest/meta-data/role"]);
}

/// A permitted server could send the host to any other.
#[test]
fn a_host_follows_no_redirect_of_a_cache() {
    let (cache, address) = Cache::open();
    let (inside, secret) = Cache::open();
    inside.put("/latest/meta-data/role");
    let place = format!("http://{secret}/latest/meta-data/role");
    *cache.elsewhere.lock().expect("a lock") = Some(place);
    let port = port("here", &LocalNetwork::new(), address);
    port.send("PUT", "/v1/sets/s/keys/role", b"");
    let _ = port.get("/v1/sets/s/locate/role");
    assert_eq!(cache.asked()[0], "HEAD /o/role");
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
}
