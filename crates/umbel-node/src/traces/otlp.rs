//! Spans as OpenTelemetry's protocol has them over HTTP, in JSON (OTLP 1.x).

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::span::{Span, Value};

/// Who the spans are from.
pub(super) fn resource(host: &str, cluster: &str) -> Json {
    let attributes = [
        ("service.name", "umbel"),
        ("service.namespace", cluster),
        ("service.instance.id", host),
        ("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let attribute =
        |(key, value): (&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    json!({"attributes": attributes.map(attribute)})
}

/// The body of a request with these spans.
pub(super) fn body(resource: &Json, spans: &[Span]) -> Json {
    let scope = json!({"name": "umbel", "version": env!("CARGO_PKG_VERSION")});
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
}

/// In JSON, numbers of 64 bits are strings, and identifiers hexadecimal.
fn span(span: &Span) -> Json {
    let start = nanoseconds(span.start);
    let mut json = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": (start + span.took.as_nanos()).to_string(),
        "attributes": span.attributes.iter().map(attribute).collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    if is_failed(span) {
        json["status"] = json!({"code": 2});
    }
    json
}

fn attribute((key, value): &(&'static str, Value)) -> Json {
    let value = match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Whole(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": key, "value": value})
}

/// Whether a request failed by the host's own fault.
fn is_failed(span: &Span) -> bool {
    let status = span.attributes.iter().find(|(key, _)| *key == "http.response.status_code");
    matches!(status, Some((_, Value::Whole(500..))))
}

fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::traces::span::{Fields, Kind};

    #[test]
    fn a_span_is_written_as_the_protocol_has_it() {
        let status = ("http.response.status_code", Value::Whole(503));
        let route = ("http.route", Value::Text("/v1/sets".to_owned()));
        let fields =
            Fields { kind: Kind::Server, attributes: vec![route, status], ..Fields::default() };
        let mut span = Span::begin(0xabc, Some(7), "GET /v1/sets", fields);
        (span.id, span.start) = (0x1f, UNIX_EPOCH + Duration::from_secs(1));
        span.took = Duration::from_nanos(250);
        let expected = json!({"resourceSpans": [{
            "resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": "umbel"}},
                {"key": "service.namespace", "value": {"stringValue": "local"}},
                {"key": "service.instance.id", "value": {"stringValue": "a"}},
                {"key": "service.version", "value": {"stringValue": env!("CARGO_PKG_VERSION")}},
            ]},
            "scopeSpans": [{
                "scope": {"name": "umbel", "version": env!("CARGO_PKG_VERSION")},
                "spans": [{
                    "traceId": "00000000000000000000000000000abc",
                    "spanId": "000000000000001f",
                    "parentSpanId": "0000000000000007",
                    "name": "GET /v1/sets",
                    "kind": 2,
                    "startTimeUnixNano": "1000000000",
                    "endTimeUnixNano": "1000000250",
                    "attributes": [
                        {"key": "http.route", "value": {"stringValue": "/v1/sets"}},
                        {"key": "http.response.status_code", "value": {"intValue": "503"}},
                    ],
                    "status": {"code": 2},
                }],
            }],
        }]});
        assert_eq!(body(&resource("a", "local"), &[span]), expected);
    }
}
