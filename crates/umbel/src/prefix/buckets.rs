//! An exact hash table whose buckets are cache lines of shortened keys.
//!
//! A prefix of at most [`Line::LENGTH`] bits is a number below `2^B` (a one, then its bits).
//! The number is permuted, the product with the number of buckets says in its upper part
//! which bucket, and in its lower part which key of that bucket: only the latter is stored.
//! So a key of a full IPv4 table takes three bytes and one of IPv6 six, and nothing is lost:
//! bucket and remainder give the prefix back.
//!
//! ```text
//! word    (remainder · 32 + tries before it found a free slot) + 1; 0 is an empty slot
//! line    64 bytes: words in two planes, then how many tries keys of this home needed
//! values  beside the lines, slot by slot
//! ```
//!
//! A key whose bucket is full tries others, each a step farther that its remainder decides:
//! with a common step, full buckets would stand in ever longer rows.
//!
//! Always true: a key is found within as many tries as its home line says. The low bits of a
//! product, shifted by `floor(log2 n)`, tell apart all keys of a bucket, because their
//! products differ by multiples of `n`.

use std::num::NonZeroU64;

use bytemuck::{Pod, Zeroable};

use super::simd::{equal_u16s, equal_u32s};
use crate::prefetch::prefetch;

/// Buckets that a key may lie in.
const TRIES: usize = 32;

/// Fewest buckets, so that the remainders fit their words.
const FEWEST: usize = 128;

/// A bucket: a cache line of words.
pub trait Line: Copy + Default {
    /// Longest prefix whose number fits.
    const LENGTH: u8;
    /// Words of a line.
    const SLOTS: usize;
    /// Share of the slots that is filled when a table is made for a number of keys: the more,
    /// the more keys lie in another bucket than their own.
    const LOAD: f64;

    /// A slot that holds a word.
    fn find(&self, word: u64) -> Option<usize>;
    /// The word in a slot.
    fn word(&self, slot: usize) -> u64;
    /// Overwrites a slot.
    fn put(&mut self, slot: usize, word: u64);
    /// Tries within which keys of this home are found, the first not counted.
    fn tries(&self) -> usize;
    /// A key of this home needed so many.
    fn needed(&mut self, tries: usize);
}

/// 21 words of 24 bits.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line24 {
    low: [u16; 21],
    high: [u8; 21],
    tries: u8,
}

/// Ten words of 48 bits.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line48 {
    low: [u32; 10],
    high: [u16; 10],
    tries: u8,
    unused: [u8; 3],
}

const _: () = assert!(size_of::<Line24>() == 64 && size_of::<Line48>() == 64);

macro_rules! line {
    ($line:ident, $length:literal, $slots:literal, $load:literal, $low:ty, $high:ty, $equal:path) => {
        impl Line for $line {
            const LENGTH: u8 = $length;
            const SLOTS: usize = $slots;
            const LOAD: f64 = $load;

            #[inline(always)]
            fn find(&self, word: u64) -> Option<usize> {
                let (low, high) = (word as $low, (word >> <$low>::BITS) as $high);
                let mut found = $equal(bytemuck::cast_ref(self), low) & ((1 << $slots) - 1);
                while found != 0 {
                    let slot = found.trailing_zeros() as usize;
                    if self.high[slot] == high {
                        return Some(slot);
                    }
                    found &= found - 1;
                }
                None
            }

            #[inline]
            fn word(&self, slot: usize) -> u64 {
                u64::from(self.high[slot]) << <$low>::BITS | u64::from(self.low[slot])
            }

            #[inline]
            fn put(&mut self, slot: usize, word: u64) {
                self.low[slot] = word as $low;
                self.high[slot] = (word >> <$low>::BITS) as $high;
            }

            #[inline(always)]
            fn tries(&self) -> usize {
                self.tries.into()
            }

            #[inline]
            fn needed(&mut self, tries: usize) {
                self.tries = self.tries.max(tries as u8);
            }
        }
    };
}

line!(Line24, 24, 21, 0.9, u16, u8, equal_u16s);
line!(Line48, 48, 10, 0.75, u32, u16, equal_u32s);

