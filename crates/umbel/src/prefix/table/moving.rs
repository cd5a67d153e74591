//! Other stores and filters for a table, filled in parts.
//!
//! What a table had becomes old: nothing is added to it, and with every change of the table some
//! prefixes move from there to the new store and its filters. Meanwhile lookups ask both. It takes
//! far fewer changes than make the new ones too small in turn; small tables move at once.
//!
//! Always true: a prefix is in one of the two stores, and claimed by the filters beside it.

use super::Table;
use crate::prefix::Prefix;
use crate::prefix::kind::{Kind, Query, Store};
use crate::prefix::lengths::{Filters, first_filtered};
use crate::prefix::plan::Demand;

/// Slots whose prefixes move with one change: some microseconds of work.
const SLOTS: usize = 32;
/// Tables of fewer prefixes move at once.
const SMALL: usize = 1 << 12;
/// The plan is checked after so many changes, or half as many as it was made for.
pub(super) const CHECK: usize = 1 << 10;
/// Prefixes that a plan is made from: some hundred microseconds of work.
pub(super) const SAMPLE: usize = 1 << 12;
/// A plan is replaced if it costs so many times the best one: moving costs as much as some
/// lookups of every prefix.
const DRIFT: f64 = 1.2;

/// Prefixes as their bits and lengths. Names have no bits.
pub(super) fn as_sample<'a, P: Prefix>(prefixes: impl Iterator<Item = &'a P>) -> Vec<(u128, u8)> {
    prefixes.filter_map(|prefix| Some((prefix.as_query().bits()?, prefix.length()))).collect()
}

/// What prefixes are moved from.
pub(in crate::prefix) struct Old<P: Prefix, V: Default> {
    pub(super) store: <P as Kind>::Store<V>,
    pub(in crate::prefix) filters: Filters,
}

impl<P: Prefix, V: Default> Old<P, V> {
    /// Removes a prefix.
    pub(super) fn remove(&mut self, prefix: &P, query: &P::Query<'_>) -> Option<V> {
        let length = prefix.length();
        let value = self.store.remove_at(prefix, self.store.place(query, length))?;
        if length >= first_filtered::<P>() {
            // It is not made anew any more.
            let _ = self.filters.remove(self.filters.seat::<P>(query, length));
        }
        Some(value)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.filters.memory_bytes()
    }
}

impl<P: Prefix, V: Default> Clone for Old<P, V>
where
    <P as Kind>::Store<V>: Clone,
{
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), filters: self.filters.clone() }
    }
}

impl<P: Prefix, V: Default> Table<P, V> {
    /// Begins to move all prefixes to a store and filters with room for an eighth more, unless
    /// they are moving already: then once that is done.
    #[cold]
    pub(super) fn renew(&mut self) {
        if self.old.is_some() {
            self.is_stale = true;
            return;
        }
        let demand = self.demand();
        let room: Vec<usize> = self.per_length.iter().map(|items| items + items / 8).collect();
        let filters = Filters::for_lengths::<P>(&room, &demand);
        let store = std::mem::replace(&mut self.store, <P as Kind>::Store::with_room(&room));
        let filters = std::mem::replace(&mut self.filters, filters);
        self.old = Some(Box::new(Old { store, filters }));
        self.planned = self.len();
        while self.old.is_some() && self.len() < SMALL {
            self.move_some();
        }
    }

    /// What lookups of the table ask for, as far as it is known.
    fn demand(&self) -> Demand {
        let one_in = self.len().div_ceil(SAMPLE).max(1);
        let mut sample = as_sample(self.store.sample(one_in).iter());
        Demand::new(first_filtered::<P>(), &self.per_length, &self.traffic, &mut sample)
    }

    /// Takes a change into account; once there were many, checks whether the plan is still good.
    #[inline(always)]
    pub(super) fn count_change(&mut self) {
        self.until_check -= 1;
        if self.until_check == 0 {
            self.check_plan();
        }
    }

    /// Begins to move to a new plan if it is much better than the one in use, or if so many
    /// prefixes are gone that most marks are of no use.
    #[cold]
    fn check_plan(&mut self) {
        self.until_check = CHECK.max(self.len().max(self.planned) / 2);
        if self.old.is_some() || P::SPANS == 8 {
            return;
        }
        let demand = self.demand();
        let (now, best) = (self.filters.cost(&demand), demand.cost(demand.best().into_iter()));
        if now > best * DRIFT || self.len() < self.planned / 4 {
            self.renew();
        }
    }

    /// Tells how many lookups matched each length, 0 first. Plans that are made from now on follow
    /// these more than the prefixes; [`Self::replan`] makes one.
    pub fn set_traffic(&mut self, per_length: &[u64]) {
        self.traffic = per_length.to_vec();
    }

