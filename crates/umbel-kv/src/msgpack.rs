//! Reads msgpack: the part of it that the events of engines need.
//!
//! Always true: nothing is read beyond the end of the bytes, lengths are checked before anything is
//! allocated for them, and values nest at most `MAX_DEPTH` deep.

/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 32;

/// Why bytes are not what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MsgpackError {
    /// The bytes end in the middle of a value.
    #[error("the message ends in the middle of a value")]
    Truncated,
    /// A value of an unexpected type.
    #[error("expected {expected} at byte {at}, found a value of type 0x{found:02x}")]
    Kind {
        /// What was expected.
        expected: &'static str,
        /// Where.
        at: usize,
        /// The first byte of the value.
        found: u8,
    },
    /// Values are nested too deeply.
    #[error("values are nested more than 32 deep")]
    Depth,
    /// A string that is not UTF-8.
    #[error("a text at byte {0} is not UTF-8")]
    Text(usize),
}

/// Reads one value after the other.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether everything is read.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The first byte of the next value, which identifies its type.
    fn peek(&self) -> Result<u8, MsgpackError> {
        self.bytes.get(self.at).copied().ok_or(MsgpackError::Truncated)
    }

    fn wrong(&self, expected: &'static str) -> MsgpackError {
        let found = self.bytes.get(self.at).copied().unwrap_or_default();
        MsgpackError::Kind { expected, at: self.at, found }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], MsgpackError> {
        let end = self.at.checked_add(count).ok_or(MsgpackError::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(MsgpackError::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    /// A big-endian number of this many bytes, after the first byte of the value.
    fn number(&mut self, bytes: usize) -> Result<u64, MsgpackError> {
        self.take(1)?;
        let digits = self.take(bytes)?;
        Ok(digits.iter().fold(0, |number, digit| number << 8 | u64::from(*digit)))
    }

    /// Reads a length, and checks that enough bytes are left if each unit takes at least `each`
    /// bytes.
    fn length(&mut self, bytes: usize, each: usize) -> Result<usize, MsgpackError> {
        let length = usize::try_from(self.number(bytes)?).map_err(|_| MsgpackError::Truncated)?;
        self.fits(length, each)
    }

    fn fits(&self, length: usize, each: usize) -> Result<usize, MsgpackError> {
        let left = self.bytes.len() - self.at;
        if length.saturating_mul(each) > left { Err(MsgpackError::Truncated) } else { Ok(length) }
    }

    /// The number of values in an array that begins here.
    ///
    /// # Errors
    /// If the next value is not an array, or its length exceeds the bytes that are left.
    pub fn array(&mut self) -> Result<usize, MsgpackError> {
        match self.peek()? {
            short @ 0x90..=0x9f => {
                self.at += 1;
                self.fits(usize::from(short & 0x0f), 1)
            }
            0xdc => self.length(2, 1),
            0xdd => self.length(4, 1),
            _ => Err(self.wrong("an array")),
        }
    }

    /// The number of pairs in a map that begins here.
    ///
    /// # Errors
    /// If the next value is not a map, or its length exceeds the bytes that are left.
    pub fn map(&mut self) -> Result<usize, MsgpackError> {
        match self.peek()? {
            short @ 0x80..=0x8f => {
                self.at += 1;
                self.fits(usize::from(short & 0x0f), 2)
            }
            0xde => self.length(2, 2),
            0xdf => self.length(4, 2),
            _ => Err(self.wrong("a map")),
        }
    }

    /// Whether the next value is a map.
    #[must_use]
    pub fn is_map(&self) -> bool {
        matches!(self.peek(), Ok(0x80..=0x8f | 0xde | 0xdf))
    }

    /// Reads a nil if the next value is one, and returns whether it was.
    #[must_use]
    pub fn nil(&mut self) -> bool {
        let is_nil = self.peek() == Ok(0xc0);
        self.at += usize::from(is_nil);
        is_nil
    }

    /// Whether the next value is a whole number.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self.peek(), Ok(0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff))
    }

    /// A whole number of 64 bits: a negative one in two's complement.
    ///
    /// # Errors
    /// If there is none.
    pub fn integer(&mut self) -> Result<i128, MsgpackError> {
        let signed =
            |number: u64, bits: u32| i128::from((number << (64 - bits)) as i64 >> (64 - bits));
        match self.peek()? {
            small @ 0x00..=0x7f => {
                self.at += 1;
                Ok(small.into())
            }
            small @ 0xe0..=0xff => {
                self.at += 1;
                Ok((small as i8).into())
            }
            0xcc => Ok(self.number(1)?.into()),
            0xcd => Ok(self.number(2)?.into()),
            0xce => Ok(self.number(4)?.into()),
            0xcf => Ok(self.number(8)?.into()),
            0xd0 => Ok(signed(self.number(1)?, 8)),
            0xd1 => Ok(signed(self.number(2)?, 16)),
            0xd2 => Ok(signed(self.number(4)?, 32)),
            0xd3 => Ok(signed(self.number(8)?, 64)),
            _ => Err(self.wrong("a whole number")),
        }
    }

    /// Bytes, or the bytes of a text.
    ///
    /// # Errors
    /// If there are none.
    pub fn bytes(&mut self) -> Result<&'a [u8], MsgpackError> {
        let length = match self.peek()? {
            short @ 0xa0..=0xbf => {
                self.at += 1;
                usize::from(short & 0x1f)
            }
            0xc4 | 0xd9 => self.length(1, 1)?,
            0xc5 | 0xda => self.length(2, 1)?,
            0xc6 | 0xdb => self.length(4, 1)?,
            _ => return Err(self.wrong("bytes or a text")),
        };
        self.take(length)
    }

    /// A text.
    ///
    /// # Errors
    /// If the next value is not a text, or not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, MsgpackError> {
        let at = self.at;
        str::from_utf8(self.bytes()?).map_err(|_| MsgpackError::Text(at))
    }

    /// Skips a value of any type.
    ///
    /// # Errors
    /// If the value is truncated, or nested too deeply.
    pub fn skip(&mut self) -> Result<(), MsgpackError> {
        self.skip_nested(MAX_DEPTH)
    }

    fn skip_nested(&mut self, depth: usize) -> Result<(), MsgpackError> {
        let depth = depth.checked_sub(1).ok_or(MsgpackError::Depth)?;
        match self.peek()? {
            0x90..=0x9f | 0xdc | 0xdd => {
                let values = self.array()?;
                (0..values).try_for_each(|_| self.skip_nested(depth))
            }
            0x80..=0x8f | 0xde | 0xdf => {
                let values = 2 * self.map()?;
                (0..values).try_for_each(|_| self.skip_nested(depth))
            }
            0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => self.bytes().map(drop),
            0xc7 => self.skip_extension(1),
            0xc8 => self.skip_extension(2),
            0xc9 => self.skip_extension(4),
            kind => {
                self.take(1 + fixed_bytes(kind).ok_or_else(|| self.wrong("a value"))?).map(drop)
            }
        }
    }

    /// An extension: its length, its type, its bytes.
    fn skip_extension(&mut self, bytes: usize) -> Result<(), MsgpackError> {
        let length = self.length(bytes, 1)?;
        self.take(length.saturating_add(1)).map(drop)
    }

    /// The bytes of a value, as they are.
    ///
    /// # Errors
    /// As [`Self::skip`].
    pub fn raw(&mut self) -> Result<&'a [u8], MsgpackError> {
        let from = self.at;
        self.skip()?;
        Ok(&self.bytes[from..self.at])
    }
}

