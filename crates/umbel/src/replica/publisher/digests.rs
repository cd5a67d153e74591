//! An update that contains the digests of added keys: its cost grows with the number of keys, not
//! with the filter.
//!
//! Under a policy with a short `longest` most updates add a few keys, every second, to a filter
//! that may hold millions. So the bits are neither copied nor scanned: the digests determine which
//! bits the keys set, and these bits determine checksum and fill.
//!
//! Always true: if this makes an update, encoding it from the bits would have given the same bytes.

use std::collections::BTreeMap;

use super::prepared::decoded;
use super::{Publisher, Source};
use crate::codec::Flips;
use crate::filter::ComponentId;
use crate::key_hash::Digest;
use crate::model::limits;
use crate::replica::image::{Change, Changes, ImageComponent};
use crate::replica::paged::encode_added;

/// In shorter filters a pass over the bits takes little time, and bits may be shorter than digests.
const SHORTEST_FILTER: u64 = 1 << 16;

/// Added keys are few if reading their positions takes less time than copying the bits: at most
/// this many positions, or one per `BITS_PER_POSITION` bits of the filter.
const FEW_POSITIONS: u64 = 1 << 16;
const BITS_PER_POSITION: u64 = 512;

/// Added keys, by the components that they change.
#[derive(Default)]
struct Added {
    digests: Vec<(ComponentId, Vec<Digest>)>,
    /// The bits that they set.
    changes: Changes,
}

impl Publisher {
    /// Makes the kept copy claim the added keys, and returns an update with their digests. Returns
    /// `None` and changes nothing if the update should be made from the bits.
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
            && (bytes.len() as f64) < 0.95 * self.min_bytes(&changes);
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
        let now = |(hash, id)| (source.scheme().digest_of(hash), source.filter.living(id));
        Some(self.tally.pending()?.held().into_iter().map(now).collect())
    }

    /// The pending digests of each component, and the bits that they set in the copy; `None` if
    /// digests were dropped, or the copy lacks a component.
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

    /// The fewest bytes that can encode the changed bits.
    fn min_bytes(&self, changes: &Changes) -> f64 {
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

/// How many bits of a component these changes set.
fn sets_of(changes: &Changes, id: ComponentId) -> u64 {
    let sets = changes.iter().find_map(|(other, change)| match change {
        Change::Flips(flips) if *other == id => Some(flips.sets.len() as u64),
        _ => None,
    });
    sets.unwrap_or(0)
}
