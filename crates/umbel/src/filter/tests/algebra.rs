//! Unions, intersections, differences, and what fills say about them.

use super::*;

#[test]
fn algebra_of_different_schemes_is_an_error_and_changes_nothing() {
    let base = Scheme::from(Shape::new(1000, 5).unwrap());
    let digest = DigestBits::new(40).unwrap();
    let others = [
        (Scheme::from(Shape::new(1001, 5).unwrap()), Mismatch::Bits(1000, 1001)),
        (Scheme::from(Shape::new(1000, 6).unwrap()), Mismatch::Hashes(5, 6)),
        (
            Scheme::from(Shape::new(1000, 5).unwrap().with_digest_bits(digest)),
            Mismatch::DigestBits(64, 40),
        ),
        (
            Scheme::new(*base.shape(), KeyHasher::new(HashId::SipHash13, Seed::default())),
            Mismatch::Hash(HashId::Xxh3, HashId::SipHash13),
        ),
        (
            Scheme::new(*base.shape(), KeyHasher::new(HashId::Xxh3, Seed::from_number(9))),
            Mismatch::Seed(Seed::default().fingerprint(), Seed::from_number(9).fingerprint()),
        ),
    ];
    for (scheme, mismatch) in others {
        let mut filter = StandardFilter::new(base).unwrap();
        filter.insert("key");
        let before = filter.clone();
        let other = StandardFilter::new(scheme).unwrap();
        assert_eq!(filter.union_with(&other), Err(mismatch));
        assert_eq!(filter.intersect_with(&other), Err(mismatch));
        assert_eq!(filter.difference_with(&other), Err(mismatch));
        assert_eq!(estimate_union(&filter, &other), Err(mismatch));
        assert_eq!(estimate_intersection(&filter, &other), Err(mismatch));
        assert!(other.clone().union_with(&filter).is_err(), "{mismatch}, the other way round");
        assert_eq!(filter, before);
        let mut counting = CountingFilter::new(base).unwrap();
        assert_eq!(counting.union_with(&CountingFilter::new(scheme).unwrap()), Err(mismatch));
        let mut dynamic = DynamicFilter::<CountingFilter>::new(base, 10, 8).unwrap();
        let other = DynamicFilter::new(scheme, 10, 8).unwrap();
        assert_eq!(dynamic.union_with(&other), Err(mismatch));
    }
    let mut dynamic = DynamicFilter::<CountingFilter>::new(base, 10, 8).unwrap();
    let other = DynamicFilter::new(base, 11, 8).unwrap();
    assert_eq!(dynamic.union_with(&other), Err(Mismatch::Capacity(10, 11)));
}

#[test]
fn items_follow_the_algebra() {
    let make = |keys: std::ops::Range<u64>| {
        let mut filter = StandardFilter::for_target(1000, 0.01).unwrap();
        keys.for_each(|key| filter.put(key));
        filter
    };
    let (many, few) = (make(0..500), make(0..10));
    let mut both = many.clone();
    both.union_with(&few).unwrap();
    assert_eq!(both.items(), 510);
    // Never more than the smaller side, whichever is asked.
    for (a, b) in [(&many, &few), (&few, &many)] {
        let mut shared = a.clone();
        shared.intersect_with(b).unwrap();
        assert!(shared.items() <= 10, "{shared:?}");
    }
    let told_less = StandardFilter::from_parts(*many.scheme(), many.bits().clone(), 3);
    let mut shared = many.clone();
    shared.intersect_with(&told_less).unwrap();
    assert_eq!(shared.items(), 3, "whatever the fill says");
    let mut only = many.clone();
    only.difference_with(&few).unwrap();
    assert!((400..=500).contains(&only.items()), "{only:?}");
    only.clear();
    assert_eq!((only.items(), only.bits().ones()), (0, 0));

    let mut counting = CountingFilter::for_target(1000, 0.01).unwrap();
    (0..20).for_each(|key| counting.put(key));
    counting.union_with(&counting.clone()).unwrap();
    assert_eq!(counting.items(), 40);
    counting.clear();
    assert_eq!(counting, CountingFilter::for_target(1000, 0.01).unwrap());
}

