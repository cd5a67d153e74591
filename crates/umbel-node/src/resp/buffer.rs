//! What was read from a socket and is not yet executed.
//!
//! Small while a client sends little, 64 KiB for one that fills it, larger only while a single
//! request is. What lies beyond 64 KiB comes out of a budget of all connections, so that ten
//! thousand clients with half a request each cannot take the host's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all large buffers may take together.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(bytes) })
    }

    fn take(&self, bytes: usize) -> bool {
        let take = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A connection's bytes.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    /// Where the first byte stands that is not executed.
    start: usize,
    budget: Arc<Budget>,
    /// What this one took from the budget.
    taken: usize,
}

/// All large requests together are too large.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests at once; send smaller ones, or try again later")]
pub(super) struct OverBudget;

impl ReadBuffer {
    /// What every connection has.
    const SMALL: usize = 4 << 10;
    /// What a busy one has without asking anybody.
    const USUAL: usize = 64 << 10;

    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        let bytes = Vec::with_capacity(Self::SMALL);
        Self { bytes, start: 0, budget: Arc::clone(budget), taken: 0 }
    }

    /// What is there.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// `bytes` more were executed.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.bytes.len());
    }

    /// The place for more bytes, with room for some at least.
    ///
    /// Grows only when the last bytes filled it, so that what a client announces costs nothing
    /// until it is sent.
    pub(super) fn room(&mut self) -> Result<&mut Vec<u8>, OverBudget> {
        let was_full = self.bytes.len() == self.bytes.capacity();
        if self.start == self.bytes.len() {
            self.bytes.clear();
            if was_full || self.bytes.capacity() > Self::USUAL {
                self.reshape();
            }
        } else if self.start > 0 {
            self.bytes.drain(..self.start);
        }
        self.start = 0;
        if self.bytes.len() == self.bytes.capacity() {
            self.double()?;
        }
        Ok(&mut self.bytes)
    }

    /// Gives an empty buffer the size that its client's recent bytes ask for.
    fn reshape(&mut self) {
        let capacity = (self.bytes.capacity() * 2).clamp(Self::SMALL, Self::USUAL);
        self.bytes = Vec::with_capacity(capacity);
        self.budget.give_back(std::mem::take(&mut self.taken));
    }

    fn double(&mut self) -> Result<(), OverBudget> {
        let capacity = (self.bytes.capacity() * 2).max(Self::SMALL);
        let taken = capacity.saturating_sub(Self::USUAL);
        if !self.budget.take(taken - self.taken) {
            return Err(OverBudget);
        }
        self.taken = taken;
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(buffer: &mut ReadBuffer) -> Result<(), OverBudget> {
        let room = buffer.room()?;
        let free = room.capacity() - room.len();
        assert!(free > 0);
        room.extend(std::iter::repeat_n(b'x', free));
        Ok(())
    }

    #[test]
    fn a_partial_request_moves_to_the_front_and_stays_whole() {
        let mut buffer = ReadBuffer::new(&Budget::new(0));
        buffer.room().unwrap().extend_from_slice(b"donehalf");
        buffer.consume(4);
        buffer.room().unwrap().extend_from_slice(b"more");
        assert_eq!(buffer.unread(), b"halfmore");
    }

    #[test]
    fn large_requests_share_a_budget_and_give_it_back() {
        let budget = Budget::new(64 << 10);
        let left = || budget.left.load(Ordering::Relaxed);
        let mut large = ReadBuffer::new(&budget);
        for _ in 0..6 {
            fill(&mut large).unwrap();
        }
        assert_eq!((large.unread().len(), left()), (128 << 10, 0));
        let mut other = ReadBuffer::new(&budget);
        for _ in 0..5 {
            fill(&mut other).unwrap();
        }
        assert_eq!(fill(&mut other), Err(OverBudget));
        assert_eq!(other.unread().len(), 64 << 10);
        large.consume(128 << 10);
        large.room().unwrap();
        assert_eq!(left(), 64 << 10);
        fill(&mut other).unwrap();
        drop(other);
        assert_eq!(left(), 64 << 10);
    }

    #[test]
    fn a_busy_client_gets_the_usual_size_and_no_more() {
        let mut buffer = ReadBuffer::new(&Budget::new(0));
        for _ in 0..10 {
            fill(&mut buffer).unwrap();
            buffer.consume(buffer.unread().len());
        }
        assert_eq!(buffer.room().unwrap().capacity(), ReadBuffer::USUAL);
    }
}
