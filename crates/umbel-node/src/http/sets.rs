//! Sets: list, plan, change, publish, delete.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::key_text::SetPath;
use super::lifetime::Seconds;
use super::problem::{Problem, Problems};
use crate::host::Change;
use crate::{ChainQuery, Host, Lifetime, SetInfo};

/// The sets that any host is known to have.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sets {
    /// In the order of their names.
    sets: Vec<SetInfo>,
}

/// The plan of a set. What is left out stays as it is, or takes the host's default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Plan {
    /// Chance that one lookup of an absent key names any wrong host, with all expected hosts.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0, example = 0.01)]
    false_positive: Option<f64>,
    /// Keys that this host will hold.
    #[schema(minimum = 1, maximum = 1_099_511_627_776_u64, example = 100_000)]
    capacity: Option<u64>,
    /// Number of hosts among which the rate is divided.
    #[schema(minimum = 1, maximum = 1_000_000, example = 32)]
    expected_hosts: Option<u32>,
    /// When replicas are too stale.
    #[schema(example = "miss:0.01,ghost=0.05,longest=1s")]
    policy: Option<String>,
    /// Lifetime in seconds of keys that are added from now on, unless given with the key; `none`:
    /// they do not expire.
    #[schema(inline, example = 86_400)]
    lifetime: Option<Seconds>,
    /// Who confirms one of this host's keys: `none` for the catalogue alone, otherwise how the
    /// cache is asked.
    #[schema(example = "HEAD {advertise}/{key}")]
    confirm: Option<String>,
    /// Makes it a set of chains, whose depths are multiples of this many keys. `false_positive` is
    /// then the chance, per host and chain, that a depth is too large by more than this.
    #[schema(minimum = 1, maximum = 1024, example = 8)]
    chains: Option<u32>,
}

/// A plan in a request. Without this type an array would be accepted too, as the fields in order.
#[derive(Debug)]
pub(super) struct Sent(Plan);

impl<'de> Deserialize<'de> for Sent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = serde_json::Map::deserialize(deserializer)?;
        Plan::deserialize(object).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Plan {
    fn change(&self) -> Result<Change, Problem> {
        let policy = self.policy.as_deref().map(str::parse).transpose();
        let policy = policy.map_err(|error: umbel::replica::PolicyError| {
            Problem::bad("policy", error.to_string())
        })?;
        let confirm = self.confirm.as_deref().map(str::parse).transpose();
        let confirm = confirm.map_err(|error: crate::ConfirmError| {
            Problem::bad("confirm", format!("confirm: {error}"))
        })?;
        if self.capacity.is_some_and(|keys| !(1..=1 << 40).contains(&keys)) {
            return Err(Problem::bad("plan", "capacity is a whole number from 1 to 2^40"));
        }
        if self.expected_hosts.is_some_and(|hosts| !(1..=1_000_000).contains(&hosts)) {
            return Err(Problem::bad("plan", "expected_hosts is a whole number from 1 to 1000000"));
        }
        if self.chains.is_some_and(|step| !(1..=ChainQuery::MAX_STEP).contains(&step)) {
            return Err(Problem::bad("plan", "chains is a whole number of keys from 1 to 1024"));
        }
        Ok(Change {
            false_positive: self.false_positive,
            capacity: self.capacity,
            expected_hosts: self.expected_hosts,
            policy,
            lifetime: self.lifetime.map_or(Ok(Lifetime::Default), Seconds::lifetime)?,
            confirm,
            chains: self.chains,
        })
    }
}

/// The result of deleting a set.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deleted {
    /// Always true: if this host does not have the set, the response is a problem with status 404.
    deleted: bool,
}

/// The result of publishing a set.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Published {
    /// Always true: if this host does not have the set, the response is a problem with status 404.
    published: bool,
}

/// All sets that this host or any other known host has.
#[utoipa::path(
    get, path = "/v1/sets", operation_id = "list_sets", tag = "sets",
    responses((status = 200, description = "The sets", body = Sets))
)]
pub(super) async fn list(State(host): State<Host>) -> Json<Sets> {
    // The lock of the state may be held while a message is decoded.
    let listed = tokio::task::spawn_blocking(move || {
        host.sets().iter().filter_map(|set| host.set_info(set).ok()).collect()
    });
    Json(Sets { sets: listed.await.unwrap_or_default() })
}

/// Details of one set: items, shape, policy, estimated and measured rates, traffic.
#[utoipa::path(
    get, path = "/v1/sets/{set}", operation_id = "get_set", tag = "sets", params(SetPath),
    responses((status = 200, description = "The set", body = SetInfo), Problems)
)]
pub(super) async fn get(
    State(host): State<Host>,
    SetPath { set }: SetPath,
) -> Result<Json<SetInfo>, Problem> {
    Ok(Json(describe(&host, &set)?))
}

/// Details of one set. Takes a pass over its bits: other tasks of this thread continue elsewhere
/// meanwhile.
fn describe(host: &Host, set: &str) -> Result<SetInfo, Problem> {
    Ok(tokio::task::block_in_place(|| host.full_set_info(set))?)
}

/// Creates a set on this host, or rebuilds an existing one with another plan.
///
/// Until the new filter is published, the old one answers.
#[utoipa::path(
    put, path = "/v1/sets/{set}", operation_id = "put_set", tag = "sets", params(SetPath), request_body = Plan,
    responses((status = 201, description = "It was made", body = SetInfo),
              (status = 200, description = "It was there, and has the new plan", body = SetInfo), Problems)
)]
pub(super) async fn put(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Json(Sent(plan)): Json<Sent>,
) -> Result<(StatusCode, Json<SetInfo>), Problem> {
    let (made, ticket) = host.make_or_change(&set, &plan.change()?)?;
    host.settled(ticket).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(describe(&host, &set)?)))
}

/// Changes parts of the plan of this host's own set.
#[utoipa::path(
    patch, path = "/v1/sets/{set}", operation_id = "patch_set", tag = "sets", params(SetPath), request_body = Plan,
    responses((status = 200, description = "The set as it is now", body = SetInfo), Problems)
)]
pub(super) async fn patch(
    State(host): State<Host>,
    SetPath { set }: SetPath,
    Json(Sent(plan)): Json<Sent>,
) -> Result<Json<SetInfo>, Problem> {
    let ticket = host.change(&set, &plan.change()?)?;
    host.settled(ticket).await?;
    Ok(Json(describe(&host, &set)?))
}

/// Deletes this host's own set with all its keys. Other hosts keep their sets of the same name.
#[utoipa::path(
    delete, path = "/v1/sets/{set}", operation_id = "delete_set", tag = "sets", params(SetPath),
    responses((status = 200, description = "It is gone", body = Deleted), Problems)
)]
pub(super) async fn delete(
    State(host): State<Host>,
    SetPath { set }: SetPath,
) -> Result<Json<Deleted>, Problem> {
    // Takes a pass over its keys.
    let (deleted, ticket) = tokio::task::block_in_place(|| host.delete(&set))?;
    if !deleted {
        return Err(crate::HostError::NotOwn(set).into());
    }
    host.settled(ticket).await?;
    Ok(Json(Deleted { deleted }))
}

/// Publishes everything of this host's own set now, removals included.
#[utoipa::path(
    post, path = "/v1/sets/{set}/publish", operation_id = "publish_set", tag = "sets", params(SetPath),
    responses((status = 200, description = "It is on its way", body = Published), Problems)
)]
pub(super) async fn publish(
    State(host): State<Host>,
    SetPath { set }: SetPath,
) -> Result<Json<Published>, Problem> {
    host.publish(&set)?;
    Ok(Json(Published { published: true }))
}
