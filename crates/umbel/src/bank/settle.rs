//! Moves columns into rows, and builds other rows when the layout of a bank should change.
//!
//! New columns are asked alone. One for which a group has a free slot is written there and goes
//! live when all its rows are written. The layout is changed if rows take more than their bound,
//! if another layout saves a quarter of the accesses, or if one that saves less takes no more rows
//! to build than [`CREDIT`] times the bits of the columns that came since: the new groups are
//! built beside the old ones, from the master copies, and take their place in one step.
//!
//! Always true: between two parts the bank answers as ever. Between the first part of a [`Work`]
//! and its last, nothing else may change the bank.

use std::collections::{BTreeMap, BTreeSet};

use super::group::Group;
use super::layout::{Cost, Layout, MAX_STRETCH, Rungful};
use super::{Bank, BankError, Column, ColumnId, Place, Rows};
use crate::design::ladder::Rung;
use crate::params::{DigestBits, Shape};
use crate::sync;

/// Blocks of 64 rows that are written in one part.
const PART: usize = sync::size(512, 1);
/// Bits of rows that are built for a better layout, for each bit of a column that came.
pub(super) const CREDIT: u64 = 4;

/// Shapes whose columns may share rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Family {
    hashes: u32,
    digest_bits: DigestBits,
    /// Shapes that are not on a ladder share rows with their like only.
    exactly: Option<u64>,
}

impl Family {
    fn of(shape: &Shape) -> Self {
        let exactly = Rung::of(shape).is_none().then_some(shape.bits());
        Self { hashes: shape.hashes(), digest_bits: shape.digest_bits(), exactly }
    }
}

/// Which rung a shape stands on; all shapes of a family that is not on a ladder are alike.
fn exponent(shape: &Shape) -> u32 {
    Rung::of(shape).map_or(0, Rung::exponent)
}

/// Something to be done in parts that changes no answer.
pub(crate) enum Work<R> {
    /// A column moves into the rows of a group.
    Move { column: ColumnId, group: usize, slot: usize, next: usize },
    /// The groups of a family are built anew.
    Build(Build<R>),
}

/// Groups being built, and those that they replace.
pub(crate) struct Build<R> {
    groups: Vec<Group<R>>,
    replaced: Vec<usize>,
    /// The group and the block to be written next.
    next: (usize, usize),
    /// Bits of the rows.
    bits: u64,
}

impl<R: Rows> Work<R> {
    /// Does a part that only reads the bank; whether there are more of them.
    pub(crate) fn read_part(&mut self, bank: &Bank<R>) -> bool {
        let Self::Build(build) = self else { return false };
        let (index, block) = build.next;
        let Some(group) = build.groups.get_mut(index) else { return false };
        let slots: Vec<(usize, ColumnId)> = (0..)
            .zip(group.slots())
            .filter_map(|(slot, column)| Some((slot, (*column)?)))
            .collect();
        let columns: Vec<_> = slots
            .iter()
            .filter_map(|(slot, id)| Some((*slot, &bank.columns[id.index()].as_ref()?.bits)))
            .collect();
        group.write(&columns, block..block + PART);
        build.next = match block + PART {
            next if next < group.blocks() => (index, next),
            _ => (index + 1, 0),
        };
        build.next.0 < build.groups.len()
    }

    /// Does a part that changes the bank, after all that only read it; whether there are more.
    pub(crate) fn write_part(&mut self, bank: &mut Bank<R>) -> bool {
        match self {
            Self::Build(build) => {
                // What was replaced is freed with the work, not while the bank is locked.
                build.groups = bank.swap(std::mem::take(&mut build.groups), &build.replaced);
                bank.credit = bank.credit.saturating_sub(build.bits);
                false
            }
            Self::Move { column, group, slot, next } => {
                let there = &mut bank.groups[*group];
                if *next == 0 {
                    there.reserve(*slot, *column);
                }
                if let Some(column) = &bank.columns[column.index()] {
                    there.write(&[(*slot, &column.bits)], *next..*next + PART);
                }
                *next += PART;
                if *next < there.blocks() {
                    return true;
                }
                there.go_live(*slot);
                if let Some(column) = &mut bank.columns[column.index()] {
                    column.place = Place::Slot { group: *group, slot: *slot };
                }
                bank.loose.retain(|other| other != column);
                bank.relist();
                false
            }
        }
    }
}

impl<R: Rows> Bank<R> {
    /// Does all work there is.
    pub(super) fn settle(&mut self) {
        while let Some(mut work) = self.next_work() {
            while work.read_part(self) {}
            while work.write_part(self) {}
        }
    }

    /// What should be done next, if anything.
    pub(crate) fn next_work(&self) -> Option<Work<R>> {
        self.next_move().or_else(|| {
            let families = self.families();
            families.iter().find_map(|(family, rungs)| self.next_build(*family, rungs))
        })
    }

    /// A column that is asked alone although a group has room for it.
    fn next_move(&self) -> Option<Work<R>> {
        if self.groups.is_empty() {
            return None;
        }
        self.loose.iter().find_map(|id| {
            let shape = &self.columns[id.index()].as_ref()?.shape;
            let fits = |group: &Group<R>| {
                let steps = exponent(group.shape()).checked_sub(exponent(shape));
                Family::of(group.shape()) == Family::of(shape)
                    && steps.is_some_and(|steps| steps <= MAX_STRETCH)
            };
            let fitting = self.groups.iter().enumerate().filter(|(_, group)| fits(group));
            let with_room = fitting.filter_map(|(index, group)| Some((index, group.free_slot()?)));
            let (group, slot) =
                with_room.min_by_key(|(index, _)| self.groups[*index].shape().bits())?;
            Some(Work::Move { column: *id, group, slot, next: 0 })
        })
    }

