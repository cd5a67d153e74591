//! Filters that travel, queries that follow them.

use super::*;
use crate::replica::{Epoch, Policy};

#[test]
fn a_query_at_e_for_an_item_at_a_goes_along_e_c_b_a_in_the_overlay_of_figure_1() {
    for kind in EntryKind::ALL {
        let mut net = Net::new(plan(kind, 3, 3, 7), &FIGURE_1);
        net.stock();
        net.settle();
        let (filters, rate) = net.at("A").entry(&name("B")).unwrap();
        assert!(filters == 7 && rate <= 0.0001, "{kind}: {filters} {rate}");
        assert_eq!(net.at("A").homes().count(), 7);
        assert_eq!(net.at("E").claiming(b"of A"), [&name("C")]);
        net.queries_sent = 0;
        assert_eq!(net.found("E", "of A"), Some(("A".to_owned(), 3)), "{kind}");
        assert_eq!(net.queries_sent, 3, "{kind}");
        for host in ["E", "C", "B"] {
            let counters = *net.at(host).counters();
            assert_eq!(
                (counters.claimed_forwards, counters.wrong_forwards),
                (1, 0),
                "{kind} {host}"
            );
        }
        let located = net.locate("E", "of A");
        let path: Vec<&str> = located.holders[0].path().iter().map(Name::as_str).collect();
        assert_eq!(path, ["E", "C", "B", "A"], "{kind}");
        // Four hops: beyond the range, and reached by a walk.
        assert_eq!(net.found("E", "of G"), Some(("G".to_owned(), 4)), "{kind}");
    }
}

#[test]
fn filters_travel_as_many_hops_as_planned_and_once_over_each_link() {
    let links = line(8);
    let mut net = Net::new(plan(EntryKind::Cubf, 3, 3, 7), &borrowed(&links));
    net.run(Duration::from_secs(1));
    let homes: Vec<_> = net
        .at("h00")
        .homes()
        .map(|(home, by, hops)| (home.to_string(), by.to_string(), hops))
        .collect();
    assert_eq!(
        homes,
        [("h01", 1), ("h02", 2), ("h03", 3)].map(|(h, hops)| (
            h.to_owned(),
            "h01".to_owned(),
            hops
        ))
    );
    // Each home to each side: hops 1, 2, 3, as far as the line goes.
    let sent: u64 = net.routers.values().map(|router| router.counters().adverts_sent).sum();
    assert_eq!(sent, 2 * (7 + 6 + 5));
    // An update is as short as a change.
    let before: u64 = net.routers.values().map(|r| r.counters().advert_bytes_sent).sum();
    let now = net.now;
    net.at("h04").add(now, b"new");
    net.at("h04").publish(now);
    net.settle();
    let after: u64 = net.routers.values().map(|r| r.counters().advert_bytes_sent).sum();
    assert!(after > before && after - before < 6 * 90, "{}", after - before);
    assert!(!net.at("h01").claiming(b"new").is_empty());
}

#[test]
fn the_policy_says_when_neighbours_hear_of_keys() {
    let policy: Policy = "interval:5".parse().unwrap();
    let mut net = Net::with(plan(EntryKind::Abf, 2, 20, 3), &[("a", "b"), ("b", "c")], |config| {
        config.policy = policy;
    });
    net.settle();
    let now = net.now;
    assert!(net.at("a").add(now, b"late") && !net.at("a").add(now, b"late"));
    let mut new = Vec::new();
    assert!(net.at("a").add_many(now, &["late", "later"], |is_new| new.push(is_new)));
    assert_eq!(new, [false, true]);
    net.run(Duration::from_secs(1));
    assert!(net.at("c").claiming(b"late").is_empty());
    net.run(Duration::from_secs(6));
    assert!(!net.at("c").claiming(b"late").is_empty());
    let now = net.now;
    assert!(net.at("a").remove(now, b"late"));
    net.run(Duration::from_secs(6));
    assert!(net.at("c").claiming(b"late").is_empty() && !net.at("c").claiming(b"later").is_empty());
    assert_eq!(net.found("c", "later"), Some(("a".to_owned(), 2)));
}

#[test]
fn outside_every_range_a_walk_finds_what_is_within_its_steps() {
    let links = line(20);
    for kind in EntryKind::ALL {
        let mut net = Net::with(plan(kind, 3, 3, 3), &borrowed(&links), |config| config.walk = 16);
        net.stock();
        net.settle();
        assert_eq!(net.found("h00", "of h19"), Some(("h19".to_owned(), 19)), "{kind}");
        let mut net = Net::with(plan(kind, 3, 3, 3), &borrowed(&links), |config| config.walk = 15);
        net.stock();
        net.settle();
        let located = net.locate("h00", "of h19");
        assert!(located.holders.is_empty() && located.is_complete, "{kind}: {located:?}");
        assert_eq!(net.found("h00", "of h18"), Some(("h18".to_owned(), 18)), "{kind}");
        assert_eq!(net.found("h00", "of h00"), Some(("h00".to_owned(), 0)));
    }
}

#[test]
fn every_holder_is_named_once_however_many_ways_lead_to_it() {
    let ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "a"), ("a", "d")];
    for kind in [EntryKind::Cubf, EntryKind::Abf] {
        let mut net = Net::new(plan(kind, 5, 3, 9), &ring);
        let now = net.now;
        for holder in ["c", "e"] {
            net.at(holder).add(now, b"both");
            net.at(holder).publish(now);
        }
        net.settle();
        let located = net.locate("a", "both");
        let holders: Vec<_> =
            located.holders.iter().map(|holder| holder.name().to_string()).collect();
        assert_eq!(holders, ["c", "e"], "{kind}");
        let found =
            net.events.iter().filter(|(_, event)| matches!(event, RouterEvent::Found { .. }));
        assert_eq!(found.count(), 2);
        assert!(net.queries_sent <= 14, "never twice through a host: {}", net.queries_sent);
    }
}

