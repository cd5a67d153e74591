//! The manifest: which files make up the store.
//!
//! ```text
//!  0  8  "UMBELMAN"             32  8  number of the master, 0 if there is none
//!  8  2  format version         40  8  sequence up to which the master has everything
//! 10  2  zero                   48     a part per differential file, oldest first:
//! 12  4  number of parts               0  1  1 = differential file, 2 = sorted
//! 16  8  generation                    1  8  file number
//! 24  8  store's identity          last 4    CRC-32C of everything before
//! ```
//!
//! It is small and is always replaced as a whole, by renaming; so a reader finds the old one or the
//! new one. Each has a higher generation than the one before.
//!
//! Always true of a decoded manifest: file numbers increase from the oldest part to the newest,
//! none is zero, and the newest part is a differential file: the one being written.

use super::{Malformed, VERSION};
use crate::numbers::{u16_at, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"UMBELMAN";
const FIXED: usize = 48;
const PART: usize = 9;

/// Which files make up the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Incremented with each new manifest.
    pub generation: u64,
    /// Identity of this store, also used as the key of its hashes.
    pub store: u64,
    /// Number of the master file, if there is one.
    pub master: Option<u64>,
    /// The master contains all changes up to this sequence.
    pub integrated: u64,
    /// The files with later changes, oldest first.
    pub parts: Vec<Part>,
}

/// One differential file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its format.
    pub form: Form,
    /// The file's number, which is also in its name.
    pub number: u64,
}

/// Format of a differential file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Records in the order in which they were written; the index is in memory.
    Differential,
    /// Records sorted by key, with the index on disk.
    Sorted,
}

impl Manifest {
    /// The manifest's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED + self.parts.len() * PART + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        for number in [self.generation, self.store, self.master.unwrap_or(0), self.integrated] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for part in &self.parts {
            bytes.push(match part.form {
                Form::Differential => 1,
                Form::Sorted => 2,
            });
            bytes.extend_from_slice(&part.number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// If the bytes are not a sound manifest of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < FIXED + 4 {
            return Err(Malformed::new(bytes.len(), "the manifest is cut short"));
        }
        if &bytes[..8] != MAGIC {
            return Err(Malformed::new(0, "not a manifest"));
        }
        if u16_at(bytes, 8) != VERSION {
            return Err(Malformed::version(8, u16_at(bytes, 8)));
        }
        let (body, crc) = bytes.split_at(bytes.len() - 4);
        if crc32c::crc32c(body) != u32_at(crc, 0) {
            return Err(Malformed::new(body.len(), "the manifest's checksum is wrong"));
        }
        let parts = &body[FIXED..];
        if (u32_at(body, 12) as usize).checked_mul(PART) != Some(parts.len()) {
            return Err(Malformed::new(12, "the manifest's length is wrong"));
        }
        let manifest = Self {
            generation: u64_at(body, 16),
            store: u64_at(body, 24),
            master: Some(u64_at(body, 32)).filter(|&number| number != 0),
            integrated: u64_at(body, 40),
            parts: parts.chunks_exact(PART).map(Part::decode).collect::<Result<_, _>>()?,
        };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Malformed> {
        let rising = self.parts.windows(2).all(|pair| pair[0].number < pair[1].number);
        if !rising || self.parts.iter().any(|part| part.number == 0) {
            return Err(Malformed::new(FIXED, "file numbers do not rise"));
        }
        match self.parts.last() {
            Some(Part { form: Form::Differential, .. }) => Ok(()),
            _ => Err(Malformed::new(FIXED, "there is no differential file to write to")),
        }
    }

    /// The next file number that nothing in the manifest uses.
    pub(crate) fn next_number(&self) -> u64 {
        self.parts.iter().map(|part| part.number).chain(self.master).max().map_or(1, |n| n + 1)
    }
}

impl Part {
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let form = match bytes[0] {
            1 => Form::Differential,
            2 => Form::Sorted,
            _ => return Err(Malformed::new(FIXED, "a part has an unknown form")),
        };
        Ok(Self { form, number: u64_at(bytes, 1) })
    }

    /// The file's name.
    pub(crate) fn name(self) -> String {
        match self.form {
            Form::Differential => differential_name(self.number),
            Form::Sorted => format!("{:08}.sorted", self.number),
        }
    }
}

/// Name of the manifest, and the name under which it is written before it is renamed.
pub(crate) const NAME: &str = "MANIFEST";
pub(crate) const NEW_NAME: &str = "MANIFEST.new";

pub(crate) fn differential_name(number: u64) -> String {
    format!("{number:08}.differential")
}

pub(crate) fn master_name(number: u64) -> String {
    format!("{number:08}.master")
}

/// A master or sorted file that is still being written.
pub(crate) fn unfinished_name(number: u64) -> String {
    format!("{number:08}.unfinished")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn manifest() -> Manifest {
        let part = |form, number| Part { form, number };
        Manifest {
            generation: 7,
            store: 0xABCD,
            master: Some(3),
            integrated: 99,
            parts: vec![part(Form::Sorted, 4), part(Form::Differential, 6)],
        }
    }

    #[test]
    fn what_is_written_is_read_and_any_damage_is_noticed() {
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&damaged).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = manifest().encode();
        bytes[8] = 2;
        assert_eq!(Manifest::decode(&bytes).unwrap_err().version, Some(2));
    }

    #[test]
    fn a_manifest_without_a_file_to_write_to_is_refused() {
        let none = Manifest { parts: Vec::new(), ..manifest() };
        assert!(Manifest::decode(&none.encode()).is_err());
        let mut falling = manifest();
        falling.parts.reverse();
        assert!(Manifest::decode(&falling.encode()).is_err());
    }

    proptest! {
        #[test]
        fn junk_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Manifest::decode(&bytes);
            // Junk behind a good start and with a good checksum gets further.
            let good = manifest().encode();
            let len = bytes.len().min(16);
            bytes[..len].copy_from_slice(&good[..len]);
            let crc = crc32c::crc32c(&bytes);
            bytes.extend_from_slice(&crc.to_le_bytes());
            let _ = Manifest::decode(&bytes);
        }
    }
}
