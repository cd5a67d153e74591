//! Paper 4, dynamic Bloom filters: figures 1 to 16, table 1, and what lies beyond them.
//!
//! Most of the paper's experiments use components of 1280 bits, 7 hashes and 133 keys, which
//! is what a bound of 0.0098 gives. Rates are in percent. What is not in the paper is called
//! by what it is about instead of a figure.

pub(crate) mod attributes;
pub(crate) mod capacity;
pub(crate) mod compressed;
pub(crate) mod deletion;
pub(crate) mod distributed;
pub(crate) mod fig_1;
pub(crate) mod fig_10;
pub(crate) mod fig_11;
pub(crate) mod fig_12;
pub(crate) mod fig_13;
pub(crate) mod fig_14;
pub(crate) mod fig_15;
pub(crate) mod fig_16;
pub(crate) mod fig_2;
pub(crate) mod fig_3;
pub(crate) mod fig_4;
pub(crate) mod fig_5;
pub(crate) mod fig_6;
pub(crate) mod fig_7;
pub(crate) mod fig_8;
pub(crate) mod fig_9;
pub(crate) mod hashing;
mod memory;
pub(crate) mod operations;
pub(crate) mod scalable;
pub(crate) mod sliced;
pub(crate) mod table_1;
pub(crate) mod theorems;
pub(crate) mod unbounded;
pub(crate) mod updates;

use umbel::filter::Component as Kind;
use umbel::model::dynamic::Component;
use umbel::{Digest, DynamicFilter, Shape, StandardFilter, design};

use crate::home::{Keys, shape};
use crate::spread::Spread;

/// The rate for which all components of the paper are designed.
const BOUND: f64 = 0.0098;
const BITS: u64 = 1280;
const HASHES: u32 = 7;
const CAPACITY: u64 = 133;

/// Maximum number of keys of a set in section 4.2.
const MAX: u64 = 1330;

/// The paper's component.
fn papers() -> Component {
    Component::new(shape(BITS, HASHES), CAPACITY)
}

/// The rate `f(c)` of a full component, percent.
fn full_percent() -> f64 {
    100.0 * umbel::model::standard::false_positive(shape(BITS, HASHES), CAPACITY)
}

fn rate(rate: f64) -> umbel::Rate {
    umbel::Rate::new(rate).expect("a rate of the paper")
}

/// How many keys a component of this many bits can hold at the paper's bound.
fn capacity_of(bits: u64) -> u64 {
    design::papers_capacity(bits, rate(BOUND))
}

/// An empty dynamic filter.
fn dynamic<C: Kind>(keys: &Keys, shape: Shape, capacity: u64) -> DynamicFilter<C> {
    DynamicFilter::new(keys.scheme(shape), capacity, 1024).expect("memory for small filters")
}

/// A dynamic filter of new keys.
fn grown(
    keys: &mut Keys,
    shape: Shape,
    capacity: u64,
    items: u64,
) -> DynamicFilter<StandardFilter> {
    let mut filter = dynamic(keys, shape, capacity);
    filter.insert_digests(&keys.draw_many(items as usize));
    filter
}

/// The share of keys that are claimed, percent.
fn claimed(asked: &[Digest], claims: impl Fn(Digest) -> bool) -> f64 {
    100.0 * asked.iter().filter(|key| claims(**key)).count() as f64 / asked.len() as f64
}

/// Statistics over trials, for each number in each row of a table.
fn spreads<const N: usize>(trials: &[Vec<[f64; N]>]) -> Vec<[Spread; N]> {
    let rows = trials.first().map_or(0, Vec::len);
    (0..rows).map(|i| std::array::from_fn(|j| Spread::of_row(trials, i, |row| row[j]))).collect()
}

/// Whether each value is at least the one before.
fn rises(values: impl IntoIterator<Item = f64>) -> bool {
    values.into_iter().collect::<Vec<_>>().windows(2).all(|pair| pair[1] >= pair[0] - 1e-12)
}

/// Counts the true values, for claims about counts.
fn count(holds: impl IntoIterator<Item = bool>) -> f64 {
    holds.into_iter().filter(|holds| *holds).count() as f64
}
