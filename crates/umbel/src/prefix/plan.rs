//! Which lengths of a table are asked together: the plan, and what it costs.
//!
//! A group is up to eight neighbouring lengths. A lookup tests the marks of the groups that have
//! some (`marks`), asks the filters of the longest group that may match, reads what they claim, and
//! goes on with shorter groups. A group without marks is asked wherever the next shorter one is: right
//! for lengths that nearly all lookups match. A group of one length has no filter: its prefixes
//! are read directly. Every partition of the lengths in use gives the same answers; which one is
//! fast depends on how many prefixes, or lookups, each length has.
//!
//! The cost of a plan is counted in cache lines of a lookup, on average: one for each block of a
//! filter, two for a prefix and its value, a fraction for a mark whose level is so small that it
//! stays in a nearer cache. The plan with the least cost is found by dynamic programming over the
//! lengths in use.
//!
//! Nothing here is taken from a table but what the table itself holds: prefixes per length,
//! matches per length if its owner counted them, and how many beginnings of each length its
//! longer prefixes have, estimated from a sample.

/// Bits of marks for each beginning, at least: one in so many clear marks is set by another
/// beginning.
pub(super) const MARK_BITS: usize = 16;

/// Lines that a mark costs whose level is in a near cache.
const MARK: f64 = 0.5;

/// Lines that it costs otherwise: the line, and the work.
const FAR_MARK: f64 = 1.25;

/// Bytes of a level that is not: half of a small second-level cache.
const NEAR_BYTES: f64 = 128.0 * 1024.0;

/// Lines of a prefix and its value.
const FOUND: f64 = 2.0;

/// Lookups that match nothing, for each one that matches: half of them, as nothing is known.
const UNMATCHED: f64 = 1.0;

/// A group that is reached by fewer than one lookup in so many is tested only by those.
const RARE: f64 = 8.0;

/// Lengths that a group can have.
pub(super) const LANES: u8 = 8;

/// Lengths `base + 1` to `base + lanes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) base: u8,
    pub(super) lanes: u8,
}

/// A group of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) lengths: Lengths,
    /// Whether it is asked only where a mark is set; else wherever the group before it is.
    pub(super) is_marked: bool,
}

impl Lengths {
    /// Blocks that a lookup reads.
    const fn blocks(self) -> f64 {
        match self.lanes {
            1 => 0.0,
            2..=4 => 1.0,
            _ => 2.0,
        }
    }
}

/// What a plan is made from.
#[derive(Debug)]
pub(super) struct Demand {
    /// The shortest length that has a filter.
    first: u8,
    per_length: Vec<f64>,
    /// Share of the lookups that match each length.
    weights: Vec<f64>,
    /// How many beginnings of each length have longer prefixes.
    beginnings: Vec<f64>,
}

impl Demand {
    /// The demand of a table with so many prefixes of each length, 0 first, and so many matches of
    /// each length, if they were counted. The sample is a random part of the prefixes, as bits and
    /// length; if it is empty, no two prefixes are taken to begin alike.
    pub(super) fn new(
        first: u8,
        per_length: &[usize],
        traffic: &[u64],
        sample: &mut [(u128, u8)],
    ) -> Self {
        let per_length: Vec<f64> = per_length.iter().map(|count| *count as f64).collect();
        let weights = weights(first, &per_length, traffic);
        let beginnings = beginnings(&per_length, sample);
        Self { first, per_length, weights, beginnings }
    }

    /// The plan that costs least, shortest lengths first.
    pub(super) fn best(&self) -> Vec<Planned> {
        let lengths = (0u8..).zip(&self.per_length).skip(self.first.into());
        let used: Vec<u8> = lengths.filter(|(_, n)| **n > 0.0).map(|(length, _)| length).collect();
        // The cheapest way to cover the lengths from each one on, and the end of its first group.
        let mut ways = vec![(0.0, 0); used.len() + 1];
        for start in (0..used.len()).rev() {
            let base = used[start] - 1;
            let ends = (start..used.len()).take_while(|end| used[*end] - base <= LANES);
            let costs = ends.map(|end| {
                let planned = self.planned(Lengths { base, lanes: used[end] - base });
                (self.cost_of(planned) + ways[end + 1].0, end + 1)
            });
            ways[start] = costs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
        }
        let (mut plan, mut start) = (Vec::new(), 0);
        while start < used.len() {
            let (base, end) = (used[start] - 1, ways[start].1);
            plan.push(self.planned(Lengths { base, lanes: used[end - 1] - base }));
            start = end;
        }
        plan
    }

    /// A group, with marks if these cost less than asking it in vain.
    fn planned(&self, lengths: Lengths) -> Planned {
        let marked = Planned { lengths, is_marked: true };
        let unmarked = Planned { lengths, is_marked: false };
        // The front marks the first bits already.
        let is_marked = lengths.base >= self.first && self.cost_of(marked) < self.cost_of(unmarked);
        if is_marked { marked } else { unmarked }
    }

