//! How long does a routing decision take: filters of an entry sliced, or scanned one by one?
//!
//! `cargo bench -p umbel --bench route` also prints the ratio of both, from rounds that take turns.
//! Paper 5, section 4.2 (bit slice against bit string).

#![allow(missing_docs, reason = "a bench has no documentation to read")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use umbel::route::{EntryKind, Filters, HomeId, LinkId, Plan, RouteTable};
use umbel::{KeyHash, KeyHasher, Scheme, StandardFilter};

const ITEMS: u64 = 30;
const FILTERS: [u64; 3] = [10, 100, 1000];
const ASKED: u64 = 10_000;

/// An entry of so many filters: each alone, and sliced in a routing table.
struct Entry {
    filters: Vec<StandardFilter>,
    table: RouteTable,
    strangers: Vec<KeyHash>,
}

impl Entry {
    fn new(count: u64) -> Self {
        let (kind, depth) = (EntryKind::Cubf, 3);
        let plan = Plan { kind, depth, items: ITEMS, filters: count, false_positive: 0.001 };
        let hasher = KeyHasher::default();
        let scheme = Scheme::new(plan.shape().expect("in range"), hasher);
        let mut table = RouteTable::new(&plan, hasher);
        let filter = |home: u64| {
            let mut filter = StandardFilter::new(scheme).expect("there is memory");
            (0..ITEMS).for_each(|key| {
                filter.insert((home << 32 | key).to_le_bytes());
            });
            let filters = Filters { scheme: &scheme, components: vec![filter.bits()] };
            table.offer(LinkId(0), HomeId(home as u32), 1, &filters).expect("there is room");
            filter
        };
        let filters = (0..count).map(filter).collect();
        let strangers = (1 << 60..(1 << 60) + ASKED).map(|key| hasher.hash(&key.to_le_bytes()));
        Self { filters, table, strangers: strangers.collect() }
    }

    /// Strangers claimed, asking one filter after the other.
    fn scan(&self) -> usize {
        let claims = |hash: &&KeyHash| {
            let digest = self.filters[0].scheme().digest_of(**hash);
            self.filters.iter().any(|filter| filter.contains_digest(digest))
        };
        self.strangers.iter().filter(claims).count()
    }

    /// The same, asking all at once.
    fn slice(&self) -> usize {
        self.strangers.iter().filter(|hash| !self.table.matches(**hash).is_empty()).count()
    }
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("decision");
    group.throughput(Throughput::Elements(ASKED));
    for count in FILTERS {
        let entry = Entry::new(count);
        assert_eq!(entry.scan(), entry.slice(), "both claim the same");
        group.bench_function(BenchmarkId::new("scanned", count), |b| b.iter(|| entry.scan()));
        group.bench_function(BenchmarkId::new("sliced", count), |b| b.iter(|| entry.slice()));
        if std::env::args().any(|argument| argument == "--bench") {
            print_ratio(&entry, count);
        }
    }
    group.finish();
}

/// Nanoseconds a decision, the best of rounds that take turns.
fn print_ratio(entry: &Entry, count: u64) {
    let mut best = [Duration::MAX; 2];
    for _ in 0..30 {
        for (best, ask) in best.iter_mut().zip([Entry::scan as fn(&Entry) -> usize, Entry::slice]) {
            let start = Instant::now();
            black_box(ask(entry));
            *best = (*best).min(start.elapsed());
        }
    }
    let [scanned, sliced] = best.map(|time| time.as_nanos() as f64 / ASKED as f64);
    println!(
        "s = {count}: scanned {scanned:.1} ns, sliced {sliced:.1} ns, {:.1} times",
        scanned / sliced
    );
}

criterion_group!(benches, decisions);
criterion_main!(benches);
