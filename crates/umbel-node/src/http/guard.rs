//! Access control for a group of routes: checks a bearer token or a browser's session before a
//! handler sees the request, and again with every piece of a long body, in either direction.
//!
//! A browser sends its cookie also with requests that pages on other ports of the same machine
//! cause. So a session is accepted for a change only with a header that no page of another origin
//! can send ([`DASHBOARD_HEADER`]), and never if the browser reports that another origin caused the
//! request.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::problem::Problem;
use super::sessions::{Sessions, Token};
use crate::access::{Access, Identity, LoginError, Permission};

/// The address that a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct From(pub(super) IpAddr);

/// What decides whether a request may pass.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) access: Arc<Access>,
    pub(super) sessions: Arc<Sessions>,
}

/// A header that the dashboard's own scripts send. A page of another origin may add it only if
/// this host agrees beforehand (CORS), which it never does.
pub(super) const DASHBOARD_HEADER: &str = "x-umbel-dashboard";

/// Whether a request may count as the dashboard's: see the module's documentation.
pub(super) fn is_of_dashboard(method: &Method, headers: &HeaderMap) -> bool {
    let asks_only = matches!(*method, Method::GET | Method::HEAD);
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_own = matches!(site, None | Some(b"same-origin" | b"none"));
    is_own && (asks_only || headers.contains_key(DASHBOARD_HEADER))
}

/// Lets a request pass if its sender has the permission.
pub(super) async fn guard(needed: Permission, request: Request, next: Next) -> Response {
    let shown = Shown::of(&request);
    let (gate, session) = (shown.gate.clone(), shown.session());
    match shown.identity().await {
        Ok(identity) if identity.permissions().has(needed) && gate.access.is_open() => {
            next.run(request).await
        }
        Ok(identity) if identity.permissions().has(needed) => {
            let permit = Permit { gate, session, identity, needed };
            let request = request.map(|body| permit.clone().over(body));
            // A response of known length is already permitted; a stream may be cut off later.
            next.run(request).await.map(|body| match body.size_hint().exact() {
                Some(_) => body,
                None => permit.over(body),
            })
        }
        Ok(identity) => {
            let user = identity.user().unwrap_or_default();
            let detail = format!("user '{user}' has no permission for this: it needs '{needed}'");
            Problem::new(StatusCode::FORBIDDEN, "permission", detail).into_response()
        }
        Err(problem) => {
            let mut response = problem.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                let scheme = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            }
            response
        }
    }
}

/// A permission that may be revoked.
#[derive(Debug, Clone)]
struct Permit {
    gate: Gate,
    /// The session that it is based on, if any.
    session: Option<Token>,
    identity: Identity,
    needed: Permission,
}

/// Why a body is cut off.
#[derive(Debug, thiserror::Error)]
#[error("the user was removed, or has no permission for this any more")]
struct TakenAway;

impl Permit {
    /// A body that is cut off when the permission is revoked.
    fn over(self, body: Body) -> Body {
        if body.is_end_stream() { body } else { Body::new(Permitted { permit: self, body }) }
    }

    fn holds(&mut self) -> bool {
        match &self.session {
            None => self.gate.access.renew(&mut self.identity),
            Some(token) => match self.gate.sessions.identity(token) {
                Some(identity) => self.identity = identity,
                None => return false,
            },
        }
        self.identity.permissions().has(self.needed)
    }
}

/// A body that continues only while its permission holds.
#[derive(Debug)]
struct Permitted {
    permit: Permit,
    body: Body,
}

impl HttpBody for Permitted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match polled {
            Poll::Ready(Some(Ok(_))) if !self.permit.holds() => {
                Poll::Ready(Some(Err(axum::Error::new(TakenAway))))
            }
            polled => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The credentials of a request.
struct Shown {
    gate: Gate,
    token: Option<String>,
    session: Option<Token>,
    is_of_dashboard: bool,
    from: IpAddr,
}

impl Shown {
    fn of(request: &Request) -> Self {
        let gate = request.extensions().get::<Gate>();
        let gate = gate.expect("every route is behind the layer that adds it").clone();
        let value = request.headers().get(header::AUTHORIZATION);
        let token = value.and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
        });
        let from = request.extensions().get::<From>();
        let from = from.map_or(IpAddr::from([0, 0, 0, 0]), |from| from.0);
        let session = gate.sessions.token_of(request.headers());
        let is_of_dashboard = is_of_dashboard(request.method(), request.headers());
        Self { gate, token, session, is_of_dashboard, from }
    }

    /// The session to use: none if there is a token as well.
    fn session(&self) -> Option<Token> {
        self.session.clone().filter(|_| self.token.is_none())
    }

    async fn identity(self) -> Result<Identity, Problem> {
        let access = &self.gate.access;
        if access.is_open() {
            return Ok(access.stranger());
        }
        let refuse = |status, code, detail: &str| Problem::new(status, code, detail);
        let Some(token) = &self.token else { return self.identity_of_session() };
        access.bearer(token, self.from).await.map_err(|error| match error {
            LoginError::TooMany => {
                refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", &error.to_string())
            }
            _ => refuse(StatusCode::UNAUTHORIZED, "token", "this token is nobody's"),
        })
    }

    fn identity_of_session(&self) -> Result<Identity, Problem> {
        let refuse = |code, detail| Problem::new(StatusCode::UNAUTHORIZED, code, detail);
        let Some(session) = &self.session else {
            return Err(refuse("token", "a token is needed: authorization: Bearer TOKEN"));
        };
        if !self.is_of_dashboard {
            let detail =
                "a session of the dashboard is for the dashboard's own requests: use a token";
            return Err(Problem::new(StatusCode::FORBIDDEN, "origin", detail));
        }
        let identity = self.gate.sessions.identity(session);
        identity.ok_or_else(|| refuse("session", "the session is over: log in again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_for_requests_of_the_dashboard_only() {
        let of = |pairs: &[(&'static str, &str)]| -> HeaderMap {
            pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect()
        };
        let own = (DASHBOARD_HEADER, "1");
        for (method, headers, counts) in [
            (Method::GET, of(&[]), true),
            (Method::GET, of(&[("sec-fetch-site", "same-origin")]), true),
            (Method::GET, of(&[("sec-fetch-site", "none")]), true),
            (Method::GET, of(&[("sec-fetch-site", "same-site")]), false),
            (Method::GET, of(&[("sec-fetch-site", "cross-site"), own]), false),
            (Method::POST, of(&[]), false),
            (Method::PATCH, of(&[("sec-fetch-site", "same-origin")]), false),
            (Method::PATCH, of(&[own]), true),
            (Method::DELETE, of(&[("sec-fetch-site", "same-site"), own]), false),
        ] {
            assert_eq!(is_of_dashboard(&method, &headers), counts, "{method} {headers:?}");
        }
    }
}
