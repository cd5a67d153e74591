//! What hosts of one process say of their own answers while cables between them are pulled.

use std::time::{Duration, Instant};

use umbel_node::{Host, LocalNetwork};

const KEYS: usize = 200;

async fn hosts(network: &LocalNetwork, names: &[&str]) -> Vec<Host> {
    let mut hosts = Vec::new();
    for name in names {
        let host = Host::builder().name(name).local(network).set("timing.grace", ["2"]);
        let host = host.start().await.expect("started");
        for key in 0..KEYS {
            host.add_key("images", format!("{name}-{key}").as_bytes()).await.expect("added");
        }
        host.publish("images").expect("published");
        hosts.push(host);
    }
    hosts
}

/// How many keys of a host another one denies; none if the answers were complete meanwhile.
fn denied(host: &Host, home: &str) -> (bool, usize) {
    let before = host.coverage();
    let names = |key: &usize| {
        let key = format!("{home}-{key}");
        let hosts = host.who_has("images", key.as_bytes()).expect("answered");
        hosts.iter().any(|host| host == home)
    };
    let named = (0..KEYS).filter(names).count();
    (host.coverage().and(&before).complete, KEYS - named)
}

/// Asks until something is so; no complete answer may deny a key.
async fn until(what: &str, hosts: &[Host], mut is_so: impl FnMut() -> bool) {
    for _ in 0..4000 {
        for host in hosts {
            for home in hosts.iter().map(|home| home.name().as_str()) {
                let (is_complete, denied) = denied(host, home);
                assert!(!is_complete || denied == 0, "{denied} of {home} at {}", host.name());
            }
        }
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let coverage: Vec<_> = hosts.iter().map(Host::coverage).collect();
    panic!("{what}: {coverage:?}");
}

fn missing(host: &Host) -> Vec<String> {
    host.coverage().missing_hosts.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_link_makes_both_ends_incomplete_and_nobody_else() {
    let network = LocalNetwork::new();
    let hosts = hosts(&network, &["a", "b", "c"]).await;
    let all_complete = || hosts.iter().all(|host| host.coverage().complete);
    until("all know all", &hosts, all_complete).await;
    for host in &hosts {
        assert_eq!((host.coverage().hosts_known, host.coverage().hosts_expected), (3, 3));
    }
    network.disconnect("a", "b");
    until("both ends say so", &hosts, || {
        missing(&hosts[0]) == ["b: unreachable"] && missing(&hosts[1]) == ["a: unreachable"]
    })
    .await;
    until("their keys are gone", &hosts, || denied(&hosts[0], "b").1 == KEYS).await;
    // Hosts look at each other twice a second.
    let later = Instant::now() + Duration::from_millis(1500);
    until("nothing changes by itself", &hosts, || Instant::now() >= later).await;
    assert!(hosts[2].coverage().complete, "{:?}", hosts[2].coverage());
    assert_eq!(missing(&hosts[0]), ["b: unreachable"], "it has not left");
    network.reconnect("a", "b");
    until("all know all again", &hosts, all_complete).await;
    assert_eq!(denied(&hosts[0], "b").1, 0);
    // Who leaves is not missing.
    hosts[1].stop().await;
    until("two are all", &[hosts[0].clone(), hosts[2].clone()], || {
        let coverage = hosts[0].coverage();
        coverage.complete && coverage.hosts_expected == 2
    })
    .await;
    for host in &hosts {
        host.stop().await;
    }
}
