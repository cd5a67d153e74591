//! One suite for all kinds: every filter obeys the same laws, and a new kind gets them free.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::bank::Bank;
use crate::bits::BitVector;
use crate::catalogue::MemoryCatalogue;
use crate::codec::{AnyFilter, Decoder};
use crate::elastic::ElasticFilter;
use crate::params::{Bits, DigestBits, Rate, Shape};
use crate::scheme::{Mismatch, Scheme};
use crate::{HashId, KeyHasher, Seed, design};

/// What the laws need of a filter kind.
trait Kind: Sized + Into<AnyFilter> + TryFrom<AnyFilter, Error = AnyFilter> {
    fn make(scheme: Scheme, items: u64) -> Self;
    fn put(&mut self, key: u64);
    fn has(&self, key: u64) -> bool;
    fn take(&mut self, key: u64);
    fn join(&mut self, other: &Self);
    fn tidy(&mut self) {}
    fn check(&self);
    const REMOVES: bool = true;
}

fn bytes(key: u64) -> [u8; 8] {
    key.to_le_bytes()
}

impl Kind for StandardFilter {
    fn make(scheme: Scheme, _items: u64) -> Self {
        Self::new(scheme).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(bytes(key));
    }
    fn has(&self, key: u64) -> bool {
        self.may_contain(&bytes(key))
    }
    fn take(&mut self, _key: u64) {}
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
    fn check(&self) {
        self.bits().validate();
    }
    const REMOVES: bool = false;
}

impl Kind for CountingFilter {
    fn make(scheme: Scheme, _items: u64) -> Self {
        Self::new(scheme).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(bytes(key));
    }
    fn has(&self, key: u64) -> bool {
        self.may_contain(&bytes(key))
    }
    fn take(&mut self, key: u64) {
        assert!(self.remove(bytes(key)), "a member is claimed");
    }
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
    fn check(&self) {
        self.validate();
    }
}

impl Kind for DynamicFilter<CountingFilter> {
    fn make(scheme: Scheme, items: u64) -> Self {
        Self::new(scheme, items, 8).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert(bytes(key));
    }
    fn has(&self, key: u64) -> bool {
        self.may_contain(&bytes(key))
    }
    fn take(&mut self, key: u64) {
        assert_ne!(self.remove(bytes(key)), Removal::Absent, "a member is claimed");
    }
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
    fn tidy(&mut self) {
        self.shrink();
    }
    fn check(&self) {
        self.validate();
        self.components().iter().for_each(|(_, component)| component.validate());
    }
}

impl Kind for DynamicFilter<StandardFilter> {
    fn make(scheme: Scheme, items: u64) -> Self {
        Self::new(scheme, items, 8).unwrap()
    }
    fn put(&mut self, key: u64) {
        self.insert_if_absent(bytes(key));
    }
    fn has(&self, key: u64) -> bool {
        self.may_contain(&bytes(key))
    }
    fn take(&mut self, _key: u64) {}
    fn join(&mut self, other: &Self) {
        self.union_with(other).unwrap();
    }
    fn tidy(&mut self) {
        self.shrink();
    }
    fn check(&self) {
        self.validate();
    }
    const REMOVES: bool = false;
}

#[derive(Debug, Clone)]
enum Step {
    Add(u64),
    Take(usize),
    Join(Vec<u64>),
    Tidy,
    RoundTrip,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u64..500).prop_map(Step::Add),
        4 => any::<usize>().prop_map(Step::Take),
        1 => prop::collection::vec(0u64..500, 0..20).prop_map(Step::Join),
        1 => Just(Step::Tidy),
        1 => Just(Step::RoundTrip),
    ];
    prop::collection::vec(step, 0..120)
}

/// No false negative under any sequence of inserts, deletes of members, merges, unions and
/// codec round trips; what is kept up equals its recount.
fn no_false_negative<F: Kind>(scheme: Scheme, steps: Vec<Step>) {
    let mut filter = F::make(scheme, 20);
    let mut twin: BTreeMap<u64, u32> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Add(key) => {
                filter.put(key);
                *twin.entry(key).or_default() += 1;
            }
            Step::Take(index) if F::REMOVES && !twin.is_empty() => {
                let key = *twin.keys().nth(index % twin.len()).unwrap();
                filter.take(key);
                let count = twin.get_mut(&key).unwrap();
                *count -= 1;
                twin.retain(|_, count| *count > 0);
            }
            Step::Take(_) => {}
            Step::Join(keys) => {
                let mut other = F::make(scheme, 20);
                for key in keys {
                    other.put(key);
                    *twin.entry(key).or_default() += 1;
                }
                filter.join(&other);
            }
            Step::Tidy => filter.tidy(),
            Step::RoundTrip => {
                let encoded = filter.into().encode();
                let decoded = Decoder::new().filter(&encoded).unwrap();
                filter = F::try_from(decoded).unwrap();
            }
        }
    }
    filter.check();
    for key in twin.keys() {
        assert!(filter.has(*key), "member {key} is denied");
    }
}

