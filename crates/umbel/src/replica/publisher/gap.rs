//! How the kept copy differs from the home's filter: exact counts, each a pass over all bits.

use super::super::tally::FlipBound;
use super::{Freshness, Publisher, Source};
use crate::bits::BitVector;
use crate::filter::{ComponentId, CountingFilter, DynamicFilter};

/// How the kept copy differs from the home's filter: exact counts.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) flips: FlipBound,
    /// Probability that the filter claims a random key and the copy denies it.
    pub(super) disagreement: f64,
}

impl Publisher {
    /// Counts exactly how copy and filter differ, in a pass over all bits, and resets the bounds to
    /// it.
    pub(super) fn recount(&mut self, source: &Source<'_>) -> Gap {
        let gap = self.gap(source);
        self.tally.flips = gap.flips.clone();
        gap
    }

    /// Counts exactly how copy and filter differ, in a pass over all bits.
    fn gap(&self, source: &Source<'_>) -> Gap {
        if self.kept.scheme() != source.scheme() {
            return self.gap_between_shapes(source);
        }
        let (m, k) = (source.scheme().shape().bits(), source.scheme().shape().hashes());
        let rate = |ones: u64| (ones as f64 / m as f64).powi(k as i32);
        let mut flips = FlipBound::default();
        // A random key is denied if every component denies it: by the copy alone, and by copy and
        // filter together.
        let (mut copy_denies, mut both_deny) = (1.0, 1.0);
        for (id, component) in source.components() {
            let here = source.bits(component);
            let there = self.kept.component(*id).map(|kept| &*kept.bits);
            let dirty_ones = there.map_or(here.ones(), |there| here.count_beyond(there));
            let (common, kept) = (here.ones() - dirty_ones, there.map_or(0, BitVector::ones));
            flips.add_ones(*id, dirty_ones);
            flips.zeros += kept - common;
            copy_denies *= 1.0 - rate(kept);
            both_deny *= 1.0 - (rate(kept) + rate(here.ones()) - rate(common));
        }
        let live = |id| source.components().iter().any(|(other, _)| *other == id);
        for gone in self.kept.components().iter().filter(|component| !live(component.id)) {
            flips.zeros += gone.bits.ones();
            copy_denies *= 1.0 - rate(gone.bits.ones());
            both_deny *= 1.0 - rate(gone.bits.ones());
        }
        Gap { flips, disagreement: f64::max(copy_denies - both_deny, 0.0) }
    }

    /// Bits of different shapes cannot be compared: all ones count as dirty.
    pub(super) fn gap_between_shapes(&self, source: &Source<'_>) -> Gap {
        let mut flips = FlipBound::default();
        let ones = |(id, component): &(ComponentId, CountingFilter)| (*id, component.bits().ones());
        source.components().iter().map(ones).for_each(|(id, ones)| flips.add_ones(id, ones));
        flips.zeros = self.kept.components().iter().map(|kept| kept.bits.ones()).sum();
        let disagreement = source.false_positive() * (1.0 - self.kept_false_positive);
        Gap { flips, disagreement }
    }

    /// Members that the copy denies and removed keys that it claims, both per member. Cheap: the
    /// counts are always up to date.
    pub(crate) fn miss_and_ghost(&self, filter: &DynamicFilter) -> (f64, f64) {
        let items = filter.items().max(1) as f64;
        (self.tally.misses() as f64 / items, self.tally.ghosts() as f64 / items)
    }

    /// How stale the published copy is: exact counts, a pass over all bits.
    pub(crate) fn freshness(&self, source: &Source<'_>) -> Freshness {
        let (miss, ghost) = self.miss_and_ghost(source.filter);
        let Gap { flips, disagreement } = self.gap(source);
        let bits = total_bits(source);
        Freshness {
            miss,
            ghost,
            false_positive: self.kept_false_positive,
            disagreement,
            dirty_ones: (flips.total() - flips.zeros) as f64 / bits,
            dirty_zeros: flips.zeros as f64 / bits,
        }
    }
}

/// Bits of all components together.
pub(super) fn total_bits(source: &Source<'_>) -> f64 {
    (source.scheme().shape().bits() * source.components().len() as u64) as f64
}
