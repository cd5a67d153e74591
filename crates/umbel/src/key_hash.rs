//! Key bytes → [`KeyHash`] → [`Digest`] → `k` positions.
//!
//! A key is hashed once, where it enters. Its 64-bit keyed hash is cut to the shape's
//! `digest_bits`, and every position follows from that digest alone:
//!
//! ```text
//! x = digest, moved to the top of 64 bits        (multiply-shift uses the top bits)
//! y = low ^ high half of x · 0x9E37…7C15, or 1   (odd: the walk never stands still)
//! z = y, its halves exchanged                    (bends the walk, see `Walk`)
//! position i = high half of (x + i·y + i(i-1)/2·z) · m        (any m, no modulo)
//! ```
//!
//! Always true: the same key, hash, seed and shape give the same positions on every platform and in
//! every release; golden tests pin them. So a host that receives a digest can set that key's bits
//! without ever seeing the key.
//!
//! Not here: how many bits a digest should have (`params`), secrecy of the seed on
//! disk or wire (`codec` writes a fingerprint instead when the seed is secret).

use std::fmt;
use std::str::FromStr;

use siphasher::sip::{SipHasher13, SipHasher24};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::params::{DigestBits, Shape};

/// Which hash function turns key bytes into a [`KeyHash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum HashId {
    /// XXH3, 64 bits: the fastest. Only for keys that no attacker can choose.
    #[default]
    Xxh3,
    /// SipHash-1-3: without the seed nobody can craft colliding keys. Hosts use it.
    SipHash13,
}

impl HashId {
    /// The number that stands for this hash in every header.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Xxh3 => 1,
            Self::SipHash13 => 2,
        }
    }

    /// The hash with this number in a header.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Xxh3),
            2 => Some(Self::SipHash13),
            _ => None,
        }
    }
}

impl fmt::Display for HashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xxh3 => "xxh3",
            Self::SipHash13 => "siphash-1-3",
        })
    }
}

/// A name that is not one of a hash function. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown hash '{0}': use xxh3 or siphash-1-3")]
pub struct UnknownHash(String);

impl FromStr for HashId {
    type Err = UnknownHash;

    fn from_str(name: &str) -> Result<Self, UnknownHash> {
        match name {
            "xxh3" => Ok(Self::Xxh3),
            "siphash-1-3" => Ok(Self::SipHash13),
            other => Err(UnknownHash(other.to_owned())),
        }
    }
}

/// The 128 bits that key the hash. Filters with different seeds cannot be combined or compared.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Seed([u8; 16]);

impl Seed {
    /// A seed of exactly these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// A seed from a number, for people who type one.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self((number as u128).to_le_bytes())
    }

    /// A seed from a secret of any length, such as the contents of a key file.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        let low = SipHasher24::new_with_key(b"umbel seed  low ").hash(secret);
        let high = SipHasher24::new_with_key(b"umbel seed  high").hash(secret);
        Self((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
    }

    /// The plain bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A number that names the seed without giving it away: SipHash-2-4 is a
    /// pseudo-random function, and the seed is its key.
    #[must_use]
    pub fn fingerprint(&self) -> SeedFingerprint {
        SeedFingerprint(SipHasher24::new_with_key(&self.0).hash(b"umbel seed fingerprint"))
    }
}

impl fmt::Debug for Seed {
    /// Never shows the seed: it may be a cluster's secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({})", self.fingerprint())
    }
}

/// Names a seed without giving it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeedFingerprint(u64);

impl SeedFingerprint {
    /// A fingerprint read from a header.
    pub(crate) const fn from_raw(fingerprint: u64) -> Self {
        Self(fingerprint)
    }

    /// The plain number, as it stands in headers.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SeedFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a hasher knows about its seed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeedKnowledge {
    /// May be written into files.
    Public(Seed),
    /// Known here, never written to files.
    Secret(Seed),
    /// Read from a header that holds only the fingerprint.
    Locked,
}

