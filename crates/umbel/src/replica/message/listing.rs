//! Messages about what a host has published: few bytes, however many sets it has.
//!
//! An announcement carries a sequence number that grows with each publication of the host and a sum
//! over all its sets. A receiver that computes a different sum requests what changed after the last
//! publication that it knows. Only if the sums still differ does it request the whole list.

use super::{ANNOUNCE, LIST, LIST_REQUEST};
use crate::codec::{DecodeError, Reader, put_varint};
use crate::key_hash::Digest;
use crate::params::DigestBits;
use crate::replica::fields::{bounded, epoch, name, put_name, put_scheme, scheme};
use crate::replica::{Epoch, Incarnation, Name};
use crate::scheme::Scheme;

/// Summary of what a host has published, sent every few seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Announce {
    pub(crate) home: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) sequence: u64,
    /// Over all sets that the host has published.
    pub(crate) sum: u64,
    /// Some members of one set; each announcement samples another set.
    pub(crate) members: Option<Members>,
}

/// Some members of a set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Members {
    pub(crate) set: Name,
    pub(crate) items: u64,
    pub(crate) digest_bits: DigestBits,
    /// Receivers count those that they deny.
    pub(crate) samples: Vec<Digest>,
}

/// A receiver asks a host which sets changed after a given publication.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListRequest {
    pub(crate) home: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) after: u64,
}

/// Sets in the order of their last publications, or a part of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List {
    pub(crate) home: Name,
    pub(crate) incarnation: Incarnation,
    pub(crate) after: u64,
    /// The last publication that the list covers.
    pub(crate) until: u64,
    /// The host's sequence number and the sum over all its sets, when it replied.
    pub(crate) sequence: u64,
    pub(crate) sum: u64,
    pub(crate) sets: Vec<ListedSet>,
}

/// One set of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedSet {
    pub(crate) set: Name,
    pub(crate) scheme: Scheme,
    pub(crate) epoch: Epoch,
    pub(crate) checksum: u64,
    pub(crate) items: u64,
}

/// The most sets in one part of a list, and the most samples of one set.
pub(crate) const MAX_SETS: usize = 512;
const MAX_SAMPLES: u64 = 64;

impl Announce {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(ANNOUNCE);
        put_name(out, &self.home);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.sequence);
        out.extend_from_slice(&self.sum.to_le_bytes());
        if let Some(members) = &self.members {
            put_name(out, &members.set);
            put_varint(out, members.items);
            out.push(members.digest_bits.get() as u8);
            put_varint(out, members.samples.len() as u64);
            members.samples.iter().for_each(|digest| put_varint(out, digest.get()));
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, incarnation) = (name(reader)?, Incarnation(reader.varint()?));
        let (sequence, sum) = (reader.varint()?, reader.u64()?);
        let members = match reader.is_empty() {
            true => None,
            false => Some(Members::read(reader)?),
        };
        Ok(Self { home, incarnation, sequence, sum, members })
    }
}

impl Members {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (set, items) = (name(reader)?, reader.varint()?);
        let digest_bits = DigestBits::new(reader.byte()?.into())?;
        let mut samples = Vec::new();
        for _ in 0..bounded(reader, MAX_SAMPLES)? {
            let digest = Digest::from_raw(reader.varint()?, digest_bits);
            samples.push(digest.ok_or(DecodeError::Malformed("a digest is too long"))?);
        }
        Ok(Self { set, items, digest_bits, samples })
    }
}

impl ListRequest {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(LIST_REQUEST);
        put_name(out, &self.home);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.after);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, incarnation) = (name(reader)?, Incarnation(reader.varint()?));
        Ok(Self { home, incarnation, after: reader.varint()? })
    }
}

impl List {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(LIST);
        put_name(out, &self.home);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.after);
        put_varint(out, self.until);
        put_varint(out, self.sequence);
        out.extend_from_slice(&self.sum.to_le_bytes());
        put_varint(out, self.sets.len() as u64);
        for set in &self.sets {
            put_name(out, &set.set);
            put_scheme(out, &set.scheme);
            put_varint(out, set.epoch.0);
            out.extend_from_slice(&set.checksum.to_le_bytes());
            put_varint(out, set.items);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (home, incarnation) = (name(reader)?, Incarnation(reader.varint()?));
        let (after, until) = (reader.varint()?, reader.varint()?);
        let (sequence, sum) = (reader.varint()?, reader.u64()?);
        let mut sets = Vec::new();
        for _ in 0..bounded(reader, MAX_SETS as u64)? {
            let (set, scheme) = (name(reader)?, scheme(reader)?);
            let (epoch, checksum, items) = (epoch(reader)?, reader.u64()?, reader.varint()?);
            sets.push(ListedSet { set, scheme, epoch, checksum, items });
        }
        if until < after || sequence < until {
            return Err(DecodeError::Malformed("a list ends before it begins"));
        }
        Ok(Self { home, incarnation, after, until, sequence, sum, sets })
    }
}
