//! The open connections and what each is doing: deadlines, and which one is closed when there are
//! too many.

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
    /// The headers of a request are arriving: one deadline for all of them.
    Head,
    /// The body of a request is arriving: each piece of it has a deadline.
    Body,
    /// A request is being handled, or its response is being sent.
    Busy,
    /// There is no request.
    Idle,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    begun: Instant,
    /// How many bytes of a body count as progress.
    piece: usize,
    state: Mutex<State>,
    /// Notified when it must close to make room for another one.
    pub(super) leave: Notify,
}

/// What it is doing, and when it last made progress.
#[derive(Debug, Clone, Copy)]
struct State {
    phase: Phase,
    since: Duration,
    /// Bytes of a body that arrived since then.
    arrived: usize,
}

impl Client {
    fn new(piece: usize) -> Self {
        // A client that connects is about to send a request: the deadline of its headers starts at
        // once.
        let state = State { phase: Phase::Head, since: Duration::ZERO, arrived: 0 };
        Self { begun: Instant::now(), piece, state: Mutex::new(state), leave: Notify::new() }
    }

    fn turn(&self, phase: Phase) {
        *self.state.lock() = State { phase, since: self.begun.elapsed(), arrived: 0 };
    }

    /// Records that bytes arrived.
    pub(super) fn has_read(&self, bytes: usize) {
        let mut state = self.state.lock();
        match state.phase {
            // Single bytes are not progress: headers have one deadline.
            Phase::Head => {}
            Phase::Body => {
                state.arrived += bytes;
                if state.arrived >= self.piece {
                    (state.since, state.arrived) = (self.begun.elapsed(), 0);
                }
            }
            Phase::Busy => state.since = self.begun.elapsed(),
            Phase::Idle => {
                (state.phase, state.since) = (Phase::Head, self.begun.elapsed());
            }
        }
    }

    /// Records that bytes were sent.
    pub(super) fn has_written(&self) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Busy | Phase::Idle) {
            state.since = self.begun.elapsed();
        }
    }

    /// Records that the headers of a request have arrived; its body may follow.
    pub(super) fn is_asked(&self, with_body: bool) {
        self.turn(if with_body { Phase::Body } else { Phase::Busy });
    }

    /// Records that the request's body has arrived completely, or is not needed any more.
    pub(super) fn has_sent(&self) {
        let mut state = self.state.lock();
        if state.phase == Phase::Body {
            (state.phase, state.since) = (Phase::Busy, self.begun.elapsed());
        }
    }

    /// Records that the response is complete.
    pub(super) fn has_answered(&self) {
        self.turn(Phase::Idle);
    }

    /// When to close it, unless it makes progress before.
    pub(super) fn deadline(&self, limits: &Limits) -> Instant {
        let State { phase, since, .. } = *self.state.lock();
        let time = if phase == Phase::Head { limits.header_time } else { limits.idle_time };
        self.begun + since + time
    }

    /// Since when it has had no complete request, so that it may be closed to make room.
    fn spare_since(&self) -> Option<Instant> {
        let State { phase, since, .. } = *self.state.lock();
        matches!(phase, Phase::Head | Phase::Idle).then(|| self.begun + since)
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Clients {
    max: usize,
    /// How many bytes of a body count as progress.
    piece: usize,
    next: AtomicU64,
    here: Mutex<HashMap<u64, Arc<Client>>>,
    open: AtomicUsize,
    refused: AtomicU64,
    evicted: AtomicU64,
}

/// A connection's entry, removed when dropped.
#[derive(Debug)]
pub(super) struct Admission {
    clients: Arc<Clients>,
    number: u64,
    pub(super) client: Arc<Client>,
}

impl Clients {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let piece = limits.idle_time.as_secs_f64() * f64::from(limits.body_rate);
        Arc::new(Self {
            max: limits.connections,
            piece: piece as usize,
            next: AtomicU64::new(0),
            here: Mutex::default(),
            open: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        })
    }

    /// Admits a connection. If there are too many, the one that has been without a request longest
    /// is closed; if all have a request, the new connection is refused.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Admission> {
        let mut here = self.here.lock();
        if here.len() >= self.max {
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
        let client = Arc::new(Client::new(self.piece));
        here.insert(number, Arc::clone(&client));
        self.open.store(here.len(), Ordering::Relaxed);
        drop(here);
        Some(Admission { clients: Arc::clone(self), number, client })
    }

    /// Open connections now; and so far: accepted, refused, closed to make room.
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
        let clients = Clients::new(&Limits { connections: 2, ..Limits::default() });
        let first = clients.admit().unwrap();
        let second = clients.admit().unwrap();
        first.client.is_asked(false);
        let third = clients.admit().unwrap();
        assert_eq!(clients.counts(), [2, 3, 0, 1]);
        drop(second);
        assert_eq!(clients.counts()[0], 2, "it had left already");
        third.client.is_asked(true);
        assert!(clients.admit().is_none(), "both are served");
        assert_eq!(clients.counts(), [2, 3, 1, 1]);
        drop(first);
        assert!(clients.admit().is_some());
    }

    fn tick() {
        std::thread::sleep(Duration::from_millis(2));
    }

    #[test]
    fn headers_have_one_deadline_however_they_trickle() {
        let limits = Limits::default();
        let client = Client::new(0);
        let first = client.deadline(&limits);
        tick();
        client.has_read(1);
        client.has_written();
        assert_eq!(client.deadline(&limits), first);
        client.is_asked(false);
        let asked = client.deadline(&limits);
        assert!(asked > first + (limits.idle_time - limits.header_time));
        tick();
        client.has_written();
        let written = client.deadline(&limits);
        assert!(written > asked, "an answer that is read is progress");
        client.has_answered();
        assert!(client.deadline(&limits) >= written);
        client.has_read(1);
        assert!(client.deadline(&limits) < written, "the next headers have begun");
    }

    #[test]
    fn a_body_brings_so_many_bytes_in_time() {
        let limits = Limits::default();
        let client = Client::new(10);
        client.is_asked(true);
        let asked = client.deadline(&limits);
        tick();
        client.has_read(9);
        client.has_written();
        assert_eq!(client.deadline(&limits), asked, "nine bytes are no progress");
        client.has_read(1);
        let read = client.deadline(&limits);
        assert!(read > asked, "ten are");
        tick();
        client.has_sent();
        let sent = client.deadline(&limits);
        assert!(sent > read, "now the host has to work");
        client.has_answered();
        client.has_sent();
        assert_eq!(client.state.lock().phase, Phase::Idle, "what is over does not come back");
        let any = Client::new(0);
        any.is_asked(true);
        let asked = any.deadline(&limits);
        tick();
        any.has_read(1);
        assert!(any.deadline(&limits) > asked, "without a rate any byte is progress");
    }
}
