//! What every index is asked to do: take in changes of caches, and give the depths of a chain.

use umbel_lab::chain::{Blocks, Change, Request, Trace};

/// A chain, as the rivals and as umbel take it.
pub(crate) struct Query {
    /// What every block says.
    pub(crate) contents: Vec<u64>,
    /// The key of every block, which stands for all blocks before it.
    pub(crate) keys: Vec<u64>,
}

impl Query {
    pub(crate) fn new(world: &World, request: &Request) -> Self {
        let keys = request.parts.iter().flat_map(|part| world.keys(*part)).collect();
        let per_part = world.blocks.per_part();
        let content = |part: &u32| {
            let part = *part;
            (0..per_part).map(move |block| Blocks::content(part, block))
        };
        Self { contents: request.parts.iter().flat_map(content).collect(), keys }
    }
}

/// The trace, and the keys of its blocks.
pub(crate) struct World {
    pub(crate) trace: Trace,
    pub(crate) blocks: Blocks,
}

impl World {
    pub(crate) fn keys(&self, part: u32) -> impl Iterator<Item = u64> + use<> {
        self.blocks.keys(&self.trace, part)
    }
}

/// What a request changed in a worker's cache, in parts.
pub(crate) struct Event {
    pub(crate) worker: usize,
    pub(crate) removed: Vec<u32>,
    pub(crate) stored: Vec<u32>,
    /// The part before the first stored one.
    pub(crate) parent: Option<u32>,
}

impl Event {
    pub(crate) fn new(request: &Request, change: Change) -> Self {
        Self {
            worker: change.worker,
            removed: change.removed,
            stored: request.parts[change.held..].to_vec(),
            parent: change.held.checked_sub(1).map(|last| request.parts[last]),
        }
    }
}

/// An index of which worker holds which blocks.
pub(crate) trait Index {
    fn name(&self) -> String;
    /// Makes of events what `apply` takes in. Not timed.
    fn prepare(&mut self, world: &World, events: &[Event]);
    fn apply(&mut self);
    /// Gives the query the type that the caller of this index would have it in. Not timed.
    fn load(&mut self, query: &Query);
    fn find(&mut self, query: &Query);
    /// The depths of the last search, by worker.
    fn depths(&self, depths: &mut [u32]);
    /// Bytes that it takes, if it knows better than the allocator.
    fn bytes(&self) -> Option<u64> {
        None
    }
}
