//! The frame around a body: format version, kind, scheme, and a checksum.
//!
//! ```text
//!  0  4  "UMBL"
//!  4  1  format version, 1
//!  5  1  kind: 1 standard, 2 counting, 3 dynamic, 4 dynamic of plain components, 5 blocked;
//!        +0x10: a delta of that kind
//!  6  1  flags: bit 0, the seed is public; else it is secret
//!  7  1  hash: 1 xxh3, 2 SipHash-1-3
//!  8  1  digest bits
//!  9  1  hashes
//! 10  …  varint bits
//!     16 filters with a public seed: the seed
//!      8 filters with a secret seed, and deltas: its fingerprint
//!     16 deltas: checksum of the base, checksum of the result
//!     …  body
//!     4  crc32c of all before
//! ```

use super::any::Kind;
use super::body::Encodable;
use super::bytes::{Reader, put_varint, seal, unseal};
use super::{AnyFilter, DecodeError};
use crate::key_hash::{Digest, HashId, KeyHasher, Seed, SeedFingerprint};
use crate::params::{DigestBits, Shape};
use crate::scheme::{Mismatch, Scheme};

const MAGIC: [u8; 4] = *b"UMBL";
const VERSION: u8 = 1;
const SEED_IS_PUBLIC: u8 = 1;

/// The bytes of a filter, as a file or message holds them.
///
/// # Panics
/// If there is no memory for the levels of a counting filter, each of which is as long as its plain
/// bits.
#[must_use]
pub fn encode<F: Encodable>(filter: &F) -> Vec<u8> {
    let mut out = header_with_seed(F::KIND.code(), filter.own_scheme());
    filter.write(None, &[], &mut out);
    seal(out)
}

/// The bytes that turn `base` into `new`. `added` are the digests of all keys added since the base,
/// if they are known: they make small deltas of standard filters shorter.
///
/// ```
/// use umbel::StandardFilter;
/// use umbel::codec::encode_delta;
///
/// let mut old = StandardFilter::for_target(100_000, 0.001)?;
/// old.insert_batch(&(0..100_000_u32).map(u32::to_le_bytes).collect::<Vec<_>>());
/// let mut new = old.clone();
/// let added: Vec<_> = (0..50).map(|n| old.scheme().digest(format!("new {n}").as_bytes())).collect();
/// new.insert_digests(&added);
///
/// let by_bits = encode_delta(&old, &new, &[])?;
/// let by_digests = encode_delta(&old, &new, &added)?;
/// assert!(by_digests.len() < by_bits.len() * 3 / 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the schemes differ.
pub fn encode_delta<F: Encodable>(
    base: &F,
    new: &F,
    added: &[Digest],
) -> Result<Vec<u8>, Mismatch> {
    base.own_scheme().check(new.own_scheme())?;
    let mut out = header(F::KIND.code() | Kind::Delta.code(), new.own_scheme());
    // A receiver that has the base has its seed.
    put_fingerprint(&mut out, new.own_scheme());
    out.extend_from_slice(&base.checksum().to_le_bytes());
    out.extend_from_slice(&new.checksum().to_le_bytes());
    new.write(Some(base), added, &mut out);
    Ok(seal(out))
}

/// Why no delta could be made from two filters. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The filters are of different kinds.
    #[error("the old filter is {0}, the new one is {1}")]
    Kinds(Kind, Kind),
    /// The filters have different schemes, so their bits cannot be compared.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

impl AnyFilter {
    /// The bytes that turn this filter into `new`; see [`encode_delta`].
    ///
    /// # Errors
    /// If the kinds or schemes differ.
    pub fn delta_to(&self, new: &Self, added: &[Digest]) -> Result<Vec<u8>, DeltaError> {
        Ok(match (self, new) {
            (Self::Standard(base), Self::Standard(new)) => encode_delta(base, new, added)?,
            (Self::Counting(base), Self::Counting(new)) => encode_delta(base, new, added)?,
            (Self::Dynamic(base), Self::Dynamic(new)) => encode_delta(base, new, added)?,
            (Self::PlainDynamic(base), Self::PlainDynamic(new)) => encode_delta(base, new, added)?,
            (Self::Blocked(base), Self::Blocked(new)) => encode_delta(base, new, added)?,
            _ => return Err(DeltaError::Kinds(self.kind(), new.kind())),
        })
    }
}

/// The header of a filter: with its seed, or with the seed's fingerprint if it is secret.
pub(super) fn header_with_seed(kind: u8, scheme: &Scheme) -> Vec<u8> {
    let mut out = header(kind, scheme);
    match scheme.hasher().public_seed() {
        Some(seed) => out.extend_from_slice(seed.bytes()),
        None => put_fingerprint(&mut out, scheme),
    }
    out
}

