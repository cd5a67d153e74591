//! Which of many hosts hold a key: a bank against loops over filters.
//!
//! The limit is memory: reading one word of every line of as many random rows. The rows and the
//! filters of 128 hosts fit the last-level cache, each alone; so every case runs once before it
//! is timed.

use std::hint::black_box;

use umbel::bank::{Bank, BatchCandidates, Candidates, ColumnId, Line, Rows};
use umbel::{Digest, KeyHash, KeyHasher, Shape, StandardFilter};

use crate::harness::{Goal, Mix, Table};
use crate::huge::HugeRows;

const LOG_BITS: u32 = 20;
const HASHES: u32 = 7;
const LIMIT: &str = "touching the rows (the limit)";
const ITEMS: usize = (1 << LOG_BITS) / 10;

/// Filters of as many hosts, in every form that is measured.
pub(crate) struct Hosts {
    pub(crate) plain: Vec<StandardFilter>,
    fast: Vec<fastbloom::BloomFilter>,
    split: Vec<sbbf_rs_safe::Filter>,
}

pub(crate) fn shape() -> Shape {
    Shape::new(1 << LOG_BITS, HASHES).expect("a shape")
}

impl Hosts {
    fn new(count: usize) -> Self {
        let mut hosts = Self { plain: Vec::new(), fast: Vec::new(), split: Vec::new() };
        for host in 0..count {
            let mut plain = StandardFilter::with_shape(shape()).expect("memory");
            let mut fast = fastbloom::BloomFilter::with_num_bits(1 << LOG_BITS).hashes(HASHES);
            let mut split = sbbf_rs_safe::Filter::new(10, ITEMS);
            for hash in Mix(host as u64 + 1).take(ITEMS) {
                plain.insert_digest(digest(hash));
                fast.insert_hash(hash);
                split.insert_hash(hash);
            }
            hosts.plain.push(plain);
            hosts.fast.push(fast);
            hosts.split.push(split);
        }
        hosts
    }
}

fn digest(hash: u64) -> Digest {
    KeyHash::from_raw(hash).digest(umbel::DigestBits::FULL)
}

pub(crate) fn run() {
    let hosts = Hosts::new(1024);
    measure(&hosts, 1024);
    measure(&hosts, 128);
}

/// A bank of the plain filters, and its columns in their order.
pub(crate) fn bank_of<R: Rows>(filters: &[StandardFilter]) -> (Bank<R>, Vec<ColumnId>) {
    let mut bank = Bank::new(KeyHasher::default());
    let columns: Vec<_> = filters.iter().map(StandardFilter::bits).collect();
    let ids = bank.add_many(&shape().into(), &columns).expect("memory");
    (bank, ids)
}

