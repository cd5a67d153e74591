//! The journal: changes on their way to the store. They are visible at once, and become durable in
//! batches.
//!
//! A change is visible to everybody as soon as it is put here. One thread takes all pending
//! changes, writes them as one batch (one sync, however many connections they came from), and then
//! publishes up to which ticket everything is on disk. A caller that must not acknowledge a change
//! before it is durable waits for its ticket.
//!
//! Always true: changes reach the store in the order in which they were made. While the store
//! cannot be written no change is accepted, and every wait ends with the reason. Changes that were
//! visible and could not be written stay visible, and are written first when there is room again;
//! the thread retries by itself. After damage to data that is read, nothing is written any more.

use std::collections::HashMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use smallvec::SmallVec;
use tokio::sync::watch;
use umbel_store::{Batch, Snapshot, Store};

use super::layout;
use super::{SetNumber, SetRecord};
use crate::counts::Counts;
use crate::error::HostError;
use crate::latency::{Latency, LatencyReport};

/// Stands for a change that becomes durable. Tickets are ordered: a later one covers all earlier
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(u64);

impl Ticket {
    /// Nothing to wait for.
    pub const NONE: Self = Self(0);
}

/// Changes by record name; `None` deletes.
type Changes = HashMap<Box<[u8]>, Option<Record>>;

/// The value of a record: usually a component, which needs no allocation.
type Record = SmallVec<[u8; 8]>;

#[derive(Debug)]
pub(crate) struct Journal {
    /// Locked for writing only while it is reopened.
    store: RwLock<Store>,
    state: Mutex<State>,
    changed: Condvar,
    done: watch::Sender<Done>,
    /// How long it took to write and sync each batch.
    syncs: Latency,
    /// Writes that failed.
    failures: AtomicU64,
    /// Held while a backup is written: one at a time.
    backups: Mutex<()>,
}

/// The state of the store.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only metrics report it"))]
pub(crate) struct JournalReport {
    /// Bytes of its files.
    pub(crate) disk_bytes: u64,
    /// Writes that failed.
    pub(crate) failures: u64,
    /// How long it took to write and sync each batch.
    pub(crate) syncs: LatencyReport,
}

#[derive(Debug)]
struct State {
    /// Pending changes, and the ticket that they will have.
    waiting: Changes,
    next: u64,
    /// Changes that are being written.
    writing: Arc<Changes>,
    failed: Option<Failure>,
    closing: bool,
}

/// Why no change is accepted.
#[derive(Debug, Clone)]
struct Failure {
    reason: Arc<str>,
    /// Whether only a restart can end it: data that was read is damaged.
    is_final: bool,
}

/// Up to this number of sets, they are read one by one without merging changes first.
const MANY_SETS: usize = 64;
/// The first and the longest pause before a store is reopened.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// Up to which ticket everything is durable, and the failure if there is one.
#[derive(Debug, Clone, Default)]
struct Done {
    ticket: u64,
    failed: Option<Arc<str>>,
}

/// A snapshot of the store, and the changes that were not in it yet.
pub(super) struct Moment {
    pub(super) snapshot: Snapshot,
    /// By record name: whether the record exists.
    pub(super) unwritten: HashMap<Box<[u8]>, bool>,
}

impl Journal {
    /// A journal for a store, and the thread that writes it.
    pub(crate) fn start(store: Store) -> std::io::Result<(Arc<Self>, JoinHandle<()>)> {
        let state = State {
            waiting: Changes::new(),
            next: 1,
            writing: Arc::default(),
            failed: None,
            closing: false,
        };
        let (done, _) = watch::channel(Done::default());
        let journal = Arc::new(Self {
            store: RwLock::new(store),
            state: Mutex::new(state),
            changed: Condvar::new(),
            done,
            syncs: Latency::default(),
            failures: AtomicU64::new(0),
            backups: Mutex::default(),
        });
        let writer = Arc::clone(&journal);
        let thread = std::thread::Builder::new().name("umbel-journal".into());
        Ok((journal, thread.spawn(move || writer.write_until_closed())?))
    }

