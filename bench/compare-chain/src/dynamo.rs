//! Dynamo's indexes: the radix tree, the concurrent compressed one, the positional one, and the
//! cuckoo filters, of which a router can hold 16 at most.

use std::sync::Arc;

use dynamo_kv_router::identity::{
    CacheSemanticsId, DcId, IdentitySource, IndexerDomainId, PoolId, RoutingScopeId,
};
use dynamo_kv_router::indexer::cuckoo::{
    CkfConfig, ConsumerInstanceId, DcCkfState, GlobalCkfDelta, GlobalCkfIndexer,
    GlobalCkfLaneIngestor, GlobalCkfManifest, GlobalCkfSnapshot, LaneLease, PrefixSearchConfig,
    ProducerIdentity,
};
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
        // Freed here, not while the next search is timed.
        self.found = OverlapScores::default();
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

/// A cuckoo filter for each worker, side by side in the router. A search hashes the chain as well.
pub(crate) struct Cuckoo {
    producers: Vec<DcCkfState>,
    lanes: Vec<Lane>,
    index: GlobalCkfIndexer,
    deltas: Vec<(usize, GlobalCkfDelta)>,
    depths: Vec<u32>,
    bytes: u64,
    shared: Shared,
}

/// What a router knows of one producer.
struct Lane {
    ingestor: GlobalCkfLaneIngestor,
    identity: ProducerIdentity,
    lease: LaneLease,
    sequence: u64,
}

impl Cuckoo {
    /// The most workers.
    pub(crate) const MAX_WORKERS: usize = 16;

    /// For so many workers with so many blocks each.
    pub(crate) fn new(workers: usize, blocks: usize) -> Self {
        let config = CkfConfig::new(blocks);
        let state = |_| DcCkfState::new(config).expect("the number of blocks is in range");
        let mut producers: Vec<DcCkfState> = (0..workers).map(state).collect();
        let format = producers[0].format();
        let semantics = CacheSemanticsId::new([1; 16], IdentitySource::Explicit);
        let scope = RoutingScopeId::new([2; 16], IdentitySource::Explicit);
        let domain = IndexerDomainId::new(semantics, scope);
        let pool = |worker: usize| PoolId::new(domain, DcId::new(worker as u64 + 1));
        let pools = std::array::from_fn(|lane| (lane < workers).then(|| pool(lane)));
        let consumer = ConsumerInstanceId::new(1);
        let manifest = GlobalCkfManifest::new(consumer, domain, format, pools);
        let manifest = manifest.expect("every worker has a pool of its own");
        let index = GlobalCkfIndexer::new(manifest, PrefixSearchConfig::default());
        let index = index.expect("the defaults are accepted");
        let mut lanes = Vec::new();
        for (worker, producer) in producers.iter_mut().enumerate() {
            let mut ingestor = index.claim_lane(worker).expect("the lane is free");
            let identity = ProducerIdentity::new(pool(worker), 1, 1, format);
            let lease = LaneLease::new(consumer, worker as u8, 1);
            ingestor.assign(identity, lease).expect("the lane is free");
            let (_, buckets) = producer.barrier_snapshot().expect("an empty filter");
            ingestor.install_snapshot(&GlobalCkfSnapshot::new(identity, lease, 0, buckets));
            lanes.push(Lane { ingestor, identity, lease, sequence: 0 });
        }
        let buckets = config.bucket_count().expect("the number of blocks is in range") as u64;
        Self {
            producers,
            lanes,
            index,
            deltas: Vec::new(),
            depths: vec![0; workers],
            bytes: buckets * 8 * workers as u64,
            shared: Shared::default(),
        }
    }
}

impl Index for Cuckoo {
    fn name(&self) -> String {
        "dynamo cuckoo".to_owned()
    }

    fn prepare(&mut self, world: &World, events: &[Event]) {
        self.shared.prepare(world, events);
        for event in self.shared.events.drain(..) {
            let worker = event.worker_id as usize;
            let outcome = self.producers[worker].apply_event(event);
            if let Some(batch) = outcome.into_publication() {
                let Lane { identity, lease, sequence, .. } = &mut self.lanes[worker];
                let images = batch.images().to_vec();
                let delta =
                    GlobalCkfDelta::new(*identity, *lease, *sequence, *sequence + 1, images);
                *sequence += 1;
                self.deltas.push((worker, delta));
            }
        }
    }

    fn apply(&mut self) {
        for (worker, delta) in self.deltas.drain(..) {
            self.lanes[worker].ingestor.apply_delta(&delta);
        }
    }

    fn load(&mut self, query: &Query) {
        self.shared.load(query);
    }

    fn find(&mut self, _: &Query) {
        let found = self.index.find_prefix_matches(&self.shared.query).expect("a chain of blocks");
        for (depth, lane) in self.depths.iter_mut().zip(found.lanes()) {
            *depth = lane.as_ref().map_or(0, |lane| lane.prefix_depth());
        }
    }

    fn depths(&self, depths: &mut [u32]) {
        depths.copy_from_slice(&self.depths);
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
