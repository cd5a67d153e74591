//! One record of a differential file: an insert, a change or a delete.
//!
//! ```text
//! header, once a file           record, one after another
//!  0  8  "UMBELDIF"              0  4  CRC-32C of the rest, seeded with the salt
//!  8  2  format version          4  2  key length
//! 10  6  zero                    6  4  value length
//! 16  8  file number            10  1  operation and flags
//! 24  8  least first sequence   11  8  sequence
//! 32  4  salt                   19     key, value
//! 36  4  CRC-32C of 0..36
//! ```
//!
//! Flag [`MORE`]: the batch continues with the next record; an incomplete batch is ignored.
//! Flag [`SYNCED`]: everything before this record was durable when it was written. If such a record
//! is good, a bad one before it is damage. Otherwise bad bytes at the end are what a crash may
//! leave of a group that was never acknowledged.
//!
//! The salt is secret, so nobody can craft a value whose bytes look like a valid record.

use super::{Malformed, VERSION};
use crate::numbers::{u16_at, u32_at, u64_at};
use crate::{MAX_KEY, MAX_VALUE};

/// Length of the header of a differential file.
pub const HEADER: usize = 40;
/// Length of a record without key and value.
pub const RECORD: usize = 19;
/// Flag: the batch continues with the next record.
pub const MORE: u8 = 0x40;
/// Flag: everything before this record was durable when it was written.
pub const SYNCED: u8 = 0x80;

const MAGIC: &[u8; 8] = b"UMBELDIF";

/// What a record does to its key: the three kinds of update of paper 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The key was absent before.
    Insert = 1,
    /// The key existed, with another value or the same.
    Change = 2,
    /// The key existed and is removed.
    Delete = 3,
    /// No key: the store was cleanly closed. Everything before this record was durable.
    Closed = 4,
}

impl Kind {
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Insert),
            2 => Some(Self::Change),
            3 => Some(Self::Delete),
            4 => Some(Self::Closed),
            _ => None,
        }
    }

    /// By how much it changes the number of records.
    pub(crate) const fn net(self) -> i64 {
        match self {
            Self::Insert => 1,
            Self::Change | Self::Closed => 0,
            Self::Delete => -1,
        }
    }
}

/// The header of a differential file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The file's number, which is also in its name.
    pub number: u64,
    /// Next sequence when the file was created; the sequence of its first record is at least this.
    pub first_sequence: u64,
    /// What the records' checksums are seeded with.
    pub salt: u32,
}

impl Header {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.salt.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// If the bytes are not a header of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let Some(bytes) = bytes.get(..HEADER) else {
            return Err(Malformed::new(bytes.len(), "the header is cut short"));
        };
        if &bytes[..8] != MAGIC {
            return Err(Malformed::new(0, "not a differential file"));
        }
        if u16_at(bytes, 8) != VERSION {
            return Err(Malformed::version(8, u16_at(bytes, 8)));
        }
        if crc32c::crc32c(&bytes[..36]) != u32_at(bytes, 36) {
            return Err(Malformed::new(36, "the header's checksum is wrong"));
        }
        Ok(Self {
            number: u64_at(bytes, 16),
            first_sequence: u64_at(bytes, 24),
            salt: u32_at(bytes, 32),
        })
    }
}

/// One record, borrowed from the bytes it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it does.
    pub kind: Kind,
    /// Whether the batch continues with the next record.
    pub more: bool,
    /// Whether everything before it was durable when it was written.
    pub synced: bool,
    /// Its place among all changes of the store.
    pub sequence: u64,
    /// The key.
    pub key: &'a [u8],
    /// The value; empty for a delete.
    pub value: &'a [u8],
}

impl<'a> Record<'a> {
    /// Bytes of the record in the file.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        RECORD + self.key.len() + self.value.len()
    }

    /// Appends the record's bytes.
    pub fn encode(&self, salt: u32, out: &mut Vec<u8>) {
        debug_assert!(self.key.len() <= MAX_KEY);
        debug_assert!(self.value.len() <= MAX_VALUE);
        let start = out.len();
        let mut fixed = [0; RECORD];
        fixed[4..6].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        fixed[6..10].copy_from_slice(&(self.value.len() as u32).to_le_bytes());
        fixed[10] = self.kind as u8
            | if self.more { MORE } else { 0 }
            | if self.synced { SYNCED } else { 0 };
        fixed[11..].copy_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&fixed);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
        let crc = crc32c::crc32c_append(salt, &out[start + 4..]);
        out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the record at the start of `bytes`.
    ///
    /// # Errors
    /// If there is no complete, valid record.
    pub fn decode(salt: u32, bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < RECORD {
            return Err(Malformed::new(bytes.len(), "a record is cut short"));
        }
        let (key_len, value_len) = (u16_at(bytes, 4) as usize, u32_at(bytes, 6) as usize);
        if value_len > MAX_VALUE {
            return Err(Malformed::new(6, "a record's value is too long"));
        }
        let Some(whole) = bytes.get(..RECORD + key_len + value_len) else {
            return Err(Malformed::new(bytes.len(), "a record is cut short"));
        };
        if crc32c::crc32c_append(salt, &whole[4..]) != u32_at(whole, 0) {
            return Err(Malformed::new(0, "a record's checksum is wrong"));
        }
        let Some(kind) = Kind::from_code(whole[10] & !(MORE | SYNCED)) else {
            return Err(Malformed::new(10, "a record's operation is unknown"));
        };
        let (key, value) = whole[RECORD..].split_at(key_len);
        Ok(Self {
            kind,
            more: whole[10] & MORE != 0,
            synced: whole[10] & SYNCED != 0,
            sequence: u64_at(whole, 11),
            key,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_has_the_bytes_the_document_draws() {
        let record = Record {
            kind: Kind::Change,
            more: true,
            synced: true,
            sequence: 0x0102,
            key: b"key",
            value: b"value",
        };
        let mut bytes = Vec::new();
        record.encode(7, &mut bytes);
        let drawn = b"\x03\0\x05\0\0\0\xC2\x02\x01\0\0\0\0\0\0keyvalue";
        assert_eq!(&bytes[4..], drawn);
        assert_eq!(Record::decode(7, &bytes), Ok(record));
        assert!(Record::decode(8, &bytes).is_err(), "another file's salt");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let mut bytes = Vec::new();
        let kind = Kind::Insert;
        Record { kind, more: false, synced: true, sequence: 5, key: b"abc", value: b"de" }
            .encode(1, &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode(1, &damaged).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(Record::decode(1, &bytes[..cut]).is_err(), "cut at {cut}");
        }
        let header = Header { number: 3, first_sequence: 9, salt: 1 }.encode();
        assert_eq!(Header::decode(&header).unwrap().first_sequence, 9);
        for bit in 0..header.len() * 8 {
            let mut damaged = header;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn junk_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::decode(&bytes);
            let _ = Record::decode(0, &bytes);
        }
    }
}
