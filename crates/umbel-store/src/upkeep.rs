//! Turns changes into a new master, or into sorted files, while readers and writers continue.
//!
//! ```text
//!  rotate     a new differential file; the one before it takes no more changes
//!  sort       one such file, by key, with its index on disk; for when memory runs short
//!  integrate  master + all such files → a new master
//! ```
//!
//! Each ends the same way: the new file is made durable under its name, then the manifest is
//! replaced in one step, then the view is switched, then files that are no longer named are
//! removed. A crash before the manifest is replaced leaves the old store and one unused file; a
//! crash after it leaves the new store and unused old files. Opening the store removes unused
//! files.
//!
//! A failed sync poisons the store. Any other failure leaves everything unchanged.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::file_set::FileSet;
use crate::format::manifest::{self, Form, Manifest, Part, unfinished_name};
use crate::format::record::Kind;
use crate::format::trailer::{Head, MAX_INPUTS};
use crate::guard::{self, FileFilter};
use crate::log::Log;
use crate::recover::write_manifest;
use crate::scan::Merge;
use crate::shared::Shared;
use crate::sorted::{Origin, Plan, Role, Sorted, SortedWriter};
use crate::view::{Layer, View};

/// The inputs of a merge, and totals over them.
struct Inputs {
    /// Newest first.
    layers: Vec<Layer>,
    master: Option<Arc<Sorted>>,
    /// Last sequence in the layers.
    sequence: u64,
    /// Number of changes in the layers.
    updates: u64,
    /// Records that will be in the result.
    records: u64,
}

impl Shared {
    /// Merges everything into a new master. Resumes a merge that was stopped.
    pub(crate) fn integrate(&self) -> Result<()> {
        let mut upkeep = self.lock_upkeep();
        self.refuse_if_poisoned()?;
        self.progress.stop.store(false, Ordering::SeqCst);
        self.progress.held.store(false, Ordering::Relaxed);
        if self.lock_signals().quit {
            return Err(Error::Stopped);
        }
        let result = self.integrate_all(&mut upkeep);
        self.progress.running.store(false, Ordering::Relaxed);
        self.judge(result)
    }

    fn integrate_all(&self, upkeep: &mut FileSet) -> Result<()> {
        if upkeep.unfinished.is_some() {
            self.merge(upkeep)?;
        }
        let view = self.view.load_full();
        if view.active.updates() > 0 {
            self.rotate(upkeep)?;
        }
        if upkeep.manifest.parts.len() > 1 { self.merge(upkeep) } else { Ok(()) }
    }

