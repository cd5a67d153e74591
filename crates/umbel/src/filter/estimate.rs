//! Estimates the number of keys in a filter, a union or an intersection from the fills.
//!
//! With `X` ones of `m`, the best guess at the number of distinct keys is `n = -(m/k) ln(1 - X/m)`;
//! a union is the OR of the bits, and an intersection follows from `|A∩B| = |A| + |B| - |A∪B|`. A
//! filter of all ones gives no information: the estimate is infinite.
//!
//! Also estimates how often a filter is wrong ([`false_positive`]), in the same way for every kind:
//! a random key is claimed if it shares a member's digest, or if its bits happen to be set.
//!
//! Always true: an intersection is estimated at no more than either side.

use super::StandardFilter;
use crate::bits::BitVector;
use crate::model::any_of;
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

/// The probability that a random key is claimed: `c + (1-c) fill^k`, from the present fill and the
/// probability `c` that the key shares its digest with a member.
///
/// `n` keys have `1 - (1 - 2^-b)^n` of the `2^b` digests; but `items` includes repeats, which the
/// fill does not, and the fill includes stuck counters, so the smaller number is used.
#[must_use]
pub(super) fn false_positive(shape: &Shape, bits: &BitVector, items: u64) -> f64 {
    let one_digest = (-f64::from(shape.digest_bits().get())).exp2();
    let by_items = any_of(one_digest, items as f64);
    let by_fill = estimate_items(shape, bits.ones()) * one_digest;
    let equal = by_items.min(by_fill);
    equal + (1.0 - equal) * bits.fill().powi(shape.hashes() as i32)
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
        // The formula does not work. Use the shared ones: they include all positions of common
        // keys.
        return Ok(items(others - b.bits().count_beyond(a.bits())));
    }
    Ok((items(ones) + items(others) - union).max(0.0))
}
