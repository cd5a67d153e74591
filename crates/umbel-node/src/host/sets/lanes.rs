//! Lanes for long work: one fewer than there are processors, so that a processor stays free for
//! queries.
//!
//! A thread that wakes while every processor is busy waits until the system's next tick, some
//! milliseconds, however little it has to do. So bulk loads, the builder and the publishing of long
//! filters each take a lane while they work, and at most as many of them run at once as there are
//! lanes. Single changes and queries take none.
//!
//! A lane is held for about a millisecond at a time. Each lane serves its waiters in the order of
//! arrival.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// A lane that is taken until this is dropped.
pub(crate) type Lane = OwnedMutexGuard<()>;

/// The lanes of a host.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Arc<Mutex<()>>>,
    /// The lane at which the next caller waits if none is free.
    next: AtomicUsize,
}

impl Lanes {
    /// As many lanes as this machine's processors allow.
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of((processors - 1).max(1))
    }

    fn of(count: usize) -> Self {
        Self { lanes: (0..count).map(|_| Arc::default()).collect(), next: AtomicUsize::new(0) }
    }

    /// Waits for a lane asynchronously.
    pub(super) async fn enter(&self) -> Lane {
        match self.free() {
            Ok(lane) => lane,
            Err(busy) => busy.lock_owned().await,
        }
    }

    /// Waits for a lane, blocking the thread.
    pub(super) fn enter_blocking(&self) -> Lane {
        self.free().unwrap_or_else(Mutex::blocking_lock_owned)
    }

    /// A lane that is free, or one to wait for.
    fn free(&self) -> Result<Lane, Arc<Mutex<()>>> {
        let free = self.lanes.iter().find_map(|lane| Arc::clone(lane).try_lock_owned().ok());
        free.ok_or_else(|| {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len();
            Arc::clone(&self.lanes[next])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_work_runs_at_once_than_there_are_lanes() {
        let (lanes, running, max) = (Lanes::of(2), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let lane = lanes.enter_blocking();
                        max.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        drop(lane);
                    }
                });
            }
        });
        assert!(max.into_inner() <= 2);
        assert!(Lanes::new().free().is_ok());
    }
}
