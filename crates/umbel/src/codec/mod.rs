//! The wire and file format: every filter kind and every delta, in about as few bytes as
//! information theory allows.
//!
//! A frame is self-describing and checksummed: header (kind, shape, hash, seed or its
//! fingerprint), body, crc32c. `docs/wire.md` documents every byte.
//!
//! A snapshot is a delta against nothing, so there is one body format for both: ones of a
//! filter, or flips against a base, both as subsets of a universe (`subset`).
//!
//! Always true: decoding any bytes returns a filter or a [`DecodeError`], and never panics. It
//! takes no more memory than the decoder's limit. A delta that does not fit a filter leaves the
//! filter unchanged.
//!
//! ```
//! use umbel::codec::{AnyFilter, Decoder};
//! use umbel::StandardFilter;
//!
//! let mut old = StandardFilter::for_target(1000, 0.01)?;
//! old.insert("apple");
//! let mut new = old.clone();
//! new.insert("banana");
//!
//! let snapshot = umbel::codec::encode(&old);
//! let delta = umbel::codec::encode_delta(&old, &new, &[])?;
//!
//! let received = Decoder::new().filter(&snapshot)?;
//! let updated = Decoder::new().apply(&received, &delta)?;
//! assert_eq!(updated, AnyFilter::from(new));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ans;
mod any;
mod body;
mod bytes;
mod change;
mod decoder;
pub(crate) mod frame;
mod low_bits;
mod mapped;
mod ranks;
mod refine;
#[cfg(feature = "serde")]
mod serde;
pub(crate) mod subset;

pub use any::{AnyFilter, Kind};
pub use body::Encodable;
pub(crate) use bytes::{Reader, put_varint, seal, unseal};
pub use change::{Flips, encode_change};
pub(crate) use change::{
    decode_differing, decode_digests, decode_positions, encode_differing, encode_digests,
};
pub use decoder::Decoder;
pub use frame::{DeltaError, DeltaHeader, encode, encode_delta};
pub use mapped::{MappedFilter, write_mapped};
pub(crate) use ranks::Among;
pub(crate) use refine::{decode_refinement, encode_refinement};

use crate::key_hash::{SeedFingerprint, WrongSeed};
use crate::params::{ParamError, Shape};
use crate::scheme::Mismatch;

/// Reads a change of `base` that [`encode_change`] wrote, without applying it.
///
/// Takes as much memory as `base`, and eight bytes for each flip.
///
/// # Errors
/// If `bytes` are not exactly one change of a vector like `base`.
///
/// # Panics
/// If the length of `base` differs from the shape's.
pub fn decode_change(
    bytes: &[u8],
    shape: &Shape,
    base: &crate::bits::BitVector,
) -> Result<Flips, DecodeError> {
    assert_eq!(base.len(), shape.bits(), "the base has the length of its shape");
    let mut reader = bytes::Reader::new(bytes);
    let mut new = base.clone();
    change::decode_change(&mut reader, shape, base, &mut new)?;
    reader.end()?;
    Ok(Flips::between(base, &new))
}

/// The prefix of an error message about the numbers of a filter. If there is no memory, the bytes
/// are not at fault.
const fn blame(error: &ParamError) -> &'static str {
    match error {
        ParamError::Memory(_) => "",
        _ => "the data is malformed: ",
    }
}

/// Why bytes were not decoded. Nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not in this format.
    #[error("this is not an umbel file: it does not begin with UMBL")]
    NotUmbel,
    /// Written by a newer release: upgrade to read it.
    #[error("this is format version {0}, and this program reads version 1")]
    Version(u8),
    /// The end is missing.
    #[error("the data is truncated")]
    Truncated,
    /// Damaged on disk or in transit.
    #[error(
        "the data is damaged or cut short: its checksum is {found:08x} and should be {stored:08x}"
    )]
    Checksum {
        /// The checksum stored in the data.
        stored: u32,
        /// The checksum computed from the data.
        found: u32,
    },
    /// The checksum is right but the contents are invalid: the writer is broken or hostile.
    #[error("the data is malformed: {0}")]
    Malformed(&'static str),
    /// A filter where a delta was expected, or the reverse, or another kind of filter.
    #[error("this is {found}, not {expected}")]
    Kind {
        /// What was expected.
        expected: Kind,
        /// What the header says.
        found: Kind,
    },
    /// A shape outside its range, or no memory for the filter.
    #[error("{blame}{0}", blame = blame(.0))]
    Param(#[from] ParamError),
    /// Larger than the decoder accepts.
    #[error("the filter takes {needed} bytes of memory, and the limit is {limit}")]
    TooLarge {
        /// The memory that decoding would take.
        needed: u64,
        /// The limit of the decoder.
        limit: u64,
    },
    /// The seed is secret, and the decoder was not given it.
    #[error("the filter was made with a secret seed ({0}): it is needed to use it")]
    Locked(SeedFingerprint),
    /// The decoder was given another seed.
    #[error(transparent)]
    WrongSeed(#[from] WrongSeed),
    /// A delta for a filter of another shape or seed.
    #[error("the delta is for another filter: {0}")]
    Mismatch(#[from] Mismatch),
    /// A delta against another state of the filter.
    #[error("the delta is against a base with checksum {base:016x}, this filter has {have:016x}")]
    WrongBase {
        /// The checksum of the base that the delta was made for.
        base: u64,
        /// The checksum of the filter that it was applied to.
        have: u64,
    },
    /// The result of the delta does not have the stored checksum.
    #[error("the delta leads to checksum {found:016x} and should lead to {stored:016x}")]
    WrongResult {
        /// The checksum stored in the delta.
        stored: u64,
        /// The checksum of the result.
        found: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_blamed_for_their_own_faults_only() {
        let message = |error: ParamError| DecodeError::from(error).to_string();
        assert_eq!(message(ParamError::Memory(64)), "no memory for a filter of 64 bits");
        assert!(message(ParamError::Bits(0)).starts_with("the data is malformed: "));
    }
}
