//! A [`Scheme`]: shape and hasher, all that two filters must agree on.
//!
//! Filters of one scheme may be joined, compared, replicated and sliced into one bank;
//! filters of different schemes never: every such attempt is a [`Mismatch`] that names
//! what differs, never a silent wrong answer.

use crate::key_hash::{Digest, HashId, KeyHash, KeyHasher, SeedFingerprint};
use crate::params::Shape;

/// Shape and hasher of a filter: what its bits mean.
///
/// ```
/// use umbel::{HashId, KeyHasher, Mismatch, Scheme, Seed, Shape, StandardFilter};
///
/// let shape = Shape::new(1 << 16, 7)?;
/// let seeded = |seed| Scheme::new(shape, KeyHasher::new(HashId::Xxh3, Seed::from_number(seed)));
/// let mut ours = StandardFilter::new(seeded(1))?;
/// let theirs = StandardFilter::new(seeded(2))?;
/// assert!(matches!(ours.union_with(&theirs), Err(Mismatch::Seed(..))));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    shape: Shape,
    hasher: KeyHasher,
}

impl Scheme {
    /// Pairs a shape with a hasher.
    #[must_use]
    pub const fn new(shape: Shape, hasher: KeyHasher) -> Self {
        Self { shape, hasher }
    }

    /// Length, positions per key and digest length.
    #[must_use]
    #[inline]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The hash function and its seed.
    #[must_use]
    #[inline]
    pub const fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The hasher, to unlock it.
    pub const fn hasher_mut(&mut self) -> &mut KeyHasher {
        &mut self.hasher
    }

    /// Hashes a key and cuts the hash to this shape's digest.
    ///
    /// # Panics
    /// If the hasher is locked, see [`KeyHasher::hash`].
    #[must_use]
    #[inline]
    pub fn digest(&self, key: &[u8]) -> Digest {
        self.digest_of(self.hasher.hash(key))
    }

    /// Cuts a hash made by this scheme's hasher to this shape's digest.
    #[must_use]
    #[inline]
    pub const fn digest_of(&self, hash: KeyHash) -> Digest {
        hash.digest(self.shape.digest_bits())
    }

    /// Whether the bits of the two mean the same.
    ///
    /// # Errors
    /// The first thing in which they differ.
    pub fn check(&self, other: &Self) -> Result<(), Mismatch> {
        let (a, b) = (&self.shape, &other.shape);
        let (left, right) = (a.digest_bits().get(), b.digest_bits().get());
        if a.bits() != b.bits() {
            return Err(Mismatch::Bits(a.bits(), b.bits()));
        }
        if a.hashes() != b.hashes() {
            return Err(Mismatch::Hashes(a.hashes(), b.hashes()));
        }
        if left != right {
            return Err(Mismatch::DigestBits(left, right));
        }
        if self.hasher.id() != other.hasher.id() {
            return Err(Mismatch::Hash(self.hasher.id(), other.hasher.id()));
        }
        if self.hasher.fingerprint() != other.hasher.fingerprint() {
            return Err(Mismatch::Seed(self.hasher.fingerprint(), other.hasher.fingerprint()));
        }
        Ok(())
    }
}

impl From<Shape> for Scheme {
    /// The shape with the default hasher: XXH3 and the zero seed.
    fn from(shape: Shape) -> Self {
        Self::new(shape, KeyHasher::default())
    }
}

/// Two filters whose bits do not mean the same. Neither was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Lengths differ.
    #[error("the filters have different lengths: {0} and {1} bits")]
    Bits(u64, u64),
    /// Positions per key differ.
    #[error("the filters have different numbers of hashes: {0} and {1}")]
    Hashes(u32, u32),
    /// Digest lengths differ.
    #[error("the filters use digests of different lengths: {0} and {1} bits")]
    DigestBits(u32, u32),
    /// Hash functions differ.
    #[error("the filters use different hash functions: {0} and {1}")]
    Hash(HashId, HashId),
    /// Seeds differ.
    #[error("the filters were made with different seeds: {0} and {1}")]
    Seed(SeedFingerprint, SeedFingerprint),
    /// Component capacities differ (dynamic filters only).
    #[error("the filters' components have different capacities: {0} and {1} keys")]
    Capacity(u64, u64),
}