/// A full filter tells nothing of its number of keys: the estimate is infinite, and a file
/// with that many items could not be read again.
#[test]
fn algebra_of_full_filters_keeps_the_number_of_items_finite() {
    let mut full = StandardFilter::with_shape(Shape::new(1, 1).unwrap()).unwrap();
    full.insert("a");
    full.insert("b");
    let mut both = full.clone();
    both.intersect_with(&full).unwrap();
    assert_eq!(both.items(), 2);
    let mut alone = full.clone();
    alone.difference_with(&StandardFilter::new(*full.scheme()).unwrap()).unwrap();
    assert_eq!(alone.items(), 2);
    let read = Decoder::new().filter(&crate::codec::encode(&both)).unwrap();
    assert_eq!(read, both.into());
}

#[test]
fn estimates_come_close() {
    let make = |keys: std::ops::Range<u64>| {
        let mut filter = StandardFilter::for_target(30_000, 0.01).unwrap();
        keys.for_each(|key| filter.put(key));
        filter
    };
    let (a, b) = (make(0..20_000), make(15_000..30_000));
    let close = |estimate: f64, truth: f64| (estimate / truth - 1.0).abs() < 0.02;
    assert!(close(estimate_items(a.scheme().shape(), a.bits().ones()), 20_000.0));
    assert!(close(estimate_union(&a, &b).unwrap(), 30_000.0));
    assert!(close(estimate_intersection(&a, &b).unwrap(), 5_000.0));
    let mut both = a.clone();
    both.intersect_with(&b).unwrap();
    assert!((15_000..20_000).all(|key| both.has(key)));
    assert!(close(both.items() as f64, 5_000.0));
    let mut only = a.clone();
    only.difference_with(&b).unwrap();
    assert_eq!(only.bits().ones(), a.bits().count_beyond(b.bits()));
    let mut full = StandardFilter::with_shape(Shape::new(8, 2).unwrap()).unwrap();
    (0..100).for_each(|key| full.put(key));
    assert!(estimate_items(full.scheme().shape(), full.bits().ones()).is_infinite());
    assert!(estimate_intersection(&full, &full.clone()).unwrap().is_infinite());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..crate::model::seeded() })]

    #[test]
    fn an_intersection_is_estimated_at_no_more_than_either_side(
        a in prop::collection::vec(0u64..60, 0..60), b in prop::collection::vec(0u64..60, 0..60),
    ) {
        let make = |keys: &[u64]| {
            let mut filter = StandardFilter::with_shape(Shape::new(130, 3).unwrap()).unwrap();
            keys.iter().for_each(|key| filter.put(*key));
            filter
        };
        let (a, b) = (make(&a), make(&b));
        let items = |filter: &StandardFilter| estimate_items(filter.scheme().shape(), filter.bits().ones());
        let both = estimate_intersection(&a, &b).unwrap();
        prop_assert!((0.0..=items(&a).min(items(&b)) + 1e-9).contains(&both));
        let either = estimate_union(&a, &b).unwrap();
        prop_assert!(either >= items(&a).max(items(&b)));
    }
}

/// A filter of eight bits that has ones exactly here.
fn ones_at(positions: std::ops::Range<u64>) -> StandardFilter {
    let digest_bits = DigestBits::new(3).unwrap();
    let shape = Shape::new(8, 1).unwrap().with_digest_bits(digest_bits);
    let mut filter = StandardFilter::with_shape(shape).unwrap();
    for position in positions {
        filter.insert_digest(Digest::from_raw(position, digest_bits).unwrap());
    }
    filter
}

/// When a union has all bits set, nothing is left to subtract: the intersection with an empty
/// filter was said to be infinite, and that of two halves without a common bit the sum of both.
#[test]
fn where_the_union_is_full_shared_bits_tell_what_is_in_both() {
    let (full, none) = (ones_at(0..8), ones_at(0..0));
    let (low, high) = (ones_at(0..4), ones_at(4..8));
    for (a, b, expected) in [
        (&full, &none, 0.0),
        (&low, &high, 0.0),
        (&full, &low, estimate_items(low.scheme().shape(), 4)),
        (&full, &full, f64::INFINITY),
        (&none, &none, 0.0),
    ] {
        assert_eq!(estimate_intersection(a, b), Ok(expected), "{a:?} and {b:?}");
        assert_eq!(estimate_intersection(b, a), Ok(expected), "{b:?} and {a:?}");
    }
    let mut both = full;
    both.intersect_with(&none).unwrap();
    assert_eq!(both.items(), 0);
}
