//! What a chain costs: asked of the host in its process, over RESP and over HTTP.
//!
//! 64 workers hold 20,000 blocks each; one in eight of them holds a beginning of each chain that is
//! asked for, of random length. Chains have 400 and 5000 keys. One client asks one question after the
//! other, so that a port's rate is that of one connection. Prints percentiles in microseconds. Run it
//! with `cargo bench -p umbel-node --bench chain`, on a machine that does nothing else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use umbel_node::{ChainQuery, Host, Lifetime, LocalNetwork, Reserve};

const SET: &str = "kv";
/// Hosts that an answer names at most.
const LIMIT: usize = 8;
/// Chains that are asked for in turns.
const CHAINS: u64 = 64;

/// The keys of a chain: numbers that no other chain has.
fn chain(number: u64, length: usize) -> Vec<u64> {
    let mut state = number << 32 | 0xc4a1;
    let next = |_| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 27)
    };
    (0..length).map(next).collect()
}

fn reserve(host: &Host, blocks: u64) {
    let plan = Reserve {
        false_positive: 1e-8,
        capacity: blocks,
        expected_hosts: None,
        policy: Some("manual".parse().expect("a policy")),
        lifetime: Lifetime::Default,
        confirm: None,
        chains: Some(8),
    };
    host.reserve(SET, plan).expect("reserved");
}

fn add(host: &Host, keys: &[u64]) {
    let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    for part in keys.chunks(4096) {
        let part: Vec<&[u8]> = part.iter().map(<[u8; 8]>::as_slice).collect();
        host.add(SET, &part, Lifetime::Default, &mut Vec::new()).expect("added");
    }
}

/// Workers with beginnings of the chains, and other blocks up to so many.
async fn workers(network: &LocalNetwork, count: u64, blocks: u64, longest: usize) -> Vec<Host> {
    let mut workers = Vec::new();
    for number in 0..count {
        let name = format!("worker-{number:02}");
        let host = Host::builder().name(&name).local(network).start().await.expect("started");
        reserve(&host, blocks);
        let mut held = 0;
        for chained in (0..CHAINS).filter(|chained| (chained + number) % 8 == 0) {
            let depth = (chained * 2654435761 + number * 40503) as usize % longest;
            add(&host, &chain(chained, depth));
            held += depth as u64;
        }
        add(&host, &chain(1000 + number, blocks.saturating_sub(held) as usize));
        host.publish(SET).expect("published");
        workers.push(host);
    }
    workers
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let total: Duration = times.iter().sum();
    println!(
        "{what:<24} {:>8.0} per second, µs: median {:.1}, p99 {:.1}, p99.9 {:.1}",
        times.len() as f64 / total.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
    );
}

/// Asks one question after the other for some time.
fn measure(what: &str, time: Duration, mut ask: impl FnMut(usize)) {
    // The first half is for caches, and for connections to come up.
    let (mut times, begin) = (Vec::new(), Instant::now());
    for number in 0.. {
        let start = Instant::now();
        ask(number);
        if begin.elapsed() > time / 2 {
            times.push(start.elapsed());
        }
        if begin.elapsed() > time {
            break;
        }
    }
    print(what, &mut times);
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("it is open");
    stream
}

fn resp_request(keys: &[u64]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", keys.len() + 4).into_bytes();
    let limit = LIMIT.to_string();
    let words = [b"UMBEL.CHAIN", SET.as_bytes(), b"LIMIT", limit.as_bytes()];
    let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    for word in words.into_iter().chain(keys.iter().map(<[u8; 8]>::as_slice)) {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn http_request(keys: &[u64]) -> Vec<u8> {
    let body: String = keys.iter().map(|key| format!("{key}\n")).collect();
    let path = format!("/v1/sets/{SET}/chain?encoding=number&limit={LIMIT}");
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Sends a request and reads until the reply ends as such replies do.
fn exchange(stream: &mut TcpStream, request: &[u8], end: &[u8], reply: &mut Vec<u8>) {
    stream.write_all(request).expect("sent");
    reply.clear();
    let mut part = [0; 16 << 10];
    while !reply.ends_with(end) {
        let read = stream.read(&mut part).expect("a reply");
        assert!(read > 0, "the connection ended");
        reply.extend_from_slice(&part[..read]);
    }
}

fn ask_all(router: &Host, length: usize, time: Duration) {
    let chains: Vec<Vec<u64>> = (0..CHAINS).map(|number| chain(number, length)).collect();
    let bytes: Vec<Vec<[u8; 8]>> =
        chains.iter().map(|keys| keys.iter().map(|key| key.to_le_bytes()).collect()).collect();
    let query = ChainQuery { limit: LIMIT, ..ChainQuery::default() };
    let mut hosts = 0u64;
    measure(&format!("{length} keys, in process"), time, |number| {
        let keys = &bytes[number % bytes.len()];
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        router.chain(SET, &keys, query, &mut |_, _| hosts += 1).expect("answered");
    });
    assert!(hosts > 0, "beginnings are held");
    let (resp, http) = (router.addresses().resp, router.addresses().http);
    let mut reply = Vec::new();
    let requests: Vec<_> = chains.iter().map(|keys| resp_request(keys)).collect();
    let mut stream = connect(resp.expect("a port"));
    measure(&format!("{length} keys, RESP"), time, |number| {
        let request = &requests[number % requests.len()];
        exchange(&mut stream, request, b"missing_hosts\r\n*0\r\n", &mut reply);
    });
    let requests: Vec<_> = chains.iter().map(|keys| http_request(keys)).collect();
    let mut stream = connect(http.expect("a port"));
    measure(&format!("{length} keys, HTTP"), time, |number| {
        let request = &requests[number % requests.len()];
        exchange(&mut stream, request, b"\"loose\":true}", &mut reply);
    });
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let is_bench = std::env::args().any(|word| word == "--bench");
    let (count, blocks, time) = match is_bench {
        true => (64, 20_000, Duration::from_secs(6)),
        false => (3, 5000, Duration::from_millis(40)),
    };
    let network = LocalNetwork::new();
    let workers = workers(&network, count, blocks, 4000).await;
    let router = Host::builder().name("router").local(&network).set("resp", ["127.0.0.1:0"]);
    let router = router.set("http", ["127.0.0.1:0"]).with_ports().start().await.expect("started");
    while router.set_info(SET).map_or(0, |info| info.replicas) < count
        || !router.coverage().complete
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for length in [400, 5000] {
        tokio::task::block_in_place(|| ask_all(&router, length, time));
    }
    for host in workers.iter().chain([&router]) {
        host.stop().await;
    }
}
