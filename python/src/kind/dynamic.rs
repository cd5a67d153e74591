//! The dynamic filter: adds and removes keys, and grows by components.

use pyo3::prelude::*;
use umbel::codec::AnyFilter;
use umbel::filter::Removal;
use umbel::{CountingFilter, DynamicFilter as Dynamic};

use crate::error::{param_error, value_error};
use crate::filter::Filter;
use crate::keys::{Keys, bytes_of};
use crate::make::{Hashing, Size, Whole};

/// DynamicFilter(items, false_positive, *, capacity=None, hash=None, seed=None, secret=None)
/// DynamicFilter(*, bits, hashes, capacity=None, hash=None, seed=None, secret=None)
/// --
///
/// A Bloom filter that grows with its keys: whenever it is full, it gets another component.
///
/// Without capacity, a component holds `items` keys, and the rate is kept up to 8 components. With
/// it, a component holds `capacity` keys, and the rate is kept up to `items` keys in all.
///
/// >>> grows = DynamicFilter(items=1000, false_positive=0.01)
/// >>> grows.add_many(str(number) for number in range(2500))
/// >>> grows.components
/// 3
/// >>> grows.remove("7"), "7" in grows
/// (True, False)
///
/// Only remove keys that were added. See StandardFilter for hash, seed and secret.
#[pyclass(extends = Filter, frozen, module = "umbel")]
pub(crate) struct DynamicFilter;

#[pymethods]
impl DynamicFilter {
    #[new]
    #[pyo3(signature = (items=None, false_positive=None, *, capacity=None, bits=None, hashes=None, hash=None, seed=None, secret=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        items: Option<Whole>,
        false_positive: Option<f64>,
        capacity: Option<Whole>,
        bits: Option<Whole>,
        hashes: Option<Whole>,
        hash: Option<&str>,
        seed: Option<Whole>,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let size = Size { items, false_positive, bits, hashes };
        let (shape, capacity, components) = size.components(capacity)?;
        let scheme = Hashing { hash, seed, secret }.scheme(shape)?;
        let filter = Dynamic::<CountingFilter>::new(scheme, capacity, components);
        let base = Filter::new(filter.map_err(param_error)?);
        Ok(PyClassInitializer::from(base).add_subclass(Self))
    }

    /// Remove a key that was added. Return whether it was removed.
    ///
    /// False means that the filter did not claim it, or that several components do: only one of
    /// them holds it, so that it is kept for the sake of other keys, and `key in filter` stays True.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key)?;
        match &mut *slf.as_super().get().write(slf.py()) {
            AnyFilter::Dynamic(filter) => Ok(remove(filter, key)),
            other => Err(cannot_remove(other)),
        }
    }

    /// Remove many keys, from any iterable. Return how many were removed. Components whose keys now
    /// fit into one are merged.
    fn remove_many(slf: &Bound<'_, Self>, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let keys = Keys::collect(keys)?;
        let keys = keys.bytes()?;
        slf.as_super().get().change(slf.py(), |filter| match filter {
            AnyFilter::Dynamic(filter) => {
                let removed = keys.into_iter().filter(|key| remove(filter, key)).count();
                filter.shrink();
                Ok(removed)
            }
            other => Err(cannot_remove(other)),
        })
    }

    /// Merge components whose keys fit into one. Return how many were merged away.
    fn shrink(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().change(slf.py(), |filter| match filter {
            AnyFilter::Dynamic(filter) => filter.shrink().len(),
            AnyFilter::PlainDynamic(filter) => filter.shrink().len(),
            _ => 0,
        })
    }

    /// Number of components.
    #[getter]
    fn components(slf: &Bound<'_, Self>) -> usize {
        slf.as_super().get().read(slf.py()).components()
    }

    /// Keys that a component holds before another one is added.
    #[getter]
    fn capacity(slf: &Bound<'_, Self>) -> u64 {
        plan(slf).0
    }

    /// Number of components up to which the planned rate is kept.
    #[getter]
    fn max_components(slf: &Bound<'_, Self>) -> u32 {
        plan(slf).1
    }
}

/// Keys per component, and planned components.
fn plan(filter: &Bound<'_, DynamicFilter>) -> (u64, u32) {
    match &*filter.as_super().get().read(filter.py()) {
        AnyFilter::Dynamic(filter) => (filter.capacity(), filter.max_components()),
        AnyFilter::PlainDynamic(filter) => (filter.capacity(), filter.max_components()),
        _ => (0, 0),
    }
}

fn remove(filter: &mut Dynamic, key: &[u8]) -> bool {
    matches!(filter.remove(key), Removal::Removed(_))
}

fn cannot_remove(filter: &AnyFilter) -> PyErr {
    value_error(format!("this is {}, which cannot remove keys", filter.kind()))
}
