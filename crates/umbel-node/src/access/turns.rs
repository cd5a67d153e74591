//! Decides whose secret is hashed next: one attempt per source at a time, sources in turn.
//!
//! An attempt enters the queue of its source before any work begins, and stays in it until its
//! result is counted. So simultaneous attempts of one source are checked one after the other, each
//! after the delay that earlier failures cause, and a source with a thousand attempts delays
//! another source by at most one hash. Sources with failures share one hasher, so that others
//! always find a free one.
//!
//! Always true: at most [`HASHERS`] secrets are hashed at a time; no queue outlives its attempts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use super::throttle::{Throttle, site};

/// Maximum number of secrets hashed at a time: each takes 19 MiB and a core for some tens of
/// milliseconds.
const HASHERS: usize = 2;

/// All running attempts.
#[derive(Debug)]
pub(super) struct Turns {
    lines: Mutex<HashMap<IpAddr, Line>>,
    throttle: Mutex<Throttle>,
    hashers: Arc<Semaphore>,
    /// Acquired first by sources with failures, so that they never take all hashers.
    suspects: Arc<Semaphore>,
}

/// The attempts of one source.
#[derive(Debug, Default)]
struct Line {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Attempts in the queue, including the one whose turn it is.
    attempts: usize,
}

/// A place in the queue of a source, released when dropped.
#[derive(Debug)]
struct Place<'a> {
    turns: &'a Turns,
    source: IpAddr,
}

/// An attempt that has its turn. Other attempts of its source wait until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    // Dropped before the place: a queue is removed only when nobody holds its turn.
    _turn: OwnedMutexGuard<()>,
    place: Place<'a>,
}

/// The permit to hash a secret, until dropped.
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

    /// Enters the queue of the source and waits until all earlier attempts are done, and for the
    /// delay that their failures cause. `None`: that would take too long.
    pub(super) async fn take(&self, source: IpAddr) -> Option<Turn<'_>> {
        let (source, arrived) = (site(source), Instant::now());
        let (place, turn) = self.join(source);
        let turn = Turn { _turn: turn.lock_owned().await, place };
        let wait = self.throttle.lock().wait(source, arrived, Instant::now())?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
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
    /// Waits until a hasher is free: waiting sources get one in the order of arrival, each for one
    /// secret.
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
    use std::time::Duration;

    use super::*;

    const ZERO: Duration = Duration::ZERO;

    /// The output of a future that is ready at once.
    fn at_once<F: Future>(future: F) -> Option<F::Output> {
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    const GUESSER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    /// A bug: all simultaneous attempts were checked before any of them had failed.
    #[tokio::test]
    async fn attempts_of_one_source_are_checked_one_after_the_other() {
        let turns = Turns::new();
        let first = at_once(turns.take(GUESSER)).flatten().expect("nobody is before it");
        let mut second = std::pin::pin!(turns.take(GUESSER));
        assert!(at_once(&mut second).is_none(), "the first one is not checked yet");
        let other = at_once(turns.take(OTHER)).flatten();
        assert!(other.is_some(), "another source waits for nobody");
        let permit = at_once(first.permit());
        assert!(permit.is_some() && at_once(&mut second).is_none(), "its secret is being hashed");
        drop(permit);
        first.failed();
        assert!(at_once(&mut second).is_none(), "its place is kept until it is dropped");
        drop(first);
        assert!(at_once(&mut second).flatten().is_some());
    }

    /// The delay that earlier failures cause starts when the attempt has its turn.
    #[tokio::test]
    async fn an_attempt_waits_for_the_failures_of_those_before_it_in_its_line() {
        let turns = Turns::new();
        let mut waiting = Vec::new();
        for _ in 0..5 {
            let first = turns.take(GUESSER).await.expect("the first ones wait for nothing");
            waiting = (0..10).map(|_| Box::pin(turns.take(GUESSER))).collect();
            assert!(waiting.iter_mut().all(|next| at_once(next).is_none()), "they stand in line");
            first.failed();
            if turns.throttle.lock().wait(GUESSER, Instant::now(), Instant::now()) != Some(ZERO) {
                break;
            }
            waiting.clear();
        }
        assert!(!waiting.is_empty(), "five failures cost something");
        assert!(waiting.iter_mut().all(|next| at_once(next).is_none()), "now they wait longer");
        assert!(at_once(turns.take(OTHER)).flatten().is_some(), "and nobody else does");
        waiting.clear();
        assert!(turns.is_idle(), "whoever gives up leaves the line");
    }

    /// Guesses from many addresses at once could take all hashers, and delay all logins.
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
