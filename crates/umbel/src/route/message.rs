//! Messages between neighbours, as bytes.
//!
//! ```text
//! message = version 1, kind byte, name of the set, body, crc32c of all before
//! advert (16) home, incarnation, epoch, base epoch + 1 or 0 for nothing, hops, scheme, checksum,
//!             items, links, filters, part, parts, the part's bytes
//! reach  (17) home, incarnation, epoch, hops or 0 for no longer
//! hello  (18) incarnation, sum of what was told, plan: number, by whom, kind, depth, items,
//!             filters, rate
//! have   (19) homes: each name, incarnation, epoch, hops
//! query  (20) id: host, incarnation, number; hops, limit, walk, patience in ms, key
//! reply  (21) id, 0 more to come | 1 done | 2 done but somebody did not answer, walk,
//!             holders: each the path to it, number of hosts and names, the sender's first
//! ```
//!
//! Names, schemes and numbers are written as in the replica protocol. Always true: any bytes decode
//! to a message or an error; the lengths of names, lists and keys are checked before anything is
//! allocated.

use super::event::{Holder, MAX_PATH, QueryId};
use super::plan::{EntryKind, Plan};
use super::table::Filters;
use crate::codec::{DecodeError, Reader, put_varint, seal};
use crate::filter::ComponentId;
use crate::replica::fields::{VERSION, bounded, epoch, name, opened, put_name, put_scheme, scheme};
use crate::replica::image::{Image, ImageComponent};
use crate::replica::{Epoch, Incarnation, Name};
use crate::scheme::Scheme;

/// Any message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Advert(Advert),
    Reach(Reach),
    Hello(Hello),
    Have(Vec<KnownHome>),
    Query(Query),
    Reply(Reply),
}

/// One state of a home's filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) incarnation: Incarnation,
    pub(crate) epoch: Epoch,
}

/// What a home reports about itself, so that every host can measure the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// Keys that it holds.
    pub(crate) items: u64,
    /// Its links.
    pub(crate) links: u64,
    /// Filters that were offered to it, over all links together.
    pub(crate) filters: u64,
}

/// A home's filter, or a part of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Advert {
    pub(crate) home: Name,
    pub(crate) version: Version,
    /// The epoch that the bytes are a change of; `None` if they start from nothing.
    pub(crate) base: Option<Epoch>,
    pub(crate) hops: u8,
    pub(crate) scheme: Scheme,
    /// Of the filter that results.
    pub(crate) checksum: u64,
    pub(crate) facts: Facts,
    pub(crate) part: u32,
    pub(crate) parts: u32,
    pub(crate) bytes: Vec<u8>,
}

/// The distance of a home whose filter the receiver already has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reach {
    pub(crate) home: Name,
    pub(crate) version: Version,
    /// `None` if it is no longer reachable.
    pub(crate) hops: Option<u8>,
}

/// Sent to every neighbour every few seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hello {
    pub(crate) incarnation: Incarnation,
    /// Sum over everything that was advertised to the neighbour.
    pub(crate) sum: u64,
    pub(crate) plan: Numbered,
}

/// A plan with its number and its author, which decide which of several plans wins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) by: Name,
    pub(crate) plan: Plan,
}

/// What was advertised to a neighbour about a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownHome {
    pub(crate) home: Name,
    pub(crate) version: Version,
    pub(crate) hops: u8,
}

/// A query: which host holds a key?
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) id: QueryId,
    pub(crate) hops: u8,
    pub(crate) limit: u8,
    pub(crate) walk: u32,
    /// How long the sender waits for the reply.
    pub(crate) patience_ms: u32,
    pub(crate) key: Vec<u8>,
}

/// The reply to a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) id: QueryId,
    /// Whether this is the last reply.
    pub(crate) done: bool,
    /// Whether every host that was asked has replied.
    pub(crate) is_complete: bool,
    /// Steps of the walk that were not used.
    pub(crate) walk: u32,
    pub(crate) holders: Vec<Holder>,
}

const ADVERT: u8 = 16;
const REACH: u8 = 17;
const HELLO: u8 = 18;
const HAVE: u8 = 19;
const QUERY: u8 = 20;
const REPLY: u8 = 21;

const MORE: u8 = 0;
const DONE: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Bounds of lists, keys, parts.
pub(crate) const MAX_HOMES: usize = 1 << 20;
pub(crate) const MAX_HOLDERS: usize = 1024;
pub(crate) const LONGEST_KEY: usize = 64 << 10;
pub(crate) const MAX_PARTS: u32 = 1 << 16;
/// Longest part of an advert.
pub(crate) const LONGEST_PART: usize = 128 << 10;

