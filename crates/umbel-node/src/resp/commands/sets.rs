//! umbel's own commands, except those that are executed as runs of keys.

use std::time::Duration;

use umbel::replica::Policy;

use super::{change_in_parts, number, off_the_workers, options, options_and_flags, set, text};
use crate::resp::context::{Context, Refusal};
use crate::resp::request::Arguments;
use crate::resp::slow::{Limits, Slow};
use crate::{ChainQuery, Confirm, ConfirmError, Host, HostError, Lifetime, Reserve};

/// An error of the host, with its own text.
pub(super) fn because(error: &HostError) -> Refusal {
    error.to_string().into()
}

/// Seconds or `none`, as `ADDEX` and `RESERVE … LIFETIME` take them.
fn lifetime_of(argument: &[u8]) -> Result<Lifetime, Refusal> {
    const REFUSAL: &str = "seconds must be a number above 0, at most 1000000000, or 'none'";
    if argument.eq_ignore_ascii_case(b"none") {
        return Ok(Lifetime::Forever);
    }
    let seconds: f64 = number(argument, 0.0..=1e9, REFUSAL)?;
    let lifetime = Duration::from_secs_f64(seconds);
    if lifetime.is_zero() { Err(REFUSAL.into()) } else { Ok(Lifetime::For(lifetime)) }
}

/// The step of a set of chains, or of a chain query.
pub(super) fn step_of(argument: &[u8]) -> Result<u32, Refusal> {
    number(argument, 1..=ChainQuery::MAX_STEP, "a step must be a whole number of keys, 1 to 1024")
}

fn policy_of(argument: &[u8]) -> Result<Policy, Refusal> {
    let text = str::from_utf8(argument).map_err(|_| Refusal::Borrowed("a policy must be UTF-8"))?;
    text.parse().map_err(|error| format!("{error}").into())
}

fn confirm_of(argument: &[u8]) -> Result<Confirm, Refusal> {
    let text = str::from_utf8(argument).map_err(|_| ConfirmError);
    text.and_then(str::parse).map_err(|error| format!("CONFIRM: {error}").into())
}

pub(super) fn addex(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let set = set(&arguments)?;
    let lifetime = lifetime_of(arguments.get(2).unwrap_or_default())?;
    let keys: Vec<&[u8]> = arguments.from(3).collect();
    Host::check_keys(&keys).map_err(|error| because(&error))?;
    let host = context.host;
    change_in_parts(context, &keys, |part, answers| host.add(set, part, lifetime, answers))
}

pub(super) fn missing(arguments: Arguments<'_, '_>) -> Result<Slow, Refusal> {
    missing_of(arguments, false)
}

pub(super) fn missing_partial(arguments: Arguments<'_, '_>) -> Result<Slow, Refusal> {
    missing_of(arguments, true)
}

fn missing_of(arguments: Arguments<'_, '_>, is_partial: bool) -> Result<Slow, Refusal> {
    let keys = arguments.from(2).map(<[u8]>::to_vec).collect();
    Ok(Slow::Missing { set: set(&arguments)?.to_owned(), keys, is_partial })
}

/// Asks other hosts to keep naming this host for a time after it stops.
pub(super) fn leave(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    const REFUSAL: &str = "a duration such as 60s or 2m is needed, at most 1000000000 seconds; 0: \
                           others do not wait";
    let text = text(&arguments, 1, "a duration")?;
    let absence = umbel::duration::parse_duration(text).ok_or(Refusal::Borrowed(REFUSAL))?;
    // This first publishes pending changes, which may take a moment.
    off_the_workers(|| context.host.leave_for(absence)).map_err(|error| because(&error))?;
    context.replies.ok();
    Ok(())
}

/// Writes a backup of this host.
pub(super) fn backup(arguments: Arguments<'_, '_>) -> Result<Slow, Refusal> {
    let name = match arguments.get(1) {
        None => None,
        Some(_) => Some(text(&arguments, 1, "a backup's name")?.to_owned()),
    };
    Ok(Slow::Backup { name })
}

