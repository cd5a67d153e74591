//! Sets of chains between hosts: depths, numbers of homes, climbs, and what is refused.

use super::*;
use crate::bank::Depths;
use crate::design::chain::{ChainPromise, ChainSearch};
use crate::params::ParamError;
use crate::replica::{Deepest, Policy};

const PROMISE: ChainPromise = ChainPromise { step: 8, over_estimate: 1e-7, max_length: 4096 };

fn chains() -> SetPlan {
    let policy: Policy = "miss:0,ghost=0".parse().unwrap();
    SetPlan { chains: Some(PROMISE), policy, ..SetPlan::default() }
}

/// What the last host says of a chain of keys, by number and name.
fn depths(
    cluster: &Cluster,
    keys: std::ops::Range<u64>,
    how: ChainSearch,
) -> Vec<(u32, String, u32)> {
    let engine = cluster.engines.last().unwrap();
    let chain: Vec<_> = keys.map(|number| engine.hash(&key(number))).collect();
    let (mut found, mut shown) = (Depths::new(), Vec::new());
    let replicas = engine.shared_replicas(&name("set")).unwrap();
    replicas.chain(&chain, how, &mut found, |number, name, depth| {
        shown.push((number, name.as_str().to_owned(), depth));
    });
    shown.sort();
    assert!(replicas.is_loose());
    shown
}

#[test]
fn a_router_knows_how_much_of_a_chain_every_home_holds() {
    let names: Vec<String> = (0..12).map(|number| format!("w{number:02}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.push("router");
    let mut cluster = Cluster::of(&all);
    for worker in 0..12 {
        cluster.create(worker, chains());
        cluster.add(worker, 0..worker as u64 * 100);
    }
    cluster.wait(2);
    let how = PROMISE.design().unwrap().search();
    let shown = depths(&cluster, 0..1000, how);
    // The first worker holds nothing, so it is no home, and the numbers of the others begin with 0.
    let expected =
        |worker: u32| (worker - 1, format!("w{worker:02}"), (worker * 100).min(1000) / 8 * 8);
    assert_eq!(shown, (1..12).map(expected).collect::<Vec<_>>());
    let engine = cluster.engines.last().unwrap();
    let replicas = engine.shared_replicas(&name("set")).unwrap();
    assert_eq!(replicas.homes(), 11);
    // The deepest first, of equals those whose names come first.
    let chain: Vec<_> = (0..1000).map(|number| engine.hash(&key(number))).collect();
    for limit in [0, 1, 3, 11, usize::MAX] {
        let (mut found, mut ranked) = (Deepest::default(), Vec::new());
        replicas.deepest(&chain, how, limit, &mut found, |name, depth| {
            ranked.push((name.as_str().to_owned(), depth));
        });
        let mut expected: Vec<_> =
            shown.iter().map(|(_, name, depth)| (name.clone(), *depth)).collect();
        expected.sort_by_key(|(name, depth)| (std::cmp::Reverse(*depth), name.clone()));
        expected.truncate(limit);
        assert_eq!(ranked, expected);
    }

    // A home that grows climbs, one that loses its end is known by it.
    cluster.add(3, 300..4000);
    for number in 500..1000 {
        cluster.engines[11].remove(cluster.now, &name("set"), &key(number));
    }
    cluster.wait(3);
    let shown = depths(&cluster, 0..1000, how);
    assert_eq!((shown[2].2, shown[10].2), (1000, 496));
    cluster.engines.iter().for_each(Protocol::validate);
}

#[test]
fn a_promise_that_cannot_be_kept_creates_no_set() {
    let mut cluster = Cluster::of(&["a"]);
    let promise = ChainPromise { step: 1, ..PROMISE };
    let plan = SetPlan { chains: Some(promise), ..chains() };
    let created =
        cluster.engines[0].create(cluster.now, &name("set"), plan, MemoryCatalogue::new());
    assert!(matches!(created, Err(ParamError::Step { given: 1, .. })));
    assert!(!cluster.engines[0].has_set(&name("set")));
    assert!(chains().is_loose() && !SetPlan::default().is_loose());
}

#[test]
fn a_set_of_single_keys_is_not_loose() {
    let cluster = Cluster::pair();
    let replicas = cluster.engines[1].shared_replicas(&name("set")).unwrap();
    assert!(!replicas.is_loose());
}
