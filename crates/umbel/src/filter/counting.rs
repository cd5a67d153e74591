//! The counting filter: keys can be removed again.
//!
//! Four bits per position, sixteen counters per word, in addition to the plain bits that are
//! published:
//!
//! ```text
//! counters: |15|14| … |1|0|   position p is nibble p % 16 of word p / 16
//! bits:     bit p is one exactly when counter p is above zero
//! ```
//!
//! Always true: the plain bits are updated with every change, never recomputed. A counter that
//! reaches 15 is **stuck**: it stays at 15 for ever, because further additions were not counted. So
//! a removal never clears a bit that another key needs. Stuck counters are counted; at the usual
//! fill about one in 10^15 counters gets stuck.
//!
//! Paper 4 section 3 (components of a dynamic filter); Fan et al., Summary Cache.

use std::fmt;

use super::standard::{claims, claims_of};
use super::{ASKED, BATCH, StandardFilter, estimate, in_batches};
use crate::bits::{BitVector, checksum_of, zeroed};
use crate::design;
use crate::key_hash::{Digest, Seed, Walk, WrongSeed};
use crate::params::{Bits, ParamError, Rate, Shape};
use crate::prefetch::prefetch;
use crate::scheme::{Mismatch, Scheme};

/// A Bloom filter that keys can be added to and removed from.
///
/// ```
/// use umbel::CountingFilter;
///
/// let mut filter = CountingFilter::for_target(10_000, 0.01)?;
/// filter.insert("apple");
/// assert!(filter.remove("apple"));
/// assert!(!filter.contains("apple"));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CountingFilter {
    scheme: Scheme,
    counters: Vec<u64>,
    bits: BitVector,
    stuck: u64,
    items: u64,
}

impl CountingFilter {
    /// The value at which a counter is stuck.
    pub const STUCK: u8 = 15;

    /// The smallest filter that keeps `rate` while it holds up to `items` keys.
    ///
    /// # Errors
    /// If `items` is zero, `rate` is not between 0 and 1, or there is no memory for it.
    pub fn for_target(items: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(design::standard(items, Rate::new(rate)?)?.into())
    }

