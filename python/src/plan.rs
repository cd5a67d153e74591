//! `umbel.plan`: parameters for a target, as `umbel plan --json` prints them.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use umbel::design::chain::ChainPromise;
use umbel::design::replica::{GHOST_TARGET, Workload, plan, row_width};
use umbel::design::{self, Distribution};
use umbel::model::dynamic::Component;
use umbel::replica::{Intervals, Policy, Rule};
use umbel::{Rate, model};

use crate::error::{param_error, value_error};
use crate::make::Whole;
use crate::report::{MAX_HOSTS, MAX_ITEMS, at_least_one, between, dict, length};

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plan_standard, module)?)?;
    module.add_function(wrap_pyfunction!(plan_blocked, module)?)?;
    module.add_function(wrap_pyfunction!(plan_dynamic, module)?)?;
    module.add_function(wrap_pyfunction!(plan_replica, module)?)?;
    module.add_function(wrap_pyfunction!(plan_chain, module)?)
}

fn rate(rate: f64) -> PyResult<Rate> {
    Rate::new(rate).map_err(param_error)
}

/// The shortest standard filter that keeps a false positive rate.
///
/// >>> plan = umbel.plan.standard(items=1_000_000, false_positive=0.01)
/// >>> plan["bits"], plan["hashes"]
/// (9592955, 7)
#[pyfunction]
#[pyo3(signature = (items, false_positive))]
fn plan_standard(py: Python<'_>, items: Whole, false_positive: f64) -> PyResult<Bound<'_, PyDict>> {
    let (items, rate) = (at_least_one("items", items, MAX_ITEMS)?, rate(false_positive)?);
    let shape = design::standard(items, rate).map_err(param_error)?;
    let papers = design::papers_standard(items, rate).map_err(param_error)?;
    dict!(py,
        "bits": shape.bits(),
        "hashes": shape.hashes(),
        "bits_per_item": shape.bits() as f64 / items as f64,
        "false_positive": model::standard::false_positive(shape, items),
        "papers_bits": papers.bits,
        "papers_hashes": papers.hashes,
    )
}

/// The shortest blocked filter that keeps a false positive rate.
///
/// >>> blocked = umbel.plan.blocked(items=1_000_000, false_positive=0.01)
/// >>> blocked["bits_per_item"] / umbel.plan.standard(1_000_000, 0.01)["bits_per_item"] < 1.15
/// True
#[pyfunction]
#[pyo3(signature = (items, false_positive))]
fn plan_blocked(py: Python<'_>, items: Whole, false_positive: f64) -> PyResult<Bound<'_, PyDict>> {
    let items = at_least_one("items", items, MAX_ITEMS)?;
    let shape = design::blocked(items, rate(false_positive)?).map_err(param_error)?;
    dict!(py,
        "bits": shape.bits(),
        "hashes": shape.hashes(),
        "bits_per_item": shape.bits() as f64 / items as f64,
        "false_positive": model::blocked::false_positive(shape.bits() / 256, items),
    )
}

/// The components of a dynamic filter that take the fewest bits on average, for a set of known
/// largest size.
///
/// sizes says how likely each number of keys is: an iterable of sizes that were observed, or a
/// mapping of sizes to weights. Without it, all sizes are as likely.
///
/// >>> umbel.plan.dynamic(max_items=1330, false_positive=0.0098)["components"]
/// 5
/// >>> umbel.plan.dynamic(1330, 0.0098, sizes={100: 9, 1330: 1})["ratio"] < 0.3
/// True
#[pyfunction]
#[pyo3(signature = (max_items, false_positive, sizes=None))]
fn plan_dynamic<'py>(
    py: Python<'py>,
    max_items: Whole,
    false_positive: f64,
    sizes: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let max_items = at_least_one("max_items", max_items, MAX_ITEMS)?;
    let rate = rate(false_positive)?;
    let sizes = match sizes {
        Some(sizes) => Distribution::observed(max_items, observed(sizes)?).map_err(value_error)?,
        None => Distribution::uniform(max_items),
    };
    let plan = py.detach(|| design::dynamic::bounded(rate, &sizes)).map_err(param_error)?;
    let papers =
        py.detach(|| design::dynamic::papers_bounded(rate, &sizes)).map_err(param_error)?;
    let full = Component::new(plan.component, plan.capacity);
    dict!(py,
        "components": plan.components,
        "bits": plan.component.bits(),
        "hashes": plan.component.hashes(),
        "capacity": plan.capacity,
        "false_positive": model::dynamic::false_positive(full, max_items),
        "papers_components": papers.components,
        "papers_bits": papers.component.bits,
        "papers_hashes": papers.component.hashes,
        "expected_bits": plan.expected_bits,
        "standard_bits": plan.standard_bits,
        "ratio": plan.ratio(),
    )
}

/// Sizes with their weights.
fn observed(sizes: &Bound<'_, PyAny>) -> PyResult<Vec<(u64, f64)>> {
    if let Ok(weights) = sizes.cast::<PyMapping>() {
        let pairs = weights.items()?;
        let pairs = pairs.iter().map(|pair| pair.extract::<(Whole, f64)>());
        return pairs.map(|pair| pair.map(|(size, weight)| (size.0, weight))).collect();
    }
    let sizes = sizes.try_iter()?.map(|size| size?.extract::<Whole>());
    sizes.map(|size| size.map(|size| (size.0, 1.0))).collect()
}

/// Replicas of every host's filter at every other host: how large, how often updated, how many
/// bytes, how wrong.
///
/// Every host is home to `items` keys. miss is the share of them that replicas may deny,
/// false_positive the chance that one lookup of an absent key names any wrong host, longest the
/// most seconds that an added key waits for its update (None: until miss is passed).
///
/// >>> plan = umbel.plan.replica(items=100_000, adds_per_second=10, removes_per_second=10,
/// ...                           hosts=32, miss=0.01, false_positive=0.01)
/// >>> plan["bits"] == 2 ** plan["rung"]
/// True
#[pyfunction]
#[pyo3(
    signature = (items, adds_per_second, removes_per_second, hosts, miss, false_positive, *, longest=Some(1.0), lookups_per_second=0.0),
    text_signature = "(items, adds_per_second, removes_per_second, hosts, miss, false_positive, *, longest=1.0, lookups_per_second=0.0)"
)]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
fn plan_replica<'py>(
    py: Python<'py>,
    items: Whole,
    adds_per_second: f64,
    removes_per_second: f64,
    hosts: Whole,
    miss: f64,
    false_positive: f64,
    longest: Option<f64>,
    lookups_per_second: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let longest = longest.map(|longest| between("longest", longest, 1e-9, 1e9)).transpose()?;
    let lookups = between("lookups_per_second", lookups_per_second, 0.0, 1e12)?;
    let workload = Workload {
        items: at_least_one("items", items, MAX_ITEMS)?,
        adds_per_second,
        removes_per_second,
        hosts: at_least_one("hosts", hosts, MAX_HOSTS)?,
        miss: rate(between("miss", miss, f64::MIN_POSITIVE, 0.5)?)?,
        false_positive: rate(false_positive)?,
        longest,
        shortest: Intervals::DEFAULT.shortest.as_secs_f64(),
    };
    let plan = plan(&workload).map_err(value_error)?;
    dict!(py,
        "bits": plan.shape.bits(),
        "hashes": plan.shape.hashes(),
        "rung": plan.rung().0.exponent(),
        "takes": plan.rung().1,
        "replica_false_positive": plan.replica_false_positive,
        "seconds_between_updates": plan.seconds_between_updates,
        "bytes_per_update": plan.bytes_per_update,
        "sent_bytes_per_second_per_host": plan.sent_bytes_per_second_per_host(),
        "received_bytes_per_second_per_host": plan.received_bytes_per_second_per_host(),
        "full_broadcast_sent_bytes_per_second_per_host":
            plan.full_broadcast_sent_bytes_per_second_per_host(),
        "wire_bytes_per_second_per_host": plan.wire_bytes_per_second_per_host(),
        "quiet_bytes_per_second_per_host": plan.quiet_bytes_per_second_per_host(),
        "join_bytes_per_host": plan.join_bytes_per_host(),
        "join_seconds": plan.join_seconds(),
        "processor_share_per_host": plan.processor_share_per_host(),
        "memory_bytes_per_host": plan.memory_bytes_per_host() as u64,
        "copies_bytes_per_host": plan.copies_bytes_per_host() as u64,
        "rows_bytes_per_host": plan.rows_bytes_per_host() as u64,
        "home_bytes_per_host": plan.home_bytes_per_host() as u64,
        "false_hosts_per_lookup": plan.false_hosts_per_lookup(),
        "vain_probes_per_second": lookups * plan.false_hosts_per_lookup(),
        "reserve": reserve(&workload),
    )
}