/// A shape in which collisions, shared positions and stuck counters are common.
fn crowded() -> Scheme {
    Scheme::from(Shape::new(199, 4).unwrap())
}

/// A shape as users have it.
fn roomy() -> Scheme {
    let shape = design::standard(20, Rate::new(0.01).unwrap()).unwrap();
    Scheme::new(shape, KeyHasher::new(HashId::SipHash13, Seed::from_number(7)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn standard_has_no_false_negative(steps in steps()) {
        no_false_negative::<StandardFilter>(crowded(), steps.clone());
        no_false_negative::<StandardFilter>(roomy(), steps);
    }

    #[test]
    fn counting_has_no_false_negative(steps in steps()) {
        no_false_negative::<CountingFilter>(crowded(), steps.clone());
        no_false_negative::<CountingFilter>(roomy(), steps);
    }

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

    #[test]
    fn dynamic_has_no_false_negative(steps in steps()) {
        no_false_negative::<DynamicFilter<CountingFilter>>(crowded(), steps.clone());
        no_false_negative::<DynamicFilter<CountingFilter>>(roomy(), steps);
    }

    #[test]
    fn plain_dynamic_has_no_false_negative(steps in steps()) {
        no_false_negative::<DynamicFilter<StandardFilter>>(crowded(), steps.clone());
        no_false_negative::<DynamicFilter<StandardFilter>>(roomy(), steps);
    }

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

    #[test]
    fn batches_answer_like_single_calls(
        keys in prop::collection::vec(any::<u64>(), 0..200),
        hashes in 1u32..12,
    ) {
        let shape = Shape::new(701, hashes).unwrap();
        let keys: Vec<_> = keys.into_iter().map(bytes).collect();
        let (mut one, mut many) = (StandardFilter::with_shape(shape).unwrap(), StandardFilter::with_shape(shape).unwrap());
        let (mut count_one, mut count_many) = (CountingFilter::with_shape(shape).unwrap(), CountingFilter::with_shape(shape).unwrap());
        for key in &keys {
            one.insert(key);
            count_one.insert(key);
        }
        many.insert_batch(&keys);
        count_many.insert_batch(&keys);
        prop_assert_eq!(&one, &many);
        prop_assert_eq!(&count_one, &count_many);
        prop_assert_eq!(&count_one.to_standard(), &one);
        let mut dynamic_one = DynamicFilter::<CountingFilter>::with_shape(shape, 40).unwrap();
        let mut dynamic_many = dynamic_one.clone();
        let planned = dynamic_one.memory_bytes_with(keys.len() as u64);
        for key in &keys {
            dynamic_one.insert(key);
        }
        dynamic_many.insert_batch(&keys);
        prop_assert_eq!(&dynamic_one, &dynamic_many);
        dynamic_many.validate();
        prop_assert_eq!(dynamic_many.memory_bytes() as u64, planned);

        let asked: Vec<_> = (0..150).map(bytes).collect();
        let mut answers = Vec::new();
        let any: [AnyFilter; 3] = [one.into(), count_one.into(), dynamic_one.into()];
        for filter in any {
            filter.contains_batch(&asked, &mut answers);
            prop_assert_eq!(answers.len(), asked.len());
            for (key, answer) in asked.iter().zip(&answers) {
                prop_assert_eq!(filter.may_contain(key), *answer, "{:?}", filter);
            }
        }
    }
}

/// Filters that no longer fit the cache are filled and asked in another way.
#[test]
fn batches_beyond_the_cache_answer_like_single_calls() {
    let keys: Vec<_> = (0..1000).map(bytes).collect();
    for hashes in [1, 2, 3, 4, 5, 9] {
        let shape = Shape::new((1 << 21) + 1, hashes).unwrap();
        let mut one = half_full(shape);
        let mut many = one.clone();
        let before: Vec<bool> = keys.iter().map(|key| one.contains(key)).collect();
        let mut answers = vec![true; 5];
        one.contains_batch(&keys, &mut answers);
        assert_eq!(answers, before, "{hashes} hashes");
        assert!(before.contains(&true) && before.contains(&false));

        keys[..300].iter().for_each(|key| {
            one.insert(key);
        });
        many.insert_batch(&keys[..300]);
        assert_eq!(one, many);
        many.bits().validate();
        let after: Vec<bool> = keys.iter().map(|key| one.contains(key)).collect();
        let digests: Vec<_> = keys.iter().map(|key| one.scheme().digest(key)).collect();
        one.contains_digests(&digests, &mut answers);
        assert_eq!(answers, after, "{hashes} hashes");
    }
}

/// A filter of which every other bit is set, by chance.
fn half_full(shape: Shape) -> StandardFilter {
    let length = Bits::new(shape.bits()).unwrap();
    let mut state = 1u64;
    let mut words: Vec<u64> = (0..length.get().div_ceil(64))
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        })
        .collect();
    *words.last_mut().unwrap() &= u64::MAX >> (length.get().wrapping_neg() & 63);
    StandardFilter::from_parts(shape.into(), BitVector::from_words(length, words), 0)
}

