//! Redis's Bloom and cuckoo filters, with the names, replies and errors of RedisBloom.
//!
//! A filter is a set of this host with an exact catalogue, so that no answer here is a false
//! positive. Commands that test items, or add them to Bloom filters, are executed as runs of keys
//! (`resp::run`); the rest is here. docs/redis.md lists the differences from Redis.

mod bloom;
mod cuckoo;
mod dump;
mod options;
mod table;

use std::borrow::Cow;

pub(super) use table::TABLE;

use super::text;
use crate::Ticket;
use crate::filter_kind::FilterKind;
use crate::host::{FilterStatus, FilterType};
use crate::resp::context::{Context, Refusal};
use crate::resp::error_line::{ErrorLine, NOT_FOUND, WRONG_TYPE, error_line};
use crate::resp::request::Arguments;

const EXISTS: &str = "ERR item exists";

/// The error for a command that users of RedisBloom know but umbel does not support.
pub(super) fn unsupported(name: &str) -> Option<Refusal> {
    let upper = name.to_ascii_uppercase();
    let family = upper.split_once('.').map_or(&*upper, |(family, _)| family);
    let why = match family {
        "CMS" => "umbel holds sets of keys, and no count-min sketches",
        "TOPK" => "umbel holds sets of keys, and no top-k lists",
        "TDIGEST" => "umbel holds sets of keys, and no t-digests",
        "DUMP" | "RESTORE" => "BF.SCANDUMP and CF.SCANDUMP dump a filter, LOADCHUNK loads it",
        "EXPIRE" | "EXPIREAT" | "PEXPIRE" | "PEXPIREAT" | "EXPIRETIME" | "PEXPIRETIME" => {
            "a set does not expire; its keys do, by UMBEL.ADDEX or UMBEL.RESERVE with LIFETIME"
        }
        "RENAME" | "RENAMENX" | "COPY" | "MOVE" => {
            "other hosts know a set by its name; add its keys to another set"
        }
        _ => return None,
    };
    Some(format!("'{name}' is not supported: {why}").into())
}

/// The set for a command's key, in the client's database.
fn set_of<'a>(
    context: &Context<'_>,
    arguments: &Arguments<'a, '_>,
) -> Result<Cow<'a, str>, ErrorLine> {
    let key = text(arguments, 1, "the name of a set").map_err(|why| format!("ERR {why}"))?;
    Ok(context.database().set_of(key))
}

/// The set for a command's key, unless the key is a string.
fn filter_of<'a>(
    context: &Context<'_>,
    arguments: &Arguments<'a, '_>,
) -> Result<Cow<'a, str>, ErrorLine> {
    match context.is_string(arguments.get(1).unwrap_or_default()) {
        true => Err(WRONG_TYPE.into()),
        false => set_of(context, arguments),
    }
}

/// The status of a filter of this host.
fn status(
    context: &Context<'_>,
    arguments: &Arguments<'_, '_>,
    of: FilterType,
) -> Result<FilterStatus, ErrorLine> {
    let set = filter_of(context, arguments)?;
    let status = context.host.filter_status(&set).ok_or(NOT_FOUND)?;
    match of.fits(status.kind) {
        true => Ok(status),
        false => Err(WRONG_TYPE.into()),
    }
}

/// Creates a filter and replies OK.
fn create(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    kind: FilterKind,
) -> Result<(), ErrorLine> {
    let set = filter_of(context, arguments)?;
    let of = match kind {
        FilterKind::Bloom(_) => FilterType::Bloom,
        FilterKind::Cuckoo(_) => FilterType::Cuckoo,
    };
    let created = context.host.create_filter(&set, kind);
    let (made, ticket) = created.map_err(|error| error_line(error.into()))?;
    if !made {
        let there = context.host.filter_kind(&set).flatten();
        return Err(if of.fits(there) { EXISTS } else { WRONG_TYPE }.into());
    }
    ok(context, ticket);
    Ok(())
}

/// Replies OK once a write is durable.
fn ok(context: &mut Context<'_>, ticket: Ticket) {
    let from = context.replies.len();
    context.replies.ok();
    context.wrote(ticket, from);
}

/// An error that came after `taken` items of a command were processed.
fn after(line: ErrorLine, taken: usize) -> ErrorLine {
    match taken {
        0 => line,
        taken => format!("{line}; {taken} items were taken before").into(),
    }
}
