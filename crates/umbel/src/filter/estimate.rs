//! How many keys are in a filter, in a union, in an intersection: read off the fills.
//!
//! With `X` ones of `m`, the best guess at the number of distinct keys is
//! `n = -(m/k) ln(1 - X/m)`; a union is the OR of the bits, and an intersection follows
//! from `|A∩B| = |A| + |B| - |A∪B|`. A filter of all ones tells nothing: the estimate is
//! infinite, and says so.
//!
//! And how often a filter is wrong ([`false_positive`]), which every kind says the same way: a
//! random key is claimed if it shares a member's digest, else if its bits happen to be set.

use super::StandardFilter;
use crate::bits::BitVector;
use crate::model::any_of;
use crate::params::Shape;
use crate::scheme::Mismatch;

/// The number of distinct keys that leave `ones` set bits in a filter of this shape;
/// infinite when every bit is set.
#[must_use]
pub fn estimate_items(shape: &Shape, ones: u64) -> f64 {
    let m = shape.bits() as f64;
    -(m / f64::from(shape.hashes())) * (-(ones as f64) / m).ln_1p()
}

/// The chance that a random key is claimed: `c + (1-c) fill^k`, from the fill as it is and the
/// chance `c` that the key shares its digest with a member.
///
/// `n` keys have `1 - (1 - 2^-b)^n` of the `2^b` digests; but `items` counts repeats, which the
/// fill does not, and the fill counts what stuck counters hold, so the smaller number is taken.
#[must_use]
pub(super) fn false_positive(shape: &Shape, bits: &BitVector, items: u64) -> f64 {
    let one_digest = (-f64::from(shape.digest_bits().get())).exp2();
    let by_items = any_of(one_digest, items as f64);
    let by_fill = estimate_items(shape, bits.ones()) * one_digest;
    let equal = by_items.min(by_fill);
    equal + (1.0 - equal) * bits.fill().powi(shape.hashes() as i32)
}

/// The number of distinct keys in either filter.
///
/// # Errors
/// If the schemes differ.
pub fn estimate_union(a: &StandardFilter, b: &StandardFilter) -> Result<f64, Mismatch> {
    a.scheme().check(b.scheme())?;
    let ones = a.bits().ones() + b.bits().count_beyond(a.bits());
    Ok(estimate_items(a.scheme().shape(), ones))
}

/// The number of distinct keys in both filters; never negative.
///
/// # Errors
/// If the schemes differ.
pub fn estimate_intersection(a: &StandardFilter, b: &StandardFilter) -> Result<f64, Mismatch> {
    let union = estimate_union(a, b)?;
    let shape = a.scheme().shape();
    let separate = estimate_items(shape, a.bits().ones()) + estimate_items(shape, b.bits().ones());
    // Two full filters: infinite minus infinite. All that is known is that it may be anything.
    if union.is_infinite() {
        return Ok(separate);
    }
    Ok((separate - union).max(0.0))
}
