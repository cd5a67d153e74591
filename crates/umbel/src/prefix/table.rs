//! The table: prefixes with values, and the longest match of an address.
//!
//! Always true: every prefix of the store that is longer than the front's is in the filter of
//! its length, and in the marks if it lies behind them; so a lookup that follows filters and
//! marks finds exactly what a search of the store would.

use std::fmt;

use super::Prefix;
use super::filters::Group;
use super::front::{Front, SHORT};
use super::kind::{Kind, Query, Store};
use super::lengths::{Filters, Standing, first_filtered};
use super::simd::{self, Asker};
use crate::processor::Avx2;

/// Changes whose memory is asked for together.
const TOGETHER: usize = 16;

/// Prefixes with values; finds the longest one that begins an address.
///
/// Values that are removed leave a default one in their place.
pub struct Table<P: Prefix, V: Default> {
    pub(super) store: <P as Kind>::Store<V>,
    pub(super) front: Option<Front>,
    pub(super) filters: Filters,
    per_length: Vec<usize>,
    avx2: Option<Avx2>,
}

/// The longest prefix that begins an address.
#[derive(Debug, PartialEq, Eq)]
pub struct Match<'t, V> {
    /// Its length: bits, or components. [`Prefix::of`] makes the prefix of it.
    pub length: u8,
    /// Its value.
    pub value: &'t V,
}

impl<V> Copy for Match<'_, V> {}

impl<V> Clone for Match<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

/// Where a prefix belongs in the store, and where it stands in the filters.
type Change<P, V> = (<<P as Kind>::Store<V> as Store<P, V>>::Place, Standing);

/// One lookup.
struct Single<'t, 'a, P: Prefix, V: Default> {
    table: &'t Table<P, V>,
    address: &'a P::Address,
}

impl<'t, P: Prefix, V: Default> simd::Work for Single<'t, '_, P, V> {
    type Done = Option<Match<'t, V>>;

    #[inline(always)]
    fn by(self, asker: impl Asker) -> Self::Done {
        self.table.lookup_by(asker, &P::query(self.address))
    }
}