fn measure(hosts: &Hosts, count: usize) {
    let (bank, _): (Bank<HugeRows>, _) = bank_of(&hosts.plain[..count]);
    let (ordinary, _): (Bank, _) = bank_of(&hosts.plain[..count]);
    check(&bank, &hosts.plain[..count]);
    let absent: Vec<KeyHash> = Mix(0xFEED).take(120_000).map(KeyHash::from_raw).collect();
    let few = &absent[..(400_000 / count).max(300)];
    let rows = Touched::new(count);

    let (mut candidates, mut one) = (Candidates::new(), Candidates::new());
    let (mut batch, mut other) = (BatchCandidates::new(), BatchCandidates::new());
    let mut table = Table::warmed(format!("WHO over {count} hosts, m = 2^20, k = 7, absent keys"));
    table.case(LIMIT, absent.len(), || rows.touch(&absent));
    table.case("umbel, bitmap", absent.len(), || {
        let mut sum = 0;
        bank.who_each(&absent, &mut candidates, |_, found| sum ^= mixed(found.words()));
        sum
    });
    table.case("umbel, bitmap, key by key", absent.len(), || {
        absent.iter().fold(0, |sum, hash| {
            bank.who(*hash, &mut one);
            sum ^ mixed(one.words())
        })
    });
    table.case("umbel, ids", absent.len(), || count_ids(&bank, &absent, &mut batch));
    table.case("umbel, ids, ordinary pages", absent.len(), || {
        count_ids(&ordinary, &absent, &mut other)
    });
    let (fast, split, plain) = (&hosts.fast[..count], &hosts.split[..count], &hosts.plain[..count]);
    table.case("loop over fastbloom, hash once", few.len(), || {
        let claims = |hash: u64| fast.iter().filter(|f| f.contains_hash(hash)).count() as u64;
        few.iter().map(|hash| claims(hash.get())).sum()
    });
    table.case("loop over split-block, hash once", few.len(), || {
        let claims = |hash: u64| split.iter().filter(|f| f.contains_hash(hash)).count() as u64;
        few.iter().map(|hash| claims(hash.get())).sum()
    });
    table.case("loop over umbel standard filters", few.len(), || {
        let claims = |digest| plain.iter().filter(|f| f.contains_digest(digest)).count() as u64;
        few.iter().map(|hash| claims(digest(hash.get()))).sum()
    });
    let (over_fast, over_split) = if count == 1024 { (450.0, 150.0) } else { (200.0, 75.0) };
    table.measure(
        15,
        &[
            Goal::at_most("umbel, bitmap", 1.1, LIMIT),
            Goal::at_most("umbel, ids", 1.5, LIMIT),
            Goal::faster("umbel, ids", over_fast, "loop over fastbloom, hash once"),
            Goal::faster("umbel, ids", over_split, "loop over split-block, hash once"),
        ],
    );
}

/// Something that depends on every word.
fn mixed(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum ^ word)
}

/// Asks in batches that fit the second-level cache with their answers.
fn count_ids<R: Rows>(bank: &Bank<R>, hashes: &[KeyHash], batch: &mut BatchCandidates) -> u64 {
    let mut asked = 0;
    for hashes in hashes.chunks(1024) {
        bank.who_batch(hashes, batch);
        asked += black_box(&*batch).len();
    }
    asked as u64
}

/// Rows like the bank's, of which only one word a cache line is read: no lookup can cost
/// less.
struct Touched {
    rows: HugeRows,
    words_a_row: usize,
}

impl Touched {
    fn new(count: usize) -> Self {
        let words_a_row = count / 64;
        let mut rows = HugeRows::zeroed((words_a_row << LOG_BITS) / 8).expect("memory");
        // Untouched pages would all be one page of zeros.
        bytemuck::cast_slice_mut::<Line, u64>(rows.lines_mut()).fill(1);
        Self { rows, words_a_row }
    }

    fn touch(&self, hashes: &[KeyHash]) -> u64 {
        let words: &[u64] = bytemuck::cast_slice(self.rows.lines());
        match self.words_a_row {
            2 => touch::<2>(words.as_chunks().0, hashes),
            16 => touch::<16>(words.as_chunks().0, hashes),
            other => unreachable!("rows of {other} words"),
        }
    }
}

fn touch<const W: usize>(rows: &[[u64; W]], hashes: &[KeyHash]) -> u64 {
    let shape = shape();
    let mut sum = 0;
    for hash in hashes {
        for position in digest(hash.get()).positions(&shape) {
            let row = &rows[position as usize];
            (0..W).step_by(8).for_each(|word| sum ^= row[word]);
        }
    }
    sum
}

/// A bench that measures wrong answers measures nothing.
fn check(bank: &Bank<HugeRows>, filters: &[StandardFilter]) {
    let hashes: Vec<KeyHash> =
        Mix(5).take(200).chain(Mix(1).take(200)).map(KeyHash::from_raw).collect();
    let mut batch = BatchCandidates::new();
    bank.who_batch(&hashes, &mut batch);
    for (hash, ids) in hashes.iter().zip(batch.iter()) {
        let claiming = (0..).zip(filters).filter(|(_, f)| f.contains_digest(digest(hash.get())));
        let expected: Vec<u32> = claiming.map(|(index, _)| index).collect();
        assert!(ids.iter().map(|id| id.get()).eq(expected));
    }
}
