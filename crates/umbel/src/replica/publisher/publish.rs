//! What an update carries: the target bits, and the bytes that lead to them.

use std::sync::Arc;
use std::time::Duration;

use super::super::image::{Image, ImageComponent};
use super::super::paged::{Target, decode_changes, decode_step, encode_changes, encode_climb};
use super::super::policy::Rule;
use super::{Extent, Publication, Publisher, Source, WORTHWHILE};
use crate::bits::BitVector;
use crate::codec::Reader;
use crate::design::ladder::steps_between;
use crate::filter::ComponentId;
use crate::key_hash::{Digest, KeyHash};
use crate::model::stale;
use crate::params::Shape;

/// The longest update that is sent to everybody at once; longer ones are fetched in parts.
const LONGEST_MESSAGE: usize = 192 << 10;

/// The longest image that is sent along by a home that restarts: others probably have its bits,
/// and who has not fetches them.
const LONGEST_RESTART: usize = 512;

impl Publisher {
    /// Makes the next image and what leads to it.
    pub(crate) fn publish(
        &mut self,
        now: Duration,
        source: &Source<'_>,
        extent: Extent,
    ) -> Publication {
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
        let is_climb = steps.is_some_and(|steps| steps > 0);
        let mut from_nothing = self.kept.components().is_empty();
        let (bytes, cleared) = match steps {
            Some(steps @ 1..) => {
                let (bytes, is_whole) = self.publish_climb(source, steps.unsigned_abs());
                from_nothing = is_whole;
                (bytes, true)
            }
            _ => {
                let (bytes, cleared) = self.publish_changes(source, extent);
                // From nothing, the bits are those of the filter: there is nothing to clear.
                (bytes, cleared || from_nothing)
            }
        };
        debug_assert!(!is_climb || cleared, "a climb carries everything");
        self.tally.published(cleared);
        self.last_update = Some(now);
        self.broken_since = None;
        self.missed_since = None;
        if cleared {
            self.clears_since = None;
        }
        self.dirty_since = self.clears_since;
        self.account(now, source, bytes.len() as u64);
        // After a restart others may have these bits already.
        let longest = match std::mem::take(&mut self.is_restart) && from_nothing {
            true => LONGEST_RESTART,
            false => LONGEST_MESSAGE,
        };
        let is_short = bytes.len() <= longest;
        Publication { from_nothing, changes: Arc::new(bytes), is_short }
    }

    /// Turns the kept copy into one that many rungs above; returns the bytes that do so, and
    /// whether they lead there from nothing, because that is shorter.
    fn publish_climb(&mut self, source: &Source<'_>, steps: u32) -> (Vec<u8>, bool) {
        let (id, component) = &source.components()[0];
        let (id, bits) = (*id, source.bits(component).into_owned());
        let folded = bits.folded(steps);
        let added = self.explaining(self.kept.scheme().shape(), id, &folded, &self.pending(source));
        let target = Target { id, bits, added };
        let (mut climb, mut whole) = (Vec::new(), Vec::new());
        encode_climb(&mut climb, &self.kept, &target, steps);
        let nothing = Image::new(*source.scheme(), Vec::new());
        if steps > 1 && climb.len() <= LONGEST_MESSAGE {
            encode_changes(&mut whole, &nothing, std::slice::from_ref(&target), &[]);
        }
        let is_whole = !whole.is_empty() && whole.len() < climb.len();
        if cfg!(debug_assertions) {
            let (base, shape) = (&self.kept.components()[0].bits, self.kept.scheme().shape());
            let decoded = decode_step(&mut Reader::new(&climb), shape, base, steps as i32);
            debug_assert!(decoded.is_ok_and(|bits| bits == target.bits), "own updates decode");
        }
        self.kept = Image::new(*source.scheme(), vec![ImageComponent::new(id, target.bits)]);
        let k = source.scheme().shape().hashes();
        self.kept_false_positive = stale::several_components(k, &self.kept.fills());
        (if is_whole { whole } else { climb }, is_whole)
    }

    /// Turns the kept copy into the next one; returns the bytes that do so, and whether
    /// everything was carried.
    fn publish_changes(&mut self, source: &Source<'_>, extent: Extent) -> (Vec<u8>, bool) {
        if extent == Extent::Adds
            && let Some(bytes) = self.publish_digests(source)
        {
            return (bytes, false);
        }
        let adds = match extent {
            Extent::Adds => Some(self.targets_of_adds(source))
                .filter(|targets| self.keeps_promise(&self.fills_with(targets), source)),
            Extent::Everything => None,
        };
        let cleared = adds.is_none();
        let (targets, dropped) = match adds {
            Some(targets) => (targets, Vec::new()),
            None => self.targets_of_everything(source),
        };
        let mut bytes = Vec::new();
        encode_changes(&mut bytes, &self.kept, &targets, &dropped);
        let decoded = cfg!(debug_assertions).then(|| decoded(&bytes, &self.kept));
        dropped.iter().for_each(|id| self.kept.drop(*id));
        targets.into_iter().for_each(|target| self.kept.put(target.id, target.bits));
        debug_assert!(
            decoded.is_none_or(|decoded| decoded == self.kept),
            "receivers make of an update what the home believes that they do"
        );
        let k = source.scheme().shape().hashes();
        self.kept_false_positive = stale::several_components(k, &self.kept.fills());
        (bytes, cleared)
    }

