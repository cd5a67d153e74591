//! The rate that was asked for is the rate that is measured: on average over sets of random
//! keys, from one key on.
//!
//! Everything is seeded. The table, over shapes by the papers' formula and by umbel's design:
//! `cargo test -p umbel --release --test rates table_of -- --ignored --nocapture`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use umbel::filter::DynamicFilter;
use umbel::model::standard::false_positive;
use umbel::{Digest, DigestBits, Rate, Shape, StandardFilter, design};

/// A small generator of its own: the same bits in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn digest(&mut self, bits: DigestBits) -> Digest {
        Digest::from_raw(self.next() >> (64 - bits.get()), bits).unwrap()
    }
}

/// What is measured of every kind.
trait Asked {
    fn shape(&self) -> Shape;
    fn add(&mut self, digest: Digest);
    fn claims(&self, digest: Digest) -> bool;
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
        }
    )*};
}

asked!(StandardFilter, DynamicFilter);

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
        (0..items).for_each(|_| filter.add(random.digest(bits)));
        let claimed = (0..ASKED).filter(|_| filter.claims(random.digest(bits))).count();
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
