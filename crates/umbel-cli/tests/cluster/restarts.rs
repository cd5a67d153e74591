//! Restarts without a gap: hosts that say that they will be back are named all the while.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::hosts::{Cluster, ask, eventually, name};
use super::secured::says;
use super::{add, named};
use crate::run::refused;

const RESTARTS: [&str; 2] = ["--leave-on-stop", "false"];
/// Keys of each host.
const KEYS: usize = 200;

/// Hosts that are behind the load balancer, and where.
type InService = RwLock<BTreeMap<usize, String>>;

/// Asks all hosts in service for all keys of all hosts, until it is done; every key must be named.
fn ask_all_the_while(hosts: usize, service: &InService, done: &AtomicBool, asked: &AtomicU64) {
    let keys = |home: usize| (0..KEYS).map(move |key| (home, format!("{}-{key}", name(home))));
    let keys: Vec<(usize, String)> = (0..hosts).flat_map(keys).collect();
    let words: Vec<&str> =
        ["UMBEL.WHO", "objects"].into_iter().chain(keys.iter().map(|key| key.1.as_str())).collect();
    while !done.load(Ordering::Relaxed) {
        for host in 0..hosts {
            // Whoever takes a host out of service waits for this question.
            let service = service.read().expect("nobody panicked");
            let Some(address) = service.get(&host) else { continue };
            let client = redis::Client::open(format!("redis://{address}")).expect("an address");
            let mut connection = client.get_connection().expect("it is in service");
            let found: Vec<Vec<String>> = ask(&mut connection, &words).expect("answered");
            drop(service);
            for ((home, key), hosts) in keys.iter().zip(found) {
                assert!(hosts.contains(&name(*home)), "{} denies {key}: {hosts:?}", name(host));
            }
            asked.fetch_add(keys.len() as u64, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks others, by the command, to go on naming a host.
fn leave(cluster: &Cluster, host: usize, time: &str) {
    says(&["leave", "--back-within", time, "--at", cluster.resp(host)], &[], "");
}

/// The recipe of docs/operations.md: one host after the other is taken out of service, ended, started
/// again, and put back when it is ready. With the command if the flags do not say it.
fn restart_one_after_the_other(cluster: &mut Cluster, service: &InService, flags: &[&str]) {
    let hosts = cluster.len();
    for host in 0..hosts {
        service.write().expect("nobody panicked").remove(&host);
        // Not published when the host ends, unless it does so then.
        let late = format!("late-{host}");
        add(cluster, host, "objects", &late, 20);
        if flags.is_empty() {
            leave(cluster, host, "60s");
        }
        cluster.terminate(host);
        let others: Vec<usize> = (0..hosts).filter(|other| *other != host).collect();
        eventually("its last keys are known", || {
            others.iter().all(|other| named(cluster, *other, "objects", &late, 20, host) == 20)
        });
        let state = |other: usize| cluster.get(other, "/v1/hosts").1;
        assert!(
            others.iter().all(|other| state(*other).contains("\"away\"")),
            "{}",
            state(others[0])
        );
        cluster.start(host, flags);
        eventually("it is ready", || {
            cluster.get(host, "/readyz").0 == 200
                && cluster.status_number(host, "hosts_known") == hosts as u64
        });
        let address = cluster.resp(host).to_owned();
        service.write().expect("nobody panicked").insert(host, address);
    }
}

#[test]
fn a_rolling_restart_denies_no_key() {
    denies_no_key(7, &RESTARTS);
}

#[test]
fn a_rolling_restart_with_the_command_denies_no_key() {
    denies_no_key(3, &[]);
}

fn denies_no_key(hosts: usize, flags: &[&str]) {
    let mut cluster = Cluster::new(hosts);
    for host in 0..hosts {
        cluster.start(host, flags);
        add(&cluster, host, "objects", &name(host), KEYS);
    }
    let knows = |host, home| named(&cluster, host, "objects", &name(home), KEYS, home) == KEYS;
    eventually("all know all", || (0..hosts).all(|h| (0..hosts).all(|home| knows(h, home))));
    let addresses = (0..hosts).map(|host| (host, cluster.resp(host).to_owned()));
    let service: InService = RwLock::new(addresses.collect());
    let (done, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| ask_all_the_while(hosts, &service, &done, &asked));
        restart_one_after_the_other(&mut cluster, &service, flags);
        done.store(true, Ordering::Relaxed);
        load.join().expect("no key was denied");
    });
    assert!(asked.load(Ordering::Relaxed) > 1000, "and many were asked for");
}

/// Others are asked before the stop, so that it need not be one in good order.
#[test]
fn a_host_that_said_when_it_is_back_is_named_though_it_was_killed() {
    let flags = ["--timing-grace", "2", "--timing-silence", "6"];
    let mut cluster = Cluster::new(2);
    (0..2).for_each(|host| cluster.start(host, &flags));
    add(&cluster, 0, "objects", "key", 50);
    let is_named = |cluster: &Cluster| named(cluster, 1, "objects", "key", 50, 0) == 50;
    eventually("the other one knows", || is_named(&cluster));
    leave(&cluster, 0, "1m");
    cluster.kill(0);
    eventually("it is away", || cluster.get(1, "/v1/hosts").1.contains("\"away\""));
    // Longer than grace and silence.
    std::thread::sleep(Duration::from_secs(8));
    assert!(is_named(&cluster), "it said that it will be back");

    // What was said is taken back: it leaves for good.
    cluster.start(0, &flags);
    eventually("it is back", || cluster.status_number(1, "hosts_known") == 2);
    leave(&cluster, 0, "60s");
    leave(&cluster, 0, "0");
    cluster.terminate(0);
    eventually("it is gone", || named(&cluster, 1, "objects", "key", 50, 0) == 0);
}

#[test]
fn a_time_that_is_none_and_a_host_in_memory_are_refused() {
    let mut cluster = Cluster::new(1);
    cluster.start(0, &["--memory"]);
    let at = cluster.resp(0).to_owned();
    for (time, reason) in [
        ("soon", "a duration such as 60s"),
        ("-1s", "a duration such as 60s"),
        ("1e10", "at most 10^9 seconds"),
        ("60s", "keeps its keys in memory"),
    ] {
        refused(&["leave", "--at", &at, &format!("--back-within={time}")], "", reason);
    }
    refused(&["leave", "--at", &at], "--back-within", "");
    for bad in ["soon", "-1", ""] {
        let answer: redis::RedisResult<()> = cluster.try_ask(0, &["UMBEL.LEAVE", bad]);
        assert!(answer.is_err_and(|error| error.to_string().contains("a duration such as")));
    }
}

/// What is in memory is gone with the process: nobody goes on naming it.
#[test]
fn a_host_that_keeps_its_keys_in_memory_leaves() {
    let mut cluster = Cluster::new(2);
    for host in 0..2 {
        cluster.start(host, &["--memory", "--leave-on-stop", "false"]);
    }
    add(&cluster, 0, "objects", &name(0), 10);
    eventually("the other one knows", || named(&cluster, 1, "objects", &name(0), 10, 0) == 10);
    cluster.terminate(0);
    eventually("it is gone", || named(&cluster, 1, "objects", &name(0), 10, 0) == 0);
    assert_eq!(cluster.status_number(1, "hosts_known"), 1);
}
