//! What is requested of a home at the same time, and when it is requested again.
//!
//! Always true: at most [`WINDOW`] requests are under way.

use std::collections::BTreeMap;
use std::time::Duration;

/// Requests that are under way at the same time.
const WINDOW: usize = 4;

/// Numbers of pages or parts that were requested.
#[derive(Debug)]
pub(crate) struct Window {
    /// When to request each again.
    requested: BTreeMap<u64, Duration>,
    tries: u32,
}

impl Window {
    pub(crate) const fn new() -> Self {
        Self { requested: BTreeMap::new(), tries: 0 }
    }

    /// Which of the missing ones to request now. `patience` gives, for the number of tries so far,
    /// how long to wait for a reply.
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

    /// A reply is here: whoever replies is not in want of patience.
    pub(crate) fn arrived(&mut self, number: u64) {
        self.requested.remove(&number);
        self.tries = 0;
    }

    /// What is under way is of no use any more.
    pub(crate) fn restart(&mut self) {
        self.requested.clear();
    }

    /// What arrived was wrong: begin again, more patiently.
    pub(crate) fn failed(&mut self) {
        self.requested.clear();
        self.tries += 1;
    }

    /// When to request something again.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.requested.values().min().copied()
    }
}
