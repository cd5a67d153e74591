//! Many addresses at once: while one waits for memory, others are worked on.
//!
//! A few addresses at a time go through steps together: ask for the memory of the filters, ask
//! group after group, ask for the memory of what is claimed, read it. No step branches on what
//! a filter said of one address: the answer comes late and is a coin toss, and a wrong guess
//! would throw away the work on all addresses behind it. Instead each group is asked for those
//! addresses that no group before it has claimed.

use super::Prefix;
use super::filters::Group;
use super::kind::{Query, Store};
use super::simd::{self, Asker};
use super::table::{Match, Table};

/// Addresses that go through the steps together.
const TOGETHER: usize = 32;

/// What the filters said of an address.
#[derive(Debug, Clone, Copy, Default)]
struct Claimed {
    /// What the last group that was asked claims; 0 if none claims anything.
    claims: u32,
    /// Which one of the common groups that is.
    group: u8,
    /// Whether rare groups must be asked as well.
    marked: bool,
}

/// The prefix that is read first.
#[derive(Debug, Clone, Copy, Default)]
struct First<Place> {
    length: u8,
    place: Place,
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
        let groups = self.filters.common();
        let mut queries = Vec::with_capacity(TOGETHER);
        for together in addresses.chunks(TOGETHER) {
            queries.clear();
            queries.extend(together.iter().map(P::query));
            let claimed = self.ask(asker, &queries, groups);
            let mut first = [First::default(); TOGETHER];
            for ((query, claimed), first) in queries.iter().zip(&claimed).zip(&mut first) {
                *first = self.first(query, claimed, groups);
                self.store.prefetch(first.place);
            }
            for ((query, claimed), first) in queries.iter().zip(&claimed).zip(first) {
                found(self.finish(asker, query, claimed, first, groups));
            }
        }
    }

    /// Asks each group for the questions that no group before it has claimed.
    #[inline(always)]
    fn ask(
        &self,
        asker: impl Asker,
        queries: &[P::Query<'_>],
        groups: &[Group],
    ) -> [Claimed; TOGETHER] {
        let mut claimed = [Claimed::default(); TOGETHER];
        let (mut open, mut count) = ([0u8; TOGETHER], 0);
        for (index, query) in queries.iter().enumerate() {
            open[count] = index as u8;
            count += usize::from(self.has_longer(query));
        }
        for index in &open[..count] {
            let index = usize::from(*index);
            claimed[index].marked = self.filters.is_marked(&queries[index]);
        }
        let mut ready = [<P::Query<'_> as Query>::Ready::default(); TOGETHER];
        for (number, group) in (0u8..).zip(groups) {
            for (index, ready) in open[..count].iter().zip(&mut ready) {
                let query = &queries[usize::from(*index)];
                *ready = query.ready(group);
                query.prefetch(group, *ready);
            }
            let mut left = 0;
            for place in 0..count {
                let index = open[place];
                let claims = queries[usize::from(index)].ask_ready(asker, group, ready[place]);
                let answer = &mut claimed[usize::from(index)];
                (answer.claims, answer.group) = (claims, number);
                open[left] = index;
                left += usize::from(claims == 0);
            }
            count = left;
        }
        claimed
    }

    /// The longest prefix that is claimed, or the short one.
    #[inline(always)]
    fn first(
        &self,
        query: &P::Query<'_>,
        claimed: &Claimed,
        groups: &[Group],
    ) -> First<<P::Store<V> as Store<P, V>>::Place> {
        let base = groups.get(usize::from(claimed.group)).map_or(0, |group| group.base);
        let longest = base + (claimed.claims | 1).ilog2() as u8 + 1;
        let short = self.shortest_length(query).unwrap_or(0);
        let length = if claimed.claims == 0 { short } else { longest };
        First { length, place: self.store.place(query, length) }
    }

    /// Reads what was claimed, and goes on asking if nothing of it was true.
    #[inline(always)]
    fn finish(
        &self,
        asker: impl Asker,
        query: &P::Query<'_>,
        claimed: &Claimed,
        First { length, place }: First<<P::Store<V> as Store<P, V>>::Place>,
        groups: &[Group],
    ) -> Option<Match<'_, V>> {
        if claimed.marked {
            return self.lookup_by(asker, query);
        }
        if let Some(value) = self.store.find_at(query, length, place) {
            return Some(Match { length, value });
        }
        if claimed.claims != 0 {
            let (asked, rest) = groups.split_at(usize::from(claimed.group) + 1);
            let last = &asked[asked.len() - 1];
            let shorter = claimed.claims ^ 1 << claimed.claims.ilog2();
            let mut found = self.read(query, last.base, shorter);
            for group in rest {
                if found.is_some() {
                    break;
                }
                found = self.read(query, group.base, query.ask(asker, group));
            }
            if found.is_some() {
                return found;
            }
        }
        self.shortest(query)
    }
}
