//! The index of one differential file, in memory: every version of every changed key.
//!
//! Readers query the filter first, without a lock; only if it says maybe do they look into the
//! table. A version is never changed or moved once added. It carries its sequence, so that a
//! snapshot skips versions that are newer than itself.
//!
//! ```text
//! table: hash → entry        entry: half of the hash, newest version (`versions`)
//! ```
//!
//! Always true: a chain leads from newer to older versions of one key; every entry's key is in the
//! filter before its first version becomes visible.
//!
//! Not here: the file (`log`), the memory layout of a version (`versions`), and which versions a
//! reader may see (`view`).

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashTable;
use umbel::{KeyHash, Shape};

use crate::format::record::Kind;
use crate::guard::LiveFilter;
use crate::order;
use crate::versions::{NONE, NewVersion, Version, Versions};

/// The index of one differential file.
#[derive(Debug)]
pub(crate) struct Delta {
    /// Number of the file it is the index of.
    pub(crate) number: u64,
    filter: LiveFilter,
    changes: RwLock<Changes>,
    /// The newest state that readers may see.
    published: Mutex<Published>,
    visible: AtomicU64,
    updates: AtomicU64,
    /// Keys that no older layer had when they were first changed here.
    inserted: AtomicU64,
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
    /// Expected number of entries: a table that grows large is given its full size at once.
    planned: usize,
    entries: Vec<Entry>,
    versions: Versions,
    /// The first entries, sorted by key; later entries are not sorted yet.
    ordered: Arc<Vec<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    newest: u32,
}

impl Entry {
    /// Half of the hash is enough to tell keys apart, and takes half the memory.
    fn short(hash: KeyHash) -> u32 {
        hash.get() as u32
    }

    /// The hash table takes the bucket from the low bits and the tag from the highest bits.
    fn spread(short: u32) -> u64 {
        u64::from(short) << 32 | u64::from(short)
    }
}

