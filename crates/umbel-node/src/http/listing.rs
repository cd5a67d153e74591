//! The keys of this host, page by page.

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_text::{Encoding, SetPath};
use super::problem::{Problem, Problems};
use crate::Host;

/// Default and maximum number of keys per page.
const COUNT: usize = 1000;
const MAX_COUNT: usize = 100_000;

/// The query of a page of keys.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// How keys are encoded in the answer.
    #[serde(default)]
    #[param(inline)]
    encoding: Encoding,
    /// The `cursor` of the previous page; without it, the first page.
    #[param(max_length = 512, pattern = "^([0-9a-f]{2})+$")]
    cursor: Option<String>,
    /// Maximum number of keys per page; a page may have fewer.
    #[param(minimum = 1, maximum = 100_000, default = 1000)]
    count: Option<usize>,
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyPage {
    /// The keys, in an arbitrary order.
    keys: Vec<String>,
    /// The cursor of the next page; `null`: this was the last.
    cursor: Option<String>,
}

/// The keys that this host itself holds, page by page.
///
/// A key that is held during the whole listing is included; one that is added or removed meanwhile
/// may be.
#[utoipa::path(
    get, path = "/v1/sets/{set}/keys", operation_id = "list_keys", tag = "keys", params(SetPath, PageQuery),
    responses((status = 200, description = "A page of keys", body = KeyPage), Problems)
)]
pub(super) async fn list(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(query): Query<PageQuery>,
) -> Result<Json<KeyPage>, Problem> {
    let count = query.count.unwrap_or(COUNT);
    if !(1..=MAX_COUNT).contains(&count) {
        return Err(Problem::bad("count", "count is a number of keys, 1 to 100000"));
    }
    let cursor = query.cursor.as_deref().map_or(Some(Vec::new()), from_hex).ok_or_else(|| {
        Problem::bad("cursor", "cursor is what the page before answered; leave it out to begin")
    })?;
    // A page may take a megabyte of reads.
    let (keys, next) = tokio::task::block_in_place(|| host.keys(&set, &cursor, count))?;
    let written = |key: &Vec<u8>| query.encoding.encode(key).map(std::borrow::Cow::into_owned);
    let keys = keys.iter().map(written).collect::<Result<_, _>>()?;
    Ok(Json(KeyPage { keys, cursor: next.map(|next| to_hex(&next)) }))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? << 4 | digit(*low)?) as u8);
    pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
}
