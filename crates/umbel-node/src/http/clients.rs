//! Who is connected, and what each is doing: deadlines, and who has to go when it is full.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Limits;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The headers of a request are arriving: the whole of them has a deadline.
    Head,
    /// A request is worked on, or its body or answer is under way.
    Busy,
    /// Nothing is under way.
    Idle,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    begun: Instant,
    state: Mutex<(Phase, Duration)>,
    /// Told when it has to make room.
    pub(super) leave: Notify,
}

impl Client {
    fn new() -> Self {
        // Somebody who connects means to ask: the first headers have their deadline at once.
        let state = Mutex::new((Phase::Head, Duration::ZERO));
        Self { begun: Instant::now(), state, leave: Notify::new() }
    }

    /// Bytes arrived.
    pub(super) fn has_read(&self) {
        let mut state = self.state.lock();
        match state.0 {
            // Byte by byte is no progress: headers have one deadline.
            Phase::Head => {}
            Phase::Busy => state.1 = self.begun.elapsed(),
            Phase::Idle => *state = (Phase::Head, self.begun.elapsed()),
        }
    }

    /// Bytes were sent.
    pub(super) fn has_written(&self) {
        let mut state = self.state.lock();
        if state.0 != Phase::Head {
            state.1 = self.begun.elapsed();
        }
    }

    /// A request is there.
    pub(super) fn is_asked(&self) {
        *self.state.lock() = (Phase::Busy, self.begun.elapsed());
    }

    /// Its answer is complete.
    pub(super) fn has_answered(&self) {
        *self.state.lock() = (Phase::Idle, self.begun.elapsed());
    }

    /// When it has to be closed, unless something happens.
    pub(super) fn deadline(&self, limits: &Limits) -> Instant {
        let (phase, since) = *self.state.lock();
        let time = if phase == Phase::Head { limits.header_time } else { limits.idle_time };
        self.begun + since + time
    }

    /// Since when nobody would miss it.
    fn spare_since(&self) -> Option<Instant> {
        let (phase, since) = *self.state.lock();
        (phase != Phase::Busy).then(|| self.begun + since)
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Clients {
    most: usize,
    next: AtomicU64,
    here: Mutex<HashMap<u64, Arc<Client>>>,
    open: AtomicUsize,
    refused: AtomicU64,
    evicted: AtomicU64,
}

/// A connection's place among them, given back when dropped.
#[derive(Debug)]
pub(super) struct Admission {
    clients: Arc<Clients>,
    number: u64,
    pub(super) client: Arc<Client>,
}

impl Clients {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            next: AtomicU64::new(0),
            here: Mutex::default(),
            open: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        })
    }

    /// Takes a connection in. If it is full, the one that has been without a request longest
    /// leaves; if all have one, nobody is taken in.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Admission> {
        let mut here = self.here.lock();
        if here.len() >= self.most {
            let spare = here
                .iter()
                .filter_map(|(number, client)| client.spare_since().map(|since| (since, *number)));
            let Some((_, number)) = spare.min() else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            if let Some(client) = here.remove(&number) {
                self.evicted.fetch_add(1, Ordering::Relaxed);
                client.leave.notify_one();
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client::new());
        here.insert(number, Arc::clone(&client));
        self.open.store(here.len(), Ordering::Relaxed);
        drop(here);
        Some(Admission { clients: Arc::clone(self), number, client })
    }

    /// Connections now; accepted so far; refused, and sent away to make room, so far.
    pub(super) fn counts(&self) -> [u64; 4] {
        [
            self.open.load(Ordering::Relaxed) as u64,
            self.next.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
            self.evicted.load(Ordering::Relaxed),
        ]
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut here = self.clients.here.lock();
        here.remove(&self.number);
        self.clients.open.store(here.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_waited_longest_makes_room_and_whoever_is_served_does_not() {
        let clients = Clients::new(2);
        let first = clients.admit().unwrap();
        let second = clients.admit().unwrap();
        first.client.is_asked();
        let third = clients.admit().unwrap();
        assert_eq!(clients.counts(), [2, 3, 0, 1]);
        drop(second);
        assert_eq!(clients.counts()[0], 2, "it had left already");
        third.client.is_asked();
        assert!(clients.admit().is_none(), "both are served");
        assert_eq!(clients.counts(), [2, 3, 1, 1]);
        drop(first);
        assert!(clients.admit().is_some());
    }

    #[test]
    fn headers_have_one_deadline_however_they_trickle() {
        let limits = Limits::default();
        let client = Client::new();
        let tick = || std::thread::sleep(Duration::from_millis(2));
        let first = client.deadline(&limits);
        tick();
        client.has_read();
        client.has_written();
        assert_eq!(client.deadline(&limits), first);
        client.is_asked();
        let asked = client.deadline(&limits);
        assert!(asked > first + (limits.idle_time - limits.header_time));
        tick();
        client.has_read();
        let read = client.deadline(&limits);
        assert!(read > asked, "a body that arrives is progress");
        tick();
        client.has_written();
        let written = client.deadline(&limits);
        assert!(written > read, "an answer that is read is progress");
        client.has_answered();
        assert!(client.deadline(&limits) >= written);
        client.has_read();
        assert!(client.deadline(&limits) < written, "the next headers have begun");
    }
}
