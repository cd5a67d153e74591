//! The kinds of filters, a class each. What they have in common is `Filter`.

mod blocked;
mod counting;
mod dynamic;
mod standard;

pub(crate) use blocked::BlockedFilter;
pub(crate) use counting::CountingFilter;
pub(crate) use dynamic::DynamicFilter;
pub(crate) use standard::StandardFilter;

use pyo3::PyClass;
use pyo3::prelude::*;
use umbel::codec::{AnyFilter, Kind};

use crate::filter::Filter;

/// The Python object for a filter, of the class of its kind.
pub(crate) fn wrap(py: Python<'_>, filter: AnyFilter) -> PyResult<Bound<'_, PyAny>> {
    let base = |filter| PyClassInitializer::from(Filter::new(filter));
    match &filter {
        AnyFilter::Standard(_) => object(py, base(filter).add_subclass(StandardFilter)),
        AnyFilter::Counting(_) => object(py, base(filter).add_subclass(CountingFilter)),
        AnyFilter::Blocked(_) => object(py, base(filter).add_subclass(BlockedFilter)),
        AnyFilter::Dynamic(_) | AnyFilter::PlainDynamic(_) => {
            object(py, base(filter).add_subclass(DynamicFilter))
        }
    }
}

fn object<T: PyClass>(py: Python<'_>, filter: PyClassInitializer<T>) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, filter)?.into_any())
}

/// The name of the class of a kind.
pub(crate) const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Standard => "StandardFilter",
        Kind::Counting => "CountingFilter",
        Kind::Blocked => "BlockedFilter",
        _ => "DynamicFilter",
    }
}
