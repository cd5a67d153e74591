//! Keys as Python has them: bytes as they are, str as its UTF-8 bytes.
//!
//! Always true: the bytes of a key live in a Python object that cannot change, which is kept alive
//! while they are used. So they may be read after Python's global lock was released.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// The bytes of one key.
#[inline]
pub(crate) fn bytes_of<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    match key.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => Err(wrong_type(key)),
    }
}

#[cold]
fn wrong_type(key: &Bound<'_, PyAny>) -> PyErr {
    let kind = key.get_type().name();
    let kind = kind.map_or_else(|_| "that".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("a key is bytes or str, not {kind}"))
}

/// Many keys, collected before anything is changed: a wrong one among them changes nothing.
pub(crate) struct Keys<'py>(Vec<Bound<'py, PyAny>>);

impl<'py> Keys<'py> {
    /// Collects the keys of any iterable.
    pub(crate) fn collect(keys: &Bound<'py, PyAny>) -> PyResult<Self> {
        if keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("many keys are needed, such as a list, not one key"));
        }
        if let Ok(list) = keys.cast::<PyList>() {
            return Ok(Self(list.iter().collect()));
        }
        if let Ok(tuple) = keys.cast::<PyTuple>() {
            return Ok(Self(tuple.iter().collect()));
        }
        Ok(Self(keys.try_iter()?.collect::<PyResult<_>>()?))
    }

    /// The bytes of all keys, in order.
    pub(crate) fn bytes(&self) -> PyResult<Vec<&[u8]>> {
        self.0.iter().map(bytes_of).collect()
    }
}
