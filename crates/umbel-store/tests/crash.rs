//! Every way a disk can fail, against what was acknowledged.
//!
//! A fixed script of writes, integrates and reopenings runs on the test disk. It is cut off
//! at every storage call, or that call fails, or the disk is full; then the machine comes
//! back with any part of what was not synced, and recovery is cut off at every call too.
//! What was acknowledged must be there, what was under way there as a whole or not at all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use crate::common::{Dice, Model, check_equal};
use umbel_store::storage::Storage as _;
use umbel_store::storage::testing::{Fate, TestDisk};
use umbel_store::{Batch, Error, Options, Store};

fn options() -> Options {
    // So little memory that sorting to disk is part of the script.
    Options::new().background(false).memory_budget(1_100).integrate_bytes(1 << 30).filter_bits(1024)
}

fn open(disk: &TestDisk) -> Result<Store, Error> {
    Store::open_on(Arc::new(disk.clone()), options())
}

#[derive(Clone)]
enum Step {
    Write(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    Integrate,
    Reopen,
}

/// Writes of one and several changes, sorting, integrating and reopening, several times.
fn script() -> Vec<Step> {
    let mut dice = Dice::new(7);
    let mut steps = Vec::new();
    for round in 0..3 {
        for _ in 0..14 {
            let len = if dice.below(4) == 0 { 1 + dice.below(6) } else { 1 };
            let change = |dice: &mut Dice| {
                let key = format!("key/{:02}", dice.below(25)).into_bytes();
                let value = vec![dice.roll() as u8; 20 + dice.below(120) as usize];
                (key, (dice.below(4) > 0).then_some(value))
            };
            steps.push(Step::Write((0..len).map(|_| change(&mut dice)).collect()));
        }
        steps.push(if round == 1 { Step::Reopen } else { Step::Integrate });
    }
    steps
}

/// Every third length of value is put only where the key is absent.
fn only_if_absent(value: &[u8]) -> bool {
    value.len().is_multiple_of(3)
}

/// Changes a model as a store must change, and returns what each change found.
fn apply(model: &mut Model, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Vec<Option<Vec<u8>>> {
    let mut before = Vec::new();
    for (key, value) in changes {
        before.push(model.get(key).cloned());
        match value {
            Some(value) if only_if_absent(value) => {
                model.entry(key.clone()).or_insert_with(|| value.clone());
            }
            Some(value) => drop(model.insert(key.clone(), value.clone())),
            None => drop(model.remove(key)),
        }
    }
    before
}

/// What may be on the disk: everything that was acknowledged, and perhaps one write more.
struct Outcome {
    acknowledged: Model,
    perhaps: Option<Model>,
    /// Whether a write was refused.
    refused: bool,
    /// Steps that ended well.
    done: usize,
}

/// Runs the script until a write fails, or to its end.
fn run(disk: &TestDisk, steps: &[Step]) -> Outcome {
    run_with(disk, steps, |_| false)
}

/// Runs the script; a write that failed is tried again if `heal` has healed the store.
fn run_with(disk: &TestDisk, steps: &[Step], mut heal: impl FnMut(&mut Store) -> bool) -> Outcome {
    let mut outcome =
        Outcome { acknowledged: Model::new(), perhaps: None, refused: false, done: 0 };
    let Ok(mut store) = open(disk) else { return outcome };
    for step in steps {
        match step {
            Step::Write(changes) => {
                let mut after = outcome.acknowledged.clone();
                let before = apply(&mut after, changes);
                let mut applied = store.apply(batch_of(changes));
                if applied.is_err() && heal(&mut store) {
                    check_equal(&store, &outcome.acknowledged);
                    applied = store.apply(batch_of(changes));
                }
                match applied {
                    Ok(found) => assert_eq!(found, before),
                    Err(error) => {
                        // Readers go on with what was acknowledged, and nothing else.
                        check_equal(&store, &outcome.acknowledged);
                        if !matches!(error, Error::Behind(_)) {
                            assert!(matches!(store.put(b"x", b"y"), Err(Error::Poisoned(_))));
                            outcome.perhaps = Some(after);
                        }
                        outcome.refused = true;
                        return outcome;
                    }
                }
                outcome.acknowledged = after;
            }
            Step::Integrate => {
                // It may fail; then everything is as it was.
                let _ = store.integrate();
                check_equal(&store, &outcome.acknowledged);
            }
            Step::Reopen => {
                drop(store);
                match open(disk) {
                    Ok(again) => store = again,
                    Err(_) => return outcome,
                }
            }
        }
        outcome.done += 1;
    }
    outcome
}

fn batch_of(changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Batch {
    let mut batch = Batch::new();
    for (key, value) in changes {
        match value {
            Some(value) if only_if_absent(value) => batch.insert(key, value),
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        };
    }
    batch
}

/// Opens what is on the disk and compares; then uses it, to see that it still works.
fn check(disk: &TestDisk, outcome: &Outcome, case: &str) {
    let store = open(disk).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found: Model = store.scan(..).unwrap().map(Result::unwrap).collect();
    let fits = found == outcome.acknowledged || Some(&found) == outcome.perhaps.as_ref();
    assert!(fits, "{case}: {} records, acknowledged {}", found.len(), outcome.acknowledged.len());
    check_equal(&store, &found);
    store.put(b"after", b"the crash").unwrap();
    store.integrate().unwrap();
    store.verify(|_| {}).unwrap();
    let mut after = found;
    after.insert(b"after".to_vec(), b"the crash".to_vec());
    check_equal(&store, &after);
}

fn fates(seed: u64, mixed: u64) -> impl Iterator<Item = Fate> {
    let mixed = (0..mixed).map(move |i| Fate::Mixed(seed * 1000 + i));
    [Fate::LoseAll, Fate::KeepAll].into_iter().chain(mixed)
}

#[test]
fn a_crash_at_any_call_loses_nothing_acknowledged() {
    let steps = script();
    let whole = TestDisk::new();
    assert_eq!(run(&whole, &steps).done, steps.len());
    let calls = whole.calls();
    let (mut cases, mut in_recovery) = (0, 0);
    for call in 0..calls {
        let disk = TestDisk::new();
        disk.crash_at_call(call);
        let outcome = run(&disk, &steps);
        for fate in fates(call, 10) {
            let back = disk.crash(fate);
            check(&back.crash(Fate::KeepAll), &outcome, &format!("call {call}, {fate:?}"));
            cases += 1;
            // Again, while the store recovers from the first crash.
            let counted = back.crash(Fate::KeepAll);
            drop(open(&counted));
            for again in 0..counted.calls() {
                let recovering = back.crash(Fate::KeepAll);
                recovering.crash_at_call(again);
                // It may succeed all the same: that old files stay harms nobody.
                drop(open(&recovering));
                let fate = [Fate::LoseAll, Fate::Mixed(call * 100 + again)][again as usize % 2];
                let case = format!("call {call}, then call {again} of recovery, {fate:?}");
                check(&recovering.crash(fate), &outcome, &case);
                in_recovery += 1;
            }
        }
    }
    println!("crash: {cases} crashes at {calls} calls, {in_recovery} more during recovery");
}

#[test]
fn any_call_may_fail_and_nothing_acknowledged_is_lost() {
    let steps = script();
    let whole = TestDisk::new();
    run(&whole, &steps);
    let (calls, mut cases) = (whole.calls(), 0);
    for call in 0..calls {
        let disk = TestDisk::new();
        disk.fail_call(call);
        let outcome = run(&disk, &steps);
        for fate in fates(call, 4) {
            check(&disk.crash(fate), &outcome, &format!("call {call} fails, {fate:?}"));
            cases += 1;
        }
    }
    println!("failure: each of {calls} calls, {cases} cases");
}

/// The store is opened again after the failure, as often as it takes; the script goes on.
#[test]
fn any_call_may_fail_and_a_store_that_is_reopened_goes_on() {
    let steps = script();
    let whole = TestDisk::new();
    run(&whole, &steps);
    let (calls, mut healed, mut cases) = (whole.calls(), 0, 0);
    for call in 0..2 * calls {
        let disk = TestDisk::new();
        disk.fail_call(call % calls);
        let outcome = run_with(&disk, &steps, |store| {
            if call >= calls {
                // What reopening does fails as well, once.
                disk.fail_call(call % 11);
            }
            healed += 1;
            (0..3).any(|_| store.reopen().is_ok())
        });
        for fate in fates(call, 4) {
            check(&disk.crash(fate), &outcome, &format!("call {call} fails, healed, {fate:?}"));
            cases += 1;
        }
    }
    assert!(healed > 100, "only {healed} stores were healed");
    println!("healed: {healed} of {calls} calls, {cases} cases");
}

#[test]
fn a_store_that_was_replaced_is_not_taken_for_the_same() {
    let (disk, other) = (TestDisk::new(), TestDisk::new());
    // Stores are told apart by their salts, which a test disk counts.
    other.salt();
    let (mut store, foreign) = (open(&disk).unwrap(), open(&other).unwrap());
    store.put(b"a", b"1").unwrap();
    foreign.put(b"b", b"2").unwrap();
    for name in other.list().unwrap() {
        disk.set_bytes(&name, other.bytes(&name).unwrap());
    }
    assert!(matches!(store.reopen(), Err(Error::Replaced)));
    assert_eq!(store.get(b"a").unwrap().unwrap(), b"1", "reads go on");
}

#[test]
fn a_full_disk_refuses_writes_and_works_again_when_it_has_room() {
    let steps = script();
    let whole = TestDisk::new();
    run(&whole, &steps);
    let (max, mut cases, mut refused) = (4 * whole.used(), 0, 0);
    for capacity in (100..max).step_by(61) {
        let disk = TestDisk::new();
        disk.set_capacity(Some(capacity));
        let outcome = run(&disk, &steps);
        refused += u32::from(outcome.refused);
        disk.set_capacity(None);
        for fate in fates(capacity, 2) {
            check(&disk.crash(fate), &outcome, &format!("{capacity} bytes, {fate:?}"));
            cases += 1;
        }
    }
    assert!(refused > 20, "only {refused} disks were full in time");
    println!("full disk: {cases} cases, writes refused in {refused}");
}

#[test]
fn a_failed_sync_poisons_and_is_never_tried_again() {
    let disk = TestDisk::new();
    let store = open(&disk).unwrap();
    store.put(b"a", b"1").unwrap();
    disk.fail_call(1); // the append, then the sync
    let error = store.put(b"b", b"2").unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    let calls = disk.calls();
    let refusal = store.put(b"c", b"3").unwrap_err();
    assert!(matches!(refusal, Error::Poisoned(_)) && refusal.to_string().contains("sync"));
    assert!(matches!(store.integrate(), Err(Error::Poisoned(_))));
    assert_eq!(disk.calls(), calls, "the disk is left alone");
    assert_eq!(store.get(b"a").unwrap().unwrap(), b"1");
    assert_eq!(store.get(b"b").unwrap(), None);
    assert_eq!(store.len(), 1);
}

/// A store with every kind of file, and the states its newest file goes through.
fn specimen(close: bool) -> (TestDisk, Vec<Model>) {
    let disk = TestDisk::new();
    let store = open(&disk).unwrap();
    let put = |i: u32, model: &mut Model| {
        let (key, value) = (format!("key/{i:03}").into_bytes(), vec![i as u8; 12]);
        store.put(&key, &value).unwrap();
        model.insert(key, value);
    };
    let mut model = Model::new();
    (0..40).for_each(|i| put(i, &mut model));
    store.integrate().unwrap();
    let mut i = 40;
    while !disk_has(&disk, ".sorted") {
        put(i, &mut model);
        i += 1;
    }
    let mut states = vec![{
        // What the newest file starts from: everything but its own first record.
        let mut before = model.clone();
        before.remove(format!("key/{:03}", i - 1).as_bytes());
        before
    }];
    states.push(model.clone());
    for _ in 0..3 {
        put(i, &mut model);
        states.push(model.clone());
        i += 1;
    }
    store.delete(b"key/001").unwrap();
    model.remove(&b"key/001"[..]);
    states.push(model);
    if close {
        drop(store);
        return (disk, states);
    }
    (disk.crash(Fate::KeepAll), states)
}

fn disk_has(disk: &TestDisk, ending: &str) -> bool {
    names(disk).iter().any(|name| name.ends_with(ending))
}

fn names(disk: &TestDisk) -> Vec<String> {
    umbel_store::storage::Storage::list(disk).unwrap()
}

/// What can be read before an error, if it is a state the store was in.
fn readable(disk: &TestDisk, states: &[Model]) -> Option<usize> {
    let store = open(disk).ok()?;
    let mut found = Model::new();
    let mut failed = false;
    for record in store.scan(..).ok()? {
        match record {
            Ok((key, value)) => drop(found.insert(key, value)),
            Err(_) => failed = true,
        }
    }
    for (key, value) in states.last().unwrap() {
        // Right, or an error; absent only if the whole state is an earlier one.
        if let Ok(got) = store.get(key) {
            let known = states.iter().any(|state| state.get(key) == got.as_ref());
            assert!(known && (failed || got.as_ref() == found.get(key)), "{key:?} {value:?}");
        }
    }
    if failed {
        return None;
    }
    let state = states.iter().position(|state| *state == found);
    Some(state.expect("an answer that was never right"))
}

#[test]
fn files_cut_at_any_byte_give_an_error_or_an_earlier_state() {
    let (disk, states) = specimen(true);
    let (mut cases, mut errors) = (0, 0);
    for name in names(&disk) {
        let bytes = disk.bytes(&name).unwrap();
        for cut in 0..bytes.len() {
            let damaged = disk.crash(Fate::KeepAll);
            damaged.set_bytes(&name, bytes[..cut].to_vec());
            let state = readable(&damaged, &states);
            // Only the end of the file being written can be missing without a trace.
            assert!(state.is_none() || name.ends_with(".differential"), "{name} cut at {cut}");
            errors += u64::from(state.is_none());
            cases += 1;
        }
    }
    println!("truncation: {cases} cuts, {errors} errors, the rest earlier states");
}

#[test]
fn every_flipped_bit_gives_an_error_or_the_right_answer() {
    let (disk, states) = specimen(true);
    let last = states.len() - 1;
    let (mut cases, mut errors) = (0, 0);
    for name in names(&disk) {
        let bytes = disk.bytes(&name).unwrap();
        for bit in 0..bytes.len() * 8 {
            let damaged = disk.crash(Fate::KeepAll);
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            damaged.set_bytes(&name, flipped);
            let state = readable(&damaged, &states);
            assert!(state.is_none_or(|state| state == last), "{name} bit {bit}: {state:?}");
            errors += u64::from(state.is_none());
            cases += 1;
        }
    }
    println!("bit flips: {cases} bits, {errors} errors, the rest right answers");
}

#[test]
fn without_a_mark_of_closing_only_the_last_record_can_be_mistaken() {
    let (disk, states) = specimen(false);
    let last = states.len() - 1;
    let newest = names(&disk).into_iter().rfind(|name| name.ends_with(".differential")).unwrap();
    let bytes = disk.bytes(&newest).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let last_record = end - 19 - b"key/001".len();
    for bit in 0..bytes.len() * 8 {
        let damaged = disk.crash(Fate::KeepAll);
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        damaged.set_bytes(&newest, flipped);
        match readable(&damaged, &states) {
            None => assert!(bit / 8 < last_record, "bit {bit}"),
            Some(state) if bit / 8 >= end => assert_eq!(state, last, "bit {bit} of the room"),
            Some(state) => assert!(state == last - 1 && bit / 8 >= last_record, "bit {bit}"),
        }
    }
    println!("bit flips, not closed: {} bits", bytes.len() * 8);
}

#[test]
fn an_unknown_version_is_refused_in_every_file() {
    let (disk, _) = specimen(true);
    for name in names(&disk) {
        let damaged = disk.crash(Fate::KeepAll);
        let mut bytes = disk.bytes(&name).unwrap();
        // Files of sorted pages have it in the trailer too, which is read first.
        let at = if bytes.len() > 4096 { bytes.len() - 128 + 8 } else { 8 };
        bytes[at] = 9;
        damaged.set_bytes(&name, bytes);
        match open(&damaged).map(drop) {
            Err(Error::Version { found: 9, known: 1, file }) => assert_eq!(file, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}
