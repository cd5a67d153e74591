//! Lookups of one set that named no host are repeated when an update arrives, to count how many
//! came too early.
//!
//! ```text
//! who ─► nobody ─► note ─► the latest of them, as hashes
//! update of a column ─► recheck: does it claim one of them now? Then that question came too early.
//! ```
//!
//! The count is an upper bound: the key may have been added between the lookup and the update. Only
//! lookups since the column's previous update are repeated: a key that was added before that update
//! would have arrived with it.
//!
//! Counting is cheap for lookups: a thread counts in a cache line of its own, and at most
//! [`PER_SECOND`] lookups per second are kept. Each of these stands for all since the previous one.
//! So the counts are estimates if more lookups than that name no host; up to that rate they are
//! exact, as long as an update arrives before [`REMEMBERED`] further lookups.
//!
//! Always true: memory per set is bounded, and allocated by the first lookup; a lookup counts once.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use umbel::KeyHash;

/// Maximum number of lookups that are kept.
const REMEMBERED: usize = 256;
/// Maximum number of lookups that are kept per second.
const PER_SECOND: u64 = 32;
/// Number of counters, so that threads rarely share a cache line.
const SHARDS: usize = 8;

/// The outcomes of lookups of one set that were answered from memory.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Empty until the first lookup: in a large cluster most sets are looked up at few hosts.
    asked: OnceLock<Box<Counted>>,
    late: AtomicU64,
}

#[derive(Debug, Default)]
struct Counted {
    shards: [Counts; SHARDS],
    /// The last second in which lookups were kept, and how many.
    window: AtomicU64,
    ring: Mutex<Ring>,
}

/// Counters of one thread or a few, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counts {
    found: AtomicU64,
    denied: AtomicU64,
}

/// The latest lookups that named no host.
#[derive(Debug, Default)]
struct Ring {
    questions: VecDeque<DeniedLookup>,
    /// Lookups that were kept, or for which another one stands.
    accounted: u64,
}

#[derive(Debug, Clone, Copy)]
struct DeniedLookup {
    hash: KeyHash,
    asked: Duration,
    /// How many lookups it stands for.
    weight: u64,
}

/// The counts for reports.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct LateLookups {
    /// Lookups that named no host although one held the key: an upper bound.
    pub(super) late: u64,
    /// Late lookups as a share of late lookups and those that named a host; `None` if there are
    /// neither.
    pub(super) share: Option<f64>,
}

impl Lookups {
    /// Counts lookups: how many named a host, and the keys of those that named none.
    pub(super) fn note(&self, found: u64, denied: &[KeyHash], now: impl FnOnce() -> Duration) {
        if found == 0 && denied.is_empty() {
            return;
        }
        let asked = self.asked.get_or_init(Box::default);
        let counts = &asked.shards[shard()];
        if found > 0 {
            counts.found.fetch_add(found, Ordering::Relaxed);
        }
        if !denied.is_empty() {
            counts.denied.fetch_add(denied.len() as u64, Ordering::Relaxed);
            let now = now();
            let room = asked.take_room(now, denied.len() as u64) as usize;
            if room > 0 {
                asked.remember(&denied[..room], now);
            }
        }
    }

    /// Repeats the lookups since `since` for a column that was just updated; returns how many of
    /// them came too early. `claims` returns for each key whether the column claims it.
    pub(super) fn recheck(
        &self,
        since: Duration,
        claims: impl FnOnce(&[KeyHash]) -> Vec<bool>,
    ) -> u64 {
        let Some(asked) = self.asked.get() else { return 0 };
        let mut ring = asked.ring.lock();
        // The latest are at the end.
        let first = ring.questions.partition_point(|question| question.asked < since);
        let hashes: Vec<KeyHash> = ring.questions.range(first..).map(|q| q.hash).collect();
        if hashes.is_empty() {
            return 0;
        }
        let claimed = claims(&hashes);
        let (mut late, mut place) = (0, 0);
        ring.questions.retain(|question| {
            let is_late = place >= first && claimed.get(place - first) == Some(&true);
            place += 1;
            late += if is_late { question.weight } else { 0 };
            !is_late
        });
        drop(ring);
        self.late.fetch_add(late, Ordering::Relaxed);
        late
    }

    /// The counts so far.
    pub(super) fn late(&self) -> LateLookups {
        let Some(asked) = self.asked.get() else { return LateLookups::default() };
        let late = self.late.load(Ordering::Relaxed);
        let found: u64 = asked.shards.iter().map(|s| s.found.load(Ordering::Relaxed)).sum();
        let all = late + found;
        LateLookups { late, share: (all > 0).then(|| late as f64 / all as f64) }
    }
}

