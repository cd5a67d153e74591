//! Counting filters: add and remove, with the plain bits kept up.

use bloomcraft::filters::{CounterSize, CountingBloomFilter};
use umbel::{CountingFilter, Digest, KeyHash, Shape, StandardFilter};
use xxhash_rust::xxh3::xxh3_64;

use crate::harness::{Goal, Mix, Table};

/// m = 2^20, k = 7, a tenth as many keys.
pub(crate) fn run() {
    let shape = Shape::new(1 << 20, 7).expect("a shape");
    let keys: Vec<u64> = Mix(3).take((1 << 20) / 10).collect();
    let digests: Vec<Digest> = keys
        .iter()
        .map(|key| KeyHash::from_raw(xxh3_64(&key.to_le_bytes())).digest(umbel::DigestBits::FULL))
        .collect();
    let mut plain = StandardFilter::with_shape(shape).expect("memory");
    let mut ours = CountingFilter::with_shape(shape).expect("memory");
    let mut batched = ours.clone();
    let mut rival = CountingBloomFilter::with_size(keys.len(), 0.01, CounterSize::FourBit);
    for (key, digest) in keys.iter().zip(&digests) {
        ours.insert_digest(*digest);
        rival.insert(key);
        plain.insert_digest(*digest);
        batched.insert_digest(*digest);
    }
    assert_eq!(ours.to_standard(), plain);

    // Every round takes some keys out and puts them in again, so that each case always works
    // on a full filter.
    let slice = 20_000;
    let (some, few) = (&digests[..slice], &keys[..slice]);
    let ours = std::cell::RefCell::new(ours);
    let rival = std::cell::RefCell::new(rival);
    let mut table = Table::new("counting, m = 2^20, k = 7");
    table.case("umbel standard: insert", slice, move || {
        some.iter().map(|digest| u64::from(plain.insert_digest(*digest))).sum()
    });
    table.case("umbel: remove", slice, || {
        let mut filter = ours.borrow_mut();
        some.iter().map(|digest| u64::from(filter.remove_digest(*digest).unwrap_or(0))).sum()
    });
    table.case("umbel: insert", slice, || {
        let mut filter = ours.borrow_mut();
        some.iter().map(|digest| u64::from(filter.insert_digest(*digest))).sum()
    });
    table.case("bloomcraft, its own hash: remove", slice, || {
        let mut filter = rival.borrow_mut();
        few.iter().map(|key| u64::from(filter.delete(key))).sum()
    });
    table.case("bloomcraft, its own hash: insert", slice, || {
        let mut filter = rival.borrow_mut();
        few.iter().for_each(|key| filter.insert(key));
        0
    });
    table.measure(
        40,
        &[
            Goal::at_most("umbel: insert", 3.5, "umbel standard: insert"),
            Goal::faster("umbel: insert", 3.0, "bloomcraft, its own hash: insert"),
        ],
    );
}
