//! Slows down whoever guesses passwords.
//!
//! After some failures, a source's attempts stand in a queue of their own with growing
//! distances; one that would have to stand too long is refused at once. Others do not wait.
//!
//! Always true: no more than [`Throttle::SOURCES`] sources are remembered, whoever they are.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Failures by source.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    sources: HashMap<IpAddr, Failures>,
}

#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// When the next attempt may be made.
    next: Instant,
}

impl Throttle {
    /// Sources remembered; beyond, the one is forgotten that has not failed for longest.
    const SOURCES: usize = 4096;
    /// Failures that cost nothing: people mistype.
    const FREE: u32 = 3;
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(10);
    /// A source that has not failed for so long is as good as new.
    const FORGIVEN: Duration = Duration::from_secs(600);

    /// How long an attempt must wait; `None`: too long, it is refused. Whoever waits has its
    /// place in the queue from now on.
    pub(super) fn wait(&mut self, source: IpAddr, now: Instant) -> Option<Duration> {
        let Some(failures) = self.sources.get_mut(&site(source)) else {
            return Some(Duration::ZERO);
        };
        if now.duration_since(failures.last) >= Self::FORGIVEN {
            self.sources.remove(&site(source));
            return Some(Duration::ZERO);
        }
        let wait = failures.next.saturating_duration_since(now);
        if wait > Self::LONGEST {
            return None;
        }
        failures.next = now + wait + distance(failures.count);
        Some(wait)
    }

    pub(super) fn failed(&mut self, source: IpAddr, now: Instant) {
        let site = site(source);
        if self.sources.len() >= Self::SOURCES && !self.sources.contains_key(&site) {
            let oldest = self.sources.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(source, _)| *source) {
                self.sources.remove(&oldest);
            }
        }
        let new = || Failures { count: 0, last: now, next: now };
        let failures = self.sources.entry(site).or_insert_with(new);
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.next = failures.next.max(now + distance(failures.count));
    }

    pub(super) fn succeeded(&mut self, source: IpAddr) {
        self.sources.remove(&site(source));
    }
}

/// From one attempt to the next, after so many failures.
fn distance(failures: u32) -> Duration {
    match failures.checked_sub(Throttle::FREE) {
        None | Some(0) => Duration::ZERO,
        Some(more) => (Throttle::FIRST * 2_u32.pow((more - 1).min(10))).min(Throttle::LONGEST),
    }
}

/// Whoever has an IPv6 address has the whole /64 around it.
fn site(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 7));
    const NEXT_DOOR: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 1, 9, 9, 9, 9));
    const ELSEWHERE: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 7));

    #[test]
    fn waits_grow_for_the_source_that_fails_and_for_no_other() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        for _ in 0..3 {
            assert_eq!(throttle.wait(HERE, now), Some(Duration::ZERO));
            throttle.failed(HERE, now);
        }
        assert_eq!(throttle.wait(HERE, now), Some(Duration::ZERO));
        throttle.failed(HERE, now);
        assert_eq!(throttle.wait(NEXT_DOOR, now), Some(Duration::from_millis(250)));
        assert_eq!(throttle.wait(ELSEWHERE, now), Some(Duration::ZERO));
        (0..8).for_each(|_| throttle.failed(HERE, now));
        // Many at once do not share one wait, and the queue has an end.
        let waits: Vec<_> = (0..5).map(|_| throttle.wait(HERE, now)).collect();
        assert_eq!(waits.iter().flatten().count(), 1, "{waits:?}");
        assert_eq!(throttle.wait(HERE, now + Throttle::FORGIVEN), Some(Duration::ZERO));
        throttle.failed(HERE, now);
        throttle.succeeded(NEXT_DOOR);
        assert!(throttle.sources.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        for number in 0..10_000_u32 {
            let now = start + Duration::from_millis(number.into());
            throttle.failed(IpAddr::V4(number.into()), now);
        }
        assert_eq!(throttle.sources.len(), Throttle::SOURCES);
        assert!(throttle.sources.contains_key(&IpAddr::V4(9_999.into())), "the newest stays");
    }
}
