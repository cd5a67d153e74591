//! A real process, killed in the middle of its writes, again and again.
//!
//! The test starts itself as a child that writes without end and says after each write that
//! it was acknowledged. It is killed after a random while; then everything it acknowledged
//! must be there, and of the write under way all or nothing. The next child goes on with the
//! same store. `UMBEL_KILL_CYCLES` says how often (`cargo xtask crash --cycles 1000`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Dice, Model};
use umbel_store::{Batch, Options, Store};

/// So little memory that the child sorts and integrates all the time.
fn options() -> Options {
    Options::new().memory_budget(45_000).integrate_bytes(60_000).filter_bits(1 << 14)
}

/// Write number `n`: one to eight puts and deletes.
fn changes(n: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut dice = Dice::new(n);
    let count = if dice.below(5) == 0 { 1 + dice.below(8) } else { 1 };
    (0..count)
        .map(|_| {
            let key = format!("object/{:04}", dice.below(3000)).into_bytes();
            let value = vec![dice.roll() as u8; dice.below(60) as usize];
            (key, (dice.below(4) > 0).then_some(value))
        })
        .collect()
}

fn apply(model: &mut Model, n: u64) {
    for (key, value) in changes(n) {
        match value {
            Some(value) => drop(model.insert(key, value)),
            None => drop(model.remove(&key)),
        }
    }
}

/// What the child does: writes until it is killed.
#[test]
fn child_that_writes_until_it_is_killed() {
    let (Ok(dir), Ok(first)) = (std::env::var("UMBEL_KILL_DIR"), std::env::var("UMBEL_KILL_FIRST"))
    else {
        return; // run as a test, not as a child
    };
    let store = Store::open(dir, options()).unwrap();
    let mut out = std::io::stderr().lock();
    for n in first.parse::<u64>().unwrap().. {
        let mut batch = Batch::new();
        for (key, value) in changes(n) {
            match value {
                Some(value) => batch.put(&key, &value),
                None => batch.delete(&key),
            };
        }
        store.write(batch).unwrap();
        // A parent that is gone ends the child too.
        if writeln!(out, "acknowledged {n}").is_err() {
            return;
        }
    }
}

/// Runs a child for a while, kills it, and returns the last write it acknowledged.
fn run_and_kill(dir: &Path, first: u64, lifetime: Duration) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_that_writes_until_it_is_killed", "--nocapture"])
        .env("UMBEL_KILL_DIR", dir)
        .env("UMBEL_KILL_FIRST", first.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    std::thread::scope(|scope| {
        // Read while it lives, so that it never waits for the pipe.
        let last = scope.spawn(|| {
            lines
                .map_while(Result::ok)
                .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
                .last()
        });
        std::thread::sleep(lifetime);
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        last.join().unwrap()
    })
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let cycles: u64 =
        std::env::var("UMBEL_KILL_CYCLES").map_or(25, |cycles| cycles.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice::new(42);
    let mut model = Model::new();
    let (mut next, mut kept, mut lost, mut masters) = (0, 0u64, 0u64, 0);
    for cycle in 0..cycles {
        let lifetime = Duration::from_micros(5_000 + dice.below(60_000));
        let acknowledged = run_and_kill(folder.path(), next, lifetime);
        for n in next..acknowledged.map_or(next, |last| last + 1) {
            apply(&mut model, n);
        }
        next = acknowledged.map_or(next, |last| last + 1);
        let store = Store::open(folder.path(), options().background(false)).unwrap();
        let found: Model = store.scan(..).unwrap().map(Result::unwrap).collect();
        if found == model {
            lost += 1;
        } else {
            // The write under way arrived too; as a whole.
            apply(&mut model, next);
            next += 1;
            kept += 1;
            assert!(found == model, "cycle {cycle}: write {next} and before differ");
        }
        assert_eq!(store.len(), model.len() as u64);
        masters = masters.max(store.stat().generation);
        if cycle % 10 == 0 {
            store.verify(|_| {}).unwrap();
        }
    }
    println!(
        "kill -9: {cycles} cycles, {next} writes, {masters} generations; the write under way \
         was there {kept} times, and not {lost} times"
    );
}
