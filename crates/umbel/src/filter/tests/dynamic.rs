//! Components: where keys go, how they leave, what ids mean.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..crate::model::seeded() })]

    #[test]
    fn remembered_components_make_removal_exact(
        steps in prop::collection::vec((any::<bool>(), 0u64..300), 0..300),
        tidy_every in 5usize..40,
    ) {
        let mut filter = DynamicFilter::new(crowded(), 10, 8).unwrap();
        let mut catalogue: BTreeMap<u64, ComponentId> = BTreeMap::new();
        for (index, (add, key)) in steps.into_iter().enumerate() {
            match (add, catalogue.get(&key).copied()) {
                (true, None) => {
                    catalogue.insert(key, filter.insert(bytes(key)));
                }
                (false, Some(component)) => {
                    prop_assert!(filter.remove_from(component, bytes(key)));
                    catalogue.remove(&key);
                }
                _ => {}
            }
            if index % tidy_every == 0 {
                filter.shrink();
            }
        }
        filter.validate();
        prop_assert!(catalogue.keys().all(|key| filter.contains(bytes(*key))));
        prop_assert_eq!(filter.items(), catalogue.len() as u64);
        for (key, component) in catalogue {
            prop_assert!(filter.remove_from(component, bytes(key)));
        }
        let residue: u64 = filter.components().iter().map(|(_, c)| c.bits().ones()).sum();
        prop_assert_eq!(residue, filter.stuck_counters());
    }

    #[test]
    fn sliced_and_listed_queries_agree(keys in prop::collection::vec(any::<u64>(), 0..400)) {
        let mut filter = DynamicFilter::<CountingFilter>::new(crowded(), 15, 8).unwrap();
        for key in &keys {
            filter.insert(bytes(*key));
        }
        for key in 0..200 {
            let digest = filter.scheme().digest(&bytes(key));
            prop_assert_eq!(filter.contains_digest(digest), filter.contains_digest_listed(digest));
            let listed: Vec<_> = filter.components().iter()
                .filter(|(_, component)| component.contains_digest(digest))
                .map(|(id, _)| *id)
                .collect();
            prop_assert_eq!(filter.claimants(digest), listed);
        }
    }
}

#[test]
fn plans_for_nothing_or_too_much_are_refused() {
    let made = |capacity, max| DynamicFilter::<CountingFilter>::new(crowded(), capacity, max).err();
    assert_eq!(made(0, 8), Some(ParamError::Items(0)));
    assert_eq!(made(1, 0), Some(ParamError::Components(0)));
    assert_eq!(made(1, 65_537), Some(ParamError::Components(65_537)));
    assert_eq!(made(1, 65_536), None);
    assert!(DynamicFilter::for_target(0, 0.01).is_err());
    assert!(DynamicFilter::for_target(10, 1.0).is_err());
    assert!(DynamicFilter::<StandardFilter>::planned(10, 0.01, 0).is_err());
}

#[test]
fn a_key_that_several_components_claim_is_kept_unless_its_component_is_named() {
    let mut filter = DynamicFilter::new(Scheme::from(Shape::new(64, 1).unwrap()), 1, 8).unwrap();
    let first = filter.insert("twin");
    let second = filter.insert("twin");
    assert_ne!(first, second);
    assert_eq!(filter.remove("twin"), Removal::Kept);
    assert!(filter.remove_from(second, "twin"));
    assert_eq!(filter.remove("twin"), Removal::Removed(first));
}

#[test]
fn shrinking_merges_at_exactly_the_capacity_and_keeps_ids_valid() {
    let mut filter = DynamicFilter::for_target(100, 0.01).unwrap();
    let homes: Vec<_> = (0..200u64).map(|key| filter.insert(bytes(key))).collect();
    for key in 0..50u64 {
        assert!(filter.remove_from(homes[key as usize], bytes(key)));
    }
    assert!(filter.shrink().is_empty(), "50 + 100 do not fit into 100");
    for key in 100..150u64 {
        assert!(filter.remove_from(homes[key as usize], bytes(key)));
    }
    let merges = filter.shrink();
    assert_eq!(merges, [Merge { from: homes[199], into: homes[0] }]);
    assert_eq!(filter.components().len(), 1);
    for key in (50..100u64).chain(150..200) {
        assert!(filter.remove_from(homes[key as usize], bytes(key)), "{key}");
    }
    assert_eq!(filter.components()[0].1.bits().ones(), 0);
}

