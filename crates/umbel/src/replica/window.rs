//! Limits how many requests to a home are in flight, and decides when to retry.
//!
//! Always true: at most [`WINDOW`] requests are in flight.

use std::collections::BTreeMap;
use std::time::Duration;

/// The most requests that are in flight at the same time.
const WINDOW: usize = 4;

/// Numbers of pages or parts that were requested.
#[derive(Debug)]
pub(crate) struct Window {
    /// For each, when to retry.
    requested: BTreeMap<u64, Duration>,
    tries: u32,
}

impl Window {
    pub(crate) const fn new() -> Self {
        Self { requested: BTreeMap::new(), tries: 0 }
    }

    /// Which of the missing numbers to request now. `patience` returns how long to wait for a
    /// reply, given the number of tries so far.
    pub(crate) fn open(
        &mut self,
        now: Duration,
        missing: impl Iterator<Item = u64>,
        patience: impl Fn(u32) -> Duration,
    ) -> Vec<u64> {
        let before = self.requested.len();
        self.requested.retain(|_, until| now < *until);
        self.tries += u32::from(self.requested.len() < before);
        let room = WINDOW - self.requested.len();
        let missing = missing.filter(|number| !self.requested.contains_key(number));
        let numbers: Vec<u64> = missing.take(room).collect();
        let until = now + patience(self.tries);
        self.requested.extend(numbers.iter().map(|number| (*number, until)));
        numbers
    }

    /// A reply arrived: the home responds, so the next wait is short again.
    pub(crate) fn arrived(&mut self, number: u64) {
        self.requested.remove(&number);
        self.tries = 0;
    }

    /// Forgets all requests in flight: their replies are no longer needed.
    pub(crate) fn restart(&mut self) {
        self.requested.clear();
    }

    /// What arrived was wrong: start again, with a longer wait.
    pub(crate) fn failed(&mut self) {
        self.requested.clear();
        self.tries += 1;
    }

    /// When the next retry is due.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.requested.values().min().copied()
    }
}
