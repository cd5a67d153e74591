//! How transactions begin and end; `burst` queues the commands in between.

use crate::resp::context::{Context, Refusal};
use crate::resp::request::Arguments;

pub(super) fn multi(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    let clients = context.clients;
    context.transaction.begin(&clients.budget, clients.limits.request.request_bytes);
    context.replies.ok();
    Ok(())
}

pub(super) fn exec(_: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    Err("EXEC without MULTI".into())
}

pub(super) fn discard(_: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    Err("DISCARD without MULTI".into())
}

/// Refused: other connections may change a watched key while a transaction is executed, so that a
/// client that relies on `WATCH` would be wrong.
pub(super) fn watch(_: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    Err("'WATCH' is not supported: commands of other clients may run between those of a transaction. \
         Adding and removing keys need no WATCH: their replies say whether something changed"
        .into())
}

/// Does nothing: no key is ever watched.
pub(super) fn unwatch(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    context.replies.ok();
    Ok(())
}
