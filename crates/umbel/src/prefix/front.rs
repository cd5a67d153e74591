//! The first sixteen bits, answered directly.
//!
//! For each of the 65536 beginnings: the longest prefix of at most sixteen bits that covers
//! it, and whether any longer prefix begins so. Addresses under a beginning without longer
//! prefixes never ask a filter.
//!
//! Always true: `best` is exact; the mark is set where there is a longer prefix, and clear
//! where there is none (but for beginnings that once had 65535, whose mark stays).

use crate::prefetch::prefetch;

/// Prefixes up to this length are answered here.
pub(super) const SHORT: u8 = 16;

const SLOTS: usize = 1 << SHORT;
const NONE: u8 = u8::MAX;

#[derive(Debug, Clone)]
pub(super) struct Front {
    best: Vec<u8>,
    /// Longer prefixes under each beginning.
    longer: Vec<u16>,
    /// Where `longer` is not zero: small enough to stay in the first-level cache.
    marks: Vec<u64>,
}

impl Front {
    pub(super) fn new() -> Self {
        Self { best: vec![NONE; SLOTS], longer: vec![0; SLOTS], marks: vec![0; SLOTS / 64] }
    }

    /// The longest short prefix that covers a beginning.
    #[inline]
    pub(super) fn best(&self, slot: u16) -> Option<u8> {
        Some(self.best[usize::from(slot)]).filter(|length| *length != NONE)
    }

    /// Whether a beginning has longer prefixes.
    #[inline(always)]
    pub(super) fn has_longer(&self, slot: u16) -> bool {
        self.marks[usize::from(slot >> 6)] >> (slot & 63) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u16) {
        prefetch(&self.longer, slot.into());
    }

    pub(super) fn add_longer(&mut self, slot: u16) {
        let count = &mut self.longer[usize::from(slot)];
        *count = count.saturating_add(1);
        self.marks[usize::from(slot >> 6)] |= 1 << (slot & 63);
    }

    pub(super) fn remove_longer(&mut self, slot: u16) {
        let count = &mut self.longer[usize::from(slot)];
        if *count < u16::MAX {
            *count -= 1;
            if *count == 0 {
                self.marks[usize::from(slot >> 6)] &= !(1 << (slot & 63));
            }
        }
    }

    /// A short prefix was added.
    pub(super) fn add(&mut self, slot: u16, length: u8) {
        for best in self.covered(slot, length) {
            if *best == NONE || *best < length {
                *best = length;
            }
        }
    }

    /// A short prefix was removed; `next` is the longest one left that covers all it covered.
    pub(super) fn remove(&mut self, slot: u16, length: u8, next: Option<u8>) {
        for best in self.covered(slot, length) {
            if *best == length {
                *best = next.unwrap_or(NONE);
            }
        }
    }

    fn covered(&mut self, slot: u16, length: u8) -> &mut [u8] {
        let slots = SLOTS >> length;
        let first = usize::from(slot) & !(slots - 1);
        &mut self.best[first..first + slots]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.best.capacity() + 2 * self.longer.capacity() + 8 * self.marks.capacity()
    }
}
