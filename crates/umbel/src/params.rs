//! The numbers that shape a filter, as types that cannot be mixed up.
//!
//! Everything else in the crate takes these types and trusts them: a [`Rate`] lies
//! strictly between 0 and 1, [`Bits`] is never zero, [`Hashes`] lies between 1 and
//! [`Hashes::MAX`]. Checked once, here, at the edge.
//!
//! A [`Shape`] is what two filters must share before their bits mean the same: `m`
//! bits, `k` hashes, and how many bits of a key's hash take part (`digest_bits`).
//! The hash and its seed are the other half of that agreement: see `key_hash`.
//!
//! Not here: which shape suits which target (`design`).

use std::fmt;

/// Length of a filter in bits (the papers' `m`): 1 to 2^40.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(u64);

impl Bits {
    /// The longest filter: 2^40 bits, 128 GiB.
    pub const MAX: u64 = 1 << 40;

    /// # Errors
    /// If `bits` is zero or above [`Bits::MAX`].
    pub const fn new(bits: u64) -> Result<Self, ParamError> {
        match bits {
            1..=Self::MAX => Ok(Self(bits)),
            _ => Err(ParamError::Bits(bits)),
        }
    }

    /// The plain number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Positions per key (the papers' `k`): 1 to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hashes(u8);

impl Hashes {
    /// More than any rate down to 10^-15 needs.
    pub const MAX: u32 = 64;

    /// # Errors
    /// If `hashes` is zero or above [`Hashes::MAX`].
    pub const fn new(hashes: u32) -> Result<Self, ParamError> {
        match hashes {
            1..=Self::MAX => Ok(Self(hashes as u8)),
            _ => Err(ParamError::Hashes(hashes)),
        }
    }

    /// The plain number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0 as u32
    }
}

/// How many bits of a key's hash a filter uses (the formulas' `b`): 1 to 64.
///
/// All positions are computed from these bits, so a host that receives them can set the key's bits
/// itself. Fewer bits make shorter messages and more collisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DigestBits(u8);

impl DigestBits {
    /// The whole hash.
    pub const FULL: Self = Self(64);

    /// # Errors
    /// If `digest_bits` is zero or above 64.
    pub const fn new(digest_bits: u32) -> Result<Self, ParamError> {
        match digest_bits {
            1..=64 => Ok(Self(digest_bits as u8)),
            _ => Err(ParamError::DigestBits(digest_bits)),
        }
    }

    /// The digest length at which collisions of digests raise the false positive
    /// rate of a filter planned for `items` keys at `rate` by a factor below 1.02,
    /// even when it comes to hold sixteen times as many: `ceil(log2(16·items/ε)) + 6`.
    #[must_use]
    pub fn for_target(items: u64, rate: Rate) -> Self {
        let wanted = (16.0 * items.max(1) as f64 / rate.get()).log2().ceil() + 6.0;
        Self(wanted.clamp(1.0, 64.0) as u8)
    }

    /// The plain number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0 as u32
    }
}

/// A probability strictly between 0 and 1: a false positive rate, a target.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// # Errors
    /// If `rate` is not strictly between 0 and 1 (NaN included).
    pub fn new(rate: f64) -> Result<Self, ParamError> {
        if rate > 0.0 && rate < 1.0 { Ok(Self(rate)) } else { Err(ParamError::Rate(rate)) }
    }

    /// The plain number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What two filters must share before their bits mean the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    bits: Bits,
    hashes: Hashes,
    digest_bits: DigestBits,
}

impl Shape {
    /// A shape of `bits` bits and `hashes` positions per key, using the whole hash.
    ///
    /// # Errors
    /// If either number is outside its range.
    pub const fn new(bits: u64, hashes: u32) -> Result<Self, ParamError> {
        match (Bits::new(bits), Hashes::new(hashes)) {
            (Ok(bits), Ok(hashes)) => Ok(Self { bits, hashes, digest_bits: DigestBits::FULL }),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// The same shape using only `digest_bits` bits of a key's hash.
    #[must_use]
    pub const fn with_digest_bits(self, digest_bits: DigestBits) -> Self {
        Self { digest_bits, ..self }
    }

    /// Length in bits (`m`).
    #[must_use]
    #[inline]
    pub const fn bits(&self) -> u64 {
        self.bits.get()
    }

    /// Length in bits, as a number that is known to be in range.
    pub(crate) const fn length(&self) -> Bits {
        self.bits
    }

    /// Positions per key (`k`).
    #[must_use]
    #[inline]
    pub const fn hashes(&self) -> u32 {
        self.hashes.get()
    }

    /// Bits of a key's hash that take part (`b`).
    #[must_use]
    #[inline]
    pub const fn digest_bits(&self) -> DigestBits {
        self.digest_bits
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape(m={}, k={}, b={})", self.bits(), self.hashes(), self.digest_bits.get())
    }
}

/// A number outside its range. Nothing was built.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// Filter length of zero, or longer than supported.
    #[error("a filter has 1 to 2^40 bits, not {0}")]
    Bits(u64),
    /// No positions per key, or more than supported.
    #[error("a filter has 1 to 64 hashes, not {0}")]
    Hashes(u32),
    /// Digest length outside 1 to 64.
    #[error("a digest has 1 to 64 bits, not {0}")]
    DigestBits(u32),
    /// A probability that is not between 0 and 1.
    #[error("a rate lies strictly between 0 and 1, not {0}")]
    Rate(f64),
    /// A filter planned for no keys at all.
    #[error("a filter is planned for at least one key, not {0}")]
    Items(u64),
    /// The step of a set of chains is too short to keep its promise.
    #[error("a step of {given} keys is too short for the promise: it must be at least {min}")]
    Step {
        /// What was given.
        given: u32,
        /// The shortest step that can keep the promise.
        min: u32,
    },
    /// No components allowed, or more than a dynamic filter can hold.
    #[error("a dynamic filter is planned for 1 to 65536 components, not {0}")]
    Components(u64),
    /// A shape that no blocked filter has.
    #[error(
        "a blocked filter has 8 hashes and a multiple of 256 bits, not {hashes} hashes and {bits} bits"
    )]
    Blocks {
        /// Its length.
        bits: u64,
        /// Its positions per key.
        hashes: u32,
    },
    /// The system has no memory for the filter.
    #[error("no memory for a filter of {0} bits")]
    Memory(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_range_are_refused() {
        assert_eq!(Bits::new(0), Err(ParamError::Bits(0)));
        assert!(Bits::new(Bits::MAX).is_ok());
        assert!(Bits::new(Bits::MAX + 1).is_err());
        assert!(Hashes::new(0).is_err());
        assert!(Hashes::new(64).is_ok());
        assert!(Hashes::new(65).is_err());
        assert!(DigestBits::new(0).is_err());
        assert!(DigestBits::new(65).is_err());
        for bad in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            assert!(Rate::new(bad).is_err(), "{bad}");
        }
        assert!(Shape::new(0, 7).is_err());
        assert!(Shape::new(64, 0).is_err());
    }

    #[test]
    fn digest_length_follows_the_formula() {
        let rate = Rate::new(0.01).unwrap();
        // ceil(log2(16·10^6/0.01)) + 6 = ceil(30.58) + 6.
        assert_eq!(DigestBits::for_target(1_000_000, rate).get(), 37);
        let rate = Rate::new(0.001).unwrap();
        assert_eq!(DigestBits::for_target(1_000_000, rate).get(), 40);
        let rate = Rate::new(1e-15).unwrap();
        assert_eq!(DigestBits::for_target(1 << 40, rate).get(), 64);
    }
}