    /// An empty filter of exactly this shape, with the default hasher.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn with_shape(shape: Shape) -> Result<Self, ParamError> {
        Self::new(shape.into())
    }

    /// An empty filter of this shape and hasher.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(scheme: Scheme) -> Result<Self, ParamError> {
        let length = Bits::new(scheme.shape().bits())?;
        let counters = zeroed(length.get().div_ceil(16), length.get())?;
        Ok(Self { scheme, counters, bits: BitVector::zeros(length)?, stuck: 0, items: 0 })
    }

    /// Adds a key; returns whether any bit changed. `false` means that the key was claimed already;
    /// it is counted anyway, and must be removed as often as it was added.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_digest(self.scheme.digest(key.as_ref())) != 0
    }

    /// Adds a key by its digest; returns how many bits flipped to one.
    #[inline(always)]
    pub fn insert_digest(&mut self, digest: Digest) -> u32 {
        let mut walk = Walk::new(digest, self.scheme.shape());
        let words = self.bits.words_mut();
        let mut effect = 0;
        for _ in 0..self.scheme.shape().hashes() {
            let position = walk.next();
            let counter = &mut self.counters[(position >> 4) as usize];
            let shift = (position & 15) * 4;
            let count = (*counter >> shift) & 15;
            *counter += u64::from(count != 15) << shift;
            words[(position >> 6) as usize] |= 1 << (position & 63);
            effect += EFFECT_OF_ADDING[count as usize];
        }
        let (flips, stuck) = (effect as u32, effect >> 32);
        self.bits.add_ones(flips.into());
        self.stuck += stuck;
        self.items = self.items.saturating_add(1);
        flips
    }

    /// Removes a key that was added before; returns whether it was claimed. An unclaimed
    /// key changes nothing.
    ///
    /// Removing a key that was never added, but is claimed, clears bits of other keys. Check an
    /// exact catalogue first if that can happen.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[inline]
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.remove_digest(self.scheme.digest(key.as_ref())).is_some()
    }

    /// Removes a key by its digest; returns how many bits flipped to zero, or `None` if the
    /// key was not claimed.
    #[inline]
    pub fn remove_digest(&mut self, digest: Digest) -> Option<u32> {
        if !self.contains_digest(digest) {
            return None;
        }
        let mut walk = Walk::new(digest, self.scheme.shape());
        let words = self.bits.words_mut();
        let mut flips = 0;
        for _ in 0..self.scheme.shape().hashes() {
            let position = walk.next();
            let counter = &mut self.counters[(position >> 4) as usize];
            let shift = (position & 15) * 4;
            let count = (*counter >> shift) & 15;
            // Neither a stuck counter nor a zero one moves: (15 + 1) & 15 is 0, (0 + 1) is 1.
            *counter -= u64::from((count + 1) & 15 > 1) << shift;
            let cleared = u64::from(count == 1);
            words[(position >> 6) as usize] &= !(cleared << (position & 63));
            flips += cleared;
        }
        self.bits.add_ones(flips.wrapping_neg());
        self.items = self.items.saturating_sub(1);
        Some(flips as u32)
    }

    /// Whether the filter claims a key.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_digest(self.scheme.digest(key.as_ref()))
    }

    /// Whether the filter claims a key, by its digest.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        claims(&self.bits, Walk::new(digest, self.scheme.shape()), self.scheme.shape().hashes())
    }

    /// Adds many keys, prefetching memory.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn insert_batch<K: AsRef<[u8]>>(&mut self, keys: &[K]) {
        let scheme = self.scheme;
        in_batches::<BATCH, _>(
            keys,
            |key| scheme.digest(key),
            |digests| self.insert_digests(digests),
        );
    }

    /// Adds many keys by their digests, prefetching memory.
    pub fn insert_digests(&mut self, digests: &[Digest]) {
        // Two arrays are prefetched per position: half the batch keeps as many lines in flight.
        for batch in digests.chunks(BATCH / 2) {
            batch.iter().for_each(|digest| self.prefetch_insert(*digest));
            for digest in batch {
                self.insert_digest(*digest);
            }
        }
    }

    /// Prefetches the memory that inserting this digest will change.
    #[inline]
    pub(crate) fn prefetch_insert(&self, digest: Digest) {
        for position in digest.positions(self.scheme.shape()) {
            prefetch(&self.counters, (position >> 4) as usize);
            self.bits.prefetch(position);
        }
    }

    /// Looks up many keys at once, prefetching memory. Overwrites `answers` with one answer per
    /// key, in order.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        in_batches::<ASKED, _>(
            keys,
            |key| self.scheme.digest(key),
            |digests| claims_of(&self.bits, self.scheme.shape(), digests, answers),
        );
    }

    /// Looks up many keys by their digests. Overwrites `answers`.
    pub fn contains_digests(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        answers.clear();
        claims_of(&self.bits, self.scheme.shape(), digests, answers);
    }

    /// Adds all keys of another filter: counters are added.
    ///
    /// # Errors
    /// If the schemes differ; nothing changes then.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.scheme.check(&other.scheme)?;
        let mut stuck = 0;
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            *mine = add_counters(*mine, *theirs);
            stuck += u64::from(stuck_in(*mine));
        }
        self.stuck = stuck;
        self.bits.union_with(&other.bits);
        self.items = self.items.saturating_add(other.items);
        Ok(())
    }

    /// The filter of the same keys, this many rungs below (`design::ladder`): neighbouring counters
    /// are added, and a sum of 15 or more is stuck at 15.
    ///
    /// # Errors
    /// If the shape would have no bits, or there is no memory for it.
    ///
    /// # Panics
    /// If the result would not be a whole number of words.
    pub fn folded(&self, steps: u32) -> Result<Self, ParamError> {
        let old = self.scheme.shape();
        let bits = old.bits().checked_shr(steps).unwrap_or(0);
        let shape = Shape::new(bits, old.hashes())?.with_digest_bits(old.digest_bits());
        let mut counters = self.counters.clone();
        for _ in 0..steps {
            let pairs = counters.as_chunks::<2>().0;
            counters =
                pairs.iter().map(|[low, high]| pair_sums(*low) | pair_sums(*high) << 32).collect();
        }
        let stuck = counters.iter().map(|word| u64::from(stuck_in(*word))).sum();
        let scheme = Scheme::new(shape, *self.scheme.hasher());
        Ok(Self { scheme, counters, bits: self.bits.folded(steps), stuck, items: self.items })
    }

    /// The counter at `position`, 0 to 15.
    ///
    /// # Panics
    /// If `position` lies past the last word.
    #[must_use]
    pub fn counter(&self, position: u64) -> u8 {
        ((self.counters[(position >> 4) as usize] >> ((position & 15) * 4)) & 15) as u8
    }

    /// The highest value that any counter has.
    pub(crate) fn levels(&self) -> u8 {
        let highest = self.counters.iter().fold(0, |highest, word| {
            higher_bytes(highest, higher_bytes(word & EVEN, word >> 4 & EVEN))
        });
        highest.to_le_bytes().into_iter().max().unwrap_or(0)
    }

    /// The positions whose counter is at least `level`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn level(&self, level: u8) -> Result<BitVector, ParamError> {
        let length = Bits::new(self.scheme.shape().bits())?;
        let mut words: Vec<u64> = zeroed(length.get().div_ceil(64), length.get())?;
        for (word, counters) in words.iter_mut().zip(self.counters.chunks(4)) {
            *word = counters
                .iter()
                .rev()
                .fold(0, |bits, counters| bits << 16 | reaching(*counters, level));
            // A last chunk of fewer than four words fills only the low bits, which is right.
        }
        Ok(BitVector::from_words(length, words))
    }

    /// A checksum of the counters.
    pub(crate) fn counters_checksum(&self) -> u64 {
        checksum_of(&self.counters)
    }

    /// Used in decoding: raises counters where a level has ones that it did not have `before`, and
    /// lowers them where it lost some. No counter may leave its range, and [`Self::recount`] must
    /// follow.
    pub(crate) fn move_level(&mut self, before: Option<&BitVector>, after: &BitVector) {
        for (index, (counters, after)) in self.counters.chunks_mut(4).zip(after.words()).enumerate()
        {
            let before = before.map_or(0, |before| before.words()[index]);
            let (up, down) = (after & !before, before & !after);
            for (counters, shift) in counters.iter_mut().zip([0, 16, 32, 48]) {
                *counters += spread(up >> shift);
                *counters -= spread(down >> shift);
            }
        }
    }

    /// Recomputes bits and stuck counters from the counters after decoding. The scheme is that of
    /// the base, except that the seed may have become secret.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn recount(&mut self, scheme: Scheme, items: u64) -> Result<(), ParamError> {
        debug_assert_eq!(self.scheme, scheme, "counters mean what they meant");
        self.scheme = scheme;
        self.bits = self.level(1)?;
        self.stuck = self.counters.iter().map(|word| u64::from(stuck_in(*word))).sum();
        self.items = items;
        Ok(())
    }

    /// The plain filter of the same keys: what is published.
    #[must_use]
    pub fn to_standard(&self) -> StandardFilter {
        StandardFilter::from_parts(self.scheme, self.bits.clone(), self.items)
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.counters.fill(0);
        self.bits.reset();
        self.stuck = 0;
        self.items = 0;
    }

    /// Keys added minus keys removed.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// Number of counters at 15, which no removal lowers any more.
    #[must_use]
    pub const fn stuck_counters(&self) -> u64 {
        self.stuck
    }

    /// The probability that a random key is claimed, computed from the present fill: `c + (1-c)
    /// fill^k`, where `c` is the probability that it shares its digest with a member.
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        estimate::false_positive(self.scheme.shape(), &self.bits, self.items)
    }

    /// Shape and hasher.
    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Gives a locked filter its seed.
    ///
    /// # Errors
    /// If it is not the seed the filter was made with; nothing changes then.
    pub fn unlock(&mut self, seed: Seed) -> Result<(), WrongSeed> {
        self.scheme.hasher_mut().unlock(seed)
    }

    /// The plain bits: one where the counter is above zero.
    #[must_use]
    pub const fn bits(&self) -> &BitVector {
        &self.bits
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.counters.as_slice()) + size_of_val(self.bits.words())
    }

    /// Checks bits and stuck counters against a full recount. Slow.
    ///
    /// # Panics
    /// If a promise of this type is broken: a bug in this crate.
    pub fn validate(&self) {
        self.bits.validate();
        let counts = || (0..self.scheme.shape().bits()).map(|position| self.counter(position));
        assert!(
            counts()
                .zip(0..)
                .all(|(count, position)| self.bits.get(position) == u64::from(count > 0)),
            "a bit is one exactly when its counter is above zero"
        );
        let stuck = counts().filter(|count| *count == Self::STUCK).count() as u64;
        assert_eq!(self.stuck, stuck, "stuck counters are kept up");
    }
}

