//! When an update is due: targets, intervals, and what an update would mend.
//!
//! Asked after every change, so that no answer takes a pass over all bits unless a cheap bound
//! says that it may be needed.

use std::time::Duration;

use super::super::policy::{DEFAULT_GHOST, Rule};
use super::gap::total_bits;
use super::{Extent, Publisher, Source, WORTHWHILE};
use crate::filter::{ComponentId, CountingFilter};

/// How exactly the policy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// By a pass over all bits, where a bound says that it may be needed.
    Exact,
    /// By the bound alone.
    Bound,
}

impl Publisher {
    /// Whether an update is due, and how much it is to carry.
    pub(crate) fn due(&mut self, now: Duration, source: &Source<'_>) -> Option<Extent> {
        self.dirty_since?;
        // Others drop what a home that is back does not list, whatever its policy says.
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

    /// Notes when [`Self::due`] should be asked, from bounds: it may then say that nothing is due.
    pub(crate) fn note_due(&mut self, now: Duration, source: &Source<'_>) {
        if self.dirty_since.is_some() && self.broken(now, source, Count::Bound).is_some() {
            self.broken_since.get_or_insert(now);
        }
    }

    /// Whether the target was broken when last asked.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken_since.is_some()
    }

    /// When to ask again although nothing happened.
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

    /// When members that the copy denies have waited as long as they may.
    fn adds_due_at(&self) -> Option<Duration> {
        let longest = self.policy.longest.unwrap_or(self.intervals.longest);
        Some(self.missed_since? + longest)
    }

    /// When bits that are out of use have waited as long as they may.
    fn clears_due_at(&self) -> Option<Duration> {
        let longest = self.policy.clears.unwrap_or(self.intervals.clears);
        Some(self.clears_since? + longest)
    }

    /// The earliest moment at which a broken target may lead to an update: the shortest
    /// interval after the last, and a little after the first change, so that a bulk load is
    /// one update.
    fn earliest(&self) -> Duration {
        let shortest = self.shortest();
        let settled = self.broken_since.map_or(Duration::ZERO, |since| since + shortest / 10);
        self.last_update.map_or(settled, |last| settled.max(last + shortest))
    }

    fn shortest(&self) -> Duration {
        self.policy.shortest.unwrap_or(self.intervals.shortest)
    }

    /// What an update carries that is due for added keys: clears as well, if the ghost target will
    /// want them before the next one.
    fn extent_of_adds(&self, source: &Source<'_>) -> Extent {
        let items = source.filter.items().max(1) as f64;
        match self.policy.rule {
            Rule::Miss { ghost, .. } if self.tally.ghosts_ahead() as f64 > ghost * items => {
                Extent::Everything
            }
            _ => Extent::Adds,
        }
    }

    /// Whether the policy's target is broken, and what would mend it.
    fn broken(&mut self, now: Duration, source: &Source<'_>, count: Count) -> Option<Extent> {
        let items = source.filter.items().max(1) as f64;
        let (misses, ghosts) = (self.tally.misses() as f64, self.tally.ghosts() as f64);
        match self.policy.rule {
            Rule::Miss { ghost, .. } if ghosts > ghost * items => Some(Extent::Everything),
            Rule::Miss { miss, .. } if misses <= miss * items => None,
            Rule::Miss { .. } => Some(self.extent_of_adds(source)),
            Rule::Overall { target, weights } => {
                // If the fresh filter itself breaks the target, nothing that is sent mends it.
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
                let most = share * total_bits(source);
                let due = self.tally.flips.total() as f64 > most
                    && (count == Count::Bound || self.recount(source).flips.total() as f64 > most);
                due.then_some(Extent::Everything)
            }
            Rule::Interval { every } => {
                let last = self.last_update.unwrap_or(Duration::ZERO);
                (now >= last + every).then_some(Extent::Everything)
            }
            Rule::Budget { .. } if now < self.paid_until || self.tally.is_clean() => None,
            Rule::Budget { .. } if ghosts > DEFAULT_GHOST * items => Some(Extent::Everything),
            Rule::Budget { .. } => (misses > 0.0).then_some(Extent::Adds),
            Rule::Manual => None,
        }
    }

    /// The disagreement, from above: as if every flip to one since the last exact count had
    /// made a dirty one, and each component were asked for a key of its own. Of a filter that is
    /// published as it is: rules that count bits ask for no other.
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
