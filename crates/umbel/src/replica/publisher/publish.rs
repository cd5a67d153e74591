//! Makes the next image of an update; `prepared` encodes it later.

use std::time::Duration;

use super::super::image::{Image, ImageComponent};
use super::super::policy::Rule;
use super::super::tally::Pending;
use super::prepared::{Form, LONGEST_MESSAGE, PreparedUpdate, Step};
use super::{Extent, Publication, Publisher, Source, WORTHWHILE};
use crate::bits::BitVector;
use crate::design::ladder::steps_between;
use crate::filter::ComponentId;
use crate::model::stale;

/// The longest image that a restarting home includes in its first update: other hosts probably have
/// the bits already, and those that do not can fetch them.
const LONGEST_RESTART: usize = 512;

/// A component and its new bits.
type ComponentBits = (ComponentId, BitVector);

impl Publisher {
    /// Makes the next image, which counts as published from now on. The caller must encode the
    /// update and then call [`Self::published`]. Takes as long as copying the bits.
    pub(crate) fn prepare(
        &mut self,
        now: Duration,
        source: &Source<'_>,
        extent: Extent,
    ) -> PreparedUpdate {
        let nothing_else = (self.kept.components().len(), source.components().len()) == (1, 1);
        let steps = match self.kept.scheme() == source.scheme() {
            true => Some(0),
            false if nothing_else => {
                steps_between(self.kept.scheme().shape(), source.scheme().shape())
            }
            false => None,
        };
        match steps {
            Some(0..) => {}
            Some(down) => self.kept = self.kept.folded(*source.scheme(), down.unsigned_abs()),
            None => self.kept = Image::new(*source.scheme(), Vec::new()),
        }
        let from_nothing = self.kept.components().is_empty();
        let (form, cleared) = match steps {
            Some(rungs @ 1..) => (self.prepare_climb(source, rungs.unsigned_abs()), true),
            _ => {
                let (form, cleared) = self.prepare_changes(source, extent);
                // From nothing, the bits are those of the filter: there is nothing to clear.
                (form, cleared || from_nothing)
            }
        };
        let k = source.scheme().shape().hashes();
        self.kept_false_positive = stale::several_components(k, &self.kept.fills());
        self.tally.published(cleared);
        self.last_update = Some(now);
        self.broken_since = None;
        self.missed_since = None;
        if cleared {
            self.clears_since = None;
        }
        self.dirty_since = self.clears_since;
        // After a restart other hosts may have these bits already.
        let longest_message = match std::mem::take(&mut self.is_restart) && from_nothing {
            true => LONGEST_RESTART,
            false => LONGEST_MESSAGE,
        };
        let plain_bytes =
            source.scheme().shape().bits().div_ceil(8) * source.components().len() as u64;
        PreparedUpdate { form, from_nothing, longest_message, plain_bytes }
    }

    /// To be called when an update has been encoded.
    pub(crate) fn published(&mut self, now: Duration, publication: &Publication) {
        let bytes = publication.changes.len() as u64;
        self.sent.updates += 1;
        self.sent.bytes += bytes;
        self.sent.full_broadcast_bytes += publication.plain_bytes;
        if let Rule::Budget { bytes_per_second } = self.policy.rule {
            let start = self.paid_until.max(now);
            self.paid_until = start + Duration::from_secs_f64(bytes as f64 / bytes_per_second);
        }
    }

    /// Moves the kept copy to the rung that is `rungs` above.
    fn prepare_climb(&mut self, source: &Source<'_>, rungs: u32) -> Form {
        let (id, component) = &source.components()[0];
        let bits = source.bits(component).into_owned();
        let after = Image::new(*source.scheme(), vec![ImageComponent::new(*id, bits)]);
        let before = std::mem::replace(&mut self.kept, after.clone());
        let pending = self.take_pending(source);
        Form::Climb { step: Step { before, after, changed: vec![*id], pending }, rungs }
    }

    /// Turns the kept copy into the next one of the same scheme. Also returns whether the update
    /// contains everything.
    fn prepare_changes(&mut self, source: &Source<'_>, extent: Extent) -> (Form, bool) {
        if extent == Extent::Adds
            && let Some(bytes) = self.publish_digests(source)
        {
            return (Form::Bytes(bytes.into()), false);
        }
        let adds = match extent {
            Extent::Adds => Some(self.with_adds(source))
                .filter(|changed| self.keeps_promise(&self.fills_with(changed), source)),
            Extent::Everything => None,
        };
        let cleared = adds.is_none();
        let bits = |(id, component): &(ComponentId, _)| (*id, source.bits(component).into_owned());
        let changed = adds.unwrap_or_else(|| source.components().iter().map(bits).collect());
        let live = |id| source.components().iter().any(|(other, _)| *other == id);
        let gone = self.kept.components().iter().map(|component| component.id);
        let dropped: Vec<ComponentId> = gone.filter(|id| cleared && !live(*id)).collect();
        let (before, ids) = (self.kept.clone(), changed.iter().map(|(id, _)| *id).collect());
        dropped.iter().for_each(|id| self.kept.drop(*id));
        changed.into_iter().for_each(|(id, bits)| self.kept.put(id, bits));
        let (after, pending) = (self.kept.clone(), self.take_pending(source));
        (Form::Changes { step: Step { before, after, changed: ids, pending }, dropped }, cleared)
    }

    /// The copy's components with the bits of added keys on top.
    fn with_adds(&self, source: &Source<'_>) -> Vec<ComponentBits> {
        let shape = source.scheme().shape();
        let is_few = source.components().len() > 1 || self.has_few_pending(source);
        let pending = is_few.then(|| self.held_digests(source)).flatten();
        let with_adds = |(id, component): &(ComponentId, _)| {
            let Some(kept) = self.kept.component(*id) else {
                return (*id, source.bits(component).into_owned());
            };
            let mut bits = BitVector::clone(&kept.bits);
            match &pending {
                // Older members add no bits: the copy has all of theirs.
                None => bits.union_with(&source.bits(component)),
                Some(pending) => {
                    let added = pending.iter().filter(|(_, owner)| owner == id);
                    added.flat_map(|(digest, _)| digest.positions(shape)).for_each(|position| {
                        bits.set(position);
                    });
                }
            }
            (*id, bits)
        };
        source.components().iter().map(with_adds).collect()
    }

    /// Takes the keys added and removed since the last update, with the components that hold them
    /// now.
    fn take_pending(&mut self, source: &Source<'_>) -> Option<Pending> {
        let mut pending = self.tally.take_pending().filter(|_| self.by_digests)?;
        pending.rename(|id| source.filter.living(id));
        Some(pending)
    }

    /// The fills of the copy's components after these changes.
    fn fills_with(&self, changed: &[ComponentBits]) -> Vec<f64> {
        let is_kept = |id| !changed.iter().any(|(other, _)| *other == id);
        let kept = self.kept.components().iter().filter(|component| is_kept(component.id));
        let kept = kept.map(|component| component.bits.fill());
        kept.chain(changed.iter().map(|(_, bits)| bits.fill())).collect()
    }

    /// Whether a copy with these fills, without clears, keeps the promised rate; also true if
    /// clears would not help.
    pub(super) fn keeps_promise(&self, fills: &[f64], source: &Source<'_>) -> bool {
        let rate = stale::several_components(source.scheme().shape().hashes(), fills);
        rate <= self.promised || source.false_positive() > WORTHWHILE * rate
    }
}
