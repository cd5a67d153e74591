//! [`Store`]: the handle through which a program uses the store.

use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::background;
use crate::batch::{Applied, Batch};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::recover;
use crate::scan::Scan;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::storage::os::Folder;

/// A durable map from keys to small values.
///
/// Only one handle can have the folder open at a time; share it between threads behind a reference
/// or an [`Arc`]. Dropping it ends the background thread and closes the store cleanly.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("catalogue");
/// use umbel_store::{Options, Store};
///
/// let store = Store::open(&path, Options::new())?;
/// store.put(b"layer/4f53", b"component 2")?;
/// assert_eq!(store.get(b"layer/4f53")?.as_deref(), Some(&b"component 2"[..]));
/// assert_eq!(store.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens the store in a folder, creating it if there is none, and recovers from a crash.
    ///
    /// # Errors
    /// If another process or handle has it open, a file is damaged or has another format version,
    /// or there is no store and the options forbid creating one.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_on(Arc::new(Folder::new(path.as_ref())), options)
    }

    /// As [`Store::open`], on any storage.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        let recovered = recover::open(&*storage, &options)?;
        let shared = Arc::new(Shared::new(storage, options, recovered));
        let mut store = Self { shared, thread: None };
        store.start_thread()?;
        Ok(store)
    }

    /// Opens the same files again after a write has failed. Writes are accepted again, and no
    /// acknowledged write is missing. Readers and snapshots continue to work unchanged.
    ///
    /// # Errors
    /// If the files cannot be read or made durable, or no longer belong to this store
    /// ([`Error::Replaced`]). Reads continue as before, and the call can be retried.
    pub fn reopen(&mut self) -> Result<()> {
        self.end_thread();
        let old = &self.shared;
        let (storage, options) = (Arc::clone(&old.storage), old.options.clone());
        // Bytes whose sync failed can still be read now, but may be gone after a crash: remove
        // them.
        old.lock_log().cut_to_durable()?;
        recover::write_manifest(&*storage, &recover::read_manifest(&*storage)?)?;
        let recovered = recover::recover(&*storage, &options, Arc::clone(&old.lock))?;
        let (before, after) = (old.view.load().active.visible(), recovered.view.active.visible());
        let store = old.lock_upkeep().manifest.store;
        if recovered.manifest.store != store || after < before {
            return Err(Error::Replaced);
        }
        self.shared = Arc::new(Shared::new(storage, options, recovered));
        self.start_thread()
    }

    fn start_thread(&mut self) -> Result<()> {
        if self.shared.options.background {
            self.thread = Some(background::start(&self.shared)?);
        }
        Ok(())
    }

    fn end_thread(&mut self) {
        self.shared.quit();
        if let Some(thread) = self.thread.take() {
            // Ignore the result: errors were already reported to the callers that requested the
            // work.
            let _ = thread.join();
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If what should be read is damaged.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let hash = self.shared.hasher.hash(key);
        let view = self.shared.view.load();
        view.get(hash, key, view.active.visible(), <[u8]>::to_vec)
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// If what should be read is damaged.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let hash = self.shared.hasher.hash(key);
        let view = self.shared.view.load();
        Ok(view.get(hash, key, view.active.visible(), |_| ())?.is_some())
    }

    /// Sets a key's value. Returns whether the key was absent before.
    ///
    /// # Errors
    /// If key or value is too long, or the write could not be made durable.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut batch = Batch::new();
        batch.put(key, value);
        Ok(self.write(batch)?.inserted == 1)
    }

    /// Removes a key. Returns whether it was there.
    ///
    /// # Errors
    /// If the write could not be made durable.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let mut batch = Batch::new();
        batch.delete(key);
        Ok(self.write(batch)?.deleted == 1)
    }

    /// Applies all changes of a batch, or none. This also holds if the machine crashes.
    ///
    /// # Errors
    /// If a key or value is too long (nothing was changed), or the write could not be made durable
    /// (after reopening, either the whole batch is there or none of it).
    pub fn write(&self, batch: Batch) -> Result<Applied> {
        self.shared.commit(batch, false).map(|done| done.applied)
    }

    /// As [`Store::write`], and returns for each change the value that its key had just before it,
    /// in the order of the changes. No other write can happen between reading that value and the
    /// change.
    ///
    /// This lets a caller collect the changes of many clients into one batch, and still reply to
    /// each of them, for the cost of one append and one sync.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("catalogue");
    /// use umbel_store::{Batch, Options, Store};
    ///
    /// let store = Store::open(&path, Options::new())?;
    /// store.put(b"a", b"component 1")?;
    /// let mut batch = Batch::new();
    /// batch.insert(b"a", b"component 2"); // there already: stays as it is
    /// batch.insert(b"b", b"component 2"); // new
    /// batch.delete(b"a");
    /// batch.delete(b"c"); // was never there
    /// let before = store.apply(batch)?;
    /// let one = Some(b"component 1".to_vec());
    /// assert_eq!(before, [one.clone(), None, one, None]);
    /// assert_eq!(store.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn apply(&self, batch: Batch) -> Result<Vec<Option<Vec<u8>>>> {
        self.shared.commit(batch, true).map(|done| done.before)
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared.view.load().active.published().records
    }

    /// Whether the store has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The store as it is now, for reading while it changes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let view = self.shared.view.load_full();
        let state = view.active.published();
        Snapshot { view, state, hasher: self.shared.hasher }
    }

    /// Records in key order, from a range of keys, as they are now.
    ///
    /// # Errors
    /// If what should be read is damaged.
    pub fn scan<'a>(&self, range: impl RangeBounds<&'a [u8]>) -> Result<Scan> {
        self.snapshot().scan(range)
    }

    /// Records whose keys start with `prefix`, in key order, as they are now.
    ///
    /// # Errors
    /// If what should be read is damaged.
    pub fn scan_prefix(&self, prefix: &[u8]) -> Result<Scan> {
        self.snapshot().scan_prefix(prefix)
    }

    /// Syncs everything that was written, regardless of the durability setting.
    ///
    /// # Errors
    /// If the sync failed. The store is then poisoned: it rejects further writes.
    pub fn sync(&self) -> Result<()> {
        self.shared.refuse_if_poisoned()?;
        let mut log = self.shared.lock_log();
        if log.is_synced() {
            return Ok(());
        }
        log.sync().inspect_err(|error| self.shared.poison(error))
    }

    /// Merges all changes into a new master, and returns when that is done. Readers and writers
    /// continue meanwhile. Resumes a merge that was stopped.
    ///
    /// # Errors
    /// [`crate::Error::Stopped`] if it was stopped. Any other error leaves everything unchanged.
    pub fn integrate(&self) -> Result<()> {
        self.shared.integrate()
    }

    /// Asks the background thread to integrate, and returns at once.
    pub fn request_integrate(&self) {
        self.shared.ask_to_integrate();
    }

    /// Stops a running integration. What it wrote is kept, and the next integration resumes there.
    /// Automatic integration stays off until [`Store::integrate`] is called or requested.
    pub fn stop_integrate(&self) {
        self.shared.progress.held.store(true, Ordering::Relaxed);
        self.shared.progress.stop.store(true, Ordering::SeqCst);
    }

    /// Progress of the running integration; `None` if there is none.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        let progress = &self.shared.progress;
        progress.running.load(Ordering::Relaxed).then(|| Progress {
            done: progress.done.load(Ordering::Relaxed),
            total: progress.total.load(Ordering::Relaxed),
        })
    }

    /// Why writes are rejected; `None` if they are not.
    #[must_use]
    pub fn poisoned(&self) -> Option<&str> {
        self.shared.poisoned.get().map(|reason| &**reason)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end_thread();
        if self.shared.poisoned.get().is_some() {
            return;
        }
        let mut log = self.shared.lock_log();
        if log.is_synced() || log.sync().is_ok() {
            log.close(self.shared.view.load().active.visible() + 1);
        }
    }
}

/// Progress of a long operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Units of work done.
    pub done: u64,
    /// Units of work in total.
    pub total: u64,
}
