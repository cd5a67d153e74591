//! The rate that was asked for is the rate that is measured: on average over sets of random
//! keys, from one key on.
//!
//! Everything is seeded. The table, over shapes by the papers' formula and by umbel's design:
//! `cargo test -p umbel --release --test integration table_of -- --ignored --nocapture`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use umbel::design::Distribution;
use umbel::filter::{CountingFilter, DynamicFilter};
use umbel::model::standard::false_positive;
use umbel::{Digest, DigestBits, Rate, Shape, StandardFilter, design};

use crate::random::Random;

fn digest(random: &mut Random, bits: DigestBits) -> Digest {
    Digest::from_raw(random.next() >> (64 - bits.get()), bits).unwrap()
}

/// What is measured of every kind.
trait Asked {
    fn shape(&self) -> Shape;
    fn add(&mut self, digest: Digest);
    fn claims(&self, digest: Digest) -> bool;
    fn says(&self) -> f64;
}

macro_rules! asked {
    ($($kind:ty),*) => {$(
        impl Asked for $kind {
            fn shape(&self) -> Shape {
                *self.scheme().shape()
            }
            fn add(&mut self, digest: Digest) {
                self.insert_digest(digest);
            }
            fn claims(&self, digest: Digest) -> bool {
                self.contains_digest(digest)
            }
            fn says(&self) -> f64 {
                self.false_positive()
            }
        }
    )*};
}

asked!(StandardFilter, CountingFilter, DynamicFilter);

/// A mean of several filters, and its standard error.
#[derive(Debug, Clone, Copy)]
struct Measured {
    rate: f64,
    error: f64,
}

/// Absent keys that each filter is asked for.
const ASKED: u32 = 50;

/// Fills copies of an empty filter with random keys and asks each for others, until about
/// `wrong` of the answers would be wrong at `rate`.
fn measured<F: Asked + Clone>(empty: &F, items: u64, rate: f64, wrong: f64) -> Measured {
    let filters = (wrong / rate / f64::from(ASKED)).ceil();
    let (bits, mut random) = (empty.shape().digest_bits(), Random(items));
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..filters as u64 {
        let mut filter = empty.clone();
        (0..items).for_each(|_| filter.add(digest(&mut random, bits)));
        let claimed = (0..ASKED).filter(|_| filter.claims(digest(&mut random, bits))).count();
        let share = claimed as f64 / f64::from(ASKED);
        sum += share;
        squares += share * share;
    }
    let mean = sum / filters;
    Measured { rate: mean, error: ((squares / filters - mean * mean) / filters).sqrt() }
}

/// Designs may lie a fifth of a percent above the rate, and equal digests a tenth.
const ALLOWED: f64 = 1.003;

fn keeps(name: &str, measured: Measured, target: f64) {
    let Measured { rate, error } = measured;
    assert!(
        rate <= target * ALLOWED + 4.0 * error,
        "{name}: {rate:.6} ± {error:.6} measured, {target} promised"
    );
}

#[test]
fn standard_filters_of_a_few_keys_keep_the_promised_rate_on_average() {
    for (target, wrong) in [(0.05, 4000.0), (0.01, 4000.0), (0.001, 2000.0), (1e-4, 500.0)] {
        for items in [1, 2, 3, 5, 10, 25, 50, 100] {
            let filter = StandardFilter::for_target(items, target).unwrap();
            let name = format!("{items} keys, {:?}", filter.shape());
            keeps(&name, measured(&filter, items, target, wrong), target);
        }
    }
}

#[test]
fn dynamic_filters_of_small_components_keep_the_promised_rate_on_average() {
    for (target, wrong) in [(0.05, 2000.0), (0.01, 2000.0), (0.001, 500.0)] {
        for (capacity, components) in [(1, 8), (2, 8), (3, 8), (5, 8), (10, 8), (25, 4), (1, 100)] {
            let filter = DynamicFilter::planned(capacity, target, components).unwrap();
            let name = format!("{components} components of {capacity} keys, {:?}", filter.shape());
            let items = capacity * u64::from(components);
            keeps(&name, measured(&filter, items, target, wrong), target);
        }
    }
}

