//! Health checks: whether a host lives, and whether its answers are complete.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::problem::Plain;
use crate::host::{Host, Readiness};

/// The process lives and answers, and its catalogue can be written.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses(
        (status = 200, description = "The host lives and accepts changes", body = String, content_type = "text/plain"),
        (status = 503, description = "The catalogue cannot be written", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn healthz(State(host): State<Host>) -> (StatusCode, Extension<Plain>, String) {
    let (status, text) = match host.catalogue_failure() {
        None => (StatusCode::OK, String::from("ok\n")),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("changes are refused, questions are answered: {reason}\n"),
        ),
    };
    (status, Extension(Plain), text)
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
