//! One suite for all kinds: every filter obeys the same laws, and a new kind gets them free.

mod algebra;
mod batches;
mod counting;
mod dynamic;
mod rates;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::bank::Bank;
use crate::bits::BitVector;
use crate::catalogue::MemoryCatalogue;
use crate::codec::{AnyFilter, Decoder};
use crate::elastic::ElasticFilter;
use crate::params::{Bits, DigestBits, ParamError, Rate, Shape};
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
    #![proptest_config(ProptestConfig { cases: 200, ..crate::model::seeded() })]

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
fn an_insert_says_whether_anything_changed() {
    let mut standard = StandardFilter::for_target(10, 0.01).unwrap();
    assert!(standard.insert("key"));
    assert!(!standard.insert("key"));
    assert_eq!(standard.items(), 2, "repeats included");
    let mut counting = CountingFilter::for_target(10, 0.01).unwrap();
    assert!(counting.insert("key"));
    assert!(!counting.insert("key"));
    assert!(counting.remove("key") && counting.contains("key"), "added twice");
    let mut plain = DynamicFilter::<StandardFilter>::planned(10, 0.01, 8).unwrap();
    assert_eq!(plain.insert_if_absent("key"), Some(ComponentId(0)));
    assert_eq!(plain.insert_if_absent("key"), None);
    assert_eq!(plain.items(), 1);
}

#[test]
fn only_dynamic_filters_will_take_more_memory() {
    let standard = StandardFilter::for_target(10, 0.01).unwrap();
    let counting = CountingFilter::for_target(10, 0.01).unwrap();
    let dynamic = DynamicFilter::for_target(10, 0.01).unwrap();
    let plain = dynamic.to_standard();
    for (any, grows) in [
        (AnyFilter::from(standard), false),
        (counting.into(), false),
        (dynamic.into(), true),
        (plain.into(), true),
    ] {
        let (now, mut grown) = (any.memory_bytes() as u64, any.clone());
        assert_eq!(any.memory_bytes_with(10), now, "{any:?} has room");
        assert_eq!(any.memory_bytes_with(11) > now, grows);
        grown.insert_batch(&(0..95).map(bytes).collect::<Vec<_>>());
        assert_eq!(grown.memory_bytes() as u64, any.memory_bytes_with(95), "{any:?}");
    }
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
