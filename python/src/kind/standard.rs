//! The standard filter: adds keys, in the fewest bits.

use pyo3::prelude::*;
use umbel::{StandardFilter as Standard, design};

use crate::error::param_error;
use crate::filter::Filter;
use crate::make::{Hashing, Size, Whole};

/// StandardFilter(items, false_positive, *, hash=None, seed=None, secret=None)
/// StandardFilter(*, bits, hashes, hash=None, seed=None, secret=None)
/// --
///
/// A Bloom filter that keys can be added to: the smallest kind.
///
/// The size follows from a target (the smallest filter that keeps the rate while it holds so many
/// keys), or is given.
///
/// >>> seen = StandardFilter(items=10_000, false_positive=0.01)
/// >>> seen.add("apple")
/// True
/// >>> "apple" in seen, "pear" in seen
/// (True, False)
/// >>> StandardFilter(bits=9593, hashes=7).bits
/// 9593
///
/// hash is "xxh3" or "siphash-1-3". seed is a number that is stored in files. secret is bytes that
/// are not: files hold a fingerprint of them, and nobody without the secret can choose keys that
/// are claimed wrongly, if hash is siphash-1-3, its default then.
#[pyclass(extends = Filter, frozen, module = "umbel")]
pub(crate) struct StandardFilter;

#[pymethods]
impl StandardFilter {
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
        let filter = Standard::new(Hashing { hash, seed, secret }.scheme(shape)?);
        let base = Filter::new(filter.map_err(param_error)?);
        Ok(PyClassInitializer::from(base).add_subclass(Self))
    }
}
