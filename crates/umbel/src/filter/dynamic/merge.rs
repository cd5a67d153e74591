//! Merges the components of a filter, and unites two filters.

use std::collections::BTreeMap;

use super::super::Component;
use super::{ComponentId, DynamicFilter, IDS_LEFT};
use crate::scheme::Mismatch;

/// A merge: keys of the component `from` are now in the component `into`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// The component that was removed.
    pub from: ComponentId,
    /// The component that took its keys.
    pub into: ComponentId,
}

impl<C: Component> DynamicFilter<C> {
    /// Merges components whose keys fit into one (`n_i + n_j <= capacity`), until none do. Ids of
    /// merged components stay valid. Returns the merges, for callers who store ids.
    ///
    /// ```
    /// use umbel::DynamicFilter;
    ///
    /// let mut filter = DynamicFilter::for_target(100, 0.01)?;
    /// let homes: Vec<_> = (0..300_u32).map(|n| filter.insert(n.to_le_bytes())).collect();
    /// for n in (0..300_u32).filter(|n| n % 3 > 0) {
    ///     filter.remove_from(homes[n as usize], n.to_le_bytes());
    /// }
    /// assert_eq!(filter.components().len(), 3);
    /// assert_eq!(filter.shrink().len(), 2);
    /// // The id from before the merge still names the component that holds the key.
    /// assert!(filter.remove_from(homes[297], 297_u32.to_le_bytes()));
    /// # Ok::<(), umbel::params::ParamError>(())
    /// ```
    ///
    /// # Panics
    /// Never: components of one filter share one scheme.
    pub fn shrink(&mut self) -> Vec<Merge> {
        let merges = self.merges();
        if merges.is_empty() {
            return Vec::new();
        }
        let mut components: Vec<_> =
            std::mem::take(&mut self.components).into_iter().map(Some).collect();
        let (mut moved, mut merged) = (BTreeMap::new(), Vec::new());
        for (into, from) in merges {
            let (from_id, component) = components[from].take().expect("each is merged once");
            let (into_id, target) = components[into].as_mut().expect("it takes others");
            target.absorb(&component).expect("components share one scheme");
            moved.insert(from_id, *into_id);
            merged.push(Merge { from: from_id, into: *into_id });
        }
        self.components = components.into_iter().flatten().collect();
        for target in self.aliases.values_mut() {
            *target = moved.get(target).copied().unwrap_or(*target);
        }
        self.aliases.extend(&moved);
        self.rebuild_slices();
        self.find_room(0);
        merged
    }

    /// Copies all components of another filter into this one. Returns the ids that they have here.
    ///
    /// # Errors
    /// If scheme or capacity differ; nothing changes then.
    ///
    /// # Panics
    /// If 2^32 components were ever made.
    pub fn union_with(&mut self, other: &Self) -> Result<Vec<Merge>, Mismatch> {
        self.scheme.check(&other.scheme)?;
        if self.capacity != other.capacity {
            return Err(Mismatch::Capacity(self.capacity, other.capacity));
        }
        let after = self.next_id.checked_add(other.components.len() as u32).expect(IDS_LEFT);
        let mut moves = Vec::new();
        for ((from, component), id) in other.components.iter().zip(self.next_id..) {
            let into = ComponentId(id);
            self.components.push((into, component.clone()));
            moves.push(Merge { from: *from, into });
            let aliases = other.aliases.iter().filter(|(_, target)| *target == from);
            moves.extend(aliases.map(|(alias, _)| Merge { from: *alias, into }));
        }
        self.next_id = after;
        self.rebuild_slices();
        self.find_room(0);
        Ok(moves)
    }

    /// Which component (second) is merged into which (first), by index: each component in turn
    /// takes the later ones that still fit.
    fn merges(&self) -> Vec<(usize, usize)> {
        let items = self.components.iter().map(|(_, component)| component.items());
        let mut left = Smallest::of(items.collect());
        let mut merges = Vec::new();
        for into in 0..self.components.len() {
            let Some(mut keys) = left.take(into) else { continue };
            let mut after = into;
            while let Some(room) = self.capacity.checked_sub(keys)
                && let Some(from) = left.first_at_most(room, after + 1)
            {
                keys += left.take(from).unwrap_or(0);
                merges.push((into, from));
                after = from;
            }
        }
        merges
    }
}

/// A segment tree of minima: finds the first remaining number that is at most a limit, and removes
/// numbers.
struct Smallest {
    /// The children of node `i` are `2i` and `2i + 1`; the second half holds the numbers.
    tree: Vec<Option<u64>>,
    leaves: usize,
}

impl Smallest {
    fn of(numbers: Vec<u64>) -> Self {
        let leaves = numbers.len().next_power_of_two();
        let mut tree = vec![None; leaves];
        tree.extend(numbers.into_iter().map(Some));
        tree.resize(2 * leaves, None);
        let mut smallest = Self { tree, leaves };
        (1..leaves).rev().for_each(|node| smallest.renew(node));
        smallest
    }

    fn renew(&mut self, node: usize) {
        let pair = [self.tree[2 * node], self.tree[2 * node + 1]];
        self.tree[node] = pair.into_iter().flatten().min();
    }

    /// Removes a number, if it is still there.
    fn take(&mut self, index: usize) -> Option<u64> {
        let mut node = self.leaves + index;
        let number = self.tree[node].take()?;
        while node > 1 {
            node /= 2;
            self.renew(node);
        }
        Some(number)
    }

    /// The first number from `start` on that is at most `limit`.
    fn first_at_most(&self, limit: u64, start: usize) -> Option<usize> {
        let fits = |node: usize| self.tree[node].is_some_and(|smallest| smallest <= limit);
        let mut node = self.leaves + start;
        if start >= self.leaves {
            return None;
        }
        // Go up until a subtree to the right has such a number, then down to its first one.
        while !fits(node) {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node = if fits(2 * node) { 2 * node } else { 2 * node + 1 };
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simple implementation: repeatedly merges the first pair that fits.
    fn one_by_one(items: &[u64], capacity: u64) -> Vec<(usize, usize)> {
        let (mut items, mut merges) = (items.to_vec(), Vec::new());
        let mut gone = vec![false; items.len()];
        loop {
            let pairs = (0..items.len()).flat_map(|i| (i + 1..items.len()).map(move |j| (i, j)));
            let mut there = pairs.filter(|(i, j)| !gone[*i] && !gone[*j]);
            let Some((into, from)) = there.find(|(i, j)| items[*i] + items[*j] <= capacity) else {
                return merges;
            };
            items[into] += items[from];
            gone[from] = true;
            merges.push((into, from));
        }
    }

    #[test]
    fn components_are_merged_as_if_the_first_pair_that_fits_were_looked_for_each_time() {
        let mut state = 1u64;
        for components in 1..40 {
            let shape = crate::Shape::new(640, 3).unwrap();
            let mut filter: DynamicFilter = DynamicFilter::with_shape(shape, 30).unwrap();
            let ids: Vec<_> =
                (0..30 * components as u32).map(|n| (filter.insert(n.to_le_bytes()), n)).collect();
            for (id, n) in ids {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if state >> 62 != 0 {
                    assert!(filter.remove_from(id, n.to_le_bytes()));
                }
            }
            let items: Vec<u64> = filter.components().iter().map(|(_, c)| c.items()).collect();
            assert_eq!(filter.merges(), one_by_one(&items, 30), "{items:?}");
            filter.shrink();
            filter.validate();
            assert!(filter.merges().is_empty());
        }
    }
}
