//! A bank: the filters of many holders under their names, asked all at once.
//!
//! Always true: the names of an answer are those of the moment at which the rows were read. They
//! are shared (`Arc`), so that an answer is turned into a list after the lock was released.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString};
use umbel::bank::{Bank as Rows, BatchCandidates, ColumnId, Depths};
use umbel::bits::BitVector;
use umbel::codec::AnyFilter;
use umbel::design::chain::ChainSearch;
use umbel::model::chain::over_estimate as chance_of_over_estimate;
use umbel::{KeyHash, Scheme};

use crate::error::{bank_error, value_error};
use crate::filter::Filter;
use crate::keys::{Keys, bytes_of};
use crate::make::Whole;
use crate::report::length;

/// Bank()
/// --
///
/// Filters of many holders, asked all at once: who holds this key?
///
/// It maps names to copies of filters. Standard, counting and dynamic filters of any length may be
/// mixed; all must have the same hash and seed. Asking a thousand of them takes little longer than
/// asking one.
///
/// >>> bank = Bank()
/// >>> for host, keys in {"a": ["apple"], "b": ["apple", "pear"]}.items():
/// ...     held = StandardFilter(1000, 0.001)
/// ...     held.add_many(keys)
/// ...     bank[host] = held
/// >>> bank.who("apple"), bank.who("pear"), bank.who("plum")
/// (['a', 'b'], ['b'], [])
///
/// A bank holds copies: assign a filter again after it has changed. A bank may be used by several
/// threads, as filters may.
#[pyclass(frozen, module = "umbel")]
pub(crate) struct Bank {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// Made with the hasher of the first filter.
    rows: Option<Rows>,
    members: BTreeMap<Arc<str>, Member>,
    /// By column.
    names: Arc<Vec<Option<Arc<str>>>>,
}

struct Member {
    columns: Vec<ColumnId>,
    false_positive: f64,
}

/// What a bank takes from a filter.
struct Columns {
    scheme: Scheme,
    bits: Vec<BitVector>,
    false_positive: f64,
}

#[pymethods]
impl Bank {
    #[new]
    fn new() -> Self {
        Self { state: RwLock::default() }
    }

    fn __setitem__(&self, py: Python<'_>, name: &str, filter: &Bound<'_, Filter>) -> PyResult<()> {
        let columns = filter.get().ask(py, Columns::of)?;
        py.detach(|| self.write(|state| state.put(name, &columns)))
    }

