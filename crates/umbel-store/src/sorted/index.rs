//! The index of a sorted file: finds the page that a key must be in.
//!
//! Each page but the first has a *separator*: the shortest byte string that is above every key
//! before the page and not above any key in it. All separators share a prefix; the eight bytes
//! after it, as a number, are the page's *head*. Heads are searched first, separators only where
//! heads are equal. So keys with a long common prefix are found as quickly as random ones.
//!
//! The range of heads is divided into equal *stretches*. A table with one entry per page, built
//! when the file is opened, gives the first page of each stretch. If keys are spread evenly, one or
//! two pages are left to choose from; otherwise binary search finds the page among those left.
//!
//! Always true: arbitrary bytes give some result without a panic; bytes whose checksum is right
//! give the right one.

use std::cmp::Ordering;
use std::ops::Range;

use crate::format::page::UNIT;
use crate::format::trailer::Trailer;
use crate::format::{Malformed, head, shared_prefix};
use crate::numbers::{u32_at, u64_at};

/// Where the parts of the index are in the file.
#[derive(Debug)]
pub(super) struct Index {
    pages: usize,
    units: Range<usize>,
    ends: Range<usize>,
    separators: Range<usize>,
    /// The prefix that all separators share.
    common: Vec<u8>,
    /// Whether every page is one unit long: then its offset can be computed.
    uniform: bool,
    stretches: Stretches,
}

/// The range of heads, divided into stretches of equal length, as many as there are pages.
#[derive(Debug, Default)]
struct Stretches {
    first: u64,
    range: u64,
    /// Right shift that reduces a distance to 32 bits.
    shift: u32,
    /// Stretches per unit of such a distance, times 2^32.
    scale: u64,
    /// For each stretch the first page whose head is in it or beyond; then the number of pages.
    starts: Vec<u32>,
    /// The heads of all pages, followed by a few sentinels of the maximum value.
    heads: Vec<u64>,
}

impl Stretches {
    fn new(mut heads: Vec<u64>) -> Self {
        let pages = heads.len();
        let (first, last) = match heads[..] {
            [_, first, ..] => (first, heads[pages - 1]),
            _ => (0, 0),
        };
        let range = last.saturating_sub(first);
        let shift = 32u32.saturating_sub(range.leading_zeros());
        let scale = ((pages as u64) << 32) / ((range >> shift) + 1);
        let mut stretches = Self { first, range, shift, scale, ..Self::default() };
        let mut starts = Vec::with_capacity(pages + 1);
        for (page, head) in heads.iter().enumerate().skip(1) {
            starts.resize(starts.len().max(stretches.of(*head) + 1), page as u32);
        }
        starts.resize(pages + 1, pages as u32);
        heads.extend([u64::MAX; FEW + 1]);
        (stretches.starts, stretches.heads) = (starts, heads);
        stretches
    }

    /// The stretch that a head is in: increases with the head, and is below the number of pages.
    #[inline]
    fn of(&self, head: u64) -> usize {
        let distance = head.saturating_sub(self.first).min(self.range) >> self.shift;
        ((distance * self.scale) >> 32) as usize
    }

    /// The pages whose heads are in the same stretch.
    fn pages_in(&self, wanted: u64) -> Range<usize> {
        let stretch = self.of(wanted);
        self.starts[stretch] as usize..self.starts[stretch + 1] as usize
    }

    /// The last page whose head is below `wanted`, and its bounds. `None` unless it is one of the
    /// first few pages of the stretch or the page before them, and the next head is above `wanted`:
    /// if it is equal, the separators decide. Counts without a branch that depends on the key.
    #[inline(always)]
    fn near(&self, wanted: u64) -> Option<(usize, Bounds)> {
        let from = *self.starts.get(self.of(wanted))? as usize;
        let around: &[u64; FEW + 1] = self.heads.get(from.checked_sub(1)?..)?.first_chunk()?;
        let below = around[1..FEW].iter().filter(|&&head| head < wanted).count();
        let (low, high) = (around[below], around[below + 1]);
        (wanted < high).then_some((from - 1 + below, Bounds { low, high }))
    }

    fn bounds(&self, page: usize) -> Bounds {
        Bounds { low: self.heads[page], high: self.heads[page + 1] }
    }
}

/// The heads between which those of a page's keys lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    low: u64,
    high: u64,
}

