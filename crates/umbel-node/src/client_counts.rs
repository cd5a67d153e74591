//! Counters of the port for Redis clients, for reports.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::latency::Latency;

/// Counters since the start, except for the number of open connections.
#[derive(Debug, Default)]
pub(crate) struct ClientCounts {
    pub(crate) open: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) commands: AtomicU64,
    /// Replies that were errors.
    pub(crate) errors: AtomicU64,
    /// Time from reading a burst of commands to sending its replies.
    pub(crate) bursts: Latency,
}

impl ClientCounts {
    /// Connections: open, accepted, refused, closed to make room; commands; errors.
    pub(crate) fn all(&self) -> [u64; 6] {
        let all = [
            &self.open,
            &self.accepted,
            &self.refused,
            &self.evicted,
            &self.commands,
            &self.errors,
        ];
        all.map(|count| count.load(Ordering::Relaxed))
    }
}
