//! Whose secret is hashed next: one attempt per source at a time, sources in turn.
//!
//! An attempt takes its place in its source's line before any work begins, and keeps it until its
//! outcome is counted. So simultaneous attempts of one source are checked one after the other,
//! each after the wait that the failures before it cost, and a source with a thousand attempts
//! delays another source by one hash at most. Sources with failures share one hasher: whoever has
//! none always finds another.
//!
//! Always true: at most [`HASHERS`] secrets are hashed at a time; no line outlives its attempts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::throttle::{Throttle, site};

/// Secrets hashed at a time: each takes 19 MiB and a core for some tens of milliseconds.
const HASHERS: usize = 2;

/// All attempts that are under way.
#[derive(Debug)]
pub(super) struct Turns {
    lines: Mutex<HashMap<IpAddr, Line>>,
    throttle: Mutex<Throttle>,
    hashers: Arc<Semaphore>,
    /// Taken first by sources with failures, so that they never take all hashers.
    suspects: Arc<Semaphore>,
}

/// The attempts of one source.
#[derive(Debug, Default)]
struct Line {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Attempts in the line, the one whose turn it is included.
    attempts: usize,
}

/// A place in a source's line, given back when dropped.
#[derive(Debug)]
struct Place<'a> {
    turns: &'a Turns,
    source: IpAddr,
}

/// An attempt whose turn it is. Others of its source wait until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    // Before the place: a line is removed only when nobody holds its turn.
    _turn: OwnedMutexGuard<()>,
    place: Place<'a>,
}

/// The right to hash a secret, until dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _hasher: OwnedSemaphorePermit,
    _suspect: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            lines: Mutex::default(),
            throttle: Mutex::default(),
            hashers: Arc::new(Semaphore::new(HASHERS)),
            suspects: Arc::new(Semaphore::new(HASHERS - 1)),
        }
    }

    /// Takes a place in the source's line and waits until all before it are through, and as long
    /// as their failures cost. `None`: that would take too long.
    pub(super) async fn take(&self, source: IpAddr) -> Option<Turn<'_>> {
        let (source, arrived) = (site(source), Instant::now());
        let (place, turn) = self.join(source);
        let turn = Turn { _turn: turn.lock_owned().await, place };
        let wait = self.throttle.lock().wait(source, arrived, Instant::now())?;
        tokio::time::sleep(wait).await;
        Some(turn)
    }

    fn join(&self, source: IpAddr) -> (Place<'_>, Arc<tokio::sync::Mutex<()>>) {
        let mut lines = self.lines.lock();
        let line = lines.entry(source).or_default();
        line.attempts += 1;
        (Place { turns: self, source }, Arc::clone(&line.turn))
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.lines.lock().is_empty() && self.hashers.available_permits() == HASHERS
    }
}

impl Turn<'_> {
    /// Waits until a hasher is free: sources that wait for one get it in the order in which they
    /// came, each for one secret.
    pub(super) async fn permit(&self) -> Permit {
        let Place { turns, source } = &self.place;
        let is_suspect = turns.throttle.lock().has_failed(*source);
        let of = |semaphore: &Arc<Semaphore>| Arc::clone(semaphore).acquire_owned();
        let suspect = if is_suspect { of(&turns.suspects).await.ok() } else { None };
        let hasher = of(&turns.hashers).await.expect("it is never closed");
        Permit { _hasher: hasher, _suspect: suspect }
    }

    /// Counts a failure.
    pub(super) fn failed(&self) {
        self.place.turns.throttle.lock().failed(self.place.source, Instant::now());
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lines.lock();
        if let Some(line) = lines.get_mut(&self.source) {
            line.attempts -= 1;
            if line.attempts == 0 {
                lines.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// What a future returns if it need not wait.
    fn at_once<F: Future>(future: F) -> Option<F::Output> {
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// Guesses from many addresses at once would take all hashers, and delay everybody's logins.
    #[tokio::test]
    async fn sources_with_failures_leave_a_hasher_to_all_others() {
        let turns = Turns::new();
        let source = |number| IpAddr::V4([10, 0, 0, number].into());
        let mut suspects = Vec::new();
        for number in 0..10 {
            let turn = turns.take(source(number)).await.expect("its first attempt");
            turn.failed();
            suspects.push(turn);
        }
        let first = at_once(suspects[0].permit()).expect("a hasher is free");
        assert!(at_once(suspects[1].permit()).is_none(), "suspects share one hasher");
        let other = turns.take(source(99)).await.expect("its first attempt");
        let _permit = at_once(other.permit()).expect("a hasher is free for others");
        drop(first);
        assert!(at_once(suspects[1].permit()).is_some(), "it is its turn");
    }
}
