//! A filter that is built from the catalogue in steps, while the home goes on with the present one.
//!
//! ```text
//! begin ──► part, part, … (the pass over the catalogue) ──► the removals that waited ──► swap
//!              changes meanwhile go to both filters
//! ```
//!
//! A key that is added goes into both filters at once; the pass does not visit it. A removal
//! depends on whether the pass has visited the key ([`InPass`]). If it has, the key is removed from
//! the new filter. If it has not, the pass will skip the key. If the pass may still visit the key
//! although it is gone, the key is removed from the new filter when the pass is over.
//!
//! Always true: once the pass is over and no removal waits, the new filter holds exactly the keys
//! of the catalogue, each once. Only then does it replace the present one. The time of a step
//! depends on its number of keys, not on the size of the catalogue.

use std::time::Duration;

use super::shape::Growth;
use super::{BATCH, Home};
use crate::catalogue::{Catalogue, InPass};
use crate::design::ladder::{Rung, RungChoice, steps_between};
use crate::filter::DynamicFilter;
use crate::key_hash::KeyHash;
use crate::replica::paged::ONLY;
use crate::replica::sample::Sample;

/// A filter and a sample that are being made from the catalogue.
#[derive(Debug)]
pub(super) struct Build {
    /// `None` if only a new sample is drawn.
    filter: Option<DynamicFilter>,
    sample: Sample,
    goal: Goal,
    /// Keys that were removed but that the pass may still visit.
    removed: Vec<KeyHash>,
    is_pass_over: bool,
}

/// What a filter is built for.
#[derive(Debug)]
pub(super) enum Goal {
    /// Another rung of the same ladder.
    Rung(Rung),
    /// Another plan, which chose this rung.
    Plan(RungChoice),
    /// No filter, only a new sample: the old one had become too small.
    Sample,
}

/// How far a build has come.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) is_finished: bool,
    /// The filter that was replaced. It may be large, so the caller should drop it without holding
    /// a lock.
    pub(crate) replaced: Option<DynamicFilter>,
}

impl Build {
    /// A key was added.
    pub(super) fn added(&mut self, hash: KeyHash) {
        if let Some(filter) = &mut self.filter {
            filter.insert_counted(filter.scheme().digest_of(hash));
        }
        self.sample.added(hash);
    }

    /// A key was removed; `in_pass` says whether the pass has visited it.
    pub(super) fn removed(&mut self, hash: KeyHash, in_pass: InPass) {
        match in_pass {
            InPass::Ahead => {}
            InPass::Behind => self.take_out(hash),
            InPass::Either if self.is_pass_over && self.removed.is_empty() => self.take_out(hash),
            InPass::Either => self.removed.push(hash),
        }
    }

    fn take_out(&mut self, hash: KeyHash) {
        if let Some(filter) = &mut self.filter {
            let flips = filter.remove_counted(ONLY, filter.scheme().digest_of(hash));
            debug_assert!(flips.is_some(), "the filter holds what the pass has shown");
        }
        self.sample.removed(hash);
    }

    /// Continues the pass, or the removals that waited for its end. Returns whether there is more
    /// to do.
    fn advance(&mut self, shown: &[KeyHash], keys: usize) -> bool {
        shown.iter().for_each(|hash| self.sample.added(*hash));
        if let Some(filter) = &mut self.filter {
            let scheme = *filter.scheme();
            for part in shown.chunks(BATCH) {
                let digests: Vec<_> = part.iter().map(|hash| scheme.digest_of(*hash)).collect();
                filter.insert_digests(&digests);
            }
        }
        if self.is_pass_over {
            let waiting = self.removed.len().saturating_sub(keys);
            self.removed.split_off(waiting).into_iter().for_each(|hash| self.take_out(hash));
        }
        !(self.is_pass_over && self.removed.is_empty())
    }

    /// The rung of the filter that is being built, if a filter is built.
    pub(super) fn rung(&self) -> Option<Rung> {
        match &self.goal {
            Goal::Rung(rung) => Some(*rung),
            Goal::Plan(choice) => Some(choice.filter_rung()),
            Goal::Sample => None,
        }
    }

    /// Bytes that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.memory_bytes() as u64)
    }
}

impl<C: Catalogue> Home<C> {
    /// Begins to build in steps, if this home does so and has many keys. Otherwise returns what
    /// must be built at once. Cancels a build that was in progress.
    pub(super) fn begin(
        &mut self,
        filter: Option<DynamicFilter>,
        goal: Goal,
    ) -> Option<(Option<DynamicFilter>, Goal)> {
        self.cancel_build();
        if self.catalogue.len() <= self.max_keys_at_once || !self.catalogue.begin_pass() {
            return Some((filter, goal));
        }
        let (sample, removed) = (Sample::new(), Vec::new());
        self.build = Some(Build { filter, sample, goal, removed, is_pass_over: false });
        None
    }

    /// Whether a filter is being built: the driver of the home must call `build_part`.
    #[must_use]
    pub const fn is_building(&self) -> bool {
        self.build.is_some()
    }

    /// Cancels the build in progress.
    pub(crate) fn cancel_build(&mut self) {
        if self.build.take().is_some() {
            self.catalogue.end_pass();
        }
    }

    /// Continues the build by about this many keys.
    pub(crate) fn build_part(&mut self, now: Duration, keys: usize) -> Progress {
        let Some(build) = &mut self.build else {
            return Progress { is_finished: true, replaced: None };
        };
        let mut shown = Vec::new();
        if !build.is_pass_over {
            let hasher = self.hasher;
            let mut show = |key: &[u8]| shown.push(hasher.hash(key));
            build.is_pass_over = !self.catalogue.pass_part(keys, &mut show);
        }
        if build.advance(&shown, keys) {
            return Progress { is_finished: false, replaced: None };
        }
        self.catalogue.end_pass();
        let replaced = self.build.take().and_then(|build| self.swap(now, build));
        // Changes made during the build may require yet another rung.
        self.climb_or_descend(now);
        Progress { is_finished: self.build.is_none(), replaced }
    }

    /// Replaces the present filter and sample by what was built. Returns the old filter.
    fn swap(&mut self, now: Duration, build: Build) -> Option<DynamicFilter> {
        self.sample = build.sample;
        let old = std::mem::replace(&mut self.filter, build.filter?);
        self.rebuilds += 1;
        match (build.goal, &mut self.growth) {
            (Goal::Rung(rung), Growth::Ladder(choice)) => choice.moved(now, rung),
            (Goal::Plan(choice), growth) => *growth = Growth::Ladder(choice),
            _ => {}
        }
        match steps_between(old.scheme().shape(), self.filter.scheme().shape()) {
            Some(_) => self.report_moved(now),
            None => self.report_rebuilt(now),
        }
        Some(old)
    }
}
