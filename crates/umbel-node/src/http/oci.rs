//! A mirror of container registries: pulls are redirected to a host that holds the blob.
//!
//! The names of blobs are their digests, so that a blob is the same whoever has it. Manifests have
//! names that may change: the origin is asked for them, and a mirror without one has none.
//!
//! Always true: a redirect leads to an address that a host advertises, or to the origin in the
//! configuration; names in requests are checked before they become part of an address.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::fetch::redirect;
use super::problem::Problems;
use crate::{Fetch, Host};

/// Errors as the distribution specification has them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OciErrors {
    errors: Vec<OciError>,
}

/// One error.
#[derive(Debug, Serialize, ToSchema)]
struct OciError {
    /// A code of the specification.
    #[schema(example = "BLOB_UNKNOWN")]
    code: &'static str,
    /// One line for people.
    message: &'static str,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Request<'a> {
    Blob { name: &'a str, digest: &'a str },
    Manifest { name: &'a str, reference: &'a str },
}

/// Whether this host is a mirror of container registries. Not part of the description of the API:
/// the specification wants the slash at the end of its path, and linters of descriptions do not.
pub(super) async fn version(State(host): State<Host>) -> Response {
    match host.oci_set() {
        Some(_) => Json(serde_json::json!({})).into_response(),
        None => no_mirror(),
    }
}

/// A blob or a manifest of a repository: `<name>/blobs/<digest>` or `<name>/manifests/<reference>`.
///
/// A blob is redirected to a host that confirms that it holds it, else to the origin (`oci.origin`).
/// A manifest is redirected to the origin. Without an origin: status 404, upon which a client asks
/// the registry itself.
#[utoipa::path(
    get, path = "/v2/{*path}", operation_id = "get_oci_object", tag = "containers",
    params(("path" = String, Path, description = "Name of the repository, then `blobs` and a digest, or `manifests` and a tag or a digest",
        example = "library/debian/blobs/sha256:6c3c624b58dbbcd3c0dd82b4c53f04194d1247c6eebdaab7c610cf7d66709b3b")),
    responses(
        (status = 307, description = "Where it is", headers(
            ("location" = String, description = "Its address at a host that holds it, or at the origin"))),
        Problems,
        (status = 404, description = "No host holds it, and there is no origin", body = OciErrors))
)]
pub(super) async fn get(State(host): State<Host>, Path(path): Path<String>) -> Response {
    let Some(set) = host.oci_set() else { return no_mirror() };
    let address = match parse(&path) {
        None => return error("NAME_INVALID", "a name, then blobs and a digest, or manifests"),
        Some(Request::Manifest { name, reference }) => {
            host.oci_origin().map(|origin| format!("{origin}/v2/{name}/manifests/{reference}"))
        }
        Some(Request::Blob { name, digest }) => {
            let held = host.fetch(&set, digest.as_bytes(), &Fetch::default()).await;
            let origin = || Some(format!("{}/v2/{name}/blobs/{digest}", host.oci_origin()?));
            held.ok().flatten().or_else(origin)
        }
    };
    address.and_then(redirect).unwrap_or_else(|| match path.contains("/blobs/") {
        true => error("BLOB_UNKNOWN", "no host holds this blob"),
        false => error("MANIFEST_UNKNOWN", "this mirror has no manifests: ask the registry"),
    })
}

fn no_mirror() -> Response {
    error("UNSUPPORTED", "this host is no mirror: its configuration has no oci.set")
}

fn error(code: &'static str, message: &'static str) -> Response {
    let headers = [(header::CACHE_CONTROL, "no-store")];
    let errors = OciErrors { errors: vec![OciError { code, message }] };
    (StatusCode::NOT_FOUND, headers, Json(errors)).into_response()
}

/// Reads what follows `/v2/`; a name may have slashes, and parts that are called `blobs`.
fn parse(path: &str) -> Option<Request<'_>> {
    let (rest, reference) = path.rsplit_once('/')?;
    let (name, kind) = rest.rsplit_once('/')?;
    match kind {
        _ if !is_name(name) => None,
        "blobs" if is_digest(reference) => Some(Request::Blob { name, digest: reference }),
        "manifests" if is_digest(reference) || is_tag(reference) => {
            Some(Request::Manifest { name, reference })
        }
        _ => None,
    }
}

/// The name of a repository, as the distribution specification has it, of at most 255 bytes.
fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| is_letter(*byte))
            && bytes.last().is_some_and(|byte| is_letter(*byte))
            && bytes.iter().all(|byte| is_letter(*byte) || b"._-".contains(byte))
            && !part.contains("..")
    };
    name.len() <= 255 && name.split('/').all(part)
}

fn is_digest(text: &str) -> bool {
    let is_algorithm = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+._-".contains(c);
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm.chars().all(is_algorithm)
            && (32..=256).contains(&hex.len())
            && hex.chars().all(|c| c.is_ascii_hexdigit())
    })
}

fn is_tag(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=128).contains(&text.len())
        && text.starts_with(is_first)
        && text.chars().all(|c| is_first(c) || ".-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_and_manifests_are_told_apart() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let blob = format!("library/blobs/blobs/{digest}");
        let expected = Request::Blob { name: "library/blobs", digest: &digest };
        assert_eq!(parse(&blob), Some(expected));
        let tag = Request::Manifest { name: "a.b/c__d", reference: "v1.2-x" };
        assert_eq!(parse("a.b/c__d/manifests/v1.2-x"), Some(tag));
        assert!(parse(&format!("a/manifests/{digest}")).is_some());
    }

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for name in ["", "/", "A", "a//b", "../a", "a/..", "a..b", "a b", "@evil", "a?b", "-a", "ä"]
        {
            assert_eq!(parse(&format!("{name}/blobs/{digest}")), None, "{name}");
        }
        for path in [
            "",
            "a",
            "a/blobs",
            "blobs/sha256:00",
            "a/blobs/sha256:00",
            "a/blobs/latest",
            "a/tags/list",
            "a/manifests/",
            "a/manifests/.x",
            "a/manifests/a b",
            "a/blobs/uploads/x",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
        let long = format!("{}/manifests/x", "a".repeat(256));
        assert_eq!(parse(&long), None);
    }
}
