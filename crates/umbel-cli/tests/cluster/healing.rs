//! Links that heal: hosts that hang, lose each other or start all at once end up hearing each
//! other again, whatever state their links were left in.
//!
//! CI runs a few rounds. `cargo xtask links` runs many, and measures how clusters of 20, 40 and 60
//! hosts start.

use std::time::{Duration, Instant};

use super::coverage::who;
use super::hosts::{Cluster, binary, eventually, name, network};
use super::routers::{Router, free};
use super::secured::{says, start_secured, write_peers};
use super::traffic::bytes;
use super::{add, named};

/// How hosts reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Every host is told where all others listen.
    Mesh,
    /// The same, with certificates.
    Secured,
    /// Clients of two routers that are linked with each other.
    Routers,
}

/// A cluster whose hosts all run and know each other, with the routers it needs.
fn running(hosts: usize, way: Way) -> (Cluster, Vec<Router>) {
    let mut cluster = Cluster::new(hosts);
    let mut routers = Vec::new();
    let at = free();
    match way {
        Way::Mesh => (0..hosts).for_each(|host| cluster.start(host, &["--memory"])),
        Way::Secured => {
            let names: Vec<String> = (0..hosts).map(name).collect();
            let certs = cluster.path("certs");
            says(
                &["config", "certs", "--localhost", "--hosts", &names.join(","), "--out", &certs],
                &[],
                "",
            );
            write_peers(&cluster, hosts);
            (0..hosts).for_each(|host| start_secured(&mut cluster, host, &["--memory"]));
        }
        Way::Routers => {
            routers = vec![Router::start(&at[0], &at[1]), Router::start(&at[1], &at[0])];
            for host in 0..hosts {
                cluster
                    .start_with(host, &["--memory", "--through-routers", "--peer", &at[host % 2]]);
            }
        }
    }
    eventually("everybody knows everybody", || all_know_all(&cluster));
    (cluster, routers)
}

fn all_know_all(cluster: &Cluster) -> bool {
    let all = cluster.len() as u64;
    (0..cluster.len()).all(|host| cluster.status_number(host, "hosts_known") == all)
}

