//! The wire and file format: every filter kind and every delta, in about as few bytes as
//! information theory allows.
//!
//! A frame is self-describing and checksummed: header (kind, shape, hash, seed or its
//! fingerprint), body, crc32c. `docs/wire.md` documents every byte.
//!
//! A snapshot is a delta against nothing, so there is one body format for both: ones of a
//! filter, or flips against a base, both as subsets of a universe (`subset`).
//!
//! Always true: decoding any bytes ends with a filter or a [`DecodeError`], never a panic;
//! it takes no more memory than the decoder's limit; and a target that a delta does not
//! fit is left as it was.
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
mod ranks;
mod refine;
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
pub(crate) use ranks::Among;
pub(crate) use refine::{decode_refinement, encode_refinement};

use crate::key_hash::{SeedFingerprint, WrongSeed};
use crate::params::{ParamError, Shape};
use crate::scheme::Mismatch;

/// Reads a change against `base`, as [`encode_change`] wrote it. Nothing is changed by it.
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

/// What a message about the numbers of a filter begins with: that this machine has no memory is no
/// fault of the bytes.
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
    /// The bytes are something else entirely.
    #[error("this is not an umbel file: it does not begin with UMBL")]
    NotUmbel,
    /// Written by a newer release: upgrade.
    #[error("this is format version {0}, and this program reads version 1")]
    Version(u8),
    /// The end is missing.
    #[error("the data is truncated")]
    Truncated,
    /// Damaged on disk or on the way.
    #[error(
        "the data is damaged or cut short: its checksum is {found:08x} and should be {stored:08x}"
    )]
    Checksum {
        /// The checksum that the data says it has.
        stored: u32,
        /// The checksum that it has.
        found: u32,
    },
    /// Well-formed outside, nonsense inside: the writer is broken or hostile.
    #[error("the data is malformed: {0}")]
    Malformed(&'static str),
    /// A filter where a delta was expected, or the other way round, or another kind.
    #[error("this is {found}, not {expected}")]
    Kind {
        /// What was asked for.
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
        /// What decoding would take.
        needed: u64,
        /// What the decoder was allowed.
        limit: u64,
    },
    /// The seed is secret, and the decoder was not given it.
    #[error("the filter was made with a secret seed ({0}): it is needed to use it")]
    Locked(SeedFingerprint),
    /// The seed that the decoder was given is another one.
    #[error(transparent)]
    WrongSeed(#[from] WrongSeed),
    /// A delta for a filter of another shape or seed.
    #[error("the delta is for another filter: {0}")]
    Mismatch(#[from] Mismatch),
    /// A delta against another state of the filter.
    #[error("the delta is against a base with checksum {base:016x}, this filter has {have:016x}")]
    WrongBase {
        /// What the delta was made against.
        base: u64,
        /// What it was to be applied to.
        have: u64,
    },
    /// The delta does not lead where it says it does.
    #[error("the delta leads to checksum {found:016x} and should lead to {stored:016x}")]
    WrongResult {
        /// Where the delta says it leads.
        stored: u64,
        /// Where it leads.
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
