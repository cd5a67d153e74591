//! What is remembered of a page once it was read: that it is sound, and where its keys lie.
//!
//! The heads between a page's bounds are cut into equal parts, and for each part is noted how
//! many records come before it. So a lookup knows the few records that can be the one
//! before it has seen anything of the page, and waits for memory once. It takes 64 bytes of
//! memory a page and nothing on disk.
//!
//! Always true: what is noted of a page whose checksum was right bounds every key's place.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use super::index::{Bounds, Index};
use crate::format::Malformed;
use crate::format::page::Page;

/// What is remembered of one page.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Places {
    /// Records before each part, and all of them.
    before: [AtomicU8; PARTS as usize + 1],
    known: AtomicU8,
}

impl Places {
    /// Of a page that was not read yet.
    pub(super) fn new() -> Self {
        let before = std::array::from_fn(|_| AtomicU8::new(0));
        Self { before, known: AtomicU8::new(NOTHING) }
    }

    /// Whether the page was read and is sound.
    pub(super) fn is_sound(&self) -> bool {
        self.known.load(Ordering::Acquire) != NOTHING
    }

    /// The records that can have a key with this head.
    pub(super) fn among(&self, bounds: Option<Bounds>, head: u64) -> Range<usize> {
        match (self.known.load(Ordering::Acquire), bounds) {
            (NOTHING | SOUND, _) | (_, None) => 0..usize::MAX,
            (_, Some(bounds)) => self.in_part(bounds, head),
        }
    }

    /// If all records of the page are as long as those of the file: how long a prefix they are
    /// without, which every key between the page's bounds has, and as [`Self::among`].
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

    /// Notes that a page is sound, and where its keys lie. Two that do so at once note the same.
    pub(super) fn learn(
        &self,
        page: &Page<'_>,
        index: &Index,
        bounds: Option<Bounds>,
        alike: Option<(usize, usize)>,
    ) -> Result<(), Malformed> {
        let mut known = SOUND;
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

/// Into how many parts a page's bounds are cut.
const PARTS: u32 = 62;
// How much is known: nothing; that the page is sound; its places too; or also that its
// records are as long as all others, without a prefix of so many bytes.
const NOTHING: u8 = 0;
const SOUND: u8 = 1;
const PLACES: u8 = 2;
const FIRST_ROWS: u8 = 3;
const LONGEST_PREFIX: u8 = u8::MAX - FIRST_ROWS;
