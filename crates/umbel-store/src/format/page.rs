//! A page of sorted records. Master and sorted files consist of pages.
//!
//! ```text
//!  0  4  CRC-32C of the rest, seeded with file number and place
//!  4  2  length in units of 4 KiB: 1, or more for one long record
//!  6  2  number of records
//!  8  1  layout: 0 = all alike, 1 = of any length
//!  9  1  zero
//! 10  2  length of the prefix that all keys share
//! 12  4  bytes used, from the start of the page
//! 16  2  all alike: length of a key without the prefix
//! 18  2  all alike: length of a value
//! 20     prefix; then
//!        all alike:       key rest, value; key rest, value; …
//!        of any length:   2 bytes a record: where it starts in the page; then
//!                         length of the key rest (2 bytes), key rest, value; …
//! ```
//!
//! Records of equal length take only their own bytes, without the shared prefix.
//!
//! Always true of a [`Page`]: in the layout "all alike" every record lies inside the page. Records
//! of any length are checked one by one as they are read.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Malformed, head, shared_prefix};
use crate::numbers::{u16_at, u32_at};

/// The length of a page is a multiple of this.
pub const UNIT: usize = 4096;
const FIXED: usize = 20;

/// A page, borrowed from the file.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a [u8],
    count: usize,
    /// Where the records start, or the table of their offsets.
    base: usize,
    prefix: &'a [u8],
    layout: Layout,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    Alike { key_len: usize, row: usize },
    AnyLength,
}

/// Length, in units, of the page at the start of these bytes; `None` if it is cut short.
#[must_use]
pub fn units(bytes: &[u8]) -> Option<usize> {
    (bytes.len() >= FIXED).then(|| u16_at(bytes, 4) as usize).filter(|&units| units > 0)
}

/// Whether the page's checksum is right. `place` is its first unit in the file.
#[must_use]
pub fn is_valid(bytes: &[u8], number: u64, place: u32) -> bool {
    bytes.len() >= FIXED
        && crc32c::crc32c_append(seed(number, place), &bytes[4..]) == u32_at(bytes, 0)
}

/// Seed of a page's checksum. It makes a page at the wrong place, or in another file, invalid.
fn seed(number: u64, place: u32) -> u32 {
    (number as u32).rotate_left(16) ^ place
}

impl<'a> Page<'a> {
    /// Reads the fixed part of a page. Does not check the checksum; [`is_valid`] does.
    ///
    /// # Errors
    /// If the bytes are not one whole page.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if units(bytes).is_none_or(|units| units * UNIT != bytes.len()) {
            return Err(Malformed::new(4, "a page's length is wrong"));
        }
        let count = u16_at(bytes, 6) as usize;
        let base = FIXED + u16_at(bytes, 10) as usize;
        let used = u32_at(bytes, 12) as usize;
        if used > bytes.len() || base > used {
            return Err(Malformed::new(12, "a page is fuller than it is long"));
        }
        let (layout, needed) = match bytes[8] {
            0 => {
                let key_len = u16_at(bytes, 16) as usize;
                let row = key_len + u16_at(bytes, 18) as usize;
                (Layout::Alike { key_len, row }, count * row)
            }
            1 => (Layout::AnyLength, count * 2),
            _ => return Err(Malformed::new(8, "a page's layout is unknown")),
        };
        if base + needed > used {
            return Err(Malformed::new(6, "a page has no room for its records"));
        }
        // Cut off the unused rest: the last record ends at the last used byte.
        Ok(Self { bytes: &bytes[..used], count, base, prefix: &bytes[FIXED..base], layout })
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the page has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The prefix that all keys in the page share.
    #[must_use]
    pub fn prefix(&self) -> &'a [u8] {
        self.prefix
    }

    /// Record `i`: its key without the prefix, and its value.
    ///
    /// # Errors
    /// If the record does not lie inside the page.
    ///
    /// # Panics
    /// If `i` is not below [`Page::len`].
    #[inline]
    pub fn record(&self, i: usize) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        assert!(i < self.count, "record {i} of {}", self.count);
        match self.layout {
            Layout::Alike { key_len, row } => {
                let at = self.base + i * row;
                Ok(self.bytes[at..at + row].split_at(key_len))
            }
            Layout::AnyLength => self.record_of_any_length(i),
        }
    }

    fn record_of_any_length(&self, i: usize) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let place = self.base + i * 2;
        let start = u16_at(self.bytes, place) as usize;
        let last = i + 1 == self.count;
        let end = if last { self.bytes.len() } else { u16_at(self.bytes, place + 2) as usize };
        let found = self.bytes.get(start..end).and_then(|record| {
            let (key_len, rest) = record.split_first_chunk::<2>()?;
            rest.split_at_checked(u16::from_le_bytes(*key_len) as usize)
        });
        found.ok_or(Malformed::new(place, "a record lies outside its page"))
    }

    /// Length of a key and of a value, if all records have the same.
    #[must_use]
    pub fn alike(&self) -> Option<(usize, usize)> {
        match self.layout {
            Layout::Alike { key_len, row } => Some((self.prefix.len() + key_len, row - key_len)),
            Layout::AnyLength => None,
        }
    }

    /// The value of `key`, if one of the records in `among` has it.
    ///
    /// # Errors
    /// If a record does not lie inside the page.
    #[inline]
    pub fn find(&self, key: &[u8], among: Range<usize>) -> Result<Option<&'a [u8]>, Malformed> {
        let Some(rest) = key.strip_prefix(self.prefix) else { return Ok(None) };
        match self.search(rest, among)? {
            Ok(i) => self.record(i).map(|(_, value)| Some(value)),
            Err(_) => Ok(None),
        }
    }

    /// The first record whose key is not below `key`.
    ///
    /// # Errors
    /// If a record does not lie inside the page.
    pub fn lower_bound(&self, key: &[u8]) -> Result<usize, Malformed> {
        match key.strip_prefix(self.prefix) {
            Some(rest) => Ok(self.search(rest, 0..self.count)?.unwrap_or_else(|place| place)),
            None if key < self.prefix => Ok(0),
            None => Ok(self.count),
        }
    }

    /// Binary search: where among these records a key is, or would have to be inserted.
    #[inline]
    fn search(&self, rest: &[u8], among: Range<usize>) -> Result<Result<usize, usize>, Malformed> {
        let wanted = head(rest);
        let (mut low, mut high) = (among.start, among.end.min(self.count));
        while low < high {
            let at = low + (high - low) / 2;
            let (key, _) = self.record(at)?;
            match head(key).cmp(&wanted).then_with(|| key.cmp(rest)) {
                Ordering::Equal => return Ok(Ok(at)),
                Ordering::Less => low = at + 1,
                Ordering::Greater => high = at,
            }
        }
        Ok(Err(low))
    }
}

