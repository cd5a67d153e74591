//! Which hosts hold a key: those that say so, asked just now.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_text::{Encoding, KeyPath};
use super::problem::{Problem, Problems};
use crate::{Coverage, Host};

/// The query of routes that ask other hosts about one key.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LocateQuery {
    /// How the key is written in the path.
    #[serde(default)]
    #[param(inline)]
    pub(super) encoding: Encoding,
    /// Milliseconds that other hosts may take to answer; 2000 if not said.
    #[param(minimum = 1, maximum = 60_000)]
    timeout: Option<u64>,
}

impl LocateQuery {
    pub(super) fn timeout(&self) -> Result<Option<Duration>, Problem> {
        match self.timeout {
            Some(1..=60_000) | None => Ok(self.timeout.map(Duration::from_millis)),
            Some(_) => Err(Problem::bad("timeout", "timeout takes milliseconds, 1 to 60000")),
        }
    }
}

/// The hosts that hold a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Holders {
    /// Their names, the host that was asked first.
    hosts: Vec<String>,
    #[serde(flatten)]
    coverage: Coverage,
    /// Whether anybody is known to have the set.
    set_known: bool,
}

/// The hosts that confirm that they hold a key.
///
/// Hosts that do not answer in time are left out, and make the answer incomplete.
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
    let (hosts, answered) = host.locate_fully(&path.set, &key, query.timeout()?).await?;
    let mut coverage = host.coverage().and(&before);
    coverage.complete &= answered;
    Ok(Json(Holders { hosts, coverage, set_known }))
}