impl<P: Prefix, V: Default> Table<P, V> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room(&[])
    }

    /// An empty table with room for so many prefixes of each length, 0 first. It grows beyond
    /// that by itself; a good guess saves work and memory.
    #[must_use]
    pub fn with_room(per_length: &[usize]) -> Self {
        let lengths = usize::from(P::LONGEST) + 1;
        let mut room = per_length[..per_length.len().min(lengths)].to_vec();
        room.resize(lengths, 0);
        Self {
            store: <P as Kind>::Store::with_room(&room),
            front: (P::SPANS < 8).then(Front::new),
            filters: Filters::for_lengths::<P>(&room),
            per_length: vec![0; lengths],
            avx2: Avx2::detect(),
        }
    }

    pub(super) const fn avx2(&self) -> Option<Avx2> {
        self.avx2
    }

    /// The same table, asked without AVX2: its own oracle.
    #[must_use]
    pub fn without_simd(mut self) -> Self {
        self.avx2 = None;
        self
    }

    /// Prefixes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.per_length.iter().sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prefixes of each length, 0 first.
    #[must_use]
    pub fn per_length(&self) -> &[usize] {
        &self.per_length
    }

    /// The value of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: &P) -> Option<&V> {
        self.store.find(&prefix.as_query(), prefix.length())
    }

    /// Adds a prefix, or replaces its value; returns the value that it had.
    #[expect(clippy::needless_pass_by_value, reason = "as every map: the key is given away")]
    pub fn insert(&mut self, prefix: P, value: V) -> Option<V> {
        self.insert_now(&prefix, value)
    }

    #[inline(always)]
    fn insert_now(&mut self, prefix: &P, value: V) -> Option<V> {
        let (query, length) = (prefix.as_query(), prefix.length());
        let (place, seat) = self.fetch(&query, length);
        // A search for what is not there reads every line it might be in: the filter knows
        // better.
        let may_be = length < first_filtered::<P>() || self.filters.claims(seat);
        if may_be && let Some(there) = self.store.find_mut_at(&query, length, place) {
            return Some(std::mem::replace(there, value));
        }
        self.store.insert_at(prefix, place, value);
        self.per_length[usize::from(length)] += 1;
        if let (Some(front), Some(slot)) = (&mut self.front, query.front()) {
            if length <= SHORT {
                front.add(slot, length);
                return None;
            }
            front.add_longer(slot);
        }
        if length > 0 && self.filters.add(seat, &query, length) {
            self.renew_filters();
        }
        None
    }

    /// Removes a prefix; returns its value.
    pub fn remove(&mut self, prefix: &P) -> Option<V> {
        let (query, length) = (prefix.as_query(), prefix.length());
        let (place, seat) = self.fetch(&query, length);
        let value = self.store.remove_at(prefix, place)?;
        self.per_length[usize::from(length)] -= 1;
        if let (Some(front), Some(slot)) = (&mut self.front, query.front()) {
            if length <= SHORT {
                let left = |length: &u8| self.store.find(&query, *length).is_some();
                front.remove(slot, length, (0..length).rev().find(left));
                return Some(value);
            }
            front.remove_longer(slot);
        }
        if length > 0 && self.filters.remove(seat, &query, length) {
            self.renew_filters();
        }
        Some(value)
    }

    /// Removes many prefixes, with memory asked for ahead, and hands out their values in order.
    pub fn remove_each(&mut self, prefixes: &[P], mut removed: impl FnMut(Option<V>)) {
        for together in prefixes.chunks(TOGETHER) {
            for prefix in together {
                self.fetch(&prefix.as_query(), prefix.length());
            }
            together.iter().for_each(|prefix| removed(self.remove(prefix)));
        }
    }

    /// Where a change of a prefix reads and writes, right until the next change. Asks for the
    /// memory of all of it: a change would wait for one line after the other.
    #[inline(always)]
    fn fetch(&self, query: &P::Query<'_>, length: u8) -> Change<P, V> {
        let place = self.store.place(query, length);
        self.store.prefetch(place);
        if length < first_filtered::<P>() {
            return (place, None);
        }
        let seat = self.filters.seat::<P>(query, length);
        self.filters.prefetch(seat);
        if let (Some(front), Some(slot)) = (&self.front, query.front()) {
            front.prefetch(slot);
        }
        (place, seat)
    }

    /// All prefixes with their values, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (P, &V)> {
        self.store.iter()
    }

    /// Makes all filters anew, for the prefixes that are there now.
    fn renew_filters(&mut self) {
        let mut filters = Filters::for_lengths::<P>(&self.per_length);
        for (prefix, _) in self.store.iter() {
            if prefix.length() >= first_filtered::<P>() {
                // What was just made for them has room for them.
                let (query, length) = (prefix.as_query(), prefix.length());
                filters.add(filters.seat::<P>(&query, length), &query, length);
            }
        }
        self.filters = filters;
    }

    /// The longest prefix that begins an address.
    #[must_use]
    #[inline]
    pub fn lookup(&self, address: &P::Address) -> Option<Match<'_, V>> {
        simd::run(self.avx2, Single { table: self, address })
    }

    #[inline(always)]
    pub(super) fn lookup_by(
        &self,
        asker: impl Asker,
        query: &P::Query<'_>,
    ) -> Option<Match<'_, V>> {
        if self.has_longer(query) {
            for group in self.filters.asked(query) {
                if let Some(found) = self.read(query, group.base, query.ask(asker, group)) {
                    return Some(found);
                }
            }
        }
        self.shortest(query)
    }

    /// Whether there can be a match that a filter knows of.
    #[inline(always)]
    pub(super) fn has_longer(&self, query: &P::Query<'_>) -> bool {
        match (&self.front, query.front()) {
            (Some(front), Some(slot)) => front.has_longer(slot),
            _ => true,
        }
    }

    /// Reads the prefixes of the claimed lengths, longest first.
    #[inline(always)]
    pub(super) fn read(
        &self,
        query: &P::Query<'_>,
        base: u8,
        mut claims: u32,
    ) -> Option<Match<'_, V>> {
        while claims != 0 {
            let lane = claims.ilog2();
            let length = base + lane as u8 + 1;
            let place = self.store.place(query, length);
            // The value, too: finding it would wait for the line to come.
            self.store.prefetch(place);
            if let Some(value) = self.store.find_at(query, length, place) {
                return Some(Match { length, value });
            }
            claims ^= 1 << lane;
        }
        None
    }

    /// The match among the lengths that have no filter.
    #[inline]
    pub(super) fn shortest(&self, query: &P::Query<'_>) -> Option<Match<'_, V>> {
        let length = self.shortest_length(query)?;
        let value = self.store.find(query, length)?;
        Some(Match { length, value })
    }

    #[inline(always)]
    pub(super) fn shortest_length(&self, query: &P::Query<'_>) -> Option<u8> {
        match (&self.front, query.front()) {
            (Some(front), Some(slot)) => front.best(slot),
            _ => Some(0),
        }
    }

    /// That the table is as its headers say, counted the slow way. For tests.
    ///
    /// # Panics
    /// If it is not.
    pub fn validate(&self) {
        let mut per_length = vec![0; self.per_length.len()];
        for (prefix, _) in self.iter() {
            let (query, length) = (prefix.as_query(), prefix.length());
            per_length[usize::from(length)] += 1;
            assert!(self.store.find(&query, length).is_some(), "{prefix} is found");
            if length >= first_filtered::<P>() {
                assert!(self.has_longer(&query), "the front knows that {prefix} is there");
                let base = Group::base_of(length);
                let group = self.filters.asked(&query).iter().find(|group| group.base == base);
                let claims = group.map_or(0, |group| query.ask(simd::Scalar, group));
                assert!(claims >> (length - base - 1) & 1 == 1, "{prefix} is claimed");
            }
        }
        assert_eq!(per_length, self.per_length, "prefixes are counted by length");
    }

    /// Bytes of memory that the table takes, without what values point to.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let front = self.front.as_ref().map_or(0, Front::memory_bytes);
        self.store.memory_bytes() + self.filters.memory_bytes() + front
    }
}

