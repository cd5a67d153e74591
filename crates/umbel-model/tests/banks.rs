//! Questions to a bank while columns come, change their shape, and move into rows.

use std::time::Duration;

use shuttle::thread;
use umbel_model::protocol::Protocol as _;

use super::explore;
use super::pair::{Asking, Hosts, add, engine, name, plan};

/// As many homes as share rows, and one more.
const HOMES: u64 = 9;

#[test]
fn no_key_is_denied_while_a_bank_takes_in_updates() {
    explore(settle);
}

fn settle() {
    let names = ["home".to_owned(), "host".to_owned()];
    let others = (1..HOMES).map(|number| format!("other-{number}"));
    let engines = names.into_iter().chain(others).map(|name| engine(&name, u64::MAX)).collect();
    let mut hosts = Hosts::of(engines);
    hosts.create(0, 0..5);
    hosts.settle();
    let (local, replicas, clock) = (hosts.local(), hosts.replicas(), hosts.clock.clone());

    let driving = thread::spawn(move || {
        for index in 2..hosts.engines.len() {
            hosts.create(index, 1000 * index as u64..1000 * index as u64 + 3);
        }
        (0..3).for_each(|_| hosts.tick());
        hosts
    });
    let changing = thread::spawn(move || {
        add(&local, &clock, 10..14).expect("own");
        local.replan(clock.now(), plan(400)).expect("there is memory");
        while local.build_part(clock.now(), 16) {}
        add(&local, &clock, 14..16).expect("own");
    });
    let asking = Asking::start(replicas, 0..5);
    changing.join().expect("kept its promises");
    let mut hosts = driving.join().expect("kept its promises");
    hosts.settle();
    asking.finish();
    hosts.check((0..5).chain(10..16));
    assert_eq!(hosts.engines[1].replicas(&name("set")).count() as u64, HOMES);
    assert!(hosts.engines[1].poll_timeout() > Duration::ZERO);
}
