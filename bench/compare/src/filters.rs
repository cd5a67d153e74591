//! Standard filters: add and ask, in the cache and out of it.

use umbel::filter::Membership;
use umbel::{BlockedFilter, Digest, DynamicFilter, KeyHash, Shape, StandardFilter};
use xxhash_rust::xxh3::xxh3_64;

use crate::harness::{Goal, Mix, Table};

/// 10^5 keys: the filter fits the second-level cache.
pub(crate) fn in_cache() {
    let keys: Vec<u64> = Mix(1).take(100_000).collect();
    let absent: Vec<u64> = Mix(2).take(100_000).collect();
    measure("10^5 keys at 1 %, in the cache", &keys, &absent, 25);
    grow();
}

/// 5·10^7 keys: the filter is twice the last-level cache.
pub(crate) fn out_of_cache() {
    let keys: Vec<u64> = Mix(1).take(50_000_000).collect();
    let absent: Vec<u64> = Mix(2).take(2_000_000).collect();
    measure("5·10^7 keys at 1 %, out of the cache", &keys, &absent, 5);
}

/// The same shape for all Bloom filters: what umbel's design asks for at 1 %.
fn shape_for(items: usize) -> Shape {
    let shape = umbel::design::standard(items as u64, umbel::Rate::new(0.01).expect("a rate"));
    let shape = shape.expect("a shape");
    Shape::new(shape.bits(), shape.hashes()).expect("a shape")
}

fn hash(key: u64) -> u64 {
    xxh3_64(&key.to_le_bytes())
}

fn digest(key: u64) -> Digest {
    KeyHash::from_raw(hash(key)).digest(umbel::DigestBits::FULL)
}

fn rival(shape: &Shape) -> fastbloom::BloomFilter {
    fastbloom::BloomFilter::with_num_bits(shape.bits() as usize).hashes(shape.hashes())
}

/// Of as many bits as the rival's.
fn blocked_like(split: &sbbf_rs_safe::Filter) -> BlockedFilter {
    let shape = Shape::new(split.as_bytes().len() as u64 * 8, 8).expect("a shape");
    BlockedFilter::new(shape.into()).expect("memory")
}

fn measure(title: &str, keys: &[u64], absent: &[u64], rounds: usize) {
    let n = keys.len();
    let shape = shape_for(n);
    let mut fast = rival(&shape);
    let mut split = sbbf_rs_safe::Filter::new(10, n);
    let mut quotient = qfilter::Filter::new(n as u64, 0.01).expect("a quotient filter");
    let mut ours = StandardFilter::with_shape(shape).expect("memory");
    let mut blocked = blocked_like(&split);
    for key in keys {
        fast.insert_hash(hash(*key));
        split.insert_hash(hash(*key));
        blocked.insert_digest(digest(*key));
        ours.insert_digest(digest(*key));
        let _ = quotient.insert_duplicated(key);
    }
    check(&ours, keys, absent);
    assert!(keys.iter().all(|key| blocked.contains_digest(digest(*key))), "no false negatives");
    let wrong = |claims: &dyn Fn(u64) -> bool| {
        absent.iter().filter(|key| claims(**key)).count() as f64 * 100.0 / absent.len() as f64
    };
    println!(
        "\n* wrong answers at {} bits: umbel blocked {:.2} %, split-block {:.2} %",
        blocked.scheme().shape().bits(),
        wrong(&|key| blocked.contains_digest(digest(key))),
        wrong(&|key| split.contains_hash(hash(key))),
    );

    let digests: Vec<Digest> = absent.iter().map(|key| digest(*key)).collect();
    let hashes: Vec<u64> = absent.iter().map(|key| hash(*key)).collect();
    let (mut answers, mut blocked_answers) = (Vec::new(), Vec::new());
    let mut table = Table::new(format!("{title}: absent keys"));
    let count = absent.len();
    table.case("fastbloom", count, || sum(&hashes, |hash| fast.contains_hash(hash)));
    table.case("umbel", count, || sum(&digests, |digest| ours.contains_digest(digest)));
    table.case("umbel, batch", count, || {
        ours.contains_digests(&digests, &mut answers);
        answers.iter().map(|answer| u64::from(*answer)).sum()
    });
    table.case("fastbloom, key to answer", count, || {
        sum(absent, |key| fast.contains_hash(hash(key)))
    });
    table.case("umbel, key to answer", count, || {
        sum(absent, |key| ours.contains_digest(digest(key)))
    });
    table.case("split-block (sbbf-rs-safe)", count, || {
        sum(&hashes, |hash| split.contains_hash(hash))
    });
    table.case("umbel blocked", count, || sum(&digests, |digest| blocked.contains_digest(digest)));
    table.case("umbel blocked, batch", count, || {
        blocked.contains_digests(&digests, &mut blocked_answers);
        blocked_answers.iter().map(|answer| u64::from(*answer)).sum()
    });
    table.case("qfilter, its own hash", count, || sum(absent, |key| quotient.contains(key)));
    let single = Goal::at_most("umbel blocked", 1.0, "split-block (sbbf-rs-safe)");
    let batch = Goal::at_most("umbel blocked, batch", 1.0, "split-block (sbbf-rs-safe)");
    if n > 1_000_000 {
        table.measure(rounds, &[Goal::faster("umbel, batch", 1.8, "fastbloom"), batch]);
    } else {
        table.measure(rounds, &[Goal::faster("umbel", 2.0, "fastbloom"), single, batch]);
    }

    let present = &keys[..count.min(n)];
    let digests: Vec<Digest> = present.iter().map(|key| digest(*key)).collect();
    let hashes: Vec<u64> = present.iter().map(|key| hash(*key)).collect();
    let (mut answers, mut blocked_answers) = (Vec::new(), Vec::new());
    let mut table = Table::new(format!("{title}: present keys"));
    let count = present.len();
    table.case("fastbloom", count, || sum(&hashes, |hash| fast.contains_hash(hash)));
    table.case("umbel", count, || sum(&digests, |digest| ours.contains_digest(digest)));
    table.case("umbel, batch", count, || {
        ours.contains_digests(&digests, &mut answers);
        answers.iter().map(|answer| u64::from(*answer)).sum()
    });
    table.case("split-block (sbbf-rs-safe)", count, || {
        sum(&hashes, |hash| split.contains_hash(hash))
    });
    table.case("umbel blocked", count, || sum(&digests, |digest| blocked.contains_digest(digest)));
    table.case("umbel blocked, batch", count, || {
        blocked.contains_digests(&digests, &mut blocked_answers);
        blocked_answers.iter().map(|answer| u64::from(*answer)).sum()
    });
    table.case("qfilter, its own hash", count, || sum(present, |key| quotient.contains(key)));
    table.measure(rounds, &[]);

    inserts(title, &shape, n, &hashes, &digests, rounds);
}

