//! Clients at full speed on both ports while hosts are disturbed in every way that there is, in an
//! order drawn from a seed.
//!
//! Afterwards: no key that was acknowledged is lost, no key whose removal was acknowledged is back,
//! every host names every other for all of its keys and no more often for others than promised, banks
//! equal what a host has that fetched everything just now, and a process that has lived all the time
//! has not grown or kept descriptors open against one that has just started.
//!
//! `cargo xtask soak --minutes M --seed S` runs for longer.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::disturbances::{self, Ports, Testbed};
use super::hosts::{Cluster, ask, eventually, name};

const HOSTS: usize = 3;
/// A host whose process lives all the time.
const VETERAN: usize = 0;
/// Keys that a command adds or removes.
const BATCH: u64 = 50;
/// Batches that a host holds at most: beyond it the oldest is removed for each that is added.
const MAX_BATCHES: usize = 1200;
/// Removed batches that are remembered.
const REMEMBERED: usize = 200;
/// Keys that nobody holds, asked for at the end.
const ABSENT: usize = 20_000;
/// The rate that the set is planned for: so high that banks are told apart by the absent keys that they
/// claim.
const RATE: f64 = 0.2;
/// What the veteran may take, and files it may have open, beyond a process that has just started.
const MORE_BYTES: u64 = 64 << 20;
const MORE_DESCRIPTORS: usize = 32;

/// What the clients of one host did.
#[derive(Default)]
struct Done {
    /// Batches whose adds were acknowledged, and of which nobody began to remove keys.
    held: Mutex<VecDeque<u64>>,
    /// Batches whose removals were acknowledged.
    removed: Mutex<VecDeque<u64>>,
    added: AtomicU64,
    /// Changes that were refused or not acknowledged.
    failed: AtomicU64,
    /// Answers over HTTP.
    answers: AtomicU64,
}

fn keys_of(host: usize, batch: u64) -> impl Iterator<Item = String> {
    (batch * BATCH..(batch + 1) * BATCH).map(move |key| format!("{host}-{key}"))
}

/// Sends a command about a batch; whether it was acknowledged.
fn change(connection: &mut redis::Connection, words: &[&str], host: usize, batch: u64) -> bool {
    let keys: Vec<String> = keys_of(host, batch).collect();
    let words = words.iter().copied().chain(keys.iter().map(String::as_str));
    ask::<Vec<u8>>(connection, &words.collect::<Vec<_>>()).is_ok()
}

/// Adds and removes keys of a host, again and again, and notes what it acknowledged.
fn write(host: usize, ports: &Ports, done: &Done, is_over: &AtomicBool) {
    let mut next = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        let Some(mut connection) = connect(ports) else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        while !is_over.load(Ordering::Relaxed) {
            let batch = next;
            next += 1;
            // A third of them lives for ten days: no clock is moved as far.
            let words: &[&str] = match batch % 3 {
                0 => &["UMBEL.ADDEX", "images", "864000"],
                _ => &["UMBEL.ADD", "images"],
            };
            let is_added = change(&mut connection, words, host, batch);
            let mut held = done.held.lock().expect("no panic");
            if is_added {
                held.push_back(batch);
                done.added.fetch_add(BATCH, Ordering::Relaxed);
            }
            let oldest = (held.len() > MAX_BATCHES).then(|| held.pop_front()).flatten();
            drop(held);
            let is_removed =
                oldest.is_none_or(|oldest| remove(&mut connection, host, oldest, done));
            if !is_added || !is_removed {
                done.failed.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
                break;
            }
        }
    }
}

fn remove(connection: &mut redis::Connection, host: usize, batch: u64, done: &Done) -> bool {
    let is_removed = change(connection, &["UMBEL.REM", "images"], host, batch);
    if is_removed {
        let mut removed = done.removed.lock().expect("no panic");
        removed.push_back(batch);
        let excess = removed.len().saturating_sub(REMEMBERED);
        removed.drain(..excess);
    }
    is_removed
}

