//! Moves columns into rows, and builds other rows when the layout of a bank should change.
//!
//! New columns are asked alone. If a group has a free slot for a column, the column is written
//! there and goes live when all its rows are written. The layout is changed in three cases: rows
//! exceed their bound; another layout saves a quarter of the accesses; or one that saves less needs
//! no more bits of new rows than [`CREDIT`] times the bits of the columns added since. The new
//! groups are built beside the old ones, from the master copies, and replace them in one step.
//!
//! Always true: between two parts of the work, lookups give the same answers as before. Between the
//! first part of a [`Work`] and its last, nothing else may change the bank.

use super::family::{Family, Members, exponent};
use super::group::Group;
use super::layout::{Cost, Layout, MAX_STRETCH, Rungful};
use super::{Bank, BankError, ColumnId, Place, Rows};
use crate::params::Shape;
use crate::sync;

/// Blocks of 64 rows that are written in one part.
const PART: usize = sync::size(512, 1);
/// Bits of rows that may be built for a better layout, per bit of columns added.
pub(super) const CREDIT: u64 = 4;

/// Work that is done in parts and does not change the answer of any lookup.
pub(crate) enum Work<R> {
    /// A column moves into the rows of a group.
    Move { column: ColumnId, group: usize, slot: usize, next: usize },
    /// The groups of a family are rebuilt.
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
    /// Does a part that only reads the bank. Returns whether there are more such parts.
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

    /// Does a part that changes the bank, after all parts that only read it. Returns whether there
    /// are more such parts.
    pub(crate) fn write_part(&mut self, bank: &mut Bank<R>) -> bool {
        match self {
            Self::Build(build) => {
                // The replaced groups are freed when the work is dropped, not while the bank is
                // locked.
                build.groups = bank.swap(std::mem::take(&mut build.groups), &build.replaced);
                bank.credit = bank.credit.saturating_sub(build.bits);
                false
            }
            Self::Move { column, group, slot, next } => {
                let there = &mut bank.groups[*group];
                if let Some(moved) = &bank.columns[column.index()] {
                    if *next == 0 {
                        there.reserve(*slot, *column, exponent(&moved.shape));
                    }
                    there.write(&[(*slot, &moved.bits)], *next..*next + PART);
                }
                *next += PART;
                if *next < there.blocks() {
                    return true;
                }
                there.go_live(*slot);
                bank.move_in(*column, *group, *slot);
                bank.list_slot(*group, *slot, *column);
                false
            }
        }
    }
}

impl<R: Rows> Bank<R> {
    /// Does all work that is left.
    pub(super) fn settle(&mut self) {
        while let Some(mut work) = self.next_work() {
            while work.read_part(self) {}
            while work.write_part(self) {}
        }
        self.unsettled.clear();
    }

    /// The next piece of work, if any is left.
    pub(crate) fn next_work(&self) -> Option<Work<R>> {
        let changed = || self.unsettled.iter().filter_map(|it| Some((it, self.families.get(it)?)));
        changed()
            .find_map(|(_, members)| self.next_move(members))
            .or_else(|| changed().find_map(|(family, members)| self.next_build(*family, members)))
    }

    /// A column that is asked alone although a group has room for it.
    fn next_move(&self, members: &Members) -> Option<Work<R>> {
        let has_room = |index: &usize| self.groups[*index].free_slot().is_some();
        let with_room: Vec<usize> = members.groups.iter().copied().filter(has_room).collect();
        if with_room.is_empty() {
            return None;
        }
        members.loose.iter().find_map(|id| {
            let shape = &self.columns[id.index()].as_ref()?.shape;
            let fits = |index: &usize| {
                let steps = exponent(self.groups[*index].shape()).checked_sub(exponent(shape));
                steps.is_some_and(|steps| steps <= MAX_STRETCH)
            };
            let fitting = with_room.iter().copied().filter(fits);
            let group = fitting.min_by_key(|index| self.groups[*index].shape().bits())?;
            let slot = self.groups[group].free_slot()?;
            Some(Work::Move { column: *id, group, slot, next: 0 })
        })
    }

