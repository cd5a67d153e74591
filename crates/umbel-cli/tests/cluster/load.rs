//! A load of many keys into one host: how soon the others find them, and what that costs.
//!
//! CI loads some ten thousand keys; `cargo xtask load` loads millions and prints what the others
//! miss, from the last acknowledgement on, while other programs keep the processors busy or not.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::hosts::{Cluster, ask, binary, eventually, from_environment, name};

const SET: &str = "objects";
/// Receivers of the loaded host's filter.
const RECEIVERS: usize = 2;
/// Keys that are asked for, spread evenly over the load.
const SAMPLE: usize = 20_000;
/// For how long after the last acknowledgement misses are counted.
const FOLLOWED: Duration = Duration::from_secs(20);
/// How often a long load says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(15);
/// The share of a set's keys that others may miss by the default policy.
const MAX_MISSED: f64 = 0.01;
/// The share of absent keys for which a wrong host may be named by default.
const MAX_WRONG: f64 = 0.01;

/// What a load did to the others.
struct Outcome {
    load: Duration,
    /// When, since the last acknowledgement, how large a share of the keys each receiver missed.
    missed: Vec<(Duration, [f64; RECEIVERS])>,
    /// The share of absent keys for which each receiver named the loaded host, right after the load
    /// and at the end.
    wrong: [[f64; RECEIVERS]; 2],
    image_bytes: u64,
    updates: u64,
    received_bytes: [u64; RECEIVERS],
}

/// A program that does nothing but compute.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let mut shell = Command::new("sh");
        let child = shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Self(child.expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn receivers_follow_a_load_at_three_times_the_bytes_of_its_image() {
    let outcome = load(60_000, 0);
    for bytes in outcome.received_bytes {
        let image = outcome.image_bytes;
        assert!(bytes <= 3 * image, "{bytes} bytes received for an image of {image}");
    }
}

#[test]
#[ignore = "a measurement of minutes: cargo xtask load"]
fn a_load_of_millions_of_keys() {
    let keys = from_environment("UMBEL_LOAD_KEYS", 5_000_000);
    let busy = from_environment("UMBEL_LOAD_BUSY", 0);
    let Outcome { load, missed, wrong, image_bytes, updates, received_bytes } = load(keys, busy);
    println!(
        "\n{keys} keys loaded in {:.1} s beside {busy} programs that compute: \
         {updates} updates to an image of {:.2} MB",
        load.as_secs_f64(),
        image_bytes as f64 / 1e6,
    );
    println!("seconds after the last acknowledgement, and keys missed by each receiver");
    for (at, missed) in missed {
        let missed = missed.map(|missed| format!("{:>7.3} %", missed * 100.0)).join(" ");
        println!("{:>8.2} {missed}", at.as_secs_f64());
    }
    for (when, wrong) in ["right after the load", "at the end"].iter().zip(wrong) {
        let wrong = wrong.map(|wrong| format!("{:.3} %", wrong * 100.0)).join(", ");
        println!("absent keys for which the host was named {when}: {wrong}");
    }
    for (receiver, bytes) in (1..).zip(received_bytes) {
        println!(
            "{} received {:.2} MB, {:.2} times the image",
            name(receiver),
            bytes as f64 / 1e6,
            bytes as f64 / image_bytes as f64,
        );
    }
}

/// Loads keys into the first host of three, and waits until the others find as many of them as the
/// policy promises, and name the host for no more absent keys than promised.
fn load(keys: usize, busy: usize) -> Outcome {
    let mut cluster = Cluster::new(1 + RECEIVERS);
    (0..=RECEIVERS).for_each(|host| cluster.start_by(host, binary(), &[]));
    eventually("all know each other", || {
        (0..=RECEIVERS).all(|host| cluster.status_number(host, "hosts_known") == 3)
    });
    let file = cluster.path("keys");
    let all: String = (0..keys).map(|number| key(number) + "\n").collect();
    std::fs::write(&file, all).expect("written");
    let busy: Vec<Busy> = (0..busy).map(|_| Busy::start()).collect();

    let start = Instant::now();
    let mut add = binary();
    add.args(["add", SET, "--file", &file, "--at", cluster.resp(0)]).stdout(Stdio::null());
    let mut adding = add.spawn().expect("it runs");
    assert!(watched(&mut adding, &cluster).success(), "the keys are added");
    let (load, end) = (start.elapsed(), Instant::now());

    let mut missed = Vec::new();
    let mut connections = [1, 2].map(|receiver| cluster.connect(receiver));
    let right_after = connections.each_mut().map(share_wrong);
    while end.elapsed() < FOLLOWED {
        let at = end.elapsed();
        let now = connections.each_mut().map(|connection| share_missed(connection, keys));
        let is_done = now.iter().all(|missed| *missed == 0.0);
        missed.push((at, now));
        if is_done {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(busy);
    eventually("the others miss no more than the policy permits", || {
        connections.iter_mut().all(|connection| share_missed(connection, keys) <= MAX_MISSED)
    });
    // The filter may still be built on a higher rung, and that be published.
    let mut at_the_end = [1.0; RECEIVERS];
    eventually("the others name the host for no more absent keys than promised", || {
        at_the_end = connections.each_mut().map(share_wrong);
        at_the_end.iter().all(|wrong| *wrong <= 1.3 * MAX_WRONG)
    });
    Outcome {
        load,
        missed,
        wrong: [right_after, at_the_end],
        image_bytes: cluster.set_number(0, SET, "bits") / 8,
        updates: cluster.set_number(0, SET, "updates_sent"),
        received_bytes: [1, 2].map(|host| cluster.set_number(host, SET, "bytes_received")),
    }
}

/// Waits for the load, which takes minutes on a busy machine, and says how far it is.
fn watched(adding: &mut Child, cluster: &Cluster) -> ExitStatus {
    let start = Instant::now();
    let mut next = TOLD_EVERY;
    loop {
        if let Some(status) = adding.try_wait().expect("it runs") {
            return status;
        }
        if start.elapsed() >= next {
            let [items, updates] =
                ["items", "updates_sent"].map(|what| cluster.set_number(0, SET, what));
            println!("{:>4} s: {items} keys, {updates} updates", start.elapsed().as_secs());
            next += TOLD_EVERY;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn key(number: usize) -> String {
    format!("object/{number:08}")
}

/// The share of the keys that a receiver does not find.
fn share_missed(connection: &mut redis::Connection, keys: usize) -> f64 {
    let step = keys.div_ceil(SAMPLE);
    // The last ones are the last to become known.
    let sample: Vec<String> = (0..keys).rev().step_by(step).map(key).collect();
    1.0 - share_named(connection, &sample)
}

/// The share of absent keys for which a receiver names the loaded host.
fn share_wrong(connection: &mut redis::Connection) -> f64 {
    let sample: Vec<String> = (0..SAMPLE).map(|number| format!("absent/{number}")).collect();
    share_named(connection, &sample)
}

/// The share of these keys for which a receiver names the loaded host.
fn share_named(connection: &mut redis::Connection, sample: &[String]) -> f64 {
    let mut named = 0;
    for keys in sample.chunks(1000) {
        let words = ["UMBEL.WHO", SET].into_iter().chain(keys.iter().map(String::as_str));
        let found: Vec<Vec<String>> =
            ask(connection, &words.collect::<Vec<_>>()).expect("it answers");
        named += found.iter().filter(|hosts| hosts.contains(&name(0))).count();
    }
    named as f64 / sample.len() as f64
}
