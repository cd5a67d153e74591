//! What filters of all kinds have in common: one class, of which every kind is a subclass.
//!
//! Always true: no Python code runs while the lock is held, and where two filters take part, only
//! one of them is locked at a time.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::RwLockExt as _;
use pyo3::types::{PyBytes, PyList};
use umbel::codec::{AnyFilter, Decoder};
use umbel::{Membership as _, Mismatch, StandardFilter as Standard};

use crate::error::{decode_error, value_error};
use crate::keys::{Keys, bytes_of};
use crate::kind;
use crate::make::{Whole, secret_seed};

/// A Bloom filter of any kind: what they have in common.
///
/// Filters are made as StandardFilter, BlockedFilter, CountingFilter or DynamicFilter, or read by
/// load() and from_bytes(). A key is bytes, or a str, which stands for its UTF-8 bytes: "é" and
/// b"\xc3\xa9" are the same key. The hash does not change from one process or machine to another.
///
/// `key in filter` is always True for a key that was added and not removed. It is also True for a
/// few others: false_positive says how many.
///
/// A filter may be used by several threads. Each call sees the filter before or after another
/// thread's call, not in between. Calls on many keys release the global interpreter lock.
#[pyclass(subclass, frozen, module = "umbel")]
pub(crate) struct Filter {
    filter: RwLock<AnyFilter>,
}

impl Filter {
    pub(crate) fn new(filter: impl Into<AnyFilter>) -> Self {
        Self { filter: RwLock::new(filter.into()) }
    }

    /// Locks the filter for reading. Waits without Python's global lock.
    pub(crate) fn read(&self, py: Python<'_>) -> RwLockReadGuard<'_, AnyFilter> {
        self.filter.read_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the filter for writing. Waits without Python's global lock.
    pub(crate) fn write(&self, py: Python<'_>) -> RwLockWriteGuard<'_, AnyFilter> {
        self.filter.write_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the filter as it is now, made without Python's global lock.
    fn snapshot(&self, py: Python<'_>) -> AnyFilter {
        self.ask(py, AnyFilter::clone)
    }

    /// Reads the filter without Python's global lock.
    pub(crate) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&AnyFilter) -> T + Send,
    ) -> T {
        py.detach(|| work(&self.filter.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Changes the filter without Python's global lock.
    pub(crate) fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut AnyFilter) -> T + Send,
    ) -> T {
        py.detach(|| work(&mut self.filter.write().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Filter {
    /// Add a key. Return whether the filter did not claim it before.
    ///
    /// >>> seen = StandardFilter(1000, 0.01)
    /// >>> seen.add("apple"), seen.add("apple")
    /// (True, False)
    ///
    /// A counting or dynamic filter counts a key that is added twice, and must remove it twice.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key)?;
        let mut filter = self.write(py);
        match &mut *filter {
            AnyFilter::Standard(filter) => Ok(filter.insert(key)),
            AnyFilter::Counting(filter) => Ok(filter.insert(key)),
            AnyFilter::Blocked(filter) => Ok(filter.insert(key)),
            growing @ (AnyFilter::Dynamic(_) | AnyFilter::PlainDynamic(_)) => {
                make_room(growing, 1)?;
                let digest = growing.scheme().digest(key);
                let is_new = !growing.contains_digest(digest);
                growing.insert_digest(digest);
                Ok(is_new)
            }
        }
    }

    /// Add many keys, from any iterable.
    ///
    /// >>> seen = StandardFilter(1000, 0.01)
    /// >>> seen.add_many(["apple", b"pear"])
    /// >>> "pear" in seen
    /// True
    ///
    /// All keys are collected first: if one of them is no key, none is added. Give a generator of
    /// more keys than memory can hold in parts.
    fn add_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let keys = Keys::collect(keys)?;
        let bytes = keys.bytes()?;
        self.change(py, |filter| {
            make_room(filter, bytes.len() as u64)?;
            filter.insert_batch(&bytes);
            Ok(())
        })
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key)?;
        Ok(self.read(py).may_contain(key))
    }

    /// Return for each of many keys whether the filter claims it, in order.
    ///
    /// >>> seen = StandardFilter(1000, 0.01)
    /// >>> seen.add("apple")
    /// True
    /// >>> seen.contains_many(["apple", "pear"])
    /// [True, False]
    fn contains_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = Keys::collect(keys)?;
        let bytes = keys.bytes()?;
        let answers = self.ask(py, |filter| {
            let mut answers = Vec::with_capacity(bytes.len());
            filter.contains_batch(&bytes, &mut answers);
            answers
        });
        PyList::new(py, answers)
    }

    /// Number of keys: how often keys were added, minus how often they were removed.
    fn __len__(&self, py: Python<'_>) -> usize {
        usize::try_from(self.read(py).items()).unwrap_or(usize::MAX)
    }

    /// The union: a filter that claims every key of both. Both must be of the same kind, shape,
    /// hash and seed.
    ///
    /// >>> a, b = StandardFilter(1000, 0.01), StandardFilter(1000, 0.01)
    /// >>> a.add("apple"), b.add("pear")
    /// (True, True)
    /// >>> both = a | b
    /// >>> "apple" in both and "pear" in both
    /// True
    fn __or__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, Filter>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (mut joined, other) = (self.snapshot(py), other.get().snapshot(py));
        py.detach(|| union(&mut joined, &other)).map_err(value_error)?;
        kind::wrap(py, joined)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Filter>) -> PyResult<()> {
        let other = other.get().snapshot(py);
        self.change(py, |filter| union(filter, &other)).map_err(value_error)
    }

    /// What two standard or counting filters have in common: a standard filter that claims every
    /// key of both, and a few more than a filter built from those keys would. Its number of items
    /// is an estimate.
    fn __and__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, Filter>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (mut common, other) = (plain(self.snapshot(py))?, plain(other.get().snapshot(py))?);
        py.detach(|| common.intersect_with(&other)).map_err(value_error)?;
        kind::wrap(py, common.into())
    }

    /// Whether both are of the same kind, shape, hash and seed, with the same bits and counters.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Filter>() else { return false };
        if std::ptr::eq(self, other.get()) {
            return true;
        }
        let other = other.get().snapshot(py);
        self.ask(py, |filter| *filter == other)
    }

