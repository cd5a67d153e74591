//! The image that lookups use.
//!
//! Always true: the column holds exactly one image that the home published. Only the bank keeps its
//! bits.

use super::Refused;
use crate::bank::{ColumnId, Rows};
use crate::bits::BitVector;
use crate::filter::claims;
use crate::key_hash::Walk;
use crate::replica::draft::{Draft, Label, Next};
use crate::replica::message::Members;
use crate::replica::replicas::Replicas;
use crate::replica::{Epoch, Incarnation, Name};
use crate::scheme::Scheme;

/// The image that lookups use.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) incarnation: Incarnation,
    pub(super) epoch: Epoch,
    pub(super) label: Label,
    /// `None` if the home announced that it no longer has the set.
    pub(super) column: Option<ColumnId>,
}

impl Installed {
    /// Atomically replaces the image that lookups use by a whole new one.
    pub(super) fn new<R: Rows>(
        home: &Name,
        (incarnation, epoch): (Incarnation, Epoch),
        label: Label,
        bits: Option<BitVector>,
        replicas: &Replicas<R>,
    ) -> Result<Self, Refused> {
        let column = match bits {
            Some(bits) => Some(replicas.install(home, &label.scheme, bits)?),
            None => {
                replicas.remove(home);
                None
            }
        };
        Ok(Self { incarnation, epoch, label, column })
    }

    /// Whether the image can be changed into one of this scheme.
    pub(super) fn can_become(&self, scheme: &Scheme) -> bool {
        self.column.is_some() && self.label.steps_to(scheme).is_some()
    }

    /// Length of the image.
    pub(super) fn bits(&self) -> u64 {
        self.column.map_or(0, |_| self.label.scheme.shape().bits())
    }

    /// Decodes a change of the image, without applying it.
    pub(super) fn decode<R: Rows>(
        &self,
        to: &Label,
        changes: &[u8],
        replicas: &Replicas<R>,
    ) -> Result<Next, Refused> {
        let column = self.column.expect("only an image is changed");
        let decode = |bits: &BitVector| self.label.decode(bits, to, changes);
        Ok(replicas.with_bits(column, decode)??)
    }

    /// Decodes a whole stream of changes of the image, without applying it. Returns also the epoch
    /// and the label that it leads to.
    pub(super) fn decode_stream<R: Rows>(
        &self,
        stream: &[u8],
        newest: &Scheme,
        replicas: &Replicas<R>,
    ) -> Result<(Epoch, Label, Next), Refused> {
        let column = self.column.expect("only an image is caught up");
        let base = replicas.with_bits(column, BitVector::clone)?;
        let mut draft = Draft { label: self.label, bits: Some(base.clone()) };
        let epoch = draft.apply_stream(self.epoch, stream, newest)?;
        Ok((epoch, draft.label, draft.into_next(&self.label, &base)))
    }

    /// Turns the image into the next one.
    pub(super) fn become_next<R: Rows>(
        &mut self,
        home: &Name,
        (epoch, label): (Epoch, Label),
        next: Next,
        replicas: &Replicas<R>,
    ) -> Result<(), Refused> {
        match (next, self.column) {
            (Next::Flips(flips), Some(column)) => {
                // Set bits first, then clear bits: a key that is claimed before and after is never
                // denied in between.
                replicas.set(column, &flips.sets)?;
                replicas.clear(column, &flips.clears)?;
            }
            (Next::Flips(_), None) => unreachable!("only an image is changed"),
            (Next::Bits(bits), _) => {
                self.column = Some(replicas.install(home, &label.scheme, bits)?);
            }
            (Next::Nothing, _) => {
                replicas.remove(home);
                self.column = None;
            }
        }
        (self.epoch, self.label) = (epoch, label);
        Ok(())
    }

    /// How many of the members that a home sampled are denied; `None` if its digests have another
    /// length than those of the image.
    pub(super) fn denied_of<R: Rows>(
        &self,
        members: &Members,
        replicas: &Replicas<R>,
    ) -> Option<u64> {
        let shape = self.label.scheme.shape();
        let alike = shape.digest_bits() == members.digest_bits;
        let column = self.column.filter(|_| alike && !members.samples.is_empty())?;
        let denied = |bits: &BitVector| {
            let claimed = |digest| claims(bits, Walk::new(digest, shape), shape.hashes());
            members.samples.iter().filter(|digest| !claimed(**digest)).count() as u64
        };
        replicas.with_bits(column, denied).ok()
    }
}
