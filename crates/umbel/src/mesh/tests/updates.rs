//! Updates and pages between hosts: delivered, lost, late, damaged.

use super::*;
use crate::codec::seal;

#[test]
fn what_one_host_adds_the_others_find() {
    let mut cluster = Cluster::of(&["a", "b", "c"]);
    cluster.create(0, plan("miss:0", 100));
    cluster.create(1, plan("miss:0", 200));
    cluster.add(0, 0..50);
    cluster.add(1, 40..90);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(2, 10), ["a"]);
    assert_eq!(cluster.who(2, 45), ["a", "b"]);
    assert_eq!(cluster.who(0, 60), ["b"]);
    assert!(cluster.engines[2].who(&name("other"), cluster.engines[2].hash(b"x")).is_none());
    cluster.agree(0, 2);
    cluster.agree(1, 0);
    let now = cluster.now;
    assert_eq!(cluster.engines[0].remove(now, &name("set"), &key(10)), Some(true));
    assert_eq!(cluster.engines[0].remove(now, &name("set"), &key(10)), Some(false));
    assert_eq!(cluster.engines[2].remove(now, &name("set"), &key(10)), None);
    cluster.engines[0].publish(now, &name("set"));
    cluster.deliver(|_, _, _| true);
    assert!(cluster.who(2, 10).is_empty());
}

#[test]
fn a_bulk_load_is_one_update() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, SetPlan { capacity: Some(100_000), ..SetPlan::default() });
    let keys: Vec<_> = (0..1_000_000u64).map(key).collect();
    let mut new = 0;
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    let mut count = |is_new| new += u64::from(is_new);
    assert!(cluster.engines[0].add_many(cluster.now, &name("set"), &keys, &mut count));
    assert_eq!(new, 1_000_000);
    cluster.wait(2);
    assert_eq!(cluster.engines[0].counters().updates_sent, 1);
    cluster.agree(0, 1);
    assert_eq!(cluster.who(1, 999_999), ["a"]);
}

#[test]
fn a_stream_of_adds_within_the_settling_time_is_one_update() {
    let intervals = Intervals::default();
    let plan = SetPlan { capacity: Some(10_000), ..SetPlan::default() };
    let mut home = Home::new(hasher(), plan, intervals, MemoryCatalogue::new()).unwrap();
    let mut updates = 0;
    for number in 0..10_000u64 {
        let now = Duration::from_micros(5 * number);
        home.add(now, &key(number));
        updates += u64::from(home.poll(now).is_some());
    }
    let due = home.next_timeout().unwrap();
    assert!(due <= Duration::from_secs(1));
    updates += u64::from(home.poll(due).is_some());
    assert_eq!(updates, 1);
    assert_eq!(denied(&home), 0);
}

#[test]
fn a_lost_update_is_noticed_and_repaired() {
    let mut cluster = Cluster::pair();
    cluster.add(0, 10..11);
    cluster.deliver(|_, _, _| false);
    assert!(cluster.who(1, 10).is_empty());
    // The next update does not follow on what is there: the gap is seen at once.
    cluster.add(0, 11..12);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 10), ["a"]);
    assert_eq!(cluster.engines[1].counters().gaps, 1);
    // The last update is lost: an announcement tells.
    cluster.add(0, 12..13);
    cluster.deliver(|_, _, _| false);
    cluster.wait(7);
    assert_eq!(cluster.who(1, 12), ["a"]);
    cluster.agree(0, 1);
}

#[test]
fn duplicates_and_old_lives_change_nothing() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 100));
    let mut seen: Vec<Vec<u8>> = Vec::new();
    cluster.add(0, 0..10);
    cluster.deliver(|_, _, bytes| {
        seen.push(bytes.to_vec());
        true
    });
    for bytes in &seen {
        cluster.engines[1].handle_message(cluster.now, &name("a"), bytes);
    }
    assert_eq!(cluster.engines[1].counters().duplicates, seen.len() as u64);
    cluster.agree(0, 1);
    // The home restarts with less: its old life's messages are worth nothing.
    let mut config = MeshConfig::new(name("a"), Incarnation(2), hasher());
    config.intervals = AT_ONCE;
    cluster.engines[0] = Engine::new(config);
    cluster.create(0, plan("miss:0", 100));
    cluster.add(0, 3..5);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 3), ["a"]);
    assert!(cluster.who(1, 7).is_empty());
    for bytes in &seen {
        cluster.engines[1].handle_message(cluster.now, &name("a"), bytes);
    }
    assert!(cluster.who(1, 7).is_empty());
    assert_eq!(cluster.engines[1].counters().old_lives, seen.len() as u64);
    cluster.agree(0, 1);
}

