//! The threads of a host under schedules that a scheduler chooses: real sets, engines and banks, whose
//! every lock and atomic access is a place where another thread may go on.
//!
//! A failure prints the schedule; `shuttle::replay` repeats it. `UMBEL_MODEL=N` runs N schedules of
//! every test instead of the few of CI (`cargo xtask model`).
//!
//! Not explored: orderings of memory weaker than sequential consistency, and the host's own threads
//! and queues (`umbel-node`), for which closures stand here.

mod banks;
mod budgets;
mod pair;
mod swap;

use std::time::{SystemTime, UNIX_EPOCH};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

/// Schedules of each kind of every test in CI.
const SCHEDULES: usize = 150;
/// Points at which a thread loses its priority, where priorities choose who runs.
const DEPTH: usize = 3;

/// Runs a model under random schedules, and under schedules by random priorities, which find other
/// mistakes. CI runs the same schedules each time; longer runs others each time.
fn explore(model: fn()) {
    let given = std::env::var("UMBEL_MODEL").ok().map(|text| text.parse().expect("a number"));
    let schedules = given.unwrap_or(SCHEDULES);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = if given.is_some() { since.as_nanos() as u64 } else { 1 };
    println!("{schedules} schedules of each kind, seed {seed}");
    run(RandomScheduler::new_from_seed(seed, schedules), model);
    run(PctScheduler::new_from_seed(seed, DEPTH, schedules), model);
}

fn run(scheduler: impl Scheduler + 'static, model: fn()) {
    let mut config = Config::new();
    // Engines publish on the stacks of these threads.
    config.stack_size = 1 << 20;
    config.failure_persistence = FailurePersistence::Print;
    Runner::new(scheduler, config).run(model);
}
