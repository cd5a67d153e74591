//! Packed numbers of a fixed width: the low parts of gaps, which are so nearly uniform that entropy
//! coding would not make them shorter.

use super::DecodeError;

/// Writes numbers of a fixed width, lowest bit first.
#[derive(Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    held: u128,
    width: u32,
}

impl BitWriter {
    /// Appends a number of fewer than 64 bits, which must be below `2^width`.
    #[inline]
    pub(super) fn put(&mut self, value: u64, width: u32) {
        self.held |= u128::from(value) << self.width;
        self.width += width;
        if self.width >= 64 {
            self.bytes.extend_from_slice(&(self.held as u64).to_le_bytes());
            self.held >>= 64;
            self.width -= 64;
        }
    }

    /// Writes all bits to `out`; the last byte is padded with zeros.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        let left = &self.held.to_le_bytes()[..self.width.div_ceil(8) as usize];
        self.bytes.extend_from_slice(left);
        out.append(&mut self.bytes);
    }
}

/// Reads what a [`BitWriter`] wrote; past the end there are zeros.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    held: u128,
    width: u32,
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, held: 0, width: 0 }
    }

    /// Reads the next number of fewer than 64 bits.
    #[inline]
    pub(super) fn take(&mut self, width: u32) -> u64 {
        if self.width < width {
            self.refill();
        }
        let value = self.held as u64 & ((1 << width) - 1);
        self.held >>= width;
        self.width -= width;
        value
    }

    #[inline]
    fn refill(&mut self) {
        let (word, rest) = match self.bytes.split_first_chunk() {
            Some((word, rest)) => (u64::from_le_bytes(*word), rest),
            None => {
                let mut word = [0; 8];
                word[..self.bytes.len()].copy_from_slice(self.bytes);
                (u64::from_le_bytes(word), &[][..])
            }
        };
        self.held |= u128::from(word) << self.width;
        self.width += 64;
        self.bytes = rest;
    }

    /// Checks that the padding of the last byte is zero.
    pub(super) fn end(&self) -> Result<(), DecodeError> {
        if self.held == 0 { Ok(()) } else { Err(DecodeError::Malformed("stray bits")) }
    }
}
