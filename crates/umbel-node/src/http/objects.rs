//! Objects that this host holds itself: files of a watched directory that it serves.

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::fetch::{NO_SNIFF, SANDBOX, UNKNOWN_TYPE};
use super::key_text::{EncodingQuery, KeyPath};
use super::problem::{Problem, Problems};
use crate::Host;

/// Bytes that are read from a file at once.
const PIECE: usize = 64 << 10;

/// The object of a key, from a directory of this host.
///
/// Only for sets whose watched directory is served (`watch.serve`). No other host is asked: this is
/// what such a host advertises.
#[utoipa::path(
    get, path = "/v1/sets/{set}/objects/{*key}", operation_id = "get_object", tag = "keys",
    params(KeyPath, EncodingQuery),
    responses(
        (status = 200, description = "The object", content_type = "application/octet-stream", body = Vec<u8>),
        Problems)
)]
pub(super) async fn get(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<EncodingQuery>,
) -> Result<Response, Problem> {
    let name = query.encoding.decode(&path.written)?.into_owned();
    let found = tokio::task::spawn_blocking(move || host.held_file(&path.set, &name)).await;
    let path = found.ok().flatten().ok_or_else(not_held)?;
    let file = File::open(path).await.map_err(|_| not_held())?;
    let length = file.metadata().await.map_err(|_| not_held())?.len();
    let headers = [
        (header::CONTENT_LENGTH, length.into()),
        (header::CONTENT_TYPE, UNKNOWN_TYPE),
        (header::CONTENT_SECURITY_POLICY, SANDBOX),
        (header::X_CONTENT_TYPE_OPTIONS, NO_SNIFF),
    ];
    Ok((headers, Body::from_stream(pieces(file.take(length)))).into_response())
}

/// The bytes of a file. One that became shorter meanwhile ends with an error: the length is known.
fn pieces(file: tokio::io::Take<File>) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> {
    stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut piece = Vec::with_capacity(PIECE.min(file.limit() as usize));
        match file.read_buf(&mut piece).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(piece.into()), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

fn not_held() -> Problem {
    let detail = "this host serves no file for the key: see watch.serve in the configuration";
    Problem::new(StatusCode::NOT_FOUND, "not_held", detail)
}