const ABSENT: u64 = 1_000_000;

/// Whether `measured` wrong answers of [`ABSENT`] agree with `expected` within three
/// standard errors.
fn agrees(name: &str, measured: u64, expected: f64) {
    let error = (expected * (1.0 - expected) / ABSENT as f64).sqrt();
    let measured = measured as f64 / ABSENT as f64;
    assert!(
        (measured - expected).abs() <= 3.0 * error,
        "{name}: measured {measured:.6}, formula {expected:.6} ± {error:.6}"
    );
}

fn absent_claimed(filter: &impl Membership) -> u64 {
    // Members are 0..n; these never are.
    (1 << 32..(1 << 32) + ABSENT).filter(|key| filter.may_contain(&bytes(*key))).count() as u64
}

#[test]
fn measured_false_positive_of_every_kind_agrees_with_its_formula() {
    // Filters large enough that their fill strays from its mean by less than the sample does.
    for (items, rate, id) in [
        (100_000u64, 0.01, HashId::Xxh3),
        (50_000, 0.001, HashId::SipHash13),
        (200_000, 0.02, HashId::Xxh3),
    ] {
        let shape = design::standard(items, Rate::new(rate).unwrap()).unwrap();
        let scheme = Scheme::new(shape, KeyHasher::new(id, Seed::from_number(1)));
        let (m, k) = (shape.bits() as f64, f64::from(shape.hashes()));
        let full = (-(-k * items as f64 / m).exp_m1()).powf(k);

        let mut standard = StandardFilter::new(scheme).unwrap();
        (0..items).for_each(|key| standard.put(key));
        agrees("standard", absent_claimed(&standard), full);

        // As many keys again, added and removed, leave no trace.
        let mut counting = CountingFilter::new(scheme).unwrap();
        (0..2 * items).for_each(|key| counting.put(key));
        (items..2 * items).for_each(|key| counting.take(key));
        agrees("counting", absent_claimed(&counting), full);

        // Three full components and a half: 1 - (1 - f(c))^3 (1 - f(c/2)).
        let half = (-(-k * (items / 2) as f64 / m).exp_m1()).powf(k);
        let expected = 1.0 - (1.0 - full).powi(3) * (1.0 - half);
        let mut dynamic = DynamicFilter::<CountingFilter>::new(scheme, items, 4).unwrap();
        (0..3 * items + items / 2).for_each(|key| dynamic.put(key));
        agrees("dynamic", absent_claimed(&dynamic), expected);
        let plain = dynamic.to_standard();
        agrees("plain dynamic", absent_claimed(&plain), expected);
    }
}

/// A walk with a constant step claimed six times as many absent keys as promised here: two
/// keys that nearly share start and step share all positions.
#[test]
fn short_filters_keep_tiny_rates() {
    let (mut wrong, mut expected) = (0, 0.0);
    for seed in 0..10 {
        let shape = design::standard(25, Rate::new(1e-4).unwrap()).unwrap();
        let hasher = KeyHasher::new(HashId::Xxh3, Seed::from_number(seed));
        let mut filter = StandardFilter::new(Scheme::new(shape, hasher)).unwrap();
        (0..25).for_each(|key| filter.put(key));
        wrong += absent_claimed(&filter);
        expected += filter.false_positive() * ABSENT as f64;
    }
    let ratio = wrong as f64 / expected;
    assert!((0.8..1.3).contains(&ratio), "{ratio} times what the fill says");
}

