//! Versions of keys in memory: each is written once, and never changed or moved.
//!
//! ```text
//! 4  sequence, counted from the last before the first version
//! 1  kind, LONG, OLDER
//! 1  key length    if LONG: 2
//! 1  value length  if LONG: 4
//! 4  older version, if OLDER
//!    key, value, zeros to a multiple of eight
//! ```
//!
//! So a record of 24 + 16 bytes takes 48 bytes, and 64 with its entry and its share of the table.

use crate::format::record::Kind;
use crate::numbers::{u16_at, u32_at};

/// An arena of versions. Each is addressed by the place that [`Versions::push`] returned.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// No chunk ever grows beyond its initial capacity, so nobody waits while memory is copied.
    chunks: Vec<Vec<u8>>,
    /// Sequence before the first version.
    base: u64,
}

/// One version of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) sequence: u64,
    /// Place of the next older version, or [`NONE`].
    pub(crate) older: u32,
}

impl Version<'_> {
    /// Whether the key exists after this change.
    pub(crate) fn is_present(&self) -> bool {
        self.kind != Kind::Delete
    }
}

/// A version to be added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewVersion<'a> {
    pub(crate) kind: Kind,
    pub(crate) sequence: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Versions {
    /// An empty arena; the first version will have a sequence after this one.
    pub(crate) fn after(sequence: u64) -> Self {
        Self { chunks: Vec::new(), base: sequence }
    }

    /// Prefetches the versions at these places, all at once: they are scattered in memory.
    pub(crate) fn touch(&self, places: impl Iterator<Item = u32>) {
        let first_byte =
            |at: u32| self.chunks[(at >> PLACE_BITS) as usize][(at as usize & PLACES) * ALIGN];
        std::hint::black_box(places.map(first_byte).fold(0, |all, byte| all ^ byte));
    }

    /// The version at a place.
    pub(crate) fn at(&self, at: u32) -> Version<'_> {
        let bytes = &self.chunks[(at >> PLACE_BITS) as usize][(at as usize & PLACES) * ALIGN..];
        let (form, mut rest) = (bytes[4], &bytes[5..]);
        let (key_len, value_len) = if form & LONG == 0 {
            (rest[0] as usize, rest[1] as usize)
        } else {
            (u16_at(rest, 0) as usize, u32_at(rest, 2) as usize)
        };
        rest = &rest[if form & LONG == 0 { 2 } else { 6 }..];
        let mut older = NONE;
        if form & OLDER != 0 {
            older = u32_at(rest, 0);
            rest = &rest[4..];
        }
        let (key, value) = rest[..key_len + value_len].split_at(key_len);
        let kind = Kind::from_code(form & !(LONG | OLDER)).expect("versions have a kind");
        Version { kind, key, value, sequence: self.base + u64::from(u32_at(bytes, 0)), older }
    }

    /// Adds a version and returns its place and how many bytes it takes.
    pub(crate) fn push(&mut self, change: &NewVersion<'_>, older: u32) -> (u32, usize) {
        let (key, value) = (change.key, change.value);
        let max = (LONGEST_VERSION + key.len() + value.len()).next_multiple_of(ALIGN);
        if self.chunks.last().is_none_or(|chunk| chunk.len() + max > CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let start = chunk.len();
        // 32 bits are enough: more versions would exceed the memory budget.
        chunk.extend_from_slice(&((change.sequence - self.base) as u32).to_le_bytes());
        let is_long = key.len().max(value.len()) > u8::MAX as usize;
        let form = if is_long { LONG } else { 0 } | if older == NONE { 0 } else { OLDER };
        chunk.push(change.kind as u8 | form);
        if is_long {
            chunk.extend_from_slice(&(key.len() as u16).to_le_bytes());
            chunk.extend_from_slice(&(value.len() as u32).to_le_bytes());
        } else {
            chunk.extend_from_slice(&[key.len() as u8, value.len() as u8]);
        }
        if older != NONE {
            chunk.extend_from_slice(&older.to_le_bytes());
        }
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value);
        chunk.resize(chunk.len().next_multiple_of(ALIGN), 0);
        ((number as u32) << PLACE_BITS | (start / ALIGN) as u32, chunk.len() - start)
    }
}

/// Maximum length of a version without key and value.
const LONGEST_VERSION: usize = 15;
// Flags next to the kind. LONG: lengths take two and four bytes. OLDER: there is an older version.
const LONG: u8 = 0x10;
const OLDER: u8 = 0x20;
/// No version.
pub(crate) const NONE: u32 = u32::MAX;
/// Versions start at multiples of this, so that a 32-bit place can address 32 GiB.
const ALIGN: usize = 8;
const PLACE_BITS: u32 = 19;
const PLACES: usize = (1 << PLACE_BITS) - 1;
const CHUNK: usize = ALIGN << PLACE_BITS;
const _: () = assert!(LONGEST_VERSION + crate::MAX_KEY + crate::MAX_VALUE + ALIGN < CHUNK);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_versions_are_read_back() {
        let mut versions = Versions::after(1 << 40);
        let (mut sequence, mut older) = (1 << 40, NONE);
        for (key_len, value_len) in [(0, 0), (255, 255), (256, 0), (1, 256), (300, 1 << 20)] {
            for kind in [Kind::Insert, Kind::Change, Kind::Delete] {
                sequence += 1;
                let (key, value) = (&vec![7; key_len][..], &vec![9; value_len][..]);
                let new = NewVersion { kind, sequence, key, value };
                let (place, bytes) = versions.push(&new, older);
                assert!(bytes >= key_len + value_len && bytes <= key_len + value_len + 24);
                let found = versions.at(place);
                assert_eq!((found.kind, found.sequence, found.older), (kind, sequence, older));
                assert!(found.key == key && found.value == value);
                older = place;
            }
        }
    }

    #[test]
    fn a_record_of_24_and_16_bytes_takes_48() {
        let (key, value) = (&[1; 24][..], &[2; 16][..]);
        let new = NewVersion { kind: Kind::Insert, sequence: 1, key, value };
        assert_eq!(Versions::after(0).push(&new, NONE).1, 48);
    }
}
