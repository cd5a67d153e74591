//! Which hosts count as known, and what is missing of the others.

use super::lists::{ANNOUNCE, LIST, LIST_REQUEST};
use super::*;
use crate::coverage::Gap;
use crate::filter::ComponentId;

/// The kind of messages that carry a part of an image.
const PAGE: u8 = 4;

impl Cluster {
    /// What is missing of host `a` at an engine; `None` if it is not expected at all.
    pub(super) fn gap_of_a(&self, index: usize) -> Option<Option<Gap>> {
        let heard_of = self.engines[index].heard_of(self.now);
        heard_of.into_iter().find(|(host, _)| *host == name("a")).map(|(_, gap)| gap)
    }

    /// Replaces engine `a` by another life of it, with the keys of the last one. Whether it leaves long
    /// work to other threads, which get no processor time here.
    fn restart_a(&mut self, keys: std::ops::Range<u64>, work: Work) {
        let life = self.engines[0].config().incarnation;
        let mut config = MeshConfig::new(name("a"), Incarnation(life.0 + 1), hasher());
        (config.work, config.max_keys_at_once, config.max_bits_at_once) = (work, 1, 0);
        // As in real hosts: updates wait for a moment, so that a load is sent as one.
        config.intervals = Intervals { longest: Duration::from_secs(600), ..Intervals::default() };
        self.engines[0] = Engine::new(config);
        let mut catalogue = MemoryCatalogue::new();
        keys.for_each(|number| assert!(catalogue.insert_new(&key(number), ComponentId(0))));
        self.engines[0]
            .restore(self.now, &name("set"), plan("miss:0", 100), catalogue, None)
            .unwrap();
    }
}

#[test]
fn a_host_is_known_once_its_list_and_every_set_of_it_have_arrived() {
    let mut cluster = Cluster::of(&["a", "b"]);
    assert_eq!(cluster.gap_of_a(1), None, "nobody has heard of it");
    for set in ["one", "two", "three"] {
        cluster.create_named(0, set);
    }
    cluster.deliver(|_, _, _| false);
    cluster.engines[1].handle_alive(cluster.now, &name("a"), Incarnation(1));
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::NoList)));
    // The list arrives, and of the images nothing.
    cluster.now += Duration::from_secs(4);
    cluster.engines[0].handle_timeout(cluster.now);
    cluster.deliver(|_, _, bytes| bytes[1] != PAGE);
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::Fetching { fetched: 0, sets: 3 })));
    cluster.wait(20);
    assert_eq!(cluster.gap_of_a(1), Some(None));
}

#[test]
fn a_host_that_restarts_is_known_by_this_life_and_its_keys_are_never_denied() {
    for work in [Work::AtOnce, Work::Deferred] {
        restarts_and_is_never_denied(work);
    }
}

fn restarts_and_is_never_denied(work: Work) {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    cluster.restart_a(0..10, work);
    cluster.engines[1].handle_gone(cluster.now, &name("a"), Incarnation(1));
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::Unreachable)));
    cluster.engines[1].handle_alive(cluster.now, &name("a"), Incarnation(2));
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::NoList)));
    // The first message that it sends, and every one after it.
    for _ in 0..400 {
        cluster.now += Duration::from_millis(10);
        cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
        cluster.deliver(|_, _, _| true);
        assert_eq!(cluster.who(1, 1), ["a"], "at {:?}", cluster.now);
    }
    assert_eq!(cluster.gap_of_a(1), Some(None));
}

#[test]
fn a_replica_that_does_not_follow_is_named_after_a_while() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    cluster.add(0, 10..15);
    // Announcements and lists arrive; updates, changes and pages do not.
    let passes =
        |_: &Name, _: &Name, bytes: &[u8]| [ANNOUNCE, LIST_REQUEST, LIST].contains(&bytes[1]);
    cluster.deliver(passes);
    assert_eq!(cluster.gap_of_a(1), Some(None), "nobody can know it yet");
    cluster.now += Duration::from_secs(3);
    cluster.engines[0].handle_timeout(cluster.now);
    cluster.deliver(passes);
    assert_eq!(cluster.gap_of_a(1), Some(None), "an update may be late for a moment");
    cluster.now += Duration::from_secs(4);
    let expected = Gap::Behind { epochs: 5, since: Duration::from_secs(4) };
    assert_eq!(cluster.gap_of_a(1), Some(Some(expected)));
    cluster.wait(10);
    assert_eq!(cluster.gap_of_a(1), Some(None));
}