    /// Lines of a lookup by a plan, on average.
    pub(super) fn cost(&self, plan: impl Iterator<Item = Planned>) -> f64 {
        plan.map(|planned| self.cost_of(planned)).sum()
    }

    /// How many marks of a plan are worth testing for every lookup: those that are not rare, and one
    /// more, so that a lookup seldom has to go on.
    pub(super) fn common(&self, plan: &[Planned]) -> usize {
        let marked = plan.iter().filter(|planned| planned.is_marked);
        let bases: Vec<u8> = marked.map(|planned| planned.lengths.base).collect();
        let is_common = |base: &&u8| self.reach(**base) * RARE >= 1.0;
        (bases.iter().take_while(is_common).count() + 1).min(bases.len())
    }

    /// Lines of a lookup that are due to a group, on average: for those that match there, those
    /// that ask it and match a shorter length or nothing, and those that test its mark.
    fn cost_of(&self, Planned { lengths, is_marked }: Planned) -> f64 {
        let Lengths { base, lanes } = lengths;
        let inside: f64 =
            self.weights[usize::from(base) + 1..=usize::from(base + lanes)].iter().sum();
        let reach = self.reach(base);
        let (vain, marks) = if is_marked {
            (self.strays(base), self.mark(base) * (reach * RARE).min(1.0))
        } else {
            (1.0 - reach + UNMATCHED, 0.0)
        };
        inside * (lengths.blocks() + FOUND) + vain * lengths.blocks().max(1.0) + marks
    }

    /// Lines that the mark of a group costs a lookup that tests it.
    fn mark(&self, base: u8) -> f64 {
        let bytes = self.beginnings[usize::from(base)] * MARK_BITS as f64 / 8.0;
        MARK + (FAR_MARK - MARK) * (bytes / NEAR_BYTES).min(1.0)
    }

    /// Share of the lookups that match longer lengths.
    fn reach(&self, base: u8) -> f64 {
        self.weights[usize::from(base) + 1..].iter().sum()
    }

    /// Share of the lookups that match this length or a shorter one and find longer ones marked,
    /// at most: a prefix of length `l` has `2^(base - l)` beginnings, and each that is marked
    /// lies under one prefix of that length, if under any.
    fn strays(&self, base: u8) -> f64 {
        let marked = self.beginnings[usize::from(base)];
        let lengths = usize::from(self.first)..=usize::from(base);
        let below = |length: usize| {
            let places = self.per_length[length] * f64::from(base - length as u8).exp2();
            if places > 0.0 { self.weights[length] * (marked / places).min(1.0) } else { 0.0 }
        };
        let by_others = (1.0 - self.reach(base)) / MARK_BITS as f64;
        lengths.map(below).sum::<f64>() + by_others
    }
}

/// Share of the lookups that match each length: mostly as counted, and partly as there are
/// prefixes, because counts are of the past. Without counts as there are prefixes.
fn weights(first: u8, per_length: &[f64], traffic: &[u64]) -> Vec<f64> {
    let is_filtered = |length: usize| if length >= first.into() { 1.0 } else { 0.0 };
    let counted = |length: usize| traffic.get(length).map_or(0.0, |count| *count as f64);
    let lengths = || 0..per_length.len();
    let prefixes: f64 = lengths().map(|length| per_length[length] * is_filtered(length)).sum();
    let lookups: f64 = lengths().map(|length| counted(length) * is_filtered(length)).sum();
    let trusted = if lookups > 0.0 { 7.0 / 8.0 } else { 0.0 };
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    let weight = |length: usize| {
        let by_prefixes = share(per_length[length], prefixes);
        let by_lookups = share(counted(length), lookups);
        is_filtered(length) * (trusted * by_lookups + (1.0 - trusted) * by_prefixes)
    };
    lengths().map(weight).collect()
}

/// How many beginnings of each length have longer prefixes, estimated from a sample of these.
fn beginnings(per_length: &[f64], sample: &mut [(u128, u8)]) -> Vec<f64> {
    sample.sort_unstable();
    // How many beginnings are new with a prefix: all that it does not share with the one before.
    let mut changes = vec![0.0; per_length.len() + 1];
    let mut sampled = vec![0.0; per_length.len() + 1];
    let mut last: Option<(u128, u8)> = None;
    for (bits, length) in sample.iter().copied().filter(|(_, length)| *length > 0) {
        let new = last.map_or(0, |(last, last_length)| {
            ((last ^ bits).leading_zeros() as u8).min(last_length - 1).min(length - 1) + 1
        });
        changes[usize::from(new)] += 1.0;
        changes[usize::from(length)] -= 1.0;
        sampled[usize::from(length)] += 1.0;
        last = Some((bits, length));
    }
    let (mut longer, mut sampled_longer): (f64, f64) =
        (per_length.iter().sum(), sampled.iter().sum());
    let mut seen = 0.0;
    (0..per_length.len())
        .map(|length| {
            longer -= per_length[length];
            sampled_longer -= sampled[length];
            seen += changes[length];
            all_from_seen(seen, sampled_longer, longer)
        })
        .collect()
}

