//! Clients at full speed on both ports while hosts are killed, stopped and restarted, in an order
//! drawn from a seed.
//!
//! Afterwards: no key that was acknowledged is lost, every host names every other for all of its
//! keys, and no process has grown or kept descriptors open.
//!
//! `cargo xtask soak --minutes M` runs for longer; `UMBEL_SOAK_SEED` chooses another seed. Not done
//! here: full disks and clocks that jump (`umbel-store` and the lab simulate both), cut links
//! (`healing`).

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::hostile::Dice;
use super::hosts::{Cluster, ask, eventually, name};

const HOSTS: usize = 3;
/// What a host may take, and files it may have open beyond those at its start.
const MOST_BYTES: u64 = 300 << 20;
const MOST_DESCRIPTORS: usize = 64;

/// Where the ports of a host are now; `None` while it does not run.
type Ports = Arc<Mutex<Option<(String, String)>>>;

/// What the clients of one host did.
#[derive(Default)]
struct Done {
    /// Keys whose adds were acknowledged.
    acknowledged: Mutex<Vec<String>>,
    /// Answers over HTTP.
    answers: AtomicU64,
}

/// Adds keys to a host, again and again, and notes those that it acknowledged.
fn write(host: usize, ports: &Ports, done: &Done, is_over: &AtomicBool) {
    let mut next = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        let Some((resp, _)) = ports.lock().expect("no panic").clone() else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let client = redis::Client::open(format!("redis://{resp}/")).expect("an address");
        let Ok(mut connection) = client.get_connection_with_timeout(Duration::from_secs(1)) else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let _ = connection.set_read_timeout(Some(Duration::from_secs(5)));
        while !is_over.load(Ordering::Relaxed) {
            let keys: Vec<String> = (next..next + 50).map(|key| format!("{host}-{key}")).collect();
            next += 50;
            let words = ["UMBEL.ADD", "images"].into_iter().chain(keys.iter().map(String::as_str));
            let words: Vec<&str> = words.collect();
            let added: redis::RedisResult<Vec<u8>> = ask(&mut connection, &words);
            match added {
                Ok(_) => done.acknowledged.lock().expect("no panic").extend(keys),
                Err(_) => break,
            }
        }
    }
}

/// Asks a host over HTTP, again and again.
fn read(ports: &Ports, done: &Done, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let Some((_, http)) = ports.lock().expect("no panic").clone() else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let Ok(mut socket) = std::net::TcpStream::connect(http) else { continue };
        let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
        let _ = socket.write_all(b"GET /v1/sets/images/who/0-1 HTTP/1.0\r\n\r\n");
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        if answer.starts_with("HTTP/1.0 200") {
            done.answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Does something to a host; afterwards it runs.
fn disturb(cluster: &mut Cluster, ports: &[Ports], dice: &mut Dice) -> &'static str {
    let host = dice.below(HOSTS);
    let pause = Duration::from_millis(dice.next() % 1500);
    match dice.below(4) {
        0 => {
            cluster.signal(host, "STOP");
            std::thread::sleep(pause);
            cluster.signal(host, "CONT");
            "stopped"
        }
        1 => {
            *ports[host].lock().expect("no panic") = None;
            cluster.terminate(host);
            restart(cluster, ports, host, pause);
            "ended"
        }
        2 => {
            *ports[host].lock().expect("no panic") = None;
            cluster.kill(host);
            restart(cluster, ports, host, pause);
            "killed"
        }
        _ => {
            std::thread::sleep(pause);
            "left alone"
        }
    }
}

fn restart(cluster: &mut Cluster, ports: &[Ports], host: usize, pause: Duration) {
    std::thread::sleep(pause);
    cluster.start(host, &[]);
    let running = (cluster.resp(host).to_owned(), cluster.http(host).to_owned());
    *ports[host].lock().expect("no panic") = Some(running);
}

/// How many of the keys a host holds, or says that `holder` may hold.
fn count(cluster: &Cluster, host: usize, keys: &[String], holder: Option<usize>) -> usize {
    let mut connection = cluster.connect(host);
    let mut found = 0;
    for keys in keys.chunks(1000) {
        let command = if holder.is_some() { "UMBEL.WHO" } else { "UMBEL.HAS" };
        let words = [command, "images"].into_iter().chain(keys.iter().map(String::as_str));
        let words: Vec<&str> = words.collect();
        found += match holder.map(name) {
            None => {
                let held: Vec<u8> = ask(&mut connection, &words).unwrap_or_default();
                held.iter().filter(|held| **held == 1).count()
            }
            Some(holder) => {
                let hosts: Vec<Vec<String>> = ask(&mut connection, &words).unwrap_or_default();
                hosts.iter().filter(|hosts| hosts.contains(&holder)).count()
            }
        };
    }
    found
}

#[test]
fn nothing_acknowledged_is_lost_whatever_happens_to_hosts() {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let seed = number("UMBEL_SOAK_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("UMBEL_SOAK_SECONDS").unwrap_or(8));
    let mut cluster = Cluster::running(HOSTS);
    let base: Vec<usize> = (0..HOSTS).map(|host| cluster.descriptors(host)).collect();
    let ports: Vec<Ports> = (0..HOSTS)
        .map(|host| (cluster.resp(host).to_owned(), cluster.http(host).to_owned()))
        .map(|running| Arc::new(Mutex::new(Some(running))))
        .collect();
    let done: Vec<Done> = (0..HOSTS).map(|_| Done::default()).collect();
    let (is_over, mut dice) = (AtomicBool::new(false), Dice(seed));
    let mut disturbances = Vec::new();
    std::thread::scope(|scope| {
        for (host, (ports, done)) in ports.iter().zip(&done).enumerate() {
            let is_over = &is_over;
            scope.spawn(move || write(host, ports, done, is_over));
            scope.spawn(move || read(ports, done, is_over));
        }
        let start = Instant::now();
        while start.elapsed() < time {
            disturbances.push(disturb(&mut cluster, &ports, &mut dice));
        }
        is_over.store(true, Ordering::Relaxed);
    });

    let keys = |host: usize| done[host].acknowledged.lock().expect("no panic").clone();
    for home in 0..HOSTS {
        let keys = keys(home);
        assert!(!keys.is_empty(), "seed {seed}: host {home} acknowledged nothing");
        let held = count(&cluster, home, &keys, None);
        assert_eq!(held, keys.len(), "seed {seed}: host {home} lost keys: {disturbances:?}");
        let _: () = cluster.ask(home, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("every host names every other for all of its keys", || {
        (0..HOSTS).all(|home| {
            let keys = keys(home);
            let mut others = (0..HOSTS).filter(|host| *host != home);
            others.all(|host| count(&cluster, host, &keys, Some(home)) == keys.len())
        })
    });
    for (host, before) in base.into_iter().enumerate() {
        let memory = cluster.memory_bytes(host);
        assert!(memory <= MOST_BYTES, "seed {seed}: host {host} takes {memory} bytes");
        eventually("descriptors are given back", || {
            cluster.descriptors(host) <= before + MOST_DESCRIPTORS
        });
        assert!(!cluster.log(host).contains("panicked"), "{}", cluster.log(host));
    }
    let added: usize = (0..HOSTS).map(|host| keys(host).len()).sum();
    let answers: u64 = done.iter().map(|done| done.answers.load(Ordering::Relaxed)).sum();
    println!(
        "seed {seed}: {added} keys, {answers} answers, {} disturbances in {time:?}",
        disturbances.len()
    );
}
