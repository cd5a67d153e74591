//! What sets cost: many small ones, and those that hostile or careless hosts claim.

use std::time::{Duration, Instant};

use super::hosts::{Cluster, ask, binary, eventually, from_environment, name};
use super::traffic::over;

/// Adds `keys` keys to each of `sets` sets of a host, named after it.
fn add_sets(cluster: &Cluster, host: usize, sets: usize, keys: usize) {
    let mut connection = cluster.connect(host);
    for set in 0..sets {
        let set = format!("{}-set-{set}", name(host));
        let keys: Vec<String> = (0..keys).map(|key| format!("{set}-key-{key}")).collect();
        let mut words = vec!["UMBEL.ADD", &set];
        words.extend(keys.iter().map(String::as_str));
        let _: Vec<u8> = ask(&mut connection, &words).expect("added");
    }
}

/// Whether a host finds the last key of every set of another.
fn knows(cluster: &Cluster, host: usize, home: usize, sets: usize, keys: usize) -> bool {
    let mut connection = cluster.connect(host);
    (0..sets).rev().all(|set| {
        let set = format!("{}-set-{set}", name(home));
        let key = format!("{set}-key-{}", keys - 1);
        let found: redis::RedisResult<Vec<Vec<String>>> =
            ask(&mut connection, &["UMBEL.WHO", &set, &key]);
        found.is_ok_and(|found| found.concat().contains(&name(home)))
    })
}

/// Sets of 3 keys take some kilobytes at their home and at every other host.
#[test]
fn two_hundred_small_sets_take_little_memory_everywhere() {
    const MAX: u64 = 10 << 20;
    let cluster = Cluster::running(3);
    add_sets(&cluster, 0, 1, 3);
    eventually("the first set is known", || (1..3).all(|host| knows(&cluster, host, 0, 1, 3)));
    let before: Vec<u64> = (0..3).map(|host| cluster.memory_bytes(host)).collect();
    add_sets(&cluster, 0, 200, 3);
    let since = Instant::now();
    eventually("all sets are known", || (1..3).all(|host| knows(&cluster, host, 0, 200, 3)));
    println!("known everywhere {:.2} s after the last add", since.elapsed().as_secs_f64());
    for (host, before) in before.into_iter().enumerate() {
        let more = cluster.memory_bytes(host).saturating_sub(before);
        println!("{}: {} kB more", name(host), more / 1024);
        assert!(more <= MAX, "{}: {more} bytes more", name(host));
    }
}

#[test]
#[ignore = "a measurement of a minute, to read"]
fn two_thousand_sets_of_each_host_take_150_megabytes_at_most() {
    let cluster = Cluster::running(3);
    (0..3).for_each(|host| add_sets(&cluster, host, 2000, 10));
    let since = Instant::now();
    for (host, home) in (0..3).flat_map(|host| (0..3).map(move |home| (host, home))) {
        if host != home {
            eventually("all sets are known", || knows(&cluster, host, home, 2000, 10));
        }
    }
    println!("known everywhere {:.2} s after the last add", since.elapsed().as_secs_f64());
    for host in 0..3 {
        let bytes = cluster.memory_bytes(host);
        println!("{}: {} kB", name(host), bytes / 1024);
        assert!(bytes <= 150 << 20, "{}: {bytes} bytes", name(host));
    }
}

/// Keys of a set.
const KEYS: usize = 3;
/// For how long nothing is done, to see what hosts send then.
const QUIET: Duration = Duration::from_secs(15);

#[test]
#[ignore = "a measurement of minutes: cargo xtask sets"]
fn many_sets_at_each_of_three_hosts() {
    let sets = from_environment("UMBEL_SETS", 10_000);
    let mut cluster = Cluster::new(3);
    (0..3).for_each(|host| cluster.start_by(host, binary(), &[]));
    (0..3).for_each(|host| add_sets(&cluster, host, 1, KEYS));
    everybody_knows(&cluster, 1);
    println!("\nsets at each of three hosts: 1");
    idle(&cluster);

    println!("sets at each of three hosts: {sets}");
    for host in 0..3 {
        let start = Instant::now();
        add_sets(&cluster, host, sets, KEYS);
        println!("made at {} in {:.1} s", name(host), start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    everybody_knows(&cluster, sets);
    println!("known everywhere {:.1} s after the last add", start.elapsed().as_secs_f64());
    std::thread::sleep(Duration::from_secs(15));
    idle(&cluster);
    for round in 0..5 {
        let set = format!("{}-set-{}", name(round % 3), round * sets / 5);
        println!("an add is known everywhere after {:.2} s", add_one(&cluster, round % 3, &set));
    }

    cluster.terminate(2);
    let start = Instant::now();
    cluster.start_by(2, binary(), &[]);
    println!("{} starts in {:.1} s", name(2), start.elapsed().as_secs_f64());
    everybody_knows(&cluster, sets);
    println!("and knows all, and is known, after {:.1} s", start.elapsed().as_secs_f64());
}

/// Waits until every host finds the last key of every set of the others.
fn everybody_knows(cluster: &Cluster, sets: usize) {
    for (host, home) in (0..3).flat_map(|host| (0..3).map(move |home| (host, home))) {
        if host != home {
            eventually("all sets are known", || knows(cluster, host, home, sets, KEYS));
        }
    }
}

/// Prints what hosts cost while nothing happens.
fn idle(cluster: &Cluster) {
    let (bytes, processor) = over(QUIET, cluster, || std::thread::sleep(QUIET));
    let memory = (0..3).map(|host| cluster.memory_bytes(host)).max().unwrap_or_default();
    println!(
        "idle: {:.0} bytes per second for each other host, {:.2} % of a core, at most {} MB a host",
        bytes / 6.0,
        processor / 3.0 * 100.0,
        memory >> 20,
    );
}

/// Adds a key to a set; returns the seconds until the other hosts find it.
fn add_one(cluster: &Cluster, home: usize, set: &str) -> f64 {
    let key = format!("{set}-one-more");
    let _: Vec<u8> = cluster.ask(home, &["UMBEL.ADD", set, &key]);
    let start = Instant::now();
    let others: Vec<usize> = (0..3).filter(|host| *host != home).collect();
    while !others.iter().all(|host| cluster.who(*host, set, &key).contains(&name(home))) {
        assert!(start.elapsed() < Duration::from_secs(60), "{set}");
        std::thread::sleep(Duration::from_millis(10));
    }
    start.elapsed().as_secs_f64()
}
