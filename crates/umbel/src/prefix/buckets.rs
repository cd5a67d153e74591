//! An exact hash table whose buckets are cache lines of shortened keys.
//!
//! A prefix is split into a number below `2^B` and what is left of it ([`Key`]). The number is
//! permuted; its product with the number of buckets gives the bucket in its upper part, and in
//! its lower part which number of that bucket it is. Only the latter is stored, with what was
//! left. So a key of a full IPv4 table takes three bytes, one of IPv6 six, eight or sixteen, and
//! nothing is lost: bucket and word give the prefix back.
//!
//! ```text
//! word    (remainder and rest) · 32 + tries before it found a free slot, + 1; 0 is an empty slot
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

use bytemuck::{Pod, Zeroable};

use super::filters::mix;
use super::simd::{equal_u16s, equal_u32s};
use crate::prefetch::prefetch;

/// Buckets that a key may lie in.
const TRIES: usize = 32;

/// Fewest buckets, so that the remainders fit their words: 57 bits of a number of 64.
const FEWEST: usize = 128;

/// A prefix, split into what decides its bucket and what does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Below `2^B`.
    number: u64,
    /// The rest, in as many bits as the line has for it.
    rest: u128,
}

/// A bucket: a cache line of words.
pub trait Line: Copy + Default {
    /// What is stored of a key.
    type Word: Copy + Default;
    /// Longest prefix that fits.
    const LENGTH: u8;
    /// Bits of a key's number.
    const BITS: u32;
    /// Number of words per line.
    const SLOTS: usize;
    /// Share of the slots that is filled when a table is made for a number of keys: the more,
    /// the more keys lie in another bucket than their own.
    const LOAD: f64;

    /// The key of the prefix of an address; its first bit is highest.
    fn key(bits: u128, length: u8) -> Key;
    /// The length and the bits of a key.
    fn prefix(key: Key) -> (u8, u128);
    /// The word of a key in a bucket, after so many tries.
    fn pack(remainder: u64, rest: u128, tries: usize) -> Self::Word;
    /// What a slot holds: remainder, rest and tries, if it is not empty.
    fn unpack(&self, slot: usize) -> Option<(u64, u128, usize)>;
    /// A slot that holds a word; of the default word, an empty one.
    fn find(&self, word: Self::Word) -> Option<usize>;
    /// Overwrites a slot.
    fn put(&mut self, slot: usize, word: Self::Word);
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

/// 15 words of 32 bits.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line32 {
    low: [u16; 15],
    high: [u16; 15],
    tries: u8,
    unused: [u8; 3],
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

/// Seven words of 64 bits.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line64 {
    low: [u32; 7],
    high: [u32; 7],
    tries: u8,
    unused: [u8; 7],
}

/// Four words of 127 bits; the highest bits of all four are the tries.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Line128([u128; 4]);

const _: () = assert!(size_of::<Line24>() == 64 && size_of::<Line32>() == 64);
const _: () = assert!(size_of::<Line48>() == 64 && size_of::<Line64>() == 64);
const _: () = assert!(size_of::<Line128>() == 64);

macro_rules! planes {
    ($slots:literal, $rest:literal, $low:ty, $high:ty, $equal:path) => {
        type Word = u64;
        const SLOTS: usize = $slots;

        #[inline(always)]
        fn pack(remainder: u64, rest: u128, tries: usize) -> u64 {
            (remainder << $rest | rest as u64) * TRIES as u64 + tries as u64 + 1
        }

        #[inline]
        fn unpack(&self, slot: usize) -> Option<(u64, u128, usize)> {
            let word = u64::from(self.high[slot]) << <$low>::BITS | u64::from(self.low[slot]);
            let word = word.checked_sub(1)?;
            let (both, tries) = (word / TRIES as u64, word as usize % TRIES);
            Some((both >> $rest, (both & ((1 << $rest) - 1)).into(), tries))
        }

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
    };
}

/// Lines for prefixes of fewer than 64 bits: the number is a one, then the bits.
macro_rules! narrow {
    ($line:ident, $length:literal, $load:literal, $slots:literal, $low:ty, $high:ty, $equal:path) => {
        impl Line for $line {
            const LENGTH: u8 = $length;
            const BITS: u32 = $length + 1;
            const LOAD: f64 = $load;

            #[inline(always)]
            fn key(bits: u128, length: u8) -> Key {
                let high = (bits >> 64) as u64;
                // In two steps, as a shift by all 64 bits is none.
                Key { number: 1 << length | (high >> 1) >> (63 - length), rest: 0 }
            }

            fn prefix(key: Key) -> (u8, u128) {
                let length = key.number.ilog2() as u8;
                (length, u128::from(key.number) << (127 - length) << 1)
            }

            planes!($slots, 0, $low, $high, $equal);
        }
    };
}