#[test]
fn a_planned_dynamic_filter_keeps_its_rate_up_to_the_last_component() {
    let mut filter = DynamicFilter::for_target(2_000, 0.01).unwrap();
    (0..8 * 2_000).for_each(|key| filter.put(key));
    assert_eq!(filter.components().len(), 8);
    assert!(!filter.is_past_plan());
    let measured = absent_claimed(&filter) as f64 / ABSENT as f64;
    assert!(measured <= 0.0105, "{measured}");
    filter.put(u64::MAX);
    assert!(filter.is_past_plan());
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

#[test]
fn removing_what_is_not_claimed_changes_nothing() {
    let mut filter = CountingFilter::for_target(100, 0.01).unwrap();
    filter.insert("here");
    let before = filter.clone();
    assert!(!filter.remove("not here"));
    assert_eq!(filter, before);
    let mut dynamic = DynamicFilter::for_target(100, 0.01).unwrap();
    assert_eq!(dynamic.remove("not here"), Removal::Absent);
    assert!(!dynamic.remove_from(ComponentId(9), "not here"));
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

#[test]
fn an_empty_filter_of_any_kind_claims_nothing() {
    let standard = StandardFilter::for_target(10, 0.01).unwrap();
    let counting = CountingFilter::for_target(10, 0.01).unwrap();
    let dynamic = DynamicFilter::for_target(10, 0.01).unwrap();
    let plain = dynamic.to_standard();
    let any: [AnyFilter; 4] = [standard.into(), counting.into(), dynamic.into(), plain.into()];
    for filter in any {
        // Printed as 0, not as -0.
        assert_eq!(filter.false_positive().to_bits(), 0.0_f64.to_bits(), "{filter:?}");
        assert!((0..100).all(|key| !filter.may_contain(&bytes(key))));
    }
}

#[test]
fn a_full_filter_of_any_kind_claims_everything() {
    let shape = Shape::new(8, 2).unwrap();
    let mut standard = StandardFilter::with_shape(shape).unwrap();
    let mut counting = CountingFilter::with_shape(shape).unwrap();
    let mut dynamic = DynamicFilter::with_shape(shape, 100).unwrap();
    for key in 0..250 {
        standard.put(key);
        counting.put(key);
        dynamic.put(key);
    }
    let plain = dynamic.to_standard();
    let any: [AnyFilter; 4] = [standard.into(), counting.into(), dynamic.into(), plain.into()];
    for filter in any {
        assert_eq!(filter.false_positive(), 1.0, "{filter:?}");
        assert!((1000..1100).all(|key| filter.may_contain(&bytes(key))));
    }
}

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

#[test]
fn whatever_holds_keys_crosses_threads() {
    fn crosses<T: Send + Sync + Clone + std::fmt::Debug>() {}
    crosses::<StandardFilter>();
    crosses::<CountingFilter>();
    crosses::<DynamicFilter>();
    crosses::<DynamicFilter<StandardFilter>>();
    crosses::<AttributeFilter>();
    crosses::<AnyFilter>();
    crosses::<Bank>();
    crosses::<ElasticFilter<MemoryCatalogue>>();
}

/// What holds much says how much, not what.
#[test]
fn debug_is_short_however_much_is_held() {
    let keys: Vec<_> = (0..5000).map(bytes).collect();
    let mut standard = StandardFilter::for_target(5000, 0.01).unwrap();
    standard.insert_batch(&keys);
    let mut counting = CountingFilter::for_target(5000, 0.01).unwrap();
    counting.insert_batch(&keys);
    let mut dynamic = DynamicFilter::for_target(500, 0.01).unwrap();
    dynamic.insert_batch(&keys);
    let mut bank: Bank = Bank::new(KeyHasher::default());
    bank.add(standard.scheme(), standard.bits()).unwrap();
    let rate = |rate| Rate::new(rate).unwrap();
    let mut elastic =
        ElasticFilter::new(100, rate(0.01), rate(0.1), MemoryCatalogue::new()).unwrap();
    keys.iter().for_each(|key| assert!(elastic.add(key).unwrap()));
    let all: [&dyn std::fmt::Debug; 8] = [
        standard.bits(),
        &standard,
        &counting,
        &dynamic,
        &AnyFilter::from(dynamic.clone()),
        &bank,
        &elastic,
        elastic.catalogue(),
    ];
    for shown in all {
        let shown = format!("{shown:?}");
        assert!(shown.len() < 200, "{shown}");
    }
}
