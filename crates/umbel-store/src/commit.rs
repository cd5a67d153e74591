//! Group commit: concurrent writes share one append and one sync.
//!
//! A writer that finds no other writer active becomes the leader: it takes everything from the
//! queue, appends it, syncs once, and wakes the other writers with their results. No work is handed
//! to another thread, so a single writer pays for the append and the sync only.
//!
//! Order within a group: the changes are added to the index, still invisible; then they are
//! appended to the file; then the file is synced; only then do readers see them and writers return.
//! If writing fails, the store is poisoned, and changes beyond the published sequence stay
//! invisible.

use std::sync::PoisonError;

use umbel::KeyHash;

use crate::batch::{Batch, Wish};
use crate::delta::Published;
use crate::error::Result;
use crate::format::record::{Kind, RECORD, Record};
use crate::log::Log;
use crate::options::Durability;
use crate::queue::{Done, Waiting};
use crate::shared::Shared;
use crate::versions::NewVersion;
use crate::view::View;

impl Shared {
    /// Applies the changes of a batch, and returns once they are as durable as configured.
    pub(crate) fn commit(&self, batch: Batch, wants_before: bool) -> Result<Done> {
        batch.check()?;
        self.make_room()?;
        let mut queue = self.queue.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back(Waiting { ticket, batch, wants_before });
        loop {
            if let Some(answer) = queue.answers.remove(&ticket) {
                return answer;
            }
            if queue.busy {
                queue = self.queue.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.busy = true;
            let group = queue.take_group(self.options.durability);
            drop(queue);
            let answers = self.write_group(&group);
            queue = self.queue.lock();
            queue.busy = false;
            queue.answers.extend(answers);
            self.queue.changed.notify_all();
        }
    }

    fn write_group(&self, group: &[Waiting]) -> Vec<(u64, Result<Done>)> {
        let mut log = self.lock_log();
        let tickets = group.iter().map(|waiting| waiting.ticket);
        match self.try_write_group(&mut log, group) {
            Ok(done) => tickets.zip(done.into_iter().map(Ok)).collect(),
            Err(error) => tickets.map(|ticket| (ticket, Err(error.clone()))).collect(),
        }
    }

    fn try_write_group(&self, log: &mut Log, group: &[Waiting]) -> Result<Vec<Done>> {
        self.refuse_if_poisoned()?;
        log.settle_mark().inspect_err(|error| self.poison(error))?;
        let view = self.view.load_full();
        let mut writing = Writing {
            state: view.active.published(),
            salt: log.salt(),
            synced: log.is_synced(),
            ..Writing::default()
        };
        let mut all = Vec::with_capacity(group.len());
        for waiting in group {
            // A failed lookup leaves the batches before it unwritten too: nothing of the group is
            // on disk, but the index has invisible versions. So the store is poisoned.
            let done = self.apply(&view, waiting, &mut writing);
            all.push(done.inspect_err(|error| self.poison(error))?);
        }
        if writing.records == 0 {
            return Ok(all);
        }
        self.persist(log, &writing).inspect_err(|error| self.poison(error))?;
        view.active.set_file_bytes(log.len());
        view.active.publish(writing.state);
        Ok(all)
    }

    fn persist(&self, log: &mut Log, writing: &Writing) -> Result<()> {
        log.append(&writing.bytes, writing.records)?;
        match self.options.durability {
            Durability::EveryWrite | Durability::Group => log.sync(),
            Durability::Interval(_) => {
                log.check_place()?;
                self.sync_if_due(log)
            }
        }
    }

    /// Adds the changes of a batch to the index, invisible, and appends their bytes to the buffer.
    fn apply(&self, view: &View, waiting: &Waiting, writing: &mut Writing) -> Result<Done> {
        let batch = &waiting.batch;
        writing.bytes.reserve(batch.bytes() + batch.len() * RECORD);
        let first = writing.records;
        let done = Done::default();
        let versions = Vec::with_capacity(TOGETHER);
        let wants_before = waiting.wants_before;
        let mut applying = Applying { view, wants_before, writing, done, versions };
        let (mut changes, mut hashes) = (batch.iter(), Vec::with_capacity(TOGETHER));
        let mut some = Vec::with_capacity(TOGETHER);
        loop {
            some.clear();
            some.extend(changes.by_ref().take(TOGETHER));
            if some.is_empty() {
                break;
            }
            hashes.clear();
            hashes.extend(some.iter().map(|(_, key, _)| self.hasher.hash(key)));
            view.active.touch(&hashes);
            for (change, &hash) in some.iter().zip(&hashes) {
                applying.change(*change, hash)?;
            }
            applying.add_versions();
        }
        let Applying { writing, done, .. } = applying;
        if writing.records > first {
            writing.end_batch();
        }
        Ok(done)
    }
}

/// A batch that is being added to the index.
struct Applying<'a, 'g> {
    view: &'g View,
    /// Whether the writer requested the value that each key had before its change.
    wants_before: bool,
    writing: &'g mut Writing,
    done: Done,
    /// Versions not in the index yet. They are added many per lock, because taking the lock waits
    /// for all earlier stores to memory.
    versions: Vec<(KeyHash, bool, NewVersion<'a>)>,
}

impl<'a> Applying<'a, '_> {
    fn change(
        &mut self,
        (wish, key, value): (Wish, &'a [u8], &'a [u8]),
        hash: KeyHash,
    ) -> Result<()> {
        let (view, wants_before) = (self.view, self.wants_before);
        let is_new = !view.active.may_contain(hash);
        if !is_new {
            // The key may be among those.
            self.add_versions();
        }
        // The first layer is the active one.
        let layers = &view.layers[usize::from(is_new)..];
        let copy = |value: &[u8]| wants_before.then(|| value.to_vec());
        let before = view.get_from(layers, hash, key, u64::MAX, copy)?;
        let kind = match (wish, before.is_some()) {
            (Wish::Put | Wish::Insert, false) => Some(Kind::Insert),
            (Wish::Put, true) => Some(Kind::Change),
            (Wish::Delete, true) => Some(Kind::Delete),
            (Wish::Insert, true) | (Wish::Delete, false) => None,
        };
        if wants_before {
            self.done.before.push(before.flatten());
        }
        let Some(kind) = kind else { return Ok(()) };
        self.done.applied.count(kind);
        let sequence = self.writing.encode(kind, key, value);
        view.active.announce(hash);
        self.versions.push((hash, is_new, NewVersion { kind, sequence, key, value }));
        Ok(())
    }

