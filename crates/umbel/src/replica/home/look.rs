//! Queries about a home.

use super::shape::{Growth, memory_of};
use super::steps::Build;
use super::{Home, SetPlan};
use crate::catalogue::Catalogue;
use crate::design::ladder::RungChoice;
use crate::filter::DynamicFilter;
use crate::key_hash::{Digest, KeyHash};
use crate::params::Shape;
use crate::replica::image::Image;
use crate::replica::own_memory::Charge;
use crate::replica::policy::Policy;
use crate::replica::publisher::{Changed, Freshness, Sent, Source};

impl<C: Catalogue> Home<C> {
    /// Whether the set holds more keys than its rung allows, because a higher rung would exceed its
    /// memory. Then it claims absent keys more often than promised.
    #[must_use]
    pub const fn is_confined(&self) -> bool {
        self.is_confined
    }

    /// Whether the filter holds more keys than planned while a longer one is being built. Until
    /// that is done, it claims absent keys more often than promised.
    #[must_use]
    pub fn is_outgrown(&self) -> bool {
        let takes = self.rung().map_or(u64::MAX, RungChoice::filter_takes);
        self.is_building() && self.catalogue.len() > takes
    }

    /// Bytes that filter and published copy take, and a filter that is being built.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let build = self.build.as_ref().map_or(0, Build::memory_bytes);
        self.filter.memory_bytes() as u64 + self.kept().memory_bytes() + build
    }

    /// As [`Self::memory_bytes`], but at least what filter and copy will take once the filter that
    /// is being built is published.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        let rung = match (self.build.as_ref().and_then(Build::rung), &self.growth) {
            (Some(rung), Growth::Ladder(choice)) => Some(choice.filter_rung_at(rung)),
            (Some(rung), Growth::Components { .. }) => Some(rung),
            (None, Growth::Ladder(choice)) => Some(choice.filter_rung()),
            (None, Growth::Components { .. }) => None,
        };
        self.memory_bytes().max(rung.map_or(0, memory_of))
    }

    /// Bytes that are charged for it.
    pub(crate) fn charged_bytes(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::bytes)
    }

    /// The set's rung on its ladder, if it has one.
    #[must_use]
    pub const fn rung(&self) -> Option<&RungChoice> {
        match &self.growth {
            Growth::Ladder(choice) => Some(choice),
            Growth::Components { .. } => None,
        }
    }

    /// The plan in force.
    #[must_use]
    pub const fn plan(&self) -> &SetPlan {
        &self.plan
    }

    /// How stale the published copy is. Takes a pass over all bits.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.publisher.freshness(&Source::new(&self.filter, self.published_shape()))
    }

    /// Members that the published copy denies, and removed keys that it still claims, both per
    /// member. Cheap: the counts are always up to date.
    #[must_use]
    pub fn miss_and_ghost(&self) -> (f64, f64) {
        self.publisher.miss_and_ghost(&self.filter)
    }

    /// Whether the published copy claims a key: what other hosts would answer if they had received
    /// every update.
    #[must_use]
    pub fn published_claims(&self, hash: KeyHash) -> bool {
        self.kept().claims(self.kept().scheme().digest_of(hash))
    }

    /// Number of members that the published copy denies. Exact; takes constant time.
    #[must_use]
    pub const fn misses(&self) -> u64 {
        self.publisher.misses()
    }

    /// The published copy's false positive rate, computed from its fills. Takes constant time.
    #[must_use]
    pub const fn published_false_positive(&self) -> f64 {
        self.publisher.kept_false_positive()
    }

    /// Updates sent so far.
    #[must_use]
    pub const fn sent(&self) -> Sent {
        self.publisher.sent()
    }

    /// Keys added and removed since the home started.
    #[must_use]
    pub const fn changed(&self) -> Changed {
        self.publisher.changed()
    }

    /// Share of bits that are one in each component of the filter.
    #[must_use]
    pub fn fills(&self) -> Vec<f64> {
        self.filter.components().iter().map(|(_, component)| component.bits().fill()).collect()
    }

    /// Shape of the published copy.
    #[must_use]
    pub const fn kept_shape(&self) -> Shape {
        *self.kept().scheme().shape()
    }

    /// How often the filter was rebuilt.
    #[must_use]
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// The policy in force.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.publisher.policy()
    }

    /// The current filter.
    #[must_use]
    pub const fn filter(&self) -> &DynamicFilter {
        &self.filter
    }

    /// The exact keys.
    #[must_use]
    pub const fn catalogue(&self) -> &C {
        &self.catalogue
    }

    /// The published copy: the image that receivers have.
    pub(crate) const fn kept(&self) -> &Image {
        self.publisher.kept()
    }

    /// Digests of up to `count` members, chosen by `pick`. Receivers count those that they deny.
    /// The digests have the length that the published copy's scheme uses.
    pub(crate) fn sample(&self, count: usize, pick: impl FnMut(u64) -> u64) -> Vec<Digest> {
        let members = self.sample.some(count, pick);
        members.into_iter().map(|hash| self.kept().scheme().digest_of(hash)).collect()
    }
}
