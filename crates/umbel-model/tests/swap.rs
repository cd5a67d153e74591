//! A filter that is built in steps and takes the place of another, while keys come and go, questions
//! are asked and updates are published.

use shuttle::thread;

use super::explore;
use super::pair::{Asking, Hosts, add, key, name, plan};

/// Keys that are held all the time, that are removed, and that are added.
const STAY: std::ops::Range<u64> = 0..9;
const LEAVE: std::ops::Range<u64> = 100..104;
const COME: std::ops::Range<u64> = 200..206;
/// Removed, and added again.
const RETURN: u64 = 300;

#[test]
fn no_key_is_denied_and_no_change_is_lost_while_filters_are_swapped() {
    explore(swap);
}

fn swap() {
    let mut hosts = Hosts::pair(STAY.chain(LEAVE).chain([RETURN]));
    let (local, replicas, clock) = (hosts.local(), hosts.replicas(), hosts.clock.clone());
    local.replan(clock.now(), plan(400)).expect("there is memory");
    assert!(local.is_building());

    let (set, time) = (local.clone(), clock.clone());
    let adding = thread::spawn(move || {
        for number in COME.step_by(2) {
            assert_eq!(add(&set, &time, number..number + 2), Some(2));
        }
    });
    let (set, time) = (local.clone(), clock.clone());
    let removing = thread::spawn(move || {
        for number in LEAVE.chain([RETURN]) {
            let mut was_held = None;
            set.remove_many(time.now(), &[&key(number)], &mut |held| was_held = Some(held));
            assert_eq!(was_held, Some(true));
        }
        assert_eq!(add(&set, &time, RETURN..RETURN + 1), Some(1));
    });
    let (set, time) = (local.clone(), clock.clone());
    let building = thread::spawn(move || while set.build_part(time.now(), 3) {});
    let set = local.clone();
    let asking_home = thread::spawn(move || {
        for _ in 0..3 {
            let home = set.home();
            for number in STAY {
                assert!(home.contains(&key(number)), "{number} is held");
                assert!(home.filter().contains(key(number)), "{number} is claimed");
            }
        }
    });
    let asking = Asking::start(replicas, STAY);
    let driving = thread::spawn(move || {
        (0..4).for_each(|_| hosts.tick());
        hosts
    });
    for thread in [adding, removing, building, asking_home] {
        thread.join().expect("kept its promises");
    }
    let mut hosts = driving.join().expect("kept its promises");
    hosts.settle();
    asking.finish();
    hosts.check(STAY.chain(COME).chain([RETURN]));
}

#[test]
fn a_set_that_is_deleted_meanwhile_changes_no_more_and_takes_no_memory() {
    explore(delete);
}

fn delete() {
    let mut hosts = Hosts::pair(STAY);
    let (local, clock) = (hosts.local(), hosts.clock.clone());
    local.replan(clock.now(), plan(400)).expect("there is memory");
    let (set, time) = (local.clone(), clock.clone());
    let adding = thread::spawn(move || {
        let added: Vec<_> = COME.map(|number| add(&set, &time, number..number + 1)).collect();
        let kept = added.iter().take_while(|added| added.is_some()).count();
        assert!(added[kept..].iter().all(Option::is_none), "nothing changes after the end");
        kept as u64
    });
    let (set, time) = (local.clone(), clock);
    let building = thread::spawn(move || while set.build_part(time.now(), 3) {});
    let deleting = thread::spawn(move || {
        hosts.tick();
        assert!(umbel_model::protocol::Protocol::delete(&mut hosts.engines[0], &name("set")));
        hosts.tick();
        hosts
    });
    let kept = adding.join().expect("kept its promises");
    building.join().expect("kept its promises");
    let mut hosts = deleting.join().expect("kept its promises");
    hosts.settle();
    assert_eq!(add(&local, &hosts.clock, 400..401), None, "what is deleted changes no more");
    assert_eq!(umbel_model::catalogue::Catalogue::len(local.home().catalogue()), 9 + kept);
    assert_eq!(hosts.engines[0].own_bytes(), 0, "what is deleted takes no memory");
    assert!(hosts.engines[1].shared_replicas(&name("set")).is_none(), "everybody knows");
}
