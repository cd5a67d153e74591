//! Redis's commands about keys: a key of Redis is a set of umbel.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{glob, number, off_the_workers, options};
use crate::Host;
use crate::filter_kind::FilterKind;
use crate::resp::context::{Context, Refusal};
use crate::resp::request::Arguments;

/// The `TYPE` of a set that no Redis client created as a filter, or that only other hosts have.
const TYPE: &str = "umbel";

pub(super) fn dbsize(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    let (host, database) = (context.host, context.database());
    let is_here = |set: &&String| database.key_in(set).is_some();
    let sets = off_the_workers(|| host.sets().iter().filter(is_here).count());
    context.replies.count(sets);
    Ok(())
}

pub(super) fn kind(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let key = arguments.get(1).unwrap_or_default();
    let set = str::from_utf8(key).map(|key| context.database().set_of(key));
    context.replies.simple(match set {
        _ if context.is_string(key) => "string",
        Ok(set) if context.host.knows(&set) => type_of(context.host, &set),
        _ => "none",
    });
    Ok(())
}

/// The type of a known set.
fn type_of(host: &Host, set: &str) -> &'static str {
    host.filter_kind(set).flatten().map_or(TYPE, FilterKind::type_name)
}

/// `KEYS pattern`
pub(super) fn keys(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let pattern = glob(arguments.get(1).unwrap_or_default())?;
    let (host, database) = (context.host, context.database());
    let fits = |key: &str| pattern.matches(key.as_bytes());
    let sets = off_the_workers(|| {
        let mut sets = host.sets();
        sets.retain(|set| database.key_in(set).is_some_and(fits));
        sets
    });
    context.replies.array(sets.len());
    sets.iter().filter_map(|set| database.key_in(set)).for_each(|key| context.replies.text(key));
    Ok(())
}

/// Replies as Redis does for a key without expiry, or for one that does not exist.
pub(super) fn time_to_live(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let key = arguments.get(1).unwrap_or_default();
    let set = str::from_utf8(key).map(|key| context.database().set_of(key));
    let is_there = context.is_string(key) || set.is_ok_and(|set| context.host.knows(&set));
    context.replies.integer(if is_there { -1 } else { -2 });
    Ok(())
}

/// Replies that nothing changed: sets have no lifetime that could be removed.
pub(super) fn persist(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.integer(0);
    Ok(())
}

/// Counts a name as often as it is given, as Redis does.
pub(super) fn exists(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let database = context.database();
    let is_set = |key: &[u8]| {
        let key = str::from_utf8(key);
        key.is_ok_and(|key| context.host.knows(&database.set_of(key)))
    };
    let exists = |key: &&[u8]| context.is_string(key) || is_set(key);
    let count = off_the_workers(|| arguments.from(1).filter(exists).count());
    context.replies.count(count);
    Ok(())
}

/// Deletes this host's own sets and strings; other hosts keep their sets of the same names.
pub(super) fn del(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let from = context.replies.len();
    let (mut deleted, mut newest) = (0, None);
    let database = context.database();
    for key in arguments.from(1) {
        deleted += usize::from(context.clients.strings.remove(database, key));
        // No set can have such a name.
        let Ok(key) = str::from_utf8(key) else { continue };
        let name = &*database.set_of(key);
        // Takes a pass over its keys.
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

/// Walks in the order of the names' hashes; the cursor is the last hash. A set that exists from the
/// first call to the last is returned, whatever else is added or deleted meanwhile, and the server
/// keeps no state between calls.
pub(super) fn scan(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let cursor: u64 = number(arguments.get(1).unwrap_or_default(), .., "invalid cursor")?;
    let (mut pattern, mut count, mut wanted) = (None, 10_usize, None);
    options(&arguments, 2, |word, value| {
        match word {
            "MATCH" => pattern = Some(glob(value)?),
            "COUNT" => count = number(value, 1.., "COUNT takes a whole number, at least 1")?,
            "TYPE" => wanted = Some(value),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let (host, database) = (context.host, context.database());
    let (next, names) = off_the_workers(|| {
        let mut sets = host.sets();
        sets.retain(|set| database.key_in(set).is_some());
        let (next, mut names) = scan_page(sets, cursor, count);
        let is_wanted = |set: &str| {
            wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(type_of(host, set).as_bytes()))
        };
        let fits =
            |key: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(key.as_bytes()));
        names.retain(|set| is_wanted(set) && database.key_in(set).is_some_and(fits));
        (next, names)
    });
    context.replies.array(2);
    context.replies.text(&next.to_string());
    context.replies.array(names.len());
    names.iter().filter_map(|set| database.key_in(set)).for_each(|key| context.replies.text(key));
    Ok(())
}

/// The next cursor, and the names between this cursor and the next.
fn scan_page(sets: Vec<String>, cursor: u64, count: usize) -> (u64, Vec<String>) {
    let mut names: Vec<(u64, String)> = sets.into_iter().map(|set| (place(&set), set)).collect();
    names.retain(|(place, _)| *place > cursor);
    names.sort();
    // Names with equal hashes are returned together: a cursor cannot point between them.
    let end = names
        .get(count - 1)
        .map_or(names.len(), |(last, _)| names.partition_point(|(place, _)| place <= last));
    let next = if end < names.len() { names[end - 1].0 } else { 0 };
    names.truncate(end);
    (next, names.into_iter().map(|(_, name)| name).collect())
}

/// A name's position in the walk: never 0, which means the beginning, and 63 bits, since some
/// clients parse cursors as signed numbers.
fn place(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    (hasher.finish() >> 1).max(1)
}
