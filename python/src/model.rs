//! `umbel.model`: what a filter will do, as `umbel model --json` prints it.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use umbel::model::dynamic::{self, Component};
use umbel::model::stale::{Dirty, Replica, Weights};
use umbel::model::{chain, standard};
use umbel::params::Hashes;
use umbel::{Rate, Shape};

use crate::error::{param_error, value_error};
use crate::make::Whole;
use crate::report::{MAX_HOSTS, MAX_ITEMS, at_least_one, between, dict, length};

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(model_standard, module)?)?;
    module.add_function(wrap_pyfunction!(model_dynamic, module)?)?;
    module.add_function(wrap_pyfunction!(model_replica, module)?)?;
    module.add_function(wrap_pyfunction!(model_chain, module)?)
}

fn shape(bits: Whole, hashes: Whole) -> PyResult<Shape> {
    Shape::new(bits.0, hashes.small()).map_err(param_error)
}

/// A filter of this shape with so many keys: its fill, its false positive rate, and what the best
/// number of hashes would give.
///
/// >>> round(umbel.model.standard(bits=9593, hashes=7, items=1000)["false_positive"], 4)
/// 0.01
#[pyfunction]
#[pyo3(signature = (bits, hashes, items))]
fn model_standard(
    py: Python<'_>,
    bits: Whole,
    hashes: Whole,
    items: Whole,
) -> PyResult<Bound<'_, PyDict>> {
    let (shape, items) = (shape(bits, hashes)?, at_least_one("items", items, MAX_ITEMS)?);
    dict!(py,
        "fill": standard::fill(shape, items),
        "false_positive": standard::false_positive(shape, items),
        "best_hashes": standard::best_hashes(shape.bits(), items),
        "best_false_positive": standard::best_false_positive(shape.bits(), items),
    )
}

/// A dynamic filter whose components hold `capacity` keys each, with so many keys in all, beside
/// one filter.
///
/// >>> umbel.model.dynamic(bits=1280, hashes=7, capacity=133, items=1330)["components"]
/// 10
#[pyfunction]
#[pyo3(signature = (bits, hashes, capacity, items))]
fn model_dynamic(
    py: Python<'_>,
    bits: Whole,
    hashes: Whole,
    capacity: Whole,
    items: Whole,
) -> PyResult<Bound<'_, PyDict>> {
    let (shape, items) = (shape(bits, hashes)?, at_least_one("items", items, MAX_ITEMS)?);
    let component = Component::new(shape, at_least_one("capacity", capacity, MAX_ITEMS)?);
    dict!(py,
        "components": component.needed_for(items),
        "false_positive": dynamic::false_positive(component, items),
        "standard_false_positive": standard::false_positive(shape, items),
        "rebuilt_false_positive": dynamic::rebuilt_false_positive(component, items),
        "several_components_bound": dynamic::claimed_twice(component, items).last,
    )
}

/// A replica that went stale: what it wrongly claims, and how often it disagrees with its home.
///
/// dirty_ones is the share of all bits that are one at home and zero in the replica, dirty_zeros
/// the reverse. "host" has the same for a host with replicas of all others.
///
/// >>> stale = umbel.model.replica(1200, 6, items=240, dirty_ones=0.1705, dirty_zeros=0.01, hosts=5)
/// >>> stale["false_negative"] < stale["host"]["false_negative"]
/// True
#[pyfunction]
#[pyo3(
    signature = (bits, hashes, items, dirty_ones, dirty_zeros, *, hosts=Whole(2), weight_false_positive=1.0, weight_false_negative=1.0),
    text_signature = "(bits, hashes, items, dirty_ones, dirty_zeros, *, hosts=2, weight_false_positive=1.0, weight_false_negative=1.0)"
)]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
fn model_replica<'py>(
    py: Python<'py>,
    bits: Whole,
    hashes: Whole,
    items: Whole,
    dirty_ones: f64,
    dirty_zeros: f64,
    hosts: Whole,
    weight_false_positive: f64,
    weight_false_negative: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let dirty = Dirty {
        ones: between("dirty_ones", dirty_ones, 0.0, 1.0)?,
        zeros: between("dirty_zeros", dirty_zeros, 0.0, 1.0)?,
    };
    let items = at_least_one("items", items, MAX_ITEMS)?;
    let replica = Replica::new(shape(bits, hashes)?, items, dirty).map_err(value_error)?;
    let weights = Weights {
        false_positive: between("weight_false_positive", weight_false_positive, 0.0, 1e6)?,
        disagreement: between("weight_false_negative", weight_false_negative, 0.0, 1e6)?,
    };
    let host = replica.host(at_least_one("hosts", hosts, MAX_HOSTS)?);
    let host: PyResult<_> = dict!(py,
        "false_positive": host.false_positive,
        "false_negative": host.disagreement,
        "overall": host.overall,
    );
    dict!(py,
        "replica_items": replica.items().map_err(value_error)?,
        "false_positive": replica.false_positive(),
        "false_negative": replica.disagreement(),
        "overall": replica.overall(weights),
        "host": host?,
    )
}

/// Chains of keys: how often a depth is too large, and what a search reads.
///
/// >>> umbel.model.chain(false_positive=0.1, hashes=3, window=12, step=8, length=8192,
/// ...                   workers=64)["over_estimate"] < 1e-8
/// True
#[pyfunction]
#[pyo3(signature = (false_positive, hashes, window, step, length, workers))]
fn model_chain(
    py: Python<'_>,
    false_positive: f64,
    hashes: Whole,
    window: Whole,
    step: Whole,
    length: Whole,
    workers: Whole,
) -> PyResult<Bound<'_, PyDict>> {
    let rate = Rate::new(false_positive).map_err(param_error)?.get();
    let hashes = Hashes::new(hashes.small()).map_err(param_error)?.get();
    let (window, step) = (self::length("window", window)?, self::length("step", step)?);
    let length = self::length("length", length)?;
    let workers = at_least_one("workers", workers, MAX_HOSTS)?;
    let effort = chain::effort(rate, workers, hashes, length.into(), (window, step));
    dict!(py,
        "over_estimate": chain::over_estimate(rate, length.into(), window, step),
        "run": chain::run(rate, length.into(), window),
        "one_step_more": chain::one_step_more(rate, step),
        "keys_read": effort.keys,
        "rounds": effort.rounds,
        "keys_walked": f64::from(length) / 2.0,
    )
}