    fn __delitem__(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let was_there = py.detach(|| self.write(|state| state.remove(name)))?;
        if was_there { Ok(()) } else { Err(PyKeyError::new_err(name.to_owned())) }
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> bool {
        py.detach(|| self.read(|state| state.members.contains_key(name)))
    }

    /// Number of names.
    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.read(|state| state.members.len()))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names: Vec<Arc<str>> =
            py.detach(|| self.read(|state| state.members.keys().cloned().collect()));
        PyList::new(py, names.iter().map(|name| &**name))?.try_iter()
    }

    /// Return the names whose filters claim a key, sorted.
    fn who<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let key = bytes_of(key)?;
        let (found, names) = py.detach(|| self.read(|state| state.who(&[key])));
        let names = found.of(0, &names);
        PyList::new(py, names.iter().map(|name| &**name))
    }

    /// Return for each of many keys the names whose filters claim it, sorted, in the order of the keys.
    ///
    /// >>> bank, held = Bank(), StandardFilter(1000, 0.001)
    /// >>> held.add("apple")
    /// True
    /// >>> bank["a"] = held
    /// >>> bank.who_many(["apple", "pear"])
    /// [['a'], []]
    fn who_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = Keys::collect(keys)?;
        let bytes = keys.bytes()?;
        let (found, names) = py.detach(|| self.read(|state| state.who(&bytes)));
        // A name is one object, however often it is answered.
        let mut objects: Vec<Option<Bound<'py, PyString>>> = vec![None; names.len()];
        let answers = PyList::empty(py);
        for index in 0..bytes.len() {
            let answer = PyList::empty(py);
            for column in found.columns(index, &names) {
                let place = column.get() as usize;
                let name = names[place].as_deref().unwrap_or_default();
                answer.append(
                    objects[place].get_or_insert_with(|| PyString::new(py, name)).clone(),
                )?;
            }
            answers.append(answer)?;
        }
        Ok(answers)
    }

    /// Return for a chain of keys how many leading keys each name claims: a dict, deepest first.
    ///
    /// In a chain every key stands for itself and all keys before it, as the hashes of the blocks
    /// of a text do. Depths are rounded down to a multiple of step, and names whose depth is zero
    /// are left out. A depth is too large by more than step with a chance of at most over_estimate
    /// per name. The search does not read all keys, and may overlook a missing key in the middle of
    /// a chain; with walk=True it reads every key of the depths that it returns.
    ///
    /// >>> bank, held = Bank(), StandardFilter(1000, 0.01)
    /// >>> chain = [f"block {number}" for number in range(100)]
    /// >>> held.add_many(chain[:42])
    /// >>> bank["worker"] = held
    /// >>> bank.chain(chain)
    /// {'worker': 40}
    #[pyo3(
        signature = (keys, *, step=Whole(8), over_estimate=1e-8, walk=false),
        text_signature = "($self, keys, *, step=8, over_estimate=1e-08, walk=False)"
    )]
    fn chain<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        step: Whole,
        over_estimate: f64,
        walk: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let keys = Keys::collect(keys)?;
        let (bytes, step) = (keys.bytes()?, length("step", step)?);
        if !(over_estimate > 0.0 && over_estimate < 1.0) {
            let text = "the chance of an over-estimate must be above 0 and below 1, not";
            return Err(value_error(format!("{text} {over_estimate}")));
        }
        let chance = (!walk).then_some(over_estimate);
        let depths = py.detach(|| self.read(|state| state.chain(&bytes, step, chance)))?;
        let answer = PyDict::new(py);
        for (name, depth) in depths {
            answer.set_item(&*name, depth)?;
        }
        Ok(answer)
    }

    /// Bytes of memory that the filters take.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.read(|state| state.rows.as_ref().map_or(0, Rows::memory_bytes)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Bank of {} filters, {} bytes>", self.__len__(py), self.memory_bytes(py))
    }
}

