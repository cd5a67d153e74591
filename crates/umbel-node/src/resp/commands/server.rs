//! Redis's commands about the whole server: flushing and saving.

use std::time::{SystemTime, UNIX_EPOCH};

use super::off_the_workers;
use crate::resp::context::{Context, Refusal};
use crate::resp::database::Database;
use crate::resp::request::Arguments;

/// Seconds since 1970, and the microseconds of the second, as text.
pub(super) fn time(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    context.replies.array(2);
    context.replies.text(&since.as_secs().to_string());
    context.replies.text(&since.subsec_micros().to_string());
    Ok(())
}

pub(super) fn flush_all(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    flush(context, &arguments, None)
}

pub(super) fn flush_database(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let database = context.database();
    flush(context, &arguments, Some(database))
}

/// Deletes own sets and strings, of one database or of all.
fn flush(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    of: Option<Database>,
) -> Result<(), Refusal> {
    let is_known =
        |word: &[u8]| word.eq_ignore_ascii_case(b"ASYNC") || word.eq_ignore_ascii_case(b"SYNC");
    if !arguments.get(1).is_none_or(is_known) {
        return Err("syntax error".into());
    }
    let (host, from) = (context.host, context.replies.len());
    let mut deleted = 0;
    let flushed = off_the_workers(|| {
        for set in host.own_sets() {
            if of.is_none_or(|of| of.key_in(&set).is_some()) {
                host.delete(&set)?;
                deleted += 1;
            }
        }
        Ok::<_, crate::HostError>(())
    });
    flushed.map_err(|error| format!("{error}; {deleted} sets were deleted before"))?;
    context.clients.strings.clear(of);
    context.replies.ok();
    context.wrote(host.ticket(), from);
    Ok(())
}

/// Every write is on disk before it is answered: only running writes have to be waited for.
pub(super) fn save(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    match context.host.is_durable() {
        true => {
            settle(context);
            Ok(())
        }
        false => Err("this host keeps its keys in memory: it has no folder to save them in".into()),
    }
}

/// There is nothing to write and read again as in Redis; only running writes are waited for.
pub(super) fn reload(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    settle(context);
    Ok(())
}

fn settle(context: &mut Context<'_>) {
    let (from, ticket) = (context.replies.len(), context.host.ticket());
    context.replies.ok();
    context.wrote(ticket, from);
}
