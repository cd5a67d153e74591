//! Chains of keys: depths of this host and of others, at both ports.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use umbel_node::{ChainQuery, Change, Host, HostError, LocalNetwork, Reserve};

fn reserve(chains: Option<u32>) -> Reserve {
    Reserve {
        false_positive: 1e-8,
        capacity: 1000,
        expected_hosts: None,
        policy: None,
        lifetime: umbel_node::Lifetime::Default,
        confirm: None,
        chains,
    }
}

fn keys(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(|block| block.to_le_bytes().to_vec()).collect()
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}

/// The hosts of a chain of numbers, with their depths.
fn ask(
    host: &Host,
    chain: std::ops::Range<u64>,
    query: ChainQuery,
) -> Result<Vec<(String, u32)>, HostError> {
    let (chain, mut shown) = (keys(chain), Vec::new());
    host.chain("kv", &slices(&chain), query, &mut |name, depth| {
        shown.push((name.to_owned(), depth));
    })?;
    Ok(shown)
}

fn depths(shown: &[(&str, u32)]) -> Vec<(String, u32)> {
    shown.iter().map(|(name, depth)| ((*name).to_owned(), *depth)).collect()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..4000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}");
}

async fn start(network: &LocalNetwork, name: &str) -> Host {
    let host = Host::builder().name(name).local(network).set("http", ["127.0.0.1:0"]);
    host.set("resp", ["127.0.0.1:0"]).with_ports().start().await.expect("started")
}

fn add(host: &Host, range: std::ops::Range<u64>) {
    let keys = keys(range);
    host.add("kv", &slices(&keys), umbel_node::Lifetime::Default, &mut Vec::new()).expect("added");
    host.publish("kv").expect("published");
}

