//! How hosts know which sets the others have, whatever is lost, and what that costs.

use super::*;
use crate::mesh::requests::MAX_FETCHED;
use crate::replica::message::MAX_SETS;

pub(super) const ANNOUNCE: u8 = 2;
pub(super) const LIST_REQUEST: u8 = 7;
pub(super) const LIST: u8 = 8;

impl Cluster {
    /// Creates a set of one key.
    pub(super) fn create_named(&mut self, index: usize, set: &str) {
        let (now, set) = (self.now, name(set));
        let plan = plan("miss:0", 10);
        self.engines[index].create(now, &set, plan, MemoryCatalogue::new()).unwrap();
        self.engines[index].add(now, &set, b"key");
    }

    /// Lets seconds pass; returns the lengths of all messages of a kind.
    fn wait_counting(&mut self, seconds: u64, kind: u8) -> Vec<usize> {
        let mut lengths = Vec::new();
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.engines.iter_mut().for_each(|engine| engine.handle_timeout(self.now));
            self.deliver(|_, _, bytes| {
                lengths.extend((bytes[1] == kind).then_some(bytes.len()));
                true
            });
        }
        lengths
    }

    fn knows(&self, index: usize, set: &str) -> bool {
        let engine = &self.engines[index];
        let key = engine.hash(b"key");
        engine.who(&name(set), key).is_some_and(|hosts| hosts == [name("a")])
    }
}

#[test]
fn an_announcement_of_many_sets_is_as_long_as_of_one() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create_named(0, "set-0000");
    let one = cluster.wait_counting(10, ANNOUNCE).into_iter().max();
    (1..3000).for_each(|number| cluster.create_named(0, &format!("set-{number:04}")));
    // None of the updates arrives: all are found in the list.
    cluster.deliver(|_, _, _| false);
    let many = cluster.wait_counting(10, ANNOUNCE).into_iter().max();
    assert!(many <= one.map(|one| one + 8), "{many:?} for {one:?}: longer numbers");
    assert!(many < Some(80), "{many:?}");
    assert!((0..3000).all(|number| cluster.knows(1, &format!("set-{number:04}"))));
    assert_eq!(cluster.gap_of_a(1), Some(None));
    assert!(cluster.wait_counting(10, LIST_REQUEST).is_empty(), "all is known");
    cluster.engines[1].validate();
}

#[test]
fn a_host_that_joins_asks_for_a_few_sets_at_a_time() {
    const REQUEST: u8 = 3;
    const PAGE: u8 = 4;
    let mut cluster = Cluster::of(&["a", "b"]);
    let sets = 5 * MAX_FETCHED;
    (0..sets).for_each(|number| cluster.create_named(0, &format!("set-{number}")));
    cluster.deliver(|_, _, _| false);
    let (mut under_way, mut max) = (0, 0);
    for _ in 0..4 {
        cluster.now += Duration::from_secs(1);
        cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
        cluster.deliver(|_, _, bytes| {
            under_way += usize::from(bytes[1] == REQUEST);
            max = max.max(under_way);
            under_way -= usize::from(bytes[1] == PAGE);
            true
        });
    }
    assert_eq!(max, MAX_FETCHED);
    assert!((0..sets).all(|number| cluster.knows(1, &format!("set-{number}"))));
    cluster.engines[1].validate();
}

#[test]
fn only_what_changed_is_listed() {
    let mut cluster = Cluster::of(&["a", "b"]);
    (0..100).for_each(|number| cluster.create_named(0, &format!("set-{number}")));
    cluster.deliver(|_, _, _| true);
    cluster.wait(4);
    let now = cluster.now;
    cluster.engines[0].add(now, &name("set-7"), b"other");
    cluster.deliver(|_, _, _| false);
    let lists = cluster.wait_counting(4, LIST);
    assert!(lists.len() == 1 && lists[0] < 100, "{lists:?}");
    let other = cluster.engines[1].hash(b"other");
    assert_eq!(cluster.engines[1].who(&name("set-7"), other), Some(vec![name("a")]));
}

/// Announcements are of constant length: each names members of one set.
#[test]
fn members_of_every_set_are_named_in_turn() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let sets = ["one", "two", "three", "four", "five"];
    sets.iter().for_each(|set| cluster.create_named(0, set));
    cluster.deliver(|_, _, _| true);
    let every = cluster.engines[0].config().announce_every.as_secs();
    cluster.wait((sets.len() as u64 + 1) * every);
    for set in sets {
        let replica = cluster.engines[1].replica(cluster.now, &name(set), &name("a")).unwrap();
        let Sampled { members, denied } = replica.sampled;
        assert!((1..=2 * SAMPLES as u64).contains(&members), "{set}: {members}");
        assert_eq!(denied, 0);
    }
}

