//! The dashboard: a page at `/` that shows the cluster as this host sees it.
//!
//! ```text
//! sampler ─► history (a few sets, twice a second) ─┐
//! survey  ─► rows (all sets and hosts, once a second, while somebody looks) ─► feed ─► browsers
//! ```
//!
//! The page is static and the same for everybody, so it needs no login; it contains no data. Live
//! data comes over one stream of server-sent events (`feed`), details of one set as JSON
//! (`detail`), queries and changes use the routes of the API. All of these need the same
//! permissions as elsewhere.
//!
//! Always true: no file of the page loads anything from another origin, and headers make the
//! browser refuse it (`assets`); the memory per reader of the feed is bounded; text from outside
//! reaches the page as JSON and is shown as text.
//!
//! Not here: sessions and permissions (`sessions`, `guard`).

mod assets;
mod detail;
mod dirty_rule;
mod feed;
mod history;
mod login;
mod rows;

use axum::{Router, middleware};

use super::App;
use super::guard::guard;
use crate::access::Permission;

pub(super) use feed::Feed;

/// The page, its login, and its live data. Not part of the API's description: the page always has
/// the same version as the host that serves it.
pub(super) fn router() -> Router<App> {
    let read = Router::new()
        .route("/dashboard/feed", axum::routing::get(feed::feed))
        .route("/dashboard/sets/{set}", axum::routing::get(detail::detail))
        .route_layer(middleware::from_fn(|request, next| guard(Permission::Read, request, next)));
    Router::new()
        .route("/", axum::routing::get(assets::page))
        .route("/dashboard/assets/{file}", axum::routing::get(assets::file))
        .route("/dashboard/session", axum::routing::get(login::session))
        .route("/dashboard/login", axum::routing::post(login::login))
        .route("/dashboard/logout", axum::routing::post(login::logout))
        .merge(read)
        .layer(middleware::map_response(assets::protect))
}
