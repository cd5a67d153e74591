//! Queries in a world: each must end in time, and name no host that never held the key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use umbel::route::{Located, QueryId};

/// Maximum duration of a query: the routers' own timeout, plus a step of the clock.
const LONGEST: Duration = Duration::from_millis(10_500);

/// The queries of a world.
#[derive(Debug, Default)]
pub(super) struct Queries {
    under_way: BTreeMap<QueryId, Query>,
    /// Keys that hosts held at any time: the host's number and the key.
    ever_held: BTreeSet<(usize, u64)>,
    pub(super) done: u64,
}

/// A running query.
#[derive(Debug)]
struct Query {
    host: usize,
    key: u64,
    asked: Duration,
    must_find: bool,
}

impl Queries {
    pub(super) fn added(&mut self, host: usize, key: u64) {
        self.ever_held.insert((host, key));
    }

    /// Records that a query was sent; `must_find` if a holder is within range and there are no
    /// faults.
    pub(super) fn asked(
        &mut self,
        id: QueryId,
        host: usize,
        key: u64,
        asked: Duration,
        must_find: bool,
    ) {
        self.under_way.insert(id, Query { host, key, asked, must_find });
    }

    /// Records that a host crashed: drops the queries that were waiting there.
    pub(super) fn crashed(&mut self, host: usize) {
        self.under_way.retain(|_, query| query.host != host);
    }

    pub(super) fn are_done(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Records that a query has finished; `holders` are the numbers of the hosts that it names.
    /// Returns what is wrong with it.
    pub(super) fn located(&mut self, located: &Located, holders: &[usize]) -> Option<String> {
        let id = &located.query;
        let Some(query) = self.under_way.remove(id) else {
            return Some(format!("{id:?} was not under way and is done"));
        };
        self.done += 1;
        let key = query.key;
        if let Some(liar) = holders.iter().find(|host| !self.ever_held.contains(&(**host, key))) {
            return Some(format!("{id:?} names host {liar}, which never held {key}"));
        }
        let is_lost = query.must_find && (holders.is_empty() || !located.is_complete);
        is_lost.then(|| {
            let (host, found) =
                (query.host, if located.is_complete { "complete" } else { "incomplete" });
            format!("{id:?} of host {host} for {key} found {holders:?}, {found}, in calm weather")
        })
    }

    /// The first query that should have ended by now.
    pub(super) fn overdue(&self, now: Duration) -> Option<String> {
        let mut under_way = self.under_way.iter();
        let (id, query) = under_way.find(|(_, query)| now > query.asked + LONGEST)?;
        Some(format!("{id:?}, asked at {:?}, has not ended at {now:?}", query.asked))
    }
}
