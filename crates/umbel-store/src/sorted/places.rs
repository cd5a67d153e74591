//! What is remembered about a page after it was read: that it is valid, and where its keys are.
//!
//! The range of heads between a page's bounds is divided into equal parts; for each part, the
//! number of records before it is kept. So a lookup knows the few records that can match before
//! it has read any byte of the page, and waits for memory only once. It takes 64 bytes of memory
//! per page and nothing on disk.
//!
//! Always true: if the page's checksum was right, every key is in the range of records given for
//! it.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use super::index::{Bounds, Index};
use crate::format::Malformed;
use crate::format::page::Page;

/// What is remembered about one page.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Places {
    /// Number of records before each part; last, the number of all records.
    before: [AtomicU8; PARTS as usize + 1],
    known: AtomicU8,
}

impl Places {
    /// For a page that was not read yet.
    pub(super) fn new() -> Self {
        let before = std::array::from_fn(|_| AtomicU8::new(0));
        Self { before, known: AtomicU8::new(NOTHING) }
    }

    /// Whether the page was read and is valid.
    pub(super) fn is_valid(&self) -> bool {
        self.known.load(Ordering::Acquire) != NOTHING
    }

    /// The records that can have a key with this head.
    pub(super) fn among(&self, bounds: Option<Bounds>, head: u64) -> Range<usize> {
        match (self.known.load(Ordering::Acquire), bounds) {
            (NOTHING | VALID, _) | (_, None) => 0..usize::MAX,
            (_, Some(bounds)) => self.in_part(bounds, head),
        }
    }

    /// If all records of the page have the same length as those of the file's first page: the
    /// length of the page's prefix, which every key between the page's bounds has, and
    /// [`Self::among`].
    #[inline]
    pub(super) fn rows(&self, bounds: Bounds, head: u64) -> Option<(usize, Range<usize>)> {
        let known = self.known.load(Ordering::Acquire).wrapping_sub(FIRST_ROWS);
        (known <= LONGEST_PREFIX).then(|| (known as usize, self.in_part(bounds, head)))
    }

    #[inline]
    fn in_part(&self, bounds: Bounds, head: u64) -> Range<usize> {
        let part = bounds.part(head, PARTS);
        let before = |part: usize| self.before[part].load(Ordering::Relaxed) as usize;
        before(part)..before(part + 1)
    }

    /// Records that a page is valid, and where its keys are. Two threads that do so at the same
    /// time store the same values.
    pub(super) fn learn(
        &self,
        page: &Page<'_>,
        index: &Index,
        bounds: Option<Bounds>,
        alike: Option<(usize, usize)>,
    ) -> Result<(), Malformed> {
        let mut known = VALID;
        if let Some(bounds) = bounds.filter(|_| page.len() <= u8::MAX as usize) {
            self.note(page, index, bounds)?;
            let prefix = page.prefix().len();
            let is_known = prefix <= index.common() + bounds.shared();
            let is_long = page.alike().is_some_and(|(key, _)| key >= prefix + 8);
            let is_row = alike.is_some() && page.alike() == alike && is_known && is_long;
            let is_short = prefix <= LONGEST_PREFIX as usize;
            known = if is_row && is_short { FIRST_ROWS + prefix as u8 } else { PLACES };
        }
        self.known.store(known, Ordering::Release);
        Ok(())
    }

    fn note(&self, page: &Page<'_>, index: &Index, bounds: Bounds) -> Result<(), Malformed> {
        let mut in_part = [0u8; PARTS as usize];
        for i in 0..page.len() {
            let (rest, _) = page.record(i)?;
            in_part[bounds.part(index.head_inside(page.prefix(), rest), PARTS)] += 1;
        }
        let mut before = 0;
        for (part, count) in in_part.iter().enumerate() {
            before += count;
            self.before[part + 1].store(before, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Number of parts between the bounds of a page.
const PARTS: u32 = 62;
// How much is known: nothing; that the page is valid; also where its keys are; or also that its
// records have the same length as all others, and the length of its prefix (added to FIRST_ROWS).
const NOTHING: u8 = 0;
const VALID: u8 = 1;
const PLACES: u8 = 2;
const FIRST_ROWS: u8 = 3;
const LONGEST_PREFIX: u8 = u8::MAX - FIRST_ROWS;
