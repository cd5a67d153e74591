//! The filters of all lengths of a table: which groups there are, which are worth asking.
//!
//! Groups follow the plan (`plan`) that was best when the filters were made. Lengths that had no
//! prefixes then have no group; the first prefix of such a length gets one of its own, without a
//! filter. A few of those, and the filters should be made anew.
//!
//! Always true: every prefix has a group, and is claimed by it; no mark before it is clear.

use super::Prefix;
use super::filters::{Blocks, Group, Seat};
use super::front::SHORT;
use super::kind::Query;
use super::marks::Marks;
use super::plan::{Demand, LANES, Lengths, Planned};

/// Where a prefix stands: the number of its group, if there is one, and its seat in it.
pub(super) type Standing = Option<(usize, Seat)>;

/// Groups for lengths that the plan does not know, at most.
const MAX_UNPLANNED: usize = 4;

/// Beginnings that the marks of such a group have room for.
const FEWEST_MARKS: usize = 256;

/// The filters of all lengths, and the marks before them.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    /// Shortest lengths first.
    pub(super) groups: Vec<Group>,
    marks: Marks,
    /// The number of each length's group, plus one.
    group_of: Vec<u8>,
    /// How many groups to ask, by how many levels of marks are set.
    reach: Vec<u8>,
    unplanned: usize,
}

impl Filters {
    /// Empty filters for so many prefixes of each length.
    pub(super) fn for_lengths<P: Prefix>(per_length: &[usize], demand: &Demand) -> Self {
        let plan = if P::SPANS < 8 { demand.best() } else { eights::<P>(per_length) };
        let mut filters = Self {
            groups: Vec::with_capacity(plan.len()),
            marks: Marks::new(demand.common(&plan)),
            group_of: vec![0; usize::from(P::LONGEST) + 1],
            reach: Vec::new(),
            unplanned: 0,
        };
        for Planned { lengths, is_marked } in plan {
            if is_marked {
                let longer = per_length.iter().skip(usize::from(lengths.base) + 1);
                filters.marks.push(lengths.base, longer.sum());
            }
            filters.groups.push(Group::for_items::<P>(lengths, is_marked, per_length));
        }
        filters.number_groups();
        filters
    }

    fn number_groups(&mut self) {
        self.group_of.fill(0);
        self.reach = vec![0];
        for (number, group) in (1..).zip(&mut self.groups) {
            if group.is_marked {
                self.reach.push(0);
            }
            group.levels = self.reach.len() - 1;
            self.reach[group.levels] = number;
            let lengths = usize::from(group.lengths.base) + 1..;
            let lanes = self.group_of[lengths].iter_mut().take(group.lengths.lanes.into());
            lanes.for_each(|group_of| *group_of = number);
        }
    }

    /// The groups to ask for a question, shortest lengths first.
    #[inline(always)]
    pub(super) fn asked(&self, query: &impl Query) -> &[Group] {
        &self.groups[..self.reached(query)]
    }

    /// How many groups to ask for a question, the shortest ones.
    #[inline(always)]
    pub(super) fn reached(&self, query: &impl Query) -> usize {
        self.reach[self.marks.reached(query)].into()
    }

    /// Asks for the memory that [`Self::reached`] will read.
    #[inline(always)]
    pub(super) fn prefetch_marks(&self, query: &impl Query) {
        self.marks.prefetch(query);
    }

    /// Where a prefix stands, if there is a group for it.
    #[inline(always)]
    pub(super) fn seat<P: Prefix>(&self, query: &impl Query, length: u8) -> Standing {
        let group = usize::from(self.group_of[usize::from(length)]).checked_sub(1)?;
        Some((group, self.groups[group].seat::<P>(query, length)))
    }

