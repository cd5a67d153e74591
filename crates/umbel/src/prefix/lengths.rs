//! The filters of all lengths of a table: which groups there are, which are worth asking.
//!
//! Most lengths of a real table hold hardly any prefixes. Groups that are empty do not exist;
//! the longest ones that are rare together are asked only where a mark says that some of
//! their prefixes begin so.
//!
//! Always true: a prefix that was added and not removed is claimed by its group, and marked
//! if its group is rare.

use super::Prefix;
use super::filters::{Blocks, Group, Seat};
use super::front::SHORT;
use super::kind::Query;
use super::marks::Marks;

/// Where a prefix stands: the number of its group, if that is there, and its seat in it.
pub(super) type Standing = Option<(usize, Seat)>;

/// Prefixes longer than the marks are at most one in so many.
const RARE: usize = 64;

/// The filters of all lengths, and the marks before the rare ones.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    /// Longest first; only groups that have prefixes, or had.
    pub(super) groups: Vec<Group>,
    /// The first `rare` groups are asked only under marks of this length.
    rare: usize,
    mark_length: u8,
    marks: Marks,
}

impl Filters {
    /// Empty filters for so many prefixes of each length.
    pub(super) fn for_lengths<P: Prefix>(per_length: &[usize]) -> Self {
        let shortest = first_filtered::<P>();
        let bases = (0..P::LONGEST).step_by(8).filter(|base| base + 8 >= shortest);
        let items = |first: u8, count: usize| -> usize {
            per_length.iter().skip(first.into()).take(count).sum()
        };
        let groups: Vec<Group> = bases
            .rev()
            .filter(|base| items(base + 1, 8) > 0)
            .map(|base| {
                let lanes = 8 / P::SPANS;
                let spans: Vec<usize> = (0..P::SPANS)
                    .map(|span| items(base + 1 + (span * lanes) as u8, lanes))
                    .collect();
                Group { base, blocks: Blocks::for_items(&spans, P::FILTER_BITS) }
            })
            .collect();
        // As many of the longest lengths as are rare together, names apart: those are cut to
        // their own length anyway.
        let filtered: usize = items(shortest, usize::from(P::LONGEST));
        let beyond = |group: &Group| items(group.base + 1, usize::from(P::LONGEST));
        let is_rare = |group: &&Group| P::SPANS < 8 && beyond(group) * RARE <= filtered;
        let rare = groups.iter().take_while(is_rare).count();
        let mark_length = rare.checked_sub(1).map_or(P::LONGEST, |last| groups[last].base);
        let behind = items(mark_length + 1, usize::from(P::LONGEST));
        Self { groups, rare, mark_length, marks: Marks::for_items(behind) }
    }

    /// The groups to ask for a question, longest lengths first.
    #[inline(always)]
    pub(super) fn asked(&self, query: &impl Query) -> &[Group] {
        &self.groups[if self.is_marked(query) { 0 } else { self.rare }..]
    }

    /// Whether rare lengths may match.
    #[inline(always)]
    pub(super) fn is_marked(&self, query: &impl Query) -> bool {
        self.marks.is_set(query.mark(self.mark_length))
    }

    /// The groups that every question is asked.
    pub(super) fn common(&self) -> &[Group] {
        &self.groups[self.rare..]
    }

    /// Where a prefix stands, if its group is there.
    #[inline(always)]
    pub(super) fn seat<P: Prefix>(&self, query: &impl Query, length: u8) -> Standing {
        let base = Group::base_of(length);
        let group = self.groups.iter().position(|group| group.base == base)?;
        let span = usize::from(length - base - 1) * P::SPANS / 8;
        Some((group, self.groups[group].blocks.seat(span, query.spot(length))))
    }

    /// Makes the group of a length that had no prefixes yet.
    #[cold]
    pub(super) fn add_group<P: Prefix>(&mut self, length: u8) {
        let base = Group::base_of(length);
        let place = self.groups.partition_point(|group| group.base > base);
        let blocks = Blocks::for_items(&[0; 8][..P::SPANS], P::FILTER_BITS);
        self.groups.insert(place, Group { base, blocks });
        // One among the rare is beyond the marks, as they are.
        self.rare += usize::from(place < self.rare);
    }

    /// Adds a prefix whose group is there; true if its filter should be made anew, for more.
    #[inline(always)]
    pub(super) fn add(&mut self, seat: Standing, query: &impl Query, length: u8) -> bool {
        let Some((group, seat)) = seat else { return true };
        let renew = self.groups[group].blocks.add(seat);
        renew | (length > self.mark_length && self.marks.add(query.mark(self.mark_length)))
    }

    /// Removes a prefix that was added; true if its filter should be made anew, without what
    /// is left of those that are gone.
    #[inline(always)]
    pub(super) fn remove(&mut self, seat: Standing, query: &impl Query, length: u8) -> bool {
        let Some((group, seat)) = seat else { return true };
        if length > self.mark_length {
            self.marks.remove(query.mark(self.mark_length));
        }
        self.groups[group].blocks.remove(seat)
    }

    /// Whether a prefix may be there: certainly if it is.
    #[inline(always)]
    pub(super) fn claims(&self, seat: Standing) -> bool {
        seat.is_some_and(|(group, seat)| self.groups[group].blocks.claims(seat))
    }

    /// Asks for the memory of a change of a prefix.
    #[inline(always)]
    pub(super) fn prefetch(&self, seat: Standing) {
        if let Some((group, seat)) = seat {
            self.groups[group].blocks.prefetch_change(seat);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|group| group.blocks.memory_bytes()).sum();
        groups + self.marks.memory_bytes()
    }
}

/// The shortest length that has a filter.
pub(super) fn first_filtered<P: Prefix>() -> u8 {
    if P::SPANS < 8 { SHORT + 1 } else { 1 }
}