    /// Return a copy.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        kind::wrap(py, self.snapshot(py))
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__<'py>(
        &self,
        py: Python<'py>,
        _memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        if self.read(py).scheme().hasher().is_secret() {
            return Err(value_error(
                "a filter with a secret cannot be pickled: its bytes do not contain the secret; \
                 send to_bytes(), and read it with from_bytes(data, secret=...)",
            ));
        }
        Ok((py.import("umbel")?.getattr("from_bytes")?, (self.to_bytes(py),)))
    }

    /// Return the filter as bytes: the contents of the file that save() writes.
    ///
    /// >>> seen = StandardFilter(1000, 0.01)
    /// >>> from_bytes(seen.to_bytes()) == seen
    /// True
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let encoded = self.ask(py, AnyFilter::encode);
        PyBytes::new(py, &encoded)
    }

    /// Write the filter to a file, which `umbel filter` and load() read.
    ///
    /// The file is complete or not there: it is written beside its place and then renamed. A filter
    /// that is there already is replaced; any other file raises FileExistsError.
    fn save(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let files = py.import("umbel._files")?;
        files.call_method1("write", (path, self.to_bytes(py)))?;
        Ok(())
    }

    /// Length in bits; of a dynamic filter, the length of a component.
    #[getter]
    fn bits(&self, py: Python<'_>) -> u64 {
        self.read(py).scheme().shape().bits()
    }

    /// Positions per key.
    #[getter]
    fn hashes(&self, py: Python<'_>) -> u32 {
        self.read(py).scheme().shape().hashes()
    }

    /// The hash function: "xxh3" or "siphash-1-3".
    #[getter]
    fn hash(&self, py: Python<'_>) -> String {
        self.read(py).scheme().hasher().id().to_string()
    }

    /// Names the seed without giving it away. Filters of different seeds cannot be combined.
    #[getter]
    fn seed_fingerprint(&self, py: Python<'_>) -> String {
        self.read(py).scheme().hasher().fingerprint().to_string()
    }

    /// Share of absent keys that the filter claims now, computed from its bits.
    ///
    /// >>> seen = StandardFilter(1000, 0.01)
    /// >>> seen.add_many(str(number) for number in range(1000))
    /// >>> 0.008 < seen.false_positive < 0.012
    /// True
    #[getter]
    fn false_positive(&self, py: Python<'_>) -> f64 {
        self.read(py).false_positive()
    }

    /// Share of the bits that are one, over all components.
    #[getter]
    fn fill(&self, py: Python<'_>) -> f64 {
        let filter = self.read(py);
        let bits = filter.scheme().shape().bits() as f64 * filter.components() as f64;
        filter.ones() as f64 / bits
    }

    /// Bytes of memory that the filter takes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> usize {
        self.read(py).memory_bytes()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let filter = self.read(py);
        let (shape, name) = (filter.scheme().shape(), kind::name(filter.kind()));
        format!(
            "<{name} of {} bits and {} hashes, {} items, {:.3} % false positives>",
            shape.bits(),
            shape.hashes(),
            filter.items(),
            filter.false_positive() * 100.0
        )
    }
}