/// Where a key belongs, and what is stored of it there.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    bucket: usize,
    /// Its word in its own bucket; one more for each further try.
    word: NonZeroU64,
}

impl Home {
    /// The bucket of a try.
    #[inline(always)]
    const fn after(self, tries: usize, buckets: usize) -> usize {
        let mut bucket = self.bucket + tries * step(self.word.get() - 1);
        // Seldom, and then mostly once: cheaper than a division.
        while bucket >= buckets {
            bucket -= buckets;
        }
        bucket
    }
}

/// How far apart the tries of a word (less one) are.
const fn step(word: u64) -> usize {
    1 + (word / TRIES as u64 % 16) as usize
}

/// The table: numbers below `2^(L::LENGTH + 1)` to values.
#[derive(Debug, Clone)]
pub(super) struct Buckets<L, V> {
    lines: Vec<L>,
    values: Vec<V>,
    items: usize,
    /// Low bits of a product that its bucket knows.
    known: u32,
}

impl<L: Line, V: Default> Buckets<L, V> {
    /// An empty table with room for so many keys.
    pub(super) fn with_room(items: usize) -> Self {
        Self::with_buckets((items as f64 / (L::SLOTS as f64 * L::LOAD)) as usize + 1)
    }

    fn with_buckets(buckets: usize) -> Self {
        let lines = buckets.max(FEWEST);
        let mut values = Vec::new();
        values.resize_with(lines * L::SLOTS, V::default);
        Self { lines: vec![L::default(); lines], values, items: 0, known: lines.ilog2() }
    }

    /// Adds a key that is not there and for which there was no slot near its bucket.
    #[cold]
    pub(super) fn grow_and_insert(&mut self, number: u64, mut value: V) {
        loop {
            self.grow();
            match self.insert_at(self.home(number), value) {
                Ok(()) => return,
                Err(back) => value = back,
            }
        }
    }

    /// Adds a key that is not there, if there is a slot near its bucket; else gives the value
    /// back.
    #[inline]
    pub(super) fn insert_at(&mut self, home: Home, value: V) -> Result<(), V> {
        for tries in 0..TRIES {
            let bucket = home.after(tries, self.lines.len());
            if let Some(slot) = self.lines[bucket].find(0) {
                self.lines[bucket].put(slot, home.word.get() + tries as u64);
                self.lines[home.bucket].needed(tries);
                self.values[bucket * L::SLOTS + slot] = value;
                self.items += 1;
                return Ok(());
            }
        }
        Err(value)
    }

    /// Takes a key out.
    #[inline(always)]
    pub(super) fn remove_at(&mut self, home: Home) -> Option<V> {
        let slot = self.slot(home)?;
        self.lines[slot / L::SLOTS].put(slot % L::SLOTS, 0);
        self.items -= 1;
        Some(std::mem::take(&mut self.values[slot]))
    }

    /// Whether it should be made anew for more keys: beyond this share of the slots keys lie ever
    /// farther from their buckets.
    pub(super) const fn is_crowded(&self) -> bool {
        self.items * 16 > self.values.len() * 15
    }

    /// Takes the keys out of so many slots from `next` on, which is moved on past them.
    pub(super) fn take_some(&mut self, next: &mut usize, slots: usize) -> Vec<(u64, V)> {
        let end = next.saturating_add(slots).min(self.values.len());
        let mut taken = Vec::with_capacity(slots);
        for slot in *next..end {
            if let Some(number) = self.number(slot) {
                self.lines[slot / L::SLOTS].put(slot % L::SLOTS, 0);
                self.items -= 1;
                taken.push((number, std::mem::take(&mut self.values[slot])));
            }
        }
        *next = end;
        taken
    }

    fn grow(&mut self) {
        let buckets = self.lines.len();
        let mut larger = Self::with_buckets(buckets + buckets / 8 + 1);
        let values = std::mem::take(&mut self.values);
        for (slot, value) in values.into_iter().enumerate() {
            if let Some(number) = self.number(slot)
                && let Err(value) = larger.insert_at(larger.home(number), value)
            {
                // A larger table may be full at some place, too.
                larger.grow_and_insert(number, value);
            }
        }
        *self = larger;
    }
}

