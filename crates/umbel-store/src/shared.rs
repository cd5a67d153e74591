//! State shared by the handle, its background thread and its writers.
//!
//! Lock order: first `upkeep` (to rotate, sort, integrate or back up), then `log` (to write a group
//! or switch files), then the lock of an index. Readers take neither of the first two: they load
//! the view.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use umbel::KeyHasher;

use crate::error::{Error, Result};
use crate::file_set::FileSet;
use crate::guard::hasher_of;
use crate::log::Log;
use crate::options::{Durability, Options};
use crate::queue::Queue;
use crate::recover::Recovered;
use crate::storage::Storage;
use crate::view::View;

pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: Options,
    pub(crate) hasher: KeyHasher,
    pub(crate) view: ArcSwap<View>,
    pub(crate) queue: Queue,
    pub(crate) poisoned: OnceLock<Arc<str>>,
    pub(crate) progress: ProgressCounts,
    pub(crate) generation: AtomicU64,
    log: Mutex<Log>,
    last_sync: Mutex<Instant>,
    upkeep: Mutex<FileSet>,
    pub(crate) signals: Mutex<Signals>,
    pub(crate) signalled: Condvar,
    /// The folder's lock, held until the last handle is dropped.
    pub(crate) lock: Arc<dyn Send + Sync>,
}

/// State and progress of integration.
#[derive(Debug, Default)]
pub(crate) struct ProgressCounts {
    pub(crate) running: AtomicBool,
    pub(crate) stop: AtomicBool,
    /// Stopped on request: do not start automatically until integration is requested.
    pub(crate) held: AtomicBool,
    pub(crate) done: AtomicU64,
    pub(crate) total: AtomicU64,
}

/// Requests to the background thread, and its results.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) quit: bool,
    pub(crate) room: bool,
    pub(crate) integrate: bool,
    /// Incremented each time the thread has processed its requests.
    pub(crate) rounds: u64,
    /// Why the last attempt failed, if it did.
    pub(crate) trouble: Option<Arc<str>>,
}

impl Shared {
    pub(crate) fn new(storage: Arc<dyn Storage>, options: Options, recovered: Recovered) -> Self {
        let Recovered { lock, manifest, view, log, unfinished } = recovered;
        Self {
            storage,
            options,
            hasher: hasher_of(manifest.store),
            view: ArcSwap::from_pointee(view),
            queue: Queue::default(),
            poisoned: OnceLock::new(),
            progress: ProgressCounts::default(),
            generation: AtomicU64::new(manifest.generation),
            log: Mutex::new(log),
            last_sync: Mutex::new(Instant::now()),
            upkeep: Mutex::new(FileSet::new(manifest, unfinished)),
            signals: Mutex::default(),
            signalled: Condvar::new(),
            lock,
        }
    }

    pub(crate) fn lock_log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_upkeep(&self) -> MutexGuard<'_, FileSet> {
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_signals(&self) -> MutexGuard<'_, Signals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn refuse_if_poisoned(&self) -> Result<()> {
        match self.poisoned.get() {
            Some(reason) => Err(Error::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// Rejects all writes from now on; the first reason is kept.
    pub(crate) fn poison(&self, error: &Error) {
        let _ = self.poisoned.set(error.to_string().into());
    }

    /// Syncs if the interval is over.
    pub(crate) fn sync_if_due(&self, log: &mut Log) -> Result<()> {
        let Durability::Interval(interval) = self.options.durability else { return Ok(()) };
        let mut last = self.last_sync.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= interval && !log.is_synced() {
            log.sync()?;
            *last = Instant::now();
        }
        Ok(())
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("storage", &self.storage).finish_non_exhaustive()
    }
}
