//! Metrics for Prometheus, in the OpenMetrics text format.
//!
//! Requests are counted as they arrive; everything else is read from the host when it is scraped
//! (`facts`). Names, units and labels are documented in docs/metrics.md: a test compares both.
//!
//! Always true: the number of series is bounded, however many sets, hosts and routes there are.

mod facts;
mod process;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
#[cfg(feature = "otel")]
use tracing::Instrument as _;

use super::App;
use super::clients::Clients;
use super::guard::DASHBOARD_HEADER;
use crate::Host;
use facts::Facts;
use process::Process;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

/// The counters of requests, and the registry of all metrics.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Route, Histogram>,
}

impl Metrics {
    pub(super) fn new(host: &Host, clients: &Arc<Clients>) -> Self {
        let mut registry = Registry::default();
        // These have the standard names of Prometheus's client libraries.
        registry.register_collector(Box::new(Process));
        let own = registry.sub_registry_with_prefix("umbel");
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("build", crate::build_info::text()),
        ];
        own.register("build", "Version and build of the program", Info::new(labels.to_vec()));
        let requests = Family::default();
        own.register("http_requests", "HTTP requests answered", requests.clone());
        let seconds: Family<Route, Histogram> =
            Family::new_with_constructor(|| Histogram::new(exponential_buckets(1e-4, 4.0, 10)));
        own.register_with_unit(
            "http_request_duration",
            "From the headers of an HTTP request to those of its response",
            Unit::Seconds,
            seconds.clone(),
        );
        let (host, clients) = (host.clone(), Arc::clone(clients));
        own.register_collector(Box::new(Facts::new(host, clients)));
        Self { registry, requests, seconds }
    }
}

/// Counts a request and measures its time. The dashboard gets the time in a response header as
/// well.
pub(super) async fn count(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let method = known_method(request.method().as_str());
    let route = request.extensions().get::<MatchedPath>();
    // All unknown paths share one label: paths that clients invent must not fill the memory.
    let route = route.map_or("none", MatchedPath::as_str).replace("{*", "{");
    let is_timed = request.headers().contains_key(DASHBOARD_HEADER);
    let begun = Instant::now();
    #[cfg(feature = "otel")]
    let span = crate::traces::http_request(method, &route, request.headers());
    #[cfg(feature = "otel")]
    let mut response = next.run(request).instrument(span.clone()).await;
    #[cfg(not(feature = "otel"))]
    let mut response = next.run(request).await;
    #[cfg(feature = "otel")]
    span.record("http.response.status_code", response.status().as_u16());
    let (status, took) = (response.status().as_u16(), begun.elapsed().as_secs_f64());
    let labels = Route { method, route: route.clone() };
    metrics.seconds.get_or_create(&labels).observe(took);
    metrics.requests.get_or_create(&Answered { method, route, status }).inc();
    let timing = HeaderValue::from_str(&format!("host;dur={:.3}", 1000.0 * took));
    if let Some(timing) = timing.ok().filter(|_| is_timed) {
        response.headers_mut().insert(HeaderName::from_static("server-timing"), timing);
    }
    response
}

/// The known methods; all others share one label.
fn known_method(method: &str) -> &'static str {
    let known = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| *known == method).unwrap_or("other")
}

/// Metrics for Prometheus, in the OpenMetrics text format.
#[utoipa::path(
    get, path = "/metrics", tag = "hosts",
    responses((status = 200, description = "Metrics", body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    // The lock of the state may be held while a message is decoded.
    let encoded = tokio::task::spawn_blocking(move || {
        let mut out = String::new();
        text::encode(&mut out, &app.metrics.registry).map(|()| out)
    });
    match encoded.await {
        Ok(Ok(out)) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], out).into_response()
        }
        _ => axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