/// Read a filter from bytes, as to_bytes() returns them.
///
/// secret is needed if the filter was made with one. max_memory limits the memory that the filter
/// may take, in bytes; without it, the limit is 256 MiB or 16 times the length of the bytes,
/// whichever is more. Bytes that are not a valid filter raise ValueError.
///
/// >>> from_bytes(b"something else")
/// Traceback (most recent call last):
///     ...
/// ValueError: this is not an umbel file: it does not begin with UMBL
#[pyfunction]
#[pyo3(signature = (data, *, secret=None, max_memory=None))]
pub(crate) fn from_bytes<'py>(
    py: Python<'py>,
    data: &[u8],
    secret: Option<&[u8]>,
    max_memory: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let limit = SMALL.max(TIMES_FILE.saturating_mul(data.len() as u64));
    let decoder = Decoder::new().limit(max_memory.map_or(limit, |limit| limit.0));
    let decoder = match secret {
        Some(secret) => decoder.seed(secret_seed(secret)?),
        None => decoder,
    };
    let filter = py.detach(|| decoder.filter(data)).map_err(decode_error)?;
    kind::wrap(py, filter)
}

/// Read a filter from a file that save() or `umbel filter` wrote. See from_bytes() for secret and
/// max_memory.
///
/// >>> seen = StandardFilter(1000, 0.01)
/// >>> seen.save("seen.umbel")
/// >>> load("seen.umbel") == seen
/// True
#[pyfunction]
#[pyo3(signature = (path, *, secret=None, max_memory=None))]
pub(crate) fn load<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    secret: Option<&[u8]>,
    max_memory: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let data = py.import("umbel._files")?.call_method1("read", (path,))?;
    let data = data.cast::<PyBytes>().map_err(|_| PyTypeError::new_err("a file is bytes"))?;
    from_bytes(py, data.as_bytes(), secret, max_memory)
}

/// A filter may take this much memory, however few bytes it is read from, as `umbel filter` has it.
const SMALL: u64 = 256 << 20;
/// Otherwise at most this many times its bytes: a filter in use is hardly larger.
const TIMES_FILE: u64 = 16;

/// Checks that there is memory for the components that this many more keys may need.
fn make_room(filter: &AnyFilter, keys: u64) -> PyResult<()> {
    let needed = filter.memory_bytes_with(keys).saturating_sub(filter.memory_bytes() as u64);
    if needed == 0 {
        return Ok(());
    }
    let there = usize::try_from(needed)
        .is_ok_and(|needed| Vec::<u8>::new().try_reserve_exact(needed).is_ok());
    if there {
        return Ok(());
    }
    Err(PyMemoryError::new_err(format!(
        "no memory for {keys} more keys: {needed} bytes are needed"
    )))
}

/// Adds the keys of another filter, as `umbel filter union` does.
fn union(filter: &mut AnyFilter, other: &AnyFilter) -> Result<(), String> {
    use AnyFilter::{Blocked, Counting, Dynamic, PlainDynamic, Standard};
    let joined: Result<(), Mismatch> = match (filter, other) {
        (Standard(a), Standard(b)) => a.union_with(b),
        (Counting(a), Counting(b)) => a.union_with(b),
        (Blocked(a), Blocked(b)) => a.union_with(b),
        (Dynamic(a), Dynamic(b)) => a.union_with(b).map(|_| drop(a.shrink())),
        (PlainDynamic(a), PlainDynamic(b)) => a.union_with(b).map(|_| drop(a.shrink())),
        (a, b) => return Err(format!("one is {}, the other is {}", a.kind(), b.kind())),
    };
    joined.map_err(|error| error.to_string())
}

/// The plain bits of a filter that has only one component.
fn plain(filter: AnyFilter) -> PyResult<Standard> {
    match filter {
        AnyFilter::Standard(filter) => Ok(filter),
        AnyFilter::Counting(filter) => Ok(filter.to_standard()),
        other => Err(value_error(format!(
            "{} cannot be intersected: only standard and counting filters can",
            other.kind()
        ))),
    }
}
