//! `SCANDUMP` and `LOADCHUNK`: a filter as chunks that another umbel host loads.
//!
//! ```text
//! header   "umbel filter 1\n", JSON: kind, deleted; check, u64 little-endian
//! keys     "umbel keys 1\n", for each key: repeats, u32; length, u32; the key; check, u64
//! ```
//!
//! The check is a hash of all bytes before it. Chunks contain keys and not bits: so they are not
//! compatible with RedisBloom, whose chunks are refused.

use serde::{Deserialize, Serialize};
use umbel::KeyHasher;

use super::options::whole_number;
use super::{EXISTS, create, filter_of, ok, status};
use crate::Ticket;
use crate::filter_kind::{Bloom, FilterKind};
use crate::host::FilterType;
use crate::resp::commands::{aside_if_many, off_the_workers};
use crate::resp::context::Context;
use crate::resp::dumps::{BEGIN, END};
use crate::resp::error_line::{ErrorLine, WRONG_TYPE, error_line};
use crate::resp::request::Arguments;
use crate::resp::run::Run;

const HEADER: &[u8] = b"umbel filter 1\n";
const KEYS: &[u8] = b"umbel keys 1\n";

/// RedisBloom's error texts for dumps: each kind of filter has its own.
#[derive(Debug)]
struct Words {
    of: FilterType,
    /// `SCANDUMP` with an iterator that is not a number.
    unreadable_scan: &'static str,
    /// `LOADCHUNK` with an iterator that is not a number.
    unreadable_load: &'static str,
    /// An iterator at which there can be no chunk.
    bad_place: &'static str,
    bad_header: &'static str,
    bad_chunk: &'static str,
}

const BLOOM: Words = Words {
    of: FilterType::Bloom,
    unreadable_scan: "Second argument must be numeric",
    unreadable_load: "ERR Second argument must be numeric",
    bad_place: "ERR invalid offset - no link found",
    bad_header: "ERR received bad data",
    bad_chunk: "ERR received bad data",
};
const CUCKOO: Words = Words {
    of: FilterType::Cuckoo,
    unreadable_scan: "Invalid position",
    unreadable_load: "Invalid position",
    bad_place: "Invalid position",
    bad_header: "Invalid header",
    bad_chunk: "Couldn't load chunk!",
};

impl Words {
    /// The iterator of a command, if it is a number. For a cuckoo filter a wrong one is reported
    /// before the key is looked up.
    fn place(&self, arguments: &Arguments<'_, '_>, min: i64) -> Result<Option<i64>, ErrorLine> {
        let place = whole_number(arguments.get(2).unwrap_or_default());
        match self.of {
            FilterType::Cuckoo if place.is_none_or(|place| place < min) => {
                Err(self.bad_place.into())
            }
            _ => Ok(place),
        }
    }
}

/// A chunk ends with the first page that reaches this size. With that page it is still shorter than
/// the maximum argument.
const CHUNK_BYTES: usize = 256 << 10;
/// Keys per page, each of at most 32 KiB.
const PAGE: usize = 15;
/// Maximum number of pages that are read for a chunk: pages of expired keys add nothing to it.
const MAX_PAGES: usize = 4096;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    kind: FilterKind,
    deleted: u64,
}

pub(super) fn scan_bloom(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    scan(context, &arguments, &BLOOM)
}

pub(super) fn scan_cuckoo(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    scan(context, &arguments, &CUCKOO)
}

