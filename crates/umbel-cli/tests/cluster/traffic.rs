//! What hosts cost on the wire and of the processor, in a mesh and through routers.
//!
//! A measurement, not a promise: `cargo xtask traffic` runs it in a network namespace of its own,
//! in which nothing else uses the loopback interface.

use std::time::{Duration, Instant};

use super::add;
use super::hosts::{Cluster, ask, binary, eventually, name, network};
use super::routers::{Router, free};

/// How hosts reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Each is linked with each.
    Mesh,
    /// Clients of two routers that are linked with each other.
    Routers,
}

/// What a run costs, in a second and for a host.
#[derive(Debug)]
struct Cost {
    quiet_bytes: f64,
    busy_bytes: f64,
    /// Shares of one core.
    quiet_processor: f64,
    busy_processor: f64,
}

const QUIET: Duration = Duration::from_secs(15);
const BUSY: Duration = Duration::from_secs(20);
/// Keys that come, and go, in a second at every host.
const CHANGES: usize = 10;

#[test]
#[ignore = "a measurement of minutes: cargo xtask traffic"]
fn hosts_in_a_mesh_and_through_routers() {
    let hosts = std::env::var("UMBEL_TRAFFIC").unwrap_or_else(|_| "5,20,50".to_owned());
    let hosts: Vec<usize> = hosts.split(',').map(|hosts| hosts.parse().expect("numbers")).collect();
    // The commands that change keys cross the interface too: a host alone has nothing else.
    let commands = measure(1, Way::Mesh);
    println!(
        "\nbytes a second and host; the commands' own {:.0} are left out. A host alone takes {:.2} % of a core, with changes {:.2} %",
        commands.busy_bytes,
        commands.quiet_processor * 100.0,
        commands.busy_processor * 100.0
    );
    println!(
        "{:<8} {:>5} {:>10} {:>10} {:>12} {:>10}",
        "way", "hosts", "no changes", "processor", "with changes", "processor"
    );
    for way in [Way::Mesh, Way::Routers] {
        for hosts in &hosts {
            let cost = measure(*hosts, way);
            println!(
                "{:<8} {hosts:>5} {:>10.0} {:>8.2} % {:>12.0} {:>8.2} %",
                format!("{way:?}").to_lowercase(),
                cost.quiet_bytes,
                cost.quiet_processor * 100.0,
                cost.busy_bytes - commands.busy_bytes,
                cost.busy_processor * 100.0,
            );
        }
    }
}

fn measure(hosts: usize, way: Way) -> Cost {
    let at = free();
    let routers = (way == Way::Routers)
        .then(|| [Router::start(&at[0], &at[1]), Router::start(&at[1], &at[0])]);
    let mut cluster = Cluster::new(hosts);
    // Ports that the system chose may be those of somebody's link by the time a host starts.
    (0..hosts).for_each(|host| cluster.move_to(host, format!("{}{}:7447", network(), host + 1)));
    for host in 0..hosts {
        let plain = ["--memory", "--log-level", "error"];
        match way {
            Way::Mesh => cluster.start_by(host, binary(), &plain),
            Way::Routers => {
                let flags = ["--through-routers", "--peer", &at[host % 2]];
                cluster.run(host, binary(), &[&plain[..], &flags].concat());
            }
        }
    }
    for host in 0..hosts {
        add(&cluster, host, "objects", &name(host), 1000);
    }
    eventually("all is known everywhere", || (0..hosts).all(|host| knows_all(&cluster, host)));
    std::thread::sleep(Duration::from_secs(8));
    let (quiet, quiet_processor) = over(QUIET, &cluster, || std::thread::sleep(QUIET));
    let (busy, busy_processor) = over(BUSY, &cluster, || change(&cluster));
    drop(cluster);
    routers.into_iter().flatten().for_each(Router::stop);
    let each = hosts as f64;
    Cost {
        quiet_bytes: quiet / each,
        busy_bytes: busy / each,
        quiet_processor: quiet_processor / each,
        busy_processor: busy_processor / each,
    }
}

fn knows_all(cluster: &Cluster, host: usize) -> bool {
    (0..cluster.len()).all(|home| {
        cluster.who(host, "objects", &format!("{}-5", name(home))).contains(&name(home))
    })
}

/// Bytes on the loopback interface, and processor time of all hosts, in a second of a while.
pub(super) fn over(time: Duration, cluster: &Cluster, run: impl FnOnce()) -> (f64, f64) {
    let now = || (bytes(), cluster.processor_seconds(), Instant::now());
    let before = now();
    run();
    let after = now();
    let seconds = after.2.duration_since(before.2).as_secs_f64().max(time.as_secs_f64());
    ((after.0 - before.0) / seconds, (after.1 - before.1) / seconds)
}

/// Ten keys come and ten go in every second at every host.
fn change(cluster: &Cluster) {
    let mut connections: Vec<_> = (0..cluster.len()).map(|host| cluster.connect(host)).collect();
    let start = Instant::now();
    for second in 0..u32::try_from(BUSY.as_secs()).expect("few") {
        for (host, connection) in connections.iter_mut().enumerate() {
            let from = second as usize * CHANGES;
            let keys = |kind: &str| -> Vec<String> {
                (from..from + CHANGES).map(|key| format!("{}{kind}-{key}", name(host))).collect()
            };
            for (command, keys) in [("UMBEL.ADD", keys("-new")), ("UMBEL.REM", keys(""))] {
                let words = [command, "objects"].into_iter().chain(keys.iter().map(String::as_str));
                let _: Vec<u8> = ask(connection, &words.collect::<Vec<_>>()).expect("changed");
            }
        }
        std::thread::sleep((Duration::from_secs(1) * (second + 1)).saturating_sub(start.elapsed()));
    }
}

/// What the loopback interface has carried.
pub(super) fn bytes() -> f64 {
    let devices = std::fs::read_to_string("/proc/net/dev").expect("Linux");
    let line = devices.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    let received = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    received.expect("a loopback interface")
}
