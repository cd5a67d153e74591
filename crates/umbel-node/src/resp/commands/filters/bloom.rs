//! Bloom filters: `BF.RESERVE`, `BF.INSERT`, `BF.INFO` and `BF.DEBUG`.

use super::options::{self, Insert};
use super::{after, create, filter_of, status};
use crate::Ticket;
use crate::filter_kind::{Bloom, FilterKind};
use crate::host::{FilterStatus, FilterType};
use crate::resp::commands::{aside_if_many, wrong_number};
use crate::resp::context::Context;
use crate::resp::error_line::{ErrorLine, error_line};
use crate::resp::request::Arguments;
use crate::resp::run::{FULL, Run};

pub(super) fn reserve(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let bloom = options::reserve_bloom(&arguments)?;
    create(context, &arguments, FilterKind::Bloom(bloom))
}

pub(super) fn insert(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let Some(insert) = options::insert_bloom(&arguments)? else {
        return Err(wrong_number("bf.insert"));
    };
    let Insert { create, items } = insert;
    let set = filter_of(context, &arguments)?;
    let items: Vec<&[u8]> = arguments.from(items).collect();
    crate::Host::check_keys(&items).map_err(|error| error_line(error.into()))?;
    let (host, mut answers, mut newest) = (context.host, Vec::new(), Ticket::NONE);
    aside_if_many(items.len(), || {
        for part in items.chunks(Run::BATCH) {
            let from = answers.len();
            let added = host.add_to_bloom(&set, part, create, &mut answers);
            newest = newest.max(added.map_err(|error| after(error_line(error), from))?);
            if answers.len() < from + part.len() {
                break;
            }
        }
        Ok::<_, ErrorLine>(())
    })?;
    let (from, is_full) = (context.replies.len(), answers.len() < items.len());
    context.replies.array(answers.len() + usize::from(is_full));
    answers.iter().for_each(|new| context.replies.flag(*new));
    if is_full {
        context.replies.error_line(FULL);
    }
    context.wrote(newest, from);
    Ok(())
}

pub(super) fn card(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let set = filter_of(context, &arguments)?;
    let is_there = context.host.filter_kind(&set).is_some();
    let keys = if is_there { status(context, &arguments, FilterType::Bloom)?.keys } else { 0 };
    context.replies.integer(keys as i64);
    Ok(())
}

/// The fields of `BF.INFO`: the word that requests a single one, and its name in the reply.
const FIELDS: [(&str, &str); 5] = [
    ("CAPACITY", "Capacity"),
    ("SIZE", "Size"),
    ("FILTERS", "Number of filters"),
    ("ITEMS", "Number of items inserted"),
    ("EXPANSION", "Expansion rate"),
];

pub(super) fn info(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let status = status(context, &arguments, FilterType::Bloom)?;
    let values = values(&status);
    let Some(word) = arguments.get(2) else {
        context.replies.map(FIELDS.len());
        for ((_, name), value) in FIELDS.iter().zip(values) {
            context.replies.simple(name);
            write_value(context, value);
        }
        return Ok(());
    };
    let is_asked = |(field, _): &(&str, &str)| word.eq_ignore_ascii_case(field.as_bytes());
    let place = FIELDS.iter().position(is_asked).ok_or("Invalid information value")?;
    context.replies.single(FIELDS[place].1);
    write_value(context, values[place]);
    Ok(())
}

fn write_value(context: &mut Context<'_>, value: Option<u64>) {
    match value {
        Some(value) => context.replies.integer(i64::try_from(value).unwrap_or(i64::MAX)),
        None => context.replies.null(),
    }
}

/// The values in the order of [`FIELDS`].
fn values(status: &FilterStatus) -> [Option<u64>; 5] {
    let bloom = shape(status);
    let stack = bloom.stack(status.keys);
    let expansion = bloom.expansion.map(u64::from);
    [Some(stack.capacity), Some(status.bytes), Some(stack.filters), Some(status.keys), expansion]
}

/// A set that was not created by a Redis client is reported as a filter with the defaults.
fn shape(status: &FilterStatus) -> Bloom {
    match status.kind {
        Some(FilterKind::Bloom(bloom)) => bloom,
        _ => Bloom::default(),
    }
}

/// `BF.DEBUG`: in RedisBloom's format, with umbel's numbers.
pub(super) fn debug(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let status = status(context, &arguments, FilterType::Bloom)?;
    let bloom = shape(&status);
    let stack = bloom.stack(status.keys);
    context.replies.array(2);
    context.replies.text(&format!("size:{}", status.keys));
    context.replies.text(&format!(
        "filters:{} capacity:{} size:{} ratio:{}",
        stack.filters, stack.capacity, status.keys, bloom.error_rate
    ));
    Ok(())
}