fn connect(ports: &Ports) -> Option<redis::Connection> {
    let (resp, _) = ports.lock().expect("no panic").clone()?;
    let client = redis::Client::open(format!("redis://{resp}/")).expect("an address");
    let connection = client.get_connection_with_timeout(Duration::from_secs(1)).ok()?;
    let _ = connection.set_read_timeout(Some(Duration::from_secs(5)));
    Some(connection)
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

/// Of each key, whether a host holds it itself.
fn holds(cluster: &Cluster, host: usize, keys: &[String]) -> Vec<bool> {
    let mut connection = cluster.connect(host);
    let ask = |keys: &[String]| {
        let words = ["UMBEL.HAS", "images"].into_iter().chain(keys.iter().map(String::as_str));
        let held: Vec<u8> = ask(&mut connection, &words.collect::<Vec<_>>()).expect("answered");
        held.into_iter().map(|held| held == 1).collect::<Vec<_>>()
    };
    keys.chunks(1000).flat_map(ask).collect()
}

/// Of each key, whether a host names another one for it.
fn names(cluster: &Cluster, host: usize, keys: &[String], home: usize) -> Vec<bool> {
    let mut connection = cluster.connect(host);
    let home = name(home);
    let ask = |keys: &[String]| {
        let words = ["UMBEL.WHO", "images"].into_iter().chain(keys.iter().map(String::as_str));
        let hosts: redis::RedisResult<Vec<Vec<String>>> =
            ask(&mut connection, &words.collect::<Vec<_>>());
        let hosts = hosts.unwrap_or_else(|_| vec![Vec::new(); keys.len()]);
        hosts.iter().map(|hosts| hosts.contains(&home)).collect::<Vec<_>>()
    };
    keys.chunks(1000).flat_map(ask).collect()
}

fn count(found: &[bool]) -> usize {
    found.iter().filter(|found| **found).count()
}

/// Pairs of a host and another one.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..HOSTS)
        .flat_map(|home| (0..HOSTS).filter(move |host| *host != home).map(move |host| (host, home)))
}

