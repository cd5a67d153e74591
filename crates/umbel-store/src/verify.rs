//! Reads all files of a store, and checks that they are intact and consistent with each other.

use crate::error::{Error, Result};
use crate::format::manifest::{self, Manifest};
use crate::log::replay;
use crate::recover::read_manifest;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::store::{Progress, Store};
use crate::view::Layer;

/// What was checked and found correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Number of keys, counted one by one.
    pub records: u64,
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
}

impl Store {
    /// Checks every checksum, the order of keys, that index and filter lead to each key,
    /// and that the number of records counted is the one the store reports. `progress` receives the
    /// number of bytes checked so far. Readers and writers continue meanwhile.
    ///
    /// # Errors
    /// What is damaged, and where.
    pub fn verify(&self, progress: impl FnMut(Progress)) -> Result<Verified> {
        let shared = self.shared();
        // While this lock is held no file is removed.
        let upkeep = shared.lock_upkeep();
        let (snapshot, log_bytes) = {
            let log = shared.lock_log();
            (self.snapshot(), log.len())
        };
        verify(&*shared.storage, &upkeep.manifest, &snapshot, log_bytes, progress)
    }
}

/// As [`Store::verify`], for what a snapshot sees. Of the newest differential file, only the first
/// `active_bytes` bytes are checked.
pub(crate) fn verify(
    storage: &dyn Storage,
    manifest: &Manifest,
    snapshot: &Snapshot,
    active_bytes: u64,
    mut progress: impl FnMut(Progress),
) -> Result<Verified> {
    let view = &snapshot.view;
    let sorted: Vec<_> = view.sorted_files().collect();
    let total = sorted.iter().map(|sorted| sorted.len_bytes()).sum();
    let mut done = 0;
    for file in &sorted {
        let start = done;
        file.verify(&snapshot.hasher, |bytes| {
            done += bytes;
            progress(Progress { done, total });
        })?;
        done = start + file.len_bytes();
        progress(Progress { done, total });
    }
    let mut files = 1 + sorted.len() as u64;
    if read_manifest(storage)? != *manifest {
        return Err(Error::corrupt(manifest::NAME, 0, "another manifest is in its place"));
    }
    for layer in &view.layers {
        if let Layer::Delta(delta) = layer {
            let is_active = delta.number == view.active.number;
            let limit = if is_active { active_bytes } else { delta.file_bytes() };
            done += verify_differential(storage, delta.number, limit, delta.updates())?;
            files += 1;
        }
    }
    let records = count(snapshot)?;
    Ok(Verified { records, files, bytes: done })
}

fn verify_differential(
    storage: &dyn Storage,
    number: u64,
    limit: u64,
    updates: u64,
) -> Result<u64> {
    let name = manifest::differential_name(number);
    let bytes = storage.read(&name).map_err(Error::io("read", &name))?;
    let whole = bytes.get(..limit as usize).unwrap_or(&bytes);
    let header =
        crate::format::record::Header::decode(whole).map_err(|error| error.in_file(&name, 0))?;
    // Take the first sequence from the first record: it was checked when the store was opened.
    let first = crate::format::record::Record::decode(header.salt, &whole[header_len(whole)..])
        .map_or(header.first_sequence, |record| record.sequence);
    let found = replay(&name, whole, number, first, |_| {})?;
    if found.torn_bytes > 0 || whole.len() as u64 != limit || found.records > updates {
        let offset = found.good_bytes as usize;
        return Err(Error::corrupt(&name, offset, "records that were durable are damaged"));
    }
    Ok(limit)
}

/// Counts the records one by one; an error if the number differs from the one the store keeps.
pub(crate) fn count(snapshot: &Snapshot) -> Result<u64> {
    let mut records = 0;
    for record in snapshot.scan(..)? {
        record?;
        records += 1;
    }
    if records == snapshot.len() {
        Ok(records)
    } else {
        Err(Error::corrupt(manifest::NAME, 0, "the number of records is wrong"))
    }
}

fn header_len(bytes: &[u8]) -> usize {
    crate::format::record::HEADER.min(bytes.len())
}
