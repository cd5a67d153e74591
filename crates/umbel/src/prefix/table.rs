//! The table: prefixes with values, and the longest match of an address.
//!
//! A table that has outgrown its store or its filters, or whose lengths are no longer those that
//! its plan is good for, gets new ones. The prefixes move there in parts (`moving`), so that no
//! change takes as long as moving all of them.
//!
//! Always true: every prefix of the store that is longer than the front's is in the filter of
//! its length, and in the marks before it; so a lookup that follows filters and marks finds
//! exactly what a search of the store would.

mod moving;

use std::fmt;

use super::Prefix;
use super::filters::Group;
use super::front::{Front, SHORT};
use super::kind::{Kind, Query, Store};
use super::lengths::{Filters, Standing, first_filtered};
use super::plan::Demand;
use super::simd::{self, Asker};
use crate::processor::Avx2;
use moving::Old;

/// Changes whose memory is asked for together.
const TOGETHER: usize = 16;

/// Prefixes with values; finds the longest one that begins an address.
///
/// Values that are removed leave a default one in their place.
pub struct Table<P: Prefix, V: Default> {
    pub(super) store: <P as Kind>::Store<V>,
    pub(super) front: Option<Front>,
    pub(super) filters: Filters,
    /// What prefixes move here from, while they do.
    pub(super) old: Option<Box<Old<P, V>>>,
    /// Whether the filters are to be made anew once nothing moves.
    pub(super) is_stale: bool,
    pub(super) per_length: Vec<usize>,
    /// Lookups that matched each length, if the owner counted them.
    traffic: Vec<u64>,
    /// Changes until the plan is checked.
    until_check: usize,
    /// Prefixes that the plan was made for.
    planned: usize,
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
pub(super) type Change<P, V> = (<<P as Kind>::Store<V> as Store<P, V>>::Place, Standing);

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
        Self::planned_for(&room, &mut [])
    }

    /// An empty table for so many prefixes of each length, of which some are known.
    fn planned_for(room: &[usize], sample: &mut [(u128, u8)]) -> Self {
        let demand = Demand::new(first_filtered::<P>(), room, &[], sample);
        let planned: usize = room.iter().sum();
        Self {
            store: <P as Kind>::Store::with_room(room),
            front: (P::SPANS < 8).then(Front::new),
            filters: Filters::for_lengths::<P>(room, &demand),
            old: None,
            is_stale: false,
            per_length: vec![0; room.len()],
            traffic: Vec::new(),
            // Not before it is filled.
            until_check: planned + moving::CHECK,
            planned,
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
        self.find(&prefix.as_query(), prefix.length())
    }

    /// The value of a prefix, wherever it is.
    pub(super) fn find(&self, query: &P::Query<'_>, length: u8) -> Option<&V> {
        let old = || self.old.as_ref()?.store.find(query, length);
        self.store.find(query, length).or_else(old)
    }

    /// Adds a prefix, or replaces its value; returns the value that it had.
    #[expect(clippy::needless_pass_by_value, reason = "as every map: the key is given away")]
    pub fn insert(&mut self, prefix: P, value: V) -> Option<V> {
        self.insert_now(&prefix, value)
    }

    #[inline(always)]
    fn insert_now(&mut self, prefix: &P, value: V) -> Option<V> {
        self.move_some();
        let (query, length) = (prefix.as_query(), prefix.length());
        let (place, seat) = self.fetch(&query, length);
        // A search for what is not there reads every line it might be in: the filter knows
        // better.
        let may_be = length < first_filtered::<P>() || self.filters.claims(seat);
        if may_be && let Some(there) = self.store.find_mut_at(&query, length, place) {
            return Some(std::mem::replace(there, value));
        }
        let before = self.old.as_mut().and_then(|old| old.remove(prefix, &query));
        if before.is_none() {
            self.per_length[usize::from(length)] += 1;
            if let (Some(front), Some(slot)) = (&mut self.front, query.front()) {
                if length <= SHORT {
                    front.add(slot, length);
                } else {
                    front.add_longer(slot);
                }
            }
        }
        if self.put(prefix, value, (place, seat)) {
            self.renew();
        }
        self.count_change();
        before
    }

    /// Puts a prefix that is not there into store and filters; true if these should be made anew.
    #[inline(always)]
    pub(super) fn put(&mut self, prefix: &P, value: V, (place, seat): Change<P, V>) -> bool {
        let (query, length) = (prefix.as_query(), prefix.length());
        self.store.insert_at(prefix, place, value);
        if length < first_filtered::<P>() {
            return self.store.is_crowded();
        }
        let seat = seat.or_else(|| {
            self.filters.add_group::<P>(length);
            self.filters.seat::<P>(&query, length)
        });
        self.filters.add(seat, &query) | self.store.is_crowded()
    }

    /// Removes a prefix; returns its value.
    pub fn remove(&mut self, prefix: &P) -> Option<V> {
        self.move_some();
        let (query, length) = (prefix.as_query(), prefix.length());
        let (place, seat) = self.fetch(&query, length);
        let here = self.store.remove_at(prefix, place);
        let is_here = here.is_some();
        let value = here.or_else(|| self.old.as_mut()?.remove(prefix, &query))?;
        self.per_length[usize::from(length)] -= 1;
        let is_short = self.front.is_some() && length <= SHORT;
        let mut shorter = (0..if is_short { length } else { 0 }).rev();
        let next = shorter.find(|shorter| self.find(&query, *shorter).is_some());
        if let (Some(front), Some(slot)) = (&mut self.front, query.front()) {
            if length <= SHORT {
                front.remove(slot, length, next);
            } else {
                front.remove_longer(slot);
            }
        }
        let is_filtered = is_here && length >= first_filtered::<P>();
        if is_filtered && self.filters.remove(seat) {
            self.renew();
        }
        self.count_change();
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
    pub(super) fn fetch(&self, query: &P::Query<'_>, length: u8) -> Change<P, V> {
        let place = self.store.place(query, length);
        self.store.prefetch(length, place);
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
        let old = self.old.iter().flat_map(|old| old.store.iter());
        self.store.iter().chain(old)
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
            let mut found = longest::<P, V>(&self.store, &self.filters, asker, query);
            if let Some(old) = &self.old {
                let length = |found: &Match<'_, V>| found.length;
                let older = longest::<P, V>(&old.store, &old.filters, asker, query);
                found = [found, older].into_iter().flatten().max_by_key(length);
            }
            if found.is_some() {
                return found;
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

    /// The match among the lengths that have no filter.
    #[inline]
    pub(super) fn shortest(&self, query: &P::Query<'_>) -> Option<Match<'_, V>> {
        let length = self.shortest_length(query)?;
        let value = self.find(query, length)?;
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
            let here = self.store.find(&query, length).is_some();
            let there = self.old.as_ref().filter(|old| old.store.find(&query, length).is_some());
            assert!(here != there.is_some(), "{prefix} is in one place");
            if length >= first_filtered::<P>() {
                assert!(self.has_longer(&query), "the front knows that {prefix} is there");
                let filters = there.map_or(&self.filters, |old| &old.filters);
                let base = |group: &Group| group.lengths.base;
                let group = filters.asked(&query).iter().rfind(|group| base(group) < length);
                let group = group.expect("marks lead to the group of every prefix");
                let claims = query.ask(simd::Scalar, group);
                assert!(claims >> (length - base(group) - 1) & 1 == 1, "{prefix} is claimed");
            }
        }
        assert_eq!(per_length, self.per_length, "prefixes are counted by length");
    }

    /// Bytes of memory that the table takes, without what values point to.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let front = self.front.as_ref().map_or(0, Front::memory_bytes);
        let old = self.old.as_ref().map_or(0, |old| old.memory_bytes());
        self.store.memory_bytes() + self.filters.memory_bytes() + front + old
    }
}

/// The longest match that the filters know of.
#[inline(always)]
fn longest<'t, P: Prefix, V: Default>(
    store: &'t <P as Kind>::Store<V>,
    filters: &Filters,
    asker: impl Asker,
    query: &P::Query<'_>,
) -> Option<Match<'t, V>> {
    ask_each::<P, V>(store, filters.asked(query), asker, query)
}

