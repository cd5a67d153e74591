//! The blocked filter: adds and looks up keys, with one cache line per key.
//!
//! ```text
//! digest ─► block (256 bits, half a cache line): 8 words of 32 bits, one bit of the key in each
//! ```
//!
//! For programs that use a single filter. A standard filter touches one cache line per position;
//! this one touches only one per key, and tests the eight bits of a key at once. The price is
//! length: blocks that get more keys by chance claim more absent keys, so that it takes a tenth
//! more bits at 1 % ([`design::blocked`] takes this into account).
//!
//! Always true: every bit of every inserted digest is one. Blocks do not straddle cache lines. The
//! same digest has the same bits on every platform.
//!
//! Not here: banks and replicas, which need the positions of unblocked filters.
//!
//! After F. Putze, P. Sanders and J. Singler, "Cache-, hash-, and space-efficient Bloom filters" (2007);
//! the split into words with a bit each is the one of Impala's and Parquet's filters.

use std::fmt;

use bytemuck::{Pod, Zeroable};

use super::{ASKED, BATCH, in_batches};
use crate::bits::BitVector;
use crate::design;
use crate::key_hash::{Digest, Seed, WrongSeed};
use crate::model::blocked::{BLOCK_BITS, BLOCK_WORDS};
use crate::params::{Bits, ParamError, Rate, Shape};
use crate::prefetch::prefetch;
use crate::processor::{self, Avx2, Work};
use crate::scheme::{Mismatch, Scheme};

/// Words of a block.
const WORDS: usize = BLOCK_WORDS as usize;

/// Blocks that stay in the second-level cache, so that prefetching them costs more than it saves.
const CACHED: usize = (1 << 21) / BLOCK_BITS as usize;

/// Odd numbers, one per word: their products with one hash give eight independent bits of a key.
/// The same as in Parquet's split-block filters.
const SALTS: [u32; WORDS] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// 2^64 divided by the golden ratio, made odd. With it the bits within a block depend on all bits
/// of a digest, not only on those that choose the block.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The filter of the keys that share a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(C, align(32))]
struct Block([u32; WORDS]);

/// A Bloom filter of fixed length in which all bits of a key lie in one cache line.
///
/// ```
/// use umbel::BlockedFilter;
///
/// let mut filter = BlockedFilter::for_target(10_000, 0.01)?;
/// filter.insert("apple");
/// assert!(filter.contains("apple"));   // always: no false negatives
/// assert!(!filter.contains("banana")); // wrong for 1 key in 100 when full
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Clone)]
pub struct BlockedFilter {
    scheme: Scheme,
    blocks: Vec<Block>,
    items: u64,
    avx2: Option<Avx2>,
}

impl BlockedFilter {
    /// The smallest filter that keeps `rate` while it holds up to `items` keys.
    ///
    /// # Errors
    /// If `items` is zero, `rate` is not between 0 and 1, or there is no memory for it.
    pub fn for_target(items: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(design::blocked(items, Rate::new(rate)?)?.into())
    }

    /// An empty filter of this shape and hasher.
    ///
    /// # Errors
    /// If the shape does not have 8 hashes and a multiple of 256 bits, or there is no memory for it.
    pub fn new(scheme: Scheme) -> Result<Self, ParamError> {
        let (bits, hashes) = (scheme.shape().bits(), scheme.shape().hashes());
        if bits % BLOCK_BITS != 0 || hashes != BLOCK_WORDS {
            return Err(ParamError::Blocks { bits, hashes });
        }
        let count = usize::try_from(bits / BLOCK_BITS).map_err(|_| ParamError::Memory(bits))?;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(count).map_err(|_| ParamError::Memory(bits))?;
        blocks.resize(count, Block::zeroed());
        Ok(Self { scheme, blocks, items: 0, avx2: Avx2::detect() })
    }

