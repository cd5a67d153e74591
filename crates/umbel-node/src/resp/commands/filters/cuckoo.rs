//! Cuckoo filters: create, add, count, describe.

use super::options::{self, Insert};
use super::{after, create, filter_of, ok, status};
use crate::Ticket;
use crate::filter_kind::{Cuckoo, FilterKind};
use crate::host::{CuckooAdd, CuckooAdded, FilterError, FilterStatus, FilterType};
use crate::resp::commands::{aside_if_many, wrong_number};
use crate::resp::context::Context;
use crate::resp::error_line::{ErrorLine, FULL, error_line};
use crate::resp::request::Arguments;
use crate::resp::run::Run;

pub(super) fn reserve(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    match options::reserve_cuckoo(&arguments)? {
        Some(cuckoo) => create(context, &arguments, FilterKind::Cuckoo(cuckoo)),
        None => Err(wrong_number("cf.reserve")),
    }
}

pub(super) fn add(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    add_one(context, &arguments, false)
}

pub(super) fn add_new(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    add_one(context, &arguments, true)
}

fn add_one(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    only_new: bool,
) -> Result<(), ErrorLine> {
    let set = filter_of(context, arguments)?;
    let item = arguments.get(2).unwrap_or_default();
    let (how, mut answers) =
        (CuckooAdd { create: Some(Cuckoo::default()), only_new }, Vec::with_capacity(1));
    let added = context.host.add_to_cuckoo(&set, &[item], how, &mut answers);
    let ticket = added.map_err(error_line)?;
    if answers.contains(&CuckooAdded::Refused) {
        return Err(FULL.into());
    }
    let from = context.replies.len();
    context.replies.flag(answers.contains(&CuckooAdded::Added));
    context.wrote(ticket, from);
    Ok(())
}

pub(super) fn insert(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let Some(insert) = options::insert_cuckoo(&arguments)? else {
        return Err(wrong_number("cf.insert"));
    };
    let answers = insert_items(context, &arguments, insert, false)?;
    let is_flag = context.replies.has_flags();
    let from = context.replies.len();
    context.replies.array(answers.0.len());
    for answer in &answers.0 {
        match answer {
            // A boolean cannot express that there was no room.
            CuckooAdded::Refused if !is_flag => context.replies.integer(-1),
            answer => context.replies.flag(*answer == CuckooAdded::Added),
        }
    }
    context.wrote(answers.1, from);
    Ok(())
}

/// Its replies are integers in both protocols, because there are three different ones.
pub(super) fn insert_new(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let Some(insert) = options::insert_cuckoo(&arguments)? else {
        return Err(wrong_number("cf.insertnx"));
    };
    let (answers, ticket) = insert_items(context, &arguments, insert, true)?;
    let from = context.replies.len();
    context.replies.array(answers.len());
    for answer in answers {
        context.replies.integer(match answer {
            CuckooAdded::Added => 1,
            CuckooAdded::Exists => 0,
            CuckooAdded::Refused => -1,
        });
    }
    context.wrote(ticket, from);
    Ok(())
}

fn insert_items(
    context: &Context<'_>,
    arguments: &Arguments<'_, '_>,
    Insert { create, items }: Insert<Cuckoo>,
    only_new: bool,
) -> Result<(Vec<CuckooAdded>, Ticket), ErrorLine> {
    let set = filter_of(context, arguments)?;
    let items: Vec<&[u8]> = arguments.from(items).collect();
    crate::Host::check_keys(&items).map_err(|error| error_line(error.into()))?;
    let (host, how) = (context.host, CuckooAdd { create, only_new });
    let (mut answers, mut newest) = (Vec::with_capacity(items.len()), Ticket::NONE);
    aside_if_many(items.len(), || {
        for part in items.chunks(Run::BATCH) {
            match host.add_to_cuckoo(&set, part, how, &mut answers) {
                Ok(ticket) => newest = newest.max(ticket),
                Err(error) => return Err(after(error_line(error), answers.len())),
            }
        }
        Ok(())
    })?;
    Ok((answers, newest))
}

pub(super) fn del(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let set = filter_of(context, &arguments).map_err(|_| "Not found")?;
    let item = arguments.get(2).unwrap_or_default();
    let (was_there, ticket) = match context.host.remove_from_cuckoo(&set, item) {
        Err(FilterError::Host(error)) => return Err(error_line(error.into())),
        removed => removed.map_err(|_| "Not found")?,
    };
    let from = context.replies.len();
    context.replies.flag(was_there);
    context.wrote(ticket, from);
    Ok(())
}

pub(super) fn count(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let set = super::set_of(context, &arguments)?;
    let item = arguments.get(2).unwrap_or_default();
    context.replies.integer(context.host.count_in_cuckoo(&set, item) as i64);
    Ok(())
}

pub(super) fn compact(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    status(context, &arguments, FilterType::Cuckoo).map_err(|_| "Cuckoo filter was not found")?;
    ok(context, Ticket::NONE);
    Ok(())
}

pub(super) fn info(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let status = status(context, &arguments, FilterType::Cuckoo)?;
    let cuckoo = shape(&status);
    let items = status.keys + status.repeats;
    let fields = [
        ("Size", status.bytes),
        ("Number of buckets", cuckoo.buckets()),
        ("Number of filters", cuckoo.stack(items).filters),
        ("Number of items inserted", items),
        ("Number of items deleted", status.deleted),
        ("Bucket size", cuckoo.bucket_size.into()),
        ("Expansion rate", cuckoo.expansion.into()),
        ("Max iterations", cuckoo.max_iterations.into()),
    ];
    context.replies.map(fields.len());
    for (name, value) in fields {
        context.replies.simple(name);
        context.replies.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }
    Ok(())
}

pub(super) fn debug(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let status = status(context, &arguments, FilterType::Cuckoo)?;
    let cuckoo = shape(&status);
    let items = status.keys + status.repeats;
    context.replies.text(&format!(
        "bktsize:{} buckets:{} items:{items} deletes:{} filters:{} max_iterations:{} expansion:{}",
        cuckoo.bucket_size,
        cuckoo.buckets(),
        status.deleted,
        cuckoo.stack(items).filters,
        cuckoo.max_iterations,
        cuckoo.expansion,
    ));
    Ok(())
}

fn shape(status: &FilterStatus) -> Cuckoo {
    match status.kind {
        Some(FilterKind::Cuckoo(cuckoo)) => cuckoo,
        _ => Cuckoo::default(),
    }
}
