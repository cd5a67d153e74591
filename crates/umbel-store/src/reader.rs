//! A store that is only read: a folder on write-protected media, a backup, or a store between two
//! writers.
//!
//! Always true: a reader changes nothing in the folder, except that it creates the lock file if
//! there is none. What a crash left, and [`crate::Store::open`] would cut, is ignored and kept.
//!
//! Not here: reading beside a writer of the same process ([`Snapshot`]).

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::manifest::{Manifest, NAME};
use crate::guard::hasher_of;
use crate::options::Options;
use crate::recover::{read_manifest, read_parts};
use crate::snapshot::Snapshot;
use crate::stat::{Stat, sample, stat_of};
use crate::storage::Storage;
use crate::storage::os::Folder;
use crate::store::Progress;
use crate::verify::{Verified, verify};

/// A store that is only read. Several processes may read it at a time, and none may write
/// meanwhile.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("catalogue");
/// use umbel_store::{Options, Reader, Store};
///
/// Store::open(&path, Options::new())?.put(b"layer/4f53", b"component 2")?;
/// let reader = Reader::open(&path)?;
/// let value = reader.snapshot().get(b"layer/4f53")?;
/// assert_eq!(value.as_deref(), Some(&b"component 2"[..]));
/// assert_eq!(reader.verify(|_| {})?.records, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader {
    storage: Arc<dyn Storage>,
    manifest: Manifest,
    snapshot: Snapshot,
    /// Held until the reader is dropped; `None` on write-protected media.
    _lock: Option<Box<dyn Send + Sync>>,
}

impl Reader {
    /// Opens the store in a folder.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none, [`Error::Locked`] if it is open for writing; otherwise
    /// if a file is damaged or has another format version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &Options::new())
    }

    /// As [`Reader::open`], with the filter settings of these options: the number of bits, and
    /// whether filters are used. All other options are ignored.
    ///
    /// # Errors
    /// As [`Reader::open`]; [`Error::Options`] if an option is out of its range.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        options.check()?;
        Self::read(Arc::new(Folder::new(path.as_ref())), options)
    }

    /// As [`Reader::open`], on any storage.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_on(storage: Arc<dyn Storage>) -> Result<Self> {
        Self::read(storage, &Options::new())
    }

    fn read(storage: Arc<dyn Storage>, options: &Options) -> Result<Self> {
        let names = storage.list().map_err(Error::io("list", "the folder"))?;
        if !names.iter().any(|name| name == NAME) {
            return Err(Error::Missing);
        }
        let lock = lock_to_read(&*storage)?;
        let manifest = read_manifest(&*storage)?;
        let snapshot = read_snapshot(&*storage, &manifest, options)?;
        Ok(Self { storage, manifest, snapshot, _lock: lock })
    }

    /// The state of the store, for reading.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// As [`crate::Store::verify`].
    ///
    /// # Errors
    /// What is damaged, and where.
    pub fn verify(&self, progress: impl FnMut(Progress)) -> Result<Verified> {
        let active_bytes = self.snapshot.view.active.file_bytes();
        verify(&*self.storage, &self.manifest, &self.snapshot, active_bytes, progress)
    }

    /// Statistics about the store.
    #[must_use]
    pub fn stat(&self) -> Stat {
        stat_of(&self.snapshot.view, self.manifest.generation)
    }

    /// As [`crate::Store::sample_filter`].
    ///
    /// # Errors
    /// If what should be read is damaged.
    pub fn sample_filter(&self, wanted: u64) -> Result<(u64, u64)> {
        sample(&self.snapshot, wanted)
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// Locks out writers; `None` on write-protected media, where there can be none.
pub(crate) fn lock_to_read(storage: &dyn Storage) -> Result<Option<Box<dyn Send + Sync>>> {
    storage.lock_to_read().map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Error::Locked,
        _ => Error::io("lock", "the folder")(error),
    })
}

/// A snapshot of the files that a manifest names, without changing any of them.
pub(crate) fn read_snapshot(
    storage: &dyn Storage,
    manifest: &Manifest,
    options: &Options,
) -> Result<Snapshot> {
    let (view, _) = read_parts(storage, manifest, options)?;
    let state = view.active.published();
    Ok(Snapshot { view: Arc::new(view), state, hasher: hasher_of(manifest.store) })
}
