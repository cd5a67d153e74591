//! Redis's commands about keys: its keys are umbel's sets.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{glob, number, off_the_workers, options, set};
use crate::resp::context::{Context, Refusal};
use crate::resp::request::Arguments;

/// What `TYPE` says of a set.
const TYPE: &str = "umbel";

pub(super) fn dbsize(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.count(context.host.set_count());
    Ok(())
}

pub(super) fn kind(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let exists = set(&arguments).is_ok_and(|set| context.host.knows(set));
    context.replies.simple(if exists { TYPE } else { "none" });
    Ok(())
}

/// Counts a name as often as it is said, as Redis does.
pub(super) fn exists(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let exists = |name: &&[u8]| str::from_utf8(name).is_ok_and(|name| context.host.knows(name));
    let count = off_the_workers(|| arguments.from(1).filter(exists).count());
    context.replies.count(count);
    Ok(())
}

/// Deletes this host's own sets; others keep theirs of the same name.
pub(super) fn del(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let from = context.replies.len();
    let (mut deleted, mut newest) = (0, None);
    for name in arguments.from(1) {
        // No set has such a name.
        let Ok(name) = str::from_utf8(name) else { continue };
        // A pass over its keys.
        match off_the_workers(|| context.host.delete(name)) {
            Ok((there, ticket)) => {
                deleted += usize::from(there);
                newest = newest.max(Some(ticket));
            }
            Err(_) if !context.host.knows(name) => {}
            Err(error) => {
                return Err(format!("{error}; {deleted} sets were deleted before it").into());
            }
        }
    }
    context.replies.count(deleted);
    if let Some(ticket) = newest {
        context.wrote(ticket, from);
    }
    Ok(())
}

/// Walks in the order of the names' hashes, and the cursor is the last of them: a set that is
/// there from the first call to the last is seen, whatever comes and goes meanwhile, and
/// nothing is remembered in between.
pub(super) fn scan(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let cursor: u64 = number(arguments.get(1).unwrap_or_default(), .., "invalid cursor")?;
    let (mut pattern, mut count, mut mine) = (None, 10_usize, true);
    options(&arguments, 2, |word, value| {
        match word {
            "MATCH" => pattern = Some(glob(value)?),
            "COUNT" => count = number(value, 1.., "COUNT takes a whole number, at least 1")?,
            "TYPE" => mine = value.eq_ignore_ascii_case(TYPE.as_bytes()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let (next, names) = off_the_workers(|| {
        let (next, mut names) = scan_page(context.host.sets(), cursor, count);
        let fits =
            |name: &String| pattern.as_ref().is_none_or(|pattern| pattern.matches(name.as_bytes()));
        names.retain(|name| mine && fits(name));
        (next, names)
    });
    context.replies.array(2);
    context.replies.text(&next.to_string());
    context.replies.array(names.len());
    names.iter().for_each(|name| context.replies.text(name));
    Ok(())
}

/// The next cursor, and the names from this one up to it.
fn scan_page(sets: Vec<String>, cursor: u64, count: usize) -> (u64, Vec<String>) {
    let mut names: Vec<(u64, String)> = sets.into_iter().map(|set| (place(&set), set)).collect();
    names.retain(|(place, _)| *place > cursor);
    names.sort();
    // Names of one place are told together: the cursor cannot stand between them.
    let end = names
        .get(count - 1)
        .map_or(names.len(), |(last, _)| names.partition_point(|(place, _)| place <= last));
    let next = if end < names.len() { names[end - 1].0 } else { 0 };
    names.truncate(end);
    (next, names.into_iter().map(|(_, name)| name).collect())
}

/// A name's place in the walk: never 0, which is the beginning, and 63 bits, since some clients
/// read cursors with a sign.
fn place(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    (hasher.finish() >> 1).max(1)
}