impl Delta {
    /// An empty index that is expected to have about `planned` entries at most.
    pub(crate) fn new(number: u64, shape: Shape, planned: u64, published: Published) -> Self {
        let (versions, planned) = (Versions::after(published.sequence), planned as usize);
        Self {
            number,
            filter: LiveFilter::new(shape),
            changes: RwLock::new(Changes { planned, versions, ..Changes::default() }),
            visible: AtomicU64::new(published.sequence),
            published: Mutex::new(published),
            updates: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
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

    /// Prefetches the memory that adding these keys will need, all of it at once.
    pub(crate) fn touch(&self, hashes: &[KeyHash]) {
        hashes.iter().for_each(|hash| self.filter.touch(*hash));
        self.read().touch_table(hashes);
    }

    /// Adds a key to the filter, before a version of it is added. Only one thread at a time may do
    /// so.
    #[inline]
    pub(crate) fn announce(&self, hash: KeyHash) {
        self.filter.insert(hash);
        // A load and a store, not a locked instruction: no other thread adds.
        self.updates.store(self.updates() + 1, Ordering::Relaxed);
    }

    /// Adds a version of a key that was announced; `is_new` if the key has none here. It is
    /// invisible until it is published. Holding the lock makes this the only thread that adds.
    pub(crate) fn add(
        &self,
        changes: &mut Changes,
        hash: KeyHash,
        is_new: bool,
        change: &NewVersion<'_>,
    ) {
        let keys = changes.keys();
        let grown = changes.add(hash, is_new, change);
        if changes.keys() > keys && change.kind == Kind::Insert {
            self.inserted.store(self.inserted() + 1, Ordering::Relaxed);
        }
        self.memory.store(self.memory() + grown, Ordering::Relaxed);
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

    /// The last sequence that readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Changes in this file so far: what paper 2 calls u.
    pub(crate) fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    /// Keys that are in the filter, however often each was changed.
    pub(crate) fn keys(&self) -> u64 {
        self.read().keys() as u64
    }

    /// Keys that were absent before their first change here.
    pub(crate) fn inserted(&self) -> u64 {
        self.inserted.load(Ordering::Relaxed)
    }

    /// By how much the changes change the number of records.
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

    /// Entries for whose keys `is_below` is false, sorted by key.
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

impl Changes {
    /// The version of a key that a reader at `sequence` sees.
    #[inline]
    pub(crate) fn find(&self, hash: KeyHash, key: &[u8], sequence: u64) -> Option<Version<'_>> {
        self.seen_by(self.entry(hash, key)?, sequence)
    }

    #[inline]
    fn entry(&self, hash: KeyHash, key: &[u8]) -> Option<u32> {
        let short = Entry::short(hash);
        let is_it =
            |&entry: &u32| self.entries[entry as usize].hash == short && self.key(entry) == key;
        self.table.find(Entry::spread(short), is_it).copied()
    }

    /// The version of an entry that a reader at `sequence` sees.
    pub(crate) fn seen_by(&self, entry: u32, sequence: u64) -> Option<Version<'_>> {
        let mut version = self.versions.at(self.entries[entry as usize].newest);
        while version.sequence > sequence {
            if version.older == NONE {
                return None;
            }
            version = self.versions.at(version.older);
        }
        Some(version)
    }

    /// Number of keys that were changed.
    pub(crate) fn keys(&self) -> usize {
        self.entries.len()
    }

    /// Prefetches the buckets of the table into which these keys will go. It relies on the table
    /// using the low bits of a hash as the first bucket to try, which is an implementation detail:
    /// if that changes, this only gets slower.
    fn touch_table(&self, hashes: &[KeyHash]) {
        let last = self.table.num_buckets().wrapping_sub(1);
        for &hash in hashes {
            let at = Entry::short(hash) as usize;
            let near = (at..at + 8).find_map(|at| self.table.get_bucket(at & last));
            std::hint::black_box(near.copied());
        }
    }

    /// Prefetches the versions of these entries, all at once: they are scattered in memory.
    pub(crate) fn touch(&self, entries: &[u32]) {
        let newest = entries.iter().map(|&entry| self.entries[entry as usize].newest);
        self.versions.touch(newest);
    }

    fn key(&self, entry: u32) -> &[u8] {
        self.versions.at(self.entries[entry as usize].newest).key
    }

    /// Adds a version, and returns how many bytes the index grew.
    fn add(&mut self, hash: KeyHash, is_new: bool, change: &NewVersion<'_>) -> usize {
        let found = if is_new { None } else { self.entry(hash, change.key) };
        let older = found.map_or(NONE, |entry| self.entries[entry as usize].newest);
        let (newest, bytes) = self.versions.push(change, older);
        if let Some(entry) = found {
            self.entries[entry as usize].newest = newest;
            return bytes;
        }
        let (entry, hash) = (self.entries.len() as u32, Entry::short(hash));
        self.entries.push(Entry { hash, newest });
        self.make_room();
        let entries = &self.entries;
        let hash_of = |&entry: &u32| Entry::spread(entries[entry as usize].hash);
        self.table.insert_unique(Entry::spread(hash), entry, hash_of);
        bytes + size_of::<Entry>() + TABLE_SHARE
    }

    /// Grows a large table to its planned size in one step. Growing rehashes all entries, which
    /// reads memory in random order; past a certain size that should happen only once.
    fn make_room(&mut self) {
        let len = self.table.len();
        if len == self.table.capacity() && len > self.planned / 16 {
            let entries = &self.entries;
            let hash_of = |&entry: &u32| Entry::spread(entries[entry as usize].hash);
            self.table.reserve(self.planned.saturating_sub(len).max(1), hash_of);
        }
    }

    fn unordered(&self) -> usize {
        self.entries.len() - self.ordered.len()
    }

    /// Merges the entries added since the last call into the sorted ones.
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

/// Memory that an entry takes in the table, about.
const TABLE_SHARE: usize = 8;
/// Up to this many unsorted entries are sorted anew for each scan; more are sorted once and kept.
const RESORT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::KeyHasher;

    fn delta() -> Delta {
        let published = Published { sequence: 0, records: 0 };
        Delta::new(1, Shape::new(1 << 16, 4).unwrap(), 1000, published)
    }

    fn add(delta: &Delta, sequence: u64, kind: Kind, key: &str, value: &str) {
        let hash = KeyHasher::default().hash(key.as_bytes());
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let is_new = !delta.may_contain(hash);
        delta.announce(hash);
        delta.add(&mut delta.write(), hash, is_new, &NewVersion { kind, sequence, key, value });
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

    #[test]
    fn keys_are_counted_once_however_often_they_change() {
        let delta = delta();
        add(&delta, 1, Kind::Insert, "new", "one");
        add(&delta, 2, Kind::Change, "old", "one");
        add(&delta, 3, Kind::Change, "new", "two");
        add(&delta, 4, Kind::Delete, "old", "");
        add(&delta, 5, Kind::Insert, "old", "again");
        assert_eq!((delta.updates(), delta.keys(), delta.inserted()), (5, 2, 1));
    }
}
