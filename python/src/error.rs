//! Errors of `umbel` as exceptions: `ValueError` with the same text, `MemoryError` where memory is
//! missing.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use umbel::bank::BankError;
use umbel::codec::DecodeError;
use umbel::params::ParamError;

/// A `ValueError` with the text of an error.
pub(crate) fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The exception for a filter that cannot be built.
pub(crate) fn param_error(error: ParamError) -> PyErr {
    match error {
        ParamError::Memory(_) => PyMemoryError::new_err(error.to_string()),
        other => value_error(other),
    }
}

/// The exception for bytes that cannot be read as a filter.
pub(crate) fn decode_error(error: DecodeError) -> PyErr {
    match error {
        DecodeError::Param(error @ ParamError::Memory(_)) => param_error(error),
        DecodeError::Locked(_) => value_error(format!("{error}: pass it as secret=")),
        DecodeError::TooLarge { .. } => value_error(format!("{error}: max_memory= sets another")),
        other => value_error(other),
    }
}

/// The exception for a filter that a bank does not take.
pub(crate) fn bank_error(error: BankError) -> PyErr {
    match error {
        BankError::NoMemory { .. } => PyMemoryError::new_err(error.to_string()),
        other => value_error(other),
    }
}