/// Adds a key at every host; all others must find it. Returns how long that took.
fn all_hear_all(cluster: &Cluster, round: &str) -> Duration {
    let start = Instant::now();
    for host in 0..cluster.len() {
        add(cluster, host, "images", &format!("{round}-{host}"), 1);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("what is added anywhere is found everywhere", || {
        all_know_all(cluster)
            && (0..cluster.len()).all(|home| {
                let key = format!("{round}-{home}");
                let others = (0..cluster.len()).filter(|host| *host != home);
                others.into_iter().all(|host| named(cluster, host, "images", &key, 1, home) == 1)
            })
    });
    start.elapsed()
}

/// Freezes every second host for a while. Returns how long it took until all heard all.
fn freeze_half(cluster: &Cluster, round: usize, freeze: Duration) -> Duration {
    let hosts = cluster.len();
    let frozen: Vec<usize> = (0..hosts / 2).map(|nth| (nth * 2 + round) % hosts).collect();
    frozen.iter().for_each(|host| cluster.signal(*host, "STOP"));
    std::thread::sleep(freeze);
    frozen.iter().for_each(|host| cluster.signal(*host, "CONT"));
    all_hear_all(cluster, &format!("round-{round}"))
}

#[test]
fn half_of_a_mesh_that_hung_is_heard_again() {
    let (cluster, _) = running(8, Way::Mesh);
    for round in 0..2 {
        freeze_half(&cluster, round, Duration::from_secs(5));
    }
}

#[test]
fn half_of_a_secured_mesh_that_hung_is_heard_again() {
    let (cluster, _) = running(4, Way::Secured);
    freeze_half(&cluster, 0, Duration::from_secs(4));
}

#[test]
fn clients_of_routers_that_hung_are_heard_again() {
    let (cluster, routers) = running(4, Way::Routers);
    freeze_half(&cluster, 0, Duration::from_secs(4));
    drop(cluster);
    routers.into_iter().for_each(Router::stop);
}

#[test]
fn hosts_that_were_only_heard_of_are_linked_and_their_links_repaired() {
    let mut cluster = Cluster::new(3);
    cluster.start_with(0, &["--memory"]);
    for host in [1, 2] {
        let first = cluster.peer(0);
        cluster.start_with(host, &["--memory", "--peer", &first]);
    }
    eventually("everybody knows everybody", || all_know_all(&cluster));
    // Without the one that both were told of, they still hear each other ...
    cluster.kill(0);
    add(&cluster, 1, "images", "direct", 1);
    let _: () = cluster.ask(1, &["UMBEL.PUBLISH", "images"]);
    eventually("the link does not depend on who introduced them", || {
        named(&cluster, 2, "images", "direct", 1, 1) == 1
    });
    // ... and do so again after their link was lost.
    cluster.signal(2, "STOP");
    eventually("the frozen host is gone", || cluster.status_number(1, "hosts_known") == 1);
    cluster.signal(2, "CONT");
    add(&cluster, 1, "images", "repaired", 1);
    let _: () = cluster.ask(1, &["UMBEL.PUBLISH", "images"]);
    eventually("the link is repaired", || {
        named(&cluster, 2, "images", "repaired", 1, 1) == 1
            && cluster.status_number(1, "hosts_known") == 2
    });
}

#[test]
fn a_host_without_its_router_starts_serves_and_says_what_it_waits_for() {
    let at = free();
    let mut cluster = Cluster::new(2);
    for host in [0, 1] {
        cluster.start_with(host, &["--memory", "--through-routers", "--peer", &at[0]]);
        add(&cluster, host, "images", &name(host), 1);
        assert_eq!(cluster.who(host, "images", &format!("{}-0", name(host))), [name(host)]);
    }
    let waits = |cluster: &Cluster| {
        let info: std::collections::HashMap<String, redis::Value> = cluster.ask(0, &["UMBEL.INFO"]);
        let waits = info.get("waiting_for").cloned().expect("told");
        redis::from_redis_value::<Vec<String>>(waits).expect("a list")
    };
    eventually("it says so", || waits(&cluster).iter().any(|peer| peer.starts_with(&at[0])));
    // Nobody knows who is behind the router: an answer without them is not complete.
    let keys = [0, 1].map(|host| format!("{}-0", name(host)));
    let answer = |cluster: &Cluster| who(cluster.http(0), &keys).expect("it answers");
    let before = answer(&cluster);
    assert!(!before.is_complete && before.denied(&name(1)) == 2, "{before:?}");
    assert_eq!(before.missing, [format!("{}: unreachable", at[0])]);
    eventually("and logs it", || cluster.log(0).contains("waiting for peers"));
    let router = Router::start(&at[0], &at[1]);
    eventually("they meet at the router", || all_know_all(&cluster));
    assert!(waits(&cluster).is_empty());
    eventually("answers are complete", || {
        let answer = answer(&cluster);
        answer.is_complete && answer.hosts[1] == [name(1)]
    });
    drop(cluster);
    router.stop();
}

/// A router is no host, and hosts may be behind it: whoever sees it alone does not know all of them.
#[test]
fn a_host_alone_at_its_router_is_neither_ready_nor_complete() {
    let at = free();
    let router = Router::start(&at[0], &at[1]);
    let mut cluster = Cluster::new(2);
    let flags = ["--memory", "--through-routers", "--timing-ready", "300", "--peer", &at[0]];
    cluster.start_with(0, &flags);
    add(&cluster, 0, "images", &name(0), 1);
    let keys = [format!("{}-0", name(0))];
    let answer = |cluster: &Cluster| who(cluster.http(0), &keys).expect("it answers");
    eventually("the router is reached", || {
        cluster.status_number(0, "links_opened") == 1 && answer(&cluster).missing.is_empty()
    });
    // As long as several looks at the hosts take.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(cluster.get(0, "/readyz").0, 503);
    assert!(!answer(&cluster).is_complete);
    cluster.start_with(1, &flags);
    eventually("both are there", || {
        (0..2).all(|host| cluster.get(host, "/readyz").0 == 200) && answer(&cluster).is_complete
    });
    drop(cluster);
    router.stop();
}

/// The long round: how long every round took, and none may take longer than 20 seconds.
#[test]
#[ignore = "takes minutes: cargo xtask links"]
fn many_rounds() {
    let rounds: usize = std::env::var("UMBEL_ROUNDS").map_or(20, |n| n.parse().expect("a number"));
    let cases = [
        (8, 5, Way::Mesh),
        (8, 12, Way::Mesh),
        (12, 12, Way::Mesh),
        (5, 4, Way::Mesh),
        (6, 5, Way::Secured),
        (6, 5, Way::Routers),
    ];
    for (hosts, freeze, way) in cases {
        let (cluster, routers) = running(hosts, way);
        let took: Vec<Duration> = (0..rounds)
            .map(|round| freeze_half(&cluster, round, Duration::from_secs(freeze)))
            .collect();
        let longest = took.iter().max().copied().unwrap_or_default();
        let mean = took.iter().sum::<Duration>() / rounds.max(1) as u32;
        let reopened: u64 =
            (0..hosts).map(|host| cluster.status_number(host, "links_reopened")).sum();
        println!(
            "{way:?}, {hosts} hosts, {freeze} s: {rounds} rounds, all heard all after {mean:.1?} \
             on average, {longest:.1?} at most; {reopened} links reopened"
        );
        assert!(longest < Duration::from_secs(20), "{took:?}");
        drop(cluster);
        routers.into_iter().for_each(Router::stop);
    }
}

/// How large clusters start when all hosts do so at once.
#[test]
#[ignore = "a measurement: cargo xtask links"]
fn starts() {
    let hosts = std::env::var("UMBEL_HOSTS").unwrap_or_else(|_| "20,40,60".to_owned());
    println!("hosts  all know all after  bytes sent  processor time");
    for hosts in hosts.split(',').map(|hosts| hosts.parse().expect("numbers")) {
        let mut cluster = Cluster::new(hosts);
        (0..hosts)
            .for_each(|host| cluster.move_to(host, format!("{}{}:7447", network(), host + 1)));
        let commands = (0..hosts).map(|_| binary()).collect();
        let (before, start) = (bytes(), Instant::now());
        cluster.start_all_by(commands, &["--memory", "--log-level", "error"]);
        eventually("all know all", || all_know_all(&cluster));
        let took = start.elapsed();
        println!(
            "{hosts:>5} {:>17.1} s {:>8.1} MB {:>12.1} s",
            took.as_secs_f64(),
            (bytes() - before) / 1e6,
            cluster.processor_seconds()
        );
    }
}