impl fmt::Debug for CountingFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fill = self.bits.fill();
        write!(f, "CountingFilter({:?}, {} items, fill {fill:.3})", self.scheme, self.items)
    }
}

/// The effect of adding one to a counter of this value: the low half says whether its bit flips,
/// the high half whether it gets stuck. One table lookup instead of two comparisons.
const EFFECT_OF_ADDING: [u64; 16] = {
    let mut effects = [0; 16];
    effects[0] = 1;
    effects[14] = 1 << 32;
    effects
};

/// Adds sixteen pairs of counters; a sum of 15 or more is stuck at 15.
fn add_counters(a: u64, b: u64) -> u64 {
    (0..64).step_by(4).fold(0, |sum, shift| {
        let count = ((a >> shift) & 15) + ((b >> shift) & 15);
        sum | count.min(15) << shift
    })
}

/// Sums of neighbouring counters among sixteen, limited to 15 each, packed into the low half.
const fn pair_sums(counters: u64) -> u64 {
    let sums = (counters & EVEN) + (counters >> 4 & EVEN);
    let over = (sums >> 4 & 0x0101_0101_0101_0101) * 15;
    let mut bytes = (sums | over) & EVEN;
    bytes = (bytes | bytes >> 4) & 0x00FF_00FF_00FF_00FF;
    bytes = (bytes | bytes >> 8) & 0x0000_FFFF_0000_FFFF;
    (bytes | bytes >> 16) & 0xFFFF_FFFF
}