impl Bounds {
    /// Which of `parts` equal parts between the bounds a head is in. Distances are reduced to 20
    /// bits, so that a short division is enough.
    #[inline]
    pub(super) fn part(&self, head: u64, parts: u32) -> usize {
        let range = self.high.saturating_sub(self.low);
        let shift = 44u32.saturating_sub(range.leading_zeros());
        let distance = (head.saturating_sub(self.low).min(range) >> shift) as u32;
        (distance * parts / ((range >> shift) as u32 + 1)) as usize
    }

    /// Number of leading bytes that all heads between the bounds share.
    pub(super) fn shared(&self) -> usize {
        (self.low ^ self.high).leading_zeros() as usize / 8
    }
}

impl Index {
    pub(super) fn new(file: &[u8], trailer: &Trailer) -> Result<Self, Malformed> {
        let pages = trailer.pages as usize;
        let heads = trailer.index_at as usize..trailer.index_at as usize + pages * 8;
        let units = heads.end..heads.end + (pages + 1) * 4;
        let ends = units.end..units.end + pages * 8;
        let separators = ends.end..trailer.filter_at as usize;
        let all = file[heads.clone()].as_chunks().0.iter().copied().map(u64::from_le_bytes);
        let stretches = Stretches::new(all.collect());
        let (common, uniform) = (Vec::new(), false);
        let mut index = Self { pages, units, ends, separators, common, uniform, stretches };
        if pages > 1 {
            let (first, last) = (index.separator(file, 1), index.separator(file, pages - 1));
            index.common = first[..shared_prefix(first, last)].to_vec();
        }
        let end = index.units(file, pages).0;
        if u64::from(end) * UNIT as u64 != trailer.index_at {
            return Err(Malformed::new(
                index.units.start,
                "pages do not end where the index starts",
            ));
        }
        // Every page has at least one unit, so if there are as many units as pages, each has one.
        index.uniform = end as usize == pages + 1;
        Ok(index)
    }

    /// First unit of a page, and the unit after its last. For `pages`, the end of all pages.
    #[inline]
    pub(super) fn units(&self, file: &[u8], page: usize) -> (u32, u32) {
        if self.uniform {
            return (page as u32 + 1, page as u32 + 2);
        }
        let units = &file[self.units.clone()];
        let next = (page + 1).min(self.pages);
        (u32_at(units, page * 4), u32_at(units, next * 4))
    }

    /// Length of the prefix that all separators share.
    pub(super) fn common(&self) -> usize {
        self.common.len()
    }

    /// The head of a key: the eight bytes after the shared prefix, as a number. It never decreases
    /// as keys increase, whatever they start with.
    #[inline]
    pub(super) fn head(&self, key: &[u8]) -> u64 {
        if self.common.is_empty() {
            return head(key);
        }
        match key.strip_prefix(&self.common[..]) {
            Some(rest) => head(rest),
            None if key < &self.common[..] => 0,
            None => u64::MAX,
        }
    }

    /// The head of a key that lies between the bounds of a page, and therefore starts with the
    /// prefix that all separators share.
    pub(super) fn head_inside(&self, prefix: &[u8], rest: &[u8]) -> u64 {
        match prefix.get(self.common.len()..) {
            Some(more) if more.len() < 8 => head(more) | head(rest) >> (8 * more.len()),
            Some(more) => head(more),
            None => head(rest.get(self.common.len() - prefix.len()..).unwrap_or_default()),
        }
    }

    /// The bounds of a page; `None` for the first and the last, which have only one bound.
    pub(super) fn bounds(&self, page: usize) -> Option<Bounds> {
        (0 < page && page + 1 < self.pages).then(|| self.stretches.bounds(page))
    }

    /// The only page that can contain a key with this head, and its bounds; `None` if
    /// [`Self::page_of`] has to decide.
    #[inline(always)]
    pub(super) fn near(&self, wanted: u64) -> Option<(usize, Bounds)> {
        self.stretches.near(wanted)
    }

