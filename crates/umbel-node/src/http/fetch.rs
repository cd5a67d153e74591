//! A redirect to where an object is: a reverse proxy needs no client code.

use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::key_text::KeyPath;
use super::locate::LocateQuery;
use super::problem::{Problem, Problems};
use crate::Host;

/// Redirects to the object at a host that holds it.
///
/// The hosts that may hold the key are asked at the same time; the first that confirms it and
/// has told where its objects are fetched (`advertise`) is it. This host itself is asked first.
#[utoipa::path(
    get, path = "/v1/sets/{set}/fetch/{*key}", tag = "questions", params(KeyPath, LocateQuery),
    responses(
        (status = 307, description = "Where the object is", headers(
            ("location" = String, description = "The object's address at a host that holds it"))),
        Problems)
)]
pub(super) async fn fetch(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<LocateQuery>,
) -> Result<Response, Problem> {
    let key = query.encoding.decode(&path.written)?;
    let address = host.fetch(&path.set, &key, query.timeout()?).await?;
    let location = address.and_then(|address| HeaderValue::try_from(address).ok());
    let Some(location) = location else {
        let detail = "no host that has told where its objects are fetched holds the key";
        return Err(Problem::new(StatusCode::NOT_FOUND, "no_holder", detail));
    };
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, NO_STORE)];
    Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

/// Who holds a key now may not do so the next time.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
