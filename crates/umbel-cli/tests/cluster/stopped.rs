//! A receiver that is stopped for a while: it catches up by the updates that it missed.
//!
//! CI stops it for some seconds; `cargo xtask stopped` for a minute, with a million keys.

use std::time::{Duration, Instant};

use super::add;
use super::hosts::{Cluster, ask, binary, eventually, from_environment, name};

const SET: &str = "objects";
const HOME: usize = 0;
const CONTROL: usize = 1;
const STOPPED: usize = 2;

#[test]
fn a_receiver_that_was_stopped_needs_little_more_than_the_missed_updates() {
    let (missed, needed) = stop(40_000, 9);
    assert!(needed * 10 <= missed * 12, "{needed} bytes for {missed} bytes of missed updates");
}

#[test]
#[ignore = "a measurement of minutes: cargo xtask stopped"]
fn a_receiver_of_a_million_keys_that_was_stopped() {
    let keys = from_environment("UMBEL_STOPPED_KEYS", 1_000_000);
    let seconds = from_environment("UMBEL_STOPPED_SECONDS", 60);
    let (missed, needed) = stop(keys, seconds);
    println!(
        "\n1 % of {keys} keys changed in {seconds} s: {missed} bytes of updates, \
         {needed} bytes for the receiver that was stopped, {:.2} times as many",
        needed as f64 / missed as f64
    );
}

/// Changes 1 % of a host's keys while one of two receivers is stopped; returns the bytes that both
/// received: the one that ran all the while, and the one that was stopped.
fn stop(keys: usize, seconds: usize) -> (u64, u64) {
    let mut cluster = Cluster::new(3);
    (0..3).for_each(|host| cluster.start_by(host, binary(), &[]));
    let _: () = cluster.ask(HOME, &["UMBEL.RESERVE", SET, "0.01", "1000", "POLICY", "interval:1"]);
    add(&cluster, HOME, SET, "old", keys);
    let knows = |host: usize, key: &str| cluster.who(host, SET, key).contains(&name(HOME));
    let last = format!("old-{}", keys - 1);
    eventually("all is known", || knows(CONTROL, &last) && knows(STOPPED, &last));
    // Whatever was still to be sent, and links, come to rest.
    std::thread::sleep(Duration::from_secs(3));
    let received =
        || [CONTROL, STOPPED].map(|host| cluster.set_number(host, SET, "bytes_received"));
    let before = received();

    cluster.signal(STOPPED, "STOP");
    let last = change(&cluster, keys / 200, seconds);
    cluster.signal(STOPPED, "CONT");
    eventually("it is known to both", || knows(CONTROL, &last) && knows(STOPPED, &last));
    std::thread::sleep(Duration::from_secs(2));
    let after = received();
    (after[0] - before[0], after[1] - before[1])
}

/// So many keys come and as many go, spread over some seconds; the last key that came.
fn change(cluster: &Cluster, changes: usize, seconds: usize) -> String {
    let mut connection = cluster.connect(HOME);
    let steps = seconds * 4;
    let start = Instant::now();
    for step in 0..steps {
        let numbers = changes * step / steps..changes * (step + 1) / steps;
        for (command, prefix) in [("UMBEL.ADD", "new"), ("UMBEL.REM", "old")] {
            let keys: Vec<String> = numbers.clone().map(|key| format!("{prefix}-{key}")).collect();
            if keys.is_empty() {
                continue;
            }
            let words = [command, SET].into_iter().chain(keys.iter().map(String::as_str));
            let changed: Vec<u8> =
                ask(&mut connection, &words.collect::<Vec<_>>()).expect("changed");
            assert_eq!(changed, vec![1; keys.len()]);
        }
        let next = Duration::from_millis(250 * (step as u64 + 1));
        std::thread::sleep(next.saturating_sub(start.elapsed()));
    }
    format!("new-{}", changes - 1)
}
