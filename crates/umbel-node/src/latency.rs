//! A histogram of durations that threads update without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in seconds: they start at 10 µs and grow by a factor of four; the
/// last bucket has none.
pub(crate) const BOUNDS: [f64; 11] = [
    1e-5,
    4e-5,
    1.6e-4,
    6.4e-4,
    2.56e-3,
    1.024e-2,
    4.096e-2,
    0.163_84,
    0.655_36,
    2.621_44,
    f64::INFINITY,
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    counts: [AtomicU64; BOUNDS.len()],
    nanoseconds: AtomicU64,
}

/// The values of a histogram at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LatencyReport {
    /// The upper bound of each bucket in seconds, and the number of durations above the previous
    /// bound and up to this one.
    pub(crate) buckets: Vec<(f64, u64)>,
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Latency {
    /// Counts one duration.
    pub(crate) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len() - 1);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only metrics report it"))]
    pub(crate) fn report(&self) -> LatencyReport {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = BOUNDS.into_iter().zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let seconds = self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        LatencyReport { buckets, count, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_in_their_buckets() {
        let latency = Latency::default();
        for micros in [1, 10, 11, 5_000_000] {
            latency.observe(Duration::from_micros(micros));
        }
        let report = latency.report();
        assert_eq!((report.count, report.buckets[0].1, report.buckets[1].1), (4, 2, 1));
        assert_eq!(report.buckets.last().map(|last| last.1), Some(1));
        assert!((report.seconds - 5.000_022).abs() < 1e-9);
    }
}