#[test]
fn a_list_that_does_not_arrive_is_named_after_a_while() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    cluster.add(0, 10..15);
    cluster.now += Duration::from_secs(3);
    cluster.engines[0].handle_timeout(cluster.now);
    cluster.deliver(|_, _, bytes| bytes[1] == ANNOUNCE);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    cluster.now += Duration::from_secs(2);
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::NoList)));
}

#[test]
fn a_host_that_dies_is_expected_until_it_is_forgotten_and_one_that_leaves_is_not() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    let (grace, forget) = (cluster.engines[1].config().grace, cluster.engines[1].config().forget);
    cluster.engines[1].handle_gone(cluster.now, &name("a"), Incarnation(1));
    cluster.now += grace;
    cluster.engines[1].handle_timeout(cluster.now);
    assert!(cluster.who(1, 1).is_empty());
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::Unreachable)));
    let before = cluster.now;
    cluster.wait(4);
    assert_eq!(cluster.gap_of_a(1), Some(None), "it is back");

    cluster.engines[1].handle_gone(cluster.now, &name("a"), Incarnation(1));
    cluster.engines[1].handle_timeout(cluster.now + grace);
    cluster.now = before + forget + grace * 3;
    cluster.engines[1].handle_timeout(cluster.now);
    assert_eq!(cluster.gap_of_a(1), None, "it was given up");

    let mut cluster = Cluster::pair();
    cluster.engines[0].leave(cluster.now, Duration::ZERO);
    cluster.deliver(|_, _, _| true);
    cluster.engines[1].handle_timeout(cluster.now);
    assert_eq!(cluster.gap_of_a(1), None);
    // What the settings no longer name is not waited for.
    let mut cluster = Cluster::pair();
    cluster.engines[1].handle_gone(cluster.now, &name("a"), Incarnation(1));
    cluster.engines[1].handle_timeout(cluster.now + grace);
    cluster.engines[1].handle_unexpected(&name("a"));
    assert_eq!(cluster.gap_of_a(1), None);
}

/// Its replicas went as soon as its farewell came, and answers were called complete until the driver
/// had looked at the hosts again.
#[test]
fn a_host_that_leaves_is_missing_before_its_replicas_go() {
    let mut cluster = Cluster::pair();
    cluster.engines[0].leave(cluster.now, Duration::ZERO);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::Unreachable)));
    assert_eq!(cluster.who(1, 1), ["a"]);
    assert!(cluster.engines[1].poll_timeout() <= cluster.now, "they go at once");
    cluster.engines[1].handle_timeout(cluster.now);
    assert!(cluster.who(1, 1).is_empty());
    assert_eq!(cluster.gap_of_a(1), None);

    // A new life that comes before that goes on with them.
    let mut cluster = Cluster::pair();
    cluster.engines[0].leave(cluster.now, Duration::ZERO);
    cluster.deliver(|_, _, _| true);
    cluster.engines[1].handle_alive(cluster.now, &name("a"), Incarnation(9));
    cluster.engines[1].handle_timeout(cluster.now);
    assert_eq!(cluster.who(1, 1), ["a"]);
    cluster.engines[1].validate();
}

#[test]
fn lost_hosts_are_bounded() {
    let mut config = MeshConfig::new(name("b"), Incarnation(1), hasher());
    config.max_peers = 3;
    let mut engine: Engine<MemoryCatalogue> = Engine::new(config);
    for round in 0..9 {
        let (host, now) = (name(&format!("h{round}")), Duration::from_secs(100 * round));
        engine.handle_alive(now, &host, Incarnation(1));
        engine.handle_gone(now, &host, Incarnation(1));
        // Step by step: a host that was stopped itself blames nobody.
        (1..5).for_each(|step| engine.handle_timeout(now + Duration::from_secs(step)));
    }
    let hosts: Vec<Name> =
        engine.heard_of(Duration::from_secs(1000)).into_iter().map(|(host, _)| host).collect();
    assert_eq!(hosts, ["h6", "h7", "h8"].map(name), "the latest");
}

