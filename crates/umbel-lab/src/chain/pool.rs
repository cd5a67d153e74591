//! Workers with caches, and the routing between them.
//!
//! A worker processes one request after the other: it computes the parts that its cache lacks, and
//! keeps them. A router sends a request to the worker that would finish it first, by what the
//! router believes each one has. The start of a text is kept longer than its end.

use super::trace::{Request, Trace};
use crate::policies::{self, Lru};
use crate::random::Random;

/// Share of time that workers are busy if 30 % of all parts are hits.
const LOAD: f64 = 0.7;
const HELD: f64 = 0.3;

/// Workers, and the results so far.
#[derive(Debug)]
pub struct Pool {
    workers: Vec<Worker>,
    /// Capacity of each cache, in parts.
    capacity: usize,
    ms_per_part: f64,
    random: Random,
    served: Served,
}

#[derive(Debug)]
struct Worker {
    cache: Lru,
    /// When it will have finished all its requests, in milliseconds.
    idle_from: f64,
}

/// Sums over requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Served {
    /// Requests.
    pub requests: u64,
    /// Their parts.
    pub parts: u64,
    /// Parts that the chosen worker had.
    pub hits: u64,
    /// Time until the request was computed, in milliseconds.
    pub delay_ms: f64,
}

impl Served {
    /// Share of all parts that the chosen worker had.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.parts.max(1) as f64
    }

    /// Time until a request was computed, on average.
    #[must_use]
    pub fn mean_delay_ms(&self) -> f64 {
        self.delay_ms / self.requests.max(1) as f64
    }

    /// The sums since an earlier moment.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            parts: self.parts - before.parts,
            hits: self.hits - before.hits,
            delay_ms: self.delay_ms - before.delay_ms,
        }
    }
}

/// What a request changed in a worker's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The worker.
    pub worker: usize,
    /// Parts that were evicted.
    pub removed: Vec<u32>,
    /// Number of leading parts of the request that were in the cache already.
    pub held: usize,
}

impl Pool {
    /// Creates workers with empty caches of `capacity` parts. Their speed is chosen so that the trace
    /// keeps them busy for 70 % of its duration.
    #[must_use]
    pub fn new(trace: &Trace, workers: usize, capacity: usize, seed: u64) -> Self {
        let parts: usize = trace.requests().iter().map(|request| request.parts.len()).sum();
        let computed = parts as f64 * (1.0 - HELD);
        let worker = |_| Worker { cache: Lru::new(capacity), idle_from: 0.0 };
        Self {
            workers: (0..workers).map(worker).collect(),
            capacity,
            ms_per_part: LOAD * trace.milliseconds() * workers as f64 / computed,
            random: Random::of_trial(seed, "pool", 0),
            served: Served::default(),
        }
    }

    /// The sums over all requests so far.
    #[must_use]
    pub const fn served(&self) -> Served {
        self.served
    }

    /// Number of parts in all caches.
    #[must_use]
    pub fn held(&self) -> usize {
        self.workers.iter().map(|worker| worker.cache.len()).sum()
    }

    /// How many leading parts of a request a worker holds.
    #[must_use]
    pub fn depth(&self, worker: usize, request: &Request) -> usize {
        let cache = &self.workers[worker].cache;
        request.parts.iter().take_while(|part| cache.contains(u64::from(**part))).count()
    }

    /// Restarts a worker, with an empty cache.
    pub fn restart(&mut self, worker: usize) {
        self.workers[worker].cache = Lru::new(self.capacity);
    }

    /// Sends a request to the worker that would finish it first, if each had as many leading parts
    /// as
    /// `depths` returns.
    pub fn route(&mut self, request: &Request, depths: impl Fn(usize) -> f64) -> Change {
        let count = self.workers.len();
        let first = self.random.below(count);
        let done = |worker: usize| {
            let left = (request.parts.len() as f64 - depths(worker)).max(0.0);
            (self.workers[worker].idle_from - request.at).max(0.0) + left * self.ms_per_part
        };
        let (mut best, mut earliest) = (first, done(first));
        for worker in (first + 1..first + count).map(|worker| worker % count) {
            let time = done(worker);
            if time < earliest - 1e-9 {
                (best, earliest) = (worker, time);
            }
        }
        self.serve(best, request)
    }

    fn serve(&mut self, number: usize, request: &Request) -> Change {
        let held = self.depth(number, request);
        let worker = &mut self.workers[number];
        let mut removed = Vec::new();
        let mut ask = |part: &u32| {
            if let policies::Request::Miss { evicted: Some(gone) } =
                worker.cache.request((*part).into())
            {
                removed.push(gone as u32);
            }
        };
        // Request the cached parts first, so that they are not evicted for new ones. At the end the
        // first part is the newest.
        request.parts[..held].iter().for_each(&mut ask);
        request.parts.iter().rev().for_each(&mut ask);
        worker.idle_from = worker.idle_from.max(request.at)
            + (request.parts.len() - held) as f64 * self.ms_per_part;
        self.served.requests += 1;
        self.served.parts += request.parts.len() as u64;
        self.served.hits += held as u64;
        self.served.delay_ms += worker.idle_from - request.at;
        Change { worker: number, removed, held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let line = |at: u32, ids: &str| format!("{{\"timestamp\": {at}, \"hash_ids\": [{ids}]}}\n");
        Trace::parse(&[line(0, "0,1,2"), line(1000, "0,1,2,3"), line(2000, "0,7,8")].concat())
            .unwrap()
    }

    #[test]
    fn requests_go_where_their_beginning_is_held() {
        let trace = trace();
        let mut pool = Pool::new(&trace, 4, 5, 1);
        let mut chosen = Vec::new();
        for request in trace.requests() {
            let depths: Vec<usize> = (0..4).map(|worker| pool.depth(worker, request)).collect();
            chosen.push(pool.route(request, |worker| depths[worker] as f64));
        }
        assert_eq!((chosen[0].held, chosen[1].held), (0, 3));
        assert_eq!(chosen[0].worker, chosen[1].worker);
        assert_eq!(pool.served().requests, 3);
        assert!(pool.served().hit_rate() >= 0.3);
        pool.restart(chosen[0].worker);
        assert_eq!(pool.depth(chosen[0].worker, &trace.requests()[1]), 0);
    }

    #[test]
    fn a_full_cache_gives_up_the_ends_of_texts_first() {
        let trace = trace();
        let mut pool = Pool::new(&trace, 1, 5, 1);
        let changes: Vec<Change> =
            trace.requests().iter().map(|request| pool.route(request, |_| 0.0)).collect();
        assert!(changes[1].removed.is_empty());
        assert_eq!(changes[2].removed, [3], "the end of the older text");
        assert_eq!(changes[2].held, 1);
        assert_eq!(pool.held(), 5);
    }
}
