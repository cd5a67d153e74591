//! How many keys are in a filter, in a union, in an intersection: read off the fills.
//!
//! With `X` ones of `m`, the best guess at the number of distinct keys is
//! `n = -(m/k) ln(1 - X/m)`; a union is the OR of the bits, and an intersection follows
//! from `|A∩B| = |A| + |B| - |A∪B|`. A filter of all ones tells nothing: the estimate is
//! infinite, and says so.
//!
//! Always true: an intersection is estimated at no more than either side.

use super::StandardFilter;
use crate::model::standard::items_of_fill;
use crate::params::Shape;
use crate::scheme::Mismatch;

/// The number of distinct keys that leave `ones` set bits in a filter of this shape;
/// infinite when every bit is set.
///
/// ```
/// use umbel::StandardFilter;
/// use umbel::filter::estimate_items;
///
/// let mut filter = StandardFilter::for_target(1000, 0.01)?;
/// (0..500_u32).chain(0..500).for_each(|n| {
///     filter.insert(n.to_le_bytes());
/// });
/// // Added a thousand times, but only 500 are distinct.
/// let distinct = estimate_items(filter.scheme().shape(), filter.bits().ones());
/// assert!((distinct - 500.0).abs() < 25.0);
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[must_use]
pub fn estimate_items(shape: &Shape, ones: u64) -> f64 {
    items_of_fill(*shape, ones as f64 / shape.bits() as f64)
}

/// The number of distinct keys in either filter; infinite when all bits are set in one or
/// the other.
///
/// # Errors
/// If the schemes differ.
pub fn estimate_union(a: &StandardFilter, b: &StandardFilter) -> Result<f64, Mismatch> {
    a.scheme().check(b.scheme())?;
    let ones = a.bits().ones() + b.bits().count_beyond(a.bits());
    Ok(estimate_items(a.scheme().shape(), ones))
}

/// The number of distinct keys in both filters: never negative, and infinite only when both
/// have all bits set.
///
/// # Errors
/// If the schemes differ.
pub fn estimate_intersection(a: &StandardFilter, b: &StandardFilter) -> Result<f64, Mismatch> {
    let union = estimate_union(a, b)?;
    let items = |ones| estimate_items(a.scheme().shape(), ones);
    let (ones, others) = (a.bits().ones(), b.bits().ones());
    if union.is_infinite() {
        // Nothing to subtract from. A key of both has all its positions among the shared ones.
        return Ok(items(others - b.bits().count_beyond(a.bits())));
    }
    Ok((items(ones) + items(others) - union).max(0.0))
}