impl Bank {
    /// Reads the bank; call it without Python's global lock.
    fn read<T>(&self, work: impl FnOnce(&State) -> T) -> T {
        work(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the bank; call it without Python's global lock.
    fn write<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Columns {
    fn of(filter: &AnyFilter) -> PyResult<Self> {
        let bits = match filter {
            AnyFilter::Standard(filter) => vec![filter.bits().clone()],
            AnyFilter::Counting(filter) => vec![filter.bits().clone()],
            AnyFilter::Dynamic(filter) => {
                filter.components().iter().map(|(_, component)| component.bits().clone()).collect()
            }
            AnyFilter::PlainDynamic(filter) => {
                filter.components().iter().map(|(_, component)| component.bits().clone()).collect()
            }
            AnyFilter::Blocked(_) => {
                return Err(value_error(format!("a bank does not take {}", filter.kind())));
            }
        };
        Ok(Self { scheme: *filter.scheme(), bits, false_positive: filter.false_positive() })
    }
}

type Names = Arc<Vec<Option<Arc<str>>>>;

impl State {
    /// Adds a filter, or replaces the one of the same name. If it is not taken, nothing changes.
    fn put(&mut self, name: &str, columns: &Columns) -> PyResult<()> {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => none.insert(Rows::new(*columns.scheme.hasher())),
        };
        let bits: Vec<&BitVector> = columns.bits.iter().collect();
        let ids = rows.add_many(&columns.scheme, &bits).map_err(bank_error)?;
        self.remove(name)?;
        let name: Arc<str> = name.into();
        let names = Arc::make_mut(&mut self.names);
        for id in &ids {
            let place = id.get() as usize;
            names.resize(names.len().max(place + 1), None);
            names[place] = Some(name.clone());
        }
        let false_positive = columns.false_positive;
        self.members.insert(name, Member { columns: ids, false_positive });
        Ok(())
    }

    /// Removes a filter; returns whether it was there.
    fn remove(&mut self, name: &str) -> PyResult<bool> {
        let (Some(member), Some(rows)) = (self.members.remove(name), &mut self.rows) else {
            return Ok(false);
        };
        let names = Arc::make_mut(&mut self.names);
        for column in member.columns {
            rows.remove(column).map_err(bank_error)?;
            names[column.get() as usize] = None;
        }
        Ok(true)
    }

    fn hashes(rows: &Rows, keys: &[&[u8]]) -> Vec<KeyHash> {
        keys.iter().map(|key| rows.hash(key)).collect()
    }

    fn who(&self, keys: &[&[u8]]) -> (Found, Names) {
        let mut found = BatchCandidates::new();
        if let Some(rows) = &self.rows {
            rows.who_batch(&Self::hashes(rows, keys), &mut found);
        }
        (Found(found), self.names.clone())
    }

    /// The depths of a chain, deepest first: by a search that keeps this chance of an over-estimate,
    /// or by a walk.
    fn chain(
        &self,
        keys: &[&[u8]],
        step: u32,
        chance: Option<f64>,
    ) -> PyResult<Vec<(Arc<str>, u32)>> {
        let Some(rows) = &self.rows else { return Ok(Vec::new()) };
        if let Some((name, member)) = self.members.iter().find(|(_, m)| m.columns.len() > 1) {
            let components = member.columns.len();
            return Err(value_error(format!(
                "'{name}' is a dynamic filter of {components} components: a chain needs filters of one"
            )));
        }
        let search = match chance {
            Some(chance) => ChainSearch::new(self.window(keys.len() as u64, step, chance)?, step),
            None => ChainSearch::walk(step),
        };
        let mut depths = Depths::new();
        rows.chain(&Self::hashes(rows, keys), search, &mut depths);
        let name = |column: ColumnId| self.names[column.get() as usize].clone();
        let mut named: Vec<(Arc<str>, u32)> =
            depths.iter().filter_map(|(column, depth)| Some((name(column)?, depth))).collect();
        named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(named)
    }

    /// The shortest window with which no filter breaks the promise.
    fn window(&self, length: u64, step: u32, chance: f64) -> PyResult<u32> {
        let rate = self.members.values().map(|member| member.false_positive).fold(0.0, f64::max);
        let keeps = |window: &u32| chance_of_over_estimate(rate, length, *window, step) <= chance;
        (1..=MAX_WINDOW).find(keeps).ok_or_else(|| {
            value_error(format!(
                "filters that claim {:.2} % of absent keys cannot keep a chance of {chance:e} with a \
                 step of {step} keys: use a longer step, longer filters or walk=True",
                rate * 100.0
            ))
        })
    }
}

/// The longest window of a search.
const MAX_WINDOW: u32 = 64;

/// Which columns claim each key.
struct Found(BatchCandidates);

impl Found {
    /// The columns that claim a key, one for each name.
    fn columns(&self, index: usize, names: &Names) -> Vec<ColumnId> {
        if index >= self.0.len() {
            return Vec::new();
        }
        let mut columns = self.0.of(index).to_vec();
        // Several components of one filter may claim a key.
        let name = |column: &ColumnId| names[column.get() as usize].as_deref();
        columns.sort_by(|a, b| name(a).cmp(&name(b)));
        columns.dedup_by(|a, b| name(a) == name(b));
        columns
    }

    fn of(&self, index: usize, names: &Names) -> Vec<Arc<str>> {
        let columns = self.columns(index, names);
        columns.iter().filter_map(|column| names[column.get() as usize].clone()).collect()
    }
}
