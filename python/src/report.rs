//! Results as dictionaries, and the ranges of numbers that are asked for.

use pyo3::PyResult;

use crate::error::value_error;
use crate::make::Whole;

/// A dictionary of names and values, as `umbel plan --json` and `umbel model --json` print them.
macro_rules! dict {
    ($py:expr, $($name:literal: $value:expr,)*) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item($name, $value)?;)*
        Ok(dict)
    }};
}
pub(crate) use dict;

/// The most keys, hosts and lengths that `umbel plan` and `umbel model` accept.
pub(crate) const MAX_ITEMS: (u64, &str) = (1 << 40, "2^40");
pub(crate) const MAX_HOSTS: (u64, &str) = (1_000_000, "1000000");
pub(crate) const MAX_LENGTH: (u64, &str) = (1 << 24, "2^24");

/// A number from 1 to a maximum.
pub(crate) fn at_least_one(name: &str, given: Whole, (max, shown): (u64, &str)) -> PyResult<u64> {
    if (1..=max).contains(&given.0) {
        return Ok(given.0);
    }
    Err(value_error(format!("{name}: a whole number from 1 to {shown} is needed, not {}", given.0)))
}

/// A length of a chain, a window or a step.
pub(crate) fn length(name: &str, given: Whole) -> PyResult<u32> {
    at_least_one(name, given, MAX_LENGTH).map(|length| length as u32)
}

/// A number between two others, both included.
pub(crate) fn between(name: &str, given: f64, min: f64, max: f64) -> PyResult<f64> {
    if (min..=max).contains(&given) {
        return Ok(given);
    }
    Err(value_error(format!("{name}: a number from {min} to {max} is needed, not {given}")))
}
