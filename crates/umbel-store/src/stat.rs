//! What a store holds, and how its filters fare against the formula of paper 2.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::guard::{FileFilter, filter_error};
use crate::scan::Merge;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::upkeep::differential_bytes;
use crate::view::{Layer, View};

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Stat {
    /// Keys that are there.
    pub records: u64,
    /// Bytes of the master file.
    pub master_bytes: u64,
    /// Changes since the master was made: paper 2's u.
    pub differential_records: u64,
    /// Bytes of all differential files, sorted ones included.
    pub differential_bytes: u64,
    /// Bits of all filters over the changes: paper 2's m.
    pub filter_bits: u64,
    /// Lookups for which a filter said maybe and the index of changes said no, since the
    /// store was opened.
    pub filter_errors: u64,
    /// Paper 2's p(u): how many of all lookups of master records that should be.
    pub filter_error_expected: f64,
    /// Pages of an index on disk that were read since the store was opened.
    pub index_reads: u64,
    /// Such reads that a filter made needless.
    pub spared_reads: u64,
    /// Bytes on disk for each record.
    pub bytes_per_record: f64,
    /// Rises each time the set of files changes.
    pub generation: u64,
}

impl Store {
    /// What the store holds.
    #[must_use]
    pub fn stat(&self) -> Stat {
        let shared = self.shared();
        stat_of(&shared.view.load(), shared.generation.load(Ordering::Relaxed))
    }

    /// Looks up about `wanted` records of the master, evenly spread, and returns how many
    /// lookups that were and how many filter errors came of them: what the formula predicts.
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

/// p(u) of each layer's filter; together, as filters that err independently do.
fn expected(view: &View) -> f64 {
    let records = view.master_records();
    let none =
        view.layers.iter().map(|layer| 1.0 - filter_error(shape(layer), updates(layer), records));
    1.0 - none.product::<f64>()
}
