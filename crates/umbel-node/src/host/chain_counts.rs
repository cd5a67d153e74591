//! Chain queries per set: the depth of the deepest host, and how long the query took.
//!
//! Always true: memory per set is bounded, and allocated by the first query.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Chain queries of one set.
#[derive(Debug, Default)]
pub(super) struct ChainCounts {
    /// Empty until the first chain query: most sets get none.
    asked: OnceLock<Box<Asked>>,
}

#[derive(Debug, Default)]
struct Asked {
    depth: Histogram,
    nanos: Histogram,
}

/// A histogram: each bucket ends at four times the end of the previous one.
#[derive(Debug, Default)]
struct Histogram {
    counts: [AtomicU64; RANGES + 1],
    sum: AtomicU64,
}

/// Buckets with an upper end; one more counts all larger values.
const RANGES: usize = 10;

/// The upper end of the first bucket: of depths in keys, of times in nanoseconds.
const FIRST_DEPTH: u64 = 1;
const FIRST_NANOS: u64 = 1000;

/// A histogram for reports: the upper end of each bucket with the number of values up to it; the
/// last bucket has no end.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only metrics report it"))]
pub(crate) struct Distribution {
    pub(crate) sum: f64,
    pub(crate) count: u64,
    pub(crate) ranges: Vec<(f64, u64)>,
}

impl Histogram {
    fn note(&self, value: u64, first: u64) {
        let range = (0..RANGES).position(|range| value <= first << (2 * range));
        self.counts[range.unwrap_or(RANGES)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    #[cfg(feature = "http")]
    fn distribution(&self, first: u64, unit: f64) -> Distribution {
        let end = |range: usize| match range {
            RANGES => f64::INFINITY,
            range => (first << (2 * range)) as f64 * unit,
        };
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let ranges: Vec<_> = counts.enumerate().map(|(range, count)| (end(range), count)).collect();
        let count = ranges.iter().map(|(_, count)| count).sum();
        Distribution { sum: self.sum.load(Ordering::Relaxed) as f64 * unit, count, ranges }
    }
}

impl ChainCounts {
    /// Counts one query: the depth of the deepest host, and how long it took.
    pub(super) fn note(&self, deepest: u32, time: Duration) {
        let asked = self.asked.get_or_init(Box::default);
        asked.depth.note(deepest.into(), FIRST_DEPTH);
        asked.nanos.note(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), FIRST_NANOS);
    }

    /// Queries so far.
    pub(super) fn count(&self) -> u64 {
        self.asked.get().map_or(0, |asked| asked.depth.count())
    }

    /// Depths in keys and times in seconds; `None` if there was no query yet.
    #[cfg(feature = "http")]
    pub(super) fn distributions(&self) -> Option<[Distribution; 2]> {
        let asked = self.asked.get()?;
        Some([
            asked.depth.distribution(FIRST_DEPTH, 1.0),
            asked.nanos.distribution(FIRST_NANOS, 1e-9),
        ])
    }
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_counted_in_one_range() {
        let counts = ChainCounts::default();
        assert_eq!((counts.count(), counts.distributions()), (0, None));
        for depth in [0, 1, 2, 4, 5, 400, 262_144, u32::MAX] {
            counts.note(depth, Duration::from_micros(u64::from(depth)));
        }
        let [depths, seconds] = counts.distributions().unwrap();
        assert_eq!((depths.count, seconds.count, counts.count()), (8, 8, 8));
        let counted: Vec<u64> = depths.ranges.iter().map(|(_, count)| *count).collect();
        assert_eq!(counted, [2, 2, 1, 0, 0, 1, 0, 0, 0, 1, 1]);
        assert_eq!((depths.ranges[0].0, depths.ranges[9].0), (1.0, 262_144.0));
        assert!((seconds.ranges[1].0 - 4e-6).abs() < 1e-12);
        assert!((seconds.sum - 4295.23).abs() < 0.1, "{}", seconds.sum);
    }
}
