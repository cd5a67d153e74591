//! Many addresses at once: while one waits for memory, others are worked on.
//!
//! A few addresses at a time go through four steps together: ask for the memory of the
//! filters, ask the filters, read the prefixes, hand out. Each step asks ahead for what the
//! next one reads.

use super::Prefix;
use super::kind::{Kind, Query, Store};
use super::simd::{self, Asker};
use super::table::{Match, Table};

/// Addresses that go through the steps together.
const TOGETHER: usize = 16;

/// Filters of a group up to so many bits are in the cache before they are asked for: asking
/// ahead would cost more than it saves.
const IN_CACHE: usize = 1 << 22;

/// What the filters said of an address.
#[derive(Debug, Clone, Copy, Default)]
struct Claimed {
    /// Groups that were asked, the rare ones included.
    asked: usize,
    /// Base of the last one of them, and what it claims; 0 if none does.
    base: u8,
    claims: u32,
}

/// Many lookups.
struct Many<'t, 'a, P: Prefix, V: Default, F> {
    table: &'t Table<P, V>,
    addresses: &'a [P::Address],
    found: F,
}

impl<'t, P: Prefix, V: Default, F: FnMut(Option<Match<'t, V>>)> simd::Work
    for Many<'t, '_, P, V, F>
{
    type Done = ();

    #[inline(always)]
    fn by(mut self, asker: impl Asker) {
        self.table.each_by(asker, self.addresses, &mut self.found);
    }
}

impl<P: Prefix, V: Default> Table<P, V> {
    /// Looks up many addresses, with memory asked for ahead; `found` is overwritten with one
    /// answer an address, in order.
    ///
    /// ```
    /// use umbel::prefix::{Ipv6Prefix, Table};
    ///
    /// let routes: Table<Ipv6Prefix, u16> =
    ///     [("2001:db8::/32".parse()?, 7), ("2001:db8:1::/48".parse()?, 8)].into_iter().collect();
    /// let mut found = Vec::new();
    /// routes.lookup_batch(&["2001:db8:1::1".parse()?, "::1".parse()?], &mut found);
    /// assert_eq!(found[0].map(|found| (found.length, *found.value)), Some((48, 8)));
    /// assert_eq!(found[1], None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lookup_batch<'t>(
        &'t self,
        addresses: &[P::Address],
        found: &mut Vec<Option<Match<'t, V>>>,
    ) {
        found.clear();
        found.reserve(addresses.len());
        self.lookup_each(addresses, |answer| found.push(answer));
    }

    /// Looks up many addresses, as [`Self::lookup_batch`], and hands out the answers in order.
    pub fn lookup_each<'t>(
        &'t self,
        addresses: &[P::Address],
        mut found: impl FnMut(Option<Match<'t, V>>),
    ) {
        simd::run(self.avx2(), Many { table: self, addresses, found: &mut found });
    }

    #[inline(always)]
    fn each_by<'t>(
        &'t self,
        asker: impl Asker,
        addresses: &[P::Address],
        found: &mut impl FnMut(Option<Match<'t, V>>),
    ) {
        let ahead = self.filters.groups.get(self.filters.rare);
        let ahead = ahead.filter(|group| group.blocks.bits() > IN_CACHE);
        for together in addresses.chunks(TOGETHER) {
            if let Some(group) = ahead {
                for query in together.iter().map(P::query) {
                    if self.has_longer(&query) {
                        query.prefetch(group);
                    }
                }
            }
            let mut claimed = [Claimed::default(); TOGETHER];
            for (address, claimed) in together.iter().zip(&mut claimed) {
                *claimed = self.ask(asker, &P::query(address));
            }
            for (address, claimed) in together.iter().zip(&claimed) {
                found(self.finish(asker, &P::query(address), claimed));
            }
        }
    }

    /// Asks groups until one claims something, and for the memory of the longest claim.
    #[inline(always)]
    fn ask(&self, asker: impl Asker, query: &<P as Kind>::Query<'_>) -> Claimed {
        let mut claimed = Claimed::default();
        if self.has_longer(query) {
            for group in self.filters.asked(query) {
                claimed.asked += 1;
                claimed.claims = query.ask(asker, group);
                if claimed.claims != 0 {
                    claimed.base = group.base;
                    self.store.prefetch(query, group.base + claimed.claims.ilog2() as u8 + 1);
                    break;
                }
            }
        }
        claimed
    }

    /// Reads what was claimed, and goes on asking if nothing of it was true.
    #[inline(always)]
    fn finish(
        &self,
        asker: impl Asker,
        query: &<P as Kind>::Query<'_>,
        claimed: &Claimed,
    ) -> Option<Match<'_, V>> {
        if claimed.claims != 0 {
            let found = self.read(query, claimed.base, claimed.claims);
            if found.is_some() {
                return found;
            }
            for group in &self.filters.asked(query)[claimed.asked..] {
                let found = self.read(query, group.base, query.ask(asker, group));
                if found.is_some() {
                    return found;
                }
            }
        }
        self.shortest(query)
    }
}