#[test]
fn sets_that_are_not_accepted_make_their_host_missing() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let mut config = MeshConfig::new(name("b"), Incarnation(1), hasher());
    config.max_bits = 1000;
    cluster.engines[1] = Engine::new(config);
    cluster.create(0, plan("miss:0.01", 100_000));
    cluster.add(0, 0..2000);
    cluster.wait(4);
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::Refused("its filter is too long".into()))));
}

#[test]
fn what_a_host_has_counts_again_after_a_stop_when_it_has_been_asked_for() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    cluster.engines[1].handle_stopped(cluster.now);
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::NoList)));
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.gap_of_a(1), Some(None), "the list arrived, and nothing was missing");
    // If the request is lost, the next announcement leads to another one.
    cluster.engines[1].handle_stopped(cluster.now);
    cluster.deliver(|_, _, _| false);
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::NoList)));
    cluster.wait(4);
    assert_eq!(cluster.gap_of_a(1), Some(None));
}

/// A host that was stopped for eleven seconds called its answers complete after the first
/// announcement that had waited for it, and denied what was added since that was sent.
#[test]
fn an_announcement_that_was_sent_during_a_stop_does_not_make_its_host_known() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    // What the first host sends while the second one is stopped waits for it.
    let mut waiting = Vec::new();
    let mut send = |cluster: &mut Cluster, seconds: u64| {
        cluster.now += Duration::from_secs(seconds);
        cluster.engines[0].handle_timeout(cluster.now);
        while let Some(transmit) = cluster.engines[0].poll_transmit() {
            waiting.push(transmit.bytes);
        }
    };
    send(&mut cluster, 4);
    cluster.add(0, 5000..6000);
    send(&mut cluster, 4);
    let stopped = cluster.now;
    cluster.engines[1].handle_stopped(stopped);
    assert!(waiting.len() >= 3, "announcements and an update wait");
    for message in waiting {
        cluster.engines[1].handle_message(stopped, &name("a"), &message);
        assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::NoList)), "nobody was asked yet");
    }
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    assert_eq!(cluster.who(1, 5500), ["a"]);
    cluster.engines[1].validate();
}

#[test]
fn another_life_of_a_host_that_is_seen_is_not_believed_before_the_driver_says_so() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    cluster.engines[1].handle_alive(cluster.now, &name("a"), Incarnation(1));
    assert_eq!(cluster.engines[1].live_of(&name("a")), Some(Incarnation(1)));
    // An empty host of the same name.
    let mut twin: Engine<MemoryCatalogue> =
        Engine::new(MeshConfig::new(name("a"), Incarnation(2), hasher()));
    let now = cluster.now;
    let speak = |cluster: &mut Cluster, twin: &mut Engine<MemoryCatalogue>, seconds: u64| {
        twin.handle_timeout(now + Duration::from_secs(seconds));
        twin.leave(now, Duration::ZERO);
        while let Some(transmit) = twin.poll_transmit() {
            cluster.engines[1].handle_message(now, &name("a"), &transmit.bytes);
        }
        cluster.deliver(|_, _, _| true);
    };
    speak(&mut cluster, &mut twin, 0);
    assert_eq!(cluster.who(1, 1), ["a"]);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    assert_eq!(cluster.engines[1].incarnation_of(&name("a")), Some(Incarnation(1)));
    // The first one goes, and the other may take its place.
    cluster.engines[1].handle_gone(now, &name("a"), Incarnation(1));
    assert_eq!(cluster.engines[1].live_of(&name("a")), None);
    cluster.engines[1].handle_alive(now, &name("a"), Incarnation(2));
    assert_eq!(cluster.engines[1].incarnation_of(&name("a")), Some(Incarnation(2)));
}

