//! Receivers that missed something: what they fetch to follow again, and how many bytes of it.

use super::*;

/// Kinds of messages by their number.
const UPDATE: u8 = 1;
const PAGE: u8 = 4;
const CHANGES: u8 = 6;

impl Cluster {
    fn load(&mut self, index: usize, numbers: std::ops::Range<u64>) {
        let keys: Vec<_> = numbers.map(key).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        self.engines[index].add_many(self.now, &name("set"), &keys, &mut |_| ());
    }

    /// Delivers everything, counting the bytes of updates, pages and changes.
    fn deliver_counting(&mut self) -> [usize; 3] {
        let mut bytes = [0; 3];
        self.deliver(|_, _, message| {
            let kinds = [UPDATE, PAGE, CHANGES];
            if let Some(kind) = kinds.iter().position(|kind| *kind == message[1]) {
                bytes[kind] += message.len();
            }
            true
        });
        bytes
    }

    /// Lets a second pass for all, without delivering anything.
    fn tick(&mut self) {
        self.now += Duration::from_secs(1);
        self.engines.iter_mut().for_each(|engine| engine.handle_timeout(self.now));
    }
}

#[test]
fn a_receiver_that_was_stopped_fetches_what_it_missed_and_no_page() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0.001", 100_000));
    cluster.load(0, 0..100_000);
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    // A hundredth of the keys changes in a minute, in which nothing arrives and no time passes for
    // the receiver.
    let mut missed = 0;
    for second in 0..60u64 {
        cluster.now += Duration::from_secs(1);
        let (gone, new) = (second * 16..(second + 1) * 16, second * 16 + 1_000_000);
        let now = cluster.now;
        for number in gone {
            cluster.engines[0].remove(now, &name("set"), &key(number));
        }
        cluster.add(0, new..new + 16);
        cluster.deliver(|_, _, bytes| {
            missed += if bytes[1] == UPDATE { bytes.len() } else { 0 };
            false
        });
    }
    assert!(missed > 0);
    let mut fetched = [0; 3];
    for _ in 0..10 {
        cluster.tick();
        let bytes = cluster.deliver_counting();
        (0..3).for_each(|kind| fetched[kind] += bytes[kind]);
    }
    cluster.agree(0, 1);
    let [updates, pages, changes] = fetched;
    assert_eq!(pages, 0);
    assert!(5 * (updates + changes) <= 6 * missed, "{updates} + {changes} for {missed}");
    assert_eq!(cluster.engines[1].counters().caught_up, 1, "in one step");
}

#[test]
fn updates_that_arrive_early_are_not_fetched_again() {
    let mut cluster = Cluster::pair();
    cluster.add(0, 10..11);
    cluster.deliver(|_, _, _| false);
    // The request for the missed update is lost, and three more updates arrive meanwhile.
    for number in 11..14 {
        cluster.add(0, number..number + 1);
        cluster.deliver(|from, _, _| from.as_str() == "a");
    }
    cluster.now += Duration::from_secs(2);
    cluster.engines[1].handle_timeout(cluster.now);
    let [updates, pages, changes] = cluster.deliver_counting();
    cluster.agree(0, 1);
    assert_eq!((updates, pages), (0, 0));
    assert!(changes < 120, "{changes}: one update with its header");
}

#[test]
fn an_update_of_a_small_set_leaves_before_the_pages_of_a_large_one() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 400_000));
    cluster.load(0, 0..300_000);
    let small = name("small");
    let (now, plan) = (cluster.now, plan("miss:0", 10));
    cluster.engines[0].create(now, &small, plan, MemoryCatalogue::new()).unwrap();
    let mut requests = Vec::new();
    cluster.deliver(|from, _, bytes| {
        let is_request = from.as_str() == "b" && bytes[1] == 3;
        requests.extend(is_request.then(|| bytes.to_vec()));
        !is_request
    });
    assert!(!requests.is_empty());
    for request in requests {
        cluster.engines[0].handle_message(now, &name("b"), &request);
    }
    cluster.engines[0].add(now, &small, b"key");
    let first = cluster.engines[0].poll_transmit().unwrap();
    assert_eq!((first.to, first.bytes[1]), (Destination::All, UPDATE));
}

#[test]
fn an_update_of_any_length_is_fetched_in_parts() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, SetPlan { policy: plan("miss:0", 1).policy, ..SetPlan::default() });
    cluster.load(0, 0..400_000);
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    let snapshots = cluster.engines[1].counters().snapshots;
    // Climbs a rung: the refinement is longer than any message, and its first part is lost.
    cluster.load(0, 400_000..700_000);
    let mut lost = 1;
    cluster.deliver(|_, _, bytes| {
        let is_lost = bytes[1] == CHANGES && lost > 0;
        lost -= i32::from(is_lost);
        !is_lost
    });
    assert_eq!(lost, 0);
    let mut pages = 0;
    for _ in 0..5 {
        cluster.tick();
        pages += cluster.deliver_counting()[1];
    }
    cluster.agree(0, 1);
    let counters = cluster.engines[1].counters();
    assert_eq!((pages, counters.snapshots), (0, snapshots));
    assert!(counters.parts > 2 && counters.caught_up > 0, "{counters:?}");
    assert_eq!(cluster.who(1, 699_999), ["a"]);
}

