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
        let dirty_since = self.dirty_since?;
        if now >= dirty_since + self.longest() {
            return Some(Extent::Everything);
        }
        let extent = self.broken(now, source, Count::Exact);
        if extent.is_none() {
            self.broken_since = None;
            return None;
        }
        self.broken_since.get_or_insert(now);
        if now < self.earliest() { None } else { extent }
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
        let dirty_since = self.dirty_since?;
        let last = self.last_update.unwrap_or(Duration::ZERO);
        let mut next = dirty_since + self.longest();
        if self.broken_since.is_some() {
            next = next.min(self.earliest());
        }
        match self.policy.rule {
            Rule::Interval { every } => next.min((last + every).max(last + self.shortest())),
            Rule::Budget { .. } => next.min(self.paid_until.max(last + self.shortest())),
            _ => next,
        }
        .into()
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

    fn longest(&self) -> Duration {
        self.policy.longest.unwrap_or(self.intervals.longest)
    }

    /// Whether the policy's target is broken, and what would mend it.
    fn broken(&mut self, now: Duration, source: &Source<'_>, count: Count) -> Option<Extent> {
        let items = source.filter.items().max(1) as f64;
        let (misses, ghosts) = (self.tally.misses() as f64, self.tally.ghosts() as f64);
        match self.policy.rule {
            Rule::Miss { ghost, .. } if ghosts > ghost * items => Some(Extent::Everything),
            Rule::Miss { miss, .. } if misses <= miss * items => None,
            Rule::Miss { ghost, .. } if self.tally.ghosts_ahead() as f64 > ghost * items => {
                Some(Extent::Everything)
            }
            Rule::Miss { .. } => Some(Extent::Adds),
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
