//! The head and the trailer of a master or sorted file.
//!
//! ```text
//! 0                    head: magic, version, number, store, inputs; padded to 4 KiB
//! 4096                 pages, 4 KiB each, or a multiple for one long record
//! index_at             heads, 8 bytes a page: see `sorted::index`
//!                      first unit of each page and one past the last, 4 bytes each
//!                      end of each separator, 8 bytes a page; separators; zeros up to a
//!                      multiple of 64, so that a block of the filter is one cache line
//! filter_at            filter words, 8 bytes each
//! end - 128            trailer: where all that is, checksums, version
//! ```
//!
//! Head: `0 "UMBELMST" | 8 version u16 | 10 zero | 12 inputs u32 | 16 number u64 | 24 store
//! u64 | 32 inputs, u64 each | 4092 CRC-32C`. The inputs are the numbers of the files merged into
//! it; a stopped merge is resumed only if its inputs are the same.
//!
//! Always true of a decoded trailer: its sections lie one after the other, without gaps,
//! inside the file's length, and have the lengths that their counts imply.

use umbel::{DigestBits, Shape};

pub use crate::guard::FileFilter;

use super::page::UNIT;
use super::{Malformed, VERSION};
use crate::numbers::{u16_at, u32_at, u64_at};

/// Length of the trailer.
pub const TRAILER: usize = 128;
const MAGIC: &[u8; 8] = b"UMBELMST";
/// Maximum number of inputs in a head; more than any merge has.
pub(crate) const MAX_INPUTS: usize = (UNIT - 36) / 8;

/// The head of a master or sorted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The file's number.
    pub number: u64,
    /// The store it belongs to.
    pub store: u64,
    /// Numbers of the files that were merged into it.
    pub inputs: Vec<u64>,
}

impl Head {
    /// The head's bytes.
    ///
    /// # Panics
    /// If there are more inputs than fit, which no merge has.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.inputs.len() <= MAX_INPUTS, "a merge has few inputs");
        let mut bytes = vec![0; UNIT];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.inputs.len() as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.store.to_le_bytes());
        for (place, input) in bytes[32..].chunks_exact_mut(8).zip(&self.inputs) {
            place.copy_from_slice(&input.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[..UNIT - 4]);
        bytes[UNIT - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a head.
    ///
    /// # Errors
    /// If the bytes do not start with a valid head of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let Some(bytes) = bytes.get(..UNIT) else {
            return Err(Malformed::new(bytes.len(), "the head is cut short"));
        };
        check_start(bytes)?;
        if crc32c::crc32c(&bytes[..UNIT - 4]) != u32_at(bytes, UNIT - 4) {
            return Err(Malformed::new(UNIT - 4, "the head's checksum is wrong"));
        }
        let inputs = u32_at(bytes, 12) as usize;
        if inputs > MAX_INPUTS {
            return Err(Malformed::new(12, "the head names too many inputs"));
        }
        Ok(Self {
            number: u64_at(bytes, 16),
            store: u64_at(bytes, 24),
            inputs: bytes[32..].chunks_exact(8).take(inputs).map(|b| u64_at(b, 0)).collect(),
        })
    }
}

/// Where everything in a master or sorted file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// The file's number.
    pub number: u64,
    /// Records in all pages.
    pub records: u64,
    /// Of these, deletes: only sorted files have any.
    pub deletes: u64,
    /// By how much the records change the number of keys; in a master, the number of records.
    pub net: i64,
    /// Changes that went into the file: what paper 2 calls u. Zero in a master.
    pub updates: u64,
    /// Last sequence in the file.
    pub sequence: u64,
    /// Number of pages.
    pub pages: u32,
    /// Where the index starts: right after the pages.
    pub index_at: u64,
    /// Where the filter starts: right after the index.
    pub filter_at: u64,
    /// Checksum of the index.
    pub index_crc: u32,
    /// Checksum of the filter.
    pub filter_crc: u32,
    /// Which filter it is.
    pub filter: FileFilter,
}