fn scan(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    words: &Words,
) -> Result<(), ErrorLine> {
    let place = words.place(arguments, 0)?;
    let status = status(context, arguments, words.of)?;
    let place = place.ok_or(words.unreadable_scan)?;
    if place == 0 {
        let kind = status.kind.unwrap_or(FilterKind::Bloom(Bloom::default()));
        let header = Header { kind, deleted: status.deleted };
        let json = serde_json::to_vec(&header).map_err(|error| format!("ERR {error}"))?;
        reply(context, BEGIN, &sealed([HEADER, &json].concat()));
        return Ok(());
    }
    if place == END {
        end(context, words);
        return Ok(());
    }
    let set = filter_of(context, arguments)?;
    let cursor = context.clients.dumps.find(&set, place);
    let cursor = cursor.ok_or("ERR this dump is not known any more: begin again with 0")?;
    let (chunk, next) = off_the_workers(|| chunk_of_keys(context, &set, cursor));
    match next {
        None if chunk.is_empty() => end(context, words),
        None => reply(context, END, &chunk),
        Some(next) => {
            let place = context.clients.dumps.note(&set, next);
            reply(context, place, &chunk);
        }
    }
    Ok(())
}

/// Replies that nothing is left: 0 and, as RedisBloom does, an empty string for a Bloom filter and
/// null for a cuckoo filter.
fn end(context: &mut Context<'_>, words: &Words) {
    match words.of {
        FilterType::Bloom => reply(context, 0, &[]),
        FilterType::Cuckoo => {
            context.replies.array(2);
            context.replies.integer(0);
            context.replies.null();
        }
    }
}

fn reply(context: &mut Context<'_>, place: i64, chunk: &[u8]) {
    context.replies.array(2);
    context.replies.integer(place);
    context.replies.bulk(chunk);
}

/// A chunk of keys from a cursor on, and the next cursor; an empty chunk if no key is left.
fn chunk_of_keys(context: &Context<'_>, set: &str, cursor: Vec<u8>) -> (Vec<u8>, Option<Vec<u8>>) {
    let (mut chunk, mut cursor) = (KEYS.to_vec(), Some(cursor));
    for _ in 0..MAX_PAGES {
        let Some(from) = cursor.take_if(|_| chunk.len() < CHUNK_BYTES) else { break };
        let page = context.host.filter_page(set, &from, PAGE);
        for (repeats, key) in page.keys {
            chunk.extend_from_slice(&repeats.to_le_bytes());
            chunk.extend_from_slice(&(key.len() as u32).to_le_bytes());
            chunk.extend_from_slice(&key);
        }
        cursor = page.next;
    }
    match chunk.len() == KEYS.len() && cursor.is_none() {
        true => (Vec::new(), None),
        false => (sealed(chunk), cursor),
    }
}

pub(super) fn load_bloom(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    load(context, &arguments, &BLOOM)
}

pub(super) fn load_cuckoo(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    load(context, &arguments, &CUCKOO)
}

fn load(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    words: &Words,
) -> Result<(), ErrorLine> {
    let place = words.place(arguments, BEGIN)?.ok_or(words.unreadable_load)?;
    let data = arguments.get(3).unwrap_or_default();
    if place == BEGIN {
        return load_header(context, arguments, words, data);
    }
    status(context, arguments, words.of)?;
    if place < BEGIN {
        return Err(words.bad_place.into());
    }
    let set = filter_of(context, arguments)?;
    let keys = keys_of(data).ok_or(words.bad_chunk)?;
    let (host, of) = (context.host, words.of);
    let loaded = aside_if_many(keys.len(), || {
        keys.chunks(Run::BATCH).try_fold(Ticket::NONE, |newest, part| {
            host.load_filter(&set, of, part).map(|ticket| newest.max(ticket))
        })
    });
    ok(context, loaded.map_err(error_line)?);
    Ok(())
}

/// Creates the filter from its header.
fn load_header(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    words: &Words,
    data: &[u8],
) -> Result<(), ErrorLine> {
    let set = filter_of(context, arguments)?;
    if let Some(there) = context.host.filter_kind(&set) {
        return Err(if words.of.fits(there) { EXISTS } else { WRONG_TYPE }.into());
    }
    let header = header_of(data).filter(|header| words.of.fits(Some(header.kind)));
    let Header { kind, deleted } = header.ok_or(words.bad_header)?;
    create(context, arguments, kind)?;
    if deleted > 0 {
        // The reply `OK` waits for this write as well.
        let ticket = context.host.set_filter_deleted(&set, deleted).map_err(error_line)?;
        context.ticket = context.ticket.max(ticket);
    }
    Ok(())
}