    /// Poisons the store if a sync failed: it is then unknown what is on disk.
    fn judge<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error @ Error::Io { action: "sync" | "sync the folder of", .. }) = &result {
            self.poison(error);
        }
        result
    }

    /// Starts a new differential file. Writers are blocked only during the last, short part.
    fn rotate(&self, upkeep: &mut FileSet) -> Result<()> {
        let storage = &*self.storage;
        let number = upkeep.take_number();
        let before = self.view.load().active.published();
        let new_log = Log::create(storage, number, before.sequence + 1)?;
        let part = Part { form: Form::Differential, number };
        let next = upkeep.next(|manifest| manifest.parts.push(part));
        // If this fails it is unknown which manifest a crash would leave. So the new file is kept
        // until the store is opened again.
        self.switch_manifest(upkeep, next)?;
        let mut log = self.lock_log();
        self.refuse_if_poisoned()?;
        log.settle()?;
        let view = self.view.load_full();
        let state = view.active.published();
        let (shape, planned) = (self.options.filter_shape(), self.options.planned_updates());
        let active = Arc::new(Delta::new(number, shape, planned, state));
        active.set_file_bytes(new_log.len());
        let mut layers = vec![Layer::Delta(Arc::clone(&active))];
        layers.extend_from_slice(&view.layers);
        *log = new_log;
        self.set_view(view.master.clone(), layers, active);
        Ok(())
    }

    fn switch_manifest(&self, upkeep: &mut FileSet, next: Manifest) -> Result<()> {
        // A failed sync in here poisons the store, whichever operation it is part of.
        self.judge(write_manifest(&*self.storage, &next))?;
        self.generation.store(next.generation, Ordering::Relaxed);
        upkeep.manifest = next;
        Ok(())
    }

    fn set_view(&self, master: Option<Arc<Sorted>>, layers: Vec<Layer>, active: Arc<Delta>) {
        let rules = Arc::clone(&self.view.load().rules);
        self.view.store(Arc::new(View { master, layers, active, rules }));
    }

    /// Frees memory: integrates if there are many changes, otherwise sorts them to disk.
    pub(crate) fn relieve(&self) -> Result<()> {
        let mut upkeep = self.lock_upkeep();
        self.refuse_if_poisoned()?;
        if self.view.load().active.memory() >= self.options.memory_budget {
            let rotated = self.rotate(&mut upkeep);
            self.judge(rotated)?;
        }
        let held = self.progress.held.load(Ordering::Relaxed);
        // Without a master there is nothing to rewrite: integrating costs no more than sorting.
        let due = upkeep.manifest.master.is_none() || self.wants_integrating();
        if !held && due || upkeep.manifest.parts.len() > MAX_PARTS {
            drop(upkeep);
            return self.integrate();
        }
        let result = self.sort_all(&mut upkeep);
        self.judge(result)
    }

    /// Whether the changes have grown large enough to be integrated.
    pub(crate) fn wants_integrating(&self) -> bool {
        let view = self.view.load();
        let master = view.master.as_ref().map_or(0, |master| master.len_bytes());
        let share = (master as f64 * self.options.integrate_share) as u64;
        differential_bytes(&view) >= self.options.integrate_bytes.max(share)
    }

    fn sort_all(&self, upkeep: &mut FileSet) -> Result<()> {
        let view = self.view.load_full();
        for layer in view.layers[1..].iter().rev() {
            if let Layer::Delta(delta) = layer {
                self.sort(upkeep, delta)?;
            }
        }
        Ok(())
    }

    /// Replaces one finished differential file by a sorted one of the same number.
    fn sort(&self, upkeep: &mut FileSet, delta: &Arc<Delta>) -> Result<()> {
        let (storage, number) = (&*self.storage, delta.number);
        let part = Part { form: Form::Sorted, number };
        // Without inputs it is never mistaken for a stopped merge, whose values have another
        // format.
        let head = Head { number, store: upkeep.manifest.store, inputs: Vec::new() };
        let keys = delta.read().keys() as u64;
        let filter = guard::shape_for_updates(self.filter_bits_for(keys), keys);
        let filter = FileFilter::Standard(filter);
        let plan = Plan { head, filter, hasher: self.hasher, kinds: true };
        let layers = [Layer::Delta(Arc::clone(delta))];
        let written = SortedWriter::create(storage, plan).and_then(|mut writer| {
            let mut merge = Merge::new(&layers, None, &[], u64::MAX)?;
            let mut stored = Vec::new();
            while let Some((key, kind, value)) = merge.record()? {
                stored.clear();
                stored.push(kind as u8);
                stored.extend_from_slice(value);
                writer.push(key, &stored, kind)?;
                merge.advance()?;
            }
            let (sequence, updates) = (delta.published().sequence, delta.updates());
            writer.finish(storage, &part.name(), &Origin { sequence, updates, net: delta.net() })
        });
        self.or_remove(written, number)?;
        let sorted = Arc::new(Sorted::open(
            storage,
            part.name(),
            number,
            upkeep.manifest.store,
            Role::Differential,
        )?);
        sorted.warm()?;
        let next = upkeep.next(|manifest| {
            manifest
                .parts
                .iter_mut()
                .filter(|old| old.number == number)
                .for_each(|old| *old = part);
        });
        self.switch_manifest(upkeep, next)?;
        let view = self.view.load_full();
        let layers = view.layers.iter().map(|layer| match layer {
            Layer::Delta(old) if old.number == number => Layer::Sorted(Arc::clone(&sorted)),
            other => other.clone(),
        });
        self.set_view(view.master.clone(), layers.collect(), Arc::clone(&view.active));
        let _ = storage.remove(&manifest::differential_name(number));
        Ok(())
    }

    /// Bits for a filter of this many keys, with as many bits per change as the filter in memory.
    fn filter_bits_for(&self, keys: u64) -> u64 {
        let shape = self.options.filter_shape();
        let bits_a_change = shape.bits() as f64 / self.options.planned_updates() as f64;
        ((keys as f64 * bits_a_change) as u64).clamp(64, umbel::params::Bits::MAX)
    }

    /// Removes the unfinished file after a failure: it may have filled the disk.
    fn or_remove<T>(&self, result: Result<T>, number: u64) -> Result<T> {
        if !matches!(result, Ok(_) | Err(Error::Stopped)) {
            let _ = self.storage.remove(&unfinished_name(number));
        }
        result
    }

    /// Merges the master and all parts that receive no more changes, or the parts of a stopped
    /// merge.
    fn merge(&self, upkeep: &mut FileSet) -> Result<()> {
        let parts = upkeep.manifest.parts.len() - 1;
        let head = upkeep.unfinished.take().unwrap_or_else(|| {
            let older = upkeep.manifest.parts[..parts.min(MAX_INPUTS - 1)].iter();
            let master = upkeep.manifest.master.unwrap_or(0);
            let inputs = std::iter::once(master).chain(older.map(|part| part.number)).collect();
            Head { number: upkeep.take_number(), store: upkeep.manifest.store, inputs }
        });
        let number = head.number;
        let inputs = self.inputs(head.inputs.len() - 1);
        let name = manifest::master_name(number);
        let written = self.write_master(&inputs, &head, &name);
        if matches!(written, Err(Error::Stopped)) {
            upkeep.unfinished = Some(head);
            return written;
        }
        self.or_remove(written, number)?;
        let master =
            Sorted::open(&*self.storage, name, number, upkeep.manifest.store, Role::Master)?;
        master.warm()?;
        self.switch_master(upkeep, Arc::new(master), &inputs)
    }

    /// The master and its oldest `parts` layers.
    fn inputs(&self, parts: usize) -> Inputs {
        let view = self.view.load_full();
        let layers = view.layers[view.layers.len() - parts..].to_vec();
        let mut records = view.master_records();
        let (mut sequence, mut updates) = (0, 0);
        for layer in &layers {
            let (last, net, made) = match layer {
                Layer::Delta(delta) => (delta.published().sequence, delta.net(), delta.updates()),
                Layer::Sorted(sorted) => {
                    let trailer = sorted.trailer();
                    (trailer.sequence, trailer.net, trailer.updates)
                }
            };
            sequence = sequence.max(last);
            records = records.wrapping_add_signed(net);
            updates += made;
        }
        Inputs { layers, master: view.master.clone(), sequence, updates, records }
    }

    fn write_master(&self, inputs: &Inputs, head: &Head, name: &str) -> Result<()> {
        let storage = &*self.storage;
        let filter = FileFilter::blocked(inputs.records);
        let plan = Plan { head: head.clone(), filter, hasher: self.hasher, kinds: false };
        let mut writer = match SortedWriter::resume(storage, plan.clone())? {
            Some(writer) => writer,
            None => SortedWriter::create(storage, plan)?,
        };
        self.progress.total.store(inputs.records, Ordering::Relaxed);
        self.progress.done.store(writer.records(), Ordering::Relaxed);
        self.progress.running.store(true, Ordering::Relaxed);
        let after = writer.resume_after().map(<[u8]>::to_vec);
        let from = after.as_deref().unwrap_or_default();
        let mut merge = Merge::new(&inputs.layers, inputs.master.as_ref(), from, u64::MAX)?;
        if after.is_some() && merge.record()?.is_some_and(|(key, ..)| key == from) {
            merge.advance()?;
        }
        while let Some((key, kind, value)) = merge.record()? {
            if kind != Kind::Delete {
                writer.push(key, value, Kind::Insert)?;
                if writer.records().is_multiple_of(STEP) {
                    self.progress.done.store(writer.records(), Ordering::Relaxed);
                    if self.progress.stop.load(Ordering::Relaxed) {
                        writer.flush()?;
                        return Err(Error::Stopped);
                    }
                }
            }
            merge.advance()?;
        }
        // The expected number was updated with every change since the last master. If it differs
        // from the number counted here, something is wrong that must not become the only copy.
        if writer.records() != inputs.records {
            return Err(Error::corrupt(name, 0, "merging gave another number of records"));
        }
        self.progress.done.store(writer.records(), Ordering::Relaxed);
        let net = inputs.records as i64;
        writer.finish(storage, name, &Origin { sequence: inputs.sequence, updates: 0, net })
    }

    fn switch_master(
        &self,
        upkeep: &mut FileSet,
        master: Arc<Sorted>,
        inputs: &Inputs,
    ) -> Result<()> {
        let merged = inputs.layers.len();
        let gone: Vec<String> = upkeep.manifest.parts[..merged]
            .iter()
            .map(|part| part.name())
            .chain(upkeep.manifest.master.map(manifest::master_name))
            .collect();
        let next = upkeep.next(|manifest| {
            manifest.master = Some(master.trailer().number);
            manifest.integrated = inputs.sequence;
            manifest.parts.drain(..merged);
        });
        self.switch_manifest(upkeep, next)?;
        let view = self.view.load_full();
        let kept = view.layers[..view.layers.len() - merged].to_vec();
        self.set_view(Some(master), kept, Arc::clone(&view.active));
        for name in gone {
            let _ = self.storage.remove(&name);
        }
        debug_assert!(inputs.updates > 0 || merged > 0);
        Ok(())
    }
}

/// Bytes of all differential files.
pub(crate) fn differential_bytes(view: &View) -> u64 {
    let bytes = |layer: &Layer| match layer {
        Layer::Delta(delta) => delta.file_bytes(),
        Layer::Sorted(sorted) => sorted.len_bytes(),
    };
    view.layers.iter().map(bytes).sum()
}

/// If there are more differential files than this, they are integrated regardless of their size,
/// because every lookup probes each of them.
const MAX_PARTS: usize = 12;
/// Number of records between two checks of the stop flag.
const STEP: u64 = 1024;
