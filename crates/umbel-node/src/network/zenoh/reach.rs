//! Over which sessions each host of the cluster is reached, and when something last arrived from it
//! there.
//!
//! A host declares one liveliness token per session that it takes part in, each with its own
//! number. An incarnation of a host is alive while one of its tokens is seen over any session. So
//! links may come and go in any order, and a host disappears only with its last one.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use umbel::replica::{Incarnation, Name};

/// A session of this host. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SessionId(pub(super) u64);

/// A way to reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) session: SessionId,
    /// The latest incarnation of the host that is seen over it.
    pub(super) life: Incarnation,
    /// Time since something was last received from the host over this session.
    pub(super) silent_for: Duration,
}

/// Longer than a live host is ever silent.
const BEFORE: Duration = Duration::from_secs(5);

/// A token: one incarnation of a host, seen over one of its sessions.
pub(super) type Token = (Incarnation, u64);

/// Which hosts are reached over which sessions.
#[derive(Debug, Default)]
pub(super) struct Reach(Mutex<HashMap<Name, HashMap<SessionId, Seen>>>);

#[derive(Debug)]
struct Seen {
    tokens: BTreeSet<Token>,
    heard: Instant,
}

impl Reach {
    /// Records that a token appeared. Returns whether that incarnation of the host was not alive
    /// before.
    pub(super) fn appeared(&self, host: &Name, session: SessionId, token: Token) -> bool {
        let mut hosts = self.0.lock();
        let sessions = hosts.entry(host.clone()).or_default();
        let is_new = !is_alive(sessions, token.0);
        let mut lives = sessions.values().flat_map(|seen| &seen.tokens).map(|token| token.0);
        let is_rival = lives.any(|life| life != token.0);
        let seen = sessions.entry(session).or_insert_with(|| Seen::since(is_rival));
        if !is_rival {
            seen.heard = Instant::now();
        }
        seen.tokens.insert(token);
        is_new
    }

    /// Records that a token disappeared. Returns whether that incarnation of the host ended with
    /// it.
    pub(super) fn disappeared(&self, host: &Name, session: SessionId, token: Token) -> bool {
        let mut hosts = self.0.lock();
        let Some(sessions) = hosts.get_mut(host) else { return false };
        let was_alive = is_alive(sessions, token.0);
        if let Some(seen) = sessions.get_mut(&session) {
            seen.tokens.remove(&token);
        }
        sessions.retain(|_, seen| !seen.tokens.is_empty());
        let ended = was_alive && !is_alive(sessions, token.0);
        if sessions.is_empty() {
            hosts.remove(host);
        }
        ended
    }

    /// Records that something was received from a host.
    pub(super) fn heard(&self, host: &Name, session: SessionId) {
        if let Some(seen) = self.0.lock().get_mut(host).and_then(|host| host.get_mut(&session)) {
            seen.heard = Instant::now();
        }
    }

    /// Records that a session was closed. Returns the incarnations that ended with it.
    pub(super) fn closed(&self, session: SessionId) -> Vec<(Name, Incarnation)> {
        let mut hosts = self.0.lock();
        let mut ended = Vec::new();
        hosts.retain(|host, sessions| {
            if let Some(seen) = sessions.remove(&session) {
                let lives: BTreeSet<Incarnation> =
                    seen.tokens.iter().map(|token| token.0).collect();
                let over = lives.into_iter().filter(|life| !is_alive(sessions, *life));
                ended.extend(over.map(|life| (host.clone(), life)));
            }
            !sessions.is_empty()
        });
        ended
    }

    /// The paths to a host.
    pub(super) fn paths(&self, host: &Name) -> Vec<Path> {
        let (hosts, now) = (self.0.lock(), Instant::now());
        hosts.get(host).map(|sessions| paths(sessions, now)).unwrap_or_default()
    }

    /// The session over which something last arrived from a host.
    pub(super) fn best(&self, host: &Name) -> Option<SessionId> {
        let paths = self.paths(host);
        paths.into_iter().min_by_key(|path| path.silent_for).map(|path| path.session)
    }

