//! Names such as `/a/b/c`: announce prefixes, and find the longest one of a name.

use std::time::Duration;

use super::sets::because;
use super::{change_in_parts, number, set, text};
use crate::resp::context::{Context, Refusal};
use crate::resp::request::Arguments;
use crate::resp::slow::Slow;
use crate::{Host, HostError, Ticket};

/// A change to a list of prefixes.
type Change = fn(&Host, &str, &[&str], &mut Vec<bool>) -> Result<Ticket, HostError>;

pub(super) fn announce(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    change(context, &arguments, Host::announce)
}

pub(super) fn withdraw(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    change(context, &arguments, Host::withdraw)
}

fn change(
    context: &mut Context<'_>,
    arguments: &Arguments<'_, '_>,
    change: Change,
) -> Result<(), Refusal> {
    let set = set(arguments)?;
    let names: Result<Vec<&str>, _> = (2..arguments.len()).map(|at| name(arguments, at)).collect();
    let names = names?;
    Host::check_names(&names).map_err(|error| because(&error))?;
    let host = context.host;
    change_in_parts(context, &names, |part, answers| change(host, set, part, answers))
}

/// Answers from memory.
pub(super) fn longest(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let found = context.host.match_name(set(&arguments)?, name(&arguments, 2)?);
    context.replies.announced(found.map_err(|error| because(&error))?.as_ref());
    Ok(())
}

/// Answers after asking the hosts that memory names.
pub(super) fn confirm(arguments: Arguments<'_, '_>) -> Result<Slow, Refusal> {
    const REFUSAL: &str = "CONFIRM takes whole milliseconds, 1 to 3600000";
    let mut milliseconds = 0;
    super::options(&arguments, 3, |word, value| {
        if word == "CONFIRM" {
            milliseconds = number(value, 1..=3_600_000, REFUSAL)?;
        }
        Ok(word == "CONFIRM")
    })?;
    let (set, name) = (set(&arguments)?.to_owned(), name(&arguments, 2)?.to_owned());
    Ok(Slow::Match { set, name, timeout: Duration::from_millis(milliseconds) })
}

fn name<'a>(arguments: &Arguments<'a, '_>, index: usize) -> Result<&'a str, Refusal> {
    text(arguments, index, "a name")
}
