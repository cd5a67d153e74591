//! Redis's Bloom and cuckoo filters: names, replies and errors as RedisBloom has them.
//!
//! A filter is a set of this host with an exact catalogue, so that no answer here is a false positive.
//! Items that are asked for or added to Bloom filters are executed as runs of keys (`resp::run`); the
//! rest is here. docs/redis.md says what differs from Redis.

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

/// Why a command of RedisBloom that umbel has nothing for is refused.
pub(super) fn unsupported(name: &str) -> Option<Refusal> {
    let (family, _) = name.split_once('.')?;
    let what = match &*family.to_ascii_uppercase() {
        "CMS" => "count-min sketches",
        "TOPK" => "top-k lists",
        "TDIGEST" => "t-digests",
        _ => return None,
    };
    Some(format!("'{name}' is not supported: umbel holds sets of keys, and no {what}").into())
}

/// The set that a command's key is, in the client's database.
fn set_of<'a>(
    context: &Context<'_>,
    arguments: &Arguments<'a, '_>,
) -> Result<Cow<'a, str>, ErrorLine> {
    let key = text(arguments, 1, "the name of a set").map_err(|why| format!("ERR {why}"))?;
    Ok(context.database().set_of(key))
}

/// The set that a command's key is, if it may be a filter.
fn filter_of<'a>(
    context: &Context<'_>,
    arguments: &Arguments<'a, '_>,
) -> Result<Cow<'a, str>, ErrorLine> {
    match context.is_string(arguments.get(1).unwrap_or_default()) {
        true => Err(WRONG_TYPE.into()),
        false => set_of(context, arguments),
    }
}

/// A filter of this host.
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

/// Makes a filter and replies OK.
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

/// Replies OK when a write has settled.
fn ok(context: &mut Context<'_>, ticket: Ticket) {
    let from = context.replies.len();
    context.replies.ok();
    context.wrote(ticket, from);
}

/// An error that came after so many items of a command.
fn after(line: ErrorLine, taken: usize) -> ErrorLine {
    match taken {
        0 => line,
        taken => format!("{line}; {taken} items were taken before").into(),
    }
}