narrow!(Line24, 24, 0.9, 21, u16, u8, equal_u16s);
narrow!(Line32, 32, 0.8, 15, u16, u16, equal_u16s);
narrow!(Line48, 48, 0.75, 10, u32, u16, equal_u32s);

/// The bits, then a one; of whole addresses all bits are, and `is_whole` is set.
#[inline(always)]
const fn ended(bits: u128, length: u8, whole: u8) -> (u128, bool) {
    if length == whole {
        // Of 64 bits the lower half is cut off.
        return (bits, true);
    }
    let end = 1 << (127 - length);
    (bits & !(end - 1) | end, false)
}

/// Undoes [`ended`].
const fn unended(bits: u128, is_whole: bool, whole: u8) -> (u8, u128) {
    if is_whole {
        return (whole, bits);
    }
    (127 - bits.trailing_zeros() as u8, bits & (bits - 1))
}

impl Line for Line64 {
    const LENGTH: u8 = 64;
    const BITS: u32 = 64;
    const LOAD: f64 = 0.85;

    #[inline(always)]
    fn key(bits: u128, length: u8) -> Key {
        let (bits, is_whole) = ended(bits, length, 64);
        Key { number: (bits >> 64) as u64, rest: is_whole.into() }
    }

    fn prefix(Key { number, rest }: Key) -> (u8, u128) {
        unended(u128::from(number) << 64, rest == 1, 64)
    }

    planes!(7, 1, u32, u32, equal_u32s);
}

impl Line128 {
    /// The bit of each word that belongs to the tries.
    const TRIES: u128 = 1 << 127;
}

impl Line for Line128 {
    type Word = u128;
    const LENGTH: u8 = 128;
    const BITS: u32 = 64;
    const SLOTS: usize = 4;
    const LOAD: f64 = 0.9;

    #[inline(always)]
    fn key(bits: u128, length: u8) -> Key {
        let (bits, is_whole) = ended(bits, length, 128);
        let low = bits as u64;
        let number = (bits >> 64) as u64 ^ mix(low);
        Key { number, rest: u128::from(low) << 1 | u128::from(is_whole) }
    }

    fn prefix(Key { number, rest }: Key) -> (u8, u128) {
        let low = (rest >> 1) as u64;
        let bits = u128::from(number ^ mix(low)) << 64 | u128::from(low);
        unended(bits, rest & 1 == 1, 128)
    }

    #[inline(always)]
    fn pack(remainder: u64, rest: u128, tries: usize) -> u128 {
        (u128::from(remainder) << 65 | rest) * TRIES as u128 + tries as u128 + 1
    }

    #[inline]
    fn unpack(&self, slot: usize) -> Option<(u64, u128, usize)> {
        let word = (self.0[slot] & !Self::TRIES).checked_sub(1)?;
        let both = word / TRIES as u128;
        Some(((both >> 65) as u64, both & ((1 << 65) - 1), word as usize % TRIES))
    }

    #[inline(always)]
    fn find(&self, word: u128) -> Option<usize> {
        let equal = self.0.map(|there| there & !Self::TRIES == word);
        let found = equal.iter().rev().fold(0u32, |found, equal| found << 1 | u32::from(*equal));
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    #[inline]
    fn put(&mut self, slot: usize, word: u128) {
        self.0[slot] = self.0[slot] & Self::TRIES | word;
    }

    /// In four bits: the highest number stands for all tries that there are.
    #[inline(always)]
    fn tries(&self) -> usize {
        let tries = self.0.iter().fold(0, |tries, word| tries << 1 | (word >> 127) as usize);
        if tries == 15 { TRIES - 1 } else { tries }
    }

    #[inline]
    fn needed(&mut self, tries: usize) {
        let tries = self.tries().max(tries).min(15);
        for (slot, word) in self.0.iter_mut().enumerate() {
            *word = *word & !Self::TRIES | ((tries >> (3 - slot) & 1) as u128) << 127;
        }
    }
}

/// Where a key belongs, and what is stored of it there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Home {
    bucket: usize,
    remainder: u64,
    rest: u128,
}

impl Home {
    /// The bucket of a try.
    #[inline(always)]
    const fn after(self, tries: usize, buckets: usize) -> usize {
        let mut bucket = self.bucket + tries * step(self.remainder);
        // Seldom, and then mostly once: cheaper than a division.
        while bucket >= buckets {
            bucket -= buckets;
        }
        bucket
    }
}

/// How far apart the tries of a remainder are.
const fn step(remainder: u64) -> usize {
    1 + (remainder % 16) as usize
}

