//! The eight hosts of paper 5, figure 1, in one process: `d = 3`, `s = 7`.

use std::time::Duration;

use umbel_node::{Host, HostError, Lifetime, LocalNetwork, Reserve};

/// The overlay of figure 1, and a link between C and D that is cut unless a test heals it.
const LINKS: [(&str, &str); 8] = [
    ("A", "B"),
    ("B", "C"),
    ("B", "D"),
    ("C", "E"),
    ("C", "F"),
    ("D", "G"),
    ("D", "H"),
    ("C", "D"),
];
const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

struct Eight {
    network: LocalNetwork,
    entry: &'static str,
    hosts: Vec<Host>,
}

impl Eight {
    async fn start(entry: &'static str) -> Self {
        let mut eight = Self { network: LocalNetwork::new(), entry, hosts: Vec::new() };
        eight.network.disconnect("C", "D");
        for name in NAMES {
            let host = eight.one(name).await;
            host.add_key("items", format!("of {name}").as_bytes()).await.expect("added");
            host.publish("items").expect("published");
            eight.hosts.push(host);
        }
        eight
    }

    async fn one(&self, name: &str) -> Host {
        let links = LINKS.iter().filter_map(|(one, other)| match name {
            name if name == *one => Some(*other),
            name if name == *other => Some(*one),
            _ => None,
        });
        let settings = [
            ("overlay.entry", self.entry),
            ("overlay.depth", "3"),
            ("overlay.items", "3"),
            ("overlay.filters", "7"),
            ("overlay.false_positive", "0.0001"),
            ("timing.announce", "0.1"),
            ("timing.silence", "2"),
        ];
        let builder = Host::builder().name(name).set("links", links);
        let builder = settings.iter().fold(builder, |b, (key, value)| b.set(key, [*value]));
        builder.local(&self.network).start().await.expect("started")
    }

    fn at(&self, name: &str) -> &Host {
        &self.hosts[NAMES.iter().position(|other| *other == name).expect("one of the eight")]
    }

    /// The path from a host to the holder of a key, as `E-C-B-A`; empty if it is not found.
    async fn path(&self, at: &str, key: &str) -> Result<String, HostError> {
        let paths = self.at(at).route("items", key.as_bytes(), None, None).await?;
        assert!(paths.len() <= 1, "{paths:?}");
        Ok(paths.first().map(|path| path.join("-")).unwrap_or_default())
    }