#[test]
fn a_filter_built_again_into_remembered_components_is_the_same() {
    let mut filter = DynamicFilter::for_target(50, 0.01).unwrap();
    let homes: Vec<_> = (0..170u64).map(|key| filter.insert(bytes(key))).collect();
    let mut again = DynamicFilter::new(*filter.scheme(), 50, 8).unwrap();
    for key in (0..170u64).rev() {
        again.insert_into(homes[key as usize], again.scheme().digest(&bytes(key)));
        again.validate();
    }
    for ((id, mine), (other, theirs)) in filter.components().iter().zip(again.components()) {
        assert_eq!((id, mine), (other, theirs));
    }
}

/// A component that comes to stand before full ones has room before they do.
#[test]
fn a_component_between_full_ones_is_filled_next() {
    let mut filter = DynamicFilter::for_target(2, 0.01).unwrap();
    let digest = filter.scheme().digest(b"key");
    for id in [0, 0, 5, 5, 3] {
        filter.insert_into(ComponentId(id), digest);
        filter.validate();
    }
    assert_eq!(filter.insert("next"), ComponentId(3));
    assert_eq!(filter.insert("next"), ComponentId(6), "ids are never given twice");
}

/// The first two components are full; the third takes over the fourth, and is taken over.
#[test]
fn ids_lead_through_several_merges_and_into_a_union() {
    let mut filter = DynamicFilter::for_target(10, 0.01).unwrap();
    let homes: Vec<_> = (0..40u64).map(|key| filter.insert(bytes(key))).collect();
    let remove = |filter: &mut DynamicFilter, keys: std::ops::Range<u64>| {
        for key in keys {
            assert!(filter.remove_from(homes[key as usize], bytes(key)), "{key}");
        }
    };
    remove(&mut filter, 20..25);
    remove(&mut filter, 30..35);
    assert_eq!(filter.shrink(), [Merge { from: homes[30], into: homes[20] }]);
    remove(&mut filter, 0..5);
    remove(&mut filter, 25..30);
    assert_eq!(filter.shrink(), [Merge { from: homes[20], into: homes[0] }]);
    filter.validate();

    let mut union = DynamicFilter::new(*filter.scheme(), 10, 8).unwrap();
    union.insert("other");
    let moves = union.union_with(&filter).unwrap();
    union.validate();
    let moved = |from: ComponentId| moves.iter().find(|merge| merge.from == from).unwrap().into;
    assert_eq!(moves.len(), 4, "two that live and two that lead to them");
    for key in 35..40u64 {
        assert!(union.remove_from(moved(homes[key as usize]), bytes(key)), "{key}");
    }
    remove(&mut filter, 35..40);
    remove(&mut filter, 5..20);
    assert_eq!((filter.items(), filter.components()[0].1.bits().ones()), (0, 0));
}

/// The component was there, without its id being taken, when the number of ids turned out to be
/// used up.
#[test]
fn an_id_that_leaves_no_further_one_is_refused_before_anything_changes() {
    let mut filter = DynamicFilter::for_target(50, 0.01).unwrap();
    let digest = filter.scheme().digest(b"key");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        filter.insert_into(ComponentId(u32::MAX), digest);
    }));
    assert!(outcome.is_err());
    assert_eq!(filter.components().len(), 1);
    filter.validate();
}

/// Slices are a way to ask, not a part of what is held.
#[test]
fn filters_with_and_without_slices_are_equal_when_they_hold_the_same() {
    let mut sliced = DynamicFilter::for_target(10, 0.01).unwrap();
    (0..35).for_each(|key| sliced.put(key));
    let listed = sliced.clone().without_slices();
    assert_eq!(sliced, listed);
    assert!(listed.memory_bytes() < sliced.memory_bytes());
    assert!((0..35).all(|key| listed.has(key)));
    sliced.put(35);
    assert_ne!(sliced, listed);
}

/// Of many components a lookup reads rows of several widths.
#[test]
fn many_components_are_asked_as_if_one_by_one() {
    let shape = Shape::new(48, 3).unwrap();
    let mut filter: DynamicFilter = DynamicFilter::with_shape(shape, 2).unwrap();
    let ids: Vec<_> = (0..2600u32).map(|key| filter.insert(key.to_le_bytes())).collect();
    assert_eq!(filter.components().len(), 1300);
    filter.validate();
    let check = |filter: &DynamicFilter| {
        let listed = filter.clone().without_slices();
        for key in 0..4000u32 {
            let digest = filter.scheme().digest(&key.to_le_bytes());
            assert_eq!(filter.claimants(digest), listed.claimants(digest), "{key}");
            assert_eq!(filter.contains_digest(digest), listed.contains_digest(digest), "{key}");
        }
    };
    check(&filter);
    for key in (0..2600u32).filter(|key| key % 3 > 0) {
        assert!(filter.remove_from(ids[key as usize], key.to_le_bytes()));
    }
    filter.validate();
    check(&filter);
    filter.shrink();
    assert!(filter.components().len() < 600, "{}", filter.components().len());
    filter.validate();
    check(&filter);
}
