//! How many hosts a rate is planned for, if the plan does not say it: the homes of the set, with
//! some reserve.
//!
//! The planned number is a power of two, at least 4. It doubles when the highest number of homes in
//! the last hour reaches three quarters of it, and halves below a quarter. So hosts that join and
//! leave do not make every set climb and descend.

use std::collections::VecDeque;
use std::time::Duration;

/// How long the highest number of homes is remembered.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// The number of hosts that a set is planned for.
#[derive(Debug, Clone)]
pub struct ExpectedHosts {
    planned: u32,
    /// Numbers of homes with the times at which they were seen. The numbers decrease, so that the
    /// first is the highest.
    seen: VecDeque<(Duration, u32)>,
}

impl ExpectedHosts {
    /// The smallest number that is planned for.
    pub const FEWEST: u32 = 4;

    /// A set of which no home is known yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { planned: Self::FEWEST, seen: VecDeque::new() }
    }

    /// A set that was planned for this many hosts before a restart. For an hour it is not planned
    /// for fewer, because not all homes are known at once.
    #[must_use]
    pub fn remembered(now: Duration, planned: u32) -> Self {
        let planned = planned.clamp(Self::FEWEST, 1 << 30).next_power_of_two();
        Self { planned, seen: VecDeque::from([(now, planned / 2)]) }
    }

    /// Hosts that are planned for.
    #[must_use]
    pub const fn planned(&self) -> u32 {
        self.planned
    }

    /// Records that this many homes have the set now. Returns the planned number if it changed.
    pub fn see(&mut self, now: Duration, homes: u32) -> Option<u32> {
        while self.seen.back().is_some_and(|(_, fewer)| *fewer <= homes) {
            self.seen.pop_back();
        }
        self.seen.push_back((now, homes));
        while self.seen.front().is_some_and(|(then, _)| now.saturating_sub(*then) > REMEMBERED) {
            self.seen.pop_front();
        }
        let max = self.seen.front().map_or(homes, |(_, max)| *max);
        let before = self.planned;
        while u64::from(max) * 4 >= u64::from(self.planned) * 3 && self.planned < 1 << 31 {
            self.planned *= 2;
        }
        while u64::from(max) * 4 < u64::from(self.planned) && self.planned > Self::FEWEST {
            self.planned /= 2;
        }
        (self.planned != before).then_some(self.planned)
    }
}

impl Default for ExpectedHosts {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_doubles_at_three_quarters_and_halves_below_a_quarter() {
        let mut hosts = ExpectedHosts::new();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(hosts.planned(), 4);
        assert_eq!(hosts.see(minutes(0), 2), None);
        assert_eq!(hosts.see(minutes(1), 3), Some(8));
        assert_eq!(hosts.see(minutes(1), 100), Some(256));
        assert_eq!(hosts.see(minutes(2), 10), None, "an hour has not passed");
        assert_eq!(hosts.see(minutes(61), 10), None);
        assert_eq!(hosts.see(minutes(62), 10), Some(32));
        assert_eq!(hosts.see(minutes(200), 1), Some(4));
    }

    #[test]
    fn a_plan_from_before_a_restart_stays_for_an_hour() {
        let mut hosts = ExpectedHosts::remembered(Duration::from_secs(5), 64);
        assert_eq!(hosts.see(Duration::from_secs(6), 1), None);
        assert_eq!(hosts.see(Duration::from_secs(3600), 30), None);
        assert_eq!(hosts.see(Duration::from_secs(3700), 2), None);
        assert_eq!(hosts.see(Duration::from_secs(7300), 2), Some(8));
    }

    #[test]
    fn hosts_that_come_and_go_change_nothing() {
        let mut hosts = ExpectedHosts::new();
        hosts.see(Duration::ZERO, 12);
        for minute in 0..1000 {
            let homes = if minute % 50 == 0 { 12 } else { 5 + minute as u32 % 7 };
            assert_eq!(hosts.see(Duration::from_secs(60 * minute), homes), None);
        }
        assert!(hosts.seen.len() < 13);
    }
}