    /// Makes a group for a length that has none.
    #[cold]
    pub(super) fn add_group<P: Prefix>(&mut self, length: u8) {
        let lengths = match P::SPANS {
            8 => Lengths { base: (length - 1) & !(LANES - 1), lanes: LANES },
            _ => Lengths { base: length - 1, lanes: 1 },
        };
        let place = self.groups.partition_point(|group| group.lengths.base < lengths.base);
        // Marks in the middle would not be those of the longer prefixes that are there already.
        let is_marked = P::SPANS < 8 && place == self.groups.len() && lengths.base > SHORT;
        if is_marked {
            self.marks.push(lengths.base, FEWEST_MARKS);
        }
        self.groups.insert(place, Group::for_items::<P>(lengths, is_marked, &[]));
        self.unplanned += usize::from(P::SPANS < 8);
        self.number_groups();
    }

    /// Adds a prefix; true if the filters should be made anew.
    #[inline(always)]
    pub(super) fn add(&mut self, seat: Standing, query: &impl Query) -> bool {
        let Some((group, seat)) = seat else { return true };
        let is_full = self.groups[group].blocks.add(seat);
        is_full
            | self.marks.add(query, self.groups[group].levels)
            | (self.unplanned > MAX_UNPLANNED)
    }

    /// Removes a prefix that was added; true if its filter should be made anew, without what
    /// is left of those that are gone.
    #[inline(always)]
    pub(super) fn remove(&mut self, seat: Standing) -> bool {
        let Some((group, seat)) = seat else { return true };
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

    /// Gives memory back that turned out to be of no use. To be called once they are filled.
    pub(super) fn fold(&mut self) {
        self.marks.fold();
    }

    /// Lines of a lookup, on average, if this is what is asked for.
    pub(super) fn cost(&self, demand: &Demand) -> f64 {
        let planned =
            |group: &Group| Planned { lengths: group.lengths, is_marked: group.is_marked };
        demand.cost(self.groups.iter().map(planned))
    }

    /// Bits of all filters and marks, without counters.
    pub(super) fn bits(&self) -> usize {
        self.groups.iter().map(|group| group.blocks.bits()).sum::<usize>() + self.marks.bits()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|group| group.blocks.memory_bytes()).sum();
        groups + self.marks.memory_bytes()
    }
}

impl Group {
    /// Empty filters for so many prefixes of each length.
    pub(super) fn for_items<P: Prefix>(
        lengths: Lengths,
        is_marked: bool,
        per_length: &[usize],
    ) -> Self {
        let lanes = (1 << lengths.lanes) - 1;
        if P::SPANS < 8 && lengths.lanes == 1 {
            return Self { lengths, lanes, is_marked, levels: 0, blocks: Blocks::direct() };
        }
        let in_span = 8 / P::SPANS;
        let items = |span: usize| -> usize {
            let first = usize::from(lengths.base) + 1 + span * in_span;
            per_length.iter().skip(first).take(in_span).sum()
        };
        let spans: Vec<usize> =
            (0..usize::from(lengths.lanes).div_ceil(in_span)).map(items).collect();
        let blocks = Blocks::for_items(&spans, P::FILTER_BITS);
        Self { lengths, lanes, is_marked, levels: 0, blocks }
    }

    /// Where a prefix stands.
    #[inline(always)]
    pub(super) fn seat<P: Prefix>(&self, query: &impl Query, length: u8) -> Seat {
        let base = self.lengths.base;
        let span = usize::from(length - base - 1) * P::SPANS / 8;
        self.blocks.seat(span, query.spot(base, length))
    }
}

/// Groups of eight lengths, as far as they are in use. Names have a block for each length
/// whatever the plan.
fn eights<P: Prefix>(per_length: &[usize]) -> Vec<Planned> {
    let items = |base: u8| -> usize {
        per_length.iter().skip(usize::from(base) + 1).take(LANES.into()).sum()
    };
    let bases = (0..P::LONGEST).step_by(LANES.into()).filter(|base| items(*base) > 0);
    let planned = |base| Planned { lengths: Lengths { base, lanes: LANES }, is_marked: false };
    bases.map(planned).collect()
}

/// The shortest length that has a filter.
pub(super) fn first_filtered<P: Prefix>() -> u8 {
    if P::SPANS < 8 { SHORT + 1 } else { 1 }
}
