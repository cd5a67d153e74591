//! What a reader sees: the master, and above it the layers of changes, newest first.
//!
//! A view never changes; switching to another one replaces a single pointer. So readers keep the
//! files and indexes they started with, whatever is integrated meanwhile, and nobody waits for
//! them. Only the newest layer still accepts changes, and every reader knows up to which sequence
//! it may read.
//!
//! A lookup queries the filter of each layer, and skips the layer if the filter says no: the scheme
//! of paper 2. Filter errors and saved reads are counted here.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use umbel::KeyHash;

use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::format::record::Kind;
use crate::sorted::Sorted;

/// What a reader sees.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) master: Option<Arc<Sorted>>,
    /// Newest first; the first is the one being written.
    pub(crate) layers: Vec<Layer>,
    pub(crate) active: Arc<Delta>,
    pub(crate) rules: Arc<Rules>,
}

/// One differential file and its index.
#[derive(Debug, Clone)]
pub(crate) enum Layer {
    /// The index is in memory.
    Delta(Arc<Delta>),
    /// The index is on disk.
    Sorted(Arc<Sorted>),
}

impl Layer {
    /// Whether the key may have been changed here; `false` is certain.
    #[inline(always)]
    fn may_contain(&self, hash: KeyHash) -> bool {
        match self {
            Self::Delta(delta) => delta.may_contain(hash),
            Self::Sorted(sorted) => sorted_may_contain(sorted, hash),
        }
    }
}

/// Not inlined, unlike the master's filter, which nearly every lookup queries.
#[inline(never)]
fn sorted_may_contain(sorted: &Sorted, hash: KeyHash) -> bool {
    sorted.may_contain(hash)
}

/// What all views of a store share.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Whether lookups use the filters.
    pub(crate) filter: bool,
    pub(crate) counts: Counts,
}

/// Counters of filter errors, index reads and saved reads.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The filter said maybe, the index said no.
    pub(crate) filter_errors: AtomicU64,
    /// Pages of an index on disk that were read.
    pub(crate) reads: AtomicU64,
    /// Reads of an index on disk that a filter saved. One counter per cache line.
    spared: [Line; LINES],
}

impl Counts {
    #[inline]
    fn spare(&self) {
        let line = MY_LINE.with(Cell::get);
        self.spared[line].0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn spared(&self) -> u64 {
        self.spared.iter().map(|line| line.0.load(Ordering::Relaxed)).sum()
    }
}

impl View {
    /// The value of a key as a reader at `sequence` sees it, passed through `take`.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        hash: KeyHash,
        key: &[u8],
        sequence: u64,
        take: impl Fn(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.get_from(&self.layers, hash, key, sequence, take)
    }

    /// As [`Self::get`], with only some of the layers.
    #[inline]
    pub(crate) fn get_from<R>(
        &self,
        layers: &[Layer],
        hash: KeyHash,
        key: &[u8],
        sequence: u64,
        take: impl Fn(&[u8]) -> R,
    ) -> Result<Option<R>> {
        match self.changed(layers, hash, key, sequence, &take)? {
            Some(change) => Ok(change),
            None => Ok(self.in_master(hash, key)?.map(take)),
        }
    }

    /// What these layers have for a key: `None` if nothing, `Some(None)` if it was deleted,
    /// otherwise its value.
    #[inline]
    pub(crate) fn changed<R>(
        &self,
        layers: &[Layer],
        hash: KeyHash,
        key: &[u8],
        sequence: u64,
        take: impl Fn(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        for layer in layers {
            if self.rules.filter && !layer.may_contain(hash) {
                if let Layer::Sorted(_) = layer {
                    self.rules.counts.spare();
                }
                continue;
            }
            let found = self.look_into(layer, hash, key, sequence, &take)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Not inlined: for most lookups the filters of all layers say no.
    #[inline(never)]
    fn look_into<R>(
        &self,
        layer: &Layer,
        hash: KeyHash,
        key: &[u8],
        sequence: u64,
        take: impl Fn(&[u8]) -> R,
    ) -> Result<Option<Option<R>>> {
        let found = match layer {
            Layer::Delta(delta) => {
                let changes = delta.read();
                let version = changes.find(hash, key, sequence);
                version.map(|version| version.is_present().then(|| take(version.value)))
            }
            Layer::Sorted(sorted) => {
                self.rules.counts.reads.fetch_add(1, Ordering::Relaxed);
                let stored = sorted.find(key)?.map(|stored| split_kind(sorted, stored));
                let stored = stored.transpose()?;
                stored.map(|(kind, value)| (kind != Kind::Delete).then(|| take(value)))
            }
        };
        if found.is_none() {
            self.count_error();
        }
        Ok(found)
    }

    fn count_error(&self) {
        if self.rules.filter {
            self.rules.counts.filter_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn in_master(&self, hash: KeyHash, key: &[u8]) -> Result<Option<&[u8]>> {
        match &self.master {
            Some(master) if !self.rules.filter || master.may_contain(hash) => master.find(key),
            _ => Ok(None),
        }
    }

    /// The files of sorted pages: sorted differential files, and the master.
    pub(crate) fn sorted_files(&self) -> impl Iterator<Item = &Arc<Sorted>> {
        let sorted = self.layers.iter().filter_map(|layer| match layer {
            Layer::Sorted(sorted) => Some(sorted),
            Layer::Delta(_) => None,
        });
        sorted.chain(&self.master)
    }

    /// Records in the master, before any change.
    pub(crate) fn master_records(&self) -> u64 {
        self.master.as_ref().map_or(0, |master| master.trailer().records)
    }
}

/// A stored value of a sorted differential file: its kind, and the value itself.
pub(crate) fn split_kind<'a>(sorted: &Sorted, stored: &'a [u8]) -> Result<(Kind, &'a [u8])> {
    let kind =
        stored.split_first().and_then(|(&code, value)| Some((Kind::from_code(code)?, value)));
    kind.ok_or_else(|| Error::corrupt(sorted.name(), 0, "a record's operation is unknown"))
}

/// A counter on a cache line of its own, so that readers do not disturb each other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

const LINES: usize = 16;
static NEXT_LINE: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static MY_LINE: Cell<usize> =
        Cell::new(NEXT_LINE.fetch_add(1, Ordering::Relaxed) % LINES);
}