/// How many of sixteen counters are at 15.
fn stuck_in(counters: u64) -> u32 {
    let pairs = counters & (counters >> 1);
    (pairs & (pairs >> 2) & 0x1111_1111_1111_1111).count_ones()
}

/// Mask of every other counter of sixteen; each is then alone in a byte.
const EVEN: u64 = 0x0F0F_0F0F_0F0F_0F0F;

/// The larger of each pair of bytes; bytes are below 16.
fn higher_bytes(a: u64, b: u64) -> u64 {
    let from_a = (((a | 0x1010_1010_1010_1010) - b) >> 4 & 0x0101_0101_0101_0101) * 15;
    a & from_a | b & !from_a
}

/// Which of sixteen counters are at least `level`, as the low sixteen bits.
fn reaching(counters: u64, level: u8) -> u64 {
    let level = u64::from(level) * 0x0101_0101_0101_0101;
    let reach = |bytes: u64| ((bytes | 0x1010_1010_1010_1010) - level) >> 4 & (EVEN / 15);
    // Pack the result bits of two neighbours into each byte, then pack wider and wider groups.
    let twos = reach(counters & EVEN) | reach(counters >> 4 & EVEN) << 1;
    let fours = (twos | twos >> 6) & 0x000F_000F_000F_000F;
    let eights = (fours | fours >> 12) & 0x0000_00FF_0000_00FF;
    (eights | eights >> 24) & 0xFFFF
}

/// The low sixteen bits, each spread to a counter: the inverse of [`reaching`] at level 1.
fn spread(bits: u64) -> u64 {
    let eights = (bits & 0xFFFF | bits << 24) & 0x0000_00FF_0000_00FF;
    let fours = (eights | eights << 12) & 0x000F_000F_000F_000F;
    let twos = (fours | fours << 6) & 0x0303_0303_0303_0303;
    (twos | twos << 3) & 0x1111_1111_1111_1111
}
