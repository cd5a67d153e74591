//! How long a replica has been older than what its home announced.
//!
//! Always true: the entries are epochs that were announced but have not arrived, oldest first, each
//! with the time of its announcement. At most [`MAX_EPOCHS`] are kept, the oldest ones.

use std::collections::VecDeque;
use std::time::Duration;

use super::Epoch;

/// The most epochs whose times are remembered. Further epochs are not needed: the oldest one
/// decides how late a replica is.
const MAX_EPOCHS: usize = 32;

/// The epochs that were announced but have not arrived.
#[derive(Debug, Default)]
pub(crate) struct Lag(VecDeque<(Epoch, Duration)>);

impl Lag {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// An epoch was announced that has not arrived.
    pub(crate) fn announced(&mut self, now: Duration, epoch: Epoch) {
        let is_newest = self.0.back().is_none_or(|(newest, _)| *newest < epoch);
        if is_newest && self.0.len() < MAX_EPOCHS {
            self.0.push_back((epoch, now));
        }
    }

    /// An epoch and all epochs before it have arrived.
    pub(crate) fn arrived(&mut self, epoch: Epoch) {
        while self.0.front().is_some_and(|(oldest, _)| *oldest <= epoch) {
            self.0.pop_front();
        }
    }

    /// When the oldest missing epoch was announced.
    pub(crate) fn since(&self) -> Option<Duration> {
        self.0.front().map(|(_, since)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_late_since_the_oldest_epoch_that_it_lacks() {
        let seconds = Duration::from_secs;
        let mut lag = Lag::new();
        assert_eq!(lag.since(), None);
        lag.announced(seconds(1), Epoch(5));
        lag.announced(seconds(2), Epoch(6));
        lag.announced(seconds(3), Epoch(6));
        assert_eq!(lag.since(), Some(seconds(1)));
        lag.arrived(Epoch(5));
        assert_eq!(lag.since(), Some(seconds(2)), "it follows, one behind");
        lag.announced(seconds(4), Epoch(9));
        lag.arrived(Epoch(7));
        assert_eq!(lag.since(), Some(seconds(4)));
        lag.arrived(Epoch(9));
        assert_eq!(lag.since(), None);
    }

    #[test]
    fn a_replica_that_never_follows_costs_little_and_stays_late() {
        let mut lag = Lag::new();
        for epoch in 0..1000 {
            lag.announced(Duration::from_secs(epoch), Epoch(epoch));
        }
        assert_eq!((lag.0.len(), lag.since()), (MAX_EPOCHS, Some(Duration::ZERO)));
        lag.arrived(Epoch(2000));
        assert_eq!(lag.since(), None);
    }
}