/// The table: keys with values.
#[derive(Debug, Clone)]
pub(super) struct Buckets<L, V> {
    lines: Vec<L>,
    values: Vec<V>,
    items: usize,
    /// Slots from which [`Self::take_some`] has taken.
    taken: usize,
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
        Self { lines: vec![L::default(); lines], values, items: 0, taken: 0, known: lines.ilog2() }
    }

    /// Adds a prefix that is not there and for which there was no slot near its bucket.
    #[cold]
    pub(super) fn grow_and_insert_prefix(&mut self, bits: u128, length: u8, value: V) {
        self.grow_and_insert(L::key(bits, length), value);
    }

    fn grow_and_insert(&mut self, key: Key, mut value: V) {
        loop {
            self.grow();
            match self.insert_at(self.home(key), value) {
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
            if let Some(slot) = self.lines[bucket].find(L::Word::default()) {
                self.lines[bucket].put(slot, L::pack(home.remainder, home.rest, tries));
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
        self.lines[slot / L::SLOTS].put(slot % L::SLOTS, L::Word::default());
        self.items -= 1;
        Some(std::mem::take(&mut self.values[slot]))
    }

    /// Whether it should be made anew for more keys: beyond this share of the slots keys lie ever
    /// farther from their buckets.
    pub(super) const fn is_crowded(&self) -> bool {
        self.items * 16 > self.values.len() * 15
    }

    /// Takes the prefixes out of about so many slots, from where the last call ended; none if none
    /// are left. Nothing may be added any more.
    pub(super) fn take_some(&mut self, slots: usize) -> Vec<((u8, u128), V)> {
        let mut taken = Vec::with_capacity(slots);
        // Slots may be empty.
        while taken.is_empty() && self.items > 0 {
            let end = (self.taken + slots).min(self.values.len());
            for slot in self.taken..end {
                if let Some(key) = self.key(slot) {
                    self.lines[slot / L::SLOTS].put(slot % L::SLOTS, L::Word::default());
                    self.items -= 1;
                    taken.push((L::prefix(key), std::mem::take(&mut self.values[slot])));
                }
            }
            self.taken = end;
        }
        taken
    }

    fn grow(&mut self) {
        let buckets = self.lines.len();
        let mut larger = Self::with_buckets(buckets + buckets / 8 + 1);
        let values = std::mem::take(&mut self.values);
        for (slot, value) in values.into_iter().enumerate() {
            if let Some(key) = self.key(slot)
                && let Err(value) = larger.insert_at(larger.home(key), value)
            {
                // A larger table may be full at some place, too.
                larger.grow_and_insert(key, value);
            }
        }
        *self = larger;
    }
}

impl<L: Line, V> Buckets<L, V> {
    const MASK: u64 = u64::MAX >> (64 - L::BITS);
    /// At least half of the bits: then the shift undoes itself.
    const FOLD: u32 = L::BITS.div_ceil(2);

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

    /// All prefixes with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = ((u8, u128), &V)> {
        let slots = self.values.iter().enumerate();
        slots.filter_map(|(slot, value)| Some((L::prefix(self.key(slot)?), value)))
    }

    /// One prefix in so many: those of some slots, which hashes have filled.
    pub(super) fn sample(&self, one_in: usize) -> impl Iterator<Item = (u8, u128)> {
        let slots = (0..self.values.len()).step_by(one_in.max(1));
        slots.filter_map(|slot| Some(L::prefix(self.key(slot)?)))
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<L>() + self.values.capacity() * size_of::<V>()
    }

    #[inline(always)]
    fn slot(&self, home: Home) -> Option<usize> {
        let line = &self.lines[home.bucket];
        match line.find(L::pack(home.remainder, home.rest, 0)) {
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
            let slot = self.lines[bucket].find(L::pack(home.remainder, home.rest, tries))?;
            Some(bucket * L::SLOTS + slot)
        })
    }

    /// Where a prefix belongs.
    #[inline(always)]
    pub(super) fn home_of(&self, bits: u128, length: u8) -> Home {
        self.home(L::key(bits, length))
    }

    #[inline(always)]
    fn home(&self, Key { number, rest }: Key) -> Home {
        let buckets = self.lines.len() as u64;
        let product = u128::from(Self::permute(number)) * u128::from(buckets);
        let remainder = (product as u64 & Self::MASK) >> self.known;
        Home { bucket: (product >> L::BITS) as usize, remainder, rest }
    }

    /// The key in a slot, if there is one.
    fn key(&self, slot: usize) -> Option<Key> {
        let (remainder, rest, tries) = self.lines[slot / L::SLOTS].unpack(slot % L::SLOTS)?;
        let buckets = self.lines.len();
        let strayed = tries * step(remainder) % buckets;
        let bucket = (slot / L::SLOTS + buckets - strayed) % buckets;
        // The only multiple of `buckets` whose bits above the shift are these.
        let buckets = buckets as u64;
        let remainder = remainder << self.known;
        let permuted = if buckets >> (64 - L::BITS) == 0 {
            ((bucket as u64) << L::BITS | remainder).div_ceil(buckets)
        } else {
            // Many times as slow.
            let min = (bucket as u128) << L::BITS | u128::from(remainder);
            min.div_ceil(buckets.into()) as u64
        };
        Some(Key { number: Self::restore(permuted), rest })
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