/// Inserts into filters that hold all keys already: the same work, without page faults.
fn inserts(
    title: &str,
    shape: &Shape,
    n: usize,
    hashes: &[u64],
    digests: &[Digest],
    rounds: usize,
) {
    let mut table = Table::new(format!("{title}: insert"));
    let (mut fast, mut split) = (rival(shape), sbbf_rs_safe::Filter::new(10, n));
    let mut blocked = blocked_like(&split);
    let mut blocked_batch = blocked.clone();
    let mut ours = StandardFilter::with_shape(*shape).expect("memory");
    let mut batched = ours.clone();
    let count = hashes.len();
    table.case("fastbloom", count, move || changed(hashes, |hash| fast.insert_hash(hash)));
    table.case("umbel", count, move || changed(digests, |digest| ours.insert_digest(digest)));
    table.case("umbel, batch", count, move || {
        batched.insert_digests(digests);
        batched.items()
    });
    table.case("split-block (sbbf-rs-safe)", count, move || {
        changed(hashes, |hash| split.insert_hash(hash))
    });
    table.case("umbel blocked", count, move || {
        changed(digests, |digest| blocked.insert_digest(digest))
    });
    table.case("umbel blocked, batch", count, move || {
        blocked_batch.insert_digests(digests);
        blocked_batch.items()
    });
    let blocked = Goal::at_most("umbel blocked, batch", 1.0, "split-block (sbbf-rs-safe)");
    table.measure(rounds, &[Goal::at_most("umbel", 1.0, "fastbloom"), blocked]);
}

/// Filters that grow from a sixteenth of their final number of keys.
fn grow() {
    let keys: Vec<[u8; 8]> = Mix(1).take(100_000).map(u64::to_le_bytes).collect();
    let absent: Vec<[u8; 8]> = Mix(2).take(100_000).map(u64::to_le_bytes).collect();
    let start = keys.len() / 16;
    let mut growable = growable_bloom_filter::GrowableBloom::new(0.01, start);
    let mut dynamic =
        DynamicFilter::<StandardFilter>::planned(start as u64, 0.01, 16).expect("memory");
    for key in &keys {
        growable.insert(key);
        dynamic.insert(key);
    }
    assert!(keys.iter().all(|key| dynamic.contains(key)));
    let digests: Vec<Digest> = absent.iter().map(|key| dynamic.scheme().digest(key)).collect();
    let mut table = Table::new("10^5 keys at 1 %, grown from a sixteenth: absent keys");
    let count = absent.len();
    table.case("growable-bloom-filter", count, || {
        absent.iter().map(|key| u64::from(growable.contains(key))).sum()
    });
    table.case("umbel dynamic, key to answer", count, || {
        absent.iter().map(|key| u64::from(dynamic.may_contain(key))).sum()
    });
    table.case("umbel dynamic, sliced", count, || {
        digests.iter().map(|digest| u64::from(dynamic.contains_digest(*digest))).sum()
    });
    table.case("umbel dynamic, one by one", count, || {
        digests.iter().map(|digest| u64::from(dynamic.contains_digest_listed(*digest))).sum()
    });
    table.measure(15, &[]);
    let wrong = |claims: usize| claims as f64 * 100.0 / count as f64;
    println!(
        "* wrong answers: growable-bloom-filter {:.2} %, umbel {:.2} %, with {} components",
        wrong(absent.iter().filter(|key| growable.contains(key)).count()),
        wrong(digests.iter().filter(|digest| dynamic.contains_digest(**digest)).count()),
        dynamic.components().len(),
    );
}

/// How many keys are claimed: one plain loop for every filter, compiled for it alone.
#[inline(never)]
fn sum<T: Copy>(keys: &[T], answer: impl Fn(T) -> bool) -> u64 {
    let mut claimed = 0;
    for key in keys {
        claimed += u64::from(answer(*key));
    }
    claimed
}

/// How many inserts changed a filter: as [`sum`].
#[inline(never)]
fn changed<T: Copy>(keys: &[T], mut insert: impl FnMut(T) -> bool) -> u64 {
    let mut changed = 0;
    for key in keys {
        changed += u64::from(insert(*key));
    }
    changed
}

/// A bench that measures wrong answers measures nothing.
fn check(filter: &StandardFilter, keys: &[u64], absent: &[u64]) {
    assert!(keys.iter().all(|key| filter.contains_digest(digest(*key))), "no false negatives");
    let wrong = absent.iter().filter(|key| filter.contains_digest(digest(**key))).count();
    let rate = wrong as f64 / absent.len() as f64;
    assert!((0.009..0.011).contains(&rate), "{rate}");
}
