//! Dynamo's indexes: the radix tree, the concurrent compressed one, and the positional one.
//! Its cuckoo filter has 16 lanes at most and is not compared here.

use std::sync::Arc;

use dynamo_kv_router::indexer::{SyncIndexer, WorkerTask};
use dynamo_kv_router::protocols::{
    ExternalSequenceBlockHash, KvCacheEvent, KvCacheEventData, KvCacheRemoveData, KvCacheStoreData,
    KvCacheStoredBlockData, LocalBlockHash, OverlapScores, RouterEvent, WorkerWithDpRank,
};
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, PositionalIndexer, RadixTree};
use rustc_hash::FxHashMap;
use umbel_lab::chain::Blocks;

use crate::index::{Event, Index, Query, World};

/// What the three have in common.
#[derive(Default)]
struct Shared {
    events: Vec<RouterEvent>,
    number: u64,
    query: Vec<LocalBlockHash>,
    found: OverlapScores,
}

impl Shared {
    fn push(&mut self, worker: usize, data: KvCacheEventData) {
        self.number += 1;
        let event = KvCacheEvent { event_id: self.number, dp_rank: 0, data };
        self.events.push(RouterEvent::new(worker as u64, event));
    }

    fn prepare(&mut self, world: &World, events: &[Event]) {
        for event in events {
            let mut block_hashes = Vec::new();
            for part in &event.removed {
                let keys: Vec<u64> = world.keys(*part).collect();
                block_hashes.extend(keys.into_iter().rev().map(ExternalSequenceBlockHash));
            }
            if !block_hashes.is_empty() {
                let data = KvCacheRemoveData { block_hashes };
                self.push(event.worker, KvCacheEventData::Removed(data));
            }
            let block = |part: u32, (block, key): (usize, u64)| KvCacheStoredBlockData {
                block_hash: ExternalSequenceBlockHash(key),
                tokens_hash: LocalBlockHash(Blocks::content(part, block)),
                mm_extra_info: None,
            };
            let blocks = |part: &u32| {
                let part = *part;
                world.keys(part).enumerate().map(move |at| block(part, at))
            };
            let blocks: Vec<_> = event.stored.iter().flat_map(blocks).collect();
            if !blocks.is_empty() {
                let end = |part| ExternalSequenceBlockHash(world.blocks.end(part));
                let parent_hash = event.parent.map(end);
                let data = KvCacheStoreData { parent_hash, start_position: None, blocks };
                self.push(event.worker, KvCacheEventData::Stored(data));
            }
        }
    }

    fn load(&mut self, query: &Query) {
        self.query = query.contents.iter().map(|content| LocalBlockHash(*content)).collect();
    }

    fn depths(&self, depths: &mut [u32]) {
        depths.fill(0);
        for (worker, depth) in &self.found.scores {
            depths[worker.worker_id as usize] = *depth;
        }
    }
}

macro_rules! shared {
    ($name:literal) => {
        fn name(&self) -> String {
            $name.to_owned()
        }

        fn prepare(&mut self, world: &World, events: &[Event]) {
            self.shared.prepare(world, events);
        }

        fn load(&mut self, query: &Query) {
            self.shared.load(query);
        }

        fn depths(&self, depths: &mut [u32]) {
            self.shared.depths(depths);
        }
    };
}

pub(crate) struct Radix {
    tree: RadixTree,
    shared: Shared,
}

impl Radix {
    pub(crate) fn new() -> Self {
        Self { tree: RadixTree::new(), shared: Shared::default() }
    }
}

impl Index for Radix {
    shared!("dynamo radix tree");

    fn apply(&mut self) {
        for event in self.shared.events.drain(..) {
            self.tree.apply_event(event).expect("the blocks before are known");
        }
    }

    fn find(&mut self, _: &Query) {
        let query = std::mem::take(&mut self.shared.query);
        self.shared.found = self.tree.find_matches(query, false);
    }
}

/// As Dynamo runs it: a thread of its own takes events in, searches run in the caller's.
pub(crate) struct Concurrent {
    tree: Arc<ConcurrentRadixTreeCompressed>,
    tasks: flume::Sender<WorkerTask>,
    shared: Shared,
}

impl Concurrent {
    pub(crate) fn new() -> Self {
        let tree = Arc::new(ConcurrentRadixTreeCompressed::new());
        let (tasks, received) = flume::unbounded();
        let worker = Arc::clone(&tree);
        std::thread::spawn(move || worker.worker(received, None).expect("it runs to its end"));
        Self { tree, tasks, shared: Shared::default() }
    }
}

impl Drop for Concurrent {
    fn drop(&mut self) {
        _ = self.tasks.send(WorkerTask::Terminate);
    }
}

impl Index for Concurrent {
    shared!("dynamo concurrent");

    fn apply(&mut self) {
        for event in self.shared.events.drain(..) {
            self.tasks.send(WorkerTask::Event(event)).expect("the thread runs");
        }
        let (done, wait) = tokio::sync::oneshot::channel();
        self.tasks.send(WorkerTask::Flush(done)).expect("the thread runs");
        wait.blocking_recv().expect("the thread replies");
    }

    fn find(&mut self, _: &Query) {
        self.shared.found = self.tree.find_matches(&self.shared.query, false);
    }
}

pub(crate) struct Positional {
    index: PositionalIndexer,
    workers: FxHashMap<WorkerWithDpRank, dynamo_kv_router::nested_map::LevelIndex>,
    shared: Shared,
}

impl Positional {
    pub(crate) fn new() -> Self {
        let index = PositionalIndexer::new(32);
        Self { index, workers: FxHashMap::default(), shared: Shared::default() }
    }
}

impl Index for Positional {
    shared!("dynamo positional");

    fn apply(&mut self) {
        for event in self.shared.events.drain(..) {
            let applied = self.index.apply_event(&mut self.workers, event, None);
            applied.expect("the blocks before are known");
        }
    }

    fn find(&mut self, _: &Query) {
        self.shared.found = self.index.find_matches(&self.shared.query, false);
    }
}