#[test]
fn an_overlay_that_measures_itself_plans_for_what_it_finds() {
    for kind in EntryKind::ALL {
        let mut net = Net::with(plan(kind, 3, 2, 2), &FIGURE_1, |config| config.is_measured = true);
        let now = net.now;
        for (host, router) in &mut net.routers {
            let keys: Vec<String> = (0..40).map(|i| format!("{host} {i}")).collect();
            router.add_many(now, &keys, |_| ());
            router.publish(now);
        }
        net.run(Duration::from_secs(120));
        let plans: Vec<Plan> = net.routers.values().map(|router| *router.plan()).collect();
        assert!(plans.windows(2).all(|pair| pair[0] == pair[1]), "{kind}: {plans:?}");
        let survey = net.at("B").survey();
        assert!(survey.hosts == 8 && (39.0..=40.0).contains(&survey.items), "{kind}: {survey:?}");
        assert!((40..=56).contains(&plans[0].items), "{kind}: {plans:?}");
        // Over the seven links of the tree come seven filters in either direction together.
        assert!((4..=6).contains(&plans[0].filters), "{kind}: {plans:?}");
        // Links with more filters than the average refuse some, by design.
        assert_eq!(net.found("E", "C 7"), Some(("C".to_owned(), 1)), "{kind}");
        let replans =
            net.events.iter().filter(|(_, e)| matches!(e, RouterEvent::Replanned { .. })).count();
        assert!(replans <= 8 * 6, "{kind}: it comes to rest: {replans}");
    }
}

#[test]
fn a_filter_longer_than_a_message_comes_in_parts() {
    let mut net = Net::new(plan(EntryKind::Cubf, 2, 120_000, 4), &[("a", "b"), ("b", "c")]);
    let now = net.now;
    let keys: Vec<String> = (0..120_000).map(|i| format!("key {i}")).collect();
    assert!(net.at("a").add_many(now, &keys, |is_new| assert!(is_new)));
    net.at("a").publish(now);
    net.settle();
    assert!(net.at("a").counters().advert_bytes_sent > 256 << 10);
    assert_eq!(net.found("c", "key 77777"), Some(("a".to_owned(), 2)));
}

#[test]
fn a_host_without_keys_passes_on_what_others_say_and_ask() {
    let links = line(4);
    for kind in EntryKind::ALL {
        let mut net = Net::new(plan(kind, 3, 3, 7), &borrowed(&links));
        net.stock();
        net.settle();
        assert!(net.at("h01").disown().is_some() && net.at("h01").disown().is_none());
        net.settle();
        // It is no home any more, and what it held is found nowhere; others are, through it.
        assert!(net.at("h00").homes().all(|(home, ..)| *home != name("h01")), "{kind}");
        assert!(net.at("h01").home().is_none() && !net.at("h01").holds(b"of h01"));
        assert_eq!(net.found("h00", "of h01"), None, "{kind}");
        assert_eq!(net.found("h00", "of h03"), Some(("h03".to_owned(), 3)), "{kind}");
        let now = net.now;
        assert!(!net.at("h01").add(now, b"new") && !net.at("h01").publish(now));
        // A home again, its updates go on counting: nobody takes them for old ones.
        let before = net.at("h01").epoch();
        net.at("h01").own(now, MemoryCatalogue::new()).unwrap();
        assert!(net.at("h01").add(now, b"of h01 anew") && net.at("h01").publish(now));
        assert!(net.at("h01").epoch() > before);
        net.settle();
        assert_eq!(net.found("h03", "of h01 anew"), Some(("h01".to_owned(), 2)), "{kind}");
    }
}

#[test]
fn homes_are_named_where_entries_keep_them_apart() {
    for kind in EntryKind::ALL {
        let mut net = Net::new(plan(kind, 3, 3, 7), &FIGURE_1);
        net.stock();
        net.settle();
        let named = net.at("A").who(b"of F").map(|homes| homes.into_iter().cloned().collect());
        assert_eq!(named, (kind == EntryKind::Cubf).then(|| vec![name("F")]), "{kind}");
        assert_eq!(net.at("A").version_of(&name("F")), Some((Incarnation(1), Epoch(2))));
        assert_eq!(net.at("A").version_of(&name("A")), None);
    }
}

#[test]
fn a_search_keeps_to_limits_of_its_own() {
    let links = line(6);
    let mut net = Net::new(plan(EntryKind::Cubf, 3, 3, 7), &borrowed(&links));
    net.stock();
    net.settle();
    let patience = Duration::from_secs(1);
    let mut holders = |key: &str, hops: u8, walk: u32| {
        let now = net.now;
        let id = net.at("h00").search(now, key.as_bytes(), Search { hops, walk, patience });
        net.run(patience);
        let located = net.events.iter().find_map(|(_, event)| match event {
            RouterEvent::Located(located) if located.query == id => Some(located.clone()),
            _ => None,
        });
        let located = located.expect("it is over by then");
        assert!(located.is_complete);
        located.holders.len()
    };
    assert_eq!(holders("of h03", 3, 0), 1);
    assert_eq!(holders("of h03", 2, 0), 0, "a hop short");
    assert_eq!(holders("of h05", 3, 0), 0, "beyond the range, without a walk");
    assert_eq!(holders("of h05", 3, 2), 1, "two steps, then the range");
    let counters = *net.at("h00").counters();
    assert_eq!((counters.asked, counters.not_found), (4, 2));
    assert_eq!(net.at("h03").counters().answered, 1);
}
