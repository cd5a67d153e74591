//! An update that names added keys by their digests: its work grows with the keys, not with the
//! filter.
//!
//! Under a policy with a short `longest` most updates carry a few keys, every second, of a filter
//! that may have millions. So neither a copy of the bits nor a pass over them is made: the bits that
//! the keys set follow from the digests, and checksum and fill follow from these bits.
//!
//! Always true: where this makes an update, the long way would have made the same bytes.

use std::collections::BTreeMap;

use super::prepared::decoded;
use super::{Publisher, Source};
use crate::codec::Flips;
use crate::filter::ComponentId;
use crate::key_hash::Digest;
use crate::model::limits;
use crate::replica::image::{Change, Changes, ImageComponent};
use crate::replica::paged::encode_added;

/// In shorter filters a pass over the bits takes no time, and bits may be shorter than digests.
const SHORTEST_FILTER: u64 = 1 << 16;

/// Added keys are few if looking at their positions takes less time than a copy of the bits: so many
/// positions, or one for so many bits.
const FEW_POSITIONS: u64 = 1 << 16;
const BITS_PER_POSITION: u64 = 512;

/// Added keys, of components that they change.
#[derive(Default)]
struct Added {
    digests: Vec<(ComponentId, Vec<Digest>)>,
    /// The bits that they set.
    changes: Changes,
}

impl Publisher {
    /// Turns the kept copy into one that claims the added keys, named by their digests; `None`, and
    /// nothing changes, if the update should be made from the bits.
    pub(super) fn publish_digests(&mut self, source: &Source<'_>) -> Option<Vec<u8>> {
        let shape = source.scheme().shape();
        if !self.by_digests || shape.bits() < SHORTEST_FILTER || !self.has_few_pending(source) {
            return None;
        }
        let Added { digests, changes } = self.added_digests(source)?;
        if !self.keeps_promise(&self.fills_after(&changes), source) {
            return None;
        }
        let mut bytes = Vec::new();
        let is_short = encode_added(&mut bytes, shape, &digests)
            && (bytes.len() as f64) < 0.95 * self.least_bytes(&changes);
        if !is_short {
            return None;
        }
        let decoded = cfg!(debug_assertions).then(|| decoded(&bytes, &self.kept));
        self.kept.apply(&changes);
        debug_assert!(
            decoded.is_none_or(|decoded| decoded == self.kept),
            "receivers make of an update what the home believes that they do"
        );
        Some(bytes)
    }

    /// Whether few keys were added since the last update.
    pub(super) fn has_few_pending(&self, source: &Source<'_>) -> bool {
        let shape = source.scheme().shape();
        let few = FEW_POSITIONS.max(shape.bits() / BITS_PER_POSITION);
        self.tally.pending_len().is_some_and(|keys| keys * u64::from(shape.hashes()) <= few)
    }

    /// Added keys that are still held, by their digests, with the components that hold them now.
    pub(super) fn held_digests(&self, source: &Source<'_>) -> Option<Vec<(Digest, ComponentId)>> {
        let now = |(hash, id)| (source.scheme().cut(hash), source.filter.living(id));
        Some(self.tally.pending()?.held().into_iter().map(now).collect())
    }

    /// The pending digests of each component, and the bits that they set in the copy; `None` if
    /// digests were forgotten, or the copy lacks a component.
    fn added_digests(&self, source: &Source<'_>) -> Option<Added> {
        let mut by_component: BTreeMap<ComponentId, Vec<Digest>> = BTreeMap::new();
        for (digest, id) in self.held_digests(source)? {
            by_component.entry(id).or_default().push(digest);
        }
        let mut added = Added::default();
        for (id, digests) in by_component {
            let kept = self.kept.component(id)?;
            let positions = digests.iter().flat_map(|d| d.positions(source.scheme().shape()));
            let mut sets: Vec<u64> =
                positions.filter(|position| kept.bits.get(*position) == 0).collect();
            sets.sort_unstable();
            sets.dedup();
            if !sets.is_empty() {
                let flips = Flips { sets, clears: Vec::new() };
                added.changes.push((id, Change::Flips(flips)));
                added.digests.push((id, digests));
            }
        }
        Some(added)
    }

    /// The fills of the copy's components after these changes.
    fn fills_after(&self, changes: &Changes) -> Vec<f64> {
        let fill = |component: &ImageComponent| {
            let ones = component.bits.ones() + sets_of(changes, component.id);
            ones as f64 / component.bits.len() as f64
        };
        self.kept.components().iter().map(fill).collect()
    }

    /// Bytes that naming the changed bits would take at least.
    fn least_bytes(&self, changes: &Changes) -> f64 {
        let bytes = |component: &ImageComponent| {
            let ones = component.bits.ones();
            limits::delta_bytes(limits::Flips {
                zeros: (component.bits.len() - ones) as f64,
                set: sets_of(changes, component.id) as f64,
                ones: ones as f64,
                cleared: 0.0,
            })
        };
        self.kept.components().iter().map(bytes).sum()
    }
}

/// Bits of a component that changes set.
fn sets_of(changes: &Changes, id: ComponentId) -> u64 {
    let sets = changes.iter().find_map(|(other, change)| match change {
        Change::Flips(flips) if *other == id => Some(flips.sets.len() as u64),
        _ => None,
    });
    sets.unwrap_or(0)
}