    /// A filter with bits that were decoded.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn from_parts(
        scheme: Scheme,
        bits: &BitVector,
        items: u64,
    ) -> Result<Self, ParamError> {
        let mut filter = Self::new(scheme)?;
        let words = bits.words().iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
        let places = filter.blocks.iter_mut().flat_map(|block| &mut block.0);
        places.zip(words).for_each(|(place, word)| *place = word);
        filter.items = items;
        Ok(filter)
    }

    /// The bits in the order of blocks and words, as in files.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(crate) fn to_bits(&self) -> Result<BitVector, ParamError> {
        let mut bits = BitVector::zeros(Bits::new(self.scheme.shape().bits())?)?;
        let words = self.blocks.iter().flat_map(|block| block.0.chunks_exact(2));
        for (word, halves) in bits.words_mut().iter_mut().zip(words) {
            *word = u64::from(halves[0]) | (u64::from(halves[1]) << 32);
        }
        bits.add_ones(self.ones());
        Ok(bits)
    }

    /// Adds a key; returns whether the filter changed. `false` means that the key was claimed
    /// already.
    ///
    /// # Panics
    /// If the hasher is locked.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_digest(self.scheme.digest(key.as_ref()))
    }

    /// Adds a key by its digest; returns whether the filter changed.
    #[inline]
    pub fn insert_digest(&mut self, digest: Digest) -> bool {
        processor::run(self.avx2, Insert { filter: self, digest })
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
        processor::run(self.avx2, Ask { filter: self, digest })
    }

    /// Adds many keys, with their memory prefetched.
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

    /// Adds many keys by their digests, with their memory prefetched.
    pub fn insert_digests(&mut self, digests: &[Digest]) {
        processor::run(self.avx2, InsertMany { filter: self, digests });
    }

    /// Looks up many keys at once, with their memory prefetched. Overwrites `answers` with one
    /// answer per key, in order.
    ///
    /// # Panics
    /// If the hasher is locked.
    pub fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Vec<bool>) {
        answers.clear();
        in_batches::<ASKED, _>(
            keys,
            |key| self.scheme.digest(key),
            |digests| processor::run(self.avx2, AskMany { filter: self, digests, answers }),
        );
    }

    /// Looks up many keys by their digests. Overwrites `answers`.
    pub fn contains_digests(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        answers.clear();
        processor::run(self.avx2, AskMany { filter: self, digests, answers });
    }

    /// Adds all keys of another filter.
    ///
    /// # Errors
    /// If the schemes differ; nothing changes then.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.scheme.check(&other.scheme)?;
        for (here, there) in self.blocks.iter_mut().zip(&other.blocks) {
            here.0.iter_mut().zip(there.0).for_each(|(here, there)| *here |= there);
        }
        self.items = self.items.saturating_add(other.items);
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.blocks.fill(Block::zeroed());
        self.items = 0;
    }

    /// How often keys were added, repeats included.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The probability that a random key is claimed, computed from the present bits: the average
    /// over blocks of the product of their words' fills, combined with the probability that it
    /// shares its digest with a member. Takes a pass over all blocks.
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        let fill = |word: &u32| f64::from(word.count_ones()) / f64::from(u32::BITS);
        let rate = |block: &Block| block.0.iter().map(fill).product::<f64>();
        let by_bits = self.blocks.iter().map(rate).sum::<f64>() / self.blocks.len() as f64;
        let digests = 2f64.powi(self.scheme.shape().digest_bits().get() as i32);
        let same_digest = (self.items as f64 / digests).min(1.0);
        same_digest + (1.0 - same_digest) * by_bits
    }

    /// Bits that are one. Takes a pass over all blocks.
    #[must_use]
    pub fn ones(&self) -> u64 {
        let words = self.blocks.iter().flat_map(|block| block.0);
        words.map(|word| u64::from(word.count_ones())).sum()
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

    /// Bytes of memory that the filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.blocks)
    }
}

impl PartialEq for BlockedFilter {
    fn eq(&self, other: &Self) -> bool {
        (&self.scheme, self.items, &self.blocks) == (&other.scheme, other.items, &other.blocks)
    }
}

impl Eq for BlockedFilter {}

impl fmt::Debug for BlockedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fill = self.ones() as f64 / self.scheme.shape().bits() as f64;
        write!(f, "BlockedFilter({:?}, {} items, fill {fill:.3})", self.scheme, self.items)
    }
}

/// Where a key's bits are: the block, and a hash that determines the bits within it.
#[derive(Clone, Copy)]
struct Place {
    block: usize,
    bits: u32,
}

impl Place {
    const NONE: Self = Self { block: 0, bits: 0 };

    #[inline(always)]
    const fn new(digest: Digest, shape: &Shape, blocks: usize) -> Self {
        let digest = digest.get() << (64 - shape.digest_bits().get());
        // Multiply-shift: the top bits choose the block.
        let block = ((digest as u128 * blocks as u128) >> 64) as usize;
        Self { block, bits: (digest.wrapping_mul(MIX) >> 32) as u32 }
    }
}

