//! Errors as problem details (RFC 9457): one format for errors of handlers, of the host and of
//! axum.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response as Described, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::HostError;

/// The media type of problems.
const MEDIA_TYPE: &str = "application/problem+json";

/// What is wrong, and what to do. Nothing changed, unless the detail says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Always `about:blank`: the status determines the kind of problem.
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    kind: &'static str,
    /// The status as text.
    #[schema(example = "Not Found")]
    title: &'static str,
    /// The status.
    #[schema(example = 404, minimum = 400, maximum = 599)]
    status: u16,
    /// A code for programs.
    #[schema(example = "no_such_set")]
    code: &'static str,
    /// One line for people.
    #[schema(example = "no such set 'images'")]
    detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { kind: "about:blank", title, status: status.as_u16(), code, detail: detail.into() }
    }

    /// The request is invalid.
    pub(super) fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Only the line for people.
    pub(super) fn into_detail(self) -> String {
        self.detail
    }

    /// The same with `done` appended to the detail.
    pub(super) fn after(mut self, done: &str) -> Self {
        self.detail = format!("{}; {done}", self.detail);
        self
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        let (status, code) = match error {
            HostError::NoSuchSet(_) => (StatusCode::NOT_FOUND, "no_such_set"),
            HostError::NotOwn(_) => (StatusCode::NOT_FOUND, "not_own"),
            HostError::SetName => (StatusCode::BAD_REQUEST, "set_name"),
            HostError::KeyLength { .. } => (StatusCode::BAD_REQUEST, "key_length"),
            HostError::ChainLength { .. } => (StatusCode::BAD_REQUEST, "chain_length"),
            HostError::PrefixName { .. } => (StatusCode::BAD_REQUEST, "prefix_name"),
            HostError::InOverlay(_) => (StatusCode::CONFLICT, "in_overlay"),
            HostError::NoOverlay(_) => (StatusCode::CONFLICT, "no_overlay"),
            HostError::Unconfirmed(_) | HostError::Incomplete(_) | HostError::Unanswered => {
                (StatusCode::GATEWAY_TIMEOUT, "unanswered")
            }
            HostError::Param(_) | HostError::TooLarge { .. } => (StatusCode::BAD_REQUEST, "plan"),
            HostError::NoWayToCache | HostError::CacheOrigin(_) => {
                (StatusCode::BAD_REQUEST, "confirm")
            }
            HostError::TooManySets(_) => (StatusCode::CONFLICT, "too_many_sets"),
            HostError::Catalogue(_) => (StatusCode::INTERNAL_SERVER_ERROR, "catalogue"),
            HostError::InMemory => (StatusCode::CONFLICT, "in_memory"),
            HostError::Backup(_) => (StatusCode::CONFLICT, "backup"),
            HostError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).expect("text and numbers");
        (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response()
    }
}

/// The error for unknown paths.
pub(super) async fn no_such_path() -> Problem {
    let detail = "no such path: /openapi.json describes those that there are";
    Problem::new(StatusCode::NOT_FOUND, "no_such_path", detail)
}

/// The error for methods that a path does not support.
pub(super) async fn no_such_method() -> Problem {
    let detail = "this path has other methods: /openapi.json describes them";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail)
}

/// Converts errors of axum into problems.
pub(super) async fn from_framework(response: Response) -> Response {
    let status = response.status();
    let plain = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|kind| kind.to_str().is_ok_and(|kind| kind.starts_with("text/plain")));
    let is_error = status.is_client_error() || status.is_server_error();
    // Health checks respond in plain text, for probes and for people.
    if !is_error || !plain || response.extensions().get::<Plain>().is_some() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let detail = text_of(body).await;
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "media_type",
        _ => "request",
    };
    let mut response = Problem::new(status, code, detail).into_response();
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, HeaderValue::clone(allow));
    }
    response
}

/// Marks a response that must stay plain text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

/// The text of a body on one line, in plain words.
async fn text_of(body: Body) -> String {
    let bytes = axum::body::to_bytes(body, 4096).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { "the request is refused".to_owned() } else { plain(line) }
}

/// axum's texts, and ours for them.
const WORDS: [(&str, &str); 14] = [
    ("Failed to deserialize query string: ", "query: "),
    ("Failed to deserialize the JSON body into the target type: ", "body: "),
    ("Failed to parse the request body as JSON: ", "the body is not JSON: "),
    ("Failed to buffer the request body: length limit exceeded", TOO_LONG),
    ("length limit exceeded", TOO_LONG),
    (
        "Expected request with `Content-Type: application/json`",
        "this route reads JSON: send it with content-type: application/json",
    ),
    ("invalid digit found in string", "a whole number is needed"),
    ("cannot parse integer from empty string", "a whole number is needed"),
    ("number too large to fit in target type", "the number is too large"),
    ("invalid float literal", "a number is needed"),
    ("expected u64", "expected a whole number"),
    ("expected u32", "expected a whole number"),
    ("expected usize", "expected a whole number"),
    ("expected f64", "expected a number"),
];
const TOO_LONG: &str = "the body is longer than limits.http_question_bytes";

fn plain(line: String) -> String {
    let line = WORDS.iter().fold(line, |line, (theirs, ours)| line.replace(theirs, ours));
    line.replace('`', "'")
}

/// The problems that a route may return, for the description.
pub(super) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        [
            ("400", "What was given cannot be; nothing changed"),
            ("401", "A bearer token is needed, or this one is nobody's"),
            ("403", "The token's user has no permission for this, or a web page of another origin asks for a change; nothing changed"),
            ("404", "There is no such set, key or holder"),
            ("409", "This host has as many sets as it may have"),
            ("413", "The body is longer than this host reads at once"),
            ("415", "The body is of another media type than this route reads"),
            ("422", "The body is JSON, but not what this route reads; nothing changed"),
            ("429", "Too many tokens from there were wrong"),
            ("431", "The request's line and headers are longer than this host reads"),
            ("500", "The catalogue failed: what was asked for may be lost"),
            ("503", "The host is stopping, or serves as many clients as it may"),
        ]
        .map(|(status, what)| (status.to_owned(), RefOr::T(described(status, what))))
        .into()
    }
}

fn described(status: &str, what: &str) -> Described {
    let response = ResponseBuilder::new().description(what);
    if status == "431" {
        // Sent before the route is known: there is no body.
        return response.build();
    }
    let schema = Ref::from_schema_name("Problem");
    response.content(MEDIA_TYPE, ContentBuilder::new().schema(Some(schema)).build()).build()
}