/// What comes back for a request whose connection is closed after it.
fn http_ask(address: SocketAddr, request: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).expect("connected");
    socket.write_all(request).expect("sent");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("replied");
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn every_host_knows_how_much_of_a_chain_the_others_hold() {
    let network = LocalNetwork::new();
    let mut hosts = Vec::new();
    for name in ["a", "b", "c", "router"] {
        hosts.push(start(&network, name).await);
    }
    for (host, blocks) in hosts.iter().zip([100, 420, 420]) {
        host.reserve("kv", reserve(Some(8))).expect("reserved");
        add(host, 0..blocks);
    }
    let [a, b, _, router] = &hosts[..] else { panic!("four") };
    let all = ChainQuery::default();
    let expected = depths(&[("b", 416), ("c", 416), ("a", 96)]);
    until("the router knows all", || ask(router, 0..1000, all).unwrap() == expected).await;
    until("nothing is missing", || router.coverage().complete).await;

    // A host's own depth is exact, and it is the first among equals.
    let at_b = || ask(b, 0..1000, ChainQuery { step: 1, ..all }).unwrap();
    until("a host knows the others", || at_b().len() == 3).await;
    assert!(at_b().contains(&("b".to_owned(), 420)), "{:?}", at_b());
    until("all are known", || ask(a, 0..1000, all).unwrap() == expected).await;
    let limited = |host, limit| ask(host, 0..1000, ChainQuery { limit, ..all }).unwrap();
    assert_eq!(limited(a, 2), expected[..2]);
    assert_eq!(limited(b, 1), depths(&[("b", 416)]));
    assert_eq!(limited(router, 1), depths(&[("b", 416)]));

    // Another chain, an empty one, one that nobody knows, one that is too long.
    assert_eq!(ask(router, 10_000..11_000, all).unwrap(), []);
    assert_eq!(ask(router, 0..0, all).unwrap(), []);
    let longest = ChainQuery::MAX_KEYS as u64;
    assert_eq!(ask(router, 0..longest, all).unwrap(), expected);
    assert!(matches!(ask(router, 0..longest + 1, all), Err(HostError::ChainLength { .. })));
    let refused = router.chain("no name", &[], all, &mut |_, _| panic!("nobody has it"));
    assert!(matches!(refused, Err(HostError::SetName)));
    router.chain("none", &[b"k"], all, &mut |_, _| panic!("nobody has it")).unwrap();
    let before = router.set_info("kv").unwrap();
    assert!(before.loose && !before.own, "{before:?}");
    assert_eq!(ask(router, 0..1000, all).unwrap(), expected);
    let after = router.set_info("kv").unwrap();
    assert_eq!(after.chain_lookups, before.chain_lookups + 1, "{after:?}");
    assert_eq!(a.set_info("kv").unwrap().false_positive, Some(1e-8));
    for host in &hosts {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_of_single_keys_becomes_one_of_chains_and_stays_it() {
    let folder = tempfile::tempdir().unwrap();
    let begin = || {
        let host = Host::builder().name("a").local(&LocalNetwork::new());
        host.set("data", [folder.path().to_str().unwrap()]).start()
    };
    let host = begin().await.expect("started");
    add(&host, 0..50);
    assert!(!host.is_loose("kv"));
    assert_eq!(ask(&host, 0..100, ChainQuery::default()).unwrap(), depths(&[("a", 48)]));
    let change = Change { chains: Some(16), ..Change::default() };
    let ticket = host.change("kv", &change).expect("changed");
    host.settled(ticket).await.expect("written");
    let is_of_chains = |host: &Host| {
        let info = host.set_info("kv").unwrap();
        assert_eq!((info.chain_step, info.loose, info.items), (Some(16), true, 50));
        assert_eq!((info.false_positive, info.hashes), (Some(1e-8), Some(3)));
    };
    is_of_chains(&host);
    // Too certain for so short a step: nothing changes.
    let change = Change { chains: Some(1), false_positive: Some(1e-7), ..Change::default() };
    assert!(matches!(host.change("kv", &change), Err(HostError::Param(_))));
    is_of_chains(&host);
    host.stop().await;
    drop(host);
    let host = begin().await.expect("started again");
    is_of_chains(&host);
    assert_eq!(ask(&host, 0..100, ChainQuery::default()).unwrap(), depths(&[("a", 48)]));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_are_asked_for_over_both_ports() {
    let network = LocalNetwork::new();
    let (worker, router) = (start(&network, "w").await, start(&network, "r").await);
    worker.reserve("kv", reserve(Some(8))).expect("reserved");
    add(&worker, 0..5000);
    let expected = depths(&[("w", 4096)]);
    let all = ChainQuery::default();
    until("it is known", || ask(&router, 0..4096, all).unwrap() == expected).await;
    until("nothing is missing", || router.coverage().complete).await;

    let addresses = router.addresses();
    let (resp, http) = (addresses.resp.unwrap(), addresses.http.unwrap());
    let asked = tokio::task::spawn_blocking(move || {
        let chain = keys(0..4099);
        let mut words: Vec<&[u8]> = vec![b"umbel.chain", b"kv", b"limit", b"3", b"step", b"16"];
        words.extend(slices(&chain));
        let bytes = [
            crate::resp::array(&words),
            crate::resp::array(&[b"HELLO", b"3"]),
            crate::resp::array(&[b"UMBEL.CHAIN", b"kv", &chain[0]]),
        ]
        .concat();
        let answered = crate::resp::ask(resp, &bytes);
        let (two, three) = answered.split_once("%7").unwrap();
        assert_eq!(
            two,
            "*6\r\n$5\r\nhosts\r\n*1\r\n*2\r\n$1\r\nw\r\n:4096\r\n\
             $8\r\ncomplete\r\n:1\r\n$13\r\nmissing_hosts\r\n*0\r\n"
        );
        let short =
            "%3\r\n$5\r\nhosts\r\n*0\r\n$8\r\ncomplete\r\n#t\r\n$13\r\nmissing_hosts\r\n*0\r\n";
        assert!(three.ends_with(short), "{three}");

        let lines: String = (0..4099u64).map(|block| format!("{block}\n")).collect();
        let post = |query: &str, body: &str| {
            let request = format!(
                "POST /v1/sets/kv/chain?{query} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let answered = http_ask(http, request.as_bytes());
            let (head, body) = answered.split_once("\r\n\r\n").unwrap();
            (head[9..12].to_owned(), body.to_owned())
        };
        let (status, body) = post("encoding=number", &lines);
        let message: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, "200", "{body}");
        assert_eq!(message["hosts"], serde_json::json!([{"host": "w", "depth": 4096}]));
        let about = ["complete", "set_known", "loose"].map(|field| message[field].clone());
        assert_eq!(about, [true, true, true]);
        let (_, body) = post("encoding=number&step=1&limit=1", "0\n1\n-5\n");
        // The third key is one in ten that is claimed wrongly, or it is not.
        assert!([2, 3].iter().any(|depth| body.contains(&format!("\"depth\":{depth}"))), "{body}");
        for (query, body) in [
            ("step=0", "k"),
            ("step=1025", "k"),
            ("limit=0", "k"),
            ("step=x", "k"),
            ("other=1", "k"),
            ("encoding=number", "k"),
        ] {
            assert_eq!(post(query, body).0, "400", "{query}");
        }
        let (status, body) = post("", &"k\n".repeat(ChainQuery::MAX_KEYS + 1));
        assert!(status == "400" && body.contains("chain_length"), "{body}");
        let metrics = http_ask(
            http,
            b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        );
        for part in [
            "umbel_set_chain_depth_bucket{",
            "le=\"+Inf\"",
            "umbel_set_chain_duration_seconds_count{",
        ] {
            assert!(metrics.contains(part), "{part}: {metrics}");
        }
    });
    asked.await.expect("all of it");
    for host in [worker, router] {
        host.stop().await;
    }
}
