//! Which of many keys no host holds: what a build cache asks before an upload.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::key_text::{EncodingQuery, SetPath};
use super::problem::{Problem, Problems};
use super::who::read;
use crate::{Coverage, Host};

/// The keys that no host holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Missing {
    /// In the order of the lines, written as these.
    missing: Vec<String>,
    #[serde(flatten)]
    coverage: Coverage,
}

/// Which of many keys, a line each, no host holds.
///
/// Claims are confirmed by asking the hosts that may hold the keys. A host that does not answer
/// counts as not holding, and makes the answer incomplete.
#[utoipa::path(
    post, path = "/v1/sets/{set}/missing", tag = "questions", params(SetPath, EncodingQuery),
    request_body(content = Option<String>, content_type = "text/plain", description = "A key a line"),
    responses((status = 200, description = "Keys that no host holds", body = Missing), Problems)
)]
pub(super) async fn missing(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<EncodingQuery>,
    body: Bytes,
) -> Result<Json<Missing>, Problem> {
    let keys = read(&body, query.encoding)?;
    let (missing, answered) = host.missing_fully(&set, keys).await?;
    let mut coverage = host.coverage();
    coverage.complete &= answered;
    let written = |key: &Vec<u8>| query.encoding.encode(key).map(std::borrow::Cow::into_owned);
    let missing = missing.iter().map(written).collect::<Result<_, _>>()?;
    Ok(Json(Missing { missing, coverage }))
}