#[test]
fn a_list_is_requested_once_for_each_announcement() {
    let mut cluster = Cluster::of(&["a", "b"]);
    (0..MAX_SETS + 10).for_each(|number| cluster.create_named(0, &format!("set-{number}")));
    cluster.deliver(|_, _, _| false);
    // No list arrives.
    let (mut announcements, mut requests) = (0, 0);
    for _ in 0..30 {
        cluster.now += Duration::from_secs(1);
        cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
        cluster.deliver(|from, _, bytes| {
            announcements += u32::from(from.as_str() == "a" && bytes[1] == ANNOUNCE);
            requests += u32::from(bytes[1] == LIST_REQUEST);
            bytes[1] != LIST
        });
        assert!(requests <= announcements, "{requests} requests, {announcements} announcements");
    }
    assert!(requests >= 10, "{requests}");
    assert_eq!(cluster.wait_counting(4, LIST).len(), 2, "it is longer than one message");
    assert!(cluster.knows(1, "set-0"));
}

#[test]
fn a_deleted_set_is_forgotten_although_its_withdrawal_is_lost() {
    let mut cluster = Cluster::of(&["a", "b"]);
    ["red", "green"].iter().for_each(|set| cluster.create_named(0, set));
    cluster.deliver(|_, _, _| true);
    cluster.wait(4);
    let epoch = cluster.engines[0].epoch(&name("red"));
    assert!(cluster.engines[0].delete(&name("red")));
    cluster.deliver(|_, _, _| false);
    assert!(cluster.knows(1, "red"));
    assert_eq!(cluster.wait_counting(4, LIST).len(), 2, "what changed, then all of it");
    assert!(!cluster.knows(1, "red") && cluster.knows(1, "green"));
    assert_eq!(cluster.engines[1].sets(), [&name("green")]);
    assert!(cluster.wait_counting(10, LIST_REQUEST).is_empty());
    // A new set of that name goes on where the old one ended.
    cluster.create_named(0, "red");
    cluster.deliver(|_, _, _| true);
    assert!(cluster.knows(1, "red"));
    assert!(cluster.engines[0].epoch(&name("red")) > epoch);
}

#[test]
fn a_withdrawal_is_not_undone_by_what_was_sent_before() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create_named(0, "red");
    let mut early = Vec::new();
    cluster.deliver(|_, _, bytes| {
        early.push(bytes.to_vec());
        true
    });
    assert!(cluster.engines[0].delete(&name("red")));
    cluster.deliver(|_, _, _| true);
    assert!(cluster.engines[1].sets().is_empty());
    for bytes in &early {
        cluster.engines[1].handle_message(cluster.now, &name("a"), bytes);
    }
    assert!(cluster.engines[1].sets().is_empty());
}

#[test]
fn sets_that_are_not_accepted_are_not_listed_again_and_again() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let mut config = MeshConfig::new(name("b"), Incarnation(1), hasher());
    config.max_sets_per_peer = 3;
    config.intervals = AT_ONCE;
    cluster.engines[1] = Engine::new(config);
    (0..5).for_each(|number| cluster.create_named(0, &format!("set-{number}")));
    cluster.wait(4);
    assert_eq!(cluster.engines[1].sets().len(), 3);
    assert!(cluster.wait_counting(20, LIST_REQUEST).is_empty());
    // What changes of the others is still followed.
    let now = cluster.now;
    cluster.engines[0].add(now, &name("set-1"), b"other");
    cluster.deliver(|_, _, _| false);
    cluster.wait(4);
    assert!(cluster.wait_counting(20, LIST_REQUEST).is_empty());
    let (set, home) = (name("set-1"), name("a"));
    let published = cluster.engines[0].published_checksum(&set);
    assert_eq!(cluster.engines[1].replica_checksum(&set, &home), published);
}

#[test]
fn a_home_that_restarts_with_other_sets_is_known_by_these() {
    let mut cluster = Cluster::of(&["a", "b"]);
    ["red", "green"].iter().for_each(|set| cluster.create_named(0, set));
    cluster.deliver(|_, _, _| true);
    cluster.wait(4);
    let mut config = MeshConfig::new(name("a"), Incarnation(2), hasher());
    config.intervals = AT_ONCE;
    cluster.engines[0] = Engine::new(config);
    ["green", "blue"].iter().for_each(|set| cluster.create_named(0, set));
    cluster.wait(4);
    assert_eq!(cluster.engines[1].sets(), [&name("blue"), &name("green")]);
    assert_eq!(cluster.gap_of_a(1), Some(None));
    cluster.engines[1].validate();
}
