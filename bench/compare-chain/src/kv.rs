//! kv-index's chain index, as the SGLang model gateway uses it.

use kv_index::{ChainBlockMap, ChainIndex, ContentHash, SequenceHash, StoredBlock};
use umbel_lab::chain::Blocks;

use crate::index::{Event, Index, Query, World};

enum Change {
    Removed(usize, Vec<SequenceHash>),
    Stored(usize, Vec<StoredBlock>, Option<SequenceHash>),
}

pub(crate) struct Kv {
    index: ChainIndex,
    maps: Vec<ChainBlockMap>,
    ids: Vec<u32>,
    workers: Vec<usize>,
    changes: Vec<Change>,
    found: Vec<(u32, u32)>,
}

/// The key of a block, as kv-index makes it.
pub(crate) fn chain(before: Option<u64>, content: u64) -> u64 {
    match before {
        None => content,
        Some(before) => kv_index::chain_prefix_hash(SequenceHash(before), ContentHash(content)).0,
    }
}

impl Kv {
    pub(crate) fn new(workers: usize) -> Self {
        let index = ChainIndex::with_max_workers(workers);
        let id = |worker| index.intern_worker(&format!("w{worker}")).expect("there is room");
        let ids: Vec<u32> = (0..workers).map(id).collect();
        let mut by_id = vec![0; ids.iter().max().map_or(0, |max| *max as usize + 1)];
        for (worker, id) in ids.iter().enumerate() {
            by_id[*id as usize] = worker;
        }
        let maps = (0..workers).map(|_| ChainBlockMap::new()).collect();
        Self { index, maps, ids, workers: by_id, changes: Vec::new(), found: Vec::new() }
    }
}

impl Index for Kv {
    fn name(&self) -> String {
        "kv-index".to_owned()
    }

    fn prepare(&mut self, world: &World, events: &[Event]) {
        for event in events {
            let mut removed: Vec<SequenceHash> = Vec::new();
            for part in &event.removed {
                let keys: Vec<u64> = world.keys(*part).collect();
                removed.extend(keys.into_iter().rev().map(SequenceHash));
            }
            if !removed.is_empty() {
                self.changes.push(Change::Removed(event.worker, removed));
            }
            let block = |part: u32, (block, key): (usize, u64)| StoredBlock {
                seq_hash: SequenceHash(key),
                content_hash: ContentHash(Blocks::content(part, block)),
            };
            let blocks = |part: &u32| {
                let part = *part;
                world.keys(part).enumerate().map(move |at| block(part, at))
            };
            let stored: Vec<StoredBlock> = event.stored.iter().flat_map(blocks).collect();
            if !stored.is_empty() {
                let parent = event.parent.map(|part| SequenceHash(world.blocks.end(part)));
                self.changes.push(Change::Stored(event.worker, stored, parent));
            }
        }
    }

    fn apply(&mut self) {
        for change in self.changes.drain(..) {
            match change {
                Change::Removed(worker, keys) => {
                    self.index.apply_removed(self.ids[worker], &keys, &mut self.maps[worker]);
                }
                Change::Stored(worker, blocks, parent) => {
                    let map = &mut self.maps[worker];
                    let stored = self.index.apply_stored(self.ids[worker], &blocks, parent, map);
                    stored.expect("the blocks before are known");
                }
            }
        }
    }

    fn load(&mut self, _: &Query) {}

    fn find(&mut self, query: &Query) {
        self.found.clear();
        let found = &mut self.found;
        self.index.score_into(
            &query.contents,
            |content| *content,
            false,
            |worker, depth| {
                found.push((worker, depth));
            },
        );
    }

    fn depths(&self, depths: &mut [u32]) {
        depths.fill(0);
        for (id, depth) in &self.found {
            depths[self.workers[*id as usize]] = *depth;
        }
    }
}
