//! The checker: it knows all keys, and asks hosts for them while they are killed, stopped, starved,
//! restarted together and given namesakes, in an order drawn from a seed.
//!
//! An answer that calls itself complete must not deny more keys than the policy and chance allow:
//! of the keys of each host that were acknowledged [`SETTLED`] before the question, 1 % and five
//! standard deviations. Nothing is excused: every host is a configured peer of every other one, so
//! that whoever does not run is missing.
//!
//! `cargo xtask checker --minutes M --seed S` runs for longer. Not done here: full disks, which stop
//! changes and no answer (`a_full_disk_refuses_keys…`), and links that are cut between two hosts
//! that run (`umbel-node`'s tests, in one process).

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::coverage::who;
use super::hostile::Dice;
use super::hosts::{Cluster, ask, eventually, name};
use super::names::Twin;

const HOSTS: usize = 3;
/// Keys of a host that are asked for at once.
const SAMPLE: usize = 400;
/// After this time an acknowledged key is expected to be known: an update may wait for a second,
/// and be lost until the next announcement three seconds later.
const SETTLED: Duration = Duration::from_secs(5);
/// Shorter than hosts have it, so that what happens after it happens often.
const FLAGS: &[&str] = &["--timing-silence", "6", "--timing-grace", "2", "--timing-ready", "3"];

/// Keys that a host acknowledged, in order, each with when.
type Acknowledged = Mutex<Vec<(String, Instant)>>;

/// Where a host is, while it runs: the ports for Redis and HTTP.
type Ports = Arc<Mutex<Option<(String, String)>>>;

#[derive(Default)]
struct Found {
    questions: AtomicU64,
    complete: AtomicU64,
    /// Keys that were denied in answers that said that they are not complete.
    admitted: AtomicU64,
    /// Keys that were asked for, and denied, in complete answers.
    asked: AtomicU64,
    denied: AtomicU64,
    /// Complete answers that denied more than they may.
    wrong: Mutex<Vec<String>>,
}

