//! Many addresses at once: while one waits for memory, others are worked on.
//!
//! A few addresses at a time go through steps together: test the marks, ask for the memory of the
//! filters, ask them, ask for the memory of what is claimed, read it. No step branches on what
//! a filter said of one address: the answer comes late and is a coin toss, and a wrong guess
//! would throw away the work on all addresses behind it. Instead those addresses that nothing was
//! claimed of are gathered, and ask their next shorter group.

use super::Prefix;
use super::kind::{Kind, Query, Store};
use super::simd::{self, Asker};
use super::table::{Match, Table, ask_each, read};

/// Addresses that go through the steps together.
const TOGETHER: usize = 32;

/// An address on its way.
struct Lane<Q, Place> {
    query: Q,
    /// Groups that may match, the shortest ones. All of them but the last are still to be asked.
    groups: usize,
    /// What the last of them claims.
    claims: u32,
    /// The prefix that is read first, if any: its length, and where it belongs.
    length: Option<u8>,
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
            }
            for lane in &lanes {
                found(self.finish(asker, lane));
            }
        }
    }

    /// Asks for each address the longest group that may match, and shorter ones as long as
    /// nothing is claimed.
    #[inline(always)]
    fn ask<'a>(
        &self,
        asker: impl Asker,
        addresses: &'a [P::Address],
        lanes: &mut Vec<LaneOf<'a, P, V>>,
    ) {
        let (mut open, mut count) = ([0u8; TOGETHER], 0);
        lanes.clear();
        for (index, address) in (0u8..).zip(addresses) {
            let query = P::query(address);
            if self.has_longer(&query) {
                self.filters.prefetch_marks(&query);
                open[count % TOGETHER] = index;
                count += 1;
            }
            let place = Default::default();
            lanes.push(Lane { query, groups: 0, claims: 0, length: None, place });
        }
        let mut left = 0;
        for place in 0..count {
            let index = open[place];
            let lane = &mut lanes[usize::from(index)];
            lane.groups = self.filters.reached(&lane.query);
            open[left] = index;
            left += usize::from(lane.groups > 0);
        }
        count = left;
        let mut ready = [<P::Query<'_> as Query>::Ready::default(); TOGETHER];
        while count > 0 {
            for (index, ready) in open[..count].iter().zip(&mut ready) {
                let Lane { query, groups, .. } = &lanes[usize::from(*index)];
                let group = &self.filters.groups[groups - 1];
                *ready = query.ready(group);
                query.prefetch(group, *ready);
            }
            let mut left = 0;
            for place in 0..count {
                let index = open[place];
                let lane = &mut lanes[usize::from(index)];
                let group = &self.filters.groups[lane.groups - 1];
                lane.claims = lane.query.ask_ready(asker, group, ready[place]);
                lane.groups -= usize::from(lane.claims == 0);
                open[left] = index;
                left += usize::from(lane.claims == 0 && lane.groups > 0);
            }
            count = left;
        }
    }

    /// Chooses the longest prefix that is claimed, or the short one.
    #[inline(always)]
    fn choose(&self, lane: &mut LaneOf<'_, P, V>) {
        lane.length = match lane.groups.checked_sub(1) {
            Some(last) => {
                Some(self.filters.groups[last].lengths.base + lane.claims.ilog2() as u8 + 1)
            }
            None => self.shortest_length(&lane.query),
        };
        if let Some(length) = lane.length {
            lane.place = self.store.place(&lane.query, length);
            self.store.prefetch(length, lane.place);
        }
    }

    /// Reads what was claimed, and goes on asking if nothing of it was true.
    #[inline(always)]
    fn finish(&self, asker: impl Asker, lane: &LaneOf<'_, P, V>) -> Option<Match<'_, V>> {
        let length = lane.length?;
        if let Some(value) = self.store.find_at(&lane.query, length, lane.place) {
            return Some(Match { length, value });
        }
        self.go_on(asker, lane)
    }

    /// The match of an address whose longest claim was false.
    #[inline(never)]
    fn go_on(&self, asker: impl Asker, lane: &LaneOf<'_, P, V>) -> Option<Match<'_, V>> {
        let Lane { query, claims, .. } = lane;
        if let Some((last, groups)) = self.filters.groups[..lane.groups].split_last() {
            let claims = claims ^ 1 << claims.ilog2();
            let found = read::<P, V>(&self.store, query, last.lengths.base, claims)
                .or_else(|| ask_each::<P, V>(&self.store, groups, asker, query));
            if found.is_some() {
                return found;
            }
        }
        self.shortest(query)
    }
}
