//! Messages between hosts, as bytes.
//!
//! ```text
//! message  = version 1, kind byte, body, crc32c of all before
//! update   (1) home, set, incarnation, epoch, base epoch + 1 or 0 for nothing, scheme, checksum,
//!              0 fetch it | 1 changes
//! announce (2) home, incarnation, sets: each name, scheme, epoch, checksum, items, samples
//! request  (3) home, set, incarnation, component + 1 or 0 for any, page
//! page     (4) home, set, incarnation, epoch, scheme, checksum, component ids,
//!              component, page, the page's ones
//! leave    (5) home, incarnation
//! ```
//!
//! How names, schemes and numbers are written: `fields`.
//!
//! Always true: any bytes decode to a message or an error; names, lists and payloads are
//! bounded before they are believed. Whether a message makes sense to a receiver is for
//! `replica` to say.

use super::fields::{VERSION, bounded, epoch, name, opened, put_name, put_scheme, scheme};
use super::{Epoch, Incarnation, Name};
use crate::codec::{DecodeError, Reader, put_varint, seal};
use crate::filter::ComponentId;
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
    /// `None`: too long for a message, fetch the pages.
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

/// A receiver asks a home for a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    /// `None`: the first there is, for whoever does not know yet which there are.
    pub(crate) component: Option<ComponentId>,
    pub(crate) page: u64,
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
    /// All components of the image.
    pub(crate) components: Vec<ComponentId>,
    /// Which page it is; `None` if the image has no component.
    pub(crate) of: Option<(ComponentId, u64)>,
    /// The page, coded.
    pub(crate) bytes: Vec<u8>,
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

/// Most sets in one announcement, samples of one set, components of one image.
const MOST_SETS: u64 = 4096;
const MOST_SAMPLES: u64 = 64;
const MOST_COMPONENTS: u64 = super::paged::MOST_COMPONENTS as u64;

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Self::Update(update) => update.write(&mut out),
            Self::Announce(announce) => announce.write(&mut out),
            Self::Request(request) => request.write(&mut out),
            Self::Page(page) => page.write(&mut out),
            Self::Leave(leave) => leave.write(&mut out),
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
            Self::Request(_) => None,
        }
    }
}

impl Update {
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
        put_varint(out, self.component.map_or(0, |component| u64::from(component.0) + 1));
        put_varint(out, self.page);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            home: name(reader)?,
            set: name(reader)?,
            incarnation: Incarnation(reader.varint()?),
            component: component_or_none(reader)?,
            page: reader.varint()?,
        })
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
        put_varint(out, self.components.len() as u64);
        self.components.iter().for_each(|id| put_varint(out, id.0.into()));
        put_varint(out, self.of.map_or(0, |(component, _)| u64::from(component.0) + 1));
        put_varint(out, self.of.map_or(0, |(_, page)| page));
        out.extend_from_slice(&self.bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, set) = (name(reader)?, name(reader)?);
        let (incarnation, epoch) = (Incarnation(reader.varint()?), epoch(reader)?);
        let (scheme, checksum) = (scheme(reader)?, reader.u64()?);
        let mut components: Vec<ComponentId> = Vec::new();
        for _ in 0..bounded(reader, MOST_COMPONENTS)? {
            let id = ComponentId(reader.varint32()?);
            if components.last().is_some_and(|last| *last >= id) {
                return Err(DecodeError::Malformed("ids of components do not ascend"));
            }
            components.push(id);
        }
        let (component, page) = (component_or_none(reader)?, reader.varint()?);
        let of = component.map(|component| (component, page));
        let bytes = reader.take_all().to_vec();
        Ok(Self { home, set, incarnation, epoch, scheme, checksum, components, of, bytes })
    }
}

fn component_or_none(reader: &mut Reader<'_>) -> Result<Option<ComponentId>, DecodeError> {
    let number = reader.varint()?.checked_sub(1);
    let component = number.map(u32::try_from).transpose();
    component
        .map(|component| component.map(ComponentId))
        .map_err(|_| DecodeError::Malformed("an id of a component exceeds 32 bits"))
}
