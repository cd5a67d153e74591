//! `SET` and `GET`: short strings, for programs that need a key that is not a filter.

use crate::resp::context::Context;
use crate::resp::error_line::{ErrorLine, WRONG_TYPE};
use crate::resp::request::Arguments;
use crate::resp::strings::Strings;

pub(super) fn set(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let argument = |index| arguments.get(index).unwrap_or_default();
    if is_own_set(context, argument(1)) {
        return Err("ERR this key is a set of this host: delete it first".into());
    }
    let kept = context.clients.strings.set(context.database(), argument(1), argument(2));
    kept.map_err(|_| {
        let (max, bytes) = (Strings::MAX_COUNT, Strings::MAX_BYTES);
        format!("ERR a host keeps {max} strings of {bytes} bytes, for tests of clients: it is no store of values")
    })?;
    context.replies.ok();
    Ok(())
}

pub(super) fn get(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), ErrorLine> {
    let key = arguments.get(1).unwrap_or_default();
    match context.clients.strings.get(context.database(), key) {
        Some(value) => context.replies.bulk(&value),
        None if is_own_set(context, key) => return Err(WRONG_TYPE.into()),
        None => context.replies.null(),
    }
    Ok(())
}

fn is_own_set(context: &Context<'_>, key: &[u8]) -> bool {
    let key = str::from_utf8(key).ok();
    key.is_some_and(|key| context.host.filter_kind(&context.database().set_of(key)).is_some())
}
