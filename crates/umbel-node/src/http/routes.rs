//! All routes, grouped by the permission that a client needs.

use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::{Extension, Router, middleware};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::guard::{Gate, guard};
use super::{
    App, Limits, authority, bulk, chain, dashboard, events, fetch, health, hosts, keys, listing,
    locate, metrics, missing, names, objects, oci, openapi, origin, plan, problem, sets, who,
};
use crate::access::Permission;

/// Routes that are open to everybody, so that probes and client generators need no password.
fn open() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(openapi::openapi))
}

/// Queries: they change nothing.
fn read() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(keys::get))
        .routes(routes!(listing::list))
        .routes(routes!(names::longest))
        .routes(routes!(who::one))
        .routes(routes!(who::many))
        .routes(routes!(chain::chain))
        .routes(routes!(locate::locate))
        .routes(routes!(missing::missing))
        .routes(routes!(fetch::fetch))
        .routes(routes!(objects::get))
        .route("/v2/", get(oci::version))
        .routes(routes!(oci::get))
        .routes(routes!(sets::list))
        .routes(routes!(sets::get))
        .routes(routes!(hosts::hosts))
        .routes(routes!(hosts::status))
        .routes(routes!(events::events))
        .routes(routes!(metrics::metrics))
        .routes(routes!(plan::replica))
}

/// Routes that change keys.
fn write() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(keys::put))
        .routes(routes!(keys::delete))
        .routes(routes!(bulk::add))
        .routes(routes!(bulk::remove))
        .routes(routes!(names::announce))
        .routes(routes!(names::withdraw))
        .routes(routes!(sets::publish))
}

/// Routes that change sets.
fn admin() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(sets::put))
        .routes(routes!(sets::patch))
        .routes(routes!(sets::delete))
}

/// A group of routes that requires this permission.
fn guarded(routes: OpenApiRouter<App>, needed: Permission) -> OpenApiRouter<App> {
    routes.route_layer(middleware::from_fn(move |request, next| guard(needed, request, next)))
}

/// The description as JSON: the content of `/openapi.json`.
///
/// ```
/// let json: serde_json::Value = serde_json::from_str(&umbel_node::http::description())?;
/// assert!(json["paths"]["/v1/sets/{set}/keys/{key}"]["put"].is_object());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn description() -> String {
    described().1
}

/// All routes, and their description as JSON.
pub(super) fn described() -> (Router<App>, String) {
    let groups = [
        open(),
        guarded(read(), Permission::Read),
        guarded(write(), Permission::Write),
        guarded(admin(), Permission::Admin),
    ];
    let all = groups
        .into_iter()
        .fold(OpenApiRouter::with_openapi(openapi::begin()), OpenApiRouter::merge);
    let (router, api) = all.split_for_parts();
    (router, openapi::finish(api))
}

/// All routes of a host, with the layers that every request passes through.
pub(super) fn router(
    app: App,
    names: authority::Names,
    limits: &Limits,
    stopped: watch::Receiver<bool>,
) -> Router {
    let (routes, description) = described();
    let metrics = std::sync::Arc::clone(&app.metrics);
    let access = std::sync::Arc::clone(app.host.access());
    let gate = Gate { access, sessions: std::sync::Arc::clone(&app.sessions) };
    routes
        .merge(dashboard::router())
        .fallback(problem::no_such_path)
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(DefaultBodyLimit::max(limits.question_bytes))
        .layer(Extension(openapi::Description(description.into())))
        .layer(Extension(stopped))
        .layer(Extension(gate))
        .layer(middleware::from_fn(origin::check))
        .layer(middleware::from_fn_with_state(names, authority::check))
        .layer(middleware::map_response(problem::from_framework))
        .layer(middleware::from_fn_with_state(metrics, metrics::count))
        .with_state(app)
}
