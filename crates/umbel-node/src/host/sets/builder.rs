//! The thread that builds the filters of own sets, a part at a time.
//!
//! Sets take turns of some parts, so that a small one never waits for a large one. After each turn
//! the thread pauses for as long as it took: whoever wants to change the set gets its lock then,
//! which an unfair lock would not see to, and half of a processor is left to those who ask.
//!
//! Lock order: the queue's lock is the last one taken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{OwnSet, Sets};

/// Keys of a part, for which the set's lock is held: about a hundred microseconds.
const PART: usize = 256;
/// Parts before a pause, for which a lane is kept.
const PARTS: usize = 8;
/// The shortest pause.
const PAUSE: Duration = Duration::from_micros(50);

/// Sets whose filters are being built.
#[derive(Debug, Default)]
pub(super) struct Builder {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    sets: VecDeque<Arc<OwnSet>>,
    is_closed: bool,
}

impl Builder {
    /// Lets the filter of a set be built, if one is to be built and it does not wait already.
    pub(super) fn offer(&self, own: &Arc<OwnSet>) {
        if own.wants_builder() {
            self.queue.lock().sets.push_back(Arc::clone(own));
            self.changed.notify_one();
        }
    }

    /// The thread ends with the part that it is at.
    pub(super) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// The next set, once there is one; `None` when closed.
    fn next(&self) -> Option<Arc<OwnSet>> {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(own) = queue.sets.pop_front() {
                return Some(own);
            }
            self.changed.wait(&mut queue);
        }
    }
}

impl Sets {
    /// Builds filters until the host stops. `on_finished` is called whenever one is built.
    pub(crate) fn build_until_closed(&self, on_finished: impl Fn()) {
        while let Some(own) = self.builder.next() {
            let lane = self.lanes.enter_blocking();
            let start = Instant::now();
            let has_more = (0..PARTS).all(|_| own.build_part(self.clock.now(), PART));
            let time = start.elapsed();
            drop(lane);
            if has_more {
                self.builder.queue.lock().sets.push_back(own);
            } else {
                // Another may have begun in the meantime.
                own.leave_builder();
                self.builder.offer(&own);
                on_finished();
            }
            std::thread::sleep(time.max(PAUSE));
        }
        let waiting = std::mem::take(&mut self.builder.queue.lock().sets);
        waiting.iter().for_each(|own| own.cancel_build());
    }

    /// Lets the filters be built that time alone, or the number of hosts, made necessary.
    pub(crate) fn offer_builds(&self) {
        let state = self.lock();
        let Some(engine) = state.protocol.mesh() else { return };
        let wanted = engine.take_builds();
        wanted.iter().filter_map(|set| state.own.get(set)).for_each(|own| self.builder.offer(own));
    }
}
