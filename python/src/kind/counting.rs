//! The counting filter: adds and removes keys.

use pyo3::prelude::*;
use umbel::codec::AnyFilter;
use umbel::{CountingFilter as Counting, design};

use super::wrap;
use crate::error::{param_error, value_error};
use crate::filter::Filter;
use crate::keys::{Keys, bytes_of};
use crate::make::{Hashing, Size, Whole};

/// CountingFilter(items, false_positive, *, hash=None, seed=None, secret=None)
/// CountingFilter(*, bits, hashes, hash=None, seed=None, secret=None)
/// --
///
/// A Bloom filter that keys can be added to and removed from. It takes five times the memory of a
/// StandardFilter.
///
/// >>> cached = CountingFilter(items=10_000, false_positive=0.01)
/// >>> cached.add("apple")
/// True
/// >>> cached.remove("apple")
/// True
/// >>> "apple" in cached
/// False
///
/// Only remove keys that were added: removing another key that the filter happens to claim takes
/// bits away from others. See StandardFilter for hash, seed and secret.
#[pyclass(extends = Filter, frozen, module = "umbel")]
pub(crate) struct CountingFilter;

#[pymethods]
impl CountingFilter {
    #[new]
    #[pyo3(signature = (items=None, false_positive=None, *, bits=None, hashes=None, hash=None, seed=None, secret=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        items: Option<Whole>,
        false_positive: Option<f64>,
        bits: Option<Whole>,
        hashes: Option<Whole>,
        hash: Option<&str>,
        seed: Option<Whole>,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let shape = Size { items, false_positive, bits, hashes }.shape(design::standard)?;
        let filter = Counting::new(Hashing { hash, seed, secret }.scheme(shape)?);
        let base = Filter::new(filter.map_err(param_error)?);
        Ok(PyClassInitializer::from(base).add_subclass(Self))
    }

    /// Remove a key that was added. Return whether the filter claimed it; if not, nothing changes.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key)?;
        Ok(remove(&mut slf.as_super().get().write(slf.py()), key))
    }

    /// Remove many keys, from any iterable. Return how many of them the filter claimed.
    fn remove_many(slf: &Bound<'_, Self>, keys: &Bound<'_, PyAny>) -> PyResult<usize> {
        let keys = Keys::collect(keys)?;
        let keys = keys.bytes()?;
        Ok(slf
            .as_super()
            .get()
            .change(slf.py(), |filter| keys.into_iter().filter(|key| remove(filter, key)).count()))
    }

    /// Return the StandardFilter of the same keys.
    fn to_standard<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let plain = match &*slf.as_super().get().read(py) {
            AnyFilter::Counting(filter) => filter.to_standard(),
            other => return Err(value_error(format!("this is {}", other.kind()))),
        };
        wrap(py, plain.into())
    }

    /// Number of counters that are stuck at 15: they are never lowered again, so that removed keys
    /// that share one may still be claimed.
    #[getter]
    fn stuck_counters(slf: &Bound<'_, Self>) -> u64 {
        slf.as_super().get().read(slf.py()).stuck_counters()
    }
}

/// Removes a key; returns whether it was claimed.
fn remove(filter: &mut AnyFilter, key: &[u8]) -> bool {
    match filter {
        AnyFilter::Counting(filter) => filter.remove(key),
        _ => false,
    }
}
