//! Requests for what is missing of a set, and the replies to them.

use super::{CHANGES, PAGE, REQUEST};
use crate::codec::{DecodeError, Reader, put_varint};
use crate::replica::fields::{epoch, name, put_name, put_scheme, scheme};
use crate::replica::update_log::{PART, Part};
use crate::replica::{Epoch, Incarnation, Name};
use crate::scheme::Scheme;

/// A receiver requests data of a set from its home.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) wanted: Wanted,
}

/// What a receiver requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A page of the image of this epoch; `None` lets the home choose the epoch.
    Page { epoch: Option<Epoch>, page: u64 },
    /// A part of the changes since an epoch, up to `until` or, if that is `None`, the newest epoch.
    Changes { since: Epoch, until: Option<Epoch>, offset: u64 },
}

/// A page of a home's image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Page {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) epoch: Epoch,
    pub(crate) scheme: Scheme,
    /// Of the whole image at this epoch.
    pub(crate) checksum: u64,
    /// Which page it is; `None` if the image has no component.
    pub(crate) page: Option<u64>,
    /// The encoded page.
    pub(crate) bytes: Vec<u8>,
}

/// Changes since an epoch, or a part of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Changes {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) since: Epoch,
    /// The scheme of the home's newest image. The last record of the changes may have an older one.
    pub(crate) scheme: Scheme,
    pub(crate) part: Part,
}

impl Request {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(REQUEST);
        put_name(out, &self.home);
        put_name(out, &self.set);
        put_varint(out, self.incarnation.0);
        match self.wanted {
            Wanted::Page { epoch, page } => {
                out.push(0);
                put_or_none(out, epoch.map(|epoch| epoch.0));
                put_varint(out, page);
            }
            Wanted::Changes { since, until, offset } => {
                out.push(1);
                put_varint(out, since.0);
                put_or_none(out, until.map(|until| until.0));
                put_varint(out, offset);
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, set) = (name(reader)?, name(reader)?);
        let incarnation = Incarnation(reader.varint()?);
        let wanted = match reader.byte()? {
            0 => Wanted::Page { epoch: epoch_or_none(reader)?, page: reader.varint()? },
            1 => Wanted::Changes {
                since: epoch(reader)?,
                until: epoch_or_none(reader)?,
                offset: offset(reader)?,
            },
            _ => return Err(DecodeError::Malformed("unknown kind of request")),
        };
        Ok(Self { home, set, incarnation, wanted })
    }
}

impl Page {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(PAGE);
        put_name(out, &self.home);
        put_name(out, &self.set);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.epoch.0);
        put_scheme(out, &self.scheme);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        put_or_none(out, self.page);
        out.extend_from_slice(&self.bytes);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, set) = (name(reader)?, name(reader)?);
        let (incarnation, epoch) = (Incarnation(reader.varint()?), epoch(reader)?);
        let (scheme, checksum) = (scheme(reader)?, reader.u64()?);
        let page = reader.varint()?.checked_sub(1);
        let bytes = reader.take_all().to_vec();
        Ok(Self { home, set, incarnation, epoch, scheme, checksum, page, bytes })
    }
}

impl Changes {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(CHANGES);
        put_name(out, &self.home);
        put_name(out, &self.set);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.since.0);
        put_varint(out, self.part.until.0);
        put_scheme(out, &self.scheme);
        put_varint(out, self.part.length);
        put_varint(out, self.part.offset);
        out.extend_from_slice(&self.part.bytes);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, set) = (name(reader)?, name(reader)?);
        let (incarnation, since) = (Incarnation(reader.varint()?), epoch(reader)?);
        let (until, scheme) = (epoch(reader)?, scheme(reader)?);
        let (length, offset) = (reader.varint()?, offset(reader)?);
        let bytes = reader.take_all().to_vec();
        let part = Part { until, length, offset, bytes };
        Ok(Self { home, set, incarnation, since, scheme, part })
    }
}

/// Writes an optional number: 0 for `None`, otherwise the number plus one.
fn put_or_none(out: &mut Vec<u8>, number: Option<u64>) {
    put_varint(out, number.map_or(0, |number| number + 1));
}

fn epoch_or_none(reader: &mut Reader<'_>) -> Result<Option<Epoch>, DecodeError> {
    match reader.varint()? {
        number if number <= 1 << 62 => Ok(number.checked_sub(1).map(Epoch)),
        _ => Err(DecodeError::Malformed("an epoch is out of range")),
    }
}

/// Reads where a part begins. Rejects values so large that counting on could overflow.
fn offset(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    match reader.varint()? {
        offset if offset.is_multiple_of(PART) && offset < 1 << 62 => Ok(offset),
        _ => Err(DecodeError::Malformed("a part begins at a multiple of its length")),
    }
}