impl<L: Line, V> Buckets<L, V> {
    const BITS: u32 = L::LENGTH as u32 + 1;
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// At least half of the bits: then the shift undoes itself.
    const FOLD: u32 = Self::BITS.div_ceil(2);

    /// The value of a key.
    #[inline(always)]
    pub(super) fn find(&self, home: Home) -> Option<&V> {
        self.slot(home).map(|slot| &self.values[slot])
    }

    pub(super) fn find_mut(&mut self, home: Home) -> Option<&mut V> {
        self.slot(home).map(|slot| &mut self.values[slot])
    }

    /// Asks for the line of a key ahead of its use.
    #[inline(always)]
    pub(super) fn prefetch(&self, home: Home) {
        prefetch(&self.lines, home.bucket);
        prefetch(&self.values, home.bucket * L::SLOTS + L::SLOTS / 2);
    }

    /// All keys with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        let slots = self.values.iter().enumerate();
        slots.filter_map(|(slot, value)| Some((self.number(slot)?, value)))
    }

    /// Keys held.
    pub(super) const fn len(&self) -> usize {
        self.items
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<L>() + self.values.capacity() * size_of::<V>()
    }

    #[inline(always)]
    fn slot(&self, home: Home) -> Option<usize> {
        let line = &self.lines[home.bucket];
        match line.find(home.word.get()) {
            Some(slot) => Some(home.bucket * L::SLOTS + slot),
            None => self.strayed(home, line.tries()),
        }
    }

    /// The slot of a key that is not in its own bucket. A function of its own, as what it
    /// needs would be worked out ahead of every search.
    #[inline(never)]
    fn strayed(&self, home: Home, tries: usize) -> Option<usize> {
        (1..=tries).find_map(|tries| {
            let bucket = home.after(tries, self.lines.len());
            let slot = self.lines[bucket].find(home.word.get() + tries as u64)?;
            Some(bucket * L::SLOTS + slot)
        })
    }

    /// Where a key belongs.
    #[inline(always)]
    pub(super) fn home(&self, number: u64) -> Home {
        let buckets = self.lines.len() as u64;
        let product = u128::from(Self::permute(number)) * u128::from(buckets);
        let remainder = (product as u64 & Self::MASK) >> self.known;
        let word = NonZeroU64::MIN | (remainder * TRIES as u64);
        Home { bucket: (product >> Self::BITS) as usize, word }
    }

    /// The key in a slot, if there is one.
    fn number(&self, slot: usize) -> Option<u64> {
        let word = self.lines[slot / L::SLOTS].word(slot % L::SLOTS).checked_sub(1)?;
        let buckets = self.lines.len();
        let strayed = (word as usize % TRIES) * step(word) % buckets;
        let bucket = (slot / L::SLOTS + buckets - strayed) % buckets;
        // The only multiple of `buckets` whose bits above the shift are these.
        let buckets = buckets as u64;
        let remainder = (word / TRIES as u64) << self.known;
        let permuted = if buckets >> (64 - Self::BITS) == 0 {
            ((bucket as u64) << Self::BITS | remainder).div_ceil(buckets)
        } else {
            // Many times as slow.
            let least = (bucket as u128) << Self::BITS | u128::from(remainder);
            least.div_ceil(buckets.into()) as u64
        };
        Some(Self::restore(permuted))
    }

    /// Spreads numbers over all of `0 … 2^B`, one to one.
    #[inline(always)]
    const fn permute(number: u64) -> u64 {
        let spread = number.wrapping_mul(SPREAD) & Self::MASK;
        (spread ^ (spread >> Self::FOLD)).wrapping_mul(AGAIN) & Self::MASK
    }

    /// Undoes [`Self::permute`].
    const fn restore(permuted: u64) -> u64 {
        let folded = permuted.wrapping_mul(inverse(AGAIN)) & Self::MASK;
        (folded ^ (folded >> Self::FOLD)).wrapping_mul(inverse(SPREAD)) & Self::MASK
    }
}

const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
const AGAIN: u64 = 0xD6E8_FEB8_6659_FD93;

/// The number whose product with `odd` is one, modulo 2^64: each step of Newton's doubles
/// the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}
