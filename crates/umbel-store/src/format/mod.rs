//! The format of every file. No files are opened here.
//!
//! `docs/store.md` draws each layout. Every parser accepts arbitrary bytes: it returns the decoded
//! value or what is wrong, never panics, and never allocates more memory than the bytes it was
//! given. Every byte of every file is covered by a checksum (CRC-32C), and every file names its
//! format version before anything that depends on it.
//!
//! All numbers are little-endian.

pub mod manifest;
pub mod page;
pub mod record;
pub mod trailer;

/// The format version that this release writes and reads.
pub const VERSION: u16 = 1;

/// What is wrong with some bytes, and at which offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {what}")]
pub struct Malformed {
    /// Where in the bytes.
    pub offset: usize,
    /// What is wrong.
    pub what: &'static str,
    /// The version found, if only the version is wrong.
    pub version: Option<u16>,
}

impl Malformed {
    pub(crate) const fn new(offset: usize, what: &'static str) -> Self {
        Self { offset, what, version: None }
    }

    const fn version(offset: usize, found: u16) -> Self {
        Self { offset, what: "unknown format version", version: Some(found) }
    }

    /// Converts it to an error that names the file; `base` is the offset of the bytes in the file.
    pub(crate) fn in_file(self, file: &str, base: usize) -> crate::Error {
        match self.version {
            Some(found) => crate::Error::Version { file: file.to_owned(), found, known: VERSION },
            None => crate::Error::corrupt(file, base + self.offset, self.what),
        }
    }
}

/// The first eight bytes of `key` as a number that sorts like them; missing bytes count as 0.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(padded)
        }
    }
}

/// Length of the common prefix of two keys.
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_sort_like_keys() {
        for (a, b) in [("", "a"), ("a", "b"), ("abcdefgh", "abcdefgi"), ("zz", "zzz")] {
            assert!(head(a.as_bytes()) < head(b.as_bytes()), "{a} {b}");
        }
        assert_eq!(head(b"abcdefghX"), head(b"abcdefghY"));
    }
}
