//! Announced prefixes among several hosts of one process: found by all, exact when confirmed.

use std::collections::BTreeMap;
use std::time::Duration;

use umbel_node::{Announced, Host, HostError, Lifetime, LocalNetwork, Reserve};

const PATIENCE: Duration = Duration::from_secs(5);

/// Hosts `h0` … of one network, each with a set `names` that is published at once.
async fn hosts(count: usize, false_positive: f64) -> Vec<Host> {
    let network = LocalNetwork::new();
    let mut hosts = Vec::new();
    for host in 0..count {
        let name = format!("h{host}");
        let host = Host::builder().name(&name).local(&network).start().await.expect("started");
        let plan = Reserve {
            false_positive,
            capacity: 200,
            expected_hosts: Some(count as u32),
            policy: Some("interval:0.05,shortest=0.01".parse().expect("a policy")),
            lifetime: Lifetime::Default,
            confirm: None,
            chains: None,
        };
        host.reserve("names", plan).expect("reserved");
        hosts.push(host);
    }
    hosts
}

fn announce(host: &Host, prefixes: &[&str]) {
    host.announce("names", prefixes, &mut Vec::new()).expect("announced");
    host.publish("names").expect("published");
}

fn withdraw(host: &Host, prefixes: &[&str]) {
    host.withdraw("names", prefixes, &mut Vec::new()).expect("withdrawn");
    host.publish("names").expect("published");
}

fn found(prefix: &str, hosts: &[&str]) -> Option<Announced> {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    Some(Announced { prefix: prefix.to_owned(), hosts })
}

/// Waits until a host's memory says so.
async fn knows(host: &Host, name: &str, expected: &Option<Announced>) {
    for _ in 0..1000 {
        if host.match_name("names", name).expect("known") == *expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{}: {name} is {:?}", host.name().as_str(), host.match_name("names", name));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_prefix_of_any_host_wins() {
    let hosts = hosts(3, 1e-9).await;
    announce(&hosts[0], &["/video", "/"]);
    announce(&hosts[1], &["/video/2024", "/video"]);
    announce(&hosts[2], &["/video/2024/"]);
    for (name, expected) in [
        ("/video/2024/intro/1", found("/video/2024", &["h1", "h2"])),
        ("/video/2024", found("/video/2024", &["h1", "h2"])),
        ("/video/2023/", found("/video", &["h0", "h1"])),
        ("/videos/2024", found("/", &["h0"])),
        ("/", found("/", &["h0"])),
    ] {
        knows(&hosts[0], name, &expected).await;
        let confirmed = hosts[0].match_confirmed("names", name, PATIENCE).await;
        assert_eq!(confirmed.expect("known"), expected, "{name}");
    }
    // The host that is asked comes first.
    knows(&hosts[2], "/video/2024/x", &found("/video/2024", &["h2", "h1"])).await;

    // A longer one elsewhere wins; what is withdrawn or gone is found no more.
    announce(&hosts[0], &["/video/2024/intro"]);
    knows(&hosts[2], "/video/2024/intro/1", &found("/video/2024/intro", &["h0"])).await;
    withdraw(&hosts[0], &["/video/2024/intro", "/"]);
    knows(&hosts[2], "/video/2024/intro/1", &found("/video/2024", &["h2", "h1"])).await;
    knows(&hosts[2], "/audio", &None).await;
    hosts[1].stop().await;
    knows(&hosts[0], "/video/2024/intro", &found("/video/2024", &["h2"])).await;
    knows(&hosts[0], "/video/2023", &found("/video", &["h0"])).await;
    hosts[0].stop().await;
    hosts[2].stop().await;
}

/// Sets whose filters lie often: what memory claims is wrong at times, what is confirmed never.
#[tokio::test(flavor = "multi_thread")]
async fn false_claims_are_found_out_by_asking() {
    let hosts = hosts(3, 0.05).await;
    let mut exact: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (host, name) in hosts.iter().zip(["h0", "h1", "h2"]) {
        let prefixes: Vec<String> = (0..180).map(|part| format!("/{name}/{part}")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).chain(["/all"]).collect();
        announce(host, &prefixes);
        prefixes
            .iter()
            .for_each(|prefix| exact.entry((*prefix).to_owned()).or_default().push(name));
    }
    for host in ["h1", "h2"] {
        let last = format!("/{host}/179");
        while hosts[0].who_has("names", last.as_bytes()).expect("known") != [host] {
            let claimed = hosts[0].who_has("names", last.as_bytes()).expect("known");
            if claimed.iter().any(|claimed| claimed == host) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let (mut wrong, mut asked) = (0, 0);
    for number in 0..3000 {
        // Six components; the first one or two may be announced.
        let name = match number % 3 {
            0 => format!("/h1/{number}/a/b/c/d"),
            1 => format!("/all/{number}/a/b/c/d"),
            _ => format!("/none/{number}/a/b/c/d"),
        };
        let parsed: umbel::prefix::Name = name.parse().expect("a name");
        let expected = parsed.prefixes().find_map(|prefix| found(prefix, exact.get(prefix)?));
        let confirmed = hosts[0].match_confirmed("names", &name, PATIENCE).await.expect("known");
        assert_eq!(confirmed, expected, "{name}");
        let claimed = hosts[0].match_name("names", &name).expect("known");
        asked += parsed.prefixes().count();
        wrong += usize::from(claimed != expected);
        // Memory is never too short.
        let length = |found: &Option<Announced>| found.as_ref().map_or(0, |f| f.prefix.len());
        assert!(length(&claimed) >= length(&expected), "{name}");
    }
    assert!(wrong > 0, "a rate of one in twenty is seen in 3000 matches");
    assert!(wrong as f64 <= 0.05 * asked as f64, "{wrong} of {asked} keys asked for");
    for host in hosts {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_name_changes_nothing() {
    let hosts = hosts(1, 0.01).await;
    let mut answers = Vec::new();
    for bad in ["", "a", "/a//b", "/./a", "/a b"] {
        let refused = hosts[0].announce("names", &["/good", bad], &mut answers);
        assert!(matches!(refused, Err(HostError::PrefixName { .. })), "{bad}: {refused:?}");
        assert!(hosts[0].withdraw("names", &[bad], &mut answers).is_err(), "{bad}");
        assert!(hosts[0].match_name("names", bad).is_err(), "{bad}");
        assert!(hosts[0].match_confirmed("names", bad, PATIENCE).await.is_err(), "{bad}");
    }
    assert!(answers.is_empty());
    assert_eq!(hosts[0].set_info("names").expect("known").items, 0);
    assert!(hosts[0].match_name("none", "/a").expect("as an empty set").is_none());
    assert!(hosts[0].match_confirmed("none", "/a", PATIENCE).await.expect("answered").is_none());
    hosts[0].stop().await;
}
