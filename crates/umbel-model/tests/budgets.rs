//! The memory of own sets, when several grow at once.

use std::sync::Arc;

use shuttle::thread;
use umbel_model::catalogue::MemoryCatalogue;
use umbel_model::protocol::Protocol as _;

use super::explore;
use super::pair::{Clock, Mesh, add, engine, name, plan};

const SETS: [&str; 2] = ["one", "other"];

/// A host with two small sets.
fn host(own_bytes: u64, clock: &Clock) -> Mesh {
    let mut host = engine("home", own_bytes);
    for set in SETS {
        host.create(clock.now(), &name(set), plan(8), MemoryCatalogue::new()).expect("created");
        add(host.local_set(&name(set)).expect("own"), clock, 0..9).expect("own");
    }
    host
}

#[test]
fn two_sets_that_grow_at_once_never_share_the_same_memory() {
    explore(grow);
}

fn grow() {
    let clock = Clock::default();
    let unlimited = host(u64::MAX, &clock);
    let before = unlimited.own_bytes();
    let local = unlimited.local_set(&name(SETS[0])).expect("own");
    local.replan(clock.now(), plan(400)).expect("unlimited");
    while local.build_part(clock.now(), 16) {}
    let growth = unlimited.own_bytes() - before;

    let limit = before + growth + growth / 2;
    let host = host(limit, &clock);
    let growing = SETS.map(|set| {
        let (local, clock) = (Arc::clone(host.local_set(&name(set)).expect("own")), clock.clone());
        thread::spawn(move || {
            let has_grown = local.replan(clock.now(), plan(400)).is_ok();
            while local.build_part(clock.now(), 3) {}
            has_grown
        })
    });
    let grown = growing.map(|thread| thread.join().expect("kept its promises"));
    assert_eq!(grown.iter().filter(|has_grown| **has_grown).count(), 1, "there is room for one");
    assert!(host.own_bytes() <= limit, "{} of {limit} bytes", host.own_bytes());
    host.validate();
}
