//! The Bloom filters that save lookups: one over each master, one over each index of changes.
//!
//! The filter over changes is `umbel`'s standard filter, to which paper 2's formula applies; this
//! module decides only where its bits are stored. The bits of a sorted file are in its mapped bytes
//! and never copied ([`FileFilter`]). The bits of a layer that still receives changes are atomic,
//! so that readers need no lock ([`LiveFilter`]).
//!
//! The filter over a master is *blocked*: all six bits of a key are in one block of 512 bits, so
//! that a lookup of an absent key costs one cache line instead of three. With ten bits per key its
//! error rate is that of a standard filter with 9.6 bits per key: about one lookup in a hundred.
//!
//! Paper 2: after `u` updates over `n` records a filter of `m` bits and `h` hashes errs with
//! `p(u) = (1-1/n)^u · [1-(1-1/m)^(uh)]^h`; the best `h` is `ln 2 · m/u`.

use std::sync::atomic::{AtomicU64, Ordering};

use umbel::{HashId, KeyHash, KeyHasher, Seed, Shape};

/// The hash that a store's filters and indexes use: keyed, so that nobody can choose keys
/// that collide.
pub(crate) fn hasher_of(store: u64) -> KeyHasher {
    KeyHasher::new(HashId::Xxh3, Seed::from_number(store))
}

/// Which filter a file has, and its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFilter {
    /// Positions all over the filter.
    Standard(Shape),
    /// All positions of a key in one block, with this number of blocks.
    Blocked(u64),
}

impl FileFilter {
    /// A blocked filter for this number of keys.
    pub(crate) fn blocked(items: u64) -> Self {
        Self::Blocked((items.max(1) * BLOCKED_BITS_A_KEY).div_ceil(BLOCK_BITS))
    }

    /// Bytes of the filter in the file.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Standard(shape) => shape.bits().div_ceil(64) * 8,
            Self::Blocked(blocks) => blocks * BLOCK_BITS / 8,
        }
    }

    /// Whether the filter with these bytes, which are little-endian words, may contain the
    /// key; `false` is certain.
    #[inline(always)]
    pub(crate) fn may_contain(&self, bytes: &[u8], hash: KeyHash) -> bool {
        match self {
            Self::Standard(shape) => standard_may_contain(shape, bytes, hash),
            Self::Blocked(blocks) => {
                let (at, mut inside) = block_of(*blocks, hash);
                let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
                    return true;
                };
                let block: &[u8; BLOCK_BYTES] = block;
                let words = block.as_chunks::<8>().0;
                let mut all = 1;
                for _ in 0..BLOCK_HASHES {
                    // The top nine bits: which word of the block, and which bit of the word.
                    let word = u64::from_le_bytes(words[(inside >> 61) as usize]);
                    all &= word >> (inside >> 55 & 63);
                    inside <<= 9;
                }
                all & 1 == 1
            }
        }
    }
}

