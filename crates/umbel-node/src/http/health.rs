//! Health checks: whether a host lives, and whether its answers are complete.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::problem::Plain;
use crate::host::{Host, Readiness};

/// The process lives and answers.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses((status = 200, description = "The host lives", body = String, content_type = "text/plain"))
)]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Answers are complete: an empty one does not mean "I do not know yet".
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "Answers are complete", body = String, content_type = "text/plain"),
        (status = 503, description = "Replicas are on their way", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn readyz(State(host): State<Host>) -> (StatusCode, Extension<Plain>, String) {
    let (status, text) = match host.readiness() {
        Readiness::Ready => (StatusCode::OK, String::from("ready\n")),
        Readiness::Waiting { known, expected } => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("waiting: {known} of {expected} hosts are known\n"),
        ),
    };
    (status, Extension(Plain), text)
}