    /// The only page that can contain a key.
    pub(super) fn page_of(&self, file: &[u8], key: &[u8]) -> Option<usize> {
        let wanted = self.head(key);
        if self.pages <= 1 {
            return (self.pages == 1).then_some(0);
        }
        if let Some((page, _)) = self.near(wanted) {
            return Some(page);
        }
        Some(self.halve(self.stretches.pages_in(wanted), |page| {
            match self.stretches.heads[page].cmp(&wanted) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => self.separator(file, page) > key,
            }
        }))
    }

    /// Binary search for the last page that is not past the key. No page before the range is past
    /// it; all pages after the range are.
    fn halve(&self, range: Range<usize>, is_past: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end.min(self.pages));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_past(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low - 1
    }

    fn separator<'a>(&self, file: &'a [u8], page: usize) -> &'a [u8] {
        let ends = &file[self.ends.clone()];
        let from = u64_at(ends, (page - 1) * 8) as usize;
        let to = u64_at(ends, page * 8) as usize;
        file[self.separators.clone()].get(from..to).unwrap_or_default()
    }
}

/// Number of heads that are compared together.
const FEW: usize = 4;

/// Builds the index of a file that is being written.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    units: Vec<u32>,
    ends: Vec<u64>,
    separators: Vec<u8>,
    last_key: Vec<u8>,
}

impl IndexBuilder {
    /// Adds a page that starts at `unit`, and whose first and last keys are `first` and `last`.
    pub(super) fn page(&mut self, unit: u32, first: &[u8], last: &[u8]) {
        if !self.units.is_empty() {
            let shared = shared_prefix(&self.last_key, first);
            self.separators.extend_from_slice(&first[..(shared + 1).min(first.len())]);
        }
        self.units.push(unit);
        self.ends.push(self.separators.len() as u64);
        self.last_key.clear();
        self.last_key.extend_from_slice(last);
    }

    pub(super) fn pages(&self) -> u32 {
        self.units.len() as u32
    }

    pub(super) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    fn separator(&self, page: usize) -> &[u8] {
        &self.separators[self.ends[page - 1] as usize..self.ends[page] as usize]
    }

    /// The bytes of the index, for pages that end before `end`.
    pub(super) fn encode(&self, end: u32) -> Vec<u8> {
        let pages = self.units.len();
        let common = match pages {
            0 | 1 => 0,
            _ => shared_prefix(self.separator(1), self.separator(pages - 1)),
        };
        let mut bytes = Vec::with_capacity(pages * 20 + 4 + self.separators.len());
        for page in 0..pages {
            let head = if page == 0 { 0 } else { head(&self.separator(page)[common..]) };
            bytes.extend_from_slice(&head.to_le_bytes());
        }
        for unit in self.units.iter().chain([&end]) {
            bytes.extend_from_slice(&unit.to_le_bytes());
        }
        for end in &self.ends {
            bytes.extend_from_slice(&end.to_le_bytes());
        }
        bytes.extend_from_slice(&self.separators);
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stretches_lead_to_the_page(
            mut heads in prop::collection::vec(any::<u64>(), 2..200), even in any::<bool>(),
            asked in prop::collection::vec(any::<u64>(), 20),
        ) {
            if !even {
                heads.iter_mut().for_each(|head| *head >>= *head % 60);
            }
            heads.sort_unstable();
            let stretches = Stretches::new(heads.clone());
            for wanted in asked.iter().chain(&heads) {
                let pages = stretches.pages_in(*wanted);
                prop_assert!(pages.start >= 1 && pages.end <= heads.len());
                let next = 1 + heads[1..].partition_point(|head| head < wanted);
                prop_assert!((pages.start..=pages.end).contains(&next));
                if let Some((page, bounds)) = stretches.near(*wanted) {
                    prop_assert_eq!(page, next - 1);
                    prop_assert!(page == 0 || bounds.low < *wanted);
                    prop_assert!(*wanted < bounds.high);
                }
            }
        }

        #[test]
        fn parts_are_in_bounds_and_rise(ends in any::<[u64; 2]>(), heads in any::<[u64; 2]>()) {
            let bounds = Bounds { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
            let (a, b) = (heads[0].min(heads[1]), heads[0].max(heads[1]));
            prop_assert!(bounds.part(a, 31) <= bounds.part(b, 31));
            prop_assert!(bounds.part(b, 31) < 31);
        }
    }

    #[test]
    fn heads_spread_evenly_have_a_stretch_each() {
        let stretches = Stretches::new((0..1000).map(|i| u64::MAX / 1000 * i).collect());
        for page in 1..1000 {
            let near = stretches.near(u64::MAX / 1000 * page + 5);
            assert_eq!(near.map(|(found, _)| found), Some(page as usize));
        }
    }
}
