//! How long questions and changes wait while something large goes on beside them.
//!
//! Prints percentiles in microseconds: of `UMBEL.WHO` over the port for Redis clients, alone, while
//! keys are loaded over HTTP into another set, and into the same one; and of `add` to a small set,
//! alone and while the filter of a large set is built again. One is asked for every half
//! millisecond. Everything runs in one process, the clients too. Run it with
//! `cargo bench -p umbel-node --bench waits`, on a machine that does nothing else.
//!
//! `-- --keys N` loads another number than five million, and builds a filter of twice as many.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use umbel_node::{Host, Lifetime, LocalNetwork, Reserve};

/// From one question to the next.
const EVERY: Duration = Duration::from_micros(500);

#[tokio::main(worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only wants to know that it runs.
    let is_bench = words.iter().any(|word| word == "--bench");
    let given = words.iter().position(|word| word == "--keys").and_then(|at| words.get(at + 1));
    let default = if is_bench { 5_000_000 } else { 5_000 };
    let keys: u64 = given.map_or(default, |keys| keys.parse().expect("a number of keys"));
    let idle = Duration::from_millis(if is_bench { 5000 } else { 50 });
    for measure in [who_beside_loads, adds_beside_a_build] {
        let ports = ["resp", "http"].into_iter().fold(
            Host::builder().name("host").with_ports().local(&LocalNetwork::new()),
            |builder, port| builder.set(port, ["127.0.0.1:0"]),
        );
        let host = ports.start().await.expect("started");
        let measured = host.clone();
        let done = tokio::task::spawn_blocking(move || measure(&measured, keys, idle));
        done.await.expect("measured");
        host.stop().await;
    }
}

fn who_beside_loads(host: &Host, keys: u64, idle: Duration) {
    let resp = host.addresses().resp.expect("a port");
    let http = host.addresses().http.expect("a port");
    host.add("asked", &[b"key"], Lifetime::Default, &mut Vec::new()).expect("added");
    let mut socket = BufReader::new(TcpStream::connect(resp).expect("connected"));
    socket.get_ref().set_nodelay(true).expect("set");
    let mut ask = || who(&mut socket);
    let alone = beside(|| std::thread::sleep(idle), &mut ask);
    print("WHO, nothing else", &alone, None);
    for set in ["other", "asked"] {
        let times = beside(|| load(http, set, keys), &mut ask);
        print(&format!("WHO, {keys} keys into '{set}'"), &times, Some(&alone));
        assert!(host.set_info(set).expect("known").items >= keys);
    }
}

fn adds_beside_a_build(host: &Host, keys: u64, idle: Duration) {
    let large = keys * 2;
    for first in (0..large).step_by(1024) {
        let part: Vec<String> = (first..large.min(first + 1024)).map(key).collect();
        let part: Vec<&[u8]> = part.iter().map(String::as_bytes).collect();
        host.add("large", &part, Lifetime::Default, &mut Vec::new()).expect("added");
    }
    wait_until_built(host, 0);
    let mut number = 0;
    let mut add = || {
        number += 1;
        let key = key(number);
        host.add("small", &[key.as_bytes()], Lifetime::Default, &mut Vec::new()).expect("added");
    };
    let alone = beside(|| std::thread::sleep(idle), &mut add);
    print("add, nothing else", &alone, None);
    let rebuild = || {
        let rebuilds = host.set_info("large").expect("known").rebuilds;
        let plan = Reserve {
            false_positive: 0.01,
            capacity: large * 4,
            expected_hosts: None,
            policy: None,
            lifetime: Lifetime::Default,
            confirm: None,
        };
        host.reserve("large", plan).expect("reserved");
        wait_until_built(host, rebuilds + 1);
    };
    let times = beside(rebuild, &mut add);
    print(&format!("add, building {large} keys"), &times, Some(&alone));
}

/// Waits until the large set was built so often, and its rung takes its keys.
fn wait_until_built(host: &Host, rebuilds: u64) {
    loop {
        let info = host.set_info("large").expect("known");
        if info.rebuilds >= rebuilds && info.full.is_some_and(|full| full <= 1.0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn key(number: u64) -> String {
    format!("object-{number:012}")
}

/// Does one thing while another is done every half millisecond; the times of that one, sorted.
fn beside(one: impl FnOnce() + Send, mut other: impl FnMut()) -> Vec<Duration> {
    let (done, mut times) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            one();
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let start = Instant::now();
            other();
            times.push(start.elapsed());
            std::thread::sleep(EVERY);
        }
    });
    times.sort_unstable();
    times
}

/// Asks for one key.
fn who(socket: &mut BufReader<TcpStream>) {
    socket.get_mut().write_all(b"UMBEL.WHO asked key\r\n").expect("sent");
    let mut line = String::new();
    // An array of one key, of one host: its length, and its name.
    for _ in 0..4 {
        line.clear();
        socket.read_line(&mut line).expect("replied");
    }
    assert_eq!(line, "host\r\n");
}

/// Adds keys over HTTP, by one request.
fn load(http: SocketAddr, set: &str, keys: u64) {
    let mut socket = TcpStream::connect(http).expect("connected");
    let bytes = keys * (key(0).len() as u64 + 1);
    let head = format!(
        "POST /v1/sets/{set}/keys HTTP/1.1\r\nhost: {http}\r\nconnection: close\r\n\
         content-type: text/plain\r\ncontent-length: {bytes}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).expect("sent");
    let mut part = Vec::new();
    for first in (0..keys).step_by(4096) {
        part.clear();
        (first..keys.min(first + 4096)).for_each(|number| {
            part.extend_from_slice(key(number).as_bytes());
            part.push(b'\n');
        });
        socket.write_all(&part).expect("sent");
    }
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("replied");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

fn print(what: &str, times: &[Duration], alone: Option<&[Duration]>) {
    let at = |times: &[Duration], share: f64| {
        times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6
    };
    let ratio = alone.map_or_else(String::new, |alone| {
        format!(" ({:.1} times)", at(times, 0.99) / at(alone, 0.99))
    });
    println!(
        "{what:<34} {:>6} times, µs: median {:.0}, p99 {:.0}{ratio}, longest {:.0}",
        times.len(),
        at(times, 0.5),
        at(times, 0.99),
        at(times, 1.0),
    );
}
