//! Two hosts and what passes between them, without a network.

use std::sync::Arc;

use parking_lot::RwLock;
use umbel::catalogue::MemoryCatalogue;

use super::*;
use crate::settings::{Draft, Layer};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn overlay(own: &str, links: &[&str], more: &[(&str, &str)]) -> Overlay {
    let mut layer = Layer::flags();
    for (key, value) in [("name", own), ("memory", "true")].iter().chain(more) {
        layer.set(key, [*value]).unwrap();
    }
    layer.set("links", links.iter().copied()).unwrap();
    let settings = Draft::new().with(layer).unwrap().settings().unwrap();
    Overlay::new(&settings, settings.overlay.as_ref().unwrap(), Incarnation(1))
}

fn keys() -> HostCatalogue {
    HostCatalogue::Memory(Arc::new(RwLock::new(MemoryCatalogue::new())))
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// Carries messages until there are none.
fn exchange(now: Duration, hosts: &mut [(&str, &mut Overlay)]) {
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
            let there = hosts.iter_mut().find(|(host, _)| *host == to.as_str());
            if let Some((_, host)) = there {
                host.handle_message(now, &from, &bytes);
            }
        }
    }
}

fn create(host: &mut Overlay, set: &str, key: &str) {
    let now = seconds(1);
    host.create(now, &name(set), SetPlan::default(), keys()).unwrap();
    host.change(&name(set), |router| router.add(now, key.as_bytes()));
    host.change(&name(set), |router| router.publish(now));
}

#[test]
fn a_set_is_known_while_a_home_is_in_range_and_forgotten_after() {
    let (mut a, mut b) = (overlay("a", &["b"], &[]), overlay("b", &["a"], &[]));
    create(&mut a, "images", "cat");
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    assert_eq!(b.sets().collect::<Vec<_>>(), [&name("images")]);
    assert!(b.take_changed() && !b.take_changed());
    assert_eq!(b.who(&name("images"), b"cat").unwrap(), [&name("a")]);
    assert_eq!(b.known_hosts(), (2, 2), "a message is a sign of life");

    assert!(a.delete(&name("images")) && !a.delete(&name("images")));
    exchange(seconds(2), &mut [("a", &mut a), ("b", &mut b)]);
    assert!(b.who(&name("images"), b"cat").unwrap().is_empty());
    assert_eq!((a.sets().count(), b.sets().count()), (0, 0), "nobody has it any more");
    assert!(b.take_changed());
    for second in 3..60 {
        a.handle_timeout(seconds(second));
        b.handle_timeout(seconds(second));
        exchange(seconds(second), &mut [("a", &mut a), ("b", &mut b)]);
    }
    assert_eq!((a.sets.len(), b.sets.len()), (0, 0));
    assert_eq!(a.counters().adverts_sent, 1, "what was counted is not forgotten");
    // Made again in the same life, it goes on from where it was.
    create(&mut a, "images", "dog");
    assert!(a.epoch(&name("images")) > 2);
}

#[test]
fn strangers_and_junk_change_nothing() {
    let mut b = overlay("b", &["a"], &[]);
    let mut stranger = overlay("x", &["b"], &[]);
    create(&mut stranger, "images", "cat");
    stranger.handle_alive(seconds(1), &name("b"), Incarnation(1));
    while let Some(Transmit { bytes, .. }) = stranger.poll_transmit() {
        b.handle_message(seconds(1), &name("x"), &bytes);
    }
    let (_, refused) = b.poll_event().unwrap();
    assert!(matches!(refused, Event::Refused { reason, .. } if reason.contains("no neighbour")));
    let before = b.counters().refused;
    b.handle_message(seconds(1), &name("a"), b"");
    b.handle_message(seconds(1), &name("a"), &[1, 1, 3, b's', b'e', b't', 0, 0]);
    assert_eq!(b.counters().refused, before + 2);
    // Damaged: of a set that is not known, so that nobody needs it.
    b.handle_message(seconds(1), &name("a"), &[1, 16, 3, b's', b'e', b't', 0, 0]);
    assert_eq!(b.sets.len(), 0);
}

#[test]
fn no_more_sets_are_passed_on_than_the_limit_says() {
    let limit = [("limits.sets", "2")];
    let (mut a, mut b) = (overlay("a", &["b"], &[]), overlay("b", &["a"], &limit));
    for set in ["one", "two", "three"] {
        create(&mut a, set, "key");
    }
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    assert_eq!(b.sets().count(), 2);
    assert!(b.counters().refused > 0);
    let asked = b.locate(seconds(1), &name("four"), b"key", |search| search);
    assert!(matches!(asked, Err(HostError::TooManySets(2))));
    let mut c = overlay("c", &["a"], &limit);
    let _asked = c.locate(seconds(1), &name("one"), b"key", |search| search).unwrap();
    assert_eq!((c.sets.len(), c.sets().count()), (1, 0), "asked for, and known of nobody");
}

#[test]
fn whoever_asks_is_answered_though_the_link_goes_down() {
    let (mut a, mut b) = (overlay("a", &["b"], &[]), overlay("b", &["a"], &[]));
    create(&mut a, "images", "cat");
    a.handle_alive(seconds(1), &name("b"), Incarnation(1));
    exchange(seconds(1), &mut [("a", &mut a), ("b", &mut b)]);
    let ask = |b: &mut Overlay, key: &[u8]| {
        b.locate(seconds(2), &name("images"), key, |search| search).unwrap()
    };
    let mut found = ask(&mut b, b"cat");
    exchange(seconds(2), &mut [("a", &mut a), ("b", &mut b)]);
    assert_eq!(found.try_recv().unwrap().holders[0].name(), &name("a"));
    let mut unanswered = ask(&mut b, b"cat");
    b.handle_gone(seconds(2), &name("a"), Incarnation(1));
    let located = unanswered.try_recv().unwrap();
    assert!(located.holders.is_empty() && !located.is_complete, "{located:?}");
    assert!(b.waiting.is_empty());
}