/// What every planner plans, for random small sets, is built and measured.
#[test]
fn whatever_is_planned_keeps_the_promised_rate_on_average() {
    let mut random = Random(7);
    for _ in 0..12 {
        let (items, small) = (1 + random.next() % 120, 1 + random.next() % 10);
        let target = [0.05, 0.02, 0.01, 0.003][random.next() as usize % 4];
        for planned in plans(items, small, target) {
            let Planned { name, shape, capacity, components } = planned;
            let filter: DynamicFilter =
                DynamicFilter::new(shape.into(), capacity, components).unwrap();
            let held = capacity * u64::from(components);
            let name = format!("{name}: {held} keys in {components} of {capacity}, {shape:?}");
            keeps(&name, measured(&filter, held, target, 600.0), target);
        }
    }
}

/// A filter of so many components, each of which may hold so many keys.
struct Planned {
    name: &'static str,
    shape: Shape,
    capacity: u64,
    components: u32,
}

fn plans(items: u64, small: u64, target: f64) -> Vec<Planned> {
    let rate = Rate::new(target).unwrap();
    let one = |name, shape, capacity| Planned { name, shape, capacity, components: 1 };
    let bounded = |name, plan: design::dynamic::Bounded| Planned {
        name,
        shape: plan.component,
        capacity: plan.capacity,
        components: plan.components as u32,
    };
    let uniform = Distribution::uniform(items);
    let zipf = Distribution::zipf_min(items, 1.5).unwrap();
    let left = Rate::new(target / 4.5).unwrap();
    let unbounded = design::dynamic::unbounded(small, left, rate).unwrap();
    let grown = (unbounded.dynamic_rebuild_at / small as f64) as u32;
    let routing = design::routing::exact(small, 5, rate).unwrap();
    let ladder = design::ladder::Ladder::new(rate);
    let lowest = design::ladder::Rung::LOWEST;
    vec![
        one("standard", design::standard(items, rate).unwrap(), items),
        bounded("dynamic", design::dynamic::bounded(rate, &uniform).unwrap()),
        bounded("distributed", design::dynamic::distributed(rate, &zipf, 9).unwrap().each),
        one("unbounded, one filter", unbounded.shape, unbounded.standard_rebuild_at as u64),
        Planned {
            name: "unbounded, components",
            shape: unbounded.shape,
            capacity: small,
            components: grown,
        },
        Planned { name: "entry", shape: routing.cubf, capacity: small, components: 5 },
        one("entry, united", routing.abf, small * 5),
        one("prefix", design::prefix::prefix(33, items, rate).unwrap().shape, items),
        one("rung", ladder.shape(lowest), ladder.takes(lowest, 2)),
    ]
}

/// So far that the tests above would notice.
#[test]
fn by_the_formula_alone_short_filters_break_the_promise() {
    for (items, bits, hashes, target, times) in
        [(1, 10, 5, 0.01, 1.5), (2, 29, 9, 0.001, 1.8), (10, 192, 13, 1e-4, 1.2)]
    {
        let shape = Shape::new(bits, hashes).unwrap();
        assert!(false_positive(shape, items) <= target);
        let filter = StandardFilter::with_shape(shape).unwrap();
        let Measured { rate, error } = measured(&filter, items, target, 1000.0);
        assert!(rate - 4.0 * error > times * target, "{shape:?}: {rate} ± {error}");
    }
}

