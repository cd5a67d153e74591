//! Which hosts there are: joining, leaving, silent, refused.

use super::*;
use crate::coverage::Gap;

#[test]
fn a_host_that_leaves_answers_no_more_and_is_heard_in_its_next_life() {
    let mut cluster = Cluster::pair();
    assert_eq!(cluster.who(1, 1), ["a"]);
    // An announcement of the same life that the farewell overtakes.
    let now = cluster.now + Duration::from_secs(10);
    cluster.engines[0].handle_timeout(now);
    let late = cluster.engines[0].poll_transmit().unwrap().bytes;
    cluster.engines[0].leave(now, Duration::ZERO);
    let farewell = cluster.engines[0].poll_transmit().unwrap().bytes;
    let b = &mut cluster.engines[1];
    b.handle_message(now, &name("b"), &farewell);
    b.handle_message(now, &name("c"), &farewell);
    assert_eq!(b.peers(now).count(), 1, "nobody leaves in another's name");
    b.handle_message(now, &name("a"), &farewell);
    b.handle_message(now, &name("a"), &late);
    let life = cluster.engines[0].config().incarnation;
    cluster.engines[1].handle_alive(now, &name("a"), life);
    assert!(cluster.engines[1].poll_timeout() <= now);
    cluster.engines[1].handle_timeout(now);
    assert!(cluster.who(1, 1).is_empty());
    assert_eq!(cluster.engines[1].peers(now).count(), 0);
    cluster.engines[1].validate();
    cluster.engines[1].handle_alive(now, &name("a"), Incarnation(life.0 + 1));
    assert_eq!(cluster.engines[1].peers(now).count(), 1);
    // A farewell of a life that is over does not end the next one.
    cluster.engines[1].handle_message(now, &name("a"), &farewell);
    assert_eq!(cluster.engines[1].peers(now).count(), 1);
}

/// A host that restarts is named all the while; what it had not published yet is published before.
#[test]
fn a_host_that_restarts_is_named_until_it_is_back() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:1,longest=10m", 100));
    cluster.add(0, 0..10);
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    cluster.add(0, 10..11);
    assert!(cluster.who(1, 10).is_empty(), "not published yet");
    let now = cluster.now;
    cluster.engines[0].leave(now, Duration::from_secs(30));
    cluster.deliver(|_, _, _| true);
    cluster.engines[1].handle_gone(now, &name("a"), Incarnation(1));
    let is_away = |engine: &Engine<MemoryCatalogue>, now| engine.peers(now).all(|(_, p)| p.is_away);
    for second in 1..30 {
        let now = now + Duration::from_secs(second);
        cluster.engines[1].handle_timeout(now);
        assert!((0..11).all(|key| cluster.who(1, key) == ["a"]), "after {second} s");
        assert!(is_away(&cluster.engines[1], now));
    }
    // Back in time, with the same keys: nothing is fetched, and nobody was missed.
    let keys = cluster.engines[0].home(&name("set")).unwrap().catalogue().clone();
    let mut config = MeshConfig::new(name("a"), Incarnation(2), hasher());
    config.intervals = AT_ONCE;
    cluster.engines[0] = Engine::new(config);
    cluster.now = now + Duration::from_secs(29);
    let plan = plan("miss:1,longest=10m", 100);
    cluster.engines[0].create(cluster.now, &name("set"), plan, keys).unwrap();
    cluster.engines[1].handle_alive(cluster.now, &name("a"), Incarnation(2));
    for _ in 0..60 {
        assert!((0..11).all(|key| cluster.who(1, key) == ["a"]));
        cluster.wait(1);
    }
    assert!(!is_away(&cluster.engines[1], cluster.now));
    assert_eq!(cluster.engines[0].counters().page_bytes_sent, 0);
    cluster.agree(0, 1);
}

/// Nobody is named for longer than the host that names it permits.
#[test]
fn a_host_that_does_not_come_back_is_forgotten_after_the_limit() {
    let mut cluster = Cluster::pair();
    let (now, limit) = (cluster.now, cluster.engines[1].config().max_absence);
    cluster.engines[0].leave(now, Duration::MAX);
    cluster.deliver(|_, _, _| true);
    cluster.engines[1].handle_gone(now, &name("a"), Incarnation(1));
    for second in 1..=limit.as_secs() {
        assert_eq!(cluster.who(1, 1), ["a"], "before {second} s");
        cluster.engines[1].handle_timeout(now + Duration::from_secs(second));
    }
    assert!(cluster.who(1, 1).is_empty());
    cluster.engines[1].validate();
}

/// Hosts may say so before they stop, and hang or be cut off then.
#[test]
fn a_host_that_will_be_back_is_missing_once_it_is_silent_and_named_all_the_same() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    let (now, silence) = (cluster.now, cluster.engines[1].config().silence);
    cluster.engines[0].leave(now, Duration::from_secs(60));
    cluster.deliver(|_, _, _| true);
    let gap = |cluster: &Cluster, now| cluster.engines[1].heard_of(now)[0].1.clone();
    assert_eq!(gap(&cluster, now), None, "it is still there");
    for second in 1..=silence.as_secs() {
        cluster.engines[1].handle_timeout(now + Duration::from_secs(second));
    }
    assert_eq!(gap(&cluster, now + silence), Some(Gap::Unreachable));
    assert_eq!(cluster.who(1, 1), ["a"]);
}

