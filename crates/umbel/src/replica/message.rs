//! Messages between hosts, as bytes.
//!
//! ```text
//! message  = version 1, kind byte, body, crc32c of all before
//! update   (1) home, set, incarnation, epoch, base epoch + 1 or 0 for nothing, scheme, checksum,
//!              0 fetch it | 1 changes
//! announce (2) home, incarnation, sets: each name, scheme, epoch, checksum, items, samples
//! request  (3) home, set, incarnation,
//!              0 page: epoch + 1 or 0 for any, page
//!              1 changes: since epoch, until epoch + 1 or 0 for the newest, offset
//! page     (4) home, set, incarnation, epoch, scheme, checksum,
//!              page + 1 or 0 if the image has no component, the page's ones
//! leave    (5) home, incarnation
//! changes  (6) home, set, incarnation, since epoch, until epoch, its scheme, length, offset,
//!              bytes
//! ```
//!
//! How names, schemes and numbers are written: `fields`.
//!
//! Always true: any bytes decode to a message or an error; names, lists and payloads are
//! bounded before they are believed. Whether a message makes sense to a receiver is for
//! `replica` to say.

use super::draft::Label;
use super::fields::{VERSION, bounded, epoch, name, opened, put_name, put_scheme, scheme};
use super::update_log::{PART, Part};
use super::{Epoch, Incarnation, Name};
use crate::codec::{DecodeError, Reader, put_varint, seal};
use crate::key_hash::Digest;
use crate::scheme::Scheme;

/// Any message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Update(Update),
    Announce(Announce),
    Request(Request),
    Page(Page),
    Leave(Leave),
    Changes(Changes),
}

/// A home's new image of a set, as a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) epoch: Epoch,
    /// What the changes are against; `None` for nothing at all.
    pub(crate) base: Option<Epoch>,
    pub(crate) scheme: Scheme,
    /// Of the image that results.
    pub(crate) checksum: u64,
    /// `None`: too long for a message, fetch them.
    pub(crate) changes: Option<Vec<u8>>,
}

/// What a home has published, every few seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Announce {
    pub(crate) home: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) sets: Vec<AnnouncedSet>,
}

/// One set of an announcement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnnouncedSet {
    pub(crate) set: Name,
    pub(crate) scheme: Scheme,
    pub(crate) epoch: Epoch,
    pub(crate) checksum: u64,
    pub(crate) items: u64,
    /// Digests of a few members: receivers count those that they deny.
    pub(crate) samples: Vec<Digest>,
}

/// A receiver asks a home for something of a set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) wanted: Wanted,
}

/// What a receiver asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A page of the image of this epoch; `None`: of whichever the home chooses.
    Page { epoch: Option<Epoch>, page: u64 },
    /// A part of the changes since an epoch, until another one or the newest.
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
    /// The page, coded.
    pub(crate) bytes: Vec<u8>,
}

/// Changes since an epoch, or a part of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Changes {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) since: Epoch,
    /// Of the home's newest image, of which the last record may be an older one.
    pub(crate) scheme: Scheme,
    pub(crate) part: Part,
}

/// A home says that it is about to go: nobody need wait for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leave {
    pub(crate) home: Name,
    pub(crate) incarnation: Incarnation,
}

const UPDATE: u8 = 1;
const ANNOUNCE: u8 = 2;
const REQUEST: u8 = 3;
const PAGE: u8 = 4;
const LEAVE: u8 = 5;
const CHANGES: u8 = 6;

/// Most sets in one announcement, samples of one set.
const MOST_SETS: u64 = 4096;
const MOST_SAMPLES: u64 = 64;

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Self::Update(update) => update.write(&mut out),
            Self::Announce(announce) => announce.write(&mut out),
            Self::Request(request) => request.write(&mut out),
            Self::Page(page) => page.write(&mut out),
            Self::Leave(leave) => leave.write(&mut out),
            Self::Changes(changes) => changes.write(&mut out),
        }
        seal(out)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = opened(bytes)?;
        let message = match reader.byte()? {
            UPDATE => Self::Update(Update::read(&mut reader)?),
            ANNOUNCE => Self::Announce(Announce::read(&mut reader)?),
            REQUEST => Self::Request(Request::read(&mut reader)?),
            PAGE => Self::Page(Page::read(&mut reader)?),
            LEAVE => Self::Leave(Leave::read(&mut reader)?),
            CHANGES => Self::Changes(Changes::read(&mut reader)?),
            _ => return Err(DecodeError::Malformed("unknown kind of message")),
        };
        reader.end()?;
        Ok(message)
    }

    /// Who says it, in which life of it; a request names another's.
    pub(crate) const fn speaker(&self) -> Option<(&Name, Incarnation)> {
        match self {
            Self::Update(update) => Some((&update.home, update.incarnation)),
            Self::Announce(announce) => Some((&announce.home, announce.incarnation)),
            Self::Page(page) => Some((&page.home, page.incarnation)),
            Self::Leave(leave) => Some((&leave.home, leave.incarnation)),
            Self::Changes(changes) => Some((&changes.home, changes.incarnation)),
            Self::Request(_) => None,
        }
    }
}

