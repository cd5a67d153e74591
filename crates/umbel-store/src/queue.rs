//! The queue of writes that wait to be committed, and their results until the writers fetch them.
//!
//! Not here: who leads a group, and how the group is written to the file (`commit`).

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::batch::{Applied, Batch};
use crate::error::Result;
use crate::options::Durability;

/// Writes that wait to be committed, and results that their writers have not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    pub(crate) changed: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct QueueState {
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) answers: HashMap<u64, Result<Done>>,
    pub(crate) next_ticket: u64,
    pub(crate) busy: bool,
}

/// A batch in the queue, and the ticket under which its writer will fetch the result.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: u64,
    pub(crate) batch: Batch,
    /// Whether the writer requested the value that each key had before its change.
    pub(crate) wants_before: bool,
}

/// Result of a batch.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) applied: Applied,
    /// The value that each key had just before its change, if the writer requested it.
    pub(crate) before: Vec<Option<Vec<u8>>>,
}

impl Queue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// The next group: everything in the queue, up to a limit.
    pub(crate) fn take_group(&mut self, durability: Durability) -> Vec<Waiting> {
        let max = if durability == Durability::EveryWrite { 1 } else { usize::MAX };
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < max && bytes < MAX_GROUP {
            let Some(next) = self.waiting.pop_front() else { break };
            bytes += next.batch.bytes();
            group.push(next);
        }
        group
    }
}

/// A group ends once it has this many bytes of keys and values.
const MAX_GROUP: usize = 8 << 20;