/// Checks what must hold when all is over; returns how many hosts a lookup of an absent key names.
fn check_answers(cluster: &Cluster, done: &[Done], context: &str) -> f64 {
    let keys = |home: usize, batches: &Mutex<VecDeque<u64>>| -> Vec<String> {
        let batches = batches.lock().expect("no panic");
        batches.iter().flat_map(|batch| keys_of(home, *batch)).collect()
    };
    for (home, done) in done.iter().enumerate() {
        let held = keys(home, &done.held);
        assert!(!held.is_empty(), "{context}: host {home} acknowledged nothing");
        let found = count(&holds(cluster, home, &held));
        assert_eq!(found, held.len(), "{context}: host {home} lost keys");
        let removed = count(&holds(cluster, home, &keys(home, &done.removed)));
        assert_eq!(removed, 0, "{context}: host {home} holds keys that were removed");
        let _: () = cluster.ask(home, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("every host names every other for all of its keys", || {
        pairs().all(|(host, home)| {
            let held = keys(home, &done[home].held);
            count(&names(cluster, host, &held, home)) == held.len()
        })
    });
    eventually("every answer is complete", || {
        (0..HOSTS).all(|host| cluster.status_number(host, "complete") == 1)
    });
    let absent: Vec<String> = (0..ABSENT).map(|key| format!("absent-{key}")).collect();
    let wrong: usize =
        pairs().map(|(host, home)| count(&names(cluster, host, &absent, home))).sum();
    wrong as f64 / (HOSTS * ABSENT) as f64
}

/// Compares the banks of all hosts with that of one which fetches everything now: they name each home
/// for the same absent keys. Returns how many these are.
fn compare_banks(testbed: &mut Testbed, context: &str) -> usize {
    let newcomer = HOSTS - 1;
    let absent: Vec<String> = (0..ABSENT).map(|key| format!("absent-{key}")).collect();
    testbed.restart(newcomer);
    let (cluster, mut named) = (&testbed.cluster, 0);
    for (host, home) in pairs().filter(|(host, home)| *host != newcomer && *home != newcomer) {
        let mut wrong = 0;
        eventually("a bank equals the one that was fetched just now", || {
            let (old, new) =
                (names(cluster, host, &absent, home), names(cluster, newcomer, &absent, home));
            wrong = count(&old);
            old == new
        });
        assert_eq!(cluster.status_number(host, "mismatches"), 0, "{context}");
        named += wrong;
    }
    named
}

/// Compares the process that has lived all the time with what it is after a restart.
fn compare_processes(testbed: &mut Testbed, context: &str) -> [u64; 2] {
    let before = testbed.cluster.memory_bytes(VETERAN);
    let open = testbed.cluster.descriptors(VETERAN);
    testbed.restart(VETERAN);
    eventually("it knows all again", || {
        testbed.cluster.status_number(VETERAN, "hosts_known") == HOSTS as u64
    });
    let (after, open_after) =
        (testbed.cluster.memory_bytes(VETERAN), testbed.cluster.descriptors(VETERAN));
    assert!(before <= 2 * after + MORE_BYTES, "{context}: {before} bytes, {after} after a restart");
    assert!(
        open <= open_after + MORE_DESCRIPTORS,
        "{context}: {open} open files, {open_after} after a restart"
    );
    [before, after].map(|bytes| bytes >> 20)
}

#[test]
fn nothing_acknowledged_is_lost_whatever_happens_to_hosts() {
    let test = "cluster::soak::nothing_acknowledged_is_lost_whatever_happens_to_hosts";
    disturbances::run(test, soak);
}

fn soak(has_namespaces: bool) {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let seed = number("UMBEL_SOAK_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("UMBEL_SOAK_SECONDS").unwrap_or(8));
    let mut testbed = Testbed::start(HOSTS, &[], seed, has_namespaces);
    testbed.spare(VETERAN);
    for host in 0..HOSTS {
        let capacity = (MAX_BATCHES as u64 * BATCH).to_string();
        let plan = ["UMBEL.RESERVE", "images", &RATE.to_string(), &capacity, "HOSTS", "3"];
        let _: () = testbed.cluster.ask(host, &plan);
    }
    let ports = testbed.ports();
    let done: Vec<Done> = (0..HOSTS).map(|_| Done::default()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (host, (ports, done)) in ports.iter().zip(&done).enumerate() {
            let is_over = &is_over;
            scope.spawn(move || write(host, ports, done, is_over));
            scope.spawn(move || read(ports, done, is_over));
        }
        testbed.disturb_for(time, &is_over);
    });
    let context = format!("seed {seed}: {:#?}", testbed.history());
    let wrong = check_answers(&testbed.cluster, &done, &context);
    assert!(
        wrong < RATE * 1.25,
        "{context}: hosts are named for {wrong} of keys that nobody holds"
    );
    for host in 0..HOSTS {
        assert!(!testbed.cluster.log(host).contains("panicked"), "{}", testbed.cluster.log(host));
    }
    let memory = compare_processes(&mut testbed, &context);
    let named = compare_banks(&mut testbed, &context);
    assert!(named > 0, "{context}: banks that name nobody wrongly are alike whatever they hold");
    let total = |of: fn(&Done) -> &AtomicU64| -> u64 {
        done.iter().map(|done| of(done).load(Ordering::Relaxed)).sum()
    };
    println!(
        "seed {seed}, {time:?}: {:?}; {} keys acknowledged, {} changes failed, {} answers over HTTP; {:.2} % of \
         absent keys named wrongly; the process that lived all the time takes {} MiB, {} after a restart",
        testbed.counts(),
        total(|done| &done.added),
        total(|done| &done.failed),
        total(|done| &done.answers),
        100.0 * wrong,
        memory[0],
        memory[1],
    );
}
