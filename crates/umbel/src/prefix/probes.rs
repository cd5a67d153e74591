//! How many prefixes a lookup reads, measured and by the paper's formula.

use super::Prefix;
use super::filters::mix;
use super::kind::Query;
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
}

impl<P: Prefix, V: Default> Table<P, V> {
    /// Reads of the lookups of these addresses; both are 0 if there are none.
    #[must_use]
    pub fn probes(&self, addresses: &[P::Address]) -> Probes {
        let (mut expected, mut measured) = (0.0, 0);
        for address in addresses {
            let (rates, read) = self.probes_of(&P::query(address));
            expected += rates;
            measured += read;
        }
        let each = (addresses.len() as f64).max(1.0);
        Probes { expected: expected / each, measured: f64::from(measured) / each }
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

    /// Bits of all filters, without the counters beside them.
    #[must_use]
    pub fn filter_bits(&self) -> usize {
        let old = self.old.iter().map(|old| &old.filters);
        let groups = [&self.filters].into_iter().chain(old).flat_map(|filters| &filters.groups);
        groups.map(|group| group.blocks.bits()).sum()
    }

    fn probes_of(&self, query: &P::Query<'_>) -> (f64, u32) {
        let (mut rates, mut read) = (Vec::new(), 0);
        if self.has_longer(query) {
            let old = self.old.iter().map(|old| &old.filters);
            let filters = [&self.filters].into_iter().chain(old);
            for group in filters.flat_map(|filters| filters.asked(query)) {
                let claims = query.ask(Scalar, group);
                for lane in (0..8).rev() {
                    let length = group.base + lane + 1;
                    if length > query.length() {
                        continue;
                    }
                    read += claims >> lane & 1;
                    if self.find(query, length).is_some() {
                        return (expected_probes(&rates), read);
                    }
                    let span = usize::from(lane) * P::SPANS / 8;
                    rates.push(group.blocks.false_positive(span, query.spot(length).pick));
                }
            }
        }
        let short = u32::from(self.shortest(query).is_some());
        (expected_probes(&rates) - 1.0 + f64::from(short), read + short)
    }
}
