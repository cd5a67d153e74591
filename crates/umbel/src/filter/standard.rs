//! The standard filter: adds and looks up keys, nothing else, in the fewest bits.
//!
//! Where it is used: as the published form of other kinds, as a column of a bank, and in the file
//! that `umbel filter` writes. Paper 4 section 2, papers 1 and 3 section 2.
//!
//! Always true: every position of every inserted digest is one.

use std::fmt;

use super::{ASKED, BATCH, estimate, in_batches};
use crate::bits::BitVector;
use crate::design;
use crate::key_hash::{Digest, Seed, Walk, WrongSeed};
use crate::params::{Bits, ParamError, Rate, Shape};
use crate::processor::{self, Avx2, Work};
use crate::scheme::{Mismatch, Scheme};

/// A Bloom filter of fixed length that keys can be added to.
///
/// ```
/// use umbel::StandardFilter;
///
/// let mut filter = StandardFilter::for_target(10_000, 0.01)?;
/// filter.insert("apple");
/// assert!(filter.contains("apple"));   // always: no false negatives
/// assert!(!filter.contains("banana")); // wrong for 1 key in 100 when full
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StandardFilter {
    scheme: Scheme,
    bits: BitVector,
    items: u64,
}

impl StandardFilter {
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
        let bits = BitVector::zeros(Bits::new(scheme.shape().bits())?)?;
        Ok(Self { scheme, bits, items: 0 })
    }

    /// A filter of bits that were made elsewhere, such as a counting filter's plain bits.
    pub(crate) fn from_parts(scheme: Scheme, bits: BitVector, items: u64) -> Self {
        assert_eq!(bits.len(), scheme.shape().bits(), "bits fit the shape");
        Self { scheme, bits, items }
    }

    /// Adds a key; returns whether the filter changed. `false` means that the key was
    /// claimed already.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_digest(self.scheme.digest(key.as_ref()))
    }

    /// Adds a key by its digest; returns whether the filter changed.
    #[inline(always)]
    pub fn insert_digest(&mut self, digest: Digest) -> bool {
        let mut walk = Walk::new(digest, self.scheme.shape());
        let words = self.bits.words_mut();
        let mut flips = u64::from(self.scheme.shape().hashes());
        for _ in 0..self.scheme.shape().hashes() {
            let position = walk.next();
            let word = &mut words[(position >> 6) as usize];
            flips -= (*word >> (position & 63)) & 1;
            *word |= 1 << (position & 63);
        }
        self.bits.add_ones(flips);
        self.items = self.items.saturating_add(1);
        flips != 0
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
    #[inline(always)]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        claims(&self.bits, Walk::new(digest, self.scheme.shape()), self.scheme.shape().hashes())
    }

    /// Adds many keys, prefetching memory: faster than one by one if the filter is larger than the
    /// cache.
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
        processor::run(Avx2::detect(), Inserts { filter: self, digests });
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

    /// Adds all keys of another filter.
    ///
    /// # Errors
    /// If the schemes differ; nothing changes then.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.scheme.check(&other.scheme)?;
        self.bits.union_with(&other.bits);
        self.items = self.items.saturating_add(other.items);
        Ok(())
    }

    /// Keeps the ones of both. The result claims every key that is in both sets, and more
    /// than a filter of the intersection would: see `model` for how many.
    ///
    /// The number of items becomes an estimate, at most the smaller of both.
    ///
    /// # Errors
    /// If the schemes differ; nothing changes then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.scheme.check(&other.scheme)?;
        let estimate = super::estimate_intersection(self, other)?;
        self.bits.intersect_with(&other.bits);
        self.items = (estimate.round() as u64).min(self.items).min(other.items);
        Ok(())
    }

    /// Keeps the ones that `other` does not have: bits, not keys. A key of `self` that
    /// shares a position with a key of `other` is denied afterwards.
    ///
    /// The number of items becomes an estimate from the fill, at most what it was.
    ///
    /// # Errors
    /// If the schemes differ; nothing changes then.
    pub fn difference_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.scheme.check(&other.scheme)?;
        self.bits.difference_with(&other.bits);
        let estimate = super::estimate_items(self.scheme.shape(), self.bits.ones());
        self.items = (estimate.round() as u64).min(self.items);
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.bits.reset();
        self.items = 0;
    }

    /// How often keys were added, repeats included.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
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

    /// The bits themselves.
    #[must_use]
    pub const fn bits(&self) -> &BitVector {
        &self.bits
    }

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.bits.words())
    }
}

