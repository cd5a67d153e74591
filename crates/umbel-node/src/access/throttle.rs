//! Delays for sources that guess passwords.
//!
//! After some failures, each attempt from a source is delayed, longer with every further failure;
//! an attempt that has waited too long already is refused. Other sources are not delayed.
//!
//! Always true: at most [`Throttle::SOURCES`] sources are remembered.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Failures per source.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    sources: HashMap<IpAddr, Failures>,
}

#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// When the next attempt is allowed.
    next: Instant,
}

impl Throttle {
    /// Maximum number of sources; beyond it the one whose last failure is oldest is dropped.
    const SOURCES: usize = 4096;
    /// Failures without a delay: people mistype.
    const FREE: u32 = 3;
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(10);
    /// After this time without a failure a source is forgiven.
    const FORGIVEN: Duration = Duration::from_secs(600);

    /// How long an attempt must wait that arrived at `arrived` and has its turn now; `None`: it is
    /// refused, because it arrived too long ago.
    pub(super) fn wait(
        &mut self,
        source: IpAddr,
        arrived: Instant,
        now: Instant,
    ) -> Option<Duration> {
        let Some(failures) = self.sources.get(&source) else { return Some(Duration::ZERO) };
        if now.duration_since(failures.last) >= Self::FORGIVEN {
            self.sources.remove(&source);
            return Some(Duration::ZERO);
        }
        let waits = failures.count > Self::FREE;
        let has_waited = now.duration_since(arrived) > Self::LONGEST;
        (!(waits && has_waited)).then(|| failures.next.saturating_duration_since(now))
    }

    /// Whether a source has failed and is not forgiven.
    pub(super) fn has_failed(&self, source: IpAddr) -> bool {
        self.sources.contains_key(&source)
    }

    pub(super) fn failed(&mut self, source: IpAddr, now: Instant) {
        if self.sources.len() >= Self::SOURCES && !self.sources.contains_key(&source) {
            let oldest = self.sources.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(oldest, _)| *oldest) {
                self.sources.remove(&oldest);
            }
        }
        let new = || Failures { count: 0, last: now, next: now };
        let failures = self.sources.entry(source).or_insert_with(new);
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.next = now + distance(failures.count);
    }
}

/// The interval between two attempts after this many failures.
fn distance(failures: u32) -> Duration {
    match failures.checked_sub(Throttle::FREE) {
        None | Some(0) => Duration::ZERO,
        Some(more) => (Throttle::FIRST * 2_u32.pow((more - 1).min(10))).min(Throttle::LONGEST),
    }
}

/// The source that an address belongs to: an IPv6 address counts as its /64 network.
pub(super) fn site(source: IpAddr) -> IpAddr {
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
        let ms = |ms| Some(Duration::from_millis(ms));
        for _ in 0..3 {
            assert_eq!(throttle.wait(site(HERE), now, now), ms(0));
            throttle.failed(site(HERE), now);
        }
        assert_eq!(throttle.wait(site(HERE), now, now), ms(0));
        assert!(throttle.has_failed(site(HERE)) && !throttle.has_failed(site(ELSEWHERE)));
        for wait in [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            throttle.failed(site(HERE), now);
            assert_eq!(throttle.wait(site(NEXT_DOOR), now, now), ms(wait));
        }
        assert_eq!(throttle.wait(site(ELSEWHERE), now, now), ms(0));
        let later = now + Throttle::LONGEST + Duration::from_millis(1);
        assert_eq!(throttle.wait(site(HERE), now, later), None, "it came too long ago");
        assert_eq!(throttle.wait(site(HERE), later, later), ms(0));
        let forgiven = now + Throttle::FORGIVEN;
        assert_eq!(throttle.wait(site(HERE), now, forgiven), ms(0));
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