/// Turns key bytes into [`KeyHash`]es: a hash function and its seed.
///
/// ```
/// use umbel::{HashId, KeyHasher, Scheme, Seed, Shape, StandardFilter};
///
/// // Keys that strangers choose: without the seed nobody can make them collide.
/// let hasher = KeyHasher::secret(HashId::SipHash13, Seed::from_secret(b"only for us"));
/// let mut small = StandardFilter::new(Scheme::new(Shape::new(1 << 12, 4)?, hasher))?;
/// let mut large = StandardFilter::new(Scheme::new(Shape::new(1 << 16, 7)?, hasher))?;
///
/// // Hashed once, and cut to what each filter uses of it.
/// let hash = hasher.hash(b"apple");
/// small.insert_digest(small.scheme().digest_of(hash));
/// large.insert_digest(large.scheme().digest_of(hash));
/// assert!(small.contains("apple") && large.contains("apple"));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[derive(Clone, Copy)]
pub struct KeyHasher {
    id: HashId,
    fingerprint: SeedFingerprint,
    seed: SeedKnowledge,
}

impl KeyHasher {
    /// A hasher whose seed may be stored beside the filter.
    #[must_use]
    pub fn new(id: HashId, seed: Seed) -> Self {
        Self { id, fingerprint: seed.fingerprint(), seed: SeedKnowledge::Public(seed) }
    }

    /// A hasher whose seed is never stored: headers carry its fingerprint only.
    #[must_use]
    pub fn secret(id: HashId, seed: Seed) -> Self {
        Self { id, fingerprint: seed.fingerprint(), seed: SeedKnowledge::Secret(seed) }
    }

    /// A hasher of which only the fingerprint is known; it cannot hash until unlocked.
    pub(crate) const fn locked(id: HashId, fingerprint: SeedFingerprint) -> Self {
        Self { id, fingerprint, seed: SeedKnowledge::Locked }
    }

    /// Gives a locked hasher its seed.
    ///
    /// # Errors
    /// If `seed` is not the one whose fingerprint this hasher has; nothing changes.
    pub fn unlock(&mut self, seed: Seed) -> Result<(), WrongSeed> {
        let given = seed.fingerprint();
        if given != self.fingerprint {
            return Err(WrongSeed { expected: self.fingerprint, given });
        }
        if self.seed == SeedKnowledge::Locked {
            self.seed = SeedKnowledge::Secret(seed);
        }
        Ok(())
    }

    /// This hasher, its seed kept secret from now on. This cannot be undone: a seed that was secret
    /// once is never stored.
    pub(crate) const fn kept_secret(self) -> Self {
        let seed = match self.seed {
            SeedKnowledge::Public(seed) => SeedKnowledge::Secret(seed),
            unchanged => unchanged,
        };
        Self { seed, ..self }
    }

    /// Which hash function this is.
    #[must_use]
    pub const fn id(&self) -> HashId {
        self.id
    }

    /// Names the seed without giving it away.
    #[must_use]
    pub const fn fingerprint(&self) -> SeedFingerprint {
        self.fingerprint
    }

    /// Whether the seed is unknown here, so that keys cannot be hashed.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.seed == SeedKnowledge::Locked
    }

    /// Whether files hold only a fingerprint of the seed: it is secret, or not known here.
    #[must_use]
    pub const fn is_secret(&self) -> bool {
        !matches!(self.seed, SeedKnowledge::Public(_))
    }

    /// The seed, if it may be stored.
    pub(crate) const fn public_seed(&self) -> Option<Seed> {
        match self.seed {
            SeedKnowledge::Public(seed) => Some(seed),
            _ => None,
        }
    }

    /// Hashes a key.
    ///
    /// # Panics
    /// If the hasher is locked: it came from a header that holds only the fingerprint of
    /// its seed, and the caller asked the decoder to accept that.
    #[must_use]
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        let (SeedKnowledge::Public(seed) | SeedKnowledge::Secret(seed)) = self.seed else {
            panic!("a locked filter cannot hash keys: unlock it with its seed first");
        };
        KeyHash(match self.id {
            HashId::Xxh3 => xxh3_64_with_seed(key, fold(&seed)),
            HashId::SipHash13 => SipHasher13::new_with_key(&seed.0).hash(key),
        })
    }
}

