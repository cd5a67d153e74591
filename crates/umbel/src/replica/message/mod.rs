//! Messages between hosts, as bytes.
//!
//! ```text
//! message  = version 1, kind byte, body, crc32c of all before
//! update   (1) home, set, incarnation, sequence, epoch, base epoch + 1 or 0 for nothing, scheme,
//!              checksum, items, 0 fetch it | 1 changes
//! announce (2) home, incarnation, sequence, sum, and perhaps: set, items, digest bits, samples
//! request  (3) home, set, incarnation,
//!              0 page: epoch + 1 or 0 for any, page
//!              1 changes: since epoch, until epoch + 1 or 0 for the newest, offset
//! page     (4) home, set, incarnation, epoch, scheme, checksum,
//!              page + 1 or 0 if the image has no component, the page's ones
//! leave    (5) home, incarnation
//! changes  (6) home, set, incarnation, since epoch, until epoch, its scheme, length, offset,
//!              bytes
//! list?    (7) home, incarnation, after sequence
//! list     (8) home, incarnation, after and until sequence, newest sequence, sum,
//!              sets: each name, scheme, epoch, checksum, items
//! ```
//!
//! How names, schemes and numbers are written: `fields`.
//!
//! Always true: any bytes decode to a message or an error. The lengths of names, lists and payloads
//! are checked before anything is allocated. Whether a message makes sense to a receiver is decided
//! in `replica`.

mod fetching;
mod listing;

pub(crate) use fetching::{Changes, Page, Request, Wanted};
pub(crate) use listing::{Announce, List, ListRequest, ListedSet, MAX_SETS, Members};

use std::time::Duration;

use super::draft::Label;
use super::fields::{VERSION, epoch, name, opened, put_name, put_scheme, scheme};
use super::{Epoch, Incarnation, Name};
use crate::codec::{DecodeError, Reader, put_varint, seal};
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
    ListRequest(ListRequest),
    List(List),
}

/// A home's new image of a set, as a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    pub(crate) home: Name,
    pub(crate) set: Name,
    pub(crate) incarnation: Incarnation,
    /// Counts all publications of the host.
    pub(crate) sequence: u64,
    pub(crate) epoch: Epoch,
    /// The epoch that the changes apply to; `None` if they start from nothing.
    pub(crate) base: Option<Epoch>,
    pub(crate) scheme: Scheme,
    /// Of the image that results.
    pub(crate) checksum: u64,
    /// Keys that the home holds.
    pub(crate) items: u64,
    /// `None` means that they are too long for a message and must be fetched.
    pub(crate) changes: Option<Vec<u8>>,
}

/// A home announces that it is about to stop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leave {
    pub(crate) home: Name,
    pub(crate) incarnation: Incarnation,
    /// How long other hosts should keep using its replicas, in milliseconds on the wire. Zero means
    /// that it leaves and is not expected back.
    pub(crate) absence: Duration,
}

const UPDATE: u8 = 1;
const ANNOUNCE: u8 = 2;
const REQUEST: u8 = 3;
const PAGE: u8 = 4;
const LEAVE: u8 = 5;
const CHANGES: u8 = 6;
const LIST_REQUEST: u8 = 7;
const LIST: u8 = 8;

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
            Self::ListRequest(request) => request.write(&mut out),
            Self::List(list) => list.write(&mut out),
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
            LIST_REQUEST => Self::ListRequest(ListRequest::read(&mut reader)?),
            LIST => Self::List(List::read(&mut reader)?),
            _ => return Err(DecodeError::Malformed("unknown kind of message")),
        };
        reader.end()?;
        Ok(message)
    }

    /// The sender and its incarnation; `None` for requests, which name the host they are sent to.
    pub(crate) const fn speaker(&self) -> Option<(&Name, Incarnation)> {
        match self {
            Self::Update(update) => Some((&update.home, update.incarnation)),
            Self::Announce(announce) => Some((&announce.home, announce.incarnation)),
            Self::Page(page) => Some((&page.home, page.incarnation)),
            Self::Leave(leave) => Some((&leave.home, leave.incarnation)),
            Self::Changes(changes) => Some((&changes.home, changes.incarnation)),
            Self::List(list) => Some((&list.home, list.incarnation)),
            Self::Request(_) | Self::ListRequest(_) => None,
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
        put_varint(out, self.sequence);
        put_varint(out, self.epoch.0);
        put_varint(out, self.base.map_or(0, |base| base.0 + 1));
        put_scheme(out, &self.scheme);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        put_varint(out, self.items);
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
            sequence: reader.varint()?,
            epoch: epoch(reader)?,
            base: reader.varint()?.checked_sub(1).map(Epoch),
            scheme: scheme(reader)?,
            checksum: reader.u64()?,
            items: reader.varint()?,
            changes: match reader.byte()? {
                0 => None,
                1 => Some(reader.take_all().to_vec()),
                _ => return Err(DecodeError::Malformed("an update carries changes or none")),
            },
        })
    }
}

impl Leave {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(LEAVE);
        put_name(out, &self.home);
        put_varint(out, self.incarnation.0);
        put_varint(out, u64::try_from(self.absence.as_millis()).unwrap_or(u64::MAX));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            home: name(reader)?,
            incarnation: Incarnation(reader.varint()?),
            absence: Duration::from_millis(reader.varint()?),
        })
    }
}