    /// Every component as it is, and the copy's components that are no more.
    fn targets_of_everything(&self, source: &Source<'_>) -> (Vec<Target>, Vec<ComponentId>) {
        let pending = self.pending(source);
        let targets = source.components().iter().filter_map(|(id, component)| {
            let bits = source.bits(component);
            let same = self.kept.component(*id).is_some_and(|kept| *kept.bits == *bits);
            (!same).then(|| {
                let bits = bits.into_owned();
                let added = self.explaining(source.scheme().shape(), *id, &bits, &pending);
                Target { id: *id, bits, added }
            })
        });
        let live = |id| source.components().iter().any(|(other, _)| *other == id);
        let gone = self.kept.components().iter().filter(|component| !live(component.id));
        (targets.collect(), gone.map(|component| component.id).collect())
    }

    /// The copy's components with the bits of added keys on top.
    fn targets_of_adds(&self, source: &Source<'_>) -> Vec<Target> {
        let pending = self.pending(source);
        let targets = source.components().iter().filter_map(|(id, component)| {
            let mut added: Vec<Digest> = match &pending {
                Some(pending) => {
                    pending.iter().filter(|(_, owner)| owner == id).map(|(d, _)| *d).collect()
                }
                None => Vec::new(),
            };
            let kept = self.kept.component(*id);
            let mut bits = match kept {
                Some(kept) => BitVector::clone(&kept.bits),
                None => source.bits(component).into_owned(),
            };
            if pending.is_none() {
                bits.union_with(&source.bits(component));
            }
            for position in added.iter().flat_map(|d| d.positions(source.scheme().shape())) {
                bits.set(position);
            }
            if !self.by_digests {
                added.clear();
            }
            let same = kept.is_some_and(|kept| *kept.bits == bits);
            (!same).then_some(Target { id: *id, bits, added })
        });
        targets.collect()
    }

    /// Pending digests with the components that hold them now.
    pub(super) fn pending(&self, source: &Source<'_>) -> Option<Vec<(Digest, ComponentId)>> {
        let pending = self.tally.pending()?;
        let now = |(hash, component): (KeyHash, ComponentId)| {
            (source.scheme().cut(hash), source.filter.living(component))
        };
        Some(pending.into_iter().map(now).collect())
    }

    /// The pending digests of a component, if they explain every bit that it has beyond the
    /// kept copy.
    fn explaining(
        &self,
        shape: &Shape,
        id: ComponentId,
        bits: &BitVector,
        pending: &Option<Vec<(Digest, ComponentId)>>,
    ) -> Vec<Digest> {
        let (Some(pending), Some(kept), true) = (pending, self.kept.component(id), self.by_digests)
        else {
            return Vec::new();
        };
        let digests: Vec<Digest> =
            pending.iter().filter(|(_, owner)| *owner == id).map(|(digest, _)| *digest).collect();
        let mut reached = BitVector::clone(&kept.bits);
        let fits = digests.iter().flat_map(|digest| digest.positions(shape)).all(|position| {
            reached.set(position);
            bits.get(position) == 1
        });
        if fits && bits.is_subset_of(&reached) { digests } else { Vec::new() }
    }

    /// The fills of the copy's components with these targets.
    fn fills_with(&self, targets: &[Target]) -> Vec<f64> {
        let is_kept = |id| !targets.iter().any(|target| target.id == id);
        let kept = self.kept.components().iter().filter(|component| is_kept(component.id));
        let kept = kept.map(|component| component.bits.fill());
        kept.chain(targets.iter().map(|target| target.bits.fill())).collect()
    }

    /// Whether a copy of these fills, without clears, would keep the promised rate, or clears would
    /// not help.
    pub(super) fn keeps_promise(&self, fills: &[f64], source: &Source<'_>) -> bool {
        let rate = stale::several_components(source.scheme().shape().hashes(), fills);
        rate <= self.promised || source.false_positive() > WORTHWHILE * rate
    }

    fn account(&mut self, now: Duration, source: &Source<'_>, bytes: u64) {
        let plain = source.scheme().shape().bits().div_ceil(8) * source.components().len() as u64;
        self.sent.updates += 1;
        self.sent.bytes += bytes;
        self.sent.full_broadcast_bytes += plain;
        if let Rule::Budget { bytes_per_second } = self.policy.rule {
            let start = self.paid_until.max(now);
            self.paid_until = start + Duration::from_secs_f64(bytes as f64 / bytes_per_second);
        }
    }
}

/// What receivers of this copy make of an update.
pub(super) fn decoded(bytes: &[u8], kept: &Image) -> Image {
    let mut image = kept.clone();
    let changes =
        decode_changes(&mut Reader::new(bytes), kept, usize::MAX).expect("own updates decode");
    image.apply(&changes);
    image
}
