//! Fewer components, or those of two filters: merging and union.

use super::super::Component;
use super::{ComponentId, DynamicFilter, IDS_LEFT};
use crate::scheme::Mismatch;

/// Keys remembered in the component `from` are now in the component `into`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// The component that is no more.
    pub from: ComponentId,
    /// The component that took its keys.
    pub into: ComponentId,
}

impl<C: Component> DynamicFilter<C> {
    /// Merges components whose keys fit into one (`n_i + n_j <= capacity`), until none do.
    /// Ids of merged components stay valid. Returns what was merged, for callers who keep
    /// ids of their own.
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
        let mut merges = Vec::new();
        while let Some((into, from)) = self.pair_that_fits() {
            let (from_id, component) = self.components.remove(from);
            let (into_id, target) = &mut self.components[into];
            target.absorb(&component).expect("components share one scheme");
            let merge = Merge { from: from_id, into: *into_id };
            self.redirect(merge);
            merges.push(merge);
        }
        if !merges.is_empty() {
            self.rebuild_slices();
            self.find_room(0);
        }
        merges
    }

    /// Takes over all components of another filter. Returns under which ids its keys are
    /// held here.
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

    /// The first pair of components whose keys fit into one.
    fn pair_that_fits(&self) -> Option<(usize, usize)> {
        let items: Vec<u64> = self.components.iter().map(|(_, c)| c.items()).collect();
        (0..items.len()).find_map(|into| {
            let both = |from: &usize| items[into].checked_add(items[*from]);
            let fits = |from: &usize| both(from).is_some_and(|keys| keys <= self.capacity);
            (into + 1..items.len()).find(fits).map(|from| (into, from))
        })
    }

    /// Lets the merged id, and all that led to it, lead to the merged component.
    fn redirect(&mut self, merge: Merge) {
        for target in self.aliases.values_mut().filter(|target| **target == merge.from) {
            *target = merge.into;
        }
        self.aliases.insert(merge.from, merge.into);
    }
}
