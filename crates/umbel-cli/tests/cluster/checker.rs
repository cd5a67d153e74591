//! The checker: it knows all keys, and asks hosts for them while these are disturbed in every way that
//! there is, in an order drawn from a seed.
//!
//! An answer that calls itself complete must not deny more keys than the policy and chance allow:
//! of the keys of each host that were acknowledged [`SETTLED`] before the question, 1 % and five
//! standard deviations. Time in which their host was stopped or starved does not count: what it
//! acknowledged last it has not published, and others learn of the stop by its silence. One more thing is excused, and counted: a link between the two hosts was cut less
//! than [`SILENCE`] ago, and nobody told them. Whoever does not run is never excused: every host is a
//! configured peer of every other one, so that it is missing.
//!
//! `cargo xtask checker --minutes M --seed S` runs for longer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::coverage::who;
use super::disturbances::{self, Cuts, Ports, Stops, Testbed};
use super::hostile::Dice;
use super::hosts::{ask, eventually, name};

const HOSTS: usize = 3;
/// Keys of a host that are asked for at once.
const SAMPLE: usize = 400;
/// After this time an acknowledged key is expected to be known: an update may wait for a second,
/// and be lost until the next announcement three seconds later.
const SETTLED: Duration = Duration::from_secs(5);
/// A link that was cut is noticed after the silence limit, and a moment in which coverage is worked
/// out again.
const SILENCE: Duration = Duration::from_millis(7000);
/// Shorter than hosts have it, so that what happens after it happens often.
const FLAGS: &[&str] = &["--timing-silence", "6", "--timing-grace", "2", "--timing-ready", "3"];

/// Keys that a host acknowledged, in order, each with when.
type Acknowledged = Mutex<Vec<(String, Instant)>>;

#[derive(Default)]
struct Found {
    questions: AtomicU64,
    complete: AtomicU64,
    /// Keys that were denied in answers that said that they are not complete.
    admitted: AtomicU64,
    /// Keys that were asked for, and denied, in complete answers.
    asked: AtomicU64,
    denied: AtomicU64,
    /// Complete answers that denied more than they may, soon after a cut.
    excused: AtomicU64,
    /// The same, without that excuse.
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

/// Keys of a host that were acknowledged long enough ago, drawn at random. `ran_since` tells for how
/// long the host has run since a moment.
fn sample(
    acknowledged: &Acknowledged,
    dice: &mut Dice,
    ran_since: impl Fn(Instant) -> Duration,
) -> Vec<String> {
    let acknowledged = acknowledged.lock().expect("no panic");
    let settled = acknowledged.partition_point(|(_, at)| ran_since(*at) >= SETTLED);
    let count = SAMPLE.min(settled);
    (0..count).map(|_| acknowledged[dice.below(settled)].0.clone()).collect()
}

/// Keys that may be denied of so many: 1 %, and what chance adds.
fn may_be_denied(keys: usize) -> usize {
    let mean = keys as f64 * 0.01;
    (mean + 5.0 * mean.sqrt()).ceil() as usize
}

/// What a thread that asks one host needs to know.
struct Asker<'a> {
    host: usize,
    ports: &'a Ports,
    acknowledged: &'a [Acknowledged],
    cuts: &'a Cuts,
    stops: &'a Stops,
    found: &'a Found,
    start: Instant,
    is_over: &'a AtomicBool,
}