impl Default for KeyHasher {
    /// XXH3 with the zero seed: the default of filter files.
    fn default() -> Self {
        Self::new(HashId::default(), Seed::default())
    }
}

impl PartialEq for KeyHasher {
    /// Hashers are equal if they hash keys in the same way, whether or not they know the seed.
    fn eq(&self, other: &Self) -> bool {
        (self.id, self.fingerprint) == (other.id, other.fingerprint)
    }
}

impl Eq for KeyHasher {}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHasher({}, {})", self.id, self.fingerprint)
    }
}

/// XXH3 takes a seed of 64 bits: combine both halves of ours. A seed made from a number stays that
/// number.
#[inline]
fn fold(seed: &Seed) -> u64 {
    let whole = u128::from_le_bytes(seed.0);
    (whole as u64) ^ ((whole >> 64) as u64).rotate_left(32)
}

/// The seed that was offered is not the one the filter was made with. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the filter was made with the seed {expected}, the one given is {given}")]
pub struct WrongSeed {
    /// What the filter needs.
    pub expected: SeedFingerprint,
    /// What was offered.
    pub given: SeedFingerprint,
}

/// A key's one hash. Every filter and bank of the same hash and seed understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(u64);

impl KeyHash {
    /// A hash made elsewhere: all 64 bits must be well mixed.
    #[must_use]
    pub const fn from_raw(hash: u64) -> Self {
        Self(hash)
    }

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The part of the hash that a filter of this digest length uses: its top bits.
    #[must_use]
    #[inline]
    pub const fn digest(self, bits: DigestBits) -> Digest {
        Digest(self.0 >> (64 - bits.get()))
    }
}

/// A key's hash, truncated to a shape's `digest_bits`: everything that a filter uses of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u64);

impl Digest {
    /// A digest received from elsewhere, or `None` if it is longer than `bits`.
    #[must_use]
    pub const fn from_raw(digest: u64, bits: DigestBits) -> Option<Self> {
        if bits.get() < 64 && digest >> bits.get() != 0 { None } else { Some(Self(digest)) }
    }

    /// The plain number, right-aligned.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The `k` positions of this digest in a filter of this shape.
    #[must_use]
    #[inline]
    pub const fn positions(self, shape: &Shape) -> Positions {
        let walk = Walk::new(self, shape);
        Positions { walk, left: shape.hashes() }
    }
}

/// The walk of one digest through a filter: position after position, without end.
///
/// With a constant step, an absent key is claimed outright as soon as its start and its step
/// come close to a member's: once in `m²/n` keys, which breaks small rates of short filters
/// (six times the promise at 25 keys and 10^-4). A step that changes makes that `m³/n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    at: u64,
    step: u64,
    bend: u64,
    bits: u64,
}

impl Walk {
    /// A placeholder to initialise arrays.
    pub(crate) const IDLE: Self = Self { at: 0, step: 1, bend: 0, bits: 1 };

    #[inline(always)]
    pub(crate) const fn new(digest: Digest, shape: &Shape) -> Self {
        let at = digest.0 << (64 - shape.digest_bits().get());
        let product = at as u128 * GOLDEN as u128;
        let step = (product as u64 ^ (product >> 64) as u64) | 1;
        // Two nearby steps have the same high bits. The bend swaps the halves of the step, so its
        // high bits differ anyway.
        Self { at, step, bend: step.rotate_left(32), bits: shape.bits() }
    }

