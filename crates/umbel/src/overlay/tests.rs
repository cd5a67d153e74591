//! Two hosts and what passes between them, without a network.

use super::*;
use crate::catalogue::MemoryCatalogue;
use crate::route::{EntryKind, Located, Plan};
use crate::{HashId, KeyHasher, Seed};

type Host = Overlay<MemoryCatalogue>;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn overlay(own: &str, links: &[&str], max_sets: usize) -> Host {
    let hasher = KeyHasher::secret(HashId::SipHash13, Seed::from_number(42));
    let plan =
        Plan { kind: EntryKind::Cubf, depth: 3, items: 100, filters: 10, false_positive: 0.01 };
    let router = route::RouterConfig::new(name(own), Incarnation(1), name("any"), hasher, plan);
    Overlay::new(OverlayConfig {
        router,
        neighbours: links.iter().map(|link| name(link)).collect(),
        max_sets,
    })
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// Carries messages until there are none.
fn exchange(now: Duration, hosts: &mut [(&str, &mut Host)]) {
    loop {
        let mut sent = Vec::new();
        for (from, host) in hosts.iter_mut() {
            let transmits = std::iter::from_fn(|| host.poll_transmit());
            sent.extend(transmits.map(|Transmit { to, bytes }| (name(from), to, bytes)));
        }
        if sent.is_empty() {
            return;
        }
        for (from, to, bytes) in sent {
            let Destination::Neighbour(to) = to else { panic!("{to:?}") };
            let there = hosts.iter_mut().find(|(host, _)| *host == to.as_str());
            if let Some((_, host)) = there {
                host.handle_message(now, &from, &bytes);
            }
        }
    }
}

fn changes_sets(host: &mut Host) -> bool {
    std::iter::from_fn(|| host.poll_event()).filter(Event::changes_sets).count() > 0
}

/// What became of the queries that are done.
fn located(host: &mut Host) -> Vec<Located> {
    let events = std::iter::from_fn(|| host.poll_event());
    let located = events.filter_map(|event| match event {
        Event::Located { located, .. } => Some(located),
        _ => None,
    });
    located.collect()
}

fn create(host: &mut Host, set: &str, key: &str) {
    let now = seconds(1);
    host.create(now, &name(set), SetPlan::default(), MemoryCatalogue::new()).unwrap();
    host.add(now, &name(set), key.as_bytes());
    host.publish(now, &name(set));
}

#[test]
fn a_set_is_known_while_a_home_is_in_range_and_forgotten_after() {
    let (mut a, mut b) = (overlay("a", &["b"], 100), overlay("b", &["a"], 100));
    create(&mut a, "images", "cat");
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    assert_eq!(b.sets(), [&name("images")]);
    assert!(changes_sets(&mut b) && !changes_sets(&mut b));
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
    assert_eq!(b.heard_of(seconds(1)), [(name("a"), None)], "a message is a sign of life");

    assert!(a.delete(&name("images")) && !a.delete(&name("images")));
    exchange(seconds(2), &mut [("a", &mut a), ("b", &mut b)]);
    assert!(b.who(&name("images"), b"cat").unwrap().is_empty());
    assert_eq!((a.sets().len(), b.sets().len()), (0, 0), "nobody has it any more");
    assert!(changes_sets(&mut b));
    for second in 3..60 {
        a.handle_timeout(seconds(second));
        b.handle_timeout(seconds(second));
        exchange(seconds(second), &mut [("a", &mut a), ("b", &mut b)]);
        // What is not polled yet is not forgotten.
        for host in [&mut a, &mut b] {
            while host.poll_event().is_some() {}
        }
    }
    assert_eq!((a.sets.len(), b.sets.len()), (0, 0));
    assert_eq!(a.route_counters().adverts_sent, 1, "what was counted is not forgotten");
    // A set that is created again in the same life continues with its old epoch.
    create(&mut a, "images", "dog");
    assert!(a.epoch(&name("images")) > Epoch(2));
}

#[test]
fn strangers_and_junk_change_nothing() {
    let mut b = overlay("b", &["a"], 100);
    let mut stranger = overlay("x", &["b"], 100);
    create(&mut stranger, "images", "cat");
    stranger.handle_alive(seconds(1), &name("b"), Incarnation(1));
    while let Some(Transmit { bytes, .. }) = stranger.poll_transmit() {
        b.handle_message(seconds(1), &name("x"), &bytes);
    }
    let refused = b.poll_event().unwrap();
    assert!(matches!(refused, Event::Refused { reason, .. } if reason.contains("no neighbour")));
    let before = b.counters().refused;
    b.handle_message(seconds(1), &name("a"), b"");
    b.handle_message(seconds(1), &name("a"), &[1, 1, 3, b's', b'e', b't', 0, 0]);
    assert_eq!(b.counters().refused, before + 2);
    // Damaged: it makes no router.
    b.handle_message(seconds(1), &name("a"), &[1, 16, 3, b's', b'e', b't', 0, 0]);
    assert_eq!(b.sets.len(), 0);
}

#[test]
fn no_more_sets_are_passed_on_than_the_limit_says() {
    let (mut a, mut b) = (overlay("a", &["b"], 100), overlay("b", &["a"], 2));
    for set in ["one", "two", "three"] {
        create(&mut a, set, "key");
    }
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    assert_eq!(b.sets().len(), 2);
    assert!(b.counters().refused > 0);
    let asked = b.search(seconds(1), &name("four"), b"key", |search| search);
    assert_eq!(asked, Err(SearchError::TooManySets(2)));
    let mut c = overlay("c", &["a"], 2);
    c.search(seconds(1), &name("one"), b"key", |search| search).unwrap();
    assert_eq!((c.sets.len(), c.sets().len()), (1, 0), "asked for, and known of nobody");
}

#[test]
fn whoever_asks_is_answered_though_the_link_goes_down() {
    let (mut a, mut b) = (overlay("a", &["b"], 100), overlay("b", &["a"], 100));
    create(&mut a, "images", "cat");
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    let ask = |b: &mut Host, key: &[u8]| {
        b.search(seconds(2), &name("images"), key, |search| search).unwrap()
    };
    let id = ask(&mut b, b"cat");
    exchange(seconds(2), &mut [("a", &mut a), ("b", &mut b)]);
    let found = located(&mut b);
    assert_eq!((found.len(), &found[0].query), (1, &id));
    assert_eq!(found[0].holders[0].name(), &name("a"));
    ask(&mut b, b"cat");
    b.handle_gone(seconds(2), &name("a"), Incarnation(1));
    let unanswered = located(&mut b);
    assert_eq!(unanswered.len(), 1);
    assert!(unanswered[0].holders.is_empty() && !unanswered[0].is_complete, "{unanswered:?}");
    assert_eq!(located(&mut b), []);
}

/// An advert of an empty filter of a home, in a life that no real one reaches: what a neighbour
/// can make up for any home.
fn forged(home: &str) -> Vec<u8> {
    use route::message::Message;
    let mut liar = overlay(home, &["other"], 100);
    liar.create(seconds(1), &name("images"), SetPlan::default(), MemoryCatalogue::new()).unwrap();
    liar.handle_alive(seconds(1), &name("other"), Incarnation(1));
    liar.publish(seconds(1), &name("images"));
    let sent = std::iter::from_fn(|| liar.poll_transmit());
    let advert =
        sent.filter_map(|sent| Message::decode(&sent.bytes).ok()).find_map(|sent| match sent {
            (_, Message::Advert(advert)) => Some(advert),
            _ => None,
        });
    let mut advert = advert.expect("it was published");
    advert.version.incarnation = Incarnation(u64::MAX);
    Message::Advert(advert).encode(&name("images"))
}

/// `f - c - b`, `a - b` and `m - b`, where `a` holds the cat and `f` the fox.
fn with_hostile_neighbour() -> Host {
    let [_, b, ..] = around_hostile_neighbour();
    b
}

/// The hosts of [`with_hostile_neighbour`]: `a`, `b`, `c` and `f`.
fn around_hostile_neighbour() -> [Host; 4] {
    let mut b = overlay("b", &["a", "c", "m"], 100);
    let (mut a, mut c) = (overlay("a", &["b"], 100), overlay("c", &["b", "f"], 100));
    let mut f = overlay("f", &["c"], 100);
    create(&mut a, "images", "cat");
    create(&mut f, "images", "fox");
    for (host, neighbour) in [(&mut a, "b"), (&mut c, "b"), (&mut f, "c")] {
        host.handle_alive(seconds(1), &name(neighbour), Incarnation(1));
    }
    b.handle_alive(seconds(1), &name("m"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b), ("c", &mut c), ("f", &mut f)]);
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
    assert_eq!(b.who(&name("images"), b"fox").unwrap(), [&name("f")]);
    [a, b, c, f]
}