impl Trailer {
    /// The trailer's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; TRAILER] {
        let mut bytes = [0; TRAILER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        let (hashes, digest_bits, length) = match self.filter {
            FileFilter::Standard(shape) => {
                (shape.hashes() as u8, shape.digest_bits().get() as u8, shape.bits())
            }
            FileFilter::Blocked(blocks) => (0, 0, blocks),
        };
        bytes[10] = hashes;
        bytes[11] = digest_bits;
        bytes[12..16].copy_from_slice(&self.pages.to_le_bytes());
        let numbers = [
            self.number,
            self.records,
            self.deletes,
            self.net as u64,
            self.updates,
            self.sequence,
            self.index_at,
            self.filter_at,
            length,
        ];
        for (place, number) in bytes[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[88..92].copy_from_slice(&self.index_crc.to_le_bytes());
        bytes[92..96].copy_from_slice(&self.filter_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..TRAILER - 4]);
        bytes[TRAILER - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the trailer at the end of a file and checks that the sections it names are
    /// there. Offsets in errors count from the start of the file.
    ///
    /// # Errors
    /// If the file does not end in a sound trailer of this version that fits its length.
    pub fn decode(file: &[u8]) -> Result<Self, Malformed> {
        let Some(at) = file.len().checked_sub(TRAILER) else {
            return Err(Malformed::new(file.len(), "the trailer is cut short"));
        };
        let bytes = &file[at..];
        check_start(bytes).map_err(|error| Malformed { offset: at + error.offset, ..error })?;
        if crc32c::crc32c(&bytes[..TRAILER - 4]) != u32_at(bytes, TRAILER - 4) {
            return Err(Malformed::new(file.len() - 4, "the trailer's checksum is wrong"));
        }
        let Some(filter) = decode_filter(bytes) else {
            return Err(Malformed::new(at + 80, "the filter's shape is impossible"));
        };
        let trailer = Self {
            number: u64_at(bytes, 16),
            records: u64_at(bytes, 24),
            deletes: u64_at(bytes, 32),
            net: u64_at(bytes, 40) as i64,
            updates: u64_at(bytes, 48),
            sequence: u64_at(bytes, 56),
            pages: u32_at(bytes, 12),
            index_at: u64_at(bytes, 64),
            filter_at: u64_at(bytes, 72),
            index_crc: u32_at(bytes, 88),
            filter_crc: u32_at(bytes, 92),
            filter,
        };
        trailer.check_sections(at)?;
        Ok(trailer)
    }

    /// The sections lie one after the other and end where the trailer starts.
    fn check_sections(&self, at: usize) -> Result<(), Malformed> {
        let fixed_index = u64::from(self.pages) * 20 + 4;
        let index_fits = self.index_at >= UNIT as u64
            && self.index_at.is_multiple_of(UNIT as u64)
            && self.filter_at.checked_sub(self.index_at).is_some_and(|len| len >= fixed_index);
        if !index_fits || self.filter_at.checked_add(self.filter.bytes()) != Some(at as u64) {
            return Err(Malformed::new(at, "the file's length is wrong"));
        }
        Ok(())
    }
}

/// Zero hashes mean a blocked filter; its length is then a number of blocks.
fn decode_filter(trailer: &[u8]) -> Option<FileFilter> {
    let length = u64_at(trailer, 80);
    if trailer[10] == 0 {
        return (1..=1 << 40).contains(&length).then_some(FileFilter::Blocked(length));
    }
    let shape = Shape::new(length, u32::from(trailer[10])).ok()?;
    let digest_bits = DigestBits::new(u32::from(trailer[11])).ok()?;
    Some(FileFilter::Standard(shape.with_digest_bits(digest_bits)))
}

fn check_start(bytes: &[u8]) -> Result<(), Malformed> {
    if &bytes[..8] != MAGIC {
        return Err(Malformed::new(0, "not a master or sorted file"));
    }
    match u16_at(bytes, 8) {
        VERSION => Ok(()),
        found => Err(Malformed::version(8, found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file() -> Vec<u8> {
        let shape = Shape::new(64, 7).unwrap();
        let mut bytes = vec![0; UNIT + 4 + 8];
        let trailer = Trailer {
            number: 1,
            records: 0,
            deletes: 0,
            net: 0,
            updates: 0,
            sequence: 5,
            pages: 0,
            index_at: UNIT as u64,
            filter_at: UNIT as u64 + 4,
            index_crc: 0,
            filter_crc: 0,
            filter: FileFilter::Standard(shape),
        };
        bytes.extend_from_slice(&trailer.encode());
        bytes
    }

    #[test]
    fn any_damage_to_the_trailer_or_another_length_is_noticed() {
        let bytes = file();
        assert_eq!(Trailer::decode(&bytes).unwrap().sequence, 5);
        for bit in (bytes.len() - TRAILER) * 8..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Trailer::decode(&damaged).is_err(), "bit {bit}");
        }
        assert!(Trailer::decode(&bytes[1..]).is_err());
        assert!(Trailer::decode(&bytes[..TRAILER - 1]).is_err());
    }

    #[test]
    fn a_head_says_what_was_merged() {
        let head = Head { number: 4, store: 9, inputs: vec![1, 2, 3] };
        assert_eq!(Head::decode(&head.encode()), Ok(head));
    }

    proptest! {
        #[test]
        fn junk_never_panics(junk in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Trailer::decode(&junk);
            let _ = Head::decode(&junk);
            let mut bytes = file();
            let at = bytes.len() - TRAILER + 10;
            let len = junk.len().min(TRAILER - 14);
            bytes[at..at + len].copy_from_slice(&junk[..len]);
            let end = bytes.len();
            let crc = crc32c::crc32c(&bytes[end - TRAILER..end - 4]);
            bytes[end - 4..].copy_from_slice(&crc.to_le_bytes());
            let _ = Trailer::decode(&bytes);
        }
    }
}