pub(super) fn locate(arguments: Arguments<'_, '_>) -> Result<Slow, Refusal> {
    const TIMEOUT: &str = "TIMEOUT takes whole milliseconds, 1 to 3600000";
    const HOPS: &str = "HOPS takes a whole number of hops, 1 to 255";
    let (mut limits, mut with_path) = (Limits::default(), false);
    options_and_flags(&arguments, 3, &["WITHPATH"], |word, value| {
        match word {
            "TIMEOUT" => {
                let timeout = number(value, 1..=3_600_000, TIMEOUT)?;
                limits.timeout = Some(Duration::from_millis(timeout));
            }
            "HOPS" => limits.hops = Some(number(value, 1..=255, HOPS)?),
            "WITHPATH" => with_path = true,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let key = arguments.get(2).unwrap_or_default().to_vec();
    Ok(Slow::Locate { set: set(&arguments)?.to_owned(), key, limits, with_path })
}

pub(super) fn hosts(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    let hosts = off_the_workers(|| context.host.hosts());
    context.replies.array(hosts.len());
    hosts.iter().for_each(|host| context.replies.fields(&host.fields()));
    Ok(())
}

pub(super) fn sets(context: &mut Context<'_>, _: Arguments<'_, '_>) -> Result<(), Refusal> {
    let sets = off_the_workers(|| context.host.sets());
    context.replies.array(sets.len());
    sets.iter().for_each(|set| context.replies.text(set));
    Ok(())
}

/// A page of keys. Cursors are opaque: `0` starts, and `0` in the reply means that this was the
/// last page.
pub(super) fn keys(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let cursor = cursor_of(arguments.get(2).unwrap_or_default())?;
    let mut count = 1000;
    options(&arguments, 3, |word, value| {
        const REFUSAL: &str = "COUNT takes a whole number, 1 to 100000";
        if word == "COUNT" {
            count = number(value, 1..=100_000, REFUSAL)?;
        }
        Ok(word == "COUNT")
    })?;
    let set = set(&arguments)?;
    let page = off_the_workers(|| context.host.keys(set, &cursor, count));
    let (page, next) = page.map_err(|error| because(&error))?;
    context.replies.array(2);
    context.replies.text(&next.map_or_else(|| String::from("0"), |next| hex(&next)));
    context.replies.array(page.len());
    page.iter().for_each(|key| context.replies.bulk(key));
    Ok(())
}

fn hex(cursor: &[u8]) -> String {
    cursor.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cursor_of(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    const REFUSAL: &str = "invalid cursor: begin with 0, then use the cursor of the last reply";
    if text == b"0" {
        return Ok(Vec::new());
    }
    let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(Refusal::Borrowed(REFUSAL));
    let (pairs, []) = text.as_chunks::<2>() else { return Err(REFUSAL.into()) };
    pairs.iter().map(|[high, low]| Ok((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}

pub(super) fn info(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let fields = match arguments.len() {
        1 => off_the_workers(|| context.host.status()).fields(),
        _ => {
            let set = set(&arguments)?;
            // Takes a pass over its bits: other tasks of this thread continue elsewhere meanwhile.
            let info = off_the_workers(|| context.host.full_set_info(set));
            info.map_err(|error| because(&error))?.fields()
        }
    };
    context.replies.fields(&fields);
    Ok(())
}

pub(super) fn reserve(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let argument = |index| arguments.get(index).unwrap_or_default();
    let mut plan = Reserve {
        false_positive: number(
            argument(2),
            f64::MIN_POSITIVE..1.0,
            "false_positive must lie between 0 and 1",
        )?,
        capacity: number(argument(3), 1.., "capacity must be a whole number of keys, at least 1")?,
        expected_hosts: None,
        policy: None,
        lifetime: Lifetime::Default,
        confirm: None,
        chains: None,
    };
    options(&arguments, 4, |word, value| {
        match word {
            "HOSTS" => {
                let hosts = number(value, 1.., "HOSTS takes a whole number, at least 1")?;
                plan.expected_hosts = Some(hosts);
            }
            "POLICY" => plan.policy = Some(policy_of(value)?),
            "LIFETIME" => plan.lifetime = lifetime_of(value)?,
            "CHAINS" => plan.chains = Some(step_of(value)?),
            "CONFIRM" => plan.confirm = Some(confirm_of(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let from = context.replies.len();
    let ticket = context.host.reserve(set(&arguments)?, plan).map_err(|error| because(&error))?;
    context.replies.ok();
    context.wrote(ticket, from);
    Ok(())
}

pub(super) fn publish(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    context.host.publish(set(&arguments)?).map_err(|error| because(&error))?;
    context.replies.ok();
    Ok(())
}

/// Sets a policy, or replies with the current one if none is given.
pub(super) fn policy(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let set = set(&arguments)?;
    if arguments.len() == 2 {
        let info = context.host.set_info(set).map_err(|error| because(&error))?;
        match &info.policy {
            Some(policy) => context.replies.text(policy),
            None => context.replies.null(),
        }
        return Ok(());
    }
    let policy = policy_of(arguments.get(2).unwrap_or_default())?;
    let from = context.replies.len();
    let ticket = context.host.set_policy(set, policy).map_err(|error| because(&error))?;
    context.replies.ok();
    context.wrote(ticket, from);
    Ok(())
}