    /// How many columns there are of each shape of each family.
    fn families(&self) -> BTreeMap<Family, BTreeMap<u32, (Shape, usize)>> {
        let mut families: BTreeMap<_, BTreeMap<u32, (Shape, usize)>> = BTreeMap::new();
        for Column { shape, .. } in self.columns.iter().flatten() {
            let rungs = families.entry(Family::of(shape)).or_default();
            rungs.entry(exponent(shape)).or_insert((*shape, 0)).1 += 1;
        }
        // A family whose last column is gone may still have rows.
        for group in &self.groups {
            families.entry(Family::of(group.shape())).or_default();
        }
        families
    }

    /// Other groups for a family, if they are worth it and there is memory for them.
    fn next_build(&self, family: Family, rungs: &BTreeMap<u32, (Shape, usize)>) -> Option<Work<R>> {
        let counted = rungs
            .iter()
            .map(|(exponent, (_, columns))| Rungful { exponent: *exponent, columns: *columns });
        let counted: Vec<Rungful> = counted.collect();
        let bits = counted.iter().map(|rung| (rung.columns as u64) << rung.exponent).sum();
        let (best, now) = (Layout::best(&counted, family.hashes), self.cost(family));
        let is_worthwhile = best.is_worthwhile(now, bits);
        if !is_worthwhile && !best.is_better(now) {
            return None;
        }
        let (mut runs, mut replaced) = (Vec::new(), self.groups_of(family));
        for run in best.runs.iter().filter(|run| run.width > 0) {
            let columns = self.columns_of(family, run.lowest..=run.highest);
            let shape = rungs[&run.highest].0;
            let same = |group: &Group<R>| {
                group.shape() == &shape
                    && group.width() == run.width
                    && group.slots().iter().flatten().all(|id| columns.contains(id))
            };
            // Columns that are not in it move there one by one.
            match replaced.iter().position(|index| same(&self.groups[*index])) {
                Some(kept) => _ = replaced.remove(kept),
                None => runs.push((shape, run.width, columns)),
            }
        }
        let bits = runs.iter().map(|(shape, width, _)| shape.bits() * *width as u64).sum();
        let changes = !runs.is_empty() || !replaced.is_empty();
        if !changes || (!is_worthwhile && bits > self.credit) {
            return None;
        }
        let groups = runs.into_iter().map(|(shape, width, columns)| live(shape, width, &columns));
        let groups = groups.collect::<Result<_, _>>().ok()?;
        Some(Work::Build(Build { groups, replaced, next: (0, 0), bits }))
    }

    fn groups_of(&self, family: Family) -> Vec<usize> {
        let of_family = |index: &usize| Family::of(self.groups[*index].shape()) == family;
        (0..self.groups.len()).filter(of_family).collect()
    }

    /// The columns of a family that stand on these rungs.
    fn columns_of(
        &self,
        family: Family,
        rungs: std::ops::RangeInclusive<u32>,
    ) -> BTreeSet<ColumnId> {
        let columns = (0..).map(ColumnId).zip(&self.columns);
        let here = columns.filter_map(|(id, column)| {
            let shape = &column.as_ref()?.shape;
            let fits = Family::of(shape) == family && rungs.contains(&exponent(shape));
            fits.then_some(id)
        });
        here.collect()
    }

    /// What the columns of a family cost as they are.
    fn cost(&self, family: Family) -> Cost {
        let mut cost = Cost::default();
        for group in self.groups_of(family).into_iter().map(|index| &self.groups[index]) {
            let bits = 1 << exponent(group.shape());
            cost.add_group(group.columns(), group.width(), bits, family.hashes);
        }
        let of_family = |id: &&ColumnId| {
            self.columns[id.index()]
                .as_ref()
                .is_some_and(|column| Family::of(&column.shape) == family)
        };
        cost.add_loose(self.loose.iter().filter(of_family).count());
        cost
    }

    /// Puts groups in the place of others, which are returned. Columns of these that are in no
    /// other are asked alone.
    fn swap(&mut self, groups: Vec<Group<R>>, replaced: &[usize]) -> Vec<Group<R>> {
        for group in replaced.iter().map(|index| &self.groups[*index]) {
            for id in group.slots().iter().flatten() {
                if let Some(column) = &mut self.columns[id.index()] {
                    column.place = Place::Loose;
                }
            }
        }
        let (old, kept): (Vec<_>, Vec<_>) = (0..)
            .zip(std::mem::take(&mut self.groups))
            .partition(|(index, _)| replaced.contains(index));
        self.groups = kept.into_iter().map(|(_, group)| group).chain(groups).collect();
        for (index, group) in self.groups.iter().enumerate() {
            for (slot, id) in group.slots().iter().enumerate() {
                if let Some(column) = id.and_then(|id| self.columns[id.index()].as_mut()) {
                    column.place = Place::Slot { group: index, slot };
                }
            }
        }
        let loose = |column: &Option<Column>| {
            column.as_ref().is_some_and(|column| column.place == Place::Loose)
        };
        self.loose = (0..)
            .map(ColumnId)
            .zip(&self.columns)
            .filter(|(_, column)| loose(column))
            .map(|(id, _)| id)
            .collect();
        self.relist();
        old.into_iter().map(|(_, group)| group).collect()
    }
}

/// A group in which these columns answer as soon as its rows are written.
fn live<R: Rows>(
    shape: Shape,
    width: usize,
    columns: &BTreeSet<ColumnId>,
) -> Result<Group<R>, BankError> {
    let mut group = Group::new(shape, columns.len(), width)?;
    for (slot, id) in columns.iter().enumerate() {
        group.reserve(slot, *id);
        group.go_live(slot);
    }
    Ok(group)
}