/// The command that reserves such a set at every host.
fn reserve(workload: &Workload) -> String {
    let rule = Rule::Miss { miss: workload.miss.get(), ghost: GHOST_TARGET };
    let longest = workload.longest.map(Duration::from_secs_f64);
    let policy = Policy { longest, ..Policy::new(rule) };
    format!(
        "umbel reserve SET --false-positive {} --capacity {} --hosts {} --policy {policy} --all-hosts",
        workload.false_positive, workload.items, workload.hosts
    )
}

/// Filters, window and memory for chains of keys: which worker holds the longest beginning.
///
/// Each worker holds `blocks` blocks. over_estimate is the chance, per worker and chain, that a
/// depth is too large by more than the step.
///
/// >>> umbel.plan.chain(workers=64, blocks=156_250, length=8192)["hashes"]
/// 3
#[pyfunction]
#[pyo3(
    signature = (workers, blocks, *, length=Whole(16384), step=Whole(8), over_estimate=1e-8),
    text_signature = "(workers, blocks, *, length=16384, step=8, over_estimate=1e-08)"
)]
fn plan_chain<'py>(
    py: Python<'py>,
    workers: Whole,
    blocks: Whole,
    length: Whole,
    step: Whole,
    over_estimate: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let (workers, blocks) =
        (at_least_one("workers", workers, MAX_HOSTS)?, at_least_one("blocks", blocks, MAX_ITEMS)?);
    let (max_length, step) = (self::length("length", length)?, self::length("step", step)?);
    let design = ChainPromise { step, over_estimate, max_length }.design().map_err(value_error)?;
    let (ladder, rate, window) = (design.ladder(), design.rate.get(), design.window);
    let rung = ladder.rung_for(blocks, workers as u32);
    let rung = rung.ok_or_else(|| value_error("blocks: no filter takes so many blocks"))?;
    let width = row_width(workers as usize) as u64;
    let memory = rung.bits() / 8 * (workers + width);
    let effort =
        model::chain::effort(rate, workers, ladder.hashes(), max_length.into(), (window, step));
    let lines = effort.keys * f64::from(ladder.hashes()) * width.div_ceil(512).max(1) as f64;
    dict!(py,
        "key_false_positive": rate,
        "hashes": ladder.hashes(),
        "window": window,
        "bits": rung.bits(),
        "takes": ladder.takes(rung, workers as u32),
        "bits_per_block": rung.bits() as f64 / blocks as f64,
        "memory_bytes": memory,
        "memory_bits_per_block": memory as f64 * 8.0 / (workers as f64 * blocks as f64),
        "over_estimate": model::chain::over_estimate(rate, max_length.into(), window, step),
        "one_step_more": model::chain::one_step_more(rate, step),
        "keys_read": effort.keys,
        "rounds": effort.rounds,
        "cache_lines_read": lines,
        "lookup_ns": effort.rounds * model::chain::NS_PER_ROUND + lines * model::chain::NS_PER_LINE,
    )
}
