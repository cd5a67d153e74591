//! How many keys are in a filter, in a union, in an intersection: read off the fills.
//!
//! With `X` ones of `m`, the best guess at the number of distinct keys is
//! `n = -(m/k) ln(1 - X/m)`; a union is the OR of the bits, and an intersection follows
//! from `|A∩B| = |A| + |B| - |A∪B|`. A filter of all ones tells nothing: the estimate is
//! infinite, and says so.

use super::StandardFilter;
use crate::params::Shape;
use crate::scheme::Mismatch;

/// The number of distinct keys that leave `ones` set bits in a filter of this shape;
/// infinite when every bit is set.
#[must_use]
pub fn estimate_items(shape: &Shape, ones: u64) -> f64 {
    let m = shape.bits() as f64;
    -(m / f64::from(shape.hashes())) * (-(ones as f64) / m).ln_1p()
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
