//! What does it cost a home to know how stale its replicas are?
//!
//! Beside the counting insert by digest stands what a home does for an add: the same insert,
//! the publisher's book-keeping, and the question whether an update is due. The catalogue here
//! holds nothing, so that no map is timed. Keys are added to a filter that is full as planned
//! and published, a hundredth of its keys at a time, as between two updates.
//!
//! Promised: the publisher takes at most as long again as the counting insert. The last
//! lines print the ratio.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use umbel::catalogue::Catalogue;
use umbel::filter::ComponentId;
use umbel::replica::{Home, Intervals, Policy, SetPlan};
use umbel::{Digest, DynamicFilter, KeyHasher};

const ITEMS: [u64; 3] = [10_000, 100_000, 1_000_000];

/// Claims to be empty and forgets at once: every add is new.
struct Nothing {
    items: u64,
}

impl Catalogue for Nothing {
    fn contains(&self, _: &[u8]) -> bool {
        false
    }

    fn insert(&mut self, _: &[u8], _: ComponentId) {
        self.items += 1;
    }

    fn remove(&mut self, _: &[u8]) -> Option<ComponentId> {
        self.items -= 1;
        Some(ComponentId(0))
    }

    fn for_each(&self, _: &mut dyn FnMut(&[u8], ComponentId)) {}

    fn len(&self) -> u64 {
        self.items
    }
}

/// A home whose keys are all published, its filter alone, and keys that come and go.
struct Bench {
    home: Home<Nothing>,
    filter: DynamicFilter,
    comers: Vec<[u8; 8]>,
    digests: Vec<Digest>,
}

impl Bench {
    fn new(items: u64) -> Self {
        let plan = SetPlan {
            capacity: Some(items + items / 100),
            policy: policy("miss:0,ghost=0"),
            ..SetPlan::default()
        };
        let intervals = Intervals { shortest: Duration::ZERO, ..Intervals::default() };
        let hasher = KeyHasher::default();
        let mut home =
            Home::new(hasher, plan, intervals, Nothing { items: 0 }).expect("there is memory");
        for key in 0..items {
            home.add(Duration::ZERO, &key.to_be_bytes());
        }
        assert!(home.publish_if_due(Duration::ZERO));
        let filter = home.filter().clone();
        let comers: Vec<_> = (items..items + items / 100).map(u64::to_be_bytes).collect();
        let digests = comers.iter().map(|key| filter.scheme().digest(key)).collect();
        Self { home, filter, comers, digests }
    }

    /// Time of all adds to the home, none of which makes an update due; they are published
    /// and taken back afterwards, so that every round is like the first.
    fn add(&mut self) -> Duration {
        self.home.set_policy(policy("miss:1,ghost=1"));
        let start = Instant::now();
        for key in &self.comers {
            black_box(self.home.add(Duration::ZERO, black_box(key)));
            black_box(self.home.publish_if_due(Duration::ZERO));
        }
        let time = start.elapsed();
        assert!(self.home.misses() > 0, "the publisher counts");
        self.home.set_policy(policy("miss:0,ghost=0"));
        assert!(self.home.publish_if_due(Duration::ZERO));
        for key in &self.comers {
            self.home.remove(Duration::ZERO, key);
        }
        assert!(self.home.publish_if_due(Duration::ZERO));
        time
    }

    /// Time of the same inserts into the filter alone, by digest.
    fn insert(&mut self) -> Duration {
        let start = Instant::now();
        for digest in &self.digests {
            black_box(self.filter.insert_digest(black_box(*digest)));
        }
        let time = start.elapsed();
        self.take_back();
        time
    }

    /// Time of the same inserts into the filter alone, keys hashed as a home hashes them.
    fn hash_and_insert(&mut self) -> Duration {
        let start = Instant::now();
        for key in &self.comers {
            black_box(self.filter.insert(black_box(key)));
        }
        let time = start.elapsed();
        self.take_back();
        time
    }

    fn take_back(&mut self) {
        for digest in &self.digests {
            assert!(self.filter.remove_digest_from(ComponentId(0), *digest));
        }
    }

    /// Nanoseconds a key at home, into the filter by key, and by digest: the lower quartile of
    /// interleaved rounds, which others on the machine disturb least.
    fn quartiles(&mut self) -> [f64; 3] {
        let mut rounds = [const { Vec::new() }; 3];
        for _ in 0..101 {
            rounds[0].push(self.add());
            rounds[1].push(self.hash_and_insert());
            rounds[2].push(self.insert());
        }
        let keys = self.comers.len() as f64;
        rounds.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 4].as_nanos() as f64 / keys
        })
    }
}

fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("publisher");
    // Under `cargo test` all is run once, to see that it still runs.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let sizes = if is_test { &ITEMS[..1] } else { &ITEMS[..] };
    for &items in sizes {
        let mut bench = Bench::new(items);
        group.throughput(Throughput::Elements(bench.comers.len() as u64));
        for (name, time) in [
            ("counting insert", Bench::insert as fn(&mut Bench) -> Duration),
            ("hash and counting insert", Bench::hash_and_insert),
            ("home add", Bench::add),
        ] {
            group.bench_function(BenchmarkId::new(name, items), |bencher| {
                bencher.iter_custom(|rounds| (0..rounds).map(|_| time(&mut bench)).sum());
            });
        }
    }
    group.finish();
    criterion.final_summary();
    for &items in sizes {
        let [home, by_key, insert] = Bench::new(items).quartiles();
        let (publisher, ratio) = (home - by_key, (home - by_key) / insert);
        println!(
            "{items} keys: insert {insert:.1} ns, publisher {publisher:.1} ns: {ratio:.2} times"
        );
    }
}
