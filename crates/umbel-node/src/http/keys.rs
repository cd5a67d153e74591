//! Single keys of this host: add, remove, look up. Answers are exact.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_text::{Encoding, EncodingQuery, KeyPath};
use super::lifetime::Seconds;
use super::problem::{Problem, Problems};
use crate::{Host, Lifetime};

/// The query of routes that add keys.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AddQuery {
    /// How keys are encoded in the path or in the body.
    #[serde(default)]
    #[param(inline)]
    pub(super) encoding: Encoding,
    /// Seconds after which the keys expire, or `none`: they do not; without it, the set's default
    /// lifetime.
    #[param(value_type = Option<Seconds>, inline)]
    lifetime: Option<String>,
}

impl AddQuery {
    pub(super) fn lifetime(&self) -> Result<Lifetime, Problem> {
        let lifetime = self.lifetime.as_deref().map(Seconds::read).transpose()?;
        lifetime.map_or(Ok(Lifetime::Default), Seconds::lifetime)
    }
}

/// The result of adding a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Added {
    /// Whether it is new.
    added: bool,
}

/// The result of removing a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Removed {
    /// Whether it was held.
    removed: bool,
}

/// The result of looking up a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Held {
    /// Always true: if the key is not held, the response is a problem with status 404.
    held: bool,
}

/// Adds a key to this host's set, which is created if it does not exist.
///
/// The response is sent when the key is durable.
#[utoipa::path(
    put, path = "/v1/sets/{set}/keys/{*key}", operation_id = "add_key", tag = "keys",
    params(KeyPath, AddQuery),
    responses((status = 201, description = "It is new", body = Added),
              (status = 200, description = "It was held already", body = Added), Problems)
)]
pub(super) async fn put(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<AddQuery>,
) -> Result<(StatusCode, Json<Added>), Problem> {
    let (key, lifetime) = (query.encoding.decode(&path.written)?, query.lifetime()?);
    let mut answers = Vec::with_capacity(1);
    let turn = host.turn(&path.set).await;
    let ticket = host.add(&path.set, &[&*key], lifetime, &mut answers)?;
    drop(turn);
    host.settled(ticket).await?;
    let added = answers == [true];
    let status = if added { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Added { added })))
}

/// Removes a key from this host's set.
///
/// The response is sent when that is durable.
#[utoipa::path(
    delete, path = "/v1/sets/{set}/keys/{*key}", operation_id = "remove_key", tag = "keys",
    params(KeyPath, EncodingQuery),
    responses((status = 200, description = "It is not held now", body = Removed), Problems)
)]
pub(super) async fn delete(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<EncodingQuery>,
) -> Result<Json<Removed>, Problem> {
    let removed = host.remove_key(&path.set, &query.encoding.decode(&path.written)?).await?;
    Ok(Json(Removed { removed }))
}

/// Whether this host itself holds a key.
#[utoipa::path(
    get, path = "/v1/sets/{set}/keys/{*key}", operation_id = "has_key", tag = "keys",
    params(KeyPath, EncodingQuery),
    responses((status = 200, description = "It is held", body = Held), Problems)
)]
pub(super) async fn get(
    State(host): State<Host>,
    path: KeyPath,
    Query(query): Query<EncodingQuery>,
) -> Result<Json<Held>, Problem> {
    let key = query.encoding.decode(&path.written)?;
    let mut answers = Vec::with_capacity(1);
    host.has(&path.set, &[&*key], &mut answers)?;
    if answers == [true] {
        return Ok(Json(Held { held: true }));
    }
    let detail = "this host does not hold the key; 'who' names hosts that may";
    Err(Problem::new(StatusCode::NOT_FOUND, "not_held", detail))
}
