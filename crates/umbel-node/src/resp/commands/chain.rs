//! Chains of keys: how many leading keys each host holds.

use super::sets::{because, step_of};
use super::{aside_if_many, number, set};
use crate::ChainQuery;
use crate::resp::context::{Context, Refusal};
use crate::resp::request::Arguments;

pub(super) fn chain(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let (query, first) = query_of(&arguments)?;
    let keys: Vec<&[u8]> = arguments.from(first).collect();
    let (set, host) = (set(&arguments)?, context.host);
    let before = host.coverage();
    let replies = &mut *context.replies;
    replies.map(3);
    replies.text("hosts");
    let written = replies.len();
    // The number of hosts is known only when all are written.
    let mut hosts = 0;
    let mut show = |name: &str, depth: u32| {
        hosts += 1;
        replies.array(2);
        replies.text(name);
        replies.integer(depth.into());
    };
    aside_if_many(keys.len(), || host.chain(set, &keys, query, &mut show))
        .map_err(|error| because(&error))?;
    replies.array_before(written, hosts);
    let coverage = host.coverage().and(&before);
    replies.text("complete");
    replies.flag(coverage.complete);
    replies.text("missing_hosts");
    replies.array(coverage.missing_hosts.len());
    coverage.missing_hosts.iter().for_each(|missing| replies.text(&missing.to_string()));
    Ok(())
}

/// The query, and the index of the first key. Each option is recognised once, so that a chain whose
/// first key is the name of an option can be queried: after both options.
fn query_of(arguments: &Arguments<'_, '_>) -> Result<(ChainQuery, usize), Refusal> {
    const LIMIT: &str = "LIMIT takes a whole number of hosts, at least 1";
    const NO_KEY: &str = "a chain has at least one key";
    let (mut query, mut next) = (ChainQuery::default(), 2);
    let (mut has_step, mut has_limit) = (false, false);
    loop {
        let word = arguments.get(next).ok_or(Refusal::Borrowed(NO_KEY))?;
        let value = || arguments.get(next + 1).ok_or(Refusal::Borrowed(NO_KEY));
        if !has_step && word.eq_ignore_ascii_case(b"STEP") {
            (query.step, has_step) = (step_of(value()?)?, true);
        } else if !has_limit && word.eq_ignore_ascii_case(b"LIMIT") {
            (query.limit, has_limit) = (number(value()?, 1.., LIMIT)?, true);
        } else {
            return Ok((query, next));
        }
        next += 2;
    }
}