    fn add_versions(&mut self) {
        if self.versions.is_empty() {
            return;
        }
        let active = &self.view.active;
        let mut changes = active.write();
        for (hash, is_new, version) in self.versions.drain(..) {
            active.add(&mut changes, hash, is_new, &version);
        }
    }
}

/// Changes whose memory is prefetched together, and which are added under one lock.
const TOGETHER: usize = 32;

/// A group that is being encoded for the file.
#[derive(Debug)]
struct Writing {
    bytes: Vec<u8>,
    /// Number of records in `bytes`.
    records: u64,
    /// Where the last record of the current batch starts in `bytes`.
    last: Option<usize>,
    state: Published,
    salt: u32,
    /// Whether everything before the next record is durable.
    synced: bool,
}

impl Default for Writing {
    fn default() -> Self {
        let state = Published { sequence: 0, records: 0 };
        Self { bytes: Vec::new(), records: 0, last: None, state, salt: 0, synced: false }
    }
}

impl Writing {
    /// Appends a record with the flag "batch continues", and returns its sequence.
    fn encode(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> u64 {
        self.state.sequence += 1;
        self.state.records = self.state.records.wrapping_add_signed(kind.net());
        self.records += 1;
        self.last = Some(self.bytes.len());
        let (sequence, synced) = (self.state.sequence, self.synced);
        Record { kind, more: true, synced, sequence, key, value }
            .encode(self.salt, &mut self.bytes);
        self.synced = false;
        sequence
    }

    /// Clears the flag "batch continues" in the last record of a batch.
    fn end_batch(&mut self) {
        let Some(last) = self.last.take() else { return };
        let record = self.bytes.split_off(last);
        let record = Record::decode(self.salt, &record).expect("it was just encoded");
        Record { more: false, ..record }.encode(self.salt, &mut self.bytes);
    }
}
