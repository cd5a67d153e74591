//! Hosts of two sites, each with a zenoh router: as peers and as clients of it.

use tokio::runtime::Runtime;
use zenoh::Wait as _;

use super::hosts::{Cluster, eventually};
use super::{add, named};

/// A zenoh router in this process.
pub(crate) struct Router {
    session: zenoh::Session,
    /// Its threads.
    _runtime: Runtime,
}

impl Router {
    pub(crate) fn start(listen: &str, other: &str) -> Self {
        let runtime = Runtime::new().expect("threads");
        let mut config = zenoh::Config::default();
        for (key, value) in [
            ("mode", "\"router\"".to_owned()),
            ("listen/endpoints", format!("[\"tcp/{listen}\"]")),
            ("connect/endpoints", format!("[\"tcp/{other}\"]")),
            ("connect/timeout_ms", "-1".to_owned()),
            ("connect/exit_on_failure", "false".to_owned()),
            ("scouting/multicast/enabled", "false".to_owned()),
        ] {
            config.insert_json5(key, &value).expect("a sound configuration");
        }
        let session = runtime.block_on(async { zenoh::open(config).await }).expect("a router");
        Self { session, _runtime: runtime }
    }

    pub(crate) fn stop(self) {
        self.session.close().wait().expect("closed");
    }
}

/// Addresses that were free a moment ago.
pub(crate) fn free() -> [String; 2] {
    let ports = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
    ports.map(|port| port.local_addr().expect("bound").to_string())
}

#[test]
fn hosts_of_two_sites_find_each_other_through_routers() {
    let at = free();
    let left = Router::start(&at[0], &at[1]);
    let right = Router::start(&at[1], &at[0]);
    let mut cluster = Cluster::new(4);
    for host in 0..4 {
        let mut flags = vec!["--peer", &at[host / 2]];
        if host % 2 == 1 {
            flags.push("--through-routers");
        }
        cluster.start_with(host, &flags);
    }
    for host in 0..4 {
        add(&cluster, host, "images", &format!("first-{host}"), 50);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    let all_know = |cluster: &Cluster, hosts: &[usize], keys: &str| {
        hosts.iter().all(|asked| {
            let others = hosts.iter().filter(|other| *other != asked);
            others.into_iter().all(|home| {
                named(cluster, *asked, "images", &format!("{keys}-{home}"), 50, *home) == 50
            })
        })
    };
    eventually("everybody knows everybody's keys", || all_know(&cluster, &[0, 1, 2, 3], "first"));

    // One router is lost: its site is cut off, the other goes on.
    right.stop();
    for host in [0, 1] {
        add(&cluster, host, "images", &format!("second-{host}"), 50);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("the other site goes on", || all_know(&cluster, &[0, 1], "second"));

    // And back: what was missed is learnt.
    let right = Router::start(&at[1], &at[0]);
    for host in [2, 3] {
        add(&cluster, host, "images", &format!("second-{host}"), 50);
        let _: () = cluster.ask(host, &["UMBEL.PUBLISH", "images"]);
    }
    eventually("all is known again", || all_know(&cluster, &[0, 1, 2, 3], "second"));
    assert!(all_know(&cluster, &[0, 1, 2, 3], "first"));
    drop(cluster);
    right.stop();
    left.stop();
}
