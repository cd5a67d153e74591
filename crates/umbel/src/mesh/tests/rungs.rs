//! Climbs, descents and restarts: what is sent, and that receivers follow.

use super::*;
use crate::design::ladder::{Ladder, Rung};

fn rung(cluster: &Cluster) -> Rung {
    cluster.engines[0].home(&name("set")).unwrap().rung().unwrap().rung()
}

/// The same host in its next life, with the catalogue and the rung it had.
fn restart(cluster: &mut Cluster, plan: SetPlan) {
    let old = &cluster.engines[0];
    let life = old.config().incarnation.0 + 1;
    let before = old.home(&name("set")).unwrap().rung().unwrap().standing();
    let catalogue = old.home(&name("set")).unwrap().catalogue().clone();
    let mut config = MeshConfig::new(name("a"), Incarnation(life), hasher());
    config.intervals = AT_ONCE;
    cluster.engines[0] = Engine::new(config);
    let now = cluster.now;
    cluster.engines[0].restore(now, &name("set"), plan, catalogue, Some(before)).unwrap();
}

#[test]
fn a_set_starts_with_128_bytes() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, SetPlan::default());
    cluster.add(0, 0..3);
    cluster.wait(3);
    assert_eq!(rung(&cluster), Rung::LOWEST);
    assert_eq!(cluster.who(1, 2), ["a"]);
    let replicas = cluster.engines[1].shared_replicas(&name("set")).unwrap();
    assert_eq!(replicas.memory_bytes(), 128);
}

/// A climb is sent as a refinement: at one host little more than half of the new bits.
#[test]
fn receivers_follow_climbs_and_descents() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let ladder = Ladder::new(crate::Rate::new(0.02).unwrap());
    let takes = |exponent| ladder.takes(Rung::new(exponent).unwrap(), 1);
    cluster.create(0, plan("miss:0.01", takes(14)));
    cluster.add(0, 0..takes(14));
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    assert_eq!(rung(&cluster).exponent(), 14);
    let (sent, snapshots) = (cluster.engines[0].counters().update_bytes_sent, snapshots(&cluster));
    cluster.now += Duration::from_secs(100);
    cluster.add(0, takes(14)..takes(14) + 1);
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    assert_eq!(rung(&cluster).exponent(), 15);
    cluster.agree(0, 1);
    assert_eq!(snapshots, self::snapshots(&cluster), "neither an image nor pages");
    let climb = cluster.engines[0].counters().update_bytes_sent - sent;
    assert!(climb < (1 << 15) / 8 * 6 / 10, "{climb} bytes for a climb to 2^15 bits");
    // Down again: receivers fold, and hardly anything is sent.
    for number in 1000..takes(14) {
        let now = cluster.now;
        cluster.engines[0].remove(now, &name("set"), &key(number));
    }
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    let sent = cluster.engines[0].counters().update_bytes_sent;
    cluster.wait(605);
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    assert_eq!(rung(&cluster).exponent(), 14);
    cluster.agree(0, 1);
    assert_eq!(snapshots, self::snapshots(&cluster), "neither an image nor pages");
    let descent = cluster.engines[0].counters().update_bytes_sent - sent;
    assert!(descent < 400, "{descent} bytes for a descent");
    assert!((0..1000).all(|number| cluster.who(1, number) == ["a"]));
}

fn snapshots(cluster: &Cluster) -> (u64, u64) {
    let counters = cluster.engines[1].counters();
    (counters.snapshots, counters.pages)
}

#[test]
fn a_restart_on_the_same_rung_sends_nothing() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, plan("miss:0", 0));
    cluster.add(0, 0..3000);
    cluster.engines[0].publish(cluster.now, &name("set"));
    cluster.deliver(|_, _, _| true);
    let (before, stood) = (snapshots(&cluster), rung(&cluster));
    let same = cluster.engines[1].counters().same_bits;
    restart(&mut cluster, plan("miss:0", 0));
    cluster.wait(5);
    assert_eq!(rung(&cluster), stood);
    cluster.agree(0, 1);
    assert_eq!(snapshots(&cluster), before, "neither an image nor pages");
    assert_eq!(cluster.engines[1].counters().same_bits, same + 1);
    assert!(cluster.engines[0].counters().update_bytes_sent < 200);
    // Changes of the new life follow on the image of the old one.
    cluster.add(0, 5000..5001);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 5000), ["a"]);
    assert_eq!(snapshots(&cluster), before);
    cluster.agree(0, 1);
    // With other keys than were published, the bits differ and are fetched.
    let now = cluster.now;
    cluster.engines[0].set_policy(now, &name("set"), "manual".parse().unwrap());
    cluster.add(0, 6000..6010);
    restart(&mut cluster, plan("miss:0", 0));
    cluster.wait(5);
    cluster.agree(0, 1);
    assert_eq!(cluster.who(1, 6005), ["a"]);
}