    /// Finds better groups for a family, if they are worth building and there is memory for them.
    fn next_build(&self, family: Family, members: &Members) -> Option<Work<R>> {
        let rungs = &members.rungs;
        let counted = rungs
            .iter()
            .map(|(exponent, (_, columns))| Rungful { exponent: *exponent, columns: *columns });
        let counted: Vec<Rungful> = counted.collect();
        let bits = counted.iter().map(|rung| (rung.columns as u64) << rung.exponent).sum();
        let (best, now) =
            (Layout::best(&counted, family.hashes), self.cost(family.hashes, members));
        let is_worthwhile = best.is_worthwhile(now, bits);
        if !is_worthwhile && !best.is_better(now) {
            return None;
        }
        let mut runs = Vec::new();
        let mut replaced: Vec<usize> = members.groups.iter().copied().collect();
        for run in best.runs.iter().filter(|run| run.width > 0) {
            let shape = rungs[&run.highest].0;
            let same = |group: &Group<R>| {
                group.shape() == &shape
                    && group.width() == run.width
                    && group.rungs().all(|rung| (run.lowest..=run.highest).contains(&rung))
            };
            // An existing group that fits is kept; missing columns move into it one by one.
            match replaced.iter().position(|index| same(&self.groups[*index])) {
                Some(kept) => _ = replaced.remove(kept),
                None => runs.push((shape, run)),
            }
        }
        let bits = runs.iter().map(|(shape, run)| shape.bits() * run.width as u64).sum();
        let changes = !runs.is_empty() || !replaced.is_empty();
        if !changes || (!is_worthwhile && bits > self.credit) {
            return None;
        }
        let groups = runs.into_iter().map(|(shape, run)| {
            self.live(shape, run.width, &self.columns_of(family, run.lowest..=run.highest))
        });
        let groups = groups.collect::<Result<_, _>>().ok()?;
        Some(Work::Build(Build { groups, replaced, next: (0, 0), bits }))
    }

    /// The columns of a family that stand on these rungs.
    fn columns_of(&self, family: Family, rungs: std::ops::RangeInclusive<u32>) -> Vec<ColumnId> {
        let columns = (0..).map(ColumnId).zip(&self.columns);
        let here = columns.filter_map(|(id, column)| {
            let shape = &column.as_ref()?.shape;
            let fits = Family::of(shape) == family && rungs.contains(&exponent(shape));
            fits.then_some(id)
        });
        here.collect()
    }

    /// What the columns of a family cost in the current layout.
    fn cost(&self, hashes: u32, members: &Members) -> Cost {
        let mut cost = Cost::default();
        for group in members.groups.iter().map(|index| &self.groups[*index]) {
            let bits = 1 << exponent(group.shape());
            cost.add_group(group.columns(), group.width(), bits, hashes);
        }
        cost.add_loose(members.loose.len());
        cost
    }

    /// Replaces groups by new ones and returns the old ones. Columns of old groups that are in no
    /// new group are asked alone.
    fn swap(&mut self, groups: Vec<Group<R>>, replaced: &[usize]) -> Vec<Group<R>> {
        let mut old = Vec::new();
        // In descending order, so that the group that `swap_remove` moves is not to be removed.
        for index in replaced.iter().rev() {
            let gone = self.groups.swap_remove(*index);
            gone.slots().iter().flatten().for_each(|id| self.move_out(*id));
            self.members(&gone).groups.remove(index);
            self.renumber(*index);
            old.push(gone);
        }
        for group in groups {
            let index = self.groups.len();
            for (slot, id) in (0..).zip(group.slots()) {
                if let Some(id) = id {
                    self.move_in(*id, index, slot);
                }
            }
            self.members(&group).groups.insert(index);
            self.groups.push(group);
        }
        old.iter().for_each(|group| self.forget_if_empty(Family::of(group.shape())));
        self.relist();
        old
    }

    /// The family of a group.
    fn members(&mut self, group: &Group<R>) -> &mut Members {
        self.families.entry(Family::of(group.shape())).or_default()
    }

    /// Updates the index of the group that `swap_remove` moved to `index`, if it moved one.
    fn renumber(&mut self, index: usize) {
        let Some(group) = self.groups.get(index) else { return };
        for (slot, id) in (0..).zip(group.slots()) {
            if let Some(column) = id.and_then(|id| self.columns[id.index()].as_mut()) {
                column.place = Place::Slot { group: index, slot };
            }
        }
        let members = self.families.entry(Family::of(group.shape())).or_default();
        members.groups.remove(&self.groups.len());
        members.groups.insert(index);
    }

    /// Records that a column is asked alone from now on. The caller must call [`Self::relist`].
    fn move_out(&mut self, id: ColumnId) {
        let Some(column) = &mut self.columns[id.index()] else { return };
        column.place = Place::Loose(self.loose.len());
        self.loose.push(id);
        if let Some(members) = self.families.get_mut(&Family::of(&column.shape)) {
            members.loose.insert(id);
        }
    }

    /// Records that a column is asked in the rows of a group from now on.
    fn move_in(&mut self, id: ColumnId, group: usize, slot: usize) {
        self.unlist(id);
        let Some(column) = &mut self.columns[id.index()] else { return };
        column.place = Place::Slot { group, slot };
        if let Some(members) = self.families.get_mut(&Family::of(&column.shape)) {
            members.loose.remove(&id);
        }
    }

    /// A group in which these columns are live. Its rows are still to be written.
    fn live(
        &self,
        shape: Shape,
        width: usize,
        columns: &[ColumnId],
    ) -> Result<Group<R>, BankError> {
        let mut group = Group::new(shape, columns.len(), width)?;
        for (slot, id) in columns.iter().enumerate() {
            let column = self.columns[id.index()].as_ref().ok_or(BankError::NoColumn(*id))?;
            group.reserve(slot, *id, exponent(&column.shape));
            group.go_live(slot);
        }
        Ok(group)
    }
}
