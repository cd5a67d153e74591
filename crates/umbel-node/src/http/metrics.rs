//! What monitors scrape: requests by route, and what the host knows of itself, its sets and the
//! others, in the text format of Prometheus.
//!
//! Counts of requests are kept up; everything else is read from the host when it is asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, MetricEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::App;
use super::clients::Clients;
use crate::{Fields, Host, Value};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

/// What is counted, and where everything is gathered.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Asked, Counter>,
    seconds: Family<Route, Histogram>,
}

impl Metrics {
    pub(super) fn new(host: &Host, clients: &Arc<Clients>) -> Self {
        let mut registry = Registry::with_prefix("umbel");
        let requests = Family::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let seconds: Family<Route, Histogram> =
            Family::new_with_constructor(|| Histogram::new(exponential_buckets(1e-4, 4.0, 10)));
        registry.register(
            "http_request_seconds",
            "From a request's headers to those of its answer",
            seconds.clone(),
        );
        let (host, clients) = (host.clone(), Arc::clone(clients));
        registry.register_collector(Box::new(Facts { host, clients }));
        Self { registry, requests, seconds }
    }
}

/// Counts a request and how long it took.
pub(super) async fn count(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let method = known_method(request.method().as_str());
    let route = request.extensions().get::<MatchedPath>();
    // Paths that lead nowhere are one: what clients make up must not fill the memory.
    let route = route.map_or("none", MatchedPath::as_str).replace("{*", "{");
    let begun = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let labels = Route { method, route: route.clone() };
    metrics.seconds.get_or_create(&labels).observe(begun.elapsed().as_secs_f64());
    metrics.requests.get_or_create(&Asked { method, route, status }).inc();
    response
}

/// The methods that there are; what clients make up is one more.
fn known_method(method: &str) -> &'static str {
    let known = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| *known == method).unwrap_or("other")
}

/// What monitors scrape, in the text format of Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "hosts",
    responses((status = 200, description = "Metrics", body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    // The lock of the host may be held while a message is decoded.
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

/// What the host knows, read when it is asked for.
#[derive(Debug)]
struct Facts {
    host: Host,
    clients: Arc<Clients>,
}

impl Collector for Facts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        table(out, "host", HOST, None, &[(String::new(), self.host.status().fields())])?;
        let counts = HTTP.iter().map(|fact| fact.0).zip(self.clients.counts().map(Value::from));
        table(out, "http", HTTP, None, &[(String::new(), counts.collect())])?;
        let sets = self.host.sets();
        let sets = sets.iter().filter_map(|set| self.host.set_info(set).ok());
        let sets: Vec<_> = sets.map(|set| (set.set.clone(), set.fields())).collect();
        table(out, "set", SET, Some("set"), &sets)?;
        let hosts = self.host.hosts();
        let hosts = hosts.into_iter().map(|host| (host.name.clone(), host.fields()));
        table(out, "peer", PEER, Some("peer"), &hosts.collect::<Vec<_>>())?;
        refusals(out, &self.host.refusals())
    }
}

/// What is not accepted: bounded, because a host lists so many refusals only.
fn refusals(encoder: &mut DescriptorEncoder<'_>, refusals: &[([String; 3], u64)]) -> fmt::Result {
    let help = "How often something was not accepted that is not accepted now";
    let mut metric = encoder.encode_descriptor("refusals", help, None, MetricType::Gauge)?;
    for ([peer, set, reason], count) in refusals {
        let labels = [("peer", peer.as_str()), ("set", set.as_str()), ("reason", reason.as_str())];
        one(metric.encode_family(&labels)?, Kind::Gauge, *count as f64)?;
    }
    Ok(())
}

