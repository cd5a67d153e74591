//! An image to which changes are applied before lookups use it.
//!
//! Every change is checked by the checksum of what it leads to, so that a draft is always an image
//! that the home published.

use crate::bits::BitVector;
use crate::codec::{DecodeError, Flips, Reader};
use crate::design::ladder::steps_between;
use crate::scheme::Scheme;

use super::Epoch;
use super::image::Change;
use super::paged::{decode_change, decode_step};
use super::update_log::Record;

/// The scheme of an image and the checksum of its bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Label {
    pub(crate) scheme: Scheme,
    /// 0 if there are no bits.
    pub(crate) checksum: u64,
}

/// What a change does to the bits of an image.
#[derive(Debug)]
pub(crate) enum Next {
    /// Some bits flip.
    Flips(Flips),
    /// All bits are replaced, perhaps in another shape.
    Bits(BitVector),
    /// The home no longer has the set.
    Nothing,
}

impl Label {
    /// By how many rungs a scheme is above this one, if the two are nested or equal.
    pub(crate) fn steps_to(&self, scheme: &Scheme) -> Option<i32> {
        let (here, there) = (self.scheme.shape(), scheme.shape());
        match self.scheme.hasher() == scheme.hasher() {
            true if here == there => Some(0),
            true => steps_between(here, there),
            false => None,
        }
    }

    /// Decodes a change of these bits.
    ///
    /// # Errors
    /// If it is malformed, or does not lead to the expected image.
    pub(crate) fn decode(
        &self,
        bits: &BitVector,
        to: &Self,
        changes: &[u8],
    ) -> Result<Next, DecodeError> {
        let (mut reader, shape) = (Reader::new(changes), self.scheme.shape());
        let (next, found) = match self.steps_to(&to.scheme) {
            None => return Err(DecodeError::Malformed("a change to a shape that is not nested")),
            Some(0) => match decode_change(&mut reader, shape, Some(bits))? {
                None => (Next::Flips(Flips::default()), self.checksum),
                Some(Change::Dropped) => (Next::Nothing, 0),
                Some(Change::Whole(bits)) => {
                    let checksum = bits.checksum();
                    (Next::Bits(bits), checksum)
                }
                Some(Change::Flips(flips)) => {
                    let checksum = flips.checksum_after(bits, self.checksum);
                    (Next::Flips(flips), checksum)
                }
            },
            Some(steps) => {
                let bits = decode_step(&mut reader, shape, bits, steps)?;
                let checksum = bits.checksum();
                (Next::Bits(bits), checksum)
            }
        };
        reader.end()?;
        checked(next, to.checksum, found)
    }
}

/// The bits of an image that an update contains as a whole; `None` if the image has no bits.
///
/// # Errors
/// If they are malformed, or do not match the checksum.
pub(crate) fn decode_snapshot(
    to: &Label,
    changes: &[u8],
) -> Result<Option<BitVector>, DecodeError> {
    let mut reader = Reader::new(changes);
    let change = decode_change(&mut reader, to.scheme.shape(), None)?;
    reader.end()?;
    let bits = match change {
        Some(Change::Whole(bits)) => Some(bits),
        _ => None,
    };
    let found = bits.as_ref().map_or(0, BitVector::checksum);
    checked(bits, to.checksum, found)
}

fn checked<T>(outcome: T, stored: u64, found: u64) -> Result<T, DecodeError> {
    match found == stored {
        true => Ok(outcome),
        false => Err(DecodeError::WrongResult { stored, found }),
    }
}

/// An image that lookups do not use yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) label: Label,
    pub(crate) bits: Option<BitVector>,
}

impl Draft {
    /// Applies a change. A change from nothing does not need any bits.
    ///
    /// # Errors
    /// As [`Label::decode`]; the draft must not be used then.
    pub(crate) fn apply(
        &mut self,
        to: Label,
        from_nothing: bool,
        changes: &[u8],
    ) -> Result<(), DecodeError> {
        match (&mut self.bits, from_nothing) {
            (_, true) => self.bits = decode_snapshot(&to, changes)?,
            (None, false) => return Err(DecodeError::Malformed("a change of nothing")),
            (Some(bits), false) => match self.label.decode(bits, &to, changes)? {
                Next::Flips(flips) => flips.apply(bits),
                Next::Bits(new) => *bits = new,
                Next::Nothing => self.bits = None,
            },
        }
        self.label = to;
        Ok(())
    }

    /// Applies a whole stream of changes to an image of epoch `since`; returns the epoch that it
    /// leads to. `newest` is the scheme of the home's newest image.
    ///
    /// # Errors
    /// As [`Self::apply`], and if a record does not follow the one before it.
    pub(crate) fn apply_stream(
        &mut self,
        since: Epoch,
        stream: &[u8],
        newest: &Scheme,
    ) -> Result<Epoch, DecodeError> {
        let (hasher, mut epoch) = (*self.label.scheme.hasher(), since);
        let longest = newest.shape().bits().max(self.label.scheme.shape().bits());
        let mut reader = Reader::new(stream);
        while !reader.is_empty() {
            let record = Record::read(&mut reader)?;
            let is_expected = record.from_nothing || record.epoch == epoch.next();
            let is_of_this_hash = *record.scheme.hasher() == hasher;
            if !is_expected || !is_of_this_hash || record.scheme.shape().bits() > longest {
                return Err(DecodeError::Malformed("a record that does not follow"));
            }
            let to = Label { scheme: record.scheme, checksum: record.checksum };
            self.apply(to, record.from_nothing, record.changes)?;
            epoch = record.epoch;
        }
        Ok(epoch)
    }

    /// What turns the image `base` with this label into the draft.
    pub(crate) fn into_next(self, label: &Label, base: &BitVector) -> Next {
        match self.bits {
            None => Next::Nothing,
            Some(bits) if self.label.scheme == label.scheme && !is_dense(base, &bits) => {
                Next::Flips(Flips::between(base, &bits))
            }
            Some(bits) => Next::Bits(bits),
        }
    }
}

/// Whether so many bits differ that replacing all of them is better than flipping them one by one.
fn is_dense(old: &BitVector, new: &BitVector) -> bool {
    old.count_beyond(new) + new.count_beyond(old) > old.len() / 8
}