impl Asker<'_> {
    /// Asks the host for the keys of every other one, again and again.
    fn run(&self, seed: u64) {
        let mut dice = Dice(seed ^ (self.host as u64 + 1) << 32);
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
            let Some((_, http)) = self.ports.lock().expect("no panic").clone() else { continue };
            for home in (0..HOSTS).filter(|home| *home != self.host) {
                let keys =
                    sample(&self.acknowledged[home], &mut dice, |at| self.ran_since(home, at));
                if !keys.is_empty() {
                    self.check(&http, home, &keys);
                }
            }
        }
    }

    /// For how long a host has run since a moment.
    fn ran_since(&self, home: usize, at: Instant) -> Duration {
        let now = Instant::now();
        let stops = self.stops.lock().expect("no panic");
        let of_home = stops.iter().filter(|(host, ..)| *host == home);
        let stopped = of_home.map(|(_, from, until)| {
            until.unwrap_or(now).min(now).saturating_duration_since((*from).max(at))
        });
        (now - at).saturating_sub(stopped.sum())
    }

    fn check(&self, http: &str, home: usize, keys: &[String]) {
        let (host, found, asked) = (self.host, self.found, Instant::now());
        let Some(answer) = who(http, keys) else { return };
        let denied = answer.denied(&name(home));
        found.questions.fetch_add(1, Ordering::Relaxed);
        if !answer.is_complete {
            found.admitted.fetch_add(denied as u64, Ordering::Relaxed);
            return;
        }
        found.complete.fetch_add(1, Ordering::Relaxed);
        found.asked.fetch_add(keys.len() as u64, Ordering::Relaxed);
        found.denied.fetch_add(denied as u64, Ordering::Relaxed);
        if denied <= may_be_denied(keys.len()) {
            return;
        }
        if self.is_excused(home, asked) {
            found.excused.fetch_add(1, Ordering::Relaxed);
        } else {
            let (at, count) = (asked - self.start, keys.len());
            found.wrong.lock().expect("no panic").push(format!(
                "at {at:.1?}: host {host} denied {denied} of {count} keys of host {home}"
            ));
        }
    }

    /// Whether the link between the two hosts was cut so recently that neither need have noticed.
    fn is_excused(&self, home: usize, asked: Instant) -> bool {
        let is_between = |pair: &[usize; 2]| pair.contains(&self.host) && pair.contains(&home);
        let cuts = self.cuts.lock().expect("no panic");
        cuts.iter().any(|(pair, cut)| is_between(pair) && asked < *cut + SILENCE)
    }
}

#[test]
fn no_complete_answer_denies_what_a_host_holds() {
    disturbances::run("cluster::checker::no_complete_answer_denies_what_a_host_holds", watch);
}

fn watch(has_namespaces: bool) {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let seed = number("UMBEL_CHECKER_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("UMBEL_CHECKER_SECONDS").unwrap_or(12));
    let mut testbed = Testbed::start(HOSTS, FLAGS, seed, has_namespaces);
    eventually("all are known", || {
        (0..HOSTS).all(|host| testbed.cluster.status_number(host, "hosts_known") == HOSTS as u64)
    });
    let (ports, cuts, stops) = (testbed.ports(), testbed.cuts(), testbed.stops());
    let acknowledged: Vec<Acknowledged> = (0..HOSTS).map(|_| Mutex::default()).collect();
    let (found, is_over, start) = (Found::default(), AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let (acknowledged, found, is_over) = (&acknowledged, &found, &is_over);
        let (cuts, stops) = (&cuts, &stops);
        for (host, ports) in ports.iter().enumerate() {
            scope.spawn(move || write(host, ports, &acknowledged[host], is_over));
            let asker = Asker { host, ports, acknowledged, cuts, stops, found, start, is_over };
            scope.spawn(move || asker.run(seed));
        }
        std::thread::sleep(SETTLED);
        testbed.disturb_for(time, is_over);
    });
    let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "seed {seed}, {:?}: {:?}; {} questions, {} complete answers; {} of {} keys denied in these, {} in others; \
         {} complete answers denied too many soon after a cut",
        start.elapsed(),
        testbed.counts(),
        total(&found.questions),
        total(&found.complete),
        total(&found.denied),
        total(&found.asked),
        total(&found.admitted),
        total(&found.excused),
    );
    let wrong = found.wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}\n{:#?}", testbed.history());
    assert!(total(&found.complete) > 0, "seed {seed}: no answer was complete");
}
