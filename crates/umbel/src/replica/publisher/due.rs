//! When an update is due: targets, intervals, and what an update would improve.
//!
//! Called after every change. So it scans all bits only if a cheap bound says that this may be
//! needed.

use std::time::Duration;

use super::super::policy::{DEFAULT_GHOST, Rule};
use super::gap::total_bits;
use super::{Extent, Publisher, Source, WORTHWHILE};
use crate::filter::{ComponentId, CountingFilter};

/// How exactly the policy is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// By a pass over all bits, if the bound says that it may be needed.
    Exact,
    /// By the bound alone.
    Bound,
}

impl Publisher {
    /// Whether an update is due, and how much it is to carry.
    pub(crate) fn due(&mut self, now: Duration, source: &Source<'_>) -> Option<Extent> {
        self.dirty_since?;
        // Whatever its policy, a home must publish after a restart: other hosts drop sets that it
        // does not list.
        if self.is_restart || self.clears_due_at().is_some_and(|at| now >= at) {
            return Some(Extent::Everything);
        }
        let extent = self.broken(now, source, Count::Exact);
        if extent.is_none() {
            self.broken_since = None;
        } else {
            self.broken_since.get_or_insert(now);
            if now >= self.earliest() {
                return extent;
            }
        }
        let is_late = self.adds_due_at().is_some_and(|at| now >= at);
        is_late.then(|| self.extent_of_adds(source))
    }

    /// Records, from bounds alone, that [`Self::due`] should be called; it may still find that
    /// nothing is due.
    pub(crate) fn note_due(&mut self, now: Duration, source: &Source<'_>) {
        if self.dirty_since.is_some() && self.broken(now, source, Count::Bound).is_some() {
            self.broken_since.get_or_insert(now);
        }
    }

    /// Whether the target was broken at the last check.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken_since.is_some()
    }

    /// When to check again if nothing changes before.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.dirty_since?;
        let broken = self.broken_since.map(|_| self.earliest());
        let last = self.last_update.unwrap_or(Duration::ZERO);
        let by_rule = match self.policy.rule {
            Rule::Interval { every } => Some((last + every).max(last + self.shortest())),
            Rule::Budget { .. } => Some(self.paid_until.max(last + self.shortest())),
            _ => None,
        };
        let restarted = self.is_restart.then_some(Duration::ZERO);
        let all = [restarted, self.adds_due_at(), self.clears_due_at(), broken, by_rule];
        all.into_iter().flatten().min()
    }

    /// When members that the copy denies will have waited as long as allowed.
    fn adds_due_at(&self) -> Option<Duration> {
        let longest = self.policy.longest.unwrap_or(self.intervals.longest);
        Some(self.missed_since? + longest)
    }

    /// When bits that are no longer in use will have waited as long as allowed.
    fn clears_due_at(&self) -> Option<Duration> {
        let longest = self.policy.clears.unwrap_or(self.intervals.clears);
        Some(self.clears_since? + longest)
    }

    /// The earliest moment at which a broken target may lead to an update: the shortest interval
    /// after the last update, and a little after the target was first broken, so that a bulk load
    /// is one update.
    fn earliest(&self) -> Duration {
        let shortest = self.shortest();
        let settled = self.broken_since.map_or(Duration::ZERO, |since| since + shortest / 10);
        self.last_update.map_or(settled, |last| settled.max(last + shortest))
    }

    fn shortest(&self) -> Duration {
        self.policy.shortest.unwrap_or(self.intervals.shortest)
    }

    /// Whether the copy claims absent keys more often than promised, and a fresh one would not: the
    /// filter was overfull when it was published, and has moved to a higher rung since.
    fn overclaims(&self, source: &Source<'_>) -> bool {
        self.kept_false_positive > self.promised
            && source.false_positive() < WORTHWHILE * self.kept_false_positive
    }

    /// The extent of an update that is due for added keys: it includes clears if otherwise the
    /// ghost target would be broken before the next update.
    fn extent_of_adds(&self, source: &Source<'_>) -> Extent {
        let items = source.filter.items().max(1) as f64;
        match self.policy.rule {
            Rule::Miss { ghost, .. } if self.tally.ghosts_ahead() as f64 > ghost * items => {
                Extent::Everything
            }
            _ => Extent::Adds,
        }
    }

    /// Whether the policy's target is broken, and the extent of the update that repairs it.
    fn broken(&mut self, now: Duration, source: &Source<'_>, count: Count) -> Option<Extent> {
        let items = source.filter.items().max(1) as f64;
        let (misses, ghosts) = (self.tally.misses() as f64, self.tally.ghosts() as f64);
        match self.policy.rule {
            Rule::Miss { .. } if self.overclaims(source) => Some(Extent::Everything),
            Rule::Miss { ghost, .. } if ghosts > ghost * items => Some(Extent::Everything),
            Rule::Miss { miss, .. } if misses <= miss * items => None,
            Rule::Miss { .. } => Some(self.extent_of_adds(source)),
            Rule::Overall { target, weights } => {
                // If the fresh filter itself breaks the target, an update cannot repair it.
                let fresh = weights.false_positive * source.false_positive();
                let claimed = weights.false_positive * self.kept_false_positive;
                let is_due = |disagreement: f64| {
                    let overall = claimed + weights.disagreement * disagreement;
                    overall > target && fresh < WORTHWHILE * overall
                };
                let due = is_due(self.disagreement_bound(source))
                    && (count == Count::Bound || is_due(self.recount(source).disagreement));
                due.then_some(Extent::Everything)
            }
            Rule::Dirty { share } => {
                let max = share * total_bits(source);
                let due = self.tally.flips.total() as f64 > max
                    && (count == Count::Bound || self.recount(source).flips.total() as f64 > max);
                due.then_some(Extent::Everything)
            }
            Rule::Interval { every } => {
                let last = self.last_update.unwrap_or(Duration::ZERO);
                (now >= last + every).then_some(Extent::Everything)
            }
            Rule::Budget { .. } if now < self.paid_until => None,
            Rule::Budget { .. } if self.overclaims(source) => Some(Extent::Everything),
            Rule::Budget { .. } if self.tally.is_clean() => None,
            Rule::Budget { .. } if ghosts > DEFAULT_GHOST * items => Some(Extent::Everything),
            Rule::Budget { .. } => (misses > 0.0).then_some(Extent::Adds),
            Rule::Manual => None,
        }
    }

    /// An upper bound for the disagreement: assumes that every flip to one since the last exact
    /// count made a dirty bit, and adds up the components. Only for a filter that is published as
    /// it is, as it always is under rules that count bits.
    fn disagreement_bound(&self, source: &Source<'_>) -> f64 {
        let (m, k) = (source.scheme().shape().bits(), source.scheme().shape().hashes());
        let rate = |ones: u64| (ones as f64 / m as f64).powi(k as i32);
        let bound = |(id, component): &(ComponentId, CountingFilter)| {
            let ones = component.bits().ones();
            rate(ones) - rate(ones.saturating_sub(self.tally.flips.ones(*id)))
        };
        source.components().iter().map(bound).sum()
    }
}
