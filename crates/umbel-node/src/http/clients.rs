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
    /// The body of a request is arriving: so many bytes of it have a deadline.
    Body,
    /// A request is worked on, or its answer is under way.
    Busy,
    /// Nothing is under way.
    Idle,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    begun: Instant,
    /// Bytes of a body that are progress.
    piece: usize,
    state: Mutex<State>,
    /// Told when it has to make room.
    pub(super) leave: Notify,
}

/// What it is doing, and the last that counts as progress.
#[derive(Debug, Clone, Copy)]
struct State {
    phase: Phase,
    since: Duration,
    /// Bytes of a body that arrived since.
    arrived: usize,
}

impl Client {
    fn new(piece: usize) -> Self {
        // Somebody who connects means to ask: the first headers have their deadline at once.
        let state = State { phase: Phase::Head, since: Duration::ZERO, arrived: 0 };
        Self { begun: Instant::now(), piece, state: Mutex::new(state), leave: Notify::new() }
    }

    fn turn(&self, phase: Phase) {
        *self.state.lock() = State { phase, since: self.begun.elapsed(), arrived: 0 };
    }

    /// Bytes arrived.
    pub(super) fn has_read(&self, bytes: usize) {
        let mut state = self.state.lock();
        match state.phase {
            // Byte by byte is no progress: headers have one deadline.
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

    /// Bytes were sent.
    pub(super) fn has_written(&self) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Busy | Phase::Idle) {
            state.since = self.begun.elapsed();
        }
    }

    /// A request is there, with a body that is still to come or without.
    pub(super) fn is_asked(&self, with_body: bool) {
        self.turn(if with_body { Phase::Body } else { Phase::Busy });
    }

    /// Its body has arrived, or is wanted no more.
    pub(super) fn has_sent(&self) {
        let mut state = self.state.lock();
        if state.phase == Phase::Body {
            (state.phase, state.since) = (Phase::Busy, self.begun.elapsed());
        }
    }

    /// Its answer is complete.
    pub(super) fn has_answered(&self) {
        self.turn(Phase::Idle);
    }

    /// When it has to be closed, unless something happens.
    pub(super) fn deadline(&self, limits: &Limits) -> Instant {
        let State { phase, since, .. } = *self.state.lock();
        let time = if phase == Phase::Head { limits.header_time } else { limits.idle_time };
        self.begun + since + time
    }

    /// Since when nobody would miss it.
    fn spare_since(&self) -> Option<Instant> {
        let State { phase, since, .. } = *self.state.lock();
        matches!(phase, Phase::Head | Phase::Idle).then(|| self.begun + since)
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Clients {
    most: usize,
    /// Bytes of a body that are progress.
    piece: usize,
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
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let piece = limits.idle_time.as_secs_f64() * f64::from(limits.body_rate);
        Arc::new(Self {
            most: limits.connections,
            piece: piece as usize,
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
        let client = Arc::new(Client::new(self.piece));
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