#[test]
fn a_set_that_outgrows_its_plan_is_never_unanswerable() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 20));
    for number in 0..400 {
        cluster.add(0, [number]);
        cluster.deliver(|_, _, _| true);
        for earlier in 0..=number {
            assert_eq!(cluster.who(1, earlier), ["a"], "{earlier} after {number}");
        }
    }
    let home = cluster.engines[0].home(&name("set")).unwrap();
    assert!(home.rebuilds() >= 2, "it climbed two rungs at least");
    assert!(home.filter().false_positive() < 0.02);
    let before = home.filter().memory_bytes();
    drop(home);
    cluster.agree(0, 1);
    // And back: most keys go, and the filter with them.
    let now = cluster.now;
    for number in 10..400 {
        cluster.engines[0].remove(now, &name("set"), &key(number));
    }
    cluster.engines[0].publish(now, &name("set"));
    cluster.deliver(|_, _, _| true);
    cluster.wait(601);
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    let after = cluster.engines[0].home(&name("set")).unwrap().filter().memory_bytes();
    assert!(after <= before / 4 + 200);
    assert!((0..10).all(|number| cluster.who(1, number) == ["a"]));
    cluster.agree(0, 1);
}

#[test]
fn updates_bring_the_pages_of_a_joiner_up_to_date() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 400_000));
    let keys: Vec<_> = (0..300_000u64).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    cluster.engines[0].add_many(cluster.now, &name("set"), &keys, &mut |_| ());
    cluster.deliver(|_, _, _| false);
    let pages =
        paged::pages(cluster.engines[0].home(&name("set")).unwrap().filter().scheme().shape());
    assert!(pages >= 4, "{pages} pages");
    // The joiner hears an announcement and fetches; with every page that arrives the home
    // publishes another update.
    cluster.now += Duration::from_secs(10);
    cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(cluster.now));
    let mut next = 1_000_000u64;
    for _ in 0..100 {
        let mut budget = 2;
        cluster.deliver(|_, _, bytes| {
            let is_page = bytes[1] == 4;
            budget -= i32::from(is_page);
            !is_page || budget >= 0
        });
        cluster.add(0, [next]);
        next += 1;
        cluster.now += Duration::from_millis(700);
        cluster.engines[1].handle_timeout(cluster.now);
        if cluster.engines[1].counters().snapshots > 0 {
            break;
        }
    }
    cluster.deliver(|_, _, _| true);
    cluster.agree(0, 1);
    assert_eq!(cluster.who(1, next - 1), ["a"]);
    let requests = cluster.engines[1].counters().requests_sent;
    assert!(requests < 4 * pages, "{requests} requests for {pages} pages");
}

#[test]
fn flipped_bits_are_refused_and_leave_the_columns_alone() {
    let mut cluster = Cluster::pair();
    cluster.add(0, 10..11);
    let mut sent = Vec::new();
    cluster.deliver(|_, _, bytes| {
        sent.push(bytes.to_vec());
        false
    });
    for bytes in &sent {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            cluster.engines[1].handle_message(cluster.now, &name("a"), &damaged);
        }
        // A page that lies: the checksum of the message is right, its contents are not.
        for byte in 2..bytes.len() - 4 {
            let mut lying = bytes[..bytes.len() - 4].to_vec();
            lying[byte] ^= 0x15;
            cluster.engines[1].handle_message(cluster.now, &name("a"), &seal(lying));
        }
    }
    cluster.engines[1].validate();
    assert!((0..10).all(|number| cluster.who(1, number) == ["a"]));
    assert!(cluster.engines[1].counters().refused > 0);
}

#[test]
fn samples_in_announcements_measure_the_misses() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("manual", 1000));
    cluster.add(0, 0..500);
    let now = cluster.now;
    cluster.engines[0].publish(now, &name("set"));
    cluster.deliver(|_, _, _| true);
    cluster.add(0, 500..1000);
    for _ in 0..200 {
        cluster.wait(3);
    }
    let info = cluster.engines[1].replica(cluster.now, &name("set"), &name("a")).unwrap();
    let rate = info.sampled.denied as f64 / info.sampled.members as f64;
    assert!(info.sampled.members > 500);
    assert!((0.4..0.6).contains(&rate), "{rate}: half of the members are not published");
    assert!(info.is_current && info.items == 1000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut cluster = Cluster::of(&["a", "b"]);
        cluster.engines[0].handle_message(Duration::ZERO, &name("b"), &bytes);
        cluster.engines[0].handle_message(Duration::ZERO, &name("b"), &seal(bytes));
        cluster.engines[0].validate();
    }
}
