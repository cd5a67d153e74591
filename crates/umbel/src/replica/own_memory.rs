//! Memory of the filters of all own sets of a host: reserved before a filter is allocated, counted
//! afterwards.
//!
//! All sets share one [`OwnMemory`], and each has its own [`Charge`]. A set that needs a longer
//! filter first reserves the memory for it. If the reservation fails, it keeps its present filter.
//! While a filter is built in steps, the old filter is counted in addition, without a reservation.
//!
//! Always true: the charges add up to the bytes that are used; two sets never reserve the same bytes.

use std::sync::Arc;

use crate::sync::{AtomicU64, Ordering};

/// Memory that all own sets share.
#[derive(Debug)]
pub(crate) struct OwnMemory {
    max_bytes: u64,
    used: AtomicU64,
}

impl OwnMemory {
    pub(crate) const fn new(max_bytes: u64) -> Self {
        Self { max_bytes, used: AtomicU64::new(0) }
    }

    /// Bytes that own sets take or have reserved.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that no set takes.
    pub(crate) fn free(&self) -> u64 {
        self.max_bytes.saturating_sub(self.used())
    }

    /// Reserves bytes if they are free; returns whether it did.
    fn reserve(&self, bytes: u64) -> bool {
        let with = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.max_bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok()
    }

    fn change(&self, before: u64, now: u64) {
        if now >= before {
            self.used.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

/// The memory that one set takes. Dropping it frees the memory.
#[derive(Debug)]
pub(crate) struct Charge {
    memory: Arc<OwnMemory>,
    bytes: u64,
}

impl Charge {
    /// A charge of zero bytes.
    pub(crate) fn new(memory: &Arc<OwnMemory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Bytes that are charged.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Raises the charge to this many bytes, if the memory is free. Returns whether the charge is
    /// now at least that.
    pub(crate) fn reserve(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let is_reserved = more == 0 || self.memory.reserve(more);
        self.bytes += if is_reserved { more } else { 0 };
        is_reserved
    }

    /// Sets the charge to the bytes that the set takes now.
    pub(crate) fn set(&mut self, bytes: u64) {
        self.memory.change(std::mem::replace(&mut self.bytes, bytes), bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}
