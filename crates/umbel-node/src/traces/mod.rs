//! Export of traces by OpenTelemetry's protocol, behind the feature `otel`.
//!
//! ```text
//! request ─► span of `tracing` ─► Layer: sampled? ─► Span ─► queue ─► Exporter: POST /v1/traces
//! ```
//!
//! Spans are HTTP requests, commands of Redis clients that wait for other hosts or for the disk,
//! questions to other hosts and questions to this host's cache. They are named by route or command,
//! and carry no keys. A request that brings a `traceparent` continues that trace; of the others a
//! share is traced. Commands that are answered from memory have no span: recording one would take
//! longer than most of them.
//!
//! Always true: requests never wait for the export. Spans that the queue has no room for are
//! dropped and counted.
//!
//! Not here: the rest of the log, which `umbel serve` writes.

mod export;
mod layer;
mod otlp;
mod parent;
mod span;

pub use export::Exporter;
pub use layer::TraceLayer;

use axum::http::HeaderMap;
use umbel::replica::Name;

use crate::Settings;

/// The target of all spans that are exported.
pub const TARGET: &str = "umbel_node::traces";

/// Starts the export, if the settings name a collector. The layer has to be added to the program's
/// subscriber, and the exporter kept until the program ends.
#[must_use]
pub fn start(settings: &Settings) -> Option<(TraceLayer, Exporter)> {
    let traces = settings.traces.as_ref()?;
    let resource = otlp::resource(settings.name.as_str(), settings.cluster.as_str());
    let (exporter, queue) = Exporter::start(&traces.endpoint, resource);
    Some((TraceLayer::new(queue, traces.share), exporter))
}

/// The span of an HTTP request.
pub(crate) fn http_request(method: &str, route: &str, headers: &HeaderMap) -> tracing::Span {
    let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
    tracing::trace_span!(
        target: TARGET,
        "http",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        traceparent = parent.unwrap_or_default(),
        http.request.method = method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
    )
}

/// The span of a command of a Redis client that waits for other hosts or for the disk.
pub(crate) fn redis_command(
    command: &'static str,
    set: Option<&str>,
    keys: usize,
) -> tracing::Span {
    tracing::trace_span!(
        target: TARGET,
        "redis",
        otel.name = command,
        otel.kind = "server",
        umbel.set = set,
        umbel.keys = keys,
    )
}

/// The span of a question to another host about this many keys.
pub(crate) fn peer_request(host: &Name, set: &str, keys: usize) -> tracing::Span {
    tracing::trace_span!(
        target: TARGET,
        "ask host",
        otel.kind = "client",
        umbel.host = host.as_str(),
        umbel.set = set,
        umbel.keys = keys,
    )
}

/// The span of a question to this host's own cache.
pub(crate) fn cache_request() -> tracing::Span {
    tracing::trace_span!(target: TARGET, "ask cache", otel.kind = "client")
}