    /// Chooses anew which lengths are asked together, and moves all prefixes before it returns:
    /// about a tenth of a second for a million.
    ///
    /// A table does that by itself when its lengths have changed much, a few prefixes with every
    /// change. This is for owners that know better: after [`Self::set_traffic`], or for a copy on
    /// another thread, which then replaces the table.
    pub fn replan(&mut self) {
        self.is_stale = false;
        while self.old.is_some() {
            self.move_part();
        }
        self.renew();
        while self.old.is_some() {
            self.move_part();
        }
    }

    /// Moves some prefixes, if any are to be moved.
    #[inline(always)]
    pub(super) fn move_some(&mut self) {
        if self.old.is_some() {
            self.move_part();
        }
    }

    #[cold]
    fn move_part(&mut self) {
        let Some(old) = &mut self.old else { return };
        let moved = old.store.take_some(SLOTS);
        if moved.is_empty() {
            self.old = None;
            self.filters.fold();
            if std::mem::take(&mut self.is_stale) {
                self.renew();
            }
            return;
        }
        for (prefix, value) in moved {
            let change = self.fetch(&prefix.as_query(), prefix.length());
            // What was just made for them has room for them.
            let _ = self.put(&prefix, value, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    use super::*;
    use crate::prefix::filters::mix;
    use crate::prefix::{Ipv4Prefix, Ipv6Prefix, Name};

    fn longest<P: Prefix + Ord>(
        all: &BTreeMap<P, u32>,
        address: &P::Address,
        lengths: u8,
    ) -> Option<(u8, u32)> {
        (0..=lengths).rev().find_map(|length| Some((length, *all.get(&P::of(address, length))?)))
    }

    /// Prefixes come, go and change while others move; nothing is lost, and little moves at a time.
    fn grows_in_parts<P: Prefix + Ord + Clone>(make: fn(u64) -> (P, P::Address), lengths: u8) {
        let (mut table, mut all): (Table<P, u32>, _) = (Table::new(), BTreeMap::new());
        let (mut moves, mut begun, mut last) = (0, 0, false);
        for step in 0..30_000u32 {
            let (prefix, address) = make(mix(step.into()));
            if step % 7 == 3 {
                let (gone, _) = make(mix(u64::from(step / 2)));
                assert_eq!(table.remove(&gone), all.remove(&gone), "{gone}");
            }
            if step % 11 == 5 {
                let (again, _) = make(mix(u64::from(step / 3)));
                assert_eq!(table.insert(again.clone(), step), all.insert(again, step));
            }
            let left = |table: &Table<P, u32>| {
                table.old.as_ref().map_or(0, |old| old.store.iter().count())
            };
            let before = if moves % 50 == 0 { left(&table) } else { 0 };
            assert_eq!(table.insert(prefix.clone(), step), all.insert(prefix, step));
            moves += u32::from(table.old.is_some());
            begun += u32::from(table.old.is_some() && !last);
            last = table.old.is_some();
            if before > 0 && last {
                assert!(before - left(&table) <= SLOTS + 1, "few prefixes move at a time");
            }
            if step % 1000 == 0 {
                table.validate();
            }
            let found = table.lookup(&address).map(|found| (found.length, *found.value));
            assert_eq!(found, longest(&all, &address, lengths), "step {step}");
        }
        assert_eq!((table.len(), table.iter().count()), (all.len(), all.len()));
        assert!(begun >= 2 && moves > 100, "prefixes moved in {moves} changes, {begun} times");
        let addresses: Vec<P::Address> = (0..500).map(|n| make(mix(n)).1).collect();
        let mut found = Vec::new();
        table.lookup_batch(&addresses, &mut found);
        let one = addresses.iter().map(|address| table.lookup(address));
        assert!(found.iter().copied().eq(one));
        table.validate();
    }

    #[test]
    fn addresses_grow_in_parts() {
        grows_in_parts::<Ipv4Prefix>(
            |random| {
                let address = Ipv4Addr::from(random as u32);
                let length = [8, 16, 20, 22, 24, 24, 24, 28][(random >> 40) as usize % 8];
                (Ipv4Prefix::of(&address, length), address)
            },
            32,
        );
        grows_in_parts::<Ipv6Prefix>(
            |random| {
                let address = std::net::Ipv6Addr::from(u128::from(random) << 64 | 1);
                let length = [12, 29, 32, 40, 44, 48, 56, 128][(random % 8) as usize];
                (Ipv6Prefix::of(&address, length), address)
            },
            128,
        );
    }

    #[test]
    fn names_grow_in_parts() {
        grows_in_parts::<Name>(
            |random| {
                let text = format!("/{}/{:x}/{}", random % 3, random >> 40, random >> 32 & 3);
                let name: Name = text.parse().expect("a name");
                (Name::of(&name, 2 + (random >> 60 & 1) as u8), name)
            },
            3,
        );
    }
}
