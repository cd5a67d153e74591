//! The index of one differential file, in memory: every version of every changed key.
//!
//! Readers ask the filter first, without a lock; only if it says maybe do they look into
//! the table. A version is never changed or moved once it is there, and carries its
//! sequence, so that a snapshot simply passes over those that are younger than itself.
//!
//! ```text
//! table: hash → entry        entry: hash, newest version
//! version, in a chunk:       0 8 sequence | 8 4 older version | 12 4 value length
//!                            16 2 key length | 18 1 kind | 19 key | value
//! ```
//!
//! Always true: a chain goes from younger to older versions of one key; every entry's key
//! is in the filter before its first version can be seen.
//!
//! Not here: the file (`log`), and who may see what (`view`).

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashTable;
use umbel::{KeyHash, Shape};

use crate::format::record::Kind;
use crate::format::{u16_at, u32_at, u64_at};
use crate::guard::LiveFilter;
use crate::order;

/// The index of one differential file.
#[derive(Debug)]
pub(crate) struct Delta {
    /// Number of the file it is the index of.
    pub(crate) number: u64,
    filter: LiveFilter,
    changes: RwLock<Changes>,
    /// What readers may see; the newest state is the last pair.
    published: Mutex<Published>,
    visible: AtomicU64,
    updates: AtomicU64,
    net: AtomicI64,
    file_bytes: AtomicU64,
    memory: AtomicUsize,
}

/// A state of the store that readers may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) sequence: u64,
    pub(crate) records: u64,
}

/// All versions of all changed keys.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    table: HashTable<u32>,
    entries: Vec<Entry>,
    chunks: Vec<Vec<u8>>,
    /// The first entries by key; the ones after them came later and are in no order.
    ordered: Arc<Vec<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    newest: u32,
}

/// One version of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    sequence: u64,
    older: u32,
}

impl Version<'_> {
    /// Whether the key is there after it.
    pub(crate) fn is_present(&self) -> bool {
        self.kind != Kind::Delete
    }
}