    /// Reads a record in its latest version.
    pub(crate) fn get<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        {
            let state = self.state.lock();
            if let Some(change) = state.waiting.get(name).or_else(|| state.writing.get(name)) {
                return change.as_deref().map(read);
            }
        }
        let read_back = self.store.read().get(name);
        match read_back {
            Ok(value) => value.as_deref().map(read),
            Err(error) => {
                self.fail(&error.to_string());
                None
            }
        }
    }

    /// Sets a record.
    pub(crate) fn put(&self, name: Box<[u8]>, value: &[u8]) {
        self.change(name, Some(value.into()));
    }

    /// Sets a record unless it exists; returns whether it is new.
    pub(crate) fn insert(&self, name: Box<[u8]>, value: &[u8]) -> bool {
        let held = self.get(&name, |_| ()).is_some();
        if !held {
            self.put(name, value);
        }
        !held
    }

    /// Deletes a record.
    pub(crate) fn delete(&self, name: Box<[u8]>) {
        self.change(name, None);
    }

    fn change(&self, name: Box<[u8]>, value: Option<Record>) {
        let mut state = self.state.lock();
        let first = state.waiting.is_empty();
        state.waiting.insert(name, value);
        if first {
            self.changed.notify_all();
        }
    }

    /// A ticket that covers every change made so far.
    pub(crate) fn ticket(&self) -> Ticket {
        let state = self.state.lock();
        match (state.waiting.is_empty(), state.writing.is_empty()) {
            (false, _) => Ticket(state.next),
            (true, false) => Ticket(state.next - 1),
            (true, true) => Ticket::NONE,
        }
    }

    /// Returns an error if nothing can be written at present.
    pub(crate) fn check(&self) -> Result<(), HostError> {
        match self.failure() {
            Some(reason) => Err(HostError::Catalogue(reason.to_string())),
            None => Ok(()),
        }
    }

    /// Why nothing can be written at present, if so.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.state.lock().failed.as_ref().map(|failure| Arc::clone(&failure.reason))
    }

    /// Waits until everything up to the ticket is durable.
    pub(crate) async fn settled(&self, ticket: Ticket) -> Result<(), HostError> {
        let mut done = self.done.subscribe();
        let reached = done.wait_for(|done| done.ticket >= ticket.0 || done.failed.is_some()).await;
        match reached {
            Ok(done) if done.ticket >= ticket.0 => Ok(()),
            Ok(done) => {
                let reason = done.failed.as_deref().unwrap_or("unknown");
                Err(HostError::Catalogue(reason.to_owned()))
            }
            Err(_) => Err(HostError::Stopping),
        }
    }

    /// Calls `show` with the records that start with `prefix`, from `prefix` followed by `from` on,
    /// in order, until `show` returns false. Waits for pending writes first.
    pub(crate) fn scan_from(
        &self,
        prefix: &[u8],
        from: &[u8],
        show: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) {
        self.flush();
        let start = [prefix, from].concat();
        let scanned = self.store.read().scan((Bound::Included(start.as_slice()), Bound::Unbounded));
        let outcome = scanned.and_then(|records| {
            for record in records {
                let (key, value) = record?;
                if !key.starts_with(prefix) || !show(&key, &value) {
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.fail(&error.to_string());
        }
    }

    /// Prepares for passes over the records of this many sets, one set after the other. A pass
    /// reads all recent changes of all sets, but of the master only the set's own records: with
    /// many sets it is faster to merge the changes into the master first.
    pub(crate) fn prepare_passes(&self, sets: usize) {
        if sets <= MANY_SETS {
            return;
        }
        tracing::info!(sets, "merging recent changes, to read the sets one by one");
        if let Err(error) = self.store.read().integrate() {
            // Passes are slower then, but correct: a full disk must not prevent reading.
            tracing::warn!(%error, "recent changes could not be merged");
        }
    }

    /// Calls `show` with all records that start with `prefix`, in no particular order. Waits for
    /// pending writes first.
    pub(crate) fn visit(&self, prefix: &[u8], show: &mut dyn FnMut(&[u8], &[u8])) {
        self.flush();
        let snapshot = self.store.read().snapshot();
        if let Err(error) = snapshot.visit_prefix(prefix, show) {
            self.fail(&error.to_string());
        }
    }

    /// A snapshot of the store, and the changes of records that start with `prefix` which are not
    /// in it yet. Does not wait for the disk.
    pub(super) fn moment(&self, prefix: &[u8]) -> Moment {
        let state = self.state.lock();
        let recent = state.writing.iter().chain(&state.waiting);
        let recent = recent.filter(|(name, _)| name.starts_with(prefix));
        // If a record is in both, the waiting change is later and wins.
        let unwritten = recent.map(|(name, value)| (name.clone(), value.is_some())).collect();
        Moment { snapshot: self.store.read().snapshot(), unwritten }
    }

    /// Writes records directly, bypassing the queue: for rewriting many. Empties `records`.
    pub(crate) fn write_now<const N: usize>(&self, records: &mut Vec<(Box<[u8]>, [u8; N])>) {
        let mut batch = Batch::new();
        for (name, value) in records.drain(..) {
            batch.put(&name, &value);
        }
        let written = self.store.read().write(batch);
        if let Err(error) = written {
            // Some of them may be written: only a restart can find out which.
            self.fail(&error.to_string());
        }
    }

    /// Held by the only backup at a time; `None` while there is another.
    pub(crate) fn lock_backups(&self) -> Option<MutexGuard<'_, ()>> {
        self.backups.try_lock()
    }

    /// Gives the store's files a second name in an empty directory and copies recent changes there:
    /// the store as it is now. Writes wait meanwhile.
    pub(crate) fn link_store(&self, to: &Path) -> umbel_store::Result<()> {
        self.store.read().backup_linked(to, |_| ()).map(drop)
    }

    /// Waits until all changes are written.
    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        while state.failed.is_none() && !(state.waiting.is_empty() && state.writing.is_empty()) {
            self.changed.wait(&mut state);
        }
    }

    /// Writes pending changes, and ends the thread.
    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.changed.notify_all();
    }

    /// Rejects all further changes: data that was read is damaged.
    pub(super) fn fail(&self, reason: &str) {
        tracing::error!(reason, "the catalogue failed: no more changes are accepted");
        self.set_failure(reason, true);
    }

    /// Rejects changes until the store can be written again.
    fn fail_for_now(&self, reason: &str) {
        if self.failure().is_none() {
            tracing::error!(
                reason,
                "the catalogue cannot be written: changes are refused until it can"
            );
        }
        self.set_failure(reason, false);
    }

    /// The first reason is kept: later ones follow from it.
    fn set_failure(&self, reason: &str, is_final: bool) {
        let reason = {
            let mut state = self.state.lock();
            let failure = Failure { reason: reason.into(), is_final };
            let failure = state.failed.get_or_insert(failure);
            failure.is_final |= is_final;
            Arc::clone(&failure.reason)
        };
        self.done.send_modify(|done| done.failed = Some(reason));
        self.changed.notify_all();
    }

    /// Records that the current batch is on disk.
    fn wrote(&self, ticket: u64) {
        let failed = {
            let mut state = self.state.lock();
            state.writing = Arc::default();
            if state.failed.take_if(|failure| !failure.is_final).is_some() {
                tracing::info!("the catalogue can be written again: changes are accepted");
            }
            state.failed.as_ref().map(|failure| Arc::clone(&failure.reason))
        };
        self.done.send_modify(|done| *done = Done { ticket, failed });
        self.changed.notify_all();
    }

    fn write_until_closed(&self) {
        while let Some((ticket, changes)) = self.take() {
            let mut written = self.write_timed(&changes);
            let (mut pause, longest) = PAUSES;
            while let Err(error) = written {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.fail_for_now(&error.to_string());
                if self.is_closing_within(pause) {
                    return;
                }
                pause = (2 * pause).min(longest);
                written = self.reopen().and_then(|()| self.write_timed(&changes));
            }
            self.wrote(ticket);
        }
    }

    fn write_timed(&self, changes: &Changes) -> umbel_store::Result<()> {
        let begun = Instant::now();
        self.store.read().write(batch_of(changes))?;
        self.syncs.observe(begun.elapsed());
        Ok(())
    }

    /// The state of the store.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only metrics report it"))]
    pub(crate) fn report(&self) -> JournalReport {
        let stat = self.store.read().stat();
        JournalReport {
            disk_bytes: stat.master_bytes + stat.differential_bytes,
            failures: self.failures.load(Ordering::Relaxed),
            syncs: self.syncs.report(),
        }
    }

    fn reopen(&self) -> umbel_store::Result<()> {
        self.store.write().reopen()
    }

    /// Waits for at most `pause`; returns whether the journal is being closed.
    fn is_closing_within(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.closing {
            self.changed.wait_while_for(&mut state, |state| !state.closing, pause);
        }
        state.closing
    }

    /// Waits for pending changes and takes them all; `None` when closed and everything is written.
    fn take(&self) -> Option<(u64, Arc<Changes>)> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.closing {
                return None;
            }
            self.changed.wait(&mut state);
        }
        state.writing = Arc::new(std::mem::take(&mut state.waiting));
        let ticket = state.next;
        state.next += 1;
        Some((ticket, Arc::clone(&state.writing)))
    }

    // ---- what a host remembers of itself

    /// Refuses a folder that a later version has written in a layout unknown to this one.
    pub(crate) fn check_layout(&self) -> Result<(), String> {
        let read = |value: &[u8]| value.try_into().map_or(u32::MAX, u32::from_le_bytes);
        match self.get(layout::VERSION_NAME, read) {
            None => {
                self.put(layout::VERSION_NAME.into(), &layout::VERSION.to_le_bytes());
                Ok(())
            }
            Some(version) if version <= layout::VERSION => Ok(()),
            Some(version) => Err(format!(
                "a newer umbel has written it (layout {version}, this one reads {}): run that one, \
                 or give this one another folder",
                layout::VERSION
            )),
        }
    }

    pub(crate) fn incarnation(&self) -> Option<u64> {
        self.get(layout::INCARNATION, |value| value.try_into().ok().map(u64::from_le_bytes))?
    }

    pub(crate) fn set_incarnation(&self, incarnation: u64) {
        self.put(layout::INCARNATION.into(), &incarnation.to_le_bytes());
    }

    /// The own sets, by name.
    pub(crate) fn sets(&self) -> Result<Vec<(String, SetRecord)>, HostError> {
        let (mut sets, mut damaged) = (Vec::new(), None);
        self.visit(layout::SETS, &mut |name, value| {
            let name = String::from_utf8_lossy(&name[layout::SETS.len()..]).into_owned();
            match serde_json::from_slice(value) {
                Ok(record) => sets.push((name, record)),
                Err(error) => damaged = Some(format!("the record of set '{name}': {error}")),
            }
        });
        sets.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.check()?;
        damaged.map_or(Ok(sets), |reason| Err(HostError::Catalogue(reason)))
    }

    pub(crate) fn put_set(&self, name: &str, record: &SetRecord) {
        let json = serde_json::to_vec(record).expect("a record of numbers and text");
        self.put(layout::set(name), &json);
    }

    /// Deletes the record of a set; its keys must be deleted after it.
    pub(crate) fn delete_set(&self, name: &str) {
        self.delete(layout::set(name));
    }

    /// Deletes the keys of a deleted set.
    pub(crate) fn delete_keys(&self, number: SetNumber) {
        self.delete(layout::floor(number));
        self.delete(layout::deleted(number));
        for prefix in [layout::keys(number), layout::lifetimes(number), layout::counts(number)] {
            let mut names: Vec<Box<[u8]>> = Vec::new();
            self.visit(&prefix, &mut |name, _| names.push(name.into()));
            names.into_iter().for_each(|name| self.delete(name));
        }
    }

    pub(crate) fn lifetimes(&self, set: SetNumber) -> Vec<(Box<[u8]>, u64)> {
        let (prefix, mut all) = (layout::lifetimes(set), Vec::new());
        self.visit(&prefix, &mut |name, value| {
            if let Ok(at) = value.try_into() {
                all.push((name[prefix.len()..].into(), u64::from_le_bytes(at)));
            }
        });
        all
    }

    pub(crate) fn counts(&self, set: SetNumber) -> Counts {
        let (prefix, mut counts) = (layout::counts(set), Counts::default());
        self.visit(&prefix, &mut |name, value| {
            if let Ok(repeats) = value.try_into() {
                counts.set_repeats(&name[prefix.len()..], u32::from_le_bytes(repeats));
            }
        });
        let deleted = self.get(&layout::deleted(set), |value| value.try_into().ok());
        counts.set_deleted(deleted.flatten().map_or(0, u64::from_le_bytes));
        counts
    }

    pub(crate) fn set_repeats(&self, set: SetNumber, key: &[u8], repeats: u32) {
        let name = layout::count(set, key);
        match repeats {
            0 => self.delete(name),
            _ => self.put(name, &repeats.to_le_bytes()),
        }
    }

    pub(crate) fn set_deleted(&self, set: SetNumber, deleted: u64) {
        self.put(layout::deleted(set), &deleted.to_le_bytes());
    }

    pub(crate) fn set_lifetime(&self, set: SetNumber, key: &[u8], at: Option<u64>) {
        let name = layout::lifetime(set, key);
        match at {
            Some(at) => self.put(name, &at.to_le_bytes()),
            None => self.delete(name),
        }
    }
}

/// Converts changes to a batch of the store.
fn batch_of(changes: &Changes) -> Batch {
    let mut batch = Batch::new();
    for (name, value) in changes {
        match value {
            Some(value) => batch.put(name, value),
            None => batch.delete(name),
        };
    }
    batch
}
