//! Visits every record once, in storage order: no sorting, no merging.
//!
//! Layers are visited from newest to oldest. A record is shown where it is found, unless a newer
//! layer has a change of its key.

use std::sync::Arc;

use umbel::KeyHasher;

use crate::delta::Delta;
use crate::error::Result;
use crate::format::record::Kind;
use crate::sorted::{Sorted, SortedCursor};
use crate::view::{Layer, View, split_kind};

/// A walk over the records of a view, up to a sequence, whose keys start with a prefix.
pub(crate) struct Visit<'a> {
    pub(crate) view: &'a View,
    pub(crate) sequence: u64,
    pub(crate) hasher: &'a KeyHasher,
    pub(crate) prefix: &'a [u8],
}

impl Visit<'_> {
    pub(crate) fn run(&self, mut show: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let view = self.view;
        for (place, layer) in view.layers.iter().enumerate() {
            let newer = &view.layers[..place];
            match layer {
                Layer::Delta(delta) => self.delta(delta, newer, &mut show)?,
                Layer::Sorted(sorted) => {
                    self.sorted(sorted, newer, |key, stored| {
                        let (kind, value) = split_kind(sorted, stored)?;
                        if kind != Kind::Delete {
                            show(key, value);
                        }
                        Ok(())
                    })?;
                }
            }
        }
        let Some(master) = &view.master else { return Ok(()) };
        self.sorted(master, &view.layers, |key, value| {
            show(key, value);
            Ok(())
        })
    }

    /// Copies a few records at a time, so that the lock is held briefly and never while `show`
    /// runs.
    fn delta(
        &self,
        delta: &Delta,
        newer: &[Layer],
        show: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let sequence = self.sequence;
        let keys = delta.read().keys() as u32;
        let (mut copied, mut block) = (Vec::new(), Vec::with_capacity(BLOCK));
        for first in (0..keys).step_by(BLOCK) {
            copied.clear();
            block.clear();
            let changes = delta.read();
            for entry in first..keys.min(first + BLOCK as u32) {
                let seen = changes.seen_by(entry, sequence);
                let Some(version) = seen.filter(|seen| seen.key.starts_with(self.prefix)) else {
                    continue;
                };
                let start = copied.len();
                copied.extend_from_slice(version.key);
                let value = copied.len();
                copied.extend_from_slice(version.value);
                block.push((version.is_present(), start..value, value..copied.len()));
            }
            drop(changes);
            for (is_present, key, value) in block.drain(..) {
                let key = &copied[key];
                if is_present && !self.is_changed(newer, key)? {
                    show(key, &copied[value]);
                }
            }
        }
        Ok(())
    }

    fn sorted(
        &self,
        sorted: &Arc<Sorted>,
        newer: &[Layer],
        mut show: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = SortedCursor::new(Arc::clone(sorted), self.prefix)?;
        while let Some(key) = cursor.key().filter(|key| key.starts_with(self.prefix)) {
            if !self.is_changed(newer, key)? {
                show(key, cursor.value())?;
            }
            cursor.advance()?;
        }
        Ok(())
    }

    fn is_changed(&self, newer: &[Layer], key: &[u8]) -> Result<bool> {
        if newer.is_empty() {
            return Ok(false);
        }
        let hash = self.hasher.hash(key);
        let change = self.view.changed(newer, hash, key, self.sequence, |_| ())?;
        Ok(change.is_some())
    }
}

/// Records that are copied under one lock.
const BLOCK: usize = 128;
