//! Fields of the messages between hosts, for both the mesh and the overlay.
//!
//! ```text
//! name    = varint length, bytes
//! scheme  = hash, digest bits, hashes, varint bits, 8 bytes of the seed's fingerprint
//! numbers are varints, checksums 8 bytes; the first byte of a message is its version
//! ```
//!
//! Always true: the lengths of names and lists are checked before anything is allocated for them.

use super::{Epoch, Name};
use crate::codec::{DecodeError, Reader, put_varint, unseal};
use crate::key_hash::{HashId, KeyHasher, SeedFingerprint};
use crate::params::{DigestBits, Shape};
use crate::scheme::Scheme;

/// The version of the protocol that this host speaks.
pub(crate) const VERSION: u8 = 1;

/// A reader positioned after the version of a message, if checksum and version are right.
pub(crate) fn opened(bytes: &[u8]) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(unseal(bytes)?);
    match reader.byte()? {
        VERSION => Ok(reader),
        version => Err(DecodeError::Version(version)),
    }
}

pub(crate) fn put_name(out: &mut Vec<u8>, name: &Name) {
    put_varint(out, name.as_str().len() as u64);
    out.extend_from_slice(name.as_str().as_bytes());
}

pub(crate) fn name(reader: &mut Reader<'_>) -> Result<Name, DecodeError> {
    let length = bounded(reader, Name::LONGEST as u64)?;
    let text = std::str::from_utf8(reader.take(length)?).ok();
    text.and_then(Name::new).ok_or(DecodeError::Malformed("a name is no name"))
}

pub(crate) fn put_scheme(out: &mut Vec<u8>, scheme: &Scheme) {
    let (shape, hasher) = (scheme.shape(), scheme.hasher());
    out.push(hasher.id().code());
    out.push(shape.digest_bits().get() as u8);
    out.push(shape.hashes() as u8);
    put_varint(out, shape.bits());
    out.extend_from_slice(&hasher.fingerprint().get().to_le_bytes());
}

pub(crate) fn scheme(reader: &mut Reader<'_>) -> Result<Scheme, DecodeError> {
    let [hash, digest_bits, hashes] = reader.array()?;
    let hash = HashId::from_code(hash).ok_or(DecodeError::Malformed("unknown hash"))?;
    let shape = Shape::new(reader.varint()?, hashes.into())?
        .with_digest_bits(DigestBits::new(digest_bits.into())?);
    let fingerprint = SeedFingerprint::from_raw(reader.u64()?);
    Ok(Scheme::new(shape, KeyHasher::locked(hash, fingerprint)))
}

/// Reads an epoch. Rejects values so large that counting on could overflow.
pub(crate) fn epoch(reader: &mut Reader<'_>) -> Result<Epoch, DecodeError> {
    match reader.varint()? {
        epoch if epoch < 1 << 62 => Ok(Epoch(epoch)),
        _ => Err(DecodeError::Malformed("an epoch is out of range")),
    }
}

pub(crate) fn bounded(reader: &mut Reader<'_>, max: u64) -> Result<u64, DecodeError> {
    match reader.varint()? {
        count if count <= max => Ok(count),
        _ => Err(DecodeError::Malformed("a list or name is too long")),
    }
}
