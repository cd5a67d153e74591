//! The hosts of the cluster, and this one's own state.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Host, HostInfo, Status};

/// The hosts of the cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Hosts {
    /// This one first, then the others by name.
    hosts: Vec<HostInfo>,
}

/// The hosts of the cluster, as this one sees them.
#[utoipa::path(
    get, path = "/v1/hosts", tag = "hosts",
    responses((status = 200, description = "The hosts", body = Hosts))
)]
pub(super) async fn hosts(State(host): State<Host>) -> Json<Hosts> {
    Json(Hosts { hosts: tokio::task::block_in_place(|| host.hosts()) })
}

/// This host's own state.
#[utoipa::path(
    get, path = "/v1/status", tag = "hosts",
    responses((status = 200, description = "Its state", body = Status))
)]
pub(super) async fn status(State(host): State<Host>) -> Json<Status> {
    Json(tokio::task::block_in_place(|| host.status()))
}
