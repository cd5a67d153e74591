//! `SCANDUMP` and `LOADCHUNK`: a filter as chunks that another umbel host loads.
//!
//! ```text
//! header   "umbel filter 1\n", JSON: kind, deleted; check, u64 little-endian
//! keys     "umbel keys 1\n", for each key: repeats, u32; length, u32; the key; check, u64
//! ```
//!
//! The check is a hash of all that stands before it. Chunks hold keys and not bits, so they are not those
//! of RedisBloom, and RedisBloom's are refused.

use serde::{Deserialize, Serialize};
use umbel::KeyHasher;

use super::options::whole_number;
use super::{create, filter_of, ok, status};
use crate::Ticket;
use crate::filter_kind::{Bloom, FilterKind};
use crate::host::FilterType;
use crate::resp::commands::{aside_if_many, off_the_workers};
use crate::resp::context::Context;
use crate::resp::dumps::{BEGIN, END};
use crate::resp::error_line::{ErrorLine, error_line};
use crate::resp::request::Arguments;
use crate::resp::run::Run;

const HEADER: &[u8] = b"umbel filter 1\n";
const KEYS: &[u8] = b"umbel keys 1\n";
const BAD_DATA: &str = "ERR received bad data";
const BAD_PLACE: &str = "ERR invalid offset - no link found";

/// A chunk ends when it has so many bytes, to which one page more is added: less than an argument may have.
const CHUNK_BYTES: usize = 256 << 10;
/// Keys of a page, of 32 KiB at most each.
const PAGE: usize = 15;
/// Pages that are looked at for a chunk: keys past their lifetime fill none.
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
    scan(context, &arguments, FilterType::Bloom, "Second argument must be numeric")
}

pub(super) fn scan_cuckoo(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    scan(context, &arguments, FilterType::Cuckoo, "Invalid position")
}

fn scan(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    of: FilterType,
    unreadable: &'static str,
) -> Result<(), ErrorLine> {
    let status = status(context, arguments, of)?;
    let place = whole_number(arguments.get(2).unwrap_or_default()).ok_or(unreadable)?;
    if place == 0 {
        let kind = status.kind.unwrap_or(FilterKind::Bloom(Bloom::default()));
        let header = Header { kind, deleted: status.deleted };
        let json = serde_json::to_vec(&header).map_err(|error| format!("ERR {error}"))?;
        reply(context, BEGIN, &sealed([HEADER, &json].concat()));
        return Ok(());
    }
    if place == END {
        reply(context, 0, &[]);
        return Ok(());
    }
    let set = filter_of(context, arguments)?;
    let cursor = context.clients.dumps.find(&set, place);
    let cursor = cursor.ok_or("ERR this dump is not known any more: begin again with 0")?;
    let (chunk, next) = off_the_workers(|| chunk_of_keys(context, &set, cursor));
    let next = match next {
        Some(next) => context.clients.dumps.note(&set, next),
        None if chunk.is_empty() => 0,
        None => END,
    };
    reply(context, next, &chunk);
    Ok(())
}

fn reply(context: &mut Context<'_>, place: i64, chunk: &[u8]) {
    context.replies.array(2);
    context.replies.integer(place);
    context.replies.bulk(chunk);
}

/// Keys from a place on, and where to go on; no bytes if there is no key left.
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
    load(context, &arguments, FilterType::Bloom, "ERR Second argument must be numeric")
}

pub(super) fn load_cuckoo(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    load(context, &arguments, FilterType::Cuckoo, "Invalid position")
}

fn load(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    of: FilterType,
    unreadable: &'static str,
) -> Result<(), ErrorLine> {
    let place = whole_number(arguments.get(2).unwrap_or_default()).ok_or(unreadable)?;
    let data = arguments.get(3).unwrap_or_default();
    if place == BEGIN {
        return load_header(context, arguments, of, data);
    }
    status(context, arguments, of)?;
    if place < BEGIN {
        return Err(BAD_PLACE.into());
    }
    let set = filter_of(context, arguments)?;
    let keys = keys_of(data).ok_or(BAD_DATA)?;
    let host = context.host;
    let loaded = aside_if_many(keys.len(), || {
        keys.chunks(Run::BATCH).try_fold(Ticket::NONE, |newest, part| {
            host.load_filter(&set, of, part).map(|ticket| newest.max(ticket))
        })
    });
    ok(context, loaded.map_err(error_line)?);
    Ok(())
}

/// Makes the filter, as its header says.
fn load_header(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    of: FilterType,
    data: &[u8],
) -> Result<(), ErrorLine> {
    let Header { kind, deleted } =
        header_of(data).filter(|header| of.fits(Some(header.kind))).ok_or(BAD_DATA)?;
    create(context, arguments, kind)?;
    if deleted > 0 {
        let set = filter_of(context, arguments)?;
        // The reply that it was made waits for this as well.
        let ticket = context.host.set_filter_deleted(&set, deleted).map_err(error_line)?;
        context.ticket = context.ticket.max(ticket);
    }
    Ok(())
}

fn header_of(data: &[u8]) -> Option<Header> {
    serde_json::from_slice(opened(data)?.strip_prefix(HEADER)?).ok().filter(is_in_range)
}

/// Whether a filter of these numbers could have been made by a command.
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

/// With its check.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let check = KeyHasher::default().hash(&bytes).get();
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

/// What was sealed, if it is unchanged.
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
