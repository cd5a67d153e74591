//! The OR of some homes' filters: an ABF, or one distance of an attenuated filter.
//!
//! While homes change to another shape, there are filters of both shapes: each shape has its own
//! OR, and a key is claimed if any OR claims it.

use crate::bits::BitVector;
use crate::filter::claims;
use crate::key_hash::{KeyHash, Walk};
use crate::model::routing::ABF_FULL;
use crate::model::standard::false_positive_of_fill;
use crate::params::Bits;
use crate::scheme::Scheme;

use super::table::Filters;

/// ORs of filters, one per shape.
#[derive(Debug, Clone, Default)]
pub(super) struct Union {
    parts: Vec<(Scheme, BitVector)>,
}

impl Union {
    /// Whether any OR claims a key.
    pub(super) fn claims(&self, hash: KeyHash) -> bool {
        self.parts.iter().any(|(scheme, bits)| {
            let shape = scheme.shape();
            claims(bits, Walk::new(scheme.digest_of(hash), shape), shape.hashes())
        })
    }

    /// Probability that all ORs deny an absent key, computed from their fills.
    pub(super) fn denies(&self) -> f64 {
        let rate = |(scheme, bits): &(Scheme, BitVector)| {
            false_positive_of_fill(*scheme.shape(), bits.fill())
        };
        self.parts.iter().map(|part| 1.0 - rate(part)).product()
    }

    /// Whether the OR of this shape has reached its highest fill.
    pub(super) fn is_full(&self, scheme: &Scheme) -> bool {
        self.part(scheme).is_some_and(|bits| bits.fill() >= ABF_FULL)
    }

    /// Probability that all ORs would deny an absent key with these filters added.
    pub(super) fn denies_with(&self, filters: &Filters<'_>) -> f64 {
        let Some(bits) = self.part(filters.scheme) else {
            return self.denies() * Self::of(filters).map_or(1.0, |union| union.denies());
        };
        let ones = match &*filters.components {
            [only] => bits.ones() + only.count_beyond(bits),
            several => {
                let mut joined = bits.clone();
                several.iter().for_each(|component| joined.union_with(component));
                joined.ones()
            }
        };
        let denies = |ones: u64| {
            let fill = ones as f64 / bits.len() as f64;
            1.0 - false_positive_of_fill(*filters.scheme.shape(), fill)
        };
        let before = denies(bits.ones());
        if before > 0.0 { self.denies() / before * denies(ones) } else { 0.0 }
    }

    /// Adds filters to the OR of their shape; `false` if there is no memory for it.
    pub(super) fn add(&mut self, filters: &Filters<'_>) -> bool {
        let place = self.parts.iter().position(|(scheme, _)| scheme == filters.scheme);
        match (place, Self::of(filters)) {
            (Some(place), _) => {
                let bits = &mut self.parts[place].1;
                filters.components.iter().for_each(|component| bits.union_with(component));
                true
            }
            (None, Some(union)) => {
                self.parts.extend(union.parts);
                true
            }
            (None, None) => filters.components.is_empty(),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.parts.iter().map(|(_, bits)| bits.words().len() as u64 * 8).sum()
    }

    /// The bits of one shape's OR.
    pub(super) fn part(&self, scheme: &Scheme) -> Option<&BitVector> {
        self.parts.iter().find(|(other, _)| other == scheme).map(|(_, bits)| bits)
    }

    /// The OR of these filters alone; `None` if there are none, or no memory.
    fn of(filters: &Filters<'_>) -> Option<Self> {
        let (first, rest) = filters.components.split_first()?;
        let mut bits = BitVector::zeros(Bits::new(filters.scheme.shape().bits()).ok()?).ok()?;
        bits.union_with(first);
        rest.iter().for_each(|component| bits.union_with(component));
        Some(Self { parts: vec![(*filters.scheme, bits)] })
    }
}
