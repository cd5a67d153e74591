//! Details of one set: what the set's page and the charts show.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::history::Series;
use crate::SetInfo;
use crate::host::{Finding, ReplicaReport, SetReport, findings};
use crate::http::App;
use crate::http::key_text::SetPath;
use crate::http::problem::Problem;

/// Maximum number of replicas that are listed.
const MAX_REPLICAS: usize = 500;

/// Details of one set.
#[derive(Debug, Serialize)]
pub(super) struct Detail {
    info: SetInfo,
    miss_target: Option<f64>,
    ghost_target: Option<f64>,
    /// Share of one bits in each component of the own filter.
    fills: Vec<f64>,
    own_bytes: Option<u64>,
    keys_added: Option<u64>,
    keys_removed: Option<u64>,
    /// Replicas here, those that are behind first.
    replicas: Vec<ReplicaReport>,
    findings: Vec<Finding>,
    history: Series,
}

/// Details of one set.
pub(super) async fn detail(
    State(app): State<App>,
    SetPath { set }: SetPath,
) -> Result<Json<Detail>, Problem> {
    let made = tokio::task::spawn_blocking(move || make(&app, &set));
    match made.await {
        Ok(detail) => detail.map(Json),
        Err(_) => Err(Problem::from(crate::HostError::Stopping)),
    }
}

fn make(app: &App, set: &str) -> Result<Detail, Problem> {
    let mut report: SetReport = app.host.report_set(set, &mut |_, _| ())?;
    let mut replicas = app.host.replicas_of(set);
    replicas.sort_by(|one, other| {
        other.lag_seconds.total_cmp(&one.lag_seconds).then_with(|| one.host.cmp(&other.host))
    });
    replicas.truncate(MAX_REPLICAS);
    report.info.disagreement = app.host.disagreement(set);
    let findings = findings(&report);
    let own = report.own;
    Ok(Detail {
        miss_target: own.as_ref().and_then(|own| own.miss_target),
        ghost_target: own.as_ref().and_then(|own| own.ghost_target),
        own_bytes: own.as_ref().map(|own| own.memory_bytes),
        keys_added: own.as_ref().map(|own| own.changed.added),
        keys_removed: own.as_ref().map(|own| own.changed.removed),
        fills: own.map(|own| own.fills).unwrap_or_default(),
        info: report.info,
        replicas,
        findings,
        history: app.feed.series(set),
    })
}
