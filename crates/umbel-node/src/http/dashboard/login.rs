//! Logging in and out of the dashboard, and who is logged in.

use axum::extract::{Extension, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, RequestExt as _};
use serde::{Deserialize, Serialize};

use crate::access::{Identity, LoginError, Permission};
use crate::http::guard::{From, Gate, is_of_dashboard};
use crate::http::problem::Problem;

/// The user of the dashboard, and their permissions.
#[derive(Debug, Serialize)]
pub(super) struct Viewer {
    /// Whether a login is required before anything is shown.
    login_needed: bool,
    user: Option<String>,
    permissions: Vec<&'static str>,
}

impl Viewer {
    fn of(identity: &Identity) -> Self {
        let permissions: Vec<_> = identity.permissions().iter().map(Permission::as_str).collect();
        Self {
            login_needed: identity.user().is_none() && permissions.is_empty(),
            user: identity.user().map(str::to_owned),
            permissions,
        }
    }
}

/// The data of a login form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Credentials {
    user: String,
    password: String,
}

/// Which user is logged in. Needs no permission and returns nothing else.
pub(super) async fn session(Extension(gate): Extension<Gate>, request: Request) -> Json<Viewer> {
    let stranger = gate.access.stranger();
    let is_own = is_of_dashboard(request.method(), request.headers());
    let token = gate.sessions.token_of(request.headers()).filter(|_| is_own);
    let identity = token.and_then(|token| gate.sessions.identity(&token));
    Json(Viewer::of(&identity.unwrap_or(stranger)))
}

/// Checks user and password, and starts a session.
pub(super) async fn login(
    Extension(gate): Extension<Gate>,
    request: Request,
) -> Result<Response, Problem> {
    of_dashboard(&request)?;
    let from = request.extensions().get::<From>().map_or([0, 0, 0, 0].into(), |from| from.0);
    let sent: Result<Json<Credentials>, _> = request.extract().await;
    let Ok(Json(sent)) = sent else {
        return Err(Problem::bad("request", "a login is JSON: {\"user\":…,\"password\":…}"));
    };
    let identity = gate.access.login(&sent.user, sent.password.as_bytes(), from).await;
    let identity = identity.map_err(|error| match error {
        LoginError::TooMany => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", error.to_string())
        }
        LoginError::NoUsers => Problem::new(StatusCode::CONFLICT, "no_users", error.to_string()),
        LoginError::Wrong => {
            Problem::new(StatusCode::UNAUTHORIZED, "login", "wrong user name or password")
        }
    })?;
    let viewer = Viewer::of(&identity);
    let Some(cookie) = gate.sessions.begin(identity) else {
        let detail = "the system has no random bytes";
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "random", detail));
    };
    Ok(([(header::SET_COOKIE, cookie)], Json(viewer)).into_response())
}

/// Ends the session.
pub(super) async fn logout(
    Extension(gate): Extension<Gate>,
    request: Request,
) -> Result<Response, Problem> {
    of_dashboard(&request)?;
    let viewer = Json(Viewer::of(&gate.access.stranger()));
    match gate.sessions.token_of(request.headers()) {
        Some(token) => {
            let cookie = gate.sessions.end(&token);
            Ok(([(header::SET_COOKIE, cookie)], viewer).into_response())
        }
        None => Ok(viewer.into_response()),
    }
}

/// Refuses requests that a page of another origin makes a browser send.
fn of_dashboard(request: &Request) -> Result<(), Problem> {
    match is_of_dashboard(request.method(), request.headers()) {
        true => Ok(()),
        false => {
            let detail = "only the dashboard's own page logs in and out here";
            Err(Problem::new(StatusCode::FORBIDDEN, "origin", detail))
        }
    }
}