impl Message {
    pub(crate) fn encode(&self, set: &Name) -> Vec<u8> {
        let kind = match self {
            Self::Advert(_) => ADVERT,
            Self::Reach(_) => REACH,
            Self::Hello(_) => HELLO,
            Self::Have(_) => HAVE,
            Self::Query(_) => QUERY,
            Self::Reply(_) => REPLY,
        };
        let mut out = vec![VERSION, kind];
        put_name(&mut out, set);
        match self {
            Self::Advert(advert) => advert.write(&mut out),
            Self::Reach(reach) => reach.write(&mut out),
            Self::Hello(hello) => hello.write(&mut out),
            Self::Have(homes) => write_have(homes, &mut out),
            Self::Query(query) => query.write(&mut out),
            Self::Reply(reply) => reply.write(&mut out),
        }
        seal(out)
    }

    /// Whether the message matters even to a host that does not know the set: it advertises a home
    /// within range, or asks who holds a key.
    pub(crate) const fn opens_set(&self) -> bool {
        match self {
            Self::Advert(_) | Self::Query(_) => true,
            // The sum of an empty list is 0. The sum of any other list is 0 with probability 2^-64.
            Self::Hello(hello) => hello.sum != 0,
            Self::Reach(_) | Self::Have(_) | Self::Reply(_) => false,
        }
    }

    /// The set that a message is about, and the message.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Name, Self), DecodeError> {
        let mut reader = opened(bytes)?;
        let kind = reader.byte()?;
        let set = name(&mut reader)?;
        let message = match kind {
            ADVERT => Self::Advert(Advert::read(&mut reader)?),
            REACH => Self::Reach(Reach::read(&mut reader)?),
            HELLO => Self::Hello(Hello::read(&mut reader)?),
            HAVE => Self::Have(read_have(&mut reader)?),
            QUERY => Self::Query(Query::read(&mut reader)?),
            REPLY => Self::Reply(Reply::read(&mut reader)?),
            _ => return Err(DecodeError::Malformed("unknown kind of message")),
        };
        reader.end()?;
        Ok((set, message))
    }
}

impl Version {
    fn write(self, out: &mut Vec<u8>) {
        put_varint(out, self.incarnation.0);
        put_varint(out, self.epoch.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { incarnation: Incarnation(reader.varint()?), epoch: epoch(reader)? })
    }
}

impl Advert {
    fn write(&self, out: &mut Vec<u8>) {
        put_name(out, &self.home);
        self.version.write(out);
        put_varint(out, self.base.map_or(0, |base| base.0 + 1));
        out.push(self.hops);
        put_scheme(out, &self.scheme);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        for number in [self.facts.items, self.facts.links, self.facts.filters] {
            put_varint(out, number);
        }
        put_varint(out, self.part.into());
        put_varint(out, self.parts.into());
        out.extend_from_slice(&self.bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, version) = (name(reader)?, Version::read(reader)?);
        let base = reader.varint()?.checked_sub(1).map(Epoch);
        let (hops, scheme, checksum) = (distance(reader)?, scheme(reader)?, reader.u64()?);
        let facts =
            Facts { items: reader.varint()?, links: reader.varint()?, filters: reader.varint()? };
        let (part, parts) = (reader.varint32()?, reader.varint32()?);
        if part >= parts || parts > MAX_PARTS {
            return Err(DecodeError::Malformed("a part is out of range"));
        }
        let bytes = reader.take_all().to_vec();
        Ok(Self { home, version, base, hops, scheme, checksum, facts, part, parts, bytes })
    }
}

impl Reach {
    fn write(&self, out: &mut Vec<u8>) {
        put_name(out, &self.home);
        self.version.write(out);
        out.push(self.hops.unwrap_or(0));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, version) = (name(reader)?, Version::read(reader)?);
        Ok(Self { home, version, hops: Some(reader.byte()?).filter(|hops| *hops > 0) })
    }
}

impl Hello {
    fn write(&self, out: &mut Vec<u8>) {
        put_varint(out, self.incarnation.0);
        out.extend_from_slice(&self.sum.to_le_bytes());
        let Numbered { number, by, plan } = &self.plan;
        put_varint(out, *number);
        put_name(out, by);
        out.extend([plan.kind.code(), plan.depth]);
        put_varint(out, plan.items);
        put_varint(out, plan.filters);
        out.extend_from_slice(&plan.false_positive.to_bits().to_le_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (incarnation, sum) = (Incarnation(reader.varint()?), reader.u64()?);
        let (number, by) = (reader.varint()?, name(reader)?);
        let [kind, depth] = reader.array()?;
        let kind = EntryKind::from_code(kind);
        let plan = Plan {
            kind: kind.ok_or(DecodeError::Malformed("unknown kind of entry"))?,
            depth,
            items: reader.varint()?,
            filters: reader.varint()?,
            false_positive: f64::from_bits(reader.u64()?),
        };
        plan.shape()?;
        Ok(Self { incarnation, sum, plan: Numbered { number, by, plan } })
    }
}

impl KnownHome {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_name(out, &self.home);
        self.version.write(out);
        out.push(self.hops);
    }
}

