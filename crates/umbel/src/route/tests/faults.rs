//! What is lost, cut or dead leaves nothing behind.

use super::*;

fn ring() -> [(&'static str, &'static str); 6] {
    [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "a")]
}

#[test]
fn a_cut_link_is_routed_round_and_a_healed_one_used_again() {
    for kind in EntryKind::ALL {
        for silent in [false, true] {
            let mut net = Net::new(plan(kind, 5, 3, 9), &ring());
            net.stock();
            net.settle();
            assert_eq!(net.found("a", "of b"), Some(("b".to_owned(), 1)), "{kind}");
            net.disconnect("a", "b", silent);
            net.run(Duration::from_secs(30));
            assert_eq!(net.found("a", "of b"), Some(("b".to_owned(), 5)), "{kind}");
            net.link("a", "b");
            net.run(Duration::from_secs(10));
            assert_eq!(net.found("a", "of b").unwrap().1, 1, "{kind}");
        }
    }
}

#[test]
fn a_home_that_dies_is_forgotten_everywhere() {
    for kind in EntryKind::ALL {
        let mut net = Net::new(plan(kind, 5, 3, 9), &ring());
        net.stock();
        net.settle();
        net.disconnect("c", "d", false);
        net.disconnect("d", "e", false);
        net.settle();
        for host in ["a", "b", "c", "e", "f"] {
            let d = name("d");
            assert!(net.at(host).homes().all(|(home, ..)| *home != d), "{kind}: {host}");
            assert!(net.at(host).claiming(b"of d").is_empty(), "{kind}: {host}");
        }
        let located = net.locate("a", "of d");
        assert!(located.holders.is_empty() && located.is_complete);
    }
}

#[test]
fn a_home_that_restarts_is_known_by_its_new_life() {
    let mut net = Net::new(plan(EntryKind::Abf, 3, 3, 5), &ring());
    net.stock();
    net.settle();
    let now = net.now;
    let set = name("set");
    let life = Incarnation(2);
    let config = RouterConfig::new(name("c"), life, set, KeyHasher::default(), *net.at("c").plan());
    let mut again = Router::new(now, config, MemoryCatalogue::new()).unwrap();
    again.add(now, b"fresh");
    again.publish(now);
    again.handle_link_up(now, &name("b"));
    again.handle_link_up(now, &name("d"));
    net.routers.insert(name("c"), again);
    net.run(Duration::from_secs(20));
    assert_eq!(net.found("a", "fresh"), Some(("c".to_owned(), 2)));
    assert!(net.at("a").claiming(b"of c").is_empty());
    assert_eq!(net.found("c", "of a"), Some(("a".to_owned(), 2)));
}

#[test]
fn after_any_loss_tables_are_what_they_would_have_been_and_queries_end() {
    for (kind, seed) in EntryKind::ALL.into_iter().zip([1, 2, 3]) {
        let mut net = Net::new(plan(kind, 4, 40, 9), &ring());
        (net.lost, net.random) = (300, seed);
        net.stock();
        for step in 0..30_u32 {
            let now = net.now;
            net.at("d").add(now, format!("key {step}").as_bytes());
            net.at("a").locate(now, format!("key {step}").as_bytes(), None);
            net.at("b").locate(now, b"nowhere", None);
            net.run(Duration::from_millis(700));
        }
        net.run(Duration::from_secs(30));
        let ended = net.events.iter().filter(|(_, e)| matches!(e, RouterEvent::Located(_))).count();
        assert_eq!(ended, 60, "{kind}: every query ends");
        net.lost = 0;
        net.run(Duration::from_secs(30));
        assert!(
            net.routers.values().all(|router| router.queries() == 0),
            "{kind}: nothing is left"
        );
        let mut calm = Net::new(plan(kind, 4, 40, 9), &ring());
        calm.run(Duration::from_secs(30));
        for (host, router) in &net.routers {
            let homes = |router: &Router<MemoryCatalogue>| {
                let each = |(home, by, hops): (&Name, &Name, u8)| (home.clone(), by.clone(), hops);
                router.homes().map(each).collect::<Vec<_>>()
            };
            assert_eq!(homes(router), homes(&calm.routers[host]), "{kind}: {host}");
        }
        assert_eq!(net.found("a", "key 29").unwrap().0, "d", "{kind}");
    }
}

#[test]
fn a_dead_link_under_way_does_not_hold_a_query_for_ever() {
    let links = line(6);
    let mut net = Net::new(plan(EntryKind::Cubf, 5, 3, 7), &borrowed(&links));
    net.stock();
    net.settle();
    net.disconnect("h02", "h03", true);
    let located = net.locate("h00", "of h05");
    assert!(located.holders.is_empty() && !located.is_complete, "{located:?}");
    net.run(Duration::from_secs(30));
    assert!(net.routers.values().all(|router| router.queries() == 0));
}