    #[inline(always)]
    pub(crate) const fn next(&mut self) -> u64 {
        let position = ((self.at as u128 * self.bits as u128) >> 64) as u64;
        self.at = self.at.wrapping_add(self.step);
        self.step = self.step.wrapping_add(self.bend);
        position
    }
}

/// Iterator over the positions of a digest.
#[derive(Debug, Clone)]
pub struct Positions {
    walk: Walk,
    left: u32,
}

impl Positions {
    /// No positions; a placeholder to initialise arrays.
    pub(crate) const NONE: Self = Self { walk: Walk::IDLE, left: 0 };
}

impl Iterator for Positions {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        Some(self.walk.next())
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Positions {}

/// 2^64 divided by the golden ratio, made odd: spreads consecutive digests apart.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(hasher: &KeyHasher, key: &str, shape: &Shape) -> Vec<u64> {
        hasher.hash(key.as_bytes()).digest(shape.digest_bits()).positions(shape).collect()
    }

    #[test]
    fn positions_stay_below_the_length_for_any_length() {
        for bits in [1, 2, 63, 64, 65, 1000, (1 << 32) + 7, 1 << 40] {
            let shape = Shape::new(bits, 64).unwrap();
            for digest in [0, 1, u64::MAX, u64::MAX / 3] {
                assert!(Digest(digest).positions(&shape).all(|position| position < bits));
            }
        }
    }

    #[test]
    fn a_digest_alone_gives_the_positions_of_its_key() {
        let shape = Shape::new(9593, 7).unwrap().with_digest_bits(DigestBits::new(31).unwrap());
        let hash = KeyHasher::default().hash(b"key");
        let received = Digest::from_raw(hash.get() >> 33, shape.digest_bits()).unwrap();
        assert!(received.positions(&shape).eq(hash.digest(shape.digest_bits()).positions(&shape)));
        assert_eq!(Digest::from_raw(1 << 31, shape.digest_bits()), None);
    }

    #[test]
    fn hash_seed_and_key_all_matter() {
        let shape = Shape::new(1 << 20, 7).unwrap();
        let plain = positions(&KeyHasher::default(), "a", &shape);
        let seeded = KeyHasher::new(HashId::Xxh3, Seed::from_number(1));
        let sip = KeyHasher::new(HashId::SipHash13, Seed::default());
        assert_ne!(plain, positions(&KeyHasher::default(), "b", &shape));
        assert_ne!(plain, positions(&seeded, "a", &shape));
        assert_ne!(plain, positions(&sip, "a", &shape));
    }

    #[test]
    fn hashes_have_one_name_and_one_number_each() {
        for id in [HashId::Xxh3, HashId::SipHash13] {
            assert_eq!(HashId::from_code(id.code()), Some(id));
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(HashId::from_code(0), None);
        let unknown = "md5".parse::<HashId>().unwrap_err();
        assert_eq!(unknown.to_string(), "unknown hash 'md5': use xxh3 or siphash-1-3");
    }

    #[test]
    fn a_wrong_seed_does_not_unlock() {
        let secret = Seed::from_secret(b"correct horse");
        let mut locked = KeyHasher::locked(HashId::SipHash13, secret.fingerprint());
        assert!(locked.unlock(Seed::from_secret(b"battery staple")).is_err());
        assert!(locked.is_locked());
        locked.unlock(secret).unwrap();
        assert_eq!(locked.hash(b"k"), KeyHasher::secret(HashId::SipHash13, secret).hash(b"k"));
        assert!(locked.public_seed().is_none() && locked.is_secret());
        assert!(!KeyHasher::default().is_secret());
    }

    #[test]
    fn debug_never_shows_a_seed() {
        let hasher = KeyHasher::secret(HashId::SipHash13, Seed::new(*b"0123456789abcdef"));
        let shown = format!("{hasher:?} {:?}", Seed::new(*b"0123456789abcdef"));
        assert!(!shown.contains("0123456789abcdef") && !shown.contains("48, 49"));
    }
}
