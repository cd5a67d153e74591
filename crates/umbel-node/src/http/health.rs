//! Health checks: whether a host lives, whether it accepts changes, and whether its answers are
//! complete.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::problem::Plain;
use crate::host::{Coverage, Host, Readiness};

/// The process lives and answers.
///
/// For liveness probes, which restart whoever fails them: nothing fails here that a restart would
/// not put right, so neither a full disk nor a missing peer does.
#[utoipa::path(
    get, path = "/livez", tag = "health",
    responses((status = 200, description = "The host lives", body = String, content_type = "text/plain"))
)]
pub(super) async fn livez() -> (Extension<Plain>, &'static str) {
    (Extension(Plain), "ok\n")
}

/// The process lives and answers, and its catalogue can be written.
///
/// For alarms. Not for liveness probes: a restart makes no room on a disk.
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

/// Answers have been complete since the start, or `timing.ready` has passed.
///
/// A host that is ready stays so, whatever becomes of other hosts: answers say whether they are
/// complete, and so does `complete` in `/v1/info`.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "The host is ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Replicas are on their way", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn readyz(State(host): State<Host>) -> (StatusCode, Extension<Plain>, String) {
    let (status, text) = match host.readiness() {
        Readiness::Ready(coverage) => (StatusCode::OK, told("ready", &coverage)),
        Readiness::Waiting(coverage) => {
            let (known, expected) = (coverage.hosts_known, coverage.hosts_expected);
            let state = format!("waiting: {known} of {expected} hosts are known");
            (StatusCode::SERVICE_UNAVAILABLE, told(&state, &coverage))
        }
    };
    (status, Extension(Plain), text)
}

/// The state, then what is missing.
fn told(state: &str, coverage: &Coverage) -> String {
    let missing = coverage.missing_hosts.iter().map(|missing| format!("missing {missing}\n"));
    [format!("{state}\n")].into_iter().chain(missing).collect()
}