impl Update {
    /// The image that it leads to.
    pub(crate) const fn label(&self) -> Label {
        Label { scheme: self.scheme, checksum: self.checksum }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(UPDATE);
        put_name(out, &self.home);
        put_name(out, &self.set);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.epoch.0);
        put_varint(out, self.base.map_or(0, |base| base.0 + 1));
        put_scheme(out, &self.scheme);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        match &self.changes {
            None => out.push(0),
            Some(changes) => {
                out.push(1);
                out.extend_from_slice(changes);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            home: name(reader)?,
            set: name(reader)?,
            incarnation: Incarnation(reader.varint()?),
            epoch: epoch(reader)?,
            base: reader.varint()?.checked_sub(1).map(Epoch),
            scheme: scheme(reader)?,
            checksum: reader.u64()?,
            changes: match reader.byte()? {
                0 => None,
                1 => Some(reader.take_all().to_vec()),
                _ => return Err(DecodeError::Malformed("an update carries changes or none")),
            },
        })
    }
}

impl Announce {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(ANNOUNCE);
        put_name(out, &self.home);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.sets.len() as u64);
        for set in &self.sets {
            put_name(out, &set.set);
            put_scheme(out, &set.scheme);
            put_varint(out, set.epoch.0);
            out.extend_from_slice(&set.checksum.to_le_bytes());
            put_varint(out, set.items);
            put_varint(out, set.samples.len() as u64);
            set.samples.iter().for_each(|digest| put_varint(out, digest.get()));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, incarnation) = (name(reader)?, Incarnation(reader.varint()?));
        let mut sets = Vec::new();
        for _ in 0..bounded(reader, MOST_SETS)? {
            let (set, scheme) = (name(reader)?, scheme(reader)?);
            let (epoch, checksum, items) = (epoch(reader)?, reader.u64()?, reader.varint()?);
            let mut samples = Vec::new();
            for _ in 0..bounded(reader, MOST_SAMPLES)? {
                let digest = Digest::from_raw(reader.varint()?, scheme.shape().digest_bits());
                samples.push(digest.ok_or(DecodeError::Malformed("a digest is too long"))?);
            }
            sets.push(AnnouncedSet { set, scheme, epoch, checksum, items, samples });
        }
        Ok(Self { home, incarnation, sets })
    }
}

impl Request {
    fn write(&self, out: &mut Vec<u8>) {
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

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
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

impl Leave {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(LEAVE);
        put_name(out, &self.home);
        put_varint(out, self.incarnation.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { home: name(reader)?, incarnation: Incarnation(reader.varint()?) })
    }
}

impl Page {
    fn write(&self, out: &mut Vec<u8>) {
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

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, set) = (name(reader)?, name(reader)?);
        let (incarnation, epoch) = (Incarnation(reader.varint()?), epoch(reader)?);
        let (scheme, checksum) = (scheme(reader)?, reader.u64()?);
        let page = reader.varint()?.checked_sub(1);
        let bytes = reader.take_all().to_vec();
        Ok(Self { home, set, incarnation, epoch, scheme, checksum, page, bytes })
    }
}

impl Changes {
    fn write(&self, out: &mut Vec<u8>) {
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

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, set) = (name(reader)?, name(reader)?);
        let (incarnation, since) = (Incarnation(reader.varint()?), epoch(reader)?);
        let (until, scheme) = (epoch(reader)?, scheme(reader)?);
        let (length, offset) = (reader.varint()?, offset(reader)?);
        let bytes = reader.take_all().to_vec();
        let part = Part { until, length, offset, bytes };
        Ok(Self { home, set, incarnation, since, scheme, part })
    }
}

/// A number that may be absent: one more than it, or 0.
fn put_or_none(out: &mut Vec<u8>, number: Option<u64>) {
    put_varint(out, number.map_or(0, |number| number + 1));
}

fn epoch_or_none(reader: &mut Reader<'_>) -> Result<Option<Epoch>, DecodeError> {
    match reader.varint()? {
        number if number <= 1 << 62 => Ok(number.checked_sub(1).map(Epoch)),
        _ => Err(DecodeError::Malformed("an epoch is out of range")),
    }
}

/// Where a part begins: leaves room to count on.
fn offset(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    match reader.varint()? {
        offset if offset.is_multiple_of(PART) && offset < 1 << 62 => Ok(offset),
        _ => Err(DecodeError::Malformed("a part begins at a multiple of its length")),
    }
}