/// The longest match in some groups, which are given shortest lengths first.
#[inline(always)]
pub(super) fn ask_each<'t, P: Prefix, V: Default>(
    store: &'t <P as Kind>::Store<V>,
    groups: &[Group],
    asker: impl Asker,
    query: &P::Query<'_>,
) -> Option<Match<'t, V>> {
    // Spelled out: a closure given to `find_map` may stay a function of its own.
    for group in groups.iter().rev() {
        let claims = query.ask(asker, group);
        if let Some(found) = read::<P, V>(store, query, group.lengths.base, claims) {
            return Some(found);
        }
    }
    None
}

/// Reads the prefixes of the claimed lengths, longest first.
#[inline(always)]
pub(super) fn read<'t, P: Prefix, V: Default>(
    store: &'t <P as Kind>::Store<V>,
    query: &P::Query<'_>,
    base: u8,
    mut claims: u32,
) -> Option<Match<'t, V>> {
    while claims != 0 {
        let lane = claims.ilog2();
        let length = base + lane as u8 + 1;
        let place = store.place(query, length);
        // The value, too: finding it would wait for the line to come.
        store.prefetch(length, place);
        if let Some(value) = store.find_at(query, length, place) {
            return Some(Match { length, value });
        }
        claims ^= 1 << lane;
    }
    None
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
            old: self.old.clone(),
            is_stale: self.is_stale,
            per_length: self.per_length.clone(),
            traffic: self.traffic.clone(),
            until_check: self.until_check,
            planned: self.planned,
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
        let one_in = prefixes.len().div_ceil(moving::SAMPLE).max(1);
        let some = prefixes.iter().step_by(one_in).map(|(prefix, _)| prefix);
        let mut table = Self::planned_for(&room, &mut moving::as_sample(some));
        table.extend(prefixes);
        table.filters.fold();
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