impl Counted {
    /// How many of `wanted` lookups may be kept in this second.
    fn take_room(&self, now: Duration, wanted: u64) -> u64 {
        let second = now.as_secs() + 1;
        let mut before = self.window.load(Ordering::Relaxed);
        loop {
            // The second is in the upper bits, the number of lookups kept in it in the lowest
            // eight.
            let taken = if before >> 8 == second { before & 0xff } else { 0 };
            let room = wanted.min(PER_SECOND - taken);
            if room == 0 {
                return 0;
            }
            let after = second << 8 | (taken + room);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.window.compare_exchange_weak(before, after, success, failure) {
                Ok(_) => return room,
                Err(other) => before = other,
            }
        }
    }

    /// Keeps lookups; they stand for all since those that were kept last.
    fn remember(&self, hashes: &[KeyHash], asked: Duration) {
        let mut ring = self.ring.lock();
        let denied: u64 = self.shards.iter().map(|s| s.denied.load(Ordering::Relaxed)).sum();
        // Zero if another thread's lookup, counted later but kept first, stands for these already.
        let fresh = denied.saturating_sub(ring.accounted);
        ring.accounted += fresh;
        let (each, mut rest) = (fresh / hashes.len() as u64, fresh % hashes.len() as u64);
        // Two threads may arrive in another order than they read their clocks.
        let asked = ring.questions.back().map_or(asked, |last| last.asked.max(asked));
        for hash in hashes {
            if ring.questions.len() == REMEMBERED {
                ring.questions.pop_front();
            }
            let weight = each + u64::from(rest > 0);
            rest = rest.saturating_sub(1);
            ring.questions.push_back(DeniedLookup { hash: *hash, asked, weight });
        }
    }
}

/// The counters of this thread.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    SHARD.with(|shard| *shard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(range: std::ops::Range<u64>) -> Vec<KeyHash> {
        range.map(KeyHash::from_raw).collect()
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A column that now claims these keys.
    fn claims(keys: std::ops::Range<u64>) -> impl FnOnce(&[KeyHash]) -> Vec<bool> {
        move |hashes| hashes.iter().map(|hash| keys.contains(&hash.get())).collect()
    }

    #[test]
    fn a_question_that_a_later_update_answers_came_too_early() {
        let lookups = Lookups::default();
        assert_eq!(lookups.recheck(Duration::ZERO, claims(0..100)), 0);
        lookups.note(6, &hashes(0..4), || at(100));
        assert_eq!(lookups.recheck(at(50), claims(2..3)), 1);
        assert_eq!(lookups.recheck(at(50), claims(2..3)), 0, "it counts once");
        assert_eq!(
            lookups.recheck(at(101), claims(0..4)),
            0,
            "asked before the column's last update"
        );
        assert_eq!(lookups.recheck(at(100), claims(3..9)), 1);
        assert_eq!(lookups.late(), LateLookups { late: 2, share: Some(0.25) });
    }

    /// Beyond the rate per second each lookup that is kept stands for several.
    #[test]
    fn many_questions_are_estimated_from_a_few() {
        let lookups = Lookups::default();
        for second in 0..100 {
            for batch in 0..20 {
                let now = at(second * 1000 + batch * 10);
                lookups.note(0, &hashes(second * 1000..second * 1000 + 50), || now);
            }
        }
        let asked = lookups.asked.get().unwrap();
        assert_eq!(asked.ring.lock().questions.len(), REMEMBERED);
        let weights: u64 = asked.ring.lock().questions.iter().map(|q| q.weight).sum();
        // The ring spans eight seconds of a thousand lookups each, 32 of which are kept.
        assert_eq!(weights, 8 * 1000);
        assert_eq!(lookups.recheck(Duration::ZERO, claims(0..u64::MAX)), 8 * 1000);
    }

    #[test]
    fn threads_that_count_at_once_lose_nothing() {
        let lookups = Lookups::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let lookups = &lookups;
                scope.spawn(move || {
                    for question in 0..1000 {
                        let hash = hashes(thread * 1000 + question..thread * 1000 + question + 1);
                        lookups.note(1, &hash, || at(question * 100));
                    }
                });
            }
        });
        // One last lookup accounts for those that no kept lookup stands for yet.
        lookups.note(0, &hashes(9..10), || at(1_000_000));
        assert_eq!(lookups.asked.get().unwrap().ring.lock().accounted, 4001);
        assert_eq!(lookups.late().share, Some(0.0));
    }
}
