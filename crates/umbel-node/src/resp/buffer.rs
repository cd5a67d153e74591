//! Bytes that were read from a socket and are not executed yet.
//!
//! A buffer is small while a client sends little, grows to 64 KiB for a client that fills it, and
//! beyond that only while a single request is larger. The part beyond 64 KiB is charged to a budget
//! shared by all connections, so that ten thousand clients with half a request each cannot exhaust
//! the host's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that all large buffers may take together.
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

/// The read buffer of a connection.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    /// Position of the first byte that is not executed yet.
    start: usize,
    budget: Arc<Budget>,
    /// Bytes that this buffer has taken from the budget.
    taken: usize,
}

/// All large requests together exceed the budget.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests at once; send smaller ones, or try again later")]
pub(super) struct OverBudget;

impl ReadBuffer {
    /// Initial capacity of every connection.
    const SMALL: usize = 4 << 10;
    /// Maximum capacity that is not charged to the budget.
    const USUAL: usize = 64 << 10;

    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        let bytes = Vec::with_capacity(Self::SMALL);
        Self { bytes, start: 0, budget: Arc::clone(budget), taken: 0 }
    }

    /// The bytes that are not executed yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Marks `bytes` more bytes as executed.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.bytes.len());
    }

    /// The vector to append more bytes to, with room for at least some.
    ///
    /// Grows only when it was filled, so that a length that a client announces costs nothing until
    /// the bytes are sent.
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

    /// Appends bytes, all of them or none.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), OverBudget> {
        while self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.double()?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Drops all bytes, and returns what was taken from the budget.
    pub(super) fn clear(&mut self) {
        (self.bytes, self.start) = (Vec::new(), 0);
        self.budget.give_back(std::mem::take(&mut self.taken));
    }

    /// Gives an empty buffer a capacity that fits the client's recent requests.
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
