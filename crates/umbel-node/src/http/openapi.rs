//! The description of the API, generated from the handlers.

use std::sync::Arc;

use axum::Extension;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa::OpenApi as _;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr, Required};

use super::problem::Problem;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "umbel",
        description = "Tells which hosts hold an object, from a host's own memory, within a false rate that the operator sets."
    ),
    servers((url = "/", description = "The host that serves this description")),
    components(schemas(Problem)),
    security((), ("token" = [])),
    modifiers(&Token),
    tags(
        (name = "keys", description = "The own keys of the host that is asked: exact"),
        (name = "questions", description = "Hosts that hold a key; answers say whether they are complete"),
        (name = "names", description = "Prefixes of names, and the longest one that hosts announce"),
        (name = "sets", description = "Named collections of keys, each with a plan"),
        (name = "hosts", description = "The cluster, and what happens in it"),
        (name = "containers", description = "A mirror of container registries: part of the OCI distribution specification"),
        (name = "health", description = "For probes")
    )
)]
struct Described;

/// How a client authenticates if the host has users.
struct Token;

impl utoipa::Modify for Token {
    fn modify(&self, api: &mut OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        api.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

/// The description without any routes.
pub(super) fn begin() -> OpenApi {
    Described::openapi()
}

/// Converts paths to the standard's syntax: a key that may contain slashes is an ordinary
/// parameter. Bodies of lines are optional: an empty one contains no keys.
pub(super) fn finish(mut api: OpenApi) -> String {
    let mut paths = std::mem::take(&mut api.paths.paths);
    let posts = paths.values_mut().filter_map(|item| item.post.as_mut());
    for body in posts.filter_map(|operation| operation.request_body.as_mut()) {
        if let RefOr::T(body) = body
            && body.content.contains_key("text/plain")
        {
            body.required = Some(Required::False);
        }
    }
    api.paths.paths =
        paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    api.to_json().expect("text and numbers")
}

/// The serialized description.
#[derive(Debug, Clone)]
pub(super) struct Description(pub(super) Arc<str>);

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "health",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(super) async fn openapi(
    Extension(Description(json)): Extension<Description>,
) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], json.to_string())
}