#[test]
fn what_an_entry_refused_is_admitted_once_there_is_room() {
    let star = [("a", "hub"), ("hub", "b"), ("hub", "c"), ("hub", "d")];
    let mut net = Net::new(plan(EntryKind::Cubf, 2, 3, 3), &star);
    net.stock();
    net.settle();
    // The hub and two more: the first three that came.
    assert_eq!(net.at("a").entry(&name("hub")).unwrap().0, 3);
    assert_eq!(net.at("a").counters().refused_filters, 1);
    let admitted: Vec<String> = net.at("a").homes().map(|(home, ..)| home.to_string()).collect();
    let refused =
        ["b", "c", "d"].into_iter().find(|h| !admitted.contains(&(*h).to_owned())).unwrap();
    let gone = ["b", "c", "d"].into_iter().find(|host| *host != refused).unwrap();
    net.disconnect("hub", gone, false);
    net.run(Duration::from_secs(15));
    assert_eq!(net.at("a").entry(&name("hub")).unwrap().0, 3);
    assert_eq!(net.found("a", &format!("of {refused}")).unwrap().0, refused);
}

#[test]
fn a_host_that_is_no_neighbour_is_not_heard() {
    let mut net = Net::new(plan(EntryKind::Cubf, 2, 3, 3), &[("a", "b"), ("c", "d")]);
    let now = net.now;
    net.at("a").handle_link_up(now, &name("x"));
    let hello = net.at("a").poll_transmit().unwrap().bytes;
    net.at("c").handle_message(now, &name("a"), &hello);
    assert_eq!(net.at("c").counters().refused, 1);
    assert!(net.at("c").neighbours().all(|neighbour| *neighbour == name("d")));
}

/// Links a router of another one's name to a host of a net.
fn add_twin(net: &mut Net, own: &str, neighbour: &str) {
    let (now, twin) = (net.now, name("twin"));
    let plan = *net.at(neighbour).plan();
    let config =
        RouterConfig::new(name(own), Incarnation(2), name("set"), KeyHasher::default(), plan);
    let mut router = Router::new(now, config, MemoryCatalogue::new()).unwrap();
    router.add(now, b"of twin");
    router.publish(now);
    router.handle_link_up(now, &name(neighbour));
    net.at(neighbour).handle_link_up(now, &name(own));
    net.routers.insert(twin.clone(), router);
    net.links.extend([(twin.clone(), name(neighbour)), (name(neighbour), twin.clone())]);
    net.twin = Some([twin, name(own), name(neighbour)]);
}

/// Before, the host in the middle took the later one for the only one, and nobody said so.
#[test]
fn two_hosts_of_one_name_at_equal_distance_are_reported_by_who_hears_both() {
    for kind in EntryKind::ALL {
        let mut net = Net::new(plan(kind, 4, 3, 9), &[("a", "b"), ("b", "c"), ("c", "d")]);
        net.stock();
        add_twin(&mut net, "a", "d");
        net.settle();
        assert_eq!(net.at("c").namesakes().count(), 0, "{kind}: it may have restarted");
        net.run(Duration::from_secs(30));
        let a = name("a");
        assert_eq!(net.at("c").namesakes().collect::<Vec<_>>(), [&a], "{kind}");
        for host in ["b", "c"] {
            let is_report = |(from, event): &(Name, RouterEvent)| {
                *from == name(host)
                    && matches!(event, RouterEvent::Namesake { host, .. } if *host == a)
            };
            assert!(net.events.iter().any(is_report), "{kind}: {host} says nothing");
        }
        // One of them goes: nobody is contested any more.
        net.disconnect("a", "b", false);
        net.run(Duration::from_secs(30));
        assert_eq!(net.at("c").namesakes().count(), 0, "{kind}");
        assert_eq!(net.found("b", "of twin").map(|(_, hops)| hops), Some(3), "{kind}");
    }
}

#[test]
fn a_host_that_restarts_is_nobodys_namesake() {
    let mut net = Net::new(plan(EntryKind::Cubf, 5, 3, 9), &ring());
    net.stock();
    net.settle();
    let config = RouterConfig::new(
        name("c"),
        Incarnation(2),
        name("set"),
        KeyHasher::default(),
        *net.at("c").plan(),
    );
    let mut again = Router::new(net.now, config, MemoryCatalogue::new()).unwrap();
    ["b", "d"].iter().for_each(|neighbour| again.handle_link_up(net.now, &name(neighbour)));
    net.routers.insert(name("c"), again);
    net.run(Duration::from_secs(60));
    let is_report = |event: &(Name, RouterEvent)| matches!(event.1, RouterEvent::Namesake { .. });
    assert!(!net.events.iter().any(is_report));
}

#[test]
fn hidden_keys_are_not_held_until_they_are_removed_and_added_again() {
    let mut net = Net::new(plan(EntryKind::Cubf, 3, 3, 9), &[("a", "b")]);
    net.stock();
    net.settle();
    net.at("a").hide(|key| key == b"of a");
    for at in ["a", "b"] {
        assert_eq!(net.found(at, "of a"), None, "{at}");
    }
    net.at("a").hide(|_| false);
    assert_eq!(net.found("b", "of a"), Some(("a".to_owned(), 1)));
}
