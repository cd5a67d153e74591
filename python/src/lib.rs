//! Python's view of `umbel`: filters, a bank of them, plans and models.
//!
//! Every class keeps its contents behind a lock of its own and may be shared between threads. Calls
//! on many keys release Python's global lock while they work. Python code never runs while a lock
//! is held: keys are collected before, results are built after.
//!
//! Not here: files (`umbel/_files.py`; here they are bytes), networks, hosts.

mod bank;
mod error;
mod filter;
mod keys;
mod kind;
mod make;
mod model;
mod plan;
mod report;

use pyo3::prelude::*;

/// What `umbel/__init__.py`, `plan.py` and `model.py` export.
#[pymodule]
fn _umbel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<filter::Filter>()?;
    module.add_class::<kind::StandardFilter>()?;
    module.add_class::<kind::BlockedFilter>()?;
    module.add_class::<kind::CountingFilter>()?;
    module.add_class::<kind::DynamicFilter>()?;
    module.add_class::<bank::Bank>()?;
    module.add_function(wrap_pyfunction!(filter::from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(filter::load, module)?)?;
    plan::add_to(module)?;
    model::add_to(module)
}