    async fn becomes(&self, at: &str, key: &str, wanted: &str) {
        for _ in 0..1500 {
            if self.path(at, key).await.is_ok_and(|path| path == wanted) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{:?} instead of {wanted}", self.path(at, key).await);
    }

    /// Waits until every host knows all homes within three hops.
    async fn settled(&self) {
        for (name, homes) in NAMES.iter().zip([7, 7, 7, 7, 5, 5, 5, 5]) {
            let mut known = Vec::new();
            for _ in 0..1500 {
                let info = self.at(name).set_info("items").expect("own");
                known = info.routing.expect("an overlay").homes;
                if known.len() == homes {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(known.len(), homes, "{name}: {known:?}");
        }
    }

    /// Forwards over links that claimed a key, and those of them that were wrong.
    fn forwards(&self) -> Vec<(u64, u64)> {
        let counted = |host: &Host| {
            let routing = host.status().routing.expect("an overlay");
            (routing.forwards, routing.wrong_forwards)
        };
        self.hosts.iter().map(counted).collect()
    }

    async fn stop(self) {
        for host in &self.hosts {
            host.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_at_e_for_an_item_at_a_goes_along_e_c_b_a() {
    for entry in ["cubf", "abf", "attenuated"] {
        let eight = Eight::start(entry).await;
        eight.settled().await;
        assert_eq!(eight.path("E", "of A").await.expect("answered"), "E-C-B-A", "{entry}");
        let along = |name: &str| u64::from(["E", "C", "B"].contains(&name));
        assert_eq!(eight.forwards(), NAMES.map(|name| (along(name), 0)), "{entry}");
        // A hop short, and nowhere; four hops away, by a walk.
        let short = eight.at("E").route("items", b"of A", Some(2), None).await;
        assert!(short.expect("answered").is_empty(), "{entry}");
        assert_eq!(eight.path("E", "nowhere").await.expect("answered"), "", "{entry}");
        assert_eq!(eight.path("E", "of G").await.expect("answered"), "E-C-B-D-G", "{entry}");
        assert_eq!(eight.path("E", "of E").await.expect("answered"), "E", "{entry}");
        assert_eq!(eight.at("E").locate("items", b"of A", None).await.expect("answered"), ["A"]);
        let a = eight.at("A").status().routing.expect("an overlay");
        assert_eq!(a.queries_answered, 2, "{entry}");
        let e = eight.at("E").status().routing.expect("an overlay");
        assert_eq!((e.queries_asked, e.queries_not_found), (6, 2), "{entry}");
        eight.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_claims_what_is_gone_is_a_wrong_forward() {
    let eight = Eight::start("cubf").await;
    eight.settled().await;
    eight.at("A").set_policy("items", "manual".parse().expect("a policy")).expect("set");
    eight.at("A").remove_key("items", b"of A").await.expect("removed");
    assert_eq!(eight.path("E", "of A").await.expect("answered"), "");
    let along = |name: &str| u64::from(["E", "C", "B"].contains(&name));
    assert_eq!(eight.forwards(), NAMES.map(|name| (along(name), along(name))));
    eight.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_link_is_routed_round_and_heals_and_a_host_on_the_way_may_restart() {
    let mut eight = Eight::start("cubf").await;
    eight.settled().await;
    eight.network.disconnect("B", "C");
    eight.becomes("E", "of A", "").await;
    let up = eight.at("C").status().routing.expect("an overlay").links_up;
    assert_eq!(up, ["E", "F"]);
    eight.network.reconnect("C", "D");
    eight.becomes("E", "of A", "E-C-D-B-A").await;
    eight.network.reconnect("B", "C");
    eight.network.disconnect("C", "D");
    eight.becomes("E", "of A", "E-C-B-A").await;

    // B ends and comes back with nothing: it holds no key of the set, and passes on.
    eight.at("B").stop().await;
    eight.becomes("E", "of A", "").await;
    let b = eight.one("B").await;
    eight.hosts[1] = b;
    eight.becomes("E", "of A", "E-C-B-A").await;
    assert_eq!(eight.path("E", "of B").await.expect("answered"), "", "it is gone with B's memory");
    assert_eq!(eight.path("B", "of H").await.expect("answered"), "B-D-H");
    eight.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_says_no_more_than_it_knows() {
    let eight = Eight::start("cubf").await;
    eight.settled().await;
    let e = eight.at("E");
    assert_eq!(e.who_has("items", b"of E").expect("known"), ["E"]);
    assert_eq!(e.who_has("items", b"of A").expect("known"), ["A"]);
    assert!(e.who_has("items", b"of G").expect("known").is_empty(), "beyond the range");
    let keys = ["of E", "of A", "of G", "nowhere"].map(|key| key.as_bytes().to_vec());
    let missing = e.missing("items", keys.to_vec()).await.expect("answered");
    assert_eq!(missing.missing, [b"of G".to_vec(), b"nowhere".to_vec()]);
    assert!(missing.unconfirmed.is_empty());
    let hosts = e.hosts();
    let hosts: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.state)).collect();
    let reached = [("A", "reached"), ("B", "reached"), ("D", "reached"), ("F", "reached")];
    assert_eq!(hosts, [[("E", "self"), ("C", "up")].as_slice(), &reached].concat());
    let info = e.set_info("items").expect("known");
    assert_eq!((info.items, info.items_everywhere), (1, 6));

    // Of a set that nobody has, a query is answered all the same.
    assert!(e.who_has("other", b"k").expect("answered").is_empty());
    assert!(e.locate("other", b"k", None).await.expect("answered").is_empty());
    assert_eq!(e.sets(), ["items"], "asked for is not known of");
    assert!(!e.knows("other"));
    assert!(matches!(e.set_info("other"), Err(HostError::NoSuchSet(_))));
    let plan = Reserve {
        false_positive: 0.01,
        capacity: 10,
        expected_hosts: None,
        policy: None,
        lifetime: Lifetime::Default,
        confirm: None,
        chains: None,
    };
    let refused = e.reserve("items", plan).expect_err("no plan of its own").to_string();
    assert!(refused.starts_with("in an overlay every set has the shape"), "{refused}");
    let chain = e.chain("items", &[b"of A"], umbel_node::ChainQuery::default(), &mut |_, _| ());
    assert!(matches!(chain, Err(HostError::InOverlay(_))));
    eight.stop().await;

    let eight = Eight::start("abf").await;
    eight.settled().await;
    let refused = eight.at("E").who_has("items", b"of A").expect_err("not known").to_string();
    assert!(refused.contains("do not keep hosts apart: ask UMBEL.LOCATE"), "{refused}");
    eight.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_of_another_plan_is_refused() {
    let network = LocalNetwork::new();
    let host = |name, link, depth| {
        let host = Host::builder().name(name).set("links", [link]).set("overlay.depth", [depth]);
        host.set("timing.announce", ["0.1"]).local(&network).start()
    };
    let one = host("one", "two", "3").await.expect("started");
    let two = host("two", "one", "4").await.expect("started");
    one.add_key("items", b"key").await.expect("added");
    one.publish("items").expect("published");
    // Each has seen the other, and takes nothing from it.
    for (host, other) in [(&one, "two"), (&two, "one")] {
        let refused = |host: &Host| {
            let hosts = host.hosts();
            hosts[1].name == other && hosts[1].incarnation > 0 && hosts[1].state == "down"
        };
        for _ in 0..1500 {
            if refused(host) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(refused(host), "{:?}", host.hosts());
    }
    assert!(two.locate("items", b"key", None).await.expect("nobody to ask").is_empty());
    one.stop().await;
    two.stop().await;
}
