//! What is not accepted of others: refused, counted, told of once, and nothing else suffers.

use super::*;
use crate::bits::BitVector;
use crate::params::Bits;
use crate::replica::message::{Message, Update};
use crate::replica::paged::{ONLY, Target, encode_changes};
use crate::scheme::Scheme;

/// A message that claims an empty set of `2^exponent` bits.
fn empty_set(home: &str, set: &str, exponent: u32, epoch: u64) -> Vec<u8> {
    let ladder = SetPlan::default().ladder().unwrap();
    let shape = ladder.shape(crate::design::ladder::Rung::new(exponent).unwrap());
    let scheme = Scheme::new(shape, hasher());
    let bits = BitVector::zeros(Bits::new(shape.bits()).unwrap()).unwrap();
    let (mut changes, checksum) = (Vec::new(), bits.checksum());
    let image = crate::replica::image::Image::new(scheme, Vec::new());
    encode_changes(
        &mut changes,
        &image,
        &[Target { id: ONLY, bits: bits.into(), added: Vec::new() }],
        &[],
    );
    let update = Update {
        home: name(home),
        set: name(set),
        incarnation: Incarnation(1),
        sequence: 1000 + epoch,
        epoch: Epoch(epoch),
        base: None,
        scheme,
        checksum,
        items: 0,
        changes: Some(changes),
    };
    Message::Update(update).encode()
}

fn refusals(cluster: &mut Cluster) -> Vec<String> {
    std::iter::from_fn(|| cluster.engines[1].poll_event())
        .filter_map(|event| match event {
            Event::Refused { from, reason } => Some(format!("{from}: {reason}")),
            _ => None,
        })
        .collect()
}

#[test]
fn a_peer_that_claims_large_sets_is_refused_and_others_go_on() {
    let mut cluster = Cluster::pair();
    let mut config = MeshConfig::new(name("b"), Incarnation(1), hasher());
    config.replica_bytes = 64 << 20;
    cluster.engines[1] = Engine::new(config);
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"]);
    refusals(&mut cluster);
    for round in 1..4 {
        for set in 0..12 {
            let message = empty_set("mallory", &format!("set{set}"), 26, round);
            cluster.engines[1].handle_message(cluster.now, &name("mallory"), &message);
        }
    }
    let engine = &cluster.engines[1];
    assert!(engine.replica_bytes_charged() <= 64 << 20);
    engine.validate();
    let refused: Vec<_> = engine.refusals().collect();
    assert_eq!(refused.len(), 11, "half of what is free goes to the first");
    for (host, set, refusal) in refused {
        assert_eq!((host, set.is_some(), refusal.count), (&name("mallory"), true, 3));
        assert!(refusal.reason.to_string().contains("half of the"), "{}", refusal.reason);
    }
    assert_eq!(refusals(&mut cluster).len(), 11, "each is told of once");
    cluster.add(0, 100..101);
    cluster.deliver(|_, _, _| true);
    assert_eq!(cluster.who(1, 100), ["a"], "honest hosts go on");
    // With the host its refusals go, and what it took.
    cluster.engines[1].handle_excluded(cluster.now, &name("mallory"));
    assert_eq!(cluster.engines[1].refusals().count(), 0);
    cluster.engines[1].validate();
}

#[test]
fn sets_of_a_peer_and_peers_are_limited() {
    let mut cluster = Cluster::pair();
    let mut config = MeshConfig::new(name("b"), Incarnation(1), hasher());
    (config.max_sets_per_peer, config.max_peers) = (3, 2);
    cluster.engines[1] = Engine::new(config);
    for set in 0..6 {
        let message = empty_set("mallory", &format!("set{set}"), 10, 1);
        cluster.engines[1].handle_message(cluster.now, &name("mallory"), &message);
    }
    assert_eq!(cluster.engines[1].sets().len(), 3);
    assert_eq!(cluster.engines[1].refusals().count(), 3);
    // A set that is known may go on, and grow.
    let message = empty_set("mallory", "set1", 14, 2);
    cluster.engines[1].handle_message(cluster.now, &name("mallory"), &message);
    assert_eq!(cluster.engines[1].refusals().count(), 3);
    cluster.wait(4);
    assert_eq!(cluster.who(1, 1), ["a"], "the second peer");
    cluster.engines[1].handle_alive(cluster.now, &name("third"), Incarnation(1));
    assert_eq!(cluster.engines[1].peers(cluster.now).count(), 2);
    let refusals = refusals(&mut cluster);
    assert!(refusals.last().unwrap().contains("third: there are 2 other hosts"), "{refusals:?}");
    cluster.engines[1].validate();
}

#[test]
fn own_sets_stay_within_their_memory() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let mut config = MeshConfig::new(name("a"), Incarnation(1), hasher());
    (config.own_bytes, config.intervals) = (60_000, AT_ONCE);
    cluster.engines[0] = Engine::new(config);
    cluster.create(0, SetPlan::default());
    cluster.add(0, 0..20_000);
    let engine = &cluster.engines[0];
    assert!(engine.own_bytes() <= 60_000, "{}", engine.own_bytes());
    assert!(engine.home(&name("set")).unwrap().is_confined());
    assert_eq!(engine.refusals().count(), 1);
    cluster.wait(3);
    assert_eq!(cluster.who(1, 19_999), ["a"], "members are claimed all the same");
    // What is reserved is checked before it is built.
    let large = SetPlan { capacity: Some(100_000), ..SetPlan::default() };
    let now = cluster.now;
    let engine = &mut cluster.engines[0];
    let refused = engine.create(now, &name("large"), large, MemoryCatalogue::new());
    assert!(matches!(refused, Err(ParamError::Memory(_))), "{refused:?}");
    let refused = engine.replan(now, &name("set"), large);
    assert!(matches!(refused, Err(ParamError::Memory(_))), "{refused:?}");
    cluster.engines[0].delete(&name("set"));
    assert_eq!(cluster.engines[0].own_bytes(), 0);
}