/// Where a key's block starts, and the hash bits from which its positions in it are taken.
#[inline]
fn block_of(blocks: u64, hash: KeyHash) -> (usize, u64) {
    let block = (u128::from(hash.get()) * u128::from(blocks)) >> 64;
    (block as usize * BLOCK_BYTES, hash.get().wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

const BLOCK_BITS: u64 = 512;
const BLOCK_BYTES: usize = 64;
const BLOCK_HASHES: u32 = 6;
const BLOCKED_BITS_A_KEY: u64 = 10;
const _: () = assert!(BLOCK_HASHES * 9 < 64);

/// Not inlined, so that a lookup contains only the few instructions of the blocked filter.
#[inline(never)]
fn standard_may_contain(shape: &Shape, bytes: &[u8], hash: KeyHash) -> bool {
    may_contain(shape, hash, |word| crate::numbers::u64_at(bytes, word * 8))
}

/// Three probes without a branch between them, so that the processor loads all three cache lines at
/// the same time: seven of eight absent keys end there. Then the rest, one by one.
#[inline]
fn may_contain(shape: &Shape, hash: KeyHash, word: impl Fn(usize) -> u64) -> bool {
    let mut positions = hash.digest(shape.digest_bits()).positions(shape);
    let mut probe = || positions.next().map(|at| word((at / 64) as usize) >> (at % 64) & 1);
    let first = probe().unwrap_or(1) & probe().unwrap_or(1) & probe().unwrap_or(1);
    first == 1 && std::iter::from_fn(probe).all(|bit| bit == 1)
}

/// A filter to which keys are added while other threads query it.
#[derive(Debug)]
pub(crate) struct LiveFilter {
    words: Vec<AtomicU64>,
    shape: Shape,
}

impl LiveFilter {
    pub(crate) fn new(shape: Shape) -> Self {
        let words = shape.bits().div_ceil(64) as usize;
        Self { words: std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect(), shape }
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Adds a key. A thread that learns of the key through a lock or an acknowledgement sees its
    /// bits. Only one thread at a time may insert: then a load and a store lose nothing, and are
    /// far cheaper than a locked instruction.
    #[inline]
    pub(crate) fn insert(&self, hash: KeyHash) {
        for at in hash.digest(self.shape.digest_bits()).positions(&self.shape) {
            let word = &self.words[(at / 64) as usize];
            let bits = word.load(Ordering::Relaxed) | 1 << (at % 64);
            word.store(bits, Ordering::Relaxed);
        }
    }

    /// Prefetches all words of a key.
    #[inline]
    pub(crate) fn touch(&self, hash: KeyHash) {
        let words = hash.digest(self.shape.digest_bits()).positions(&self.shape);
        let load = |at: u64| self.words[(at / 64) as usize].load(Ordering::Relaxed);
        std::hint::black_box(words.map(load).fold(0, |all, word| all ^ word));
    }

    #[inline(never)]
    pub(crate) fn contains(&self, hash: KeyHash) -> bool {
        may_contain(&self.shape, hash, |word| self.words[word].load(Ordering::Relaxed))
    }
}

/// Builds the filter of a file that is being written, as the bytes it will have there:
/// bit `i` of a little-endian word is bit `i % 8` of its byte `i / 8`.
#[derive(Debug)]
pub(crate) struct FilterBuilder {
    bytes: Vec<u8>,
    filter: FileFilter,
    /// Keys not added yet. They are added together, so that their memory is loaded in parallel.
    waiting: Vec<KeyHash>,
}

impl FilterBuilder {
    pub(crate) fn new(filter: FileFilter) -> Self {
        let waiting = Vec::with_capacity(WAITING);
        Self { bytes: vec![0; filter.bytes() as usize], filter, waiting }
    }

    #[inline]
    pub(crate) fn insert(&mut self, hash: KeyHash) {
        self.waiting.push(hash);
        if self.waiting.len() == WAITING {
            self.insert_waiting();
        }
    }

    fn insert_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if let FileFilter::Blocked(blocks) = self.filter {
            let first = |hash: &KeyHash| self.bytes[block_of(blocks, *hash).0];
            std::hint::black_box(waiting.iter().map(first).fold(0, |all, byte| all ^ byte));
        }
        waiting.iter().for_each(|hash| self.insert_now(*hash));
        self.waiting = waiting;
        self.waiting.clear();
    }

    #[inline]
    fn insert_now(&mut self, hash: KeyHash) {
        match &self.filter {
            FileFilter::Standard(shape) => {
                for at in hash.digest(shape.digest_bits()).positions(shape) {
                    self.bytes[(at / 8) as usize] |= 1 << (at % 8);
                }
            }
            FileFilter::Blocked(blocks) => {
                let (at, mut inside) = block_of(*blocks, hash);
                let block = &mut self.bytes[at..at + BLOCK_BYTES];
                for _ in 0..BLOCK_HASHES {
                    // The top nine bits: which byte of the block, and which bit of it.
                    block[(inside >> 58) as usize] |= 1 << (inside >> 55 & 7);
                    inside <<= 9;
                }
            }
        }
    }

    pub(crate) fn filter(&self) -> FileFilter {
        self.filter
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.insert_waiting();
        self.bytes
    }
}

/// Number of keys that are added to a filter together.
const WAITING: usize = 64;

/// Paper 2's filter of `bits` bits for `updates` changes. The number of hashes is `ln 2 · m/u`,
/// rounded to the better neighbouring integer, at least one.
pub(crate) fn shape_for_updates(bits: u64, updates: u64) -> Shape {
    let (m, u) = (bits.max(64) as f64, updates.max(1) as f64);
    let best = std::f64::consts::LN_2 * m / u;
    let rate = |h: f64| (1.0 - (-u * h / m).exp()).powf(h);
    let (below, above) = (best.floor().clamp(1.0, 64.0), best.ceil().clamp(1.0, 64.0));
    let h = if rate(below) <= rate(above) { below } else { above };
    Shape::new(bits.max(64), h as u32).expect("bits and hashes are in range")
}

/// Paper 2's probability of a filter error after `updates` changes over `records` records.
///
/// It is the probability that, for a random record of the master, the filter says "maybe" although
/// the record was never changed.
///
/// ```
/// let shape = umbel::Shape::new(1_000_000, 1)?;
/// let expected = umbel_store::filter_error(shape, 500_000, 10_000_000);
/// assert!((expected - 0.95123 * 0.39347).abs() < 1e-4);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[must_use]
pub fn filter_error(shape: Shape, updates: u64, records: u64) -> f64 {
    let (u, n) = (updates as f64, records.max(1) as f64);
    let (m, h) = (shape.bits() as f64, f64::from(shape.hashes()));
    let unchanged = if records == 0 { 1.0 } else { (u * (-1.0 / n).ln_1p()).exp() };
    let all_ones = (1.0 - (u * h * (-1.0 / m).ln_1p()).exp()).powf(h);
    unchanged * all_ones
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_kinds_of_filter_agree_and_deny_no_member() {
        let hasher = KeyHasher::default();
        let shape = umbel::design::standard(1000, umbel::Rate::new(0.01).unwrap()).unwrap();
        let filter = FileFilter::Standard(shape);
        let (live, mut built) = (LiveFilter::new(shape), FilterBuilder::new(filter));
        for i in 0..1000u32 {
            live.insert(hasher.hash(&i.to_le_bytes()));
            built.insert(hasher.hash(&i.to_le_bytes()));
        }
        let bytes = built.into_bytes();
        let mut wrong = 0;
        for i in 0..100_000u32 {
            let hash = hasher.hash(&i.to_le_bytes());
            assert_eq!(live.contains(hash), filter.may_contain(&bytes, hash));
            assert!(i >= 1000 || live.contains(hash));
            wrong += u32::from(i >= 1000 && live.contains(hash));
        }
        assert!((850..1150).contains(&wrong), "{wrong} of 99000 at 1 %");
    }

    #[test]
    fn a_blocked_filter_denies_no_member_and_errs_one_time_in_a_hundred() {
        let hasher = KeyHasher::default();
        for items in [1u64, 100, 50_000] {
            let mut built = FilterBuilder::new(FileFilter::blocked(items));
            (0..items).for_each(|i| built.insert(hasher.hash(&i.to_le_bytes())));
            let (filter, bytes) = (built.filter(), built.into_bytes());
            let claims = |i: &u64| filter.may_contain(&bytes, hasher.hash(&i.to_le_bytes()));
            assert_eq!((0..items).filter(claims).count() as u64, items);
            let wrong = (items..items + 100_000).filter(claims).count();
            assert!(wrong < 1_200, "{wrong} of 100000 with {items} keys");
        }
    }

    /// The example of paper 2: eleven bits, `x mod 11` and `2x mod 11`.
    #[test]
    fn toy_example_of_paper_2() {
        let positions = |key: u64| [key % 11, 2 * key % 11];
        let mut bits = [false; 11];
        for key in [15, 17] {
            for at in positions(key) {
                bits[at as usize] = true;
            }
        }
        let ones: Vec<usize> = (0..11).filter(|&at| bits[at]).collect();
        assert_eq!(ones, [1, 4, 6, 8]);
        let claims = |key: u64| positions(key).iter().all(|&at| bits[at as usize]);
        assert!(claims(15) && claims(17));
        assert!(claims(6), "key 6 is a filter error");
        // Its positions are 6 and 1; 3 has 3 and 6, of which only one is set.
        assert!(!claims(3));
    }

    #[test]
    fn the_best_number_of_hashes_is_the_better_neighbour() {
        for (bits, updates, hashes) in
            [(1_000_000, 500_000, 1), (2_000_000, 500_000, 3), (1_000, 1_000_000, 1)]
        {
            assert_eq!(shape_for_updates(bits, updates).hashes(), hashes, "m={bits} u={updates}");
        }
    }

    #[test]
    fn no_updates_no_errors() {
        let shape = Shape::new(1000, 3).unwrap();
        assert_eq!(filter_error(shape, 0, 1000), 0.0);
        assert!(filter_error(shape, 100, 0) > 0.0);
    }
}