/// What filters say of themselves counts keys that share a member's digest: with 12 bits of
/// digest, 40 keys in 4000 bits have one in a hundred of them, and claim nobody else.
#[test]
fn filters_know_how_often_digests_are_equal() {
    let with_digests = |digest_bits, bits, hashes| {
        let shape = Shape::new(bits, hashes).unwrap();
        shape.with_digest_bits(DigestBits::new(digest_bits).unwrap())
    };
    let shape = with_digests(12, 4000, 20);
    says_what_is_measured(&StandardFilter::with_shape(shape).unwrap(), 40);
    says_what_is_measured(&CountingFilter::with_shape(shape).unwrap(), 40);
    says_what_is_measured(&DynamicFilter::with_shape(shape, 15).unwrap(), 40);
    // As many by chance; and so many keys that most of the digests are theirs.
    for (shape, items) in [(with_digests(14, 1000, 4), 100), (with_digests(12, 300_000, 3), 5000)] {
        says_what_is_measured(&StandardFilter::with_shape(shape).unwrap(), items);
        says_what_is_measured(&CountingFilter::with_shape(shape).unwrap(), items);
    }
}

fn says_what_is_measured<F: Asked + Clone>(empty: &F, items: u64) {
    const FILTERS: u32 = 20;
    const ASKED: u32 = 5000;
    let (bits, mut random) = (empty.shape().digest_bits(), Random(items));
    let (mut claimed, mut message) = (0, 0.0);
    for _ in 0..FILTERS {
        let mut filter = empty.clone();
        (0..items).for_each(|_| filter.add(digest(&mut random, bits)));
        claimed += (0..ASKED).filter(|_| filter.claims(digest(&mut random, bits))).count();
        message += filter.says() / f64::from(FILTERS);
    }
    let asked = f64::from(FILTERS * ASKED);
    let (rate, error) = (claimed as f64 / asked, (message * (1.0 - message) / asked).sqrt());
    assert!((rate - message).abs() <= 3.0 * error, "{rate} measured, {message} ± {error} said");
}

/// Keys that were added again, or whose number nobody knows, do not count.
#[test]
fn a_key_added_over_and_over_has_one_digest() {
    let mut filter = StandardFilter::for_target(1000, 0.01).unwrap();
    (0..1_000_000).for_each(|_| {
        filter.insert("often");
    });
    assert!(filter.false_positive() < 1e-8, "{}", filter.false_positive());
    assert_eq!(StandardFilter::for_target(1000, 0.01).unwrap().false_positive(), 0.0);
}

/// A tenth of the keys that it was planned for: what is left is nearly all equal digests.
#[test]
fn a_nearly_empty_filter_is_not_as_good_as_its_fill() {
    let mut filter = StandardFilter::for_target(1000, 0.01).unwrap();
    (0..100u64).for_each(|key| {
        filter.insert(key.to_le_bytes());
    });
    let equal = 100.0 / 27_f64.exp2();
    assert!((filter.false_positive() / equal - 1.0).abs() < 0.05, "{}", filter.false_positive());
}

#[test]
#[ignore = "a measurement of minutes, to read"]
fn table_of_rates_by_formula_and_by_design() {
    println!(
        "  rate items |  formula m  k  measured/rate |   design m  k  bits/key  measured/rate"
    );
    for target in [0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5] {
        for items in [1, 2, 3, 5, 10, 25, 50, 100, 200] {
            let plain = design::standard_by_formula(items, Rate::new(target).unwrap()).unwrap();
            let shape = design::standard(items, Rate::new(target).unwrap()).unwrap();
            let [before, after] = [plain, shape].map(|shape| {
                let filter = StandardFilter::with_shape(shape).unwrap();
                let Measured { rate, error } = measured(&filter, items, target, 4000.0);
                format!("{:6.3} ± {:.3}", rate / target, error / target)
            });
            let (m, k, per_key) =
                (shape.bits(), shape.hashes(), shape.bits() as f64 / items as f64);
            println!(
                "{target:6} {items:5} | {:10} {:2} {before} | {m:10} {k:2} {per_key:9.2} {after}",
                plain.bits(),
                plain.hashes(),
            );
        }
    }
}
