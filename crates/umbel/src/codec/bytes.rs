//! Reads and writes plain numbers: little-endian, and varints (LEB128). Also the checksum at the
//! end of every frame and message.
//!
//! Reading never panics and never reads past the end: every method returns
//! [`DecodeError::Truncated`] instead.

use super::DecodeError;

/// Reads numbers from the front of a slice.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn take(&mut self, count: u64) -> Result<&'a [u8], DecodeError> {
        let count = usize::try_from(count).map_err(|_| DecodeError::Truncated)?;
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Returns all remaining bytes.
    pub(crate) const fn take_all(&mut self) -> &'a [u8] {
        let taken = self.bytes;
        self.bytes = &[];
        taken
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a varint: seven bits per byte, lowest first, the top bit set on all but the last byte.
    /// Only the shortest form is accepted, so that every value has one encoding.
    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7F);
            if shift == 63 && part > 1 {
                return Err(DecodeError::Malformed("a varint exceeds 64 bits"));
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(DecodeError::Malformed("a varint is longer than needed"));
                }
                return Ok(value);
            }
        }
        Err(DecodeError::Malformed("a varint exceeds 64 bits"))
    }

    /// Reads a varint that must fit into 32 bits.
    pub(crate) fn varint32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.varint()?)
            .map_err(|_| DecodeError::Malformed("a number exceeds 32 bits"))
    }

    /// Number of remaining bytes.
    pub(crate) const fn left(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Malformed("bytes are left over at the end"))
        }
    }
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the checksum to a frame or message.
pub(crate) fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Checks and removes the checksum that [`seal`] appended.
pub(crate) fn unseal(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let (sealed, checksum) = bytes.split_last_chunk().ok_or(DecodeError::Truncated)?;
    let (stored, found) = (u32::from_le_bytes(*checksum), crc32c::crc32c(sealed));
    if stored == found { Ok(sealed) } else { Err(DecodeError::Checksum { stored, found }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn varints_come_back(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint().unwrap(), value);
            prop_assert!(reader.end().is_ok());
            for cut in 0..bytes.len() {
                let cut = Reader::new(&bytes[..cut]).varint();
                prop_assert_eq!(cut, Err(DecodeError::Truncated));
            }
        }
    }

    #[test]
    fn odd_varints_are_refused() {
        let mut beyond = [0xFF; 10];
        beyond[9] = 1;
        assert_eq!(Reader::new(&beyond).varint(), Ok(u64::MAX));
        beyond[9] = 2;
        for bytes in [&[0x80, 0x00][..], &[0xFF; 10], &[0x80; 11], &beyond] {
            assert!(Reader::new(bytes).varint().is_err(), "{bytes:?}");
        }
    }
}
