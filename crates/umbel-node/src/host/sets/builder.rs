//! The builder thread: builds the filters of own sets in parts, and encodes long updates.
//!
//! Sets take turns of some parts, so that a small set never waits for a large one. After each turn
//! the thread sleeps for as long as the turn took. Meanwhile a thread that wants to change the set
//! gets its lock, which an unfair lock would not guarantee, and half of a processor is left for
//! queries.
//!
//! A bulk load can add keys faster than a filter is built at this pace. While a set has outgrown its
//! filter, which then claims absent keys more often than promised, the thread does not sleep, its
//! turns are longer, and it takes the turn of those who change the set: they wait, and the build
//! gains on the load.
//!
//! Updates go first, because other hosts wait for them. No lock is held while one is encoded.
//!
//! Lock order: the queue's lock is the last one taken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use umbel::mesh::Encoding;

use super::{OwnSet, Sets, State};
use crate::priority;

/// Keys per part. The set's lock is held for one part: about a hundred microseconds.
const PART: usize = 256;
/// Parts per turn. A lane is held for one turn.
const PARTS: usize = 8;
/// Parts per turn while a set has outgrown its filter: some milliseconds, for about as many keys as
/// thirty clients add in one round of their turns.
const PARTS_OF_OUTGROWN: usize = 64;
/// The shortest pause.
const PAUSE: Duration = Duration::from_micros(50);

/// Sets whose filters are being built, and updates that are to be encoded.
#[derive(Debug, Default)]
pub(super) struct Builder {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    updates: VecDeque<Encoding>,
    sets: VecDeque<Arc<OwnSet>>,
    is_closed: bool,
}

/// The next job of the thread.
#[derive(Debug)]
enum Job {
    Encode(Encoding),
    Build(Arc<OwnSet>),
}

impl Builder {
    /// Queues a set if its filter is to be built and it is not queued already.
    pub(super) fn offer(&self, own: &Arc<OwnSet>) {
        if own.wants_builder() {
            self.queue.lock().sets.push_back(Arc::clone(own));
            self.changed.notify_one();
        }
    }

    /// Queues an update to be encoded and sent.
    fn encode(&self, update: Encoding) {
        self.queue.lock().updates.push_back(update);
        self.changed.notify_one();
    }

    /// Stops the thread after its current job.
    pub(super) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next job; `None` when closed.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(update) = queue.updates.pop_front() {
                return Some(Job::Encode(update));
            }
            if let Some(own) = queue.sets.pop_front() {
                return Some(Job::Build(own));
            }
            self.changed.wait(&mut queue);
        }
    }
}

impl Sets {
    /// Builds filters and encodes updates until the host stops. `on_finished` is called whenever a
    /// filter is built or an update is ready to be sent.
    pub(crate) fn build_until_closed(&self, on_finished: impl Fn()) {
        while let Some(job) = self.builder.next() {
            let is_finished = match job {
                Job::Encode(update) => self.encode(update),
                Job::Build(own) => self.build(own),
            };
            if is_finished {
                on_finished();
            }
        }
        let waiting = std::mem::take(&mut self.builder.queue.lock().sets);
        waiting.iter().for_each(|own| own.cancel_build());
    }

    /// Encodes an update and hands it to the protocol.
    fn encode(&self, update: Encoding) -> bool {
        let lane = self.lanes.enter_blocking();
        let update = update.encode();
        drop(lane);
        if let Some(engine) = self.lock().protocol.mesh_mut() {
            engine.handle_encoded(self.clock.now(), update);
        }
        true
    }

    /// Builds some parts, then sleeps, unless the set has outgrown its filter; returns whether the filter is finished.
    fn build(&self, own: Arc<OwnSet>) -> bool {
        let lane = self.lanes.enter_blocking();
        let turn = own.is_outgrown().then(|| own.blocking_turn());
        let parts = if turn.is_some() { PARTS_OF_OUTGROWN } else { PARTS };
        let start = Instant::now();
        let has_more = (0..parts).all(|_| {
            priority::let_others_run();
            own.build_part(self.clock.now(), PART)
        });
        let pause = turn.is_none().then(|| start.elapsed().max(PAUSE));
        drop((turn, lane));
        if has_more {
            self.builder.queue.lock().sets.push_back(own);
            pause.into_iter().for_each(std::thread::sleep);
        } else {
            // Another build may have begun in the meantime.
            own.leave_builder();
            self.builder.offer(&own);
        }
        !has_more
    }

    /// Queues the updates that the protocol leaves to the builder to encode. The caller holds the
    /// state's lock.
    pub(crate) fn offer_updates(&self, state: &mut State) {
        let Some(engine) = state.protocol.mesh_mut() else { return };
        std::iter::from_fn(|| engine.poll_encoding())
            .for_each(|update| self.builder.encode(update));
    }

    /// Queues the filters that must be rebuilt because time has passed or the number of hosts has
    /// changed.
    pub(crate) fn offer_builds(&self) {
        let state = self.lock();
        let Some(engine) = state.protocol.mesh() else { return };
        let wanted = engine.take_builds();
        wanted.iter().filter_map(|set| state.own.get(set)).for_each(|own| self.builder.offer(own));
    }
}
