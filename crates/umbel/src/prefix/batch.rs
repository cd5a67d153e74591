//! Many addresses at once: while one waits for memory, others are worked on.
//!
//! A few addresses at a time go through steps together: ask for the memory of the filters, ask
//! group after group, ask for the memory of what is claimed, read it. No step branches on what
//! a filter said of one address: the answer comes late and is a coin toss, and a wrong guess
//! would throw away the work on all addresses behind it. Instead each group is asked for those
//! addresses that no group before it has claimed.

use super::Prefix;
use super::kind::{Kind, Query, Store};
use super::simd::{self, Asker};
use super::table::{Match, Table, read};

/// Addresses that go through the steps together.
const TOGETHER: usize = 32;

/// An address on its way.
struct Lane<Q, Place> {
    query: Q,
    /// What the last group that was asked claims; 0 if none claims anything.
    claims: u32,
    /// Which group that is.
    base: u8,
    /// Whether rare groups must be asked as well.
    marked: bool,
    /// The prefix that is read first: its length, and where it belongs.
    length: u8,
    place: Place,
}

type LaneOf<'a, P, V> = Lane<<P as Kind>::Query<'a>, <<P as Kind>::Store<V> as Store<P, V>>::Place>;

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
        if self.old.is_some() {
            addresses.iter().for_each(|address| found(self.lookup_by(asker, &P::query(address))));
            return;
        }
        let mut lanes: Vec<LaneOf<'_, P, V>> = Vec::with_capacity(TOGETHER);
        for together in addresses.chunks(TOGETHER) {
            self.ask(asker, together, &mut lanes);
            for lane in &mut lanes {
                self.choose(lane);
                self.store.prefetch(lane.place);
            }
            for lane in &lanes {
                found(self.finish(asker, lane));
            }
        }
    }

    /// Asks each group for the addresses that no group before it has claimed.
    #[inline(always)]
    fn ask<'a>(
        &self,
        asker: impl Asker,
        addresses: &'a [P::Address],
        lanes: &mut Vec<LaneOf<'a, P, V>>,
    ) {
        let (mut open, mut count) = ([0u8; TOGETHER], 0);
        lanes.clear();
        lanes.extend((0u8..).zip(addresses).map(|(index, address)| {
            let query = P::query(address);
            let has_longer = self.has_longer(&query);
            open[count % TOGETHER] = index;
            count += usize::from(has_longer);
            let marked = has_longer & self.filters.is_marked(&query);
            Lane { query, claims: 0, base: 0, marked, length: 0, place: Default::default() }
        }));
        let mut ready = [<P::Query<'_> as Query>::Ready::default(); TOGETHER];
        for group in self.filters.common() {
            for (index, ready) in open[..count].iter().zip(&mut ready) {
                let query = &lanes[usize::from(*index)].query;
                *ready = query.ready(group);
                query.prefetch(group, *ready);
            }
            let mut left = 0;
            for place in 0..count {
                let index = open[place];
                let lane = &mut lanes[usize::from(index)];
                lane.claims = lane.query.ask_ready(asker, group, ready[place]);
                lane.base = group.base;
                open[left] = index;
                left += usize::from(lane.claims == 0);
            }
            count = left;
        }
    }

    /// Chooses the longest prefix that is claimed, or the short one.
    #[inline(always)]
    fn choose(&self, lane: &mut LaneOf<'_, P, V>) {
        let longest = lane.base + (lane.claims | 1).ilog2() as u8 + 1;
        let short = self.shortest_length(&lane.query).unwrap_or(0);
        lane.length = if lane.claims == 0 { short } else { longest };
        lane.place = self.store.place(&lane.query, lane.length);
    }

    /// Reads what was claimed, and goes on asking if nothing of it was true.
    #[inline(always)]
    fn finish(&self, asker: impl Asker, lane: &LaneOf<'_, P, V>) -> Option<Match<'_, V>> {
        let Lane { query, claims, base, length, place, .. } = lane;
        if lane.marked {
            return self.lookup_by(asker, query);
        }
        if let Some(value) = self.store.find_at(query, *length, *place) {
            return Some(Match { length: *length, value });
        }
        if *claims != 0 {
            let shorter = claims ^ 1 << claims.ilog2();
            let rest = self.filters.common().iter().skip_while(|group| group.base >= *base);
            let asked = rest.map(|group| (group.base, query.ask(asker, group)));
            let read = |(base, claims)| read::<P, V>(&self.store, query, base, claims);
            if let Some(found) = std::iter::once((*base, shorter)).chain(asked).find_map(read) {
                return Some(found);
            }
        }
        self.shortest(query)
    }
}
