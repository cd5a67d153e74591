//! A home's filter as it is published: on its own rung, or folded to the lower one that its keys
//! need.

use std::borrow::Cow;

use crate::bits::BitVector;
use crate::design::ladder::steps_between;
use crate::filter::{ComponentId, CountingFilter, DynamicFilter};
use crate::model::standard;
use crate::params::Shape;
use crate::scheme::Scheme;

/// A home's filter as it is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(super) filter: &'a DynamicFilter,
    scheme: Scheme,
    /// Rungs by which the filter is folded.
    steps: u32,
}

impl<'a> Source<'a> {
    /// The filter folded to this shape, if that is a lower rung nested with its own; otherwise the
    /// filter as it is.
    pub(crate) fn new(filter: &'a DynamicFilter, shape: Option<Shape>) -> Self {
        let own = filter.scheme();
        let steps = shape.and_then(|shape| steps_between(&shape, own.shape()));
        match (shape, steps, filter.components()) {
            (Some(shape), Some(steps @ 1..), [_]) => {
                let scheme = Scheme::new(shape, *own.hasher());
                Self { filter, scheme, steps: steps.unsigned_abs() }
            }
            _ => Self { filter, scheme: *own, steps: 0 },
        }
    }

    pub(super) const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    pub(super) fn components(&self) -> &'a [(ComponentId, CountingFilter)] {
        self.filter.components()
    }

    /// Whether the filter has more bits than are published.
    pub(super) const fn is_folded(&self) -> bool {
        self.steps > 0
    }

    /// The bits of a component as they are published. Takes a pass over all bits if they are
    /// folded.
    pub(super) fn bits(&self, component: &'a CountingFilter) -> Cow<'a, BitVector> {
        match self.steps {
            0 => Cow::Borrowed(component.bits()),
            steps => Cow::Owned(component.bits().folded(steps)),
        }
    }

    /// False positive rate of what is published, if it is fresh.
    pub(super) fn false_positive(&self) -> f64 {
        match self.steps {
            0 => self.filter.false_positive(),
            _ => standard::false_positive(*self.scheme.shape(), self.filter.items()),
        }
    }
}
