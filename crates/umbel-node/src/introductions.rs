//! When a host asks another one for the list of hosts that it knows.
//!
//! Every greeting carries a digest of the hosts that its sender knows. While the digest of any host
//! differs from this host's, one of those hosts is asked for its list, after a pause that doubles
//! as long as nothing changes. So hosts that were given different peers still find each other, and
//! a cluster in which all hosts know each other sends no such requests.

use std::time::Duration;

use umbel::replica::Name;

/// The first and the longest pause.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// Decides when to ask, and which host.
#[derive(Debug)]
pub(crate) struct Introductions {
    /// This host's digest when the last request was planned.
    digest: Option<String>,
    pause: Duration,
    next: Option<Duration>,
    random: u64,
}

impl Introductions {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { digest: None, pause: FIRST, next: None, random: seed }
    }

    /// Plans a request if the digests of some hosts differ from this host's.
    pub(crate) fn heard(&mut self, now: Duration, own: Option<&str>, is_different: bool) {
        if self.digest.as_deref() != own {
            self.digest = own.map(str::to_owned);
            self.pause = FIRST;
        }
        if is_different && self.next.is_none() {
            let jitter = self.random();
            self.next = Some(now + self.pause.mul_f64(1.0 + jitter));
            self.pause = (self.pause * 2).min(LONGEST);
        }
    }

    /// When the next request is due.
    pub(crate) fn next(&self) -> Duration {
        self.next.unwrap_or(Duration::MAX)
    }

    /// The host to ask now, among those that know others.
    pub(crate) fn due(&mut self, now: Duration, different: &[Name]) -> Option<Name> {
        if now < self.next() {
            return None;
        }
        self.next = None;
        let place = self.random() * different.len() as f64;
        different.get(place as usize).cloned()
    }

    /// A random number from 0 (inclusive) to 1 (exclusive).
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 40) as f64 / (1u64 << 24) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_ever_less_often_until_something_changes() {
        let mut introductions = Introductions::new(7);
        let hosts = ["fern", "lily"].map(|name| Name::new(name).unwrap());
        assert_eq!(introductions.next(), Duration::MAX);
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            introductions.heard(now, Some("2-a"), true);
            introductions.heard(now, Some("2-a"), true);
            pauses.push(introductions.next() - now);
            now = introductions.next();
            assert!(introductions.due(now - Duration::from_millis(1), &hosts).is_none());
            assert!(hosts.contains(&introductions.due(now, &hosts).unwrap()));
        }
        assert!(pauses[0] < FIRST * 2 && pauses[9] >= LONGEST && pauses[9] < LONGEST * 2);
        introductions.heard(now, Some("3-b"), true);
        assert!(introductions.next() - now < FIRST * 2, "another host is known: soon again");
        now = introductions.next();
        assert_eq!(introductions.due(now, &[]), None, "by then everybody agrees");
    }
}
