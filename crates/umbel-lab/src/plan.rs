//! The size of an experiment: seed, trials, keys asked; and the bench that runs the trials.
//!
//! A trial depends only on its own stream of random numbers, and results are kept in the order of
//! trials. So neither the number of threads nor their timing affects a report.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::random::Random;

/// The size of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    seed: u64,
    trials: u64,
    asked: usize,
    threads: usize,
}

impl Plan {
    const FULL_ASKED: usize = 100_000;

    /// Twenty trials of 100,000 random keys each, as many as in the papers. Quoted results come
    /// from this plan.
    #[must_use]
    pub fn full(seed: u64) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { seed, trials: 20, asked: Self::FULL_ASKED, threads }
    }

    /// Three trials of 5,000 keys: shows that an experiment runs, not what it finds.
    #[must_use]
    pub fn reduced(seed: u64) -> Self {
        Self { trials: 3, asked: 5_000, ..Self::full(seed) }
    }

    /// The same on this many threads, at least one; reports do not depend on it.
    #[must_use]
    pub const fn with_threads(self, threads: usize) -> Self {
        Self { threads: if threads == 0 { 1 } else { threads }, ..self }
    }

    /// Number of trials, each with its own seed.
    #[must_use]
    pub const fn trials(&self) -> u64 {
        self.trials
    }

    /// Random keys asked in each trial.
    #[must_use]
    pub const fn asked(&self) -> usize {
        self.asked
    }
}

/// How a rate was sampled: the same number of random keys in every trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampling {
    pub(crate) seeds: u64,
    /// Random keys asked in each trial.
    pub(crate) asked: usize,
}

/// Receives the progress of an experiment.
pub trait Progress: Sync {
    /// An experiment of this many trials begins.
    fn begin(&self, name: &str, trials: u64);
    /// A trial is done.
    fn trial_done(&self);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn trial_done(&self) {}
}

/// Runs the trials of an experiment.
pub(crate) struct Bench<'a> {
    experiment: &'a str,
    plan: &'a Plan,
    progress: &'a dyn Progress,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(experiment: &'a str, plan: &'a Plan, progress: &'a dyn Progress) -> Self {
        Self { experiment, plan, progress }
    }

    /// Random keys asked in each trial.
    pub(crate) const fn asked(&self) -> usize {
        self.plan.asked
    }

    /// How often something is done in a trial that is done `full` times in a full plan: a
    /// tenth of that, at least once, in a reduced one.
    pub(crate) const fn times(&self, full: u64) -> u64 {
        let tenth = if full < 10 { 1 } else { full / 10 };
        if self.plan.asked < Plan::FULL_ASKED { tenth } else { full }
    }

    /// How many trials there are.
    pub(crate) const fn seeds(&self) -> u64 {
        self.plan.trials
    }

    /// The sampling from which rates over random keys are computed.
    pub(crate) const fn sampling(&self) -> Sampling {
        Sampling { seeds: self.seeds(), asked: self.asked() }
    }

    /// Runs every trial of the plan, and returns the results in the order of trials.
    pub(crate) fn trials<T: Send>(&self, trial: impl Fn(Random) -> T + Sync) -> Vec<T> {
        let empty = || Mutex::new(None);
        let results: Vec<Mutex<Option<T>>> =
            std::iter::repeat_with(empty).take(self.plan.trials as usize).collect();
        self.run(&|number| {
            let result = trial(Random::of_trial(self.plan.seed, self.experiment, number));
            *results[number as usize].lock().expect("no trial panics under the lock") =
                Some(result);
        });
        let result = |slot: Mutex<Option<T>>| slot.into_inner().ok().flatten();
        results.into_iter().map(|slot| result(slot).expect("every trial was run")).collect()
    }

    /// Runs every trial once, by its number. Not generic, so that it is compiled once instead of
    /// once per experiment.
    fn run(&self, trial: &(dyn Fn(u64) + Sync)) {
        self.progress.begin(self.experiment, self.plan.trials);
        let next = AtomicU64::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.plan.trials {
                    return;
                }
                trial(number);
                self.progress.trial_done();
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.plan.threads {
                scope.spawn(work);
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_trials_on_any_number_of_threads() {
        let on = |threads| {
            let plan = Plan::full(7).with_threads(threads);
            Bench::new("order", &plan, &Silent).trials(|mut random| random.next())
        };
        assert_eq!(on(1).len(), 20);
        assert_eq!(on(1), on(3));
        assert_eq!(on(0), on(32));
    }
}
