//! Health checks: whether a host is alive, whether it accepts changes, and whether its answers are
//! complete.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::problem::Plain;
use crate::host::{Coverage, Host, Readiness};

/// The process is alive and responds.
///
/// For liveness probes, which restart a process that fails them. It fails only if a restart would
/// help: neither a full disk nor a missing peer makes it fail.
#[utoipa::path(
    get, path = "/livez", tag = "health",
    responses((status = 200, description = "The host lives", body = String, content_type = "text/plain"))
)]
pub(super) async fn livez() -> (Extension<Plain>, &'static str) {
    (Extension(Plain), "ok\n")
}

/// The process is alive and responds, and its catalogue can be written.
///
/// For alarms. Not for liveness probes: a restart does not free disk space.
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

/// Answers have been complete once since the start, or `timing.ready` has passed.
///
/// A host that is ready stays ready, even if it loses other hosts: each answer reports whether it
/// is complete, and so does `complete` in `/v1/status`.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "The host is ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Replicas are on their way", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn readyz(State(host): State<Host>) -> (StatusCode, Extension<Plain>, String) {
    let (status, text) = match host.readiness() {
        Readiness::Ready(coverage) => (StatusCode::OK, state_text("ready", &coverage)),
        Readiness::Waiting(coverage) => {
            let (known, expected) = (coverage.hosts_known, coverage.hosts_expected);
            let state = format!("waiting: {known} of {expected} hosts are known");
            (StatusCode::SERVICE_UNAVAILABLE, state_text(&state, &coverage))
        }
    };
    (status, Extension(Plain), text)
}

/// The state, then what is missing.
fn state_text(state: &str, coverage: &Coverage) -> String {
    let missing = coverage.missing_hosts.iter().map(|missing| format!("missing {missing}\n"));
    [format!("{state}\n")].into_iter().chain(missing).collect()
}