/// Adds a few keys to a host at a time, and notes those that it acknowledged.
fn write(host: usize, ports: &Ports, acknowledged: &Acknowledged, is_over: &AtomicBool) {
    let mut next = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let Some((resp, _)) = ports.lock().expect("no panic").clone() else { continue };
        let client = redis::Client::open(format!("redis://{resp}/")).expect("an address");
        let Ok(mut connection) = client.get_connection_with_timeout(Duration::from_secs(1)) else {
            continue;
        };
        let _ = connection.set_read_timeout(Some(Duration::from_secs(5)));
        while !is_over.load(Ordering::Relaxed) {
            let keys: Vec<String> = (next..next + 10).map(|key| format!("{host}-{key}")).collect();
            next += 10;
            let words = ["UMBEL.ADD", "images"].into_iter().chain(keys.iter().map(String::as_str));
            let added: redis::RedisResult<Vec<u8>> =
                ask(&mut connection, &words.collect::<Vec<_>>());
            if added.is_err() {
                break;
            }
            let now = Instant::now();
            acknowledged.lock().expect("no panic").extend(keys.into_iter().map(|key| (key, now)));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Keys of a host that were acknowledged long enough ago, drawn at random.
fn sample(acknowledged: &Acknowledged, dice: &mut Dice) -> Vec<String> {
    let acknowledged = acknowledged.lock().expect("no panic");
    let settled = acknowledged.partition_point(|(_, at)| at.elapsed() >= SETTLED);
    let count = SAMPLE.min(settled);
    (0..count).map(|_| acknowledged[dice.below(settled)].0.clone()).collect()
}

/// Keys that may be denied of so many: 1 %, and what chance adds.
fn may_be_denied(keys: usize) -> usize {
    let mean = keys as f64 * 0.01;
    (mean + 5.0 * mean.sqrt()).ceil() as usize
}

/// Asks a host for the keys of every other one, again and again.
fn check(
    host: usize,
    ports: &Ports,
    acknowledged: &[Acknowledged],
    found: &Found,
    (seed, start): (u64, Instant),
    is_over: &AtomicBool,
) {
    let mut dice = Dice(seed ^ (host as u64 + 1) << 32);
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
        let Some((_, http)) = ports.lock().expect("no panic").clone() else { continue };
        for home in (0..HOSTS).filter(|home| *home != host) {
            let keys = sample(&acknowledged[home], &mut dice);
            let asked = start.elapsed();
            let Some(answer) = who(&http, &keys).filter(|_| !keys.is_empty()) else { continue };
            let denied = answer.denied(&name(home));
            found.questions.fetch_add(1, Ordering::Relaxed);
            if !answer.is_complete {
                found.admitted.fetch_add(denied as u64, Ordering::Relaxed);
                continue;
            }
            found.complete.fetch_add(1, Ordering::Relaxed);
            found.asked.fetch_add(keys.len() as u64, Ordering::Relaxed);
            found.denied.fetch_add(denied as u64, Ordering::Relaxed);
            if denied > may_be_denied(keys.len()) {
                let count = keys.len();
                found.wrong.lock().expect("no panic").push(format!(
                    "at {asked:.1?}: host {host} denied {denied} of {count} keys of host {home}"
                ));
            }
        }
    }
}

/// Processes that take all processor time; they end with it.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start() -> Self {
        let hog = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Self((0..6).map(|_| hog().expect("a shell")).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// Does something to the hosts; afterwards all run.
fn disturb(cluster: &mut Cluster, ports: &[Ports], dice: &mut Dice) -> &'static str {
    let host = dice.below(HOSTS);
    let pause = Duration::from_millis(dice.next() % 3000);
    let set_ports = |cluster: &Cluster, host: usize| {
        let running = (cluster.resp(host).to_owned(), cluster.http(host).to_owned());
        *ports[host].lock().expect("no panic") = Some(running);
    };
    let down = |host: usize| *ports[host].lock().expect("no panic") = None;
    match dice.below(7) {
        0 => {
            cluster.signal(host, "STOP");
            // At times for longer than the silence limit.
            std::thread::sleep(pause * if dice.below(3) == 0 { 4 } else { 1 });
            cluster.signal(host, "CONT");
            "stop"
        }
        1 => {
            down(host);
            cluster.terminate(host);
            std::thread::sleep(pause);
            cluster.start(host, FLAGS);
            set_ports(cluster, host);
            "end"
        }
        2 | 3 => {
            down(host);
            cluster.kill(host);
            // At times back at once.
            std::thread::sleep(pause * (dice.below(3) as u32));
            cluster.start(host, FLAGS);
            set_ports(cluster, host);
            "kill"
        }
        4 => {
            (0..HOSTS).for_each(down);
            (0..HOSTS).for_each(|host| cluster.kill(host));
            cluster.start_all_by(|| Command::new(env!("CARGO_BIN_EXE_umbel")), FLAGS);
            (0..HOSTS).for_each(|host| set_ports(cluster, host));
            "restart all"
        }
        5 => {
            let hogs = Hogs::start();
            std::thread::sleep(pause);
            drop(hogs);
            "starve"
        }
        _ => {
            let other = cluster.listen((host + 1) % HOSTS).to_owned();
            let mut twin = Twin::start(&name(host), &["--peer", &other]);
            let start = Instant::now();
            while twin.runs() && start.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(!twin.runs(), "a second host of a name goes on");
            "twin"
        }
    }
}

#[test]
fn no_complete_answer_denies_what_a_host_holds() {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let seed = number("UMBEL_CHECKER_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("UMBEL_CHECKER_SECONDS").unwrap_or(12));
    let mut cluster = Cluster::new(HOSTS);
    (0..HOSTS).for_each(|host| cluster.start(host, FLAGS));
    eventually("all are known", || {
        (0..HOSTS).all(|host| cluster.status_number(host, "hosts_known") == HOSTS as u64)
    });
    let ports: Vec<Ports> = (0..HOSTS)
        .map(|host| (cluster.resp(host).to_owned(), cluster.http(host).to_owned()))
        .map(|running| Arc::new(Mutex::new(Some(running))))
        .collect();
    let acknowledged: Vec<Acknowledged> = (0..HOSTS).map(|_| Mutex::default()).collect();
    let (found, is_over, mut dice) = (Found::default(), AtomicBool::new(false), Dice(seed));
    let mut disturbances: BTreeMap<&str, u64> = BTreeMap::new();
    let mut history = Vec::new();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (acknowledged, found, is_over) = (&acknowledged, &found, &is_over);
        for (host, ports) in ports.iter().enumerate() {
            scope.spawn(move || write(host, ports, &acknowledged[host], is_over));
            scope.spawn(move || check(host, ports, acknowledged, found, (seed, start), is_over));
        }
        std::thread::sleep(SETTLED);
        while start.elapsed() < SETTLED + time {
            let began = start.elapsed();
            let what = disturb(&mut cluster, &ports, &mut dice);
            *disturbances.entry(what).or_default() += 1;
            history.push(format!("{what} {began:.1?} to {:.1?}", start.elapsed()));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "seed {seed}, {:?}: {disturbances:?}; {} questions, {} complete answers; {} of {} keys denied in these, {} in others",
        start.elapsed(),
        total(&found.questions),
        total(&found.complete),
        total(&found.denied),
        total(&found.asked),
        total(&found.admitted),
    );
    let wrong = found.wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}\n{history:#?}");
    assert!(total(&found.complete) > 0, "seed {seed}: no answer was complete");
}
