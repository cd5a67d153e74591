//! Which page of a sorted file a key must be in.
//!
//! For each page but the first there is a *separator*: the shortest bytes that are above
//! every key before the page and not above any key in it. All separators share a start;
//! the eight bytes after it, as a number, are the page's *head*. Heads are searched first,
//! separators only where heads are equal: so keys with a long common start are found as
//! quickly as random ones.
//!
//! The search guesses from the ends and searches the heads around the guess without a branch:
//! keys that are spread evenly, such as hashes, are found there. For any others it gallops
//! from the guess and then halves, which is at most twice a binary search.
//!
//! Always true: any bytes give some answer without a panic; bytes whose checksum is right
//! give the right one.

use std::cmp::Ordering;
use std::ops::Range;

use crate::format::page::UNIT;
use crate::format::trailer::Trailer;
use crate::format::{Malformed, NEAR, below, head, shared_prefix, u32_at, u64_at};

/// Where the parts of the index lie in the file.
#[derive(Debug)]
pub(super) struct Index {
    pages: usize,
    heads: Range<usize>,
    units: Range<usize>,
    ends: Range<usize>,
    separators: Range<usize>,
    /// What all separators start with.
    common: Vec<u8>,
    /// Whether every page is one unit long: then its place needs no looking up.
    uniform: bool,
    spread: Spread,
}

/// Where among the pages a head is if heads are spread evenly.
#[derive(Debug, Default)]
struct Spread {
    first: u64,
    range: u64,
    /// By how much a distance is shifted to have 32 bits.
    shift: u32,
    /// Pages for each such distance, times 2^32.
    scale: u64,
}

impl Spread {
    fn new(first: u64, last: u64, count: u32) -> Self {
        let range = last.saturating_sub(first);
        let shift = 32u32.saturating_sub(range.leading_zeros());
        let scale = (u64::from(count) << 32) / ((range >> shift) + 1);
        Self { first, range, shift, scale }
    }

    /// Below the number of pages that it was made for.
    #[inline]
    fn guess(&self, head: u64) -> usize {
        let distance = head.saturating_sub(self.first).min(self.range) >> self.shift;
        ((distance * self.scale) >> 32) as usize
    }
}

impl Index {
    pub(super) fn new(file: &[u8], trailer: &Trailer) -> Result<Self, Malformed> {
        let pages = trailer.pages as usize;
        let heads = trailer.index_at as usize..trailer.index_at as usize + pages * 8;
        let units = heads.end..heads.end + (pages + 1) * 4;
        let ends = units.end..units.end + pages * 8;
        let separators = ends.end..trailer.filter_at as usize;
        let (common, spread) = (Vec::new(), Spread::default());
        let mut index =
            Self { pages, heads, units, ends, separators, common, uniform: false, spread };
        if pages > 1 {
            let head_of = |page: usize| u64_at(&file[index.heads.clone()], page * 8);
            index.spread = Spread::new(head_of(1), head_of(pages - 1), trailer.pages - 1);
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
        // Every page has at least one unit, so if all together have no more, each has one.
        index.uniform = end as usize == pages + 1;
        Ok(index)
    }

    /// First unit of a page and the one past its last. The end of all for `pages`.
    #[inline]
    pub(super) fn units(&self, file: &[u8], page: usize) -> (u32, u32) {
        if self.uniform {
            return (page as u32 + 1, page as u32 + 2);
        }
        let units = &file[self.units.clone()];
        let next = (page + 1).min(self.pages);
        (u32_at(units, page * 4), u32_at(units, next * 4))
    }

    /// The page in which the key is, if anywhere, and a guess at which byte of it.
    #[inline]
    pub(super) fn locate(&self, file: &[u8], key: &[u8]) -> Option<(usize, usize)> {
        if self.pages <= 1 {
            return (self.pages == 1).then_some((0, UNIT / 2));
        }
        match key.strip_prefix(&self.common[..]) {
            Some(rest) => Some(self.search(file, key, head(rest))),
            None if key < &self.common[..] => Some((0, UNIT / 2)),
            None => Some((self.pages - 1, UNIT / 2)),
        }
    }

    #[inline]
    fn search(&self, file: &[u8], key: &[u8], wanted: u64) -> (usize, usize) {
        let heads = file[self.heads.clone()].as_chunks().0;
        let head_of = |page: usize| u64::from_le_bytes(heads[page]);
        let count = self.pages - 1;
        let guess = 1 + self.spread.guess(wanted);
        let page = near(heads, wanted, guess).unwrap_or_else(|| {
            self.gallop(guess, |page| match head_of(page).cmp(&wanted) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => self.separator(file, page) > key,
            })
        });
        if page == 0 || page == count {
            return (page, UNIT / 2);
        }
        (page, byte_between(head_of(page), wanted, head_of(page + 1)))
    }

