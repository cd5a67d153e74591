//! An update that is decided but not yet encoded.
//!
//! Encoding a large filter takes a tenth of a second or more. So the result of an update is fixed
//! while the home is locked, by copying bits. A thread that holds no lock then encodes these
//! copies.
//!
//! Always true: the bytes turn the copy that receivers had into the new kept copy of the home
//! (debug builds run the decoder of receivers).

use std::sync::Arc;

use super::super::image::Image;
use super::super::paged::{Target, decode_changes, decode_step, encode_changes, encode_climb};
use super::super::tally::Pending;
use super::Publication;
use crate::bits::BitVector;
use crate::codec::Reader;
use crate::filter::ComponentId;
use crate::key_hash::Digest;
use crate::params::Shape;
use crate::scheme::Scheme;

/// The longest update that is sent to all hosts at once; longer ones are fetched in parts.
pub(super) const LONGEST_MESSAGE: usize = 192 << 10;

/// An update that is not encoded yet.
#[derive(Debug)]
pub(crate) struct PreparedUpdate {
    pub(super) form: Form,
    /// Whether nothing was published before, or nothing that the changes could be based on.
    pub(super) from_nothing: bool,
    /// The longest update that is sent to all hosts at once.
    pub(super) longest_message: usize,
    /// Bytes of the same update as a whole plain filter.
    pub(super) plain_bytes: u64,
}

/// What to encode.
#[derive(Debug)]
pub(super) enum Form {
    /// Encoded already: a few added keys.
    Bytes(Arc<Vec<u8>>),
    /// From one image to another of the same scheme.
    Changes { step: Step, dropped: Vec<ComponentId> },
    /// From one image to another, `rungs` rungs above.
    Climb { step: Step, rungs: u32 },
}

/// From one image to the next.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) before: Image,
    pub(super) after: Image,
    /// Components that may have changed.
    pub(super) changed: Vec<ComponentId>,
    /// Added keys with the components that hold them, if updates may contain digests and the keys
    /// were not too many to remember.
    pub(super) pending: Option<Pending>,
}

impl PreparedUpdate {
    /// Bits that must be scanned to encode the update; 0 if it is encoded already.
    pub(crate) fn bits(&self) -> u64 {
        match &self.form {
            Form::Bytes(_) => 0,
            Form::Changes { step, .. } | Form::Climb { step, .. } => {
                step.after.scheme().shape().bits()
            }
        }
    }

    /// Encodes the update. Takes several passes over all bits.
    pub(crate) fn encode(&self) -> Publication {
        let (changes, from_nothing) = match &self.form {
            Form::Bytes(bytes) => (Arc::clone(bytes), self.from_nothing),
            Form::Changes { step, dropped } => (Arc::new(step.changes(dropped)), self.from_nothing),
            Form::Climb { step, rungs } => {
                let (bytes, is_whole) = step.climb(*rungs);
                (Arc::new(bytes), is_whole)
            }
        };
        let is_short = changes.len() <= self.longest_message;
        Publication { from_nothing, changes, is_short, plain_bytes: self.plain_bytes }
    }
}

impl Step {
    /// Encodes the step to an image of the same scheme.
    fn changes(&self, dropped: &[ComponentId]) -> Vec<u8> {
        let digests = self.digests(self.before.scheme());
        let changed = self.changed.iter().filter_map(|id| {
            let bits = &self.after.component(*id)?.bits;
            let before = self.before.component(*id).map(|before| &*before.bits);
            (before != Some(&**bits)).then(|| {
                let shape = self.before.scheme().shape();
                let added = explaining(shape, before, bits, digests_of(&digests, *id));
                Target { id: *id, bits: Arc::clone(bits), added }
            })
        });
        let mut bytes = Vec::new();
        encode_changes(&mut bytes, &self.before, &changed.collect::<Vec<_>>(), dropped);
        debug_assert!(
            decoded(&bytes, &self.before) == self.after,
            "receivers make of an update what the home believes that they do"
        );
        bytes
    }

    /// Encodes the step to the image `rungs` rungs above. Also returns whether the bytes start from
    /// nothing, because that is shorter.
    fn climb(&self, rungs: u32) -> (Vec<u8>, bool) {
        let (before, after) = (&self.before.components()[0].bits, &self.after.components()[0]);
        let (id, shape) = (after.id, self.before.scheme().shape());
        let digests = digests_of(&self.digests(self.after.scheme()), id);
        let added = explaining(shape, Some(before), &after.bits.folded(rungs), digests);
        let target = Target { id, bits: Arc::clone(&after.bits), added };
        let (mut climb, mut whole) = (Vec::new(), Vec::new());
        encode_climb(&mut climb, &self.before, &target, rungs);
        if rungs > 1 && climb.len() <= LONGEST_MESSAGE {
            let nothing = Image::new(*self.after.scheme(), Vec::new());
            encode_changes(&mut whole, &nothing, std::slice::from_ref(&target), &[]);
        }
        let is_whole = !whole.is_empty() && whole.len() < climb.len();
        if cfg!(debug_assertions) {
            let decoded = decode_step(&mut Reader::new(&climb), shape, before, rungs as i32);
            debug_assert!(decoded.is_ok_and(|bits| bits == *after.bits), "own updates decode");
        }
        (if is_whole { whole } else { climb }, is_whole)
    }

    /// The digests of added keys that are still held, with the components that hold them.
    fn digests(&self, scheme: &Scheme) -> Option<Vec<(Digest, ComponentId)>> {
        let held = self.pending.as_ref()?.held();
        Some(held.into_iter().map(|(hash, id)| (scheme.digest_of(hash), id)).collect())
    }
}

/// The digests of one component.
fn digests_of(
    digests: &Option<Vec<(Digest, ComponentId)>>,
    id: ComponentId,
) -> Option<Vec<Digest>> {
    let digests = digests.as_ref()?.iter().filter(|(_, owner)| *owner == id);
    Some(digests.map(|(digest, _)| *digest).collect())
}

/// The digests, if they explain every bit that was added to a component; otherwise none.
fn explaining(
    shape: &Shape,
    before: Option<&BitVector>,
    bits: &BitVector,
    digests: Option<Vec<Digest>>,
) -> Vec<Digest> {
    let (Some(before), Some(digests)) = (before, digests) else { return Vec::new() };
    let mut reached = before.clone();
    let fits = digests.iter().flat_map(|digest| digest.positions(shape)).all(|position| {
        reached.set(position);
        bits.get(position) == 1
    });
    if fits && bits.is_subset_of(&reached) { digests } else { Vec::new() }
}

/// The image that receivers of this copy get by applying an update.
pub(super) fn decoded(bytes: &[u8], kept: &Image) -> Image {
    let mut image = kept.clone();
    let changes =
        decode_changes(&mut Reader::new(bytes), kept, usize::MAX).expect("own updates decode");
    image.apply(&changes);
    image
}
