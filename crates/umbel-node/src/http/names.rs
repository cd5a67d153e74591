//! Prefixes of names such as `/a/b`: announce, withdraw, match.

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

use super::key_list::{KeyArray, KeyList};
use super::key_text::{Encoding, KeyPath, SetPath};
use super::locate::timeout;
use super::problem::{Problem, Problems};
use crate::{Coverage, Host, HostError, Ticket};

/// Prefixes that are changed per call.
const PART: usize = 512;

/// The query of routes without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoQuery {}

/// The result of announcing or withdrawing prefixes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Changed {
    /// Prefixes in the request.
    prefixes: usize,
    /// Prefixes that were new or, for a withdrawal, announced.
    changed: usize,
}

/// Announces prefixes of names (lines or a JSON array); creates the set if it is missing.
///
/// All of them or, if one is not a name, none. The response is sent when that is durable.
#[utoipa::path(
    post, path = "/v1/sets/{set}/announce", tag = "names", params(SetPath),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Prefixes such as /a/b"),
    responses((status = 200, description = "They are announced", body = Changed), Problems)
)]
pub(super) async fn announce(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(NoQuery {}): Query<NoQuery>,
    list: KeyList,
) -> Result<Json<Changed>, Problem> {
    change(&host, &list, |part, answers| host.announce(&set, part, answers)).await
}

/// Withdraws announced prefixes of names, one per line or as a JSON array.
///
/// All of them or, if one is not a name, none. The response is sent when that is durable.
#[utoipa::path(
    post, path = "/v1/sets/{set}/withdraw", tag = "names", params(SetPath),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Prefixes such as /a/b"),
    responses((status = 200, description = "They are not announced now", body = Changed), Problems)
)]
pub(super) async fn withdraw(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(NoQuery {}): Query<NoQuery>,
    list: KeyList,
) -> Result<Json<Changed>, Problem> {
    change(&host, &list, |part, answers| host.withdraw(&set, part, answers)).await
}

async fn change(
    host: &Host,
    list: &KeyList,
    mut change: impl FnMut(&[&str], &mut Vec<bool>) -> Result<Ticket, HostError>,
) -> Result<Json<Changed>, Problem> {
    let keys = list.keys(Encoding::Text)?;
    // `list.keys` has checked that they are UTF-8.
    let names: Vec<&str> = keys.iter().filter_map(|key| str::from_utf8(key).ok()).collect();
    let mut answers = Vec::with_capacity(names.len());
    let newest = tokio::task::block_in_place(|| {
        Host::check_names(&names)?;
        let mut newest = change(&[], &mut answers)?;
        for part in names.chunks(PART) {
            newest = newest.max(change(part, &mut answers)?);
        }
        Ok::<_, HostError>(newest)
    })?;
    host.settled(newest).await?;
    let changed = answers.iter().filter(|changed| **changed).count();
    Ok(Json(Changed { prefixes: names.len(), changed }))
}

/// The query of a match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MatchQuery {
    /// Milliseconds that hosts may take to confirm a prefix that they may announce; without it, the
    /// answer is from memory.
    #[param(minimum = 1, maximum = 60_000)]
    confirm: Option<u64>,
}

/// The longest announced prefix of a name.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Matched {
    /// The prefix; `null`: none is announced.
    prefix: Option<String>,
    /// The hosts that announce it; the host that answers comes first.
    hosts: Vec<String>,
    #[serde(flatten)]
    coverage: Coverage,
    /// Whether any host is known to have the set.
    set_known: bool,
}

/// The longest announced prefix of a name, and the hosts that announce it.
///
/// The path after `/match` is the name. The answer is from memory, so a prefix may be wrong with
/// the set's rate; with `confirm`, the hosts that may announce it are asked.
#[utoipa::path(
    get, path = "/v1/sets/{set}/match/{*name}", operation_id = "match_name", tag = "names",
    params(
        ("set" = String, Path, min_length = 1, max_length = 255, pattern = r"^[!-~]+$", description = "Name of the set", example = "content"),
        ("name" = String, Path, min_length = 1, description = "The name, without the slash that it begins with", example = "video/2024/intro"),
        MatchQuery),
    responses((status = 200, description = "The longest prefix", body = Matched), Problems)
)]
pub(super) async fn longest(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<MatchQuery>,
) -> Result<Json<Matched>, Problem> {
    let confirm: Option<Duration> = timeout(query.confirm)?;
    let name = String::from_utf8(path.written);
    let name = name.map_err(|_| Problem::bad("prefix_name", "a name is UTF-8 text"))?;
    let name = format!("/{name}");
    let (set, before) = (&path.set, host.coverage());
    let found = match confirm {
        None => host.match_name(set, &name)?,
        Some(timeout) => host.match_confirmed(set, &name, timeout).await?,
    };
    let coverage = host.coverage().and(&before);
    let (prefix, hosts) =
        found.map_or((None, Vec::new()), |found| (Some(found.prefix), found.hosts));
    Ok(Json(Matched { prefix, hosts, coverage, set_known: host.knows(set) }))
}
