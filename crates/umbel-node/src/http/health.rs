//! Health checks: whether a host lives, and whether its answers are complete.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

use crate::host::{Host, Readiness};

/// Serves until the host stops.
pub(crate) async fn serve(listener: std::net::TcpListener, host: Host) {
    let stopping = host.clone();
    let served = async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let stop = async move { stopping.stopped().await };
        axum::serve(listener, router(host)).with_graceful_shutdown(stop).await
    };
    if let Err(error) = served.await {
        tracing::error!(%error, "HTTP is served no more");
    }
}

fn router(host: Host) -> Router {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).with_state(host)
}

/// The process lives and answers.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Answers are complete: an empty one does not mean "I do not know yet".
async fn readyz(State(host): State<Host>) -> (StatusCode, String) {
    match host.readiness() {
        Readiness::Ready => (StatusCode::OK, String::from("ready\n")),
        Readiness::Waiting { known, expected } => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("waiting: {known} of {expected} hosts are known\n"),
        ),
    }
}