fn header(kind: u8, scheme: &Scheme) -> Vec<u8> {
    let (shape, hasher) = (scheme.shape(), scheme.hasher());
    let flags = if hasher.public_seed().is_some() { SEED_IS_PUBLIC } else { 0 };
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[VERSION, kind, flags, hasher.id().code()]);
    out.extend_from_slice(&[shape.digest_bits().get() as u8, shape.hashes() as u8]);
    put_varint(&mut out, shape.bits());
    out
}

fn put_fingerprint(out: &mut Vec<u8>, scheme: &Scheme) {
    out.extend_from_slice(&scheme.hasher().fingerprint().get().to_le_bytes());
}

/// The start of a frame that does not contain a filter.
pub(crate) fn begin(kind: u8) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[VERSION, kind]);
    out
}

/// Checks magic, version and checksum. The returned reader begins with the kind.
pub(crate) fn open(bytes: &[u8]) -> Result<Reader<'_>, DecodeError> {
    if !bytes.starts_with(&MAGIC) {
        let cut = !bytes.is_empty() && MAGIC.starts_with(bytes);
        return Err(if cut { DecodeError::Truncated } else { DecodeError::NotUmbel });
    }
    match bytes.get(4) {
        None => return Err(DecodeError::Truncated),
        Some(&VERSION) => {}
        Some(version) => return Err(DecodeError::Version(*version)),
    }
    Ok(Reader::new(unseal(bytes)?.get(5..).ok_or(DecodeError::Truncated)?))
}

/// What a delta contains about its base and its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// The checksum of the base.
    pub(super) base: u64,
    /// The checksum of the result.
    pub(super) result: u64,
    /// Whether the result may be stored with its seed.
    pub(super) seed_is_public: bool,
}

/// The base and the result of a delta: everything that can be read without the base.
///
/// ```
/// use umbel::StandardFilter;
/// use umbel::codec::{AnyFilter, DeltaHeader, encode_delta};
///
/// let old = StandardFilter::for_target(1000, 0.01)?;
/// let mut new = old.clone();
/// new.insert("apple");
/// let header = DeltaHeader::read(&encode_delta(&old, &new, &[])?)?;
/// assert_eq!(header.base, AnyFilter::from(old).checksum());
/// assert_eq!(header.result, AnyFilter::from(new).checksum());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DeltaHeader {
    /// The kind of both filters.
    pub kind: Kind,
    /// The shape and the hasher of both; the hasher is locked, since a delta holds no seed.
    pub scheme: Scheme,
    /// The checksum of the filter that it was made against.
    pub base: u64,
    /// The checksum of the filter that it leads to.
    pub result: u64,
}

impl DeltaHeader {
    /// Reads the header of a delta. The body is not checked, except by the checksum of the frame.
    ///
    /// # Errors
    /// If the bytes are damaged or not a delta.
    pub fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Frame { kind, delta, scheme, .. } = Frame::open(bytes)?;
        match delta {
            Some(Ends { base, result, .. }) => Ok(Self { kind, scheme, base, result }),
            None => Err(DecodeError::Kind { expected: Kind::Delta, found: kind }),
        }
    }
}

/// A complete frame: its checksum is right and its header is valid.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    /// Base and result, if it is a delta.
    pub(super) delta: Option<Ends>,
    pub(super) scheme: Scheme,
    pub(super) body: Reader<'a>,
}

impl<'a> Frame<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(open(bytes)?)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let kind = reader.byte()?;
        let is_delta = kind & Kind::Delta.code() != 0;
        let kind = Kind::from_code(kind & !Kind::Delta.code())
            .ok_or(DecodeError::Malformed("unknown kind of filter"))?;
        let (scheme, seed_is_public) = read_scheme(&mut reader, !is_delta)?;
        let delta = if is_delta {
            Some(Ends { base: reader.u64()?, result: reader.u64()?, seed_is_public })
        } else {
            None
        };
        Ok(Self { kind, delta, scheme, body: reader })
    }
}

/// Reads the scheme from a header, after the kind, and whether its seed is public. Only filters
/// contain a public seed; all other frames contain a fingerprint.
pub(super) fn read_scheme(
    reader: &mut Reader<'_>,
    is_filter: bool,
) -> Result<(Scheme, bool), DecodeError> {
    let [flags, hash, digest_bits, hashes] = reader.array()?;
    let hash = HashId::from_code(hash).ok_or(DecodeError::Malformed("unknown hash"))?;
    let shape = Shape::new(reader.varint()?, hashes.into())?
        .with_digest_bits(DigestBits::new(digest_bits.into())?);
    let seed_is_public = match flags {
        0 => false,
        SEED_IS_PUBLIC => true,
        _ => return Err(DecodeError::Malformed("unknown flags")),
    };
    let hasher = if seed_is_public && is_filter {
        KeyHasher::new(hash, Seed::new(reader.array()?))
    } else {
        KeyHasher::locked(hash, SeedFingerprint::from_raw(reader.u64()?))
    };
    Ok((Scheme::new(shape, hasher), seed_is_public))
}
