//! A standard filter in a file that can be memory-mapped and used in place. Nothing is decoded or
//! copied, so opening takes the same time for any length, and several processes share one copy.
//!
//! ```text
//!  0  …  a filter's header of kind 0x30, with its seed or the seed's fingerprint (see `frame`)
//!     …  varint keys added, varint ones
//!     4  crc32c of the bits
//!     …  zeros
//! 60  4  crc32c of all before
//! 64  …  the bits as 64-bit words, little-endian, position 0 in the lowest bit of the first
//! ```
//!
//! Always true: opening any bytes returns a filter or a [`DecodeError`]. Lookups never panic
//! because of damaged bits. Opening checks only the header; [`MappedFilter::verify`] reads
//! everything.

use std::fmt;
use std::io::{self, Write};

use super::DecodeError;
use super::bytes::{put_varint, seal};
use super::frame::{header_with_seed, open, read_scheme};
use crate::bits::BitVector;
use crate::filter::{Membership, StandardFilter, claims_in};
use crate::key_hash::{Digest, Seed, Walk, WrongSeed};
use crate::scheme::Scheme;

const KIND: u8 = 0x30;
const HEAD: usize = 64;

/// Writes a filter so that it can be mapped: a header of 64 bytes, then its plain bits.
///
/// # Errors
/// If writing fails.
pub fn write_mapped(filter: &StandardFilter, mut out: impl Write) -> io::Result<()> {
    let words = filter.bits().words();
    let checksum = in_pieces(words).fold(0, |sum, piece| crc32c::crc32c_append(sum, &piece));
    let mut head = header_with_seed(KIND, filter.scheme());
    put_varint(&mut head, filter.items());
    put_varint(&mut head, filter.bits().ones());
    head.extend_from_slice(&checksum.to_le_bytes());
    head.resize(HEAD - 4, 0);
    out.write_all(&seal(head))?;
    in_pieces(words).try_for_each(|piece| out.write_all(&piece))
}

/// The bytes of words, a page at a time.
fn in_pieces(words: &[u64]) -> impl Iterator<Item = Vec<u8>> + '_ {
    words.chunks(512).map(|piece| piece.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// A standard filter in borrowed bytes, such as a mapped file.
///
/// ```
/// use umbel::StandardFilter;
/// use umbel::codec::{MappedFilter, write_mapped};
///
/// let mut filter = StandardFilter::for_target(1000, 0.01)?;
/// filter.insert("apple");
/// let mut file = Vec::new();
/// write_mapped(&filter, &mut file)?;
///
/// // In a program: `let file = unsafe { memmap2::Mmap::map(&std::fs::File::open(path)?)? };`
/// # let aligned: Vec<u64> = file.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
/// # let file = bytemuck::cast_slice(&aligned);
/// let mapped = MappedFilter::new(&file)?;
/// assert!(mapped.contains("apple") && !mapped.contains("banana"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// While a file is mapped, nothing may shorten or overwrite it. To replace it, write a new file and
/// rename that.
#[derive(Clone, Copy)]
pub struct MappedFilter<'a> {
    scheme: Scheme,
    items: u64,
    ones: u64,
    checksum: u32,
    words: &'a [u64],
}

impl<'a> MappedFilter<'a> {
    /// Opens a filter in bytes that [`write_mapped`] wrote. Reads only the header.
    ///
    /// # Errors
    /// If the head is damaged, the length does not fit it, the bytes do not begin at a multiple of
    /// 8 (mapped files do), or this machine's numbers are not little-endian.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or(DecodeError::Truncated)?;
        let mut reader = open(head)?;
        if reader.byte()? != KIND {
            return Err(DecodeError::Malformed("not a filter that can be mapped: decode it"));
        }
        let (scheme, _) = read_scheme(&mut reader, true)?;
        let (items, ones) = (reader.varint()?, reader.varint()?);
        let checksum = u32::from_le_bytes(reader.array()?);
        if reader.take_all().iter().any(|byte| *byte != 0) {
            return Err(DecodeError::Malformed("bytes are left over in the head"));
        }
        let expected = scheme.shape().bits().div_ceil(64) * 8;
        match (rest.len() as u64).cmp(&expected) {
            std::cmp::Ordering::Less => return Err(DecodeError::Truncated),
            std::cmp::Ordering::Greater => {
                return Err(DecodeError::Malformed("bytes are left over at the end"));
            }
            std::cmp::Ordering::Equal => {}
        }
        if cfg!(target_endian = "big") {
            return Err(DecodeError::Malformed("mapped filters need a little-endian machine"));
        }
        let words = bytemuck::try_cast_slice(rest).map_err(|_| {
            DecodeError::Malformed("the bytes do not begin at a multiple of 8 in memory")
        })?;
        Ok(Self { scheme, items, ones, checksum, words })
    }

    /// Reads all bits and checks them against the checksum in the head.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn verify(&self) -> Result<(), DecodeError> {
        let found = crc32c::crc32c(bytemuck::cast_slice(self.words));
        if found != self.checksum {
            return Err(DecodeError::Checksum { stored: self.checksum, found });
        }
        let ones: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        let beyond = self.scheme.shape().bits() % 64;
        let is_clean = beyond == 0 || self.words.last().is_none_or(|last| last >> beyond == 0);
        if ones != self.ones || !is_clean {
            return Err(DecodeError::Malformed("the bits do not fit the head"));
        }
        Ok(())
    }

    /// Whether the filter claims a key.
    ///
    /// # Panics
    /// If the hasher is locked: [`Self::unlock`] it first.
    #[must_use]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_digest(self.scheme.digest(key.as_ref()))
    }

    /// Whether the filter claims a key, by its digest.
    #[must_use]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        let shape = self.scheme.shape();
        claims_in(self.words, Walk::new(digest, shape), shape.hashes())
    }

    /// How often keys were added, repeats included.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// Number of set bits.
    #[must_use]
    pub const fn ones(&self) -> u64 {
        self.ones
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

    /// A copy that can be changed. Reads everything, and checks it as [`Self::verify`] does.
    ///
    /// # Errors
    /// If the bits are damaged.
    pub fn to_standard(&self) -> Result<StandardFilter, DecodeError> {
        self.verify()?;
        let bits = BitVector::from_words(self.scheme.shape().length(), self.words.to_vec());
        Ok(StandardFilter::from_parts(self.scheme, bits, self.items))
    }
}

impl Membership for MappedFilter<'_> {
    fn may_contain(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl fmt::Debug for MappedFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedFilter({:?}, {} items)", self.scheme, self.items)
    }
}
