//! Families of shapes whose columns may share rows, and the columns and groups of each family.
//!
//! Always true: the counts match the columns and groups. They are updated with every change, so
//! that the search for work need not scan all columns, or the groups of other families.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bank, Column, ColumnId, Place, Rows};
use crate::design::ladder::Rung;
use crate::params::{DigestBits, Shape};

/// Shapes whose columns may share rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    pub(super) hashes: u32,
    digest_bits: DigestBits,
    /// The number of bits of a shape that is not on a ladder: it shares rows only with equal
    /// shapes.
    exactly: Option<u64>,
}

impl Family {
    pub(super) fn of(shape: &Shape) -> Self {
        let exactly = Rung::of(shape).is_none().then_some(shape.bits());
        Self { hashes: shape.hashes(), digest_bits: shape.digest_bits(), exactly }
    }
}

/// The rung of a shape; 0 if it is not on a ladder, where all shapes of a family are equal.
pub(super) fn exponent(shape: &Shape) -> u32 {
    Rung::of(shape).map_or(0, Rung::exponent)
}

/// The columns of a family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// How many there are of each shape.
    pub(super) rungs: BTreeMap<u32, (Shape, usize)>,
    /// Those that are asked alone.
    pub(super) loose: BTreeSet<ColumnId>,
    /// Groups in whose rows the others stand, by index.
    pub(super) groups: BTreeSet<usize>,
}

impl<R: Rows> Bank<R> {
    /// Updates the counts for a new column, which is asked alone.
    pub(super) fn join_family(&mut self, id: ColumnId, shape: &Shape) {
        let family = Family::of(shape);
        let members = self.families.entry(family).or_default();
        members.rungs.entry(exponent(shape)).or_insert((*shape, 0)).1 += 1;
        members.loose.insert(id);
        self.unsettled.insert(family);
    }

    /// Updates the counts for a column that is being removed.
    pub(super) fn leave_family(&mut self, id: ColumnId, shape: &Shape) {
        let family = Family::of(shape);
        let Some(members) = self.families.get_mut(&family) else { return };
        if let Some((_, columns)) = members.rungs.get_mut(&exponent(shape)) {
            *columns -= 1;
            if *columns == 0 {
                members.rungs.remove(&exponent(shape));
            }
        }
        members.loose.remove(&id);
        self.unsettled.insert(family);
        self.forget_if_empty(family);
    }

    /// Forgets a family that has neither columns nor rows.
    pub(super) fn forget_if_empty(&mut self, family: Family) {
        let is_empty = |members: &Members| members.rungs.is_empty() && members.groups.is_empty();
        if self.families.get(&family).is_some_and(is_empty) {
            self.families.remove(&family);
            self.unsettled.remove(&family);
        }
    }

    /// Checks all counts against a full recount, which is slow.
    pub(super) fn validate_families(&self) {
        let mut families: BTreeMap<Family, Members> = BTreeMap::new();
        for (id, column) in (0..).map(ColumnId).zip(&self.columns) {
            let Some(Column { shape, place, .. }) = column else { continue };
            let members = families.entry(Family::of(shape)).or_default();
            members.rungs.entry(exponent(shape)).or_insert((*shape, 0)).1 += 1;
            if matches!(place, Place::Loose(_)) {
                members.loose.insert(id);
            }
        }
        for (index, group) in self.groups.iter().enumerate() {
            families.entry(Family::of(group.shape())).or_default().groups.insert(index);
            let mut rungs: BTreeMap<u32, usize> = BTreeMap::new();
            for column in group.slots().iter().flatten().flat_map(|id| &self.columns[id.index()]) {
                *rungs.entry(exponent(&column.shape)).or_default() += 1;
            }
            assert_eq!(group.columns(), rungs.values().sum::<usize>(), "columns are counted");
            assert!(group.rungs().eq(rungs.keys().copied()), "rungs are known");
            let free = group.slots().iter().position(Option::is_none);
            assert_eq!(group.free_slot(), free, "the first free slot is known");
        }
        assert_eq!(families, self.families, "families are counted");
    }
}
