//! Which hosts hold a key: those that confirm it when asked.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_text::{Encoding, KeyPath};
use super::problem::{Problem, Problems};
use crate::{Coverage, Host};

/// The query of a request that asks other hosts about one key.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LocateQuery {
    /// How the key is encoded in the path.
    #[serde(default)]
    #[param(inline)]
    encoding: Encoding,
    /// Milliseconds that other hosts may take to reply; default 2000.
    #[param(minimum = 1, maximum = 60_000)]
    timeout: Option<u64>,
}

/// How long other hosts may take to reply.
pub(super) fn timeout(milliseconds: Option<u64>) -> Result<Option<Duration>, Problem> {
    match milliseconds {
        Some(1..=60_000) | None => Ok(milliseconds.map(Duration::from_millis)),
        Some(_) => Err(Problem::bad("timeout", "timeout takes milliseconds, 1 to 60000")),
    }
}

/// The hosts that hold a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Holders {
    /// Their names; the host that answers comes first.
    hosts: Vec<String>,
    #[serde(flatten)]
    coverage: Coverage,
    /// Whether any host is known to have the set.
    set_known: bool,
}

/// The hosts that confirm that they hold a key.
///
/// Hosts that do not reply in time are left out, and make the answer incomplete.
#[utoipa::path(
    get, path = "/v1/sets/{set}/locate/{*key}", tag = "questions", params(KeyPath, LocateQuery),
    responses((status = 200, description = "Hosts that hold it", body = Holders), Problems)
)]
pub(super) async fn locate(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<LocateQuery>,
) -> Result<Json<Holders>, Problem> {
    let key = query.encoding.decode(&path.written)?;
    let set_known = host.knows(&path.set);
    let before = host.coverage();
    let (hosts, answered) = host.locate_fully(&path.set, &key, timeout(query.timeout)?).await?;
    let mut coverage = host.coverage().and(&before);
    coverage.complete &= answered;
    Ok(Json(Holders { hosts, coverage, set_known }))
}