impl fmt::Debug for StandardFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fill = self.bits.fill();
        write!(f, "StandardFilter({:?}, {} items, fill {fill:.3})", self.scheme, self.items)
    }
}

/// Whether all positions of a walk are ones.
///
/// Makes three probes without a branch, then the rest. At the usual fill of one half, a branch
/// after each probe would be mispredicted half the time, and making all probes for every absent key
/// would waste most of them: three probes reject seven absent keys of eight.
#[inline(always)]
pub(crate) fn claims(bits: &BitVector, walk: Walk, hashes: u32) -> bool {
    claims_in(bits.words(), walk, hashes)
}

/// [`claims`], for bits that are not in a [`BitVector`].
#[inline(always)]
pub(crate) fn claims_in(words: &[u64], mut walk: Walk, hashes: u32) -> bool {
    let mut next = || {
        let position = walk.next();
        (words[(position >> 6) as usize] >> (position & 63)) & 1
    };
    if hashes < 3 {
        return (0..hashes).all(|_| next() == 1);
    }
    if next() & next() & next() == 0 {
        return false;
    }
    let mut hit = 1;
    for _ in 3..hashes {
        hit &= next();
    }
    hit == 1
}

/// Many inserts.
struct Inserts<'a> {
    filter: &'a mut StandardFilter,
    digests: &'a [Digest],
}

impl Work for Inserts<'_> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        let Self { filter, digests } = self;
        let shape = *filter.scheme.shape();
        for batch in digests.chunks(BATCH) {
            if !is_cached(&filter.bits) {
                for digest in batch {
                    digest.positions(&shape).for_each(|position| filter.bits.prefetch(position));
                }
            }
            for digest in batch {
                filter.insert_digest(*digest);
            }
        }
    }
}

/// Whether bits that are in use stay in the second-level cache, so that prefetching them costs more
/// than it saves.
fn is_cached(bits: &BitVector) -> bool {
    bits.len() <= 1 << 21
}

/// Many lookups.
struct AskMany<'a> {
    bits: &'a BitVector,
    shape: &'a Shape,
    digests: &'a [Digest],
    answers: &'a mut Vec<bool>,
}

impl Work for AskMany<'_> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        let Self { bits, shape, digests, answers } = self;
        if is_cached(bits) {
            for digest in digests {
                answers.push(claims(bits, Walk::new(*digest, shape), shape.hashes()));
            }
        } else {
            digests.chunks(ASKED).for_each(|batch| batch_claims(bits, shape, batch, answers));
        }
    }
}

/// Looks up many keys, with code compiled for the processor at hand.
pub(crate) fn claims_of(
    bits: &BitVector,
    shape: &Shape,
    digests: &[Digest],
    answers: &mut Vec<bool>,
) {
    processor::run(Avx2::detect(), AskMany { bits, shape, digests, answers });
}

/// Answers one batch in rounds. Each round prefetches and makes a few probes of every key that is
/// not denied yet, until all probes are done.
///
/// A batch is for filters larger than the cache, where the number of fetched lines determines the
/// cost. At the usual fill of one half, rounds of one, one, two and the remaining probes fetch 2.2
/// lines per absent key; three at once and then the rest would fetch 3.5.
#[inline(always)]
fn batch_claims(bits: &BitVector, shape: &Shape, digests: &[Digest], answers: &mut Vec<bool>) {
    let start = answers.len();
    answers.resize(start + digests.len(), false);
    let mut open = [(0, Walk::IDLE); ASKED];
    for ((place, digest), answer) in open.iter_mut().zip(digests).zip(start..) {
        *place = (answer, Walk::new(*digest, shape));
    }
    let mut left = digests.len();
    let mut done = 0;
    for probes in [1, 1, 2, u32::MAX] {
        let probes = probes.min(shape.hashes() - done);
        left = batch_round(bits, probes, &mut open[..left]);
        done += probes;
    }
    for (answer, _) in &open[..left] {
        answers[*answer] = true;
    }
}

/// One round of a batch. Moves the keys that are not denied yet to the front, and returns their
/// number.
#[inline(always)]
fn batch_round(bits: &BitVector, probes: u32, open: &mut [(usize, Walk)]) -> usize {
    for (_, mut walk) in open.iter().copied() {
        (0..probes).for_each(|_| bits.prefetch(walk.next()));
    }
    let mut kept = 0;
    for index in 0..open.len() {
        let (answer, mut walk) = open[index];
        let hit = (0..probes).fold(1, |hit, _| hit & bits.get(walk.next()));
        // Written always, counted only on a hit: no branch to mispredict.
        open[kept] = (answer, walk);
        kept += hit as usize;
    }
    kept
}