/// A fact's name, what it counts, and whether it only grows.
type Fact = (&'static str, &'static str, Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

use Kind::{Counter as C, Gauge as G};

/// What is told of the host itself, by the names of `UMBEL.INFO`.
#[rustfmt::skip]
const HOST: &[Fact] = &[
    ("incarnation", "This life of the host", G),
    ("uptime", "Seconds since it started", G),
    ("ready", "Whether answers have been complete since the start, or the deadline has passed", G),
    ("complete", "Whether answers are complete now", G),
    ("hosts_known", "Hosts whose sets are known, this one included", G),
    ("hosts_expected", "Hosts that should be known, this one included", G),
    ("sets", "Sets that are known", G),
    ("durable", "Whether a folder keeps the catalogue", G),
    ("writable", "Whether changes are accepted: the catalogue can be written", G),
    ("messages", "Messages that arrived", C),
    ("refused", "Messages that were refused", C),
    ("not_accepted", "Replicas and hosts that are not accepted at present, because of a limit", G),
    ("replica_bytes", "Bytes that replicas are charged", G),
    ("replica_bytes_limit", "Bytes that replicas may take", G),
    ("own_bytes", "Bytes that the filters of own sets take", G),
    ("gaps", "Updates that did not follow on what was here", C),
    ("mismatches", "Images that were not what their home announced", C),
    ("updates_sent", "Updates published", C),
    ("update_bytes_sent", "Bytes of updates published", C),
    ("page_bytes_sent", "Bytes of pages sent to hosts that asked for them", C),
    ("dropped", "Happenings that came faster than they could be dealt with", C),
    ("name_taken", "How often another host lived under this host's name", C),
    ("links_opened", "Links to other hosts that this host has opened", G),
    ("links_reopened", "How often a link was opened again because its host did not reply", C),
    ("failed_logins", "Logins that failed, at both ports for clients", C),
];

/// What is told of connections, in the order of `Clients::counts`.
#[rustfmt::skip]
const HTTP: &[Fact] = &[
    ("connections", "Connections that are open", G),
    ("connections_accepted", "Connections that were taken in", C),
    ("connections_refused", "Connections that were refused because all others were busy", C),
    ("connections_evicted", "Connections without a request that had to make room", C),
];

/// What is told of each set, by the names of `UMBEL.INFO set`.
#[rustfmt::skip]
const SET: &[Fact] = &[
    ("own", "Whether this host has keys of its own in it", G),
    ("items", "Keys that this host holds", G),
    ("items_everywhere", "Keys that all hosts together say they hold", G),
    ("replicas", "Hosts whose replicas are here", G),
    ("capacity", "Keys that the own filter has room for from the start", G),
    ("takes", "Keys that the own filter takes before it is built longer", G),
    ("full", "Share of these that it holds", G),
    ("rung", "Two to this power is the number of bits of the own filter", G),
    ("published_rung", "Two to this power is the number of bits that other hosts hold of the own filter", G),
    ("components", "Components of the own filter, in an overlay", G),
    ("bits", "Bits of the own filter", G),
    ("hashes", "Positions a key has", G),
    ("false_positive", "Chance that one lookup names any wrong host: what was promised", G),
    ("expected_hosts", "Hosts that the promise is shared among", G),
    ("lifetime", "Seconds that keys live unless told otherwise", G),
    ("expiring", "Keys that will expire", G),
    ("estimated_false_positive", "The published copy's false positive rate, from its fill", G),
    ("miss", "Share of the own keys that the published copy denies", G),
    ("ghost", "Removed keys that the published copy still claims, per own key", G),
    ("measured_miss", "Share of other hosts' named members that their replicas here denied", G),
    ("measured_false_positive", "Share of confirmed lookups that named a wrong host", G),
    ("late_lookups", "Lookups that named nobody although a host may have held the key, from above", C),
    ("late_share", "Their share of these and of the lookups that named somebody", G),
    ("lookups_confirmed", "Lookups that were confirmed by asking", C),
    ("cache_asked", "Own claims that this host's cache was asked about", C),
    ("cache_disagreements", "Own claims that the cache denied; the catalogue was repaired", C),
    ("cache_unanswered", "Own claims that the cache could not be asked about", C),
    ("updates_sent", "Updates published", C),
    ("bytes_sent", "Bytes of updates published, each counted once", C),
    ("full_broadcast_bytes", "What the same updates would have cost as whole filters", C),
    ("updates_received", "Images and changes of other hosts' filters that arrived", C),
    ("bytes_received", "Bytes of messages about this set that arrived", C),
    ("rebuilds", "How often the own filter was built again from the keys", C),
    ("replica_bytes", "Bytes that the replicas take here", G),
];

/// What is told of each host of the cluster, by the names of `UMBEL.HOSTS`.
#[rustfmt::skip]
const PEER: &[Fact] = &[
    ("incarnation", "Its life", G),
    ("age", "Seconds since the last update of any of its sets arrived", G),
    ("current", "Whether everything it has announced has arrived", G),
];

/// Writes facts of several things of a kind, each under its name.
fn table(
    encoder: &mut DescriptorEncoder<'_>,
    kind: &str,
    facts: &[Fact],
    label: Option<&'static str>,
    things: &[(String, Fields)],
) -> fmt::Result {
    for (name, help, counted) in facts {
        let mut known = things.iter().filter_map(|(thing, fields)| {
            let (_, value) = fields.iter().find(|(field, _)| field == name)?;
            number(value).map(|number| (thing.as_str(), number))
        });
        let metric_type = if *counted == C { MetricType::Counter } else { MetricType::Gauge };
        let full = format!("{kind}_{name}");
        let mut metric = encoder.encode_descriptor(&full, help, None, metric_type)?;
        let Some(label) = label else {
            if let Some((_, number)) = known.next() {
                one(metric, *counted, number)?;
            }
            continue;
        };
        for (thing, number) in known {
            one(metric.encode_family(&[(label, thing)])?, *counted, number)?;
        }
    }
    Ok(())
}

fn one(encoder: MetricEncoder<'_>, kind: Kind, number: f64) -> fmt::Result {
    match kind {
        Kind::Counter => ConstCounter::new(number).encode(encoder),
        Kind::Gauge => ConstGauge::new(number).encode(encoder),
    }
}

/// A fact as a number, if it is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Whole(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Flag(flag) => Some(f64::from(u8::from(*flag))),
        Value::Text(_) | Value::Nothing | Value::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetInfo;

    #[test]
    fn every_number_of_a_set_is_told() {
        // Texts, and what takes a pass over all bits.
        let others = ["set", "policy", "confirm", "not_accepted", "disagreement"];
        let fields = SetInfo::default().fields();
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        for name in names.iter().filter(|name| !others.contains(name)) {
            assert!(SET.iter().any(|fact| fact.0 == *name), "{name}");
        }
        assert!(SET.iter().all(|fact| names.contains(&fact.0)));
    }
}
