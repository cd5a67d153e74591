//! The shape of a home's filter, and empty filters of that shape.

use crate::design::ladder::{Rung, RungChoice};
use crate::filter::DynamicFilter;
use crate::key_hash::KeyHasher;
use crate::params::{ParamError, Shape};
use crate::scheme::Scheme;

/// How the filter of a home grows.
#[derive(Debug)]
pub(super) enum Growth {
    /// Along a ladder.
    Ladder(RungChoice),
    /// By components of equal shape, for `capacity` keys each.
    Components { capacity: u64 },
}

/// The most components that a filter of a fixed shape may have.
const MAX_COMPONENTS: u32 = u16::MAX as u32;

/// An empty filter on a rung of this shape.
pub(super) fn filter_on(hasher: KeyHasher, shape: Shape) -> Result<DynamicFilter, ParamError> {
    let scheme = Scheme::new(shape, hasher);
    Ok(DynamicFilter::new(scheme, u64::MAX, 1)?.without_slices())
}

/// An empty filter of components of this shape.
pub(super) fn filter_of(
    hasher: KeyHasher,
    shape: Shape,
    capacity: u64,
) -> Result<DynamicFilter, ParamError> {
    let scheme = Scheme::new(shape, hasher);
    Ok(DynamicFilter::new(scheme, capacity, MAX_COMPONENTS)?.without_slices())
}

/// Bytes that the filter of a home on a rung takes, with its counters and the published copy.
pub(crate) const fn memory_of(rung: Rung) -> u64 {
    rung.bits() / 8 * 6
}
