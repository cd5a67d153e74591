//! What sets cost: many small ones, and those that hostile or careless hosts claim.

use std::time::Instant;

use super::hosts::{Cluster, ask, eventually, name};

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
    (0..sets).rev().all(|set| {
        let set = format!("{}-set-{set}", name(home));
        let key = format!("{set}-key-{}", keys - 1);
        cluster.who(host, &set, &key).contains(&name(home))
    })
}

/// Sets of 3 keys take some kilobytes at their home and at every other host.
#[test]
fn two_hundred_small_sets_take_little_memory_everywhere() {
    const MOST: u64 = 10 << 20;
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
        assert!(more <= MOST, "{}: {more} bytes more", name(host));
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
