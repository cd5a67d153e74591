//! Statistics of a store, and how its filters compare with the formula of paper 2.

use std::sync::atomic::Ordering;

use umbel::model::standard;

use crate::error::Result;
use crate::guard::FileFilter;
use crate::scan::Merge;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::upkeep::differential_bytes;
use crate::view::{Layer, View};

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Stat {
    /// Number of keys.
    pub records: u64,
    /// Bytes of the master file.
    pub master_bytes: u64,
    /// Changes since the master was written: paper 2's u.
    pub differential_records: u64,
    /// Distinct keys that these changes concern: what the filters contain.
    pub differential_keys: u64,
    /// Bytes of all differential files, sorted ones included.
    pub differential_bytes: u64,
    /// Bits of all filters over the changes: paper 2's m.
    pub filter_bits: u64,
    /// Lookups for which a filter said maybe and the index of changes said no, since the
    /// store was opened.
    pub filter_errors: u64,
    /// Expected filter errors per lookup of a master record: paper 2's p(u), with the number of
    /// changed keys in place of the number of changes, since a key sets its bits only once.
    pub filter_error_expected: f64,
    /// Pages of an index on disk that were read since the store was opened.
    pub index_reads: u64,
    /// Such reads that a filter saved.
    pub spared_reads: u64,
    /// Bytes on disk per record.
    pub bytes_per_record: f64,
    /// Incremented each time the set of files changes.
    pub generation: u64,
}

impl Store {
    /// Statistics about the store.
    #[must_use]
    pub fn stat(&self) -> Stat {
        let shared = self.shared();
        stat_of(&shared.view.load(), shared.generation.load(Ordering::Relaxed))
    }

    /// Looks up about `wanted` records of the master, evenly spread. Returns the number of lookups
    /// and of filter errors among them, to compare with the formula.
    ///
    /// # Errors
    /// If what should be read is damaged.
    pub fn sample_filter(&self, wanted: u64) -> Result<(u64, u64)> {
        sample(&self.snapshot(), wanted)
    }
}

pub(crate) fn stat_of(view: &View, generation: u64) -> Stat {
    let records = view.active.published().records;
    let master_bytes = view.master.as_ref().map_or(0, |master| master.len_bytes());
    let differential_bytes = differential_bytes(view);
    let counts = &view.rules.counts;
    Stat {
        records,
        master_bytes,
        differential_records: view.layers.iter().map(updates).sum(),
        differential_keys: view.layers.iter().map(|layer| changed(layer).keys).sum(),
        differential_bytes,
        filter_bits: view.layers.iter().map(|layer| shape(layer).bits()).sum(),
        filter_errors: counts.filter_errors.load(Ordering::Relaxed),
        filter_error_expected: expected(view),
        index_reads: counts.reads.load(Ordering::Relaxed),
        spared_reads: counts.spared(),
        bytes_per_record: (master_bytes + differential_bytes) as f64 / records.max(1) as f64,
        generation,
    }
}

pub(crate) fn sample(snapshot: &Snapshot, wanted: u64) -> Result<(u64, u64)> {
    let view = &snapshot.view;
    let Some(master) = &view.master else { return Ok((0, 0)) };
    let every = (master.trailer().records / wanted.max(1)).max(1);
    let before = view.rules.counts.filter_errors.load(Ordering::Relaxed);
    let (mut lookups, mut seen) = (0, 0u64);
    let mut walk = Merge::new(&[], Some(master), &[], u64::MAX)?;
    while let Some((key, ..)) = walk.record()? {
        if seen.is_multiple_of(every) {
            let hash = snapshot.hasher.hash(key);
            view.changed(&view.layers, hash, key, snapshot.state.sequence, |_| ())?;
            lookups += 1;
        }
        seen += 1;
        walk.advance()?;
    }
    Ok((lookups, view.rules.counts.filter_errors.load(Ordering::Relaxed) - before))
}

fn updates(layer: &Layer) -> u64 {
    match layer {
        Layer::Delta(delta) => delta.updates(),
        Layer::Sorted(sorted) => sorted.trailer().updates,
    }
}

fn shape(layer: &Layer) -> umbel::Shape {
    match layer {
        Layer::Delta(delta) => delta.shape(),
        Layer::Sorted(sorted) => match sorted.trailer().filter {
            FileFilter::Standard(shape) => shape,
            FileFilter::Blocked(_) => unreachable!("only masters have blocked filters"),
        },
    }
}

/// The keys that a layer changes.
struct Changed {
    /// All keys in its filter.
    keys: u64,
    /// Those that existed before.
    older: u64,
}

fn changed(layer: &Layer) -> Changed {
    match layer {
        Layer::Delta(delta) => {
            let keys = delta.keys();
            Changed { keys, older: keys - delta.inserted() }
        }
        Layer::Sorted(sorted) => {
            // Of the keys that exist in the end, those that the file adds are new.
            let trailer = sorted.trailer();
            let added = trailer.net.saturating_add_unsigned(trailer.deletes).max(0);
            let older = trailer.records.saturating_sub(added.unsigned_abs());
            Changed { keys: trailer.records, older }
        }
    }
}

/// Expected filter errors per lookup of a master record. A lookup proceeds from layer to layer
/// until one has the key; it is an error wherever a filter claims a key that its layer does not
/// have.
fn expected(view: &View) -> f64 {
    let records = view.master_records().max(1) as f64;
    let (mut unchanged, mut errors) = (1.0, 0.0);
    for layer in &view.layers {
        let Changed { keys, older } = changed(layer);
        unchanged *= (1.0 - older as f64 / records).max(0.0);
        errors += unchanged * standard::false_positive(shape(layer), keys);
    }
    errors
}
