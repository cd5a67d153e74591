//! Random operations with reopenings, against a `BTreeMap`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::common::{Dice, Model, check_equal};
use umbel_store::storage::testing::TestDisk;
use umbel_store::{Batch, Options, Snapshot, Store};

fn options() -> Options {
    // A budget of a few dozen changes, so that sorting to disk happens all the time.
    Options::new().background(false).memory_budget(4_500).integrate_bytes(40_000).filter_bits(4096)
}

fn run(seed: u64, steps: usize) {
    let mut dice = Dice::new(seed);
    let disk = TestDisk::new();
    let open = || Store::open_on(Arc::new(disk.clone()), options()).expect("the store opens");
    let mut store = open();
    let mut model = Model::new();
    let mut snapshots = Vec::new();
    for step in 0..steps {
        match dice.below(100) {
            0..50 => {
                let (key, value) = (dice.key(), dice.value());
                let inserted = store.put(&key, &value).unwrap();
                assert_eq!(inserted, model.insert(key, value).is_none(), "seed {seed} step {step}");
            }
            50..70 => {
                let key = dice.key();
                let deleted = store.delete(&key).unwrap();
                assert_eq!(deleted, model.remove(&key).is_some(), "seed {seed} step {step}");
            }
            70..78 => {
                let (mut batch, mut expected) = (Batch::new(), Vec::new());
                for _ in 0..dice.below(20) {
                    let (key, value) = (dice.key(), dice.value());
                    expected.push(model.get(&key).cloned());
                    match dice.below(3) {
                        0 => {
                            batch.delete(&key);
                            model.remove(&key);
                        }
                        1 => {
                            batch.insert(&key, &value);
                            model.entry(key).or_insert(value);
                        }
                        _ => {
                            batch.put(&key, &value);
                            model.insert(key, value);
                        }
                    }
                }
                assert_eq!(store.apply(batch).unwrap(), expected, "seed {seed} step {step}");
            }
            78..84 => {
                let (a, b) = (dice.key(), dice.key());
                check_range(&store, &model, &a, &b);
            }
            84..88 => snapshots.push((store.snapshot(), model.clone())),
            88..91 => {
                snapshots.drain(..snapshots.len() / 2).for_each(|(snapshot, then)| {
                    let now: Vec<_> = snapshot.scan(..).unwrap().map(Result::unwrap).collect();
                    assert_eq!(now, then.clone().into_iter().collect::<Vec<_>>());
                    assert_eq!(snapshot.len(), then.len() as u64);
                    check_visit(&snapshot, &then, &dice.key());
                });
            }
            91..94 => store.integrate().unwrap(),
            94..96 => {
                store.verify(|_| {}).unwrap();
            }
            _ => {
                drop(store);
                store = open();
            }
        }
        let key = dice.key();
        assert_eq!(store.get(&key).unwrap().as_ref(), model.get(&key), "seed {seed} step {step}");
        assert_eq!(store.len(), model.len() as u64, "seed {seed} step {step}");
    }
    check_equal(&store, &model);
}

fn check_range(store: &Store, model: &Model, a: &[u8], b: &[u8]) {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let got: Vec<_> = store.scan(a..b).unwrap().map(Result::unwrap).collect();
    let expected: BTreeMap<_, _> = model
        .range::<[u8], _>((Bound::Included(a), Bound::Excluded(b)))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    assert_eq!(got, expected.into_iter().collect::<Vec<_>>());
    let after = (Bound::Excluded(a), Bound::Included(b));
    assert_eq!(store.scan(after).unwrap().count(), model.range::<[u8], _>(after).count());
    let prefix = &a[..a.len().min(2)];
    let got = store.scan_prefix(prefix).unwrap().count();
    assert_eq!(got, model.keys().filter(|key| key.starts_with(prefix)).count());
}

fn check_visit(snapshot: &Snapshot, model: &Model, key: &[u8]) {
    for prefix in [&[][..], &key[..key.len().min(1)], &key[..key.len().min(2)]] {
        let mut shown = Vec::new();
        snapshot.visit_prefix(prefix, |k, v| shown.push((k.to_vec(), v.to_vec()))).unwrap();
        shown.sort();
        let expected = model.iter().filter(|(key, _)| key.starts_with(prefix));
        assert_eq!(shown, expected.map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>());
    }
}

#[test]
fn random_operations_match_a_map() {
    let (seeds, steps) = (40, 600);
    for seed in 0..seeds {
        run(seed, steps);
    }
    println!("model: {seeds} sequences of {steps} operations, each with reopenings");
}
