//! The last minutes of some sets: what the charts show.
//!
//! Own sets with the most keys come first; sets that somebody looks at are kept as well. Memory is
//! bounded: at most [`MAX_SETS`] sets with [`MAX_POINTS`] points each.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::dirty_rule::DirtyRule;
use crate::Host;
use crate::host::SetReport;

/// Interval between two points.
pub(super) const EVERY: Duration = Duration::from_millis(500);
/// Maximum number of points per set: five minutes.
const MAX_POINTS: usize = 600;
/// Maximum number of sets with a history.
const MAX_SETS: usize = 24;
/// How many of these may be sets that are kept only because somebody looked at them.
const MAX_WANTED: usize = 8;
/// Larger filters are compared with their published copy only on the set's page.
const MAX_COMPARED_BITS: u64 = 1 << 20;
/// Points between two choices of sets once there are [`MAX_SETS`] (before, new sets are noticed with
/// the next point), and between two comparisons of filters.
const CHOOSE_EVERY: u64 = 20;
const COMPARE_EVERY: u64 = 2;

/// The columns of a point, in order. Counters start with the host.
pub(super) const COLUMNS: [&str; 15] = [
    "t",
    "items",
    "miss",
    "ghost",
    "false_positive",
    "disagreement",
    "members_sampled",
    "members_denied",
    "late_lookups",
    "updates",
    "bytes",
    "full_bytes",
    "rule_bytes",
    "rule_max_miss",
    "received_bytes",
];

/// One set at one moment; unknown values are `None`.
pub(super) type Point = [Option<f64>; COLUMNS.len()];

/// The history of some sets.
#[derive(Debug, Default)]
pub(super) struct History {
    tracks: BTreeMap<String, Track>,
    /// Sets that somebody looked at, the latest last.
    wanted: VecDeque<String>,
    round: u64,
}

#[derive(Debug, Default)]
struct Track {
    points: VecDeque<Point>,
    rule: DirtyRule,
    disagreement: Option<f64>,
}

/// One set's history, as it is sent to the browser.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    columns: [&'static str; COLUMNS.len()],
    points: Vec<Vec<Option<f64>>>,
}

impl History {
    /// Takes and returns one more point of every set.
    pub(super) fn sample(&mut self, host: &Host) -> Vec<(String, Point)> {
        if self.tracks.len() < MAX_SETS || self.round.is_multiple_of(CHOOSE_EVERY) {
            self.choose(host);
        }
        let compares = self.round.is_multiple_of(COMPARE_EVERY);
        self.round += 1;
        let t = host.inner.now().as_secs_f64();
        let mut taken = Vec::with_capacity(self.tracks.len());
        self.tracks.retain(|name, track| {
            let Ok(report) = host.report_set(name, &mut |_, _| ()) else { return false };
            let bits = report.info.bits.unwrap_or(0);
            if compares && report.info.own && bits <= MAX_COMPARED_BITS {
                track.disagreement = host.disagreement(name);
            }
            let point = track.take(t, &report);
            taken.push((name.clone(), point));
            true
        });
        taken
    }

    /// Keeps the history of this set from now on, whatever its size.
    pub(super) fn want(&mut self, set: &str) {
        self.wanted.retain(|other| other != set);
        self.wanted.push_back(set.to_owned());
        if self.wanted.len() > MAX_WANTED {
            self.wanted.pop_front();
        }
        let others = self.tracks.len();
        if others < MAX_SETS {
            self.tracks.entry(set.to_owned()).or_default();
        } else {
            // The sets are chosen again with the next point.
            self.round = self.round.next_multiple_of(CHOOSE_EVERY);
        }
    }

    /// The last minutes of a set.
    pub(super) fn series(&self, set: &str) -> Series {
        let points = self.tracks.get(set).map(|track| &track.points);
        let points = points.into_iter().flatten().map(|point| point.to_vec()).collect();
        Series { columns: COLUMNS, points }
    }

    /// The sets that have a history.
    pub(super) fn names(&self) -> Vec<String> {
        self.tracks.keys().cloned().collect()
    }

    /// Chooses the sets to keep: those that were looked at, and the largest own ones.
    fn choose(&mut self, host: &Host) {
        self.wanted.retain(|set| host.knows(set));
        let mut chosen: Vec<String> = self.wanted.iter().cloned().collect();
        for set in host.notable_sets(MAX_SETS) {
            if chosen.len() < MAX_SETS && !chosen.contains(&set) {
                chosen.push(set);
            }
        }
        self.tracks.retain(|set, _| chosen.contains(set));
        for set in chosen {
            self.tracks.entry(set).or_default();
        }
    }
}

impl Track {
    fn take(&mut self, t: f64, report: &SetReport) -> Point {
        let info = &report.info;
        if let Some(own) = &report.own {
            self.rule.observe(own.shape, info.items, own.changed);
        }
        let own = report.own.is_some();
        let count = |number: u64| Some(number as f64);
        let of_own = |number: f64| own.then_some(number);
        let point = [
            Some((t * 1000.0).round() / 1000.0),
            count(info.items_everywhere),
            info.miss,
            info.ghost,
            info.estimated_false_positive,
            self.disagreement.filter(|_| own),
            count(report.members_sampled),
            count(report.members_denied),
            count(info.late_lookups),
            of_own(info.updates_sent as f64),
            of_own(info.bytes_sent as f64),
            of_own(info.full_broadcast_bytes as f64),
            of_own(self.rule.bytes.round()),
            of_own(self.rule.max_miss),
            count(info.bytes_received),
        ];
        // Six digits are more than a chart can show.
        let point = point.map(|number| number.map(rounded));
        if self.points.len() >= MAX_POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
        point
    }
}

/// A number rounded to six significant digits; integers stay as they are.
fn rounded(number: f64) -> f64 {
    if number == 0.0 || number.fract() == 0.0 || !number.is_finite() {
        return number;
    }
    let scale = 10_f64.powi(5 - number.abs().log10().floor() as i32);
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits_and_counts_all() {
        for (number, short) in [
            (0.0, 0.0),
            (123_456_789.0, 123_456_789.0),
            (0.001_234_567_89, 0.001_234_57),
            (2.345_678_912, 2.345_68),
        ] {
            assert!((rounded(number) - short).abs() < 1e-12, "{number}");
        }
    }
}