fn write_have(homes: &[KnownHome], out: &mut Vec<u8>) {
    put_varint(out, homes.len() as u64);
    homes.iter().for_each(|known| known.write(out));
}

fn read_have(reader: &mut Reader<'_>) -> Result<Vec<KnownHome>, DecodeError> {
    let mut homes = Vec::new();
    for _ in 0..bounded(reader, MAX_HOMES as u64)? {
        let (home, version) = (name(reader)?, Version::read(reader)?);
        homes.push(KnownHome { home, version, hops: distance(reader)? });
    }
    Ok(homes)
}

impl Query {
    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.id);
        out.extend([self.hops, self.limit]);
        put_varint(out, self.walk.into());
        put_varint(out, self.patience_ms.into());
        out.extend_from_slice(&self.key);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = id(reader)?;
        let [hops, limit] = reader.array()?;
        let (walk, patience_ms) = (reader.varint32()?, reader.varint32()?);
        let key = reader.take_all().to_vec();
        if key.len() > LONGEST_KEY {
            return Err(DecodeError::Malformed("a key is too long"));
        }
        Ok(Self { id, hops, limit, walk, patience_ms, key })
    }
}

impl Reply {
    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.id);
        out.push(match (self.done, self.is_complete) {
            (false, _) => MORE,
            (true, true) => DONE,
            (true, false) => GIVEN_UP,
        });
        put_varint(out, self.walk.into());
        put_varint(out, self.holders.len() as u64);
        for Holder { path } in &self.holders {
            put_varint(out, path.len() as u64);
            path.iter().for_each(|host| put_name(out, host));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = id(reader)?;
        let (done, is_complete) = match reader.byte()? {
            MORE => (false, true),
            DONE => (true, true),
            GIVEN_UP => (true, false),
            _ => return Err(DecodeError::Malformed("a reply is the last or not")),
        };
        let walk = reader.varint32()?;
        let mut holders = Vec::new();
        for _ in 0..bounded(reader, MAX_HOLDERS as u64)? {
            let hosts = bounded(reader, MAX_PATH as u64)?;
            if hosts == 0 {
                return Err(DecodeError::Malformed("a path has an end"));
            }
            let path = (0..hosts).map(|_| name(reader)).collect::<Result<_, _>>()?;
            holders.push(Holder { path });
        }
        Ok(Self { id, done, is_complete, walk, holders })
    }
}

fn put_id(out: &mut Vec<u8>, id: &QueryId) {
    put_name(out, &id.host);
    put_varint(out, id.incarnation.0);
    put_varint(out, id.number);
}

fn id(reader: &mut Reader<'_>) -> Result<QueryId, DecodeError> {
    let (host, incarnation) = (name(reader)?, Incarnation(reader.varint()?));
    Ok(QueryId { host, incarnation, number: reader.varint()? })
}

fn distance(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    match reader.byte()? {
        0 => Err(DecodeError::Malformed("a home is at least a hop away")),
        hops => Ok(hops),
    }
}

/// Bytes of the message in which a home sends its whole filter. For simulations.
#[must_use]
pub fn advert_bytes(set: &Name, home: &Name, filters: &Filters<'_>) -> usize {
    let components = filters.components.iter().zip(0..);
    let components =
        components.map(|(bits, id)| ImageComponent::new(ComponentId(id), (*bits).clone()));
    let image = Image::new(*filters.scheme, components.collect());
    let advert = Advert {
        home: home.clone(),
        version: Version { incarnation: Incarnation(1), epoch: Epoch(1) },
        base: None,
        hops: 1,
        scheme: *filters.scheme,
        checksum: image.checksum(),
        facts: Facts::default(),
        part: 0,
        parts: 1,
        bytes: super::router::coded(&image),
    };
    Message::Advert(advert).encode(set).len()
}

/// Bytes of the message that advertises a distance without a filter.
#[must_use]
pub fn reach_bytes(set: &Name, home: &Name) -> usize {
    let version = Version { incarnation: Incarnation(1), epoch: Epoch(1) };
    Message::Reach(Reach { home: home.clone(), version, hops: Some(1) }).encode(set).len()
}
