//! Builds the filter of a home from its catalogue.

use std::time::Duration;

use super::shape::{Growth, filter_of};
use super::steps::Goal;
use super::{BATCH, Home};
use crate::catalogue::Catalogue;
use crate::filter::{ComponentId, DynamicFilter};
use crate::key_hash::KeyHash;
use crate::replica::paged::ONLY;
use crate::replica::sample::Sample;

impl<C: Catalogue> Home<C> {
    /// Puts all keys into another, empty filter.
    pub(super) fn rebuild(&mut self, filter: DynamicFilter) {
        self.rebuilds += 1;
        if matches!(self.growth, Growth::Ladder(_)) {
            self.filter = filter;
            return self.insert_all(|_| ());
        }
        let first = ComponentId(self.filter.next_id());
        self.filter = filter.starting_at(first);
        if self.catalogue.len() <= self.filter.capacity() {
            // All keys go into one component: no need to update the catalogue key by key.
            self.insert_all(|_| ());
            self.catalogue.move_all(first);
        } else {
            let filter = &mut self.filter;
            self.catalogue.reassign(&mut |key| filter.insert(key));
        }
    }

    /// Puts all keys of the catalogue into the filter, which has room for them in its first
    /// component.
    fn insert_all(&mut self, mut each: impl FnMut(KeyHash)) {
        let (filter, hasher) = (&mut self.filter, self.hasher);
        let (scheme, mut batch) = (*filter.scheme(), Vec::with_capacity(BATCH));
        self.catalogue.for_each(&mut |key, _| {
            let hash = hasher.hash(key);
            each(hash);
            batch.push(scheme.digest_of(hash));
            if batch.len() == BATCH {
                filter.insert_digests(&batch);
                batch.clear();
            }
        });
        filter.insert_digests(&batch);
    }

    /// Builds the filter of a home that starts. Nothing was published yet in this incarnation.
    pub(super) fn fill(&mut self, now: Duration) {
        if self.catalogue.is_empty() {
            return;
        }
        match self.growth {
            Growth::Ladder(_) => self.fill_ladder(now),
            Growth::Components { .. } => self.fill_components(now),
        }
        self.report_rebuilt(now);
    }

    fn fill_ladder(&mut self, now: Duration) {
        let (mut sample, items) = (Sample::new(), self.catalogue.len());
        self.insert_all(|hash| sample.added(hash));
        self.sample = sample;
        self.publisher.unpublished(now, items);
        self.publisher.restarted();
    }

    /// Inserts each key into the component that the catalogue remembers.
    fn fill_components(&mut self, now: Duration) {
        let Growth::Components { capacity } = self.growth else { return };
        let (filter, sample, hasher) = (&mut self.filter, &mut self.sample, self.hasher);
        let first = self.catalogue.components().keys().next().copied().unwrap_or(ONLY);
        *filter = filter.clone().starting_at(first);
        self.catalogue.for_each(&mut |key, component| {
            let hash = hasher.hash(key);
            filter.insert_into(component, filter.scheme().digest_of(hash));
            sample.added(hash);
        });
        self.publisher.unpublished(now, self.catalogue.len());
        if self.filter.components().iter().any(|(_, component)| component.items() > capacity) {
            let shape = *self.filter.scheme().shape();
            if let Ok(filter) = filter_of(self.hasher, shape, capacity) {
                self.rebuild(filter);
            }
        }
    }

    /// Draws a new sample, unless a build is in progress.
    pub(super) fn draw_sample(&mut self) {
        if self.build.is_some() || self.begin(None, Goal::Sample).is_none() {
            return;
        }
        let (mut sample, hasher) = (Sample::new(), self.hasher);
        self.catalogue.for_each(&mut |key, _| sample.added(hasher.hash(key)));
        self.sample = sample;
    }
}