#[test]
fn a_host_that_disappears_answers_for_the_grace_time_only() {
    let mut cluster = Cluster::pair();
    let (now, grace) = (cluster.now, cluster.engines[1].config().grace);
    cluster.engines[1].handle_gone(now, &name("a"), Incarnation(1));
    cluster.engines[1].handle_timeout(now + grace / 2);
    assert_eq!(cluster.who(1, 1), ["a"], "suspected, not dead");
    cluster.engines[1].handle_timeout(now + grace);
    assert!(cluster.who(1, 1).is_empty());
    cluster.engines[1].validate();
    cluster.now = now + grace;
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"], "it was a false death");
    cluster.agree(0, 1);
}

#[test]
fn an_excluded_host_answers_no_more_at_once() {
    let mut cluster = Cluster::pair();
    assert_eq!(cluster.who(1, 1), ["a"]);
    let now = cluster.now;
    for host in ["nobody", "a", "a"] {
        cluster.engines[1].handle_excluded(now, &name(host));
    }
    assert!(cluster.who(1, 1).is_empty());
    cluster.engines[1].validate();
    let events = std::iter::from_fn(|| cluster.engines[1].poll_event());
    let down = events.filter(|event| matches!(event, Event::Down(_)));
    assert_eq!(down.collect::<Vec<_>>(), [Event::Down(name("a"))]);
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"], "let in again");
    cluster.agree(0, 1);
}

#[test]
fn a_silent_host_is_forgotten() {
    let mut cluster = Cluster::pair();
    let silence = cluster.engines[1].config().silence;
    let due = cluster.engines[1].poll_timeout();
    assert!(due <= cluster.now + silence);
    for second in 1..=silence.as_secs() {
        assert_eq!(cluster.who(1, 1), ["a"]);
        cluster.engines[1].handle_timeout(cluster.now + Duration::from_secs(second));
    }
    assert!(cluster.who(1, 1).is_empty());
    let events: Vec<_> = std::iter::from_fn(|| cluster.engines[1].poll_event()).collect();
    assert!(events.contains(&Event::Up(name("a"))));
    assert!(events.contains(&Event::Down(name("a"))));
}

/// A host that was stopped took its own silence for that of everybody else, and fetched all again.
#[test]
fn a_host_that_was_stopped_forgets_nobody() {
    let mut cluster = Cluster::pair();
    cluster.now += Duration::from_secs(60);
    cluster.engines[1].handle_timeout(cluster.now);
    assert_eq!(cluster.who(1, 1), ["a"]);
    cluster.wait(20);
    assert_eq!(cluster.who(1, 1), ["a"]);
    assert_eq!(cluster.engines[0].counters().page_bytes_sent, 0);
}

#[test]
fn another_seed_another_name_and_too_large_a_filter_are_refused() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let other = KeyHasher::secret(HashId::SipHash13, Seed::from_number(43));
    let mut config = MeshConfig::new(name("x"), Incarnation(1), other);
    config.intervals = AT_ONCE;
    let mut stranger: Engine<MemoryCatalogue> = Engine::new(config);
    stranger
        .create(cluster.now, &name("set"), plan("miss:0", 100), MemoryCatalogue::new())
        .unwrap();
    stranger.add(cluster.now, &name("set"), b"key");
    let bytes = stranger.poll_transmit().unwrap().bytes;
    cluster.engines[1].handle_message(cluster.now, &name("x"), &bytes);
    cluster.engines[1].handle_message(cluster.now, &name("y"), &bytes);
    cluster.engines[1].handle_message(cluster.now, &name("b"), &bytes);
    let reasons: Vec<String> = std::iter::from_fn(|| cluster.engines[1].poll_event())
        .filter_map(|event| match event {
            Event::Refused { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert!(reasons[0].contains("different seeds"), "{reasons:?}");
    assert!(reasons[1].contains("speaks for x"), "{reasons:?}");
    assert_eq!(cluster.engines[1].counters().refused, 3);
    assert!(cluster.engines[1].sets().is_empty());

    let mut config = MeshConfig::new(name("b"), Incarnation(1), hasher());
    config.max_bits = 1000;
    cluster.engines[1] = Engine::new(config);
    cluster.create(0, plan("miss:0", 10_000));
    cluster.add(0, 0..1);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.engines[1].counters().refused, 1);
    assert!(cluster.who(1, 0).is_empty());
}

#[test]
fn two_hosts_of_one_name_are_reported() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.engines[0].handle_alive(cluster.now, &name("a"), Incarnation(9));
    assert_eq!(cluster.engines[0].poll_event(), Some(Event::NameTaken));
    cluster.engines[0].handle_alive(cluster.now, &name("a"), Incarnation(1));
    assert_eq!(cluster.engines[0].poll_event(), None);
}

#[test]
fn incarnations_grow_whatever_was_lost() {
    let heard = Some(Incarnation(9));
    assert_eq!(Incarnation::next(Some(Incarnation(5)), 3, None), Incarnation(6));
    assert_eq!(Incarnation::next(Some(Incarnation(5)), 1000, heard), Incarnation(1000));
    assert_eq!(Incarnation::next(None, 3, heard), Incarnation(10));
}