/// A host hung, another one took its name and stopped again: the first one was never heard again.
#[test]
fn an_earlier_life_that_the_driver_believes_again_is_heard() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    let (a, now) = (name("a"), cluster.now);
    cluster.engines[1].handle_alive(now, &a, Incarnation(1));
    cluster.engines[1].handle_alive(now, &a, Incarnation(2));
    cluster.engines[1].handle_gone(now, &a, Incarnation(2));
    cluster.engines[1].handle_alive(now, &a, Incarnation(1));
    assert_eq!(cluster.engines[1].live_of(&a), Some(Incarnation(1)));
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"]);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    cluster.engines[1].validate();
}

/// Messages of another life were taken for those of a host whose link was being reopened.
#[test]
fn a_host_that_vanished_keeps_its_name_for_a_moment() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    let a = name("a");
    cluster.engines[1].handle_alive(cluster.now, &a, Incarnation(1));
    cluster.engines[1].handle_gone(cluster.now, &a, Incarnation(1));
    assert_eq!(cluster.engines[1].vanished(cluster.now, &a), Some(Incarnation(1)));
    cluster.restart_a(50..60, Work::AtOnce);
    let speak = |cluster: &mut Cluster| {
        cluster.now += Duration::from_secs(1);
        cluster.engines[0].handle_timeout(cluster.now);
        cluster.deliver(|_, _, _| true);
    };
    speak(&mut cluster);
    assert_eq!(cluster.who(1, 1), ["a"], "the first life's keys");
    assert_eq!(cluster.gap_of_a(1), Some(Some(Gap::Unreachable)));
    assert_eq!(cluster.engines[1].incarnation_of(&a), Some(Incarnation(1)));
    // The driver finds that the first life has ended. What was refused is asked for at once.
    cluster.engines[1].handle_alive(cluster.now, &a, Incarnation(2));
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.engines[1].vanished(cluster.now, &a), None);
    assert_eq!(cluster.who(1, 55), ["a"]);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    // Left to itself, a name is free before the replicas are dropped.
    cluster.engines[1].handle_gone(cluster.now, &a, Incarnation(2));
    cluster.now += cluster.engines[1].config().grace * 3 / 4;
    assert_eq!(cluster.engines[1].vanished(cluster.now, &a), None);
    assert_eq!(cluster.who(1, 55), ["a"]);
    cluster.engines[1].validate();
}

/// It was taken for a host that the driver does not see, so that any other life was believed.
#[test]
fn a_host_that_was_silent_and_speaks_again_is_still_seen() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    let a = name("a");
    cluster.engines[1].handle_alive(cluster.now, &a, Incarnation(1));
    let silence = cluster.engines[1].config().silence;
    for _ in 0..=silence.as_secs() {
        cluster.now += Duration::from_secs(1);
        cluster.engines[1].handle_timeout(cluster.now);
    }
    assert_eq!(cluster.who(1, 1), [""; 0]);
    assert_eq!(cluster.engines[1].live_of(&a), Some(Incarnation(1)));
    cluster.wait(10);
    assert_eq!(cluster.who(1, 1), ["a"]);
    assert_eq!(cluster.engines[1].live_of(&a), Some(Incarnation(1)));
    cluster.engines[1].validate();
}

/// Everything that the first host sent was ignored for the silence limit after the second had left.
#[test]
fn a_life_that_outlives_a_later_one_is_heard_at_once() {
    let mut cluster = Cluster::pair();
    cluster.wait(4);
    let (a, now) = (name("a"), cluster.now);
    cluster.engines[1].handle_alive(now, &a, Incarnation(1));
    cluster.engines[1].handle_alive(now, &a, Incarnation(2));
    let mut twin: Engine<MemoryCatalogue> =
        Engine::new(MeshConfig::new(a.clone(), Incarnation(2), hasher()));
    twin.leave(now, Duration::ZERO);
    while let Some(transmit) = twin.poll_transmit() {
        cluster.engines[1].handle_message(now, &a, &transmit.bytes);
    }
    cluster.engines[1].handle_gone(now, &a, Incarnation(2));
    cluster.engines[1].handle_alive(now, &a, Incarnation(1));
    assert_eq!(cluster.engines[1].live_of(&a), None, "it may be a remnant");
    cluster.engines[1].handle_replied(now, &a, Incarnation(1));
    assert_eq!(cluster.engines[1].live_of(&a), Some(Incarnation(1)));
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"]);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    cluster.engines[1].validate();
}