/// The eight bits of a key.
#[inline(always)]
fn mask(bits: u32) -> [u32; WORDS] {
    SALTS.map(|salt| 1 << (bits.wrapping_mul(salt) >> 27))
}

/// Whether a block claims a key.
#[inline(always)]
fn claims(block: &Block, bits: u32) -> bool {
    let missing =
        block.0.iter().zip(mask(bits)).fold(0, |missing, (word, bit)| missing | (bit & !word));
    missing == 0
}

/// Adds a key to a block. Returns whether the block changed.
#[inline(always)]
fn add(block: &mut Block, bits: u32) -> bool {
    let is_new = !claims(block, bits);
    block.0.iter_mut().zip(mask(bits)).for_each(|(word, bit)| *word |= bit);
    is_new
}

/// One lookup. The key's place is computed inside as well, which saves a quarter of the time of a
/// lookup.
struct Ask<'a> {
    filter: &'a BlockedFilter,
    digest: Digest,
}

impl Work for Ask<'_> {
    type Done = bool;

    #[inline(always)]
    fn done(self) -> bool {
        let BlockedFilter { scheme, blocks, .. } = self.filter;
        let place = Place::new(self.digest, scheme.shape(), blocks.len());
        claims(&blocks[place.block], place.bits)
    }
}

/// One insert, compiled as [`Ask`] is.
struct Insert<'a> {
    filter: &'a mut BlockedFilter,
    digest: Digest,
}

impl Work for Insert<'_> {
    type Done = bool;

    #[inline(always)]
    fn done(self) -> bool {
        let BlockedFilter { scheme, blocks, items, .. } = self.filter;
        let place = Place::new(self.digest, scheme.shape(), blocks.len());
        *items = items.saturating_add(1);
        add(&mut blocks[place.block], place.bits)
    }
}

/// Many lookups.
struct AskMany<'a> {
    filter: &'a BlockedFilter,
    digests: &'a [Digest],
    answers: &'a mut Vec<bool>,
}

impl Work for AskMany<'_> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        let Self { filter: BlockedFilter { scheme, blocks, .. }, digests, answers } = self;
        let first = answers.len();
        answers.resize(first + digests.len(), false);
        let answers = answers[first..].chunks_mut(BATCH);
        for (batch, answers) in digests.chunks(BATCH).zip(answers) {
            let mut places = [Place::NONE; BATCH];
            find(scheme.shape(), blocks, batch, &mut places);
            // A plain loop: `Vec::extend` with a closure would be compiled without AVX2.
            for (answer, place) in answers.iter_mut().zip(&places) {
                *answer = claims(&blocks[place.block], place.bits);
            }
        }
    }
}

/// Many inserts.
struct InsertMany<'a> {
    filter: &'a mut BlockedFilter,
    digests: &'a [Digest],
}

impl Work for InsertMany<'_> {
    type Done = ();

    #[inline(always)]
    fn done(self) {
        let Self { filter: BlockedFilter { scheme, blocks, items, .. }, digests } = self;
        for batch in digests.chunks(BATCH) {
            let mut places = [Place::NONE; BATCH];
            let count = find(scheme.shape(), blocks, batch, &mut places);
            places[..count].iter().for_each(|place| _ = add(&mut blocks[place.block], place.bits));
        }
        *items = items.saturating_add(digests.len() as u64);
    }
}