/// Number of bytes after the first one, for types of fixed length.
const fn fixed_bytes(kind: u8) -> Option<usize> {
    Some(match kind {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => 0,
        0xcc | 0xd0 => 1,
        0xcd | 0xd1 | 0xd4 => 2,
        0xd5 => 3,
        0xca | 0xce | 0xd2 => 4,
        0xd6 => 5,
        0xcb | 0xcf | 0xd3 => 8,
        0xd7 => 9,
        0xd8 => 17,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_every_width_are_read() {
        let cases: [(&[u8], i128); 14] = [
            (&[0x00], 0),
            (&[0x7f], 127),
            (&[0xff], -1),
            (&[0xe0], -32),
            (&[0xcc, 0xff], 255),
            (&[0xcd, 1, 2], 258),
            (&[0xce, 0xff, 0xff, 0xff, 0xff], 0xffff_ffff),
            (&[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX as i128),
            (&[0xd0, 0x80], -128),
            (&[0xd1, 0x80, 0], -32768),
            (&[0xd1, 0x7f, 0xff], 32767),
            (&[0xd2, 0x80, 0, 0, 0], i32::MIN as i128),
            (&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0], i64::MIN as i128),
            (&[0xd3, 0, 0, 0, 0, 0, 0, 0, 5], 5),
        ];
        for (bytes, expected) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.integer(), Ok(expected));
            assert!(reader.is_at_end());
            for end in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..end]).integer(), Err(MsgpackError::Truncated));
            }
        }
        assert!(Reader::new(&[0xa1, b'x']).integer().is_err());
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_anything_is_allocated() {
        for bytes in [&[0xdd, 0xff, 0xff, 0xff, 0xff, 1][..], &[0x95, 1, 2], &[0xdc, 0, 9, 1]] {
            assert_eq!(Reader::new(bytes).array(), Err(MsgpackError::Truncated));
        }
        assert_eq!(
            Reader::new(&[0xdf, 0xff, 0xff, 0xff, 0xff]).map(),
            Err(MsgpackError::Truncated)
        );
        assert_eq!(
            Reader::new(&[0xc6, 0xff, 0xff, 0xff, 0xff]).bytes(),
            Err(MsgpackError::Truncated)
        );
    }

    #[test]
    fn deep_values_are_refused() {
        let deep = [[0x91; 31].as_slice(), &[0xc0]].concat();
        assert_eq!(Reader::new(&deep).skip(), Ok(()));
        let deeper = [[0x91; 100_000].as_slice(), &[0xc0]].concat();
        assert_eq!(Reader::new(&deeper).skip(), Err(MsgpackError::Depth));
    }

    #[test]
    fn every_kind_of_value_is_passed_over() {
        let values: [&[u8]; 12] = [
            &[0xc0],
            &[0xc3],
            &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xca, 0, 0, 0, 0],
            &[0x92, 0x01, 0xa2, b'a', b'b'],
            &[0x81, 0xa1, b'k', 0x93, 1, 2, 3],
            &[0xc4, 2, 9, 9],
            &[0xd9, 1, b'x'],
            &[0xd4, 1, 2],
            &[0xd8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xc7, 2, 5, 9, 9],
            &[0xde, 0, 1, 0xc0, 0xc0],
        ];
        let all = values.concat();
        let mut reader = Reader::new(&all);
        for value in values {
            assert_eq!(reader.raw(), Ok(value));
        }
        assert!(reader.is_at_end());
        assert!(Reader::new(&[0xc1]).skip().is_err(), "a byte that is never used");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            while !reader.is_at_end() && reader.skip().is_ok() {}
            for read in [Reader::array, Reader::map] {
                _ = read(&mut Reader::new(&bytes));
            }
            _ = Reader::new(&bytes).text();
        }
    }
}