    /// Paths over which nothing was received for longer than this, with their hosts.
    pub(super) fn silent(&self, limit: Duration) -> Vec<(Name, SessionId)> {
        let (hosts, now) = (self.0.lock(), Instant::now());
        let all = hosts.iter().flat_map(|(host, sessions)| {
            paths(sessions, now).into_iter().map(move |path| (host.clone(), path))
        });
        let silent = all.filter(|(_, path)| path.silent_for > limit);
        silent.map(|(host, path)| (host, path.session)).collect()
    }
}

impl Seen {
    /// A session that was just seen. While another incarnation of its host is seen over other
    /// sessions, it counts as silent for a while: messages to the host then go to the incarnation
    /// that is known.
    fn since(is_rival: bool) -> Self {
        let now = Instant::now();
        let heard = if is_rival { now.checked_sub(BEFORE).unwrap_or(now) } else { now };
        Self { tokens: BTreeSet::new(), heard }
    }
}

/// The paths at one moment `now`, so that they can be compared.
fn paths(sessions: &HashMap<SessionId, Seen>, now: Instant) -> Vec<Path> {
    let path = |(session, seen): (&SessionId, &Seen)| Path {
        session: *session,
        life: seen.tokens.last().map_or(Incarnation(0), |token| token.0),
        silent_for: now.saturating_duration_since(seen.heard),
    };
    sessions.iter().map(path).collect()
}

fn is_alive(sessions: &HashMap<SessionId, Seen>, life: Incarnation) -> bool {
    sessions.values().any(|seen| seen.tokens.iter().any(|token| token.0 == life))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId(1);
    const TWO: SessionId = SessionId(2);

    fn token(life: u64, number: u64) -> Token {
        (Incarnation(life), number)
    }

    #[test]
    fn a_life_ends_with_its_last_token() {
        let (reach, fern) = (Reach::default(), Name::new("fern").unwrap());
        assert!(reach.appeared(&fern, ONE, token(7, 1)));
        assert!(!reach.appeared(&fern, ONE, token(7, 2)), "a second link of the same life");
        assert!(!reach.appeared(&fern, TWO, token(7, 3)));
        assert!(!reach.disappeared(&fern, ONE, token(7, 1)));
        assert!(!reach.disappeared(&fern, ONE, token(7, 1)), "twice");
        assert_eq!(reach.closed(TWO), []);
        assert!(reach.disappeared(&fern, ONE, token(7, 2)));
        assert!(reach.paths(&fern).is_empty());
    }

    #[test]
    fn lives_overlap_when_a_host_restarts() {
        let (reach, fern) = (Reach::default(), Name::new("fern").unwrap());
        assert!(reach.appeared(&fern, ONE, token(7, 1)));
        assert!(reach.appeared(&fern, ONE, token(8, 1)));
        assert!(reach.disappeared(&fern, ONE, token(7, 1)));
        assert_eq!(reach.closed(ONE), [(fern.clone(), Incarnation(8))]);
        assert_eq!(reach.best(&fern), None);
    }

    #[test]
    fn another_life_is_not_preferred_because_it_appeared_last() {
        let (reach, fern) = (Reach::default(), Name::new("fern").unwrap());
        reach.appeared(&fern, ONE, token(7, 1));
        assert!(reach.appeared(&fern, TWO, token(9, 1)));
        assert_eq!(reach.best(&fern), Some(ONE));
        let lives = reach.paths(&fern).iter().map(|path| path.life.0).collect::<BTreeSet<_>>();
        assert_eq!(lives, BTreeSet::from([7, 9]));
        std::thread::sleep(Duration::from_millis(2));
        reach.heard(&fern, TWO);
        assert_eq!(reach.best(&fern), Some(TWO));
    }

    #[test]
    fn the_session_heard_last_is_the_best() {
        let (reach, fern) = (Reach::default(), Name::new("fern").unwrap());
        reach.appeared(&fern, ONE, token(7, 1));
        reach.appeared(&fern, TWO, token(7, 2));
        // A clock may not distinguish two successive moments.
        std::thread::sleep(Duration::from_millis(2));
        reach.heard(&fern, ONE);
        assert_eq!(reach.best(&fern), Some(ONE));
        assert_eq!(reach.silent(Duration::from_secs(60)), []);
    }
}