#[test]
fn updates_before_and_after_a_climb_are_fetched_as_one_stream() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, SetPlan { policy: plan("miss:0", 1).policy, ..SetPlan::default() });
    cluster.load(0, 0..30_000);
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    let rung =
        |cluster: &Cluster| cluster.engines[0].home(&name("set")).unwrap().rung().unwrap().rung();
    let (before, snapshots) = (rung(&cluster), cluster.engines[1].counters().snapshots);
    cluster.add(0, 30_000..30_010);
    cluster.load(0, 30_010..60_010);
    cluster.add(0, 60_010..60_020);
    cluster.deliver(|_, _, _| false);
    assert!(rung(&cluster) > before, "it has climbed");
    let mut pages = 0;
    for _ in 0..10 {
        cluster.tick();
        pages += cluster.deliver_counting()[1];
    }
    cluster.agree(0, 1);
    let counters = cluster.engines[1].counters();
    assert_eq!((pages, counters.snapshots, counters.caught_up), (0, snapshots, 1));
}

#[test]
fn a_receiver_that_missed_more_than_the_home_keeps_fetches_the_image_once() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100_000));
    cluster.load(0, 0..20_000);
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    for round in 1..5 {
        cluster.load(0, round * 20_000..(round + 1) * 20_000);
        cluster.now += Duration::from_secs(20);
        cluster.engines[0].handle_timeout(cluster.now);
        cluster.deliver(|_, _, _| false);
    }
    let mut fetched = [0; 3];
    for _ in 0..10 {
        cluster.tick();
        let bytes = cluster.deliver_counting();
        (0..3).for_each(|kind| fetched[kind] += bytes[kind]);
    }
    cluster.agree(0, 1);
    let bits = cluster.engines[0].home(&name("set")).unwrap().kept().scheme().shape().bits();
    let [_, pages, changes] = fetched;
    assert!(pages > 0 && pages as u64 <= bits / 8 + 1000, "{pages} bytes of pages, {bits} bits");
    assert_eq!(changes, 0);
}

/// Lets a host ask for the first page of a set, which is then published anew.
fn being_fetched(own_bytes: u64) -> (Cluster, u64) {
    let mut cluster = Cluster::of(&["a", "b"]);
    let mut config = MeshConfig::new(name("a"), Incarnation(1), hasher());
    (config.own_bytes, config.intervals) = (own_bytes, AT_ONCE);
    cluster.engines[0] = Engine::new(config);
    cluster.create(0, plan("miss:0", 400_000));
    cluster.load(0, 0..300_000);
    cluster.deliver(|_, _, bytes| bytes[1] != PAGE);
    cluster.load(0, 300_000..300_010);
    let bits = cluster.engines[0].home(&name("set")).unwrap().kept().scheme().shape().bits();
    (cluster, bits / 8)
}

#[test]
fn an_image_that_is_being_fetched_counts_as_memory_of_own_sets() {
    let (mut cluster, image) = being_fetched(u64::MAX);
    let pinned = cluster.engines[0].own_bytes();
    let (requested, patience) = (cluster.now, cluster.engines[0].config().page_patience);
    let home = &mut cluster.engines[0];
    home.handle_timeout(requested + patience * 3 - Duration::from_millis(1));
    assert_eq!(home.own_bytes(), pinned, "three patience intervals are not over");
    home.handle_timeout(requested + patience * 3);
    assert_eq!(home.own_bytes(), pinned - image);
    // Without as much memory nothing is pinned.
    let (cluster, _) = being_fetched(pinned - image / 2);
    assert_eq!(cluster.engines[0].own_bytes(), pinned - image);
}

#[test]
fn a_busy_home_cannot_starve_a_joiner() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 2_000_000));
    cluster.load(0, 0..1_000_000);
    cluster.deliver(|_, _, _| false);
    let scheme = *cluster.engines[0].home(&name("set")).unwrap().filter().scheme();
    let pages = paged::pages(scheme.shape());
    assert!(pages >= 16, "{pages} pages");
    cluster.now += Duration::from_secs(10);
    cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
    // While two pages arrive the home publishes another update that is too long for a message.
    let (mut next, mut served) = (1_000_000, 0);
    while cluster.who(1, 0).is_empty() {
        let mut budget = 2;
        cluster.deliver(|_, _, bytes| {
            let is_page = bytes[1] == PAGE;
            budget -= i32::from(is_page);
            served += u64::from(is_page && budget >= 0);
            !is_page || budget >= 0
        });
        assert!(served <= pages, "the fetch of {pages} pages begins again");
        cluster.load(0, next..next + 80_000);
        next += 80_000;
        cluster.now += Duration::from_millis(1300);
        cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
    }
    assert_eq!(served, pages);
    cluster.engines[0].validate();
    cluster.deliver(|_, _, _| true);
    cluster.wait(3);
    cluster.agree(0, 1);
    assert_eq!(cluster.who(1, next - 1), ["a"]);
    // Nothing stays pinned.
    cluster.wait(20);
    let own = cluster.engines[0].own_bytes();
    let home = cluster.engines[0].home(&name("set")).unwrap().memory_bytes();
    assert!(own < home + home / 20, "{own} of which {home} are the home's");
}