/// Finds the places of some digests, and prefetches their blocks if they are not in the cache.
#[inline(always)]
fn find(shape: &Shape, blocks: &[Block], digests: &[Digest], places: &mut [Place; BATCH]) -> usize {
    for (place, digest) in places.iter_mut().zip(digests) {
        *place = Place::new(*digest, shape, blocks.len());
    }
    let count = digests.len().min(BATCH);
    if blocks.len() > CACHED {
        places[..count].iter().for_each(|place| prefetch(blocks, place.block));
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::params::DigestBits;

    fn keys(range: std::ops::Range<u64>) -> Vec<[u8; 8]> {
        range.map(u64::to_le_bytes).collect()
    }

    /// Uses several filters if one has few keys or few wrong answers.
    #[test]
    fn the_designed_rate_is_the_measured_one() {
        for (items, rate, rounds) in
            [(100, 0.01, 40), (10_000, 0.01, 1), (10_000, 0.001, 4), (30, 0.1, 40)]
        {
            let (mut wrong, mut asked, mut estimated) = (0, 0, 0.0);
            for round in 0..rounds {
                let mut filter = BlockedFilter::for_target(items, rate).unwrap();
                let from = round * 10_000_000;
                filter.insert_batch(&keys(from..from + items));
                let mut answers = Vec::new();
                filter.contains_batch(&keys(from + 1_000_000..from + 1_200_000), &mut answers);
                wrong += answers.iter().filter(|answer| **answer).count();
                asked += answers.len();
                estimated += filter.false_positive();
            }
            let measured = wrong as f64 / asked as f64;
            let estimated = estimated / rounds as f64;
            // Four standard deviations of the number of wrong answers.
            let noise = 4.0 / (wrong as f64).sqrt();
            assert!(measured < rate * (1.0 + noise), "{items} keys at {rate}: {measured}");
            assert!(
                (measured / estimated - 1.0).abs() < noise,
                "measured {measured}, estimated {estimated}"
            );
        }
    }

    /// The bits of a key are part of the file format.
    #[test]
    fn the_bits_of_a_digest_are_these() {
        let shape = Shape::new(1024, 8).unwrap().with_digest_bits(DigestBits::new(40).unwrap());
        let mut filter = BlockedFilter::new(shape.into()).unwrap();
        assert!(
            filter.insert_digest(Digest::from_raw(0x9a_bcde_f012, shape.digest_bits()).unwrap())
        );
        let bits = filter.to_bits().unwrap();
        let ones: Vec<u64> = (0..1024).filter(|position| bits.get(*position) == 1).collect();
        assert_eq!(ones, [535, 545, 601, 620, 647, 695, 714, 767]);
    }

    #[test]
    fn shapes_that_are_not_blocked_are_refused() {
        for (bits, hashes) in [(255, 8), (512, 7), (257, 8)] {
            let shape = Shape::new(bits, hashes).unwrap();
            let refused = BlockedFilter::new(shape.into()).unwrap_err();
            assert_eq!(refused, ParamError::Blocks { bits, hashes });
        }
        assert!(BlockedFilter::for_target(0, 0.01).is_err());
        assert!(BlockedFilter::for_target(1, 1.0).is_err());
    }

    #[test]
    fn blocks_lie_within_cache_lines() {
        let filter = BlockedFilter::for_target(1000, 0.01).unwrap();
        assert_eq!(filter.blocks.as_ptr().addr() % size_of::<Block>(), 0);
    }

    proptest! {
        #[test]
        fn what_was_added_is_claimed_in_every_way(
            here in prop::collection::btree_set(any::<u64>(), 0..200),
            there in prop::collection::btree_set(any::<u64>(), 0..200),
            blocks in 1u64..20,
        ) {
            let scheme = Scheme::from(Shape::new(blocks * 256, 8).unwrap());
            let bytes = |keys: &std::collections::BTreeSet<u64>| -> Vec<[u8; 8]> {
                keys.iter().map(|key| key.to_le_bytes()).collect()
            };
            let (mut one, mut many) = (BlockedFilter::new(scheme).unwrap(), BlockedFilter::new(scheme).unwrap());
            bytes(&here).iter().for_each(|key| _ = one.insert(key));
            many.insert_batch(&bytes(&here));
            prop_assert_eq!(&one, &many);
            let mut other = BlockedFilter::new(scheme).unwrap();
            other.extend(bytes(&there));
            one.union_with(&other).unwrap();
            many.insert_batch(&bytes(&there));
            prop_assert_eq!(&one, &many);
            let asked: Vec<[u8; 8]> = bytes(&here).into_iter().chain(bytes(&there)).chain(keys(0..100)).collect();
            let mut answers = Vec::new();
            one.contains_batch(&asked, &mut answers);
            prop_assert!(answers.iter().zip(&asked).all(|(answer, key)| *answer == one.contains(key)));
            prop_assert!(answers[..here.len() + there.len()].iter().all(|answer| *answer));
            let copy = BlockedFilter::from_parts(scheme, &one.to_bits().unwrap(), one.items()).unwrap();
            prop_assert_eq!(copy, one);
        }
    }
}
