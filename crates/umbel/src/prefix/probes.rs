//! How many prefixes a lookup reads, measured and by the paper's formula.

use std::ops::RangeInclusive;

use super::Prefix;
use super::filters::mix;
use super::kind::Query;
use super::lengths::Filters;
use super::simd::Scalar;
use super::table::Table;
use crate::model::prefix::expected_probes;

/// Prefixes read by lookups, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probes {
    /// `1 + Σ f_i` over the lengths longer than the match (`Σ f_i` where nothing matches),
    /// with the rates that the filters have where these addresses ask them.
    pub expected: f64,
    /// What was read.
    pub measured: f64,
    /// Cache lines of filters, prefixes and values that were read, on average; marks are not
    /// counted. A prefix that was read in vain is one line, the one that matched two.
    pub lines: f64,
}

impl<P: Prefix, V: Default> Table<P, V> {
    /// Reads of the lookups of these addresses; both are 0 if there are none.
    #[must_use]
    pub fn probes(&self, addresses: &[P::Address]) -> Probes {
        let (mut expected, mut measured, mut lines) = (0.0, 0, 0);
        for address in addresses {
            let query = P::query(address);
            let (rates, read, blocks) = self.probes_of(&query);
            expected += rates;
            measured += read;
            lines += read + blocks + u32::from(self.lookup(address).is_some());
        }
        let each = (addresses.len() as f64).max(1.0);
        Probes {
            expected: expected / each,
            measured: f64::from(measured) / each,
            lines: f64::from(lines) / each,
        }
    }

    /// The groups of lengths that are asked together, shortest first. A group of one length has no
    /// filter.
    pub fn groups(&self) -> impl Iterator<Item = RangeInclusive<u8>> {
        let lengths = self.filters.groups.iter().map(|group| group.lengths);
        lengths.map(|lengths| lengths.base + 1..=lengths.base + lengths.lanes)
    }

    /// Reads of lookups of one address within each prefix, the same at every call.
    #[must_use]
    pub fn probes_within(&self) -> Probes {
        let filler = |index: u64| u128::from(mix(index)) << 64 | u128::from(mix(!index));
        let prefixes = self.iter().zip(0..);
        let addresses: Vec<P::Address> =
            prefixes.map(|((prefix, _), index)| prefix.within(filler(index))).collect();
        self.probes(&addresses)
    }

    /// Bits of all filters and marks, without the counters beside them.
    #[must_use]
    pub fn filter_bits(&self) -> usize {
        let old = self.old.iter().map(|old| &old.filters);
        [&self.filters].into_iter().chain(old).map(Filters::bits).sum()
    }

    /// Expected reads, reads, and blocks of filters.
    fn probes_of(&self, query: &P::Query<'_>) -> (f64, u32, u32) {
        let (mut rates, mut read, mut blocks) = (Vec::new(), 0, 0);
        if self.has_longer(query) {
            let old = self.old.iter().map(|old| &old.filters);
            let filters = [&self.filters].into_iter().chain(old);
            for group in filters.flat_map(|filters| filters.asked(query).iter().rev()) {
                let claims = query.ask(Scalar, group);
                blocks += group.blocks.spans();
                for lane in (0..group.lengths.lanes).rev() {
                    let length = group.lengths.base + lane + 1;
                    if length > query.length() {
                        continue;
                    }
                    read += claims >> lane & 1;
                    if self.find(query, length).is_some() {
                        return (expected_probes(&rates), read, blocks);
                    }
                    let span = usize::from(lane) * P::SPANS / 8;
                    let pick = query.spot(group.lengths.base, length).pick;
                    rates.push(group.blocks.false_positive(span, pick));
                }
            }
        }
        let short = u32::from(self.shortest(query).is_some());
        (expected_probes(&rates) - 1.0 + f64::from(short), read + short, blocks)
    }
}