    /// The last page that is not past the key: gallops from the guess until the place is
    /// enclosed, then halves.
    fn gallop(&self, guess: usize, is_past: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (1, self.pages);
        let (mut at, mut stride) = (guess, 1);
        while low < high {
            if is_past(at) {
                high = at;
                at = if low > 1 { low + (high - low) / 2 } else { at.saturating_sub(stride) };
            } else {
                low = at + 1;
                at = if high < self.pages { low + (high - low) / 2 } else { at + stride };
            }
            stride *= 2;
            at = at.clamp(low, high.saturating_sub(1).max(low));
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

/// The last page whose head is below `wanted`, if the next one's is above: where heads are
/// equal the separators decide. Looks at the few around the guess only.
#[inline]
fn near(heads: &[[u8; 8]], wanted: u64, guess: usize) -> Option<usize> {
    let head_of = |page: usize| u64::from_le_bytes(heads[page]);
    let last_start = heads.len().checked_sub(NEAR + 1)?;
    let from = guess.saturating_sub(NEAR / 2).clamp(1, last_start.max(1));
    let window: &[[u8; 8]; NEAR] = heads.get(from..)?.first_chunk()?;
    let next = from + below(wanted, |i| u64::from_le_bytes(window[i]));
    let is_between = next < heads.len() && head_of(next - 1) < wanted && wanted < head_of(next);
    is_between.then(|| next - 1)
}

/// The byte of a page at which a record with head `at` is, if the page goes from `low` to
/// `high` evenly. Cut to 20 bits, so that a short division is enough.
#[inline]
fn byte_between(low: u64, at: u64, high: u64) -> usize {
    let range = high.saturating_sub(low);
    let shift = 44u32.saturating_sub(range.leading_zeros());
    let distance = (at.saturating_sub(low).min(range) >> shift) as u32;
    (distance * UNIT as u32 / ((range >> shift) as u32 + 1)) as usize
}

/// Collects the index of a file that is being written.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    units: Vec<u32>,
    ends: Vec<u64>,
    separators: Vec<u8>,
    last_key: Vec<u8>,
}

impl IndexBuilder {
    /// Notes a page that starts at `unit` with `first` and ends with `last`.
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
        fn guesses_are_in_bounds_and_rise(
            ends in any::<[u64; 2]>(), count in 1u32.., heads in any::<[u64; 2]>(),
        ) {
            let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let (a, b) = (heads[0].min(heads[1]), heads[0].max(heads[1]));
            let spread = Spread::new(low, high, count);
            prop_assert!(spread.guess(a) <= spread.guess(b));
            prop_assert!(spread.guess(b) < count as usize);
            prop_assert!(byte_between(low, a, high) <= byte_between(low, b, high));
            prop_assert!(byte_between(low, b, high) < UNIT);
        }
    }

    #[test]
    fn heads_spread_evenly_are_guessed_right() {
        let spread = Spread::new(0, u64::MAX, 1000);
        for i in 0..1000 {
            let guess = spread.guess(u64::MAX / 1000 * i + u64::MAX / 2000);
            assert_eq!(guess, i as usize);
        }
        assert_eq!(byte_between(1000, 2000, 3000), 2046);
    }
}