/// What is reserved is room at the home: other hosts hold, and are charged, what the keys need.
#[test]
fn a_reserved_set_costs_others_what_it_holds() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.create(0, SetPlan { capacity: Some(100_000), ..plan("miss:0", 0) });
    cluster.add(0, 0..10);
    cluster.wait(2);
    let filter = |cluster: &Cluster| {
        let home = cluster.engines[0].home(&name("set")).unwrap();
        (home.filter().scheme().shape().bits(), home.rebuilds())
    };
    let (reserved, rebuilds) = filter(&cluster);
    assert!(reserved >= 1 << 19, "{reserved} bits");
    let charged = cluster.engines[1].replica_bytes_charged();
    assert!(charged <= 1500, "{charged} bytes for ten keys");
    cluster.agree(0, 1);
    // As keys come, replicas grow; the filter was long enough from the start.
    let mut now = 10;
    while now < 1000 {
        cluster.add(0, now..now * 3);
        now *= 3;
        cluster.wait(2);
        cluster.agree(0, 1);
        assert_eq!(cluster.who(1, now - 1), ["a"]);
    }
    assert_eq!(filter(&cluster), (reserved, rebuilds));
    let charged = cluster.engines[1].replica_bytes_charged();
    assert!((5_000..100_000).contains(&charged), "{charged} bytes for {now} keys");
    // As they go, replicas shrink, and the room stays.
    for number in 100..now {
        cluster.engines[0].remove(cluster.now, &name("set"), &key(number));
    }
    cluster.wait(700);
    cluster.agree(0, 1);
    let charged = cluster.engines[1].replica_bytes_charged();
    assert!(charged <= 3000, "{charged} bytes for a hundred keys");
    assert_eq!(filter(&cluster), (reserved, rebuilds));
    assert_eq!(cluster.who(1, 99), ["a"]);
}

#[test]
fn more_homes_make_full_rungs_climb_at_different_times() {
    let names: Vec<String> = (0..6).map(|number| format!("host{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut cluster = Cluster::of(&names);
    let auto = SetPlan { policy: "miss:0.01".parse().unwrap(), ..SetPlan::default() };
    let ladder = auto.ladder().unwrap();
    let takes = ladder.takes(Rung::new(12).unwrap(), 4);
    for host in 0..2 {
        cluster.create(host, SetPlan { capacity: Some(takes), ..auto });
        cluster.add(host, 0..takes);
    }
    cluster.wait(70);
    assert_eq!(rung(&cluster).exponent(), 12);
    for host in 2..6 {
        cluster.create(host, auto);
        cluster.add(host, 0..1);
    }
    let mut climbed = [None; 2];
    for second in 0..70 {
        cluster.wait(1);
        for (host, climbed) in climbed.iter_mut().enumerate() {
            let home = cluster.engines[host].home(&name("set")).unwrap();
            if home.rung().unwrap().rung().exponent() == 13 {
                climbed.get_or_insert(second);
            }
        }
    }
    let [Some(first), Some(second)] = climbed else { panic!("{climbed:?}") };
    assert!(first != second, "both climbed after {first} s");
    let hosts = cluster.engines[0].home(&name("set")).unwrap().rung().unwrap().hosts();
    assert_eq!(hosts, 16, "six homes are more than three quarters of eight");
    cluster.agree(0, 1);
    cluster.agree(1, 0);
}

/// What is sent to one receiver while a set grows, over its final image.
fn sent_while_growing(keys: u64, per_second: u64, policy: &str) -> f64 {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.engines[0] = Engine::new(MeshConfig::new(name("a"), Incarnation(1), hasher()));
    let policy = policy.parse().unwrap();
    cluster.create(0, SetPlan { expected_hosts: Some(32), policy, ..SetPlan::default() });
    let tick = (per_second / 10).max(10);
    for first in (0..keys).step_by(tick as usize) {
        let batch: Vec<_> = (first..(first + tick).min(keys)).map(key).collect();
        let batch: Vec<&[u8]> = batch.iter().map(|key| &key[..]).collect();
        cluster.engines[0].add_many(cluster.now, &name("set"), &batch, &mut |_| ());
        cluster.now += Duration::from_secs_f64(tick as f64 / per_second as f64);
        let now = cluster.now;
        cluster.engines.iter_mut().for_each(|engine| engine.handle_timeout(now));
        cluster.deliver(|_, _, _| true);
    }
    cluster.wait(1300);
    cluster.agree(0, 1);
    let info = cluster.engines[1].replica(cluster.now, &name("set"), &name("a")).unwrap();
    let home = cluster.engines[0].home(&name("set")).unwrap();
    let fill = home.filter().components()[0].1.bits().fill();
    let image = crate::model::limits::snapshot_bytes(*home.filter().scheme().shape(), fill);
    info.received.bytes as f64 / image
}

const WITHOUT_LONGEST: &str = "miss:0.01";

#[test]
fn growing_sends_at_most_three_images_and_a_fifth() {
    for (keys, per_second) in [(30_000, 10_000), (10_000, 10)] {
        let default = Policy::default().to_string();
        for policy in [&default, WITHOUT_LONGEST] {
            let over = sent_while_growing(keys, per_second, policy);
            assert!(over <= 3.2, "{keys} keys, {per_second} a second, {policy}: {over}");
        }
    }
}

/// `UMBEL_GROWTH` picks one line, for lines that take long: `keys,per second`.
#[test]
#[ignore = "a measurement of minutes, to read"]
fn table_of_bytes_sent_while_growing() {
    let all = [
        (100_000, 10),
        (100_000, 10_000),
        (1_000_000, 10_000),
        (1_400_000, 10_000),
        (1_000_000, 10),
        (10_000_000, 10_000),
        (10_000_000, 10),
    ];
    let wanted = std::env::var("UMBEL_GROWTH").ok();
    for (keys, per_second) in all {
        if wanted.as_ref().is_some_and(|line| *line != format!("{keys},{per_second}")) {
            continue;
        }
        for policy in [&Policy::default().to_string(), WITHOUT_LONGEST] {
            let over = sent_while_growing(keys, per_second, policy);
            println!(
                "{keys} keys at {per_second} a second, {policy}: {over:.2} times the final image"
            );
        }
    }
}
