//! Redis's commands about a whole server: what is deleted, and what is on disk.

use super::off_the_workers;
use crate::resp::context::{Context, Refusal};
use crate::resp::database::Database;
use crate::resp::request::Arguments;

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

/// Deletes own sets and strings, of a database or of all.
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

/// Every write is on disk before it is answered: there is nothing to save but what is under way.
pub(super) fn save(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    match context.host.is_durable() {
        true => {
            settle(context);
            Ok(())
        }
        false => Err("this host keeps its keys in memory: it has no folder to save them in".into()),
    }
}

/// What Redis would write and read again is here already; what is on its way to the disk is waited for.
pub(super) fn reload(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    settle(context);
    Ok(())
}

fn settle(context: &mut Context<'_>) {
    let (from, ticket) = (context.replies.len(), context.host.ticket());
    context.replies.ok();
    context.wrote(ticket, from);
}
