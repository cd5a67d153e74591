//! Compares update policies on the same history.
//!
//! A [`History`] contains who adds, removes and queries which key, and when; it never depends on a
//! policy. [`compare`] replays it once per policy, with the same homes that real hosts run. An
//! update arrives the moment it is sent, so every receiver answers from the published copy.
//!
//! Always true: the same history, setting and policies give the same outcomes to the last
//! digit, on any number of threads. The miss rate is each home's exact count, taken after every
//! single change.
//!
//! Not here: messages that are late or lost (`faults`); files and terminals (`umbel-cli`).

mod equal_miss;
mod event;
pub(crate) mod habits;
mod history;
mod hosts;
mod ids;
mod lines;
mod lru;
mod synthetic;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_against_forms;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use umbel::params::ParamError;
use umbel::replica::{Intervals, Policy, SetPlan};

pub use equal_miss::{EqualMiss, at_equal_miss};
pub use history::History;
use hosts::Hosts;
pub(crate) use ids::Ids;
pub use lines::LineError;
pub(crate) use lru::{Lru, Request};
pub use synthetic::Synthetic;

/// What all policies have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Probability that one lookup of an absent key names any wrong host.
    pub false_positive: f64,
    /// Keys that each host is planned for; `None` means the history decides.
    pub capacity: Option<u64>,
    /// Whether updates may contain added keys as digests.
    pub by_digests: bool,
    /// Default intervals of updates, if a policy does not set them.
    pub intervals: Intervals,
    /// Seed of the filters' hash.
    pub seed: u64,
}

impl Default for Setting {
    fn default() -> Self {
        let SetPlan { false_positive, by_digests, .. } = SetPlan::default();
        Self {
            false_positive,
            capacity: None,
            by_digests,
            intervals: Intervals { shortest: Duration::ZERO, ..Intervals::default() },
            seed: 1,
        }
    }
}

impl Setting {
    fn plan(&self, history: &History, policy: Policy) -> SetPlan {
        SetPlan {
            false_positive: self.false_positive,
            expected_hosts: Some(history.hosts() as u32),
            capacity: Some(self.capacity.unwrap_or_else(|| history.items())),
            policy,
            by_digests: self.by_digests,
            chains: None,
        }
    }
}

/// Results of a history under one policy, all hosts together.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Outcome {
    /// The policy.
    pub policy: String,
    /// Updates sent.
    pub updates: u64,
    /// Their bytes, headers included, each update counted once: as sent to one receiver.
    pub bytes: u64,
    /// Bytes of the same updates as whole plain filters.
    pub full_broadcast_bytes: u64,
    /// Share of a host's members that its published copy denies: mean over hosts and seconds.
    pub mean_miss: f64,
    /// The maximum of the same, taken after every change.
    pub max_miss: f64,
    /// The published copies' false positive rate: mean over hosts and seconds.
    pub mean_false_positive: f64,
    /// Number of lookups: a host asked for a key that it does not have itself.
    pub lookups: u64,
    /// Lookups that named a host that holds the key.
    pub remote_hits: u64,
    /// Lookups that named none although some host holds the key.
    pub missed_remote_hits: u64,
    /// Their share of the lookups of keys that another host has; `None` without such lookups.
    pub lookups_missed: Option<f64>,
    /// Number of hosts named that do not have the key, in all lookups together.
    pub false_probes: u64,
}

/// Replays a history under each policy, on all cores; calls `second` after every second under each
/// of them, [`History::seconds`] times per policy.
///
/// # Errors
/// If a number of the setting is outside its range, or there is no memory.
pub fn compare(
    history: &History,
    setting: &Setting,
    policies: &[Policy],
    second: impl Fn() + Sync,
) -> Result<Vec<Outcome>, ParamError> {
    let runs: Vec<_> = policies.iter().map(|policy| (*policy, *setting)).collect();
    replay_all(history, &runs, second)
}

/// Replays a history for each policy and setting; outcomes in the same order.
fn replay_all(
    history: &History,
    runs: &[(Policy, Setting)],
    second: impl Fn() + Sync,
) -> Result<Vec<Outcome>, ParamError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some((number, (policy, setting))) = claim(&next, runs) {
            let outcome = replay(history, setting, *policy, &second);
            done.lock().expect("no replay panics under the lock").push((number, outcome));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 1..threads.min(runs.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().expect("no replay panics under the lock");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The next run that no thread has taken.
fn claim<'a, T>(next: &AtomicUsize, runs: &'a [T]) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, runs.get(number)?))
}

pub(crate) fn replay(
    history: &History,
    setting: &Setting,
    policy: Policy,
    second: &impl Fn(),
) -> Result<Outcome, ParamError> {
    let mut hosts = Hosts::new(history.hosts(), setting.plan(history, policy), setting)?;
    history.replay(|event| {
        hosts.happen(event);
        if event == event::Event::SecondPassed {
            second();
        }
    });
    Ok(hosts.outcome())
}
