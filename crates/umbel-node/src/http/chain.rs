//! How many leading keys of a chain each host holds: answered from memory.

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_list::{KeyArray, KeyList};
use super::key_text::{Encoding, SetPath};
use super::problem::{Problem, Problems};
use super::who::{About, PART};
use crate::{ChainQuery, Host};

/// Maximum `limit`: larger than the possible number of columns of one shape.
const MAX_HOSTS: u32 = 1 << 20;

/// A host, and how many leading keys of a chain it holds.
#[derive(Debug, Serialize, ToSchema)]
struct HostDepth {
    /// Its name.
    host: String,
    /// Leading keys of the chain that it holds, rounded down to the step.
    depth: u32,
}

/// The hosts that hold the beginning of a chain.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChainHosts {
    /// The deepest first.
    hosts: Vec<HostDepth>,
    #[serde(flatten)]
    about: About,
}

/// The parameters of a chain query, and the encoding of its keys.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// How keys are encoded in the body.
    #[serde(default)]
    #[param(inline)]
    encoding: Encoding,
    /// Depths are rounded down to a multiple of this many keys.
    #[param(minimum = 1, maximum = 1024, default = 8)]
    step: Option<u32>,
    /// Maximum number of hosts in the answer.
    #[param(minimum = 1, maximum = 1_048_576)]
    limit: Option<u32>,
}

impl Asked {
    fn query(&self) -> Result<ChainQuery, Problem> {
        let step = self.step.unwrap_or(ChainQuery::DEFAULT_STEP);
        if !(1..=ChainQuery::MAX_STEP).contains(&step) {
            return Err(Problem::bad("chain", "step is a whole number of keys, 1 to 1024"));
        }
        let limit = match self.limit {
            None => usize::MAX,
            Some(hosts @ 1..=MAX_HOSTS) => hosts as usize,
            Some(_) => {
                return Err(Problem::bad("chain", "limit is a number of hosts, 1 to 1048576"));
            }
        };
        Ok(ChainQuery { step, limit })
    }
}

/// How many leading keys of a chain (lines or a JSON array) every host holds: from memory.
#[utoipa::path(
    post, path = "/v1/sets/{set}/chain", operation_id = "chain", tag = "questions", params(SetPath, Asked),
    request_body(content((Option<String> = "text/plain"), (KeyArray = "application/json")), description = "Keys: one a line, or a JSON array, at most 65536"),
    responses((status = 200, description = "Hosts that hold its beginning", body = ChainHosts), Problems)
)]
pub(super) async fn chain(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Query(asked): Query<Asked>,
    list: KeyList,
) -> Result<Json<ChainHosts>, Problem> {
    let query = asked.query()?;
    if list.body.len() <= PART {
        return answer(&host, &set, query, &list.keys(asked.encoding)?);
    }
    // Parsing and hashing many keys takes too long for other requests to wait.
    tokio::task::block_in_place(|| answer(&host, &set, query, &list.keys(asked.encoding)?))
}

fn answer(
    host: &Host,
    set: &str,
    query: ChainQuery,
    keys: &[Vec<u8>],
) -> Result<Json<ChainHosts>, Problem> {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let before = host.coverage();
    let mut hosts = Vec::new();
    host.chain(set, &keys, query, &mut |name, depth| {
        hosts.push(HostDepth { host: name.to_owned(), depth });
    })?;
    Ok(Json(ChainHosts { hosts, about: About::since(&before, host, set) }))
}
