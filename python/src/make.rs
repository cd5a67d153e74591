//! How filters are made: the sizes, hashes and seeds that constructors take, as `umbel filter build`
//! takes them.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use umbel::filter::estimate_items;
use umbel::params::ParamError;
use umbel::{DynamicFilter, HashId, KeyHasher, Rate, Scheme, Seed, Shape, design};

use crate::error::{param_error, value_error};

/// What a constructor was given: a target, or an exact size.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) items: Option<Whole>,
    pub(crate) false_positive: Option<f64>,
    pub(crate) bits: Option<Whole>,
    pub(crate) hashes: Option<Whole>,
}

/// The designs for a target.
pub(crate) type Design = fn(u64, Rate) -> Result<Shape, ParamError>;

/// Shape of a component, keys per component, planned components.
pub(crate) type Components = (Shape, u64, u32);

enum Given {
    Target(u64, Rate),
    Exactly(Shape),
}

impl Size {
    fn given(self) -> PyResult<Given> {
        match (self.items, self.false_positive, self.bits, self.hashes) {
            (Some(items), Some(rate), None, None) => {
                Ok(Given::Target(items.0, Rate::new(rate).map_err(param_error)?))
            }
            (None, None, Some(bits), Some(hashes)) => {
                Ok(Given::Exactly(Shape::new(bits.0, hashes.small()).map_err(param_error)?))
            }
            _ => Err(value_error("give items and false_positive, or bits and hashes")),
        }
    }

    /// The shape of a filter that does not grow.
    pub(crate) fn shape(self, design: Design) -> PyResult<Shape> {
        match self.given()? {
            Given::Target(items, rate) => design(items, rate).map_err(param_error),
            Given::Exactly(shape) => Ok(shape),
        }
    }

    /// The components of a filter that grows.
    pub(crate) fn components(self, capacity: Option<Whole>) -> PyResult<Components> {
        let capacity = capacity.map(|capacity| capacity.0);
        let unplanned = DynamicFilter::MAX_COMPONENTS;
        if capacity == Some(0) {
            return Err(param_error(ParamError::Items(0)));
        }
        match self.given()? {
            Given::Exactly(shape) => {
                let half_full = estimate_items(&shape, shape.bits() / 2).floor().max(1.0) as u64;
                Ok((shape, capacity.unwrap_or(half_full), unplanned))
            }
            Given::Target(items, rate) => {
                let (capacity, components) = match capacity {
                    Some(capacity) => (capacity, items.div_ceil(capacity).max(1)),
                    None => (items, unplanned.into()),
                };
                let too_many = |_| param_error(ParamError::Components(components));
                let components = u32::try_from(components).map_err(too_many)?;
                let shape = design::dynamic_component(capacity, rate, components);
                Ok((shape.map_err(param_error)?, capacity, components))
            }
        }
    }
}

/// What a constructor was given about hashing.
#[derive(Clone, Copy)]
pub(crate) struct Hashing<'a> {
    pub(crate) hash: Option<&'a str>,
    pub(crate) seed: Option<Whole>,
    pub(crate) secret: Option<&'a [u8]>,
}

impl Hashing<'_> {
    /// This shape with the hasher that was asked for.
    pub(crate) fn scheme(self, shape: Shape) -> PyResult<Scheme> {
        let hash = self.hash.map(str::parse::<HashId>).transpose().map_err(value_error)?;
        let hasher = match (self.seed, self.secret) {
            (Some(_), Some(_)) => return Err(value_error("give a seed or a secret, not both")),
            // Only a keyed hash makes a secret worth keeping.
            (None, Some(secret)) => {
                KeyHasher::secret(hash.unwrap_or(HashId::SipHash13), secret_seed(secret)?)
            }
            (seed, None) => {
                let seed = seed.map(|seed| Seed::from_number(seed.0)).unwrap_or_default();
                KeyHasher::new(hash.unwrap_or_default(), seed)
            }
        };
        Ok(Scheme::new(shape, hasher))
    }
}

/// The seed that a secret stands for.
pub(crate) fn secret_seed(secret: &[u8]) -> PyResult<Seed> {
    if secret.is_empty() {
        return Err(value_error("the secret is empty"));
    }
    Ok(Seed::from_secret(secret))
}

/// A whole number. One that is negative or beyond 64 bits is a `ValueError`, as other wrong values are.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) u64);

impl Whole {
    /// For numbers whose range ends far below: a larger one is outside that range as well.
    pub(crate) fn small(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(number: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        number.extract().map(Self).map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(number.py()) {
                value_error(format!(
                    "a whole number from 0 to 2^64 - 1 is needed, not {}",
                    &*number
                ))
            } else {
                error
            }
        })
    }
}