impl Delta {
    pub(crate) fn new(number: u64, shape: Shape, published: Published) -> Self {
        Self {
            number,
            filter: LiveFilter::new(shape),
            changes: RwLock::default(),
            visible: AtomicU64::new(published.sequence),
            published: Mutex::new(published),
            updates: AtomicU64::new(0),
            net: AtomicI64::new(0),
            file_bytes: AtomicU64::new(0),
            memory: AtomicUsize::new(0),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        *self.filter.shape()
    }

    /// Whether the key may have been changed; `false` is certain.
    #[inline]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        self.updates.load(Ordering::Relaxed) > 0 && self.filter.contains(hash)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Changes> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Changes> {
        self.changes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a version. Nobody sees it before it is published. Holding the lock makes this
    /// the only thread that adds.
    pub(crate) fn add(&self, changes: &mut Changes, hash: KeyHash, change: &NewVersion<'_>) {
        self.filter.insert(hash);
        let grown = changes.add(hash.get(), change);
        // A load and a store, not a locked instruction: nobody else adds.
        self.memory.store(self.memory() + grown, Ordering::Relaxed);
        self.updates.store(self.updates() + 1, Ordering::Relaxed);
        self.net.store(self.net() + change.kind.net(), Ordering::Relaxed);
    }

    /// Lets readers see everything up to this state.
    pub(crate) fn publish(&self, state: Published) {
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        *published = state;
        self.visible.store(state.sequence, Ordering::Release);
    }

    pub(crate) fn published(&self) -> Published {
        *self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sequence up to which readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Changes made since the file was begun: what paper 2 calls u.
    pub(crate) fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    /// What the changes do to the number of records.
    pub(crate) fn net(&self) -> i64 {
        self.net.load(Ordering::Relaxed)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_file_bytes(&self, bytes: u64) {
        self.file_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Memory that the index takes, about.
    pub(crate) fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Entries whose keys lie in the bounds, by key.
    pub(crate) fn in_order(&self, is_below: impl Fn(&[u8]) -> bool) -> Vec<u32> {
        if self.read().unordered() > RESORT {
            self.write().order();
        }
        let changes = self.read();
        let ordered = Arc::clone(&changes.ordered);
        let from = ordered.partition_point(|&entry| is_below(changes.key(entry)));
        let mut late: Vec<u32> = (ordered.len() as u32..changes.entries.len() as u32)
            .filter(|&entry| !is_below(changes.key(entry)))
            .collect();
        order::sort(&mut late, |entry| changes.key(entry));
        changes.merge(&ordered[from..], &late)
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

impl Changes {
    /// The version of a key that a reader at `sequence` sees.
    #[inline]
    pub(crate) fn find(&self, hash: KeyHash, key: &[u8], sequence: u64) -> Option<Version<'_>> {
        let found = self.table.find(hash.get(), |&entry| self.is(entry, hash.get(), key))?;
        self.seen_by(*found, sequence)
    }

    /// The version of an entry that a reader at `sequence` sees.
    pub(crate) fn seen_by(&self, entry: u32, sequence: u64) -> Option<Version<'_>> {
        let mut version = self.version(self.entries[entry as usize].newest);
        while version.sequence > sequence {
            if version.older == NONE {
                return None;
            }
            version = self.version(version.older);
        }
        Some(version)
    }

    /// The hash of an entry's key.
    pub(crate) fn hash(&self, entry: u32) -> KeyHash {
        KeyHash::from_raw(self.entries[entry as usize].hash)
    }

    /// Number of keys that were changed.
    pub(crate) fn keys(&self) -> usize {
        self.entries.len()
    }

    /// Starts loading the versions of these entries, all at once: they lie anywhere.
    pub(crate) fn touch(&self, entries: &[u32]) {
        let first_byte = |&entry: &u32| {
            let at = self.entries[entry as usize].newest;
            self.chunks[(at >> PLACE_BITS) as usize][(at as usize & PLACES) * ALIGN]
        };
        std::hint::black_box(entries.iter().map(first_byte).fold(0, |all, byte| all ^ byte));
    }

    fn is(&self, entry: u32, hash: u64, key: &[u8]) -> bool {
        self.entries[entry as usize].hash == hash && self.key(entry) == key
    }

    fn key(&self, entry: u32) -> &[u8] {
        self.version(self.entries[entry as usize].newest).key
    }

    fn version(&self, at: u32) -> Version<'_> {
        let bytes = &self.chunks[(at >> PLACE_BITS) as usize][(at as usize & PLACES) * ALIGN..];
        let (key_len, value_len) = (u16_at(bytes, 16) as usize, u32_at(bytes, 12) as usize);
        let (key, value) = bytes[VERSION..VERSION + key_len + value_len].split_at(key_len);
        let kind = Kind::from_code(bytes[18]).expect("versions are written with a kind");
        Version { kind, key, value, sequence: u64_at(bytes, 0), older: u32_at(bytes, 8) }
    }

    /// Adds a version and says how many bytes more that takes.
    fn add(&mut self, hash: u64, change: &NewVersion<'_>) -> usize {
        let found = self.table.find(hash, |&entry| self.is(entry, hash, change.key)).copied();
        let older = found.map_or(NONE, |entry| self.entries[entry as usize].newest);
        let (newest, bytes) = self.store(change, older);
        if let Some(entry) = found {
            self.entries[entry as usize].newest = newest;
            return bytes;
        }
        let entry = self.entries.len() as u32;
        self.entries.push(Entry { hash, newest });
        let entries = &self.entries;
        self.table.insert_unique(hash, entry, |&entry| entries[entry as usize].hash);
        bytes + size_of::<Entry>() + TABLE_SHARE
    }

    fn store(&mut self, change: &NewVersion<'_>, older: u32) -> (u32, usize) {
        let len = (VERSION + change.key.len() + change.value.len()).next_multiple_of(ALIGN);
        if self.chunks.last().is_none_or(|chunk| chunk.len() + len > CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let start = chunk.len();
        chunk.extend_from_slice(&change.sequence.to_le_bytes());
        chunk.extend_from_slice(&older.to_le_bytes());
        chunk.extend_from_slice(&(change.value.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&(change.key.len() as u16).to_le_bytes());
        chunk.push(change.kind as u8);
        chunk.extend_from_slice(change.key);
        chunk.extend_from_slice(change.value);
        chunk.resize(start + len, 0);
        ((number as u32) << PLACE_BITS | (start / ALIGN) as u32, len)
    }

    fn unordered(&self) -> usize {
        self.entries.len() - self.ordered.len()
    }

    /// Brings the entries that came since the last time into the order.
    fn order(&mut self) {
        let mut late: Vec<u32> = (self.ordered.len() as u32..self.entries.len() as u32).collect();
        order::sort(&mut late, |entry| self.key(entry));
        self.ordered = Arc::new(self.merge(&self.ordered, &late));
    }

    fn merge(&self, a: &[u32], b: &[u32]) -> Vec<u32> {
        let mut merged = Vec::with_capacity(a.len() + b.len());
        let (mut a, mut b) = (a, b);
        while let ([x, more_a @ ..], [y, more_b @ ..]) = (a, b) {
            if self.key(*x) < self.key(*y) {
                merged.push(*x);
                a = more_a;
            } else {
                merged.push(*y);
                b = more_b;
            }
        }
        merged.extend_from_slice(a);
        merged.extend_from_slice(b);
        merged
    }
}

/// Bytes of a version before its key.
const VERSION: usize = 19;
const NONE: u32 = u32::MAX;
/// Versions start at multiples of this, so that 32 bits reach 32 GiB.
const ALIGN: usize = 8;
const PLACE_BITS: u32 = 19;
const PLACES: usize = (1 << PLACE_BITS) - 1;
/// Chunks never move or grow: nobody waits while memory is copied.
const CHUNK: usize = ALIGN << PLACE_BITS;
const _: () = assert!(VERSION + crate::MAX_KEY + crate::MAX_VALUE + ALIGN < CHUNK);
/// What an entry takes in the table, about.
const TABLE_SHARE: usize = 8;
/// This many entries out of order are sorted for each scan; beyond, once for all.
const RESORT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::KeyHasher;

    fn delta() -> Delta {
        Delta::new(1, Shape::new(1 << 16, 4).unwrap(), Published { sequence: 0, records: 0 })
    }

    fn add(delta: &Delta, sequence: u64, kind: Kind, key: &str, value: &str) {
        let hash = KeyHasher::default().hash(key.as_bytes());
        let (key, value) = (key.as_bytes(), value.as_bytes());
        delta.add(&mut delta.write(), hash, &NewVersion { kind, sequence, key, value });
    }

    fn value_at(delta: &Delta, key: &str, sequence: u64) -> Option<Option<String>> {
        let hash = KeyHasher::default().hash(key.as_bytes());
        let changes = delta.read();
        let version = changes.find(hash, key.as_bytes(), sequence)?;
        Some(version.is_present().then(|| String::from_utf8(version.value.to_vec()).unwrap()))
    }

    #[test]
    fn a_reader_sees_the_version_of_its_time() {
        let delta = delta();
        add(&delta, 1, Kind::Insert, "a", "one");
        add(&delta, 3, Kind::Change, "a", "three");
        add(&delta, 5, Kind::Delete, "a", "");
        assert_eq!(value_at(&delta, "a", 0), None);
        assert_eq!(value_at(&delta, "a", 2), Some(Some("one".into())));
        assert_eq!(value_at(&delta, "a", 4), Some(Some("three".into())));
        assert_eq!(value_at(&delta, "a", 9), Some(None));
        assert_eq!(value_at(&delta, "b", 9), None);
    }

    #[test]
    fn entries_come_in_order_however_many_are_late() {
        let delta = delta();
        for round in 0..3u64 {
            for i in 0..3000u64 {
                let key =
                    format!("https://example.com/{:016x}", i.wrapping_mul(0x9E37_79B9) ^ round);
                add(&delta, round * 3000 + i + 1, Kind::Insert, &key, "");
            }
            let entries = delta.in_order(|key| key < &b"https://example.com/00000001"[..]);
            let changes = delta.read();
            let keys: Vec<&[u8]> = entries.iter().map(|&entry| changes.key(entry)).collect();
            assert!(keys.is_sorted());
            let expected = (0..changes.keys() as u32)
                .filter(|&entry| changes.key(entry) >= &b"https://example.com/00000001"[..])
                .count();
            assert_eq!(keys.len(), expected);
        }
    }
}