impl<P: Prefix, V: Default> Default for Table<P, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Prefix, V: Default> Clone for Table<P, V>
where
    <P as Kind>::Store<V>: Clone,
{
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            front: self.front.clone(),
            filters: self.filters.clone(),
            per_length: self.per_length.clone(),
            avx2: self.avx2,
        }
    }
}

impl<P: Prefix, V: Default> fmt::Debug for Table<P, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = P::NAME;
        f.debug_struct("Table").field("kind", &kind).field("len", &self.len()).finish()
    }
}

impl<P: Prefix, V: Default> FromIterator<(P, V)> for Table<P, V> {
    /// Of several values of one prefix, the last one stays.
    fn from_iter<I: IntoIterator<Item = (P, V)>>(prefixes: I) -> Self {
        let prefixes: Vec<(P, V)> = prefixes.into_iter().collect();
        let mut room = vec![0; usize::from(P::LONGEST) + 1];
        prefixes.iter().for_each(|(prefix, _)| room[usize::from(prefix.length())] += 1);
        let mut table = Self::with_room(&room);
        table.extend(prefixes);
        table
    }
}

impl<P: Prefix, V: Default> Extend<(P, V)> for Table<P, V> {
    /// Faster than one insertion after the other: memory is asked for ahead.
    fn extend<I: IntoIterator<Item = (P, V)>>(&mut self, prefixes: I) {
        let (mut prefixes, mut together) = (prefixes.into_iter(), Vec::with_capacity(TOGETHER));
        loop {
            together.extend(prefixes.by_ref().take(TOGETHER));
            if together.is_empty() {
                break;
            }
            for (prefix, _) in &together {
                self.fetch(&prefix.as_query(), prefix.length());
            }
            for (prefix, value) in together.drain(..) {
                self.insert_now(&prefix, value);
            }
        }
    }
}