/// How many classes `all` items have, if `sampled` of them have `seen` ones and all classes are
/// of one size: the number whose expectation is `seen`, by binary search.
fn all_from_seen(seen: f64, sampled: f64, all: f64) -> f64 {
    if sampled <= 0.0 || all <= sampled {
        return if sampled > 0.0 { seen } else { all };
    }
    let missed = 1.0 - sampled / all;
    let (mut low, mut high) = (seen, all);
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        if middle * (1.0 - missed.powf(all / middle)) < seen {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn counts(used: &[(u8, usize)]) -> Vec<usize> {
        let mut counts = vec![0; 129];
        used.iter().for_each(|(length, count)| counts[usize::from(*length)] = *count);
        counts
    }

    fn plan(used: &[(u8, usize)], traffic: &[u64]) -> Vec<Lengths> {
        let plan = Demand::new(17, &counts(used), traffic, &mut []).best();
        plan.into_iter().map(|planned| planned.lengths).collect()
    }

    #[test]
    fn a_length_alone_is_read_directly() {
        assert_eq!(plan(&[], &[]), []);
        assert_eq!(plan(&[(8, 100)], &[]), []);
        assert_eq!(plan(&[(128, 1000)], &[]), [Lengths { base: 127, lanes: 1 }]);
    }

    #[test]
    fn lengths_that_are_all_in_use_are_asked_in_groups() {
        let all: Vec<(u8, usize)> = (17..=128).map(|length| (length, 1000)).collect();
        let plan = plan(&all, &[]);
        assert!(plan.len() <= 32, "{plan:?}");
        assert!(plan.iter().all(|span| span.lanes <= LANES));
        let lengths = plan.iter().flat_map(|span| span.base + 1..=span.base + span.lanes);
        assert!(lengths.eq(17..=128));
    }

    #[test]
    fn traffic_moves_a_busy_length_into_a_group_of_its_own() {
        let even: Vec<(u8, usize)> = (33..=40).map(|length| (length, 1000)).collect();
        let alone = Lengths { base: 39, lanes: 1 };
        assert!(!plan(&even, &[]).contains(&alone));
        let mut traffic = vec![0; 41];
        traffic[40] = 1_000_000;
        assert!(plan(&even, &traffic).contains(&alone));
    }

    #[test]
    fn the_chosen_plan_costs_no_more_than_groups_of_eight() {
        let used: Vec<(u8, usize)> =
            (17..=64).map(|length| (length, 1 + usize::from(length) * 7919 % 1000)).collect();
        let demand = Demand::new(17, &counts(&used), &[], &mut []);
        let eights = (16..64)
            .step_by(8)
            .map(|base| Planned { lengths: Lengths { base, lanes: 8 }, is_marked: base > 16 });
        assert!(demand.cost(demand.best().into_iter()) <= demand.cost(eights));
    }

    proptest! {
        #[test]
        fn beginnings_of_a_whole_sample_are_counted_exactly(
            drawn in prop::collection::btree_set((0u16..64, 1u8..=16), 1..100),
        ) {
            let prefixes: BTreeSet<(u128, u8)> = drawn
                .into_iter()
                .map(|(bits, length)| {
                    let bits = u128::from(bits) << 112;
                    (bits & !(u128::MAX >> length), length)
                })
                .collect();
            let mut counts = vec![0.0; 129];
            prefixes.iter().for_each(|(_, length)| counts[usize::from(*length)] += 1.0);
            let mut sample: Vec<(u128, u8)> = prefixes.iter().copied().collect();
            let found = beginnings(&counts, &mut sample);
            for level in 0..16u8 {
                let longer = prefixes.iter().filter(|(_, length)| *length > level);
                let cut = longer.map(|(bits, _)| bits & !(u128::MAX >> level));
                let distinct: BTreeSet<u128> = cut.collect();
                prop_assert_eq!(found[usize::from(level)], distinct.len() as f64, "{}", level);
            }
        }
    }

    #[test]
    fn classes_are_estimated_from_a_sample() {
        // A tenth of 100 000 items in 20 000 classes: 1 - 0.9^5 of these are seen.
        let seen = 20_000.0 * (1.0 - 0.9f64.powi(5));
        assert!((all_from_seen(seen, 10_000.0, 100_000.0) - 20_000.0).abs() < 100.0);
    }
}