#[test]
fn a_hostile_neighbour_cannot_speak_for_another_neighbour() {
    let mut b = with_hostile_neighbour();
    b.handle_message(seconds(2), &name("m"), &forged("a"));
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
}

#[test]
fn the_word_of_a_neighbour_replaces_what_another_one_made_up_before() {
    let (mut a, mut b) = (overlay("a", &["b"], 100), overlay("b", &["a", "m"], 100));
    b.handle_alive(seconds(1), &name("m"), Incarnation(1));
    b.handle_message(seconds(1), &name("m"), &forged("a"));
    create(&mut a, "images", "cat");
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
}

/// docs/security.md says so: there is no proof of what a neighbour says of homes behind it.
#[test]
fn a_hostile_neighbour_can_hide_homes_that_are_further_away() {
    let mut b = with_hostile_neighbour();
    b.handle_message(seconds(2), &name("m"), &forged("f"));
    assert!(b.who(&name("images"), b"fox").unwrap().is_empty());
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
}

/// docs/security.md says so, too: what was made up lasts as long as a host that believed it runs, and no longer.
/// Neighbours of the hidden home never believe it.
#[test]
fn what_a_hostile_neighbour_hid_is_found_again_after_a_restart_without_it() {
    let images = name("images");
    let [mut a, mut b, mut c, mut f] = around_hostile_neighbour();
    b.handle_message(seconds(2), &name("m"), &forged("f"));
    exchange(seconds(2), &mut [("a", &mut a), ("b", &mut b), ("c", &mut c), ("f", &mut f)]);
    assert_eq!(c.who(&images, b"fox").unwrap(), [&name("f")], "a neighbour of the hidden home");
    b.handle_gone(seconds(3), &name("m"), Incarnation(1));
    exchange(seconds(3), &mut [("a", &mut a), ("b", &mut b), ("c", &mut c), ("f", &mut f)]);
    assert!(b.who(&images, b"fox").unwrap().is_empty(), "the liar is gone, its lie is not");

    let mut b = overlay("b", &["a", "c"], 100);
    for neighbour in [&mut a, &mut c] {
        neighbour.handle_gone(seconds(4), &name("b"), Incarnation(1));
        neighbour.handle_alive(seconds(4), &name("b"), Incarnation(1));
    }
    exchange(seconds(4), &mut [("a", &mut a), ("b", &mut b), ("c", &mut c), ("f", &mut f)]);
    assert_eq!(b.who(&images, b"fox").unwrap(), [&name("f")]);
}

#[test]
fn a_hostile_neighbour_that_makes_up_homes_uses_up_its_own_link_alone() {
    let mut b = with_hostile_neighbour();
    for number in 0..3000 {
        b.handle_message(seconds(2), &name("m"), &forged(&format!("made-up-{number}")));
    }
    // As many as the plan has room for on a link; the rest are refused and counted.
    let counters = b.route_counters();
    assert!(counters.refused_filters >= 900 && counters.dropped >= 1900, "{counters:?}");
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
    assert_eq!(b.who(&name("images"), b"fox").unwrap(), [&name("f")]);
}
