//! Which of many keys no host holds: what a build cache asks before an upload.

use std::borrow::Cow;

use axum::Json;
use axum::extract::{Query, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::key_list::{KeyArray, KeyList};
use super::key_text::{EncodingQuery, SetPath};
use super::problem::{Problem, Problems};
use crate::{Coverage, Host};

/// The keys that no host holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Missing {
    /// In the order and encoding of the request.
    missing: Vec<String>,
    /// Keys that may be held by a host that has not replied or could not decide.
    unconfirmed: Vec<String>,
    #[serde(flatten)]
    coverage: Coverage,
    /// Whether any host is known to have the set.
    set_known: bool,
}

/// Which of many keys, one per line or as a JSON array, no host holds.
///
/// Claims are confirmed by asking the hosts that may hold the keys. If no host confirms a key, and
/// a host that may hold it does not reply, the key is listed as unconfirmed, not as missing, and
/// makes the answer incomplete. A set that no host is known to have answers like an empty one.
#[utoipa::path(
    post, path = "/v1/sets/{set}/missing", tag = "questions", params(SetPath, EncodingQuery),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Keys: one a line, or a JSON array"),
    responses((status = 200, description = "Keys that no host holds", body = Missing), Problems)
)]
pub(super) async fn missing(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<EncodingQuery>,
    list: KeyList,
) -> Result<Json<Missing>, Problem> {
    let keys = list.keys(query.encoding)?;
    let set_known = host.knows(&set);
    let before = host.coverage();
    let found = host.missing(&set, keys).await?;
    let mut coverage = host.coverage().and(&before);
    coverage.complete &= found.unconfirmed.is_empty() && !host.is_in_overlay();
    let written = |keys: &[Vec<u8>]| {
        let written = |key: &Vec<u8>| query.encoding.encode(key).map(Cow::into_owned);
        keys.iter().map(written).collect::<Result<_, _>>()
    };
    let (missing, unconfirmed) = (written(&found.missing)?, written(&found.unconfirmed)?);
    Ok(Json(Missing { missing, unconfirmed, coverage, set_known }))
}
