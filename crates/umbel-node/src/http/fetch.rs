//! The object of a key: a redirect to its location, or the object itself. So a reverse proxy needs
//! no client code.

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use umbel::replica::Name;
use utoipa::{IntoParams, ToSchema};

use super::key_text::{Encoding, KeyPath};
use super::locate::timeout;
use super::problem::{Problem, Problems};
use crate::host::{NotPassedOn, Object};
use crate::{Fetch, Host};

/// The query of a fetch.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FetchQuery {
    /// How the key is encoded in the path.
    #[serde(default)]
    #[param(inline)]
    encoding: Encoding,
    /// Milliseconds that other hosts may take to reply; default 2000.
    #[param(minimum = 1, maximum = 60_000)]
    timeout: Option<u64>,
    /// Hosts that are left out, separated by commas; `self` is the host that handles the request,
    /// for example because its cache has just missed.
    #[param(min_length = 1, example = "self")]
    except: Option<String>,
    /// What to do if no host holds the key; without it, status 404.
    #[serde(rename = "else")]
    #[param(inline)]
    otherwise: Option<Otherwise>,
    /// How to fetch the object.
    #[serde(default)]
    #[param(inline)]
    via: Via,
}

/// What to do if no host holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Otherwise {
    /// A redirect to the origin that the configuration names for the set.
    Origin,
}

/// How to fetch an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Via {
    /// The client fetches it from the host that holds it.
    #[default]
    Redirect,
    /// The host that handles the request passes it on.
    Proxy,
}

impl FetchQuery {
    fn how(&self) -> Result<Fetch, Problem> {
        let mut how = Fetch { timeout: timeout(self.timeout)?, ..Fetch::default() };
        for name in self.except.iter().flat_map(|names| names.split(',')) {
            match Name::new(name) {
                Some(_) if name == "self" => how.except_self = true,
                Some(name) => how.except.push(name),
                None => {
                    let detail = "except takes 'self' and names of hosts, with commas between them";
                    return Err(Problem::bad("except", detail));
                }
            }
        }
        Ok(how)
    }
}

/// Fetches the object of a key from a host that holds it.
///
/// The hosts that may hold the key are asked at the same time; the first that confirms it is
/// chosen. This host itself is asked first, unless `except` leaves it out. The response is a
/// redirect to the object, for which the holder must advertise where its objects are (`advertise`).
/// With `via=proxy` it is the object itself, which the holder reads from its own cache.
#[utoipa::path(
    get, path = "/v1/sets/{set}/fetch/{*key}", tag = "questions", params(KeyPath, FetchQuery),
    responses(
        (status = 200, description = "With `via=proxy`: the object", content_type = "application/octet-stream",
            body = Vec<u8>, headers(
            ("umbel-host" = String, description = "The host that holds it"))),
        (status = 307, description = "Where the object is", headers(
            ("location" = String, description = "The object's address at a host that holds it, or at the origin"))),
        (status = 502, description = "Hosts hold the object, but none could pass it on",
            content_type = "application/problem+json", body = Problem),
        Problems)
)]
pub(super) async fn fetch(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<FetchQuery>,
) -> Result<Response, Problem> {
    let key = query.encoding.decode(&path.written)?;
    let how = query.how()?;
    let problem = match query.via {
        Via::Proxy => match host.pass_on(&path.set, &key, &how).await? {
            Ok(object) => return Ok(respond(object)),
            Err(reason) => refusal(reason),
        },
        Via::Redirect => match host.fetch(&path.set, &key, &how).await?.and_then(redirect) {
            Some(response) => return Ok(response),
            None => {
                let detail = "no host that advertises where its objects are fetched holds the key";
                Problem::new(StatusCode::NOT_FOUND, "no_holder", detail)
            }
        },
    };
    match query.otherwise {
        None => Err(problem),
        Some(Otherwise::Origin) => {
            host.origin_address(&path.set, &key).and_then(redirect).ok_or_else(no_origin)
        }
    }
}

pub(super) fn redirect(address: String) -> Option<Response> {
    let location = HeaderValue::try_from(address).ok()?;
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, NO_STORE)];
    Some((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

/// The object itself. Its content is foreign: a browser must not treat it as a page of the host's
/// own origin, where the dashboard is.
fn respond(object: Object) -> Response {
    let (mut headers, holder) = (object.headers.clone(), object.holder.clone());
    let pieces = stream::unfold(Some(object), |object| async move {
        let mut object = object?;
        match object.next().await? {
            Ok(bytes) => Some((Ok(bytes), Some(object))),
            Err(broken_off) => Some((Err(broken_off), None)),
        }
    });
    headers.entry(header::CONTENT_TYPE).or_insert(UNKNOWN_TYPE);
    headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    if let Ok(holder) = HeaderValue::from_str(holder.as_str()) {
        headers.insert(HOLDER, holder);
    }
    (headers, Body::from_stream(pieces)).into_response()
}

fn refusal(reason: NotPassedOn) -> Problem {
    match reason {
        NotPassedOn::NoHolder => {
            Problem::new(StatusCode::NOT_FOUND, "no_holder", "no host holds the key")
        }
        NotPassedOn::Unreadable => Problem::new(
            StatusCode::BAD_GATEWAY,
            "unreadable",
            "hosts hold the key, but none could read the object from its cache in time",
        ),
        NotPassedOn::TooLarge { limit } => Problem::new(
            StatusCode::BAD_GATEWAY,
            "object_too_large",
            format!("the object has more than {limit} bytes (limits.proxy_bytes): use a redirect"),
        ),
        NotPassedOn::Busy => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_proxies",
            "as many objects are passed on as limits.proxies permits: try again, or use a redirect",
        ),
    }
}

fn no_origin() -> Problem {
    let detail = "no host holds the key, and the configuration names no origin for this set and key (origins)";
    Problem::new(StatusCode::NOT_FOUND, "no_origin", detail)
}

/// A host that holds a key now may not hold it the next time.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub(super) const UNKNOWN_TYPE: HeaderValue = HeaderValue::from_static("application/octet-stream");
pub(super) const SANDBOX: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
pub(super) const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const HOLDER: HeaderName = HeaderName::from_static("umbel-host");