fn header_of(data: &[u8]) -> Option<Header> {
    serde_json::from_slice(opened(data)?.strip_prefix(HEADER)?).ok().filter(is_in_range)
}

/// Whether a command could have created a filter with these parameters.
fn is_in_range(header: &Header) -> bool {
    let capacity = 1..=1 << 30;
    match header.kind {
        FilterKind::Bloom(bloom) => {
            bloom.error_rate > 0.0
                && bloom.error_rate < 1.0
                && capacity.contains(&bloom.capacity)
                && bloom.expansion.is_none_or(|expansion| (1..=32_768).contains(&expansion))
        }
        FilterKind::Cuckoo(cuckoo) => {
            capacity.contains(&cuckoo.capacity)
                && (1..=255).contains(&cuckoo.bucket_size)
                && cuckoo.max_iterations <= 65_535
                && cuckoo.expansion <= 32_768
        }
    }
}

/// The keys of a chunk, each with its repeats.
fn keys_of(data: &[u8]) -> Option<Vec<(u32, &[u8])>> {
    let (mut rest, mut keys) = (opened(data)?.strip_prefix(KEYS)?, Vec::new());
    while !rest.is_empty() {
        let (repeats, after) = rest.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let (key, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        keys.push((u32::from_le_bytes(*repeats), key));
        rest = after;
    }
    Some(keys)
}

/// Appends the check.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let check = KeyHasher::default().hash(&bytes).get();
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

/// Verifies and removes the check; `None` if it is wrong.
fn opened(bytes: &[u8]) -> Option<&[u8]> {
    let (sealed, check) = bytes.split_last_chunk()?;
    (KeyHasher::default().hash(sealed).get() == u64::from_le_bytes(*check)).then_some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter_kind::Cuckoo;

    #[test]
    fn chunks_are_read_as_they_were_written_and_nothing_else_is() {
        let chunk = sealed([KEYS, &7_u32.to_le_bytes(), &2_u32.to_le_bytes(), b"ab"].concat());
        assert_eq!(keys_of(&chunk), Some(vec![(7, &b"ab"[..])]));
        for end in 0..chunk.len() {
            assert_eq!(keys_of(&chunk[..end]), None);
            let mut damaged = chunk.clone();
            damaged[end] ^= 1;
            assert_eq!(keys_of(&damaged), None);
        }
        let short = sealed([KEYS, &7_u32.to_le_bytes(), &3_u32.to_le_bytes(), b"ab"].concat());
        assert_eq!(keys_of(&short), None, "a length that leads beyond the end");
    }

    #[test]
    fn headers_out_of_range_are_refused() {
        let header = |kind| {
            let json = serde_json::to_vec(&Header { kind, deleted: 3 }).unwrap();
            header_of(&sealed([HEADER, &json].concat()))
        };
        let (bloom, cuckoo) = (Bloom::default(), Cuckoo::default());
        assert_eq!(header(FilterKind::Bloom(bloom)).unwrap().kind, FilterKind::Bloom(bloom));
        assert_eq!(header(FilterKind::Cuckoo(cuckoo)).unwrap().deleted, 3);
        for error_rate in [0.0, 1.0, -1.0] {
            assert!(header(FilterKind::Bloom(Bloom { error_rate, ..bloom })).is_none());
        }
        assert!(header(FilterKind::Bloom(Bloom { capacity: 0, ..bloom })).is_none());
        assert!(header(FilterKind::Bloom(Bloom { expansion: Some(0), ..bloom })).is_none());
        assert!(header(FilterKind::Cuckoo(Cuckoo { bucket_size: 0, ..cuckoo })).is_none());
        assert!(header_of(b"").is_none() && header_of(&sealed(HEADER.to_vec())).is_none());
    }
}
