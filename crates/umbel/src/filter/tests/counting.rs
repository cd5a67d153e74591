//! Counters: never past 15, never below 0, and counted right.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..crate::model::seeded() })]

    /// Strangers that are claimed by chance may be removed too, by callers who do not know
    /// better, and positions may repeat: counters neither pass 15 nor fall below 0.
    #[test]
    fn counters_are_those_of_a_plain_list(
        bits in 1u64..40, hashes in 1u32..6,
        steps in prop::collection::vec((0u32..5, 0u64..60), 0..300),
    ) {
        let shape = Shape::new(bits, hashes).unwrap();
        let mut filter = CountingFilter::with_shape(shape).unwrap();
        let mut twin = vec![0u8; bits as usize];
        for (action, key) in steps {
            let digest = filter.scheme().digest(&bytes(key));
            let positions: Vec<usize> = digest.positions(&shape).map(|p| p as usize).collect();
            let before = twin.clone();
            let claimed = positions.iter().all(|position| twin[*position] > 0);
            prop_assert_eq!(filter.contains_digest(digest), claimed);
            let flips = if action < 3 {
                positions.iter().for_each(|p| twin[*p] = (twin[*p] + 1).min(CountingFilter::STUCK));
                Some(filter.insert_digest(digest))
            } else {
                let falls = |count: u8| claimed && count > 0 && count < CountingFilter::STUCK;
                positions.iter().for_each(|p| twin[*p] -= u8::from(falls(twin[*p])));
                filter.remove_digest(digest)
            };
            let flipped = before.iter().zip(&twin).filter(|(old, new)| (**old > 0) != (**new > 0));
            let expected = (action < 3 || claimed).then(|| flipped.count() as u32);
            prop_assert_eq!(flips, expected);
            prop_assert!((0..bits).all(|p| filter.counter(p) == twin[p as usize]));
        }
        filter.validate();
        prop_assert_eq!(filter.levels(), twin.iter().copied().max().unwrap());
        for level in 1..=CountingFilter::STUCK {
            let reach = (0..bits).filter(|position| twin[*position as usize] >= level);
            prop_assert!(filter.level(level).unwrap().positions().eq(reach));
        }
    }
}

#[test]
fn counters_stick_at_fifteen_and_are_reported() {
    let mut filter = CountingFilter::with_shape(Shape::new(64, 1).unwrap()).unwrap();
    for _ in 0..20 {
        filter.insert("often");
    }
    assert_eq!(filter.stuck_counters(), 1);
    for _ in 0..20 {
        assert!(filter.remove("often"), "a stuck counter is never lowered");
    }
    assert!(filter.contains("often"));
    filter.validate();
    let mut other = filter.clone();
    other.union_with(&filter).unwrap();
    assert_eq!(other.stuck_counters(), 1);
    other.validate();
}