/// Offset of the first record in a page of the layout "all alike" with a prefix of this length.
pub(crate) const fn first_row(prefix: usize) -> usize {
    FIXED + prefix
}

/// Fills pages with records that arrive in ascending order.
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    /// Keys and values one after the other, with the lengths of each.
    bytes: Vec<u8>,
    lengths: Vec<(usize, usize)>,
    prefix: usize,
    key_bytes: usize,
    alike: bool,
}

impl PageBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The first key, from which the prefix is taken.
    pub(crate) fn first_key(&self) -> &[u8] {
        self.lengths.first().map_or(&[], |&(key, _)| &self.bytes[..key])
    }

    /// The last key.
    pub(crate) fn last_key(&self) -> &[u8] {
        let Some(&(key, value)) = self.lengths.last() else { return &[] };
        &self.bytes[self.bytes.len() - value - key..][..key]
    }

    /// Whether one more record still leaves the page one unit long.
    pub(crate) fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let prefix = shared_prefix(&self.first_key()[..self.prefix], key);
        let count = self.lengths.len() + 1;
        let key_bytes = self.key_bytes + key.len();
        let payload = self.bytes.len() + key.len() + value.len();
        let alike = self.alike && self.lengths.first() == Some(&(key.len(), value.len()));
        let places = if alike { 0 } else { 4 * count };
        debug_assert!(key_bytes >= prefix * count);
        count <= u16::MAX as usize && FIXED + prefix + places + payload - prefix * count <= UNIT
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        if self.is_empty() {
            self.prefix = key.len();
            self.alike = value.len() <= u16::MAX as usize;
        } else {
            self.prefix = shared_prefix(&self.first_key()[..self.prefix], key);
            self.alike &= self.lengths[0] == (key.len(), value.len());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len()));
        self.key_bytes += key.len();
    }

    /// Appends the page to `out`, and starts an empty one.
    pub(crate) fn finish(&mut self, number: u64, place: u32, out: &mut Vec<u8>) {
        let start = out.len();
        // A single record has no use for a shared prefix; and after a prefix of 64 KiB it would
        // start at an offset that does not fit into two bytes.
        let prefix = if self.lengths.len() == 1 { 0 } else { self.prefix };
        out.extend_from_slice(&[0; FIXED]);
        out.extend_from_slice(&self.first_key()[..prefix]);
        let places = out.len();
        if !self.alike {
            out.resize(places + 2 * self.lengths.len(), 0);
        }
        let mut from = 0;
        for (i, &(key, value)) in self.lengths.iter().enumerate() {
            if !self.alike {
                let at = (out.len() - start) as u16;
                out[places + 2 * i..places + 2 * i + 2].copy_from_slice(&at.to_le_bytes());
                out.extend_from_slice(&((key - prefix) as u16).to_le_bytes());
            }
            out.extend_from_slice(&self.bytes[from + prefix..from + key + value]);
            from += key + value;
        }
        let used = out.len() - start;
        let units = used.div_ceil(UNIT);
        out.resize(start + units * UNIT, 0);
        let page = &mut out[start..];
        page[4..6].copy_from_slice(&(units as u16).to_le_bytes());
        page[6..8].copy_from_slice(&(self.lengths.len() as u16).to_le_bytes());
        page[8] = u8::from(!self.alike);
        page[10..12].copy_from_slice(&(prefix as u16).to_le_bytes());
        page[12..16].copy_from_slice(&(used as u32).to_le_bytes());
        if let (true, Some(&(key, value))) = (self.alike, self.lengths.first()) {
            page[16..18].copy_from_slice(&((key - prefix) as u16).to_le_bytes());
            page[18..20].copy_from_slice(&(value as u16).to_le_bytes());
        }
        let crc = crc32c::crc32c_append(seed(number, place), &page[4..]);
        page[..4].copy_from_slice(&crc.to_le_bytes());
        self.bytes.clear();
        self.lengths.clear();
        self.key_bytes = 0;
        self.prefix = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn build(records: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
        let mut builder = PageBuilder::default();
        for (key, value) in records {
            builder.push(key, value);
        }
        let mut out = Vec::new();
        builder.finish(3, 9, &mut out);
        out
    }

    fn check(records: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let bytes = build(records);
        assert!(is_valid(&bytes, 3, 9) && !is_valid(&bytes, 3, 8) && !is_valid(&bytes, 4, 9));
        let page = Page::new(&bytes).unwrap();
        for (i, (key, value)) in records.iter().enumerate() {
            for among in [0..records.len(), 0..usize::MAX, i..i + 1] {
                assert_eq!(page.find(key, among).unwrap(), Some(&value[..]));
            }
            assert_eq!(page.find(key, i + 1..records.len()).unwrap(), None);
            assert_eq!(page.lower_bound(key).unwrap(), i);
            let mut absent = key.clone();
            absent.push(0);
            let found = page.find(&absent, 0..records.len()).unwrap();
            assert_eq!(found, records.get(&absent).map(|v| &v[..]));
        }
    }

    #[test]
    fn a_hundred_and_four_records_of_40_bytes_fit() {
        let mut builder = PageBuilder::default();
        let mut count = 0;
        let key = |i: u64| [[7; 8], i.to_be_bytes(), [0; 8]].concat();
        while builder.has_room(&key(count << 56), &[0; 16]) {
            builder.push(&key(count << 56), &[0; 16]);
            count += 1;
        }
        // 24 bytes less the 8 that are shared, and 16 of value.
        assert_eq!(count, (4096 - 20 - 8) / 32);
    }

    #[test]
    fn one_long_record_takes_several_units() {
        let records = BTreeMap::from([(vec![1; 300], vec![2; 100_000])]);
        assert_eq!(build(&records).len(), 25 * UNIT);
        check(&records);
        check(&BTreeMap::from([(vec![], vec![])]));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = build(&BTreeMap::from([(vec![1, 2], vec![3]), (vec![1, 4], vec![5])]));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_valid(&damaged, 3, 9), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn what_is_put_in_is_found(
            records in prop::collection::btree_map(
                prop::collection::vec(0u8..4, 0..6), prop::collection::vec(any::<u8>(), 0..5), 1..60),
        ) {
            check(&records);
        }

        #[test]
        fn records_of_one_length_are_found(
            records in prop::collection::btree_map(
                prop::collection::vec(0u8..3, 12), prop::collection::vec(any::<u8>(), 3), 1..60),
        ) {
            check(&records);
        }

        #[test]
        fn junk_never_panics(
            start in prop::collection::vec(any::<u8>(), 0..64), key in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let _ = Page::new(&start);
            let mut bytes = start.clone();
            bytes.resize(UNIT, 3);
            bytes[4..6].copy_from_slice(&1u16.to_le_bytes());
            bytes[8] %= 2;
            bytes[10..12].copy_from_slice(&2u16.to_le_bytes());
            bytes[12..16].copy_from_slice(&4000u32.to_le_bytes());
            if let Ok(page) = Page::new(&bytes) {
                let _ = page.find(&key, 0..9);
                let _ = page.lower_bound(&key);
                for i in 0..page.len() {
                    let _ = page.record(i);
                }
            }
        }
    }
}
