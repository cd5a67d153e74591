//! Who may use a group of routes: a bearer token, checked before a handler sees the request, and
//! with every piece of a body that is long under way, in either direction.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::problem::Problem;
use crate::access::{Access, Identity, LoginError, Permission};

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct From(pub(super) IpAddr);

/// What is asked whether a request may pass.
#[derive(Debug, Clone)]
pub(super) struct Gate(pub(super) Arc<Access>);

/// Lets a request pass if whoever sends it may do this.
pub(super) async fn guard(needed: Permission, request: Request, next: Next) -> Response {
    let shown = Shown::of(&request);
    let access = Arc::clone(&shown.access);
    match shown.identity().await {
        Ok(identity) if identity.permissions().has(needed) && access.is_open() => {
            next.run(request).await
        }
        Ok(identity) if identity.permissions().has(needed) => {
            let permit = Permit { access, identity, needed };
            let request = request.map(|body| permit.clone().over(body));
            // What is answered whole was permitted; what goes on for long may end.
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

/// A permission that may be taken away.
#[derive(Debug, Clone)]
struct Permit {
    access: Arc<Access>,
    identity: Identity,
    needed: Permission,
}

/// Why a body breaks off.
#[derive(Debug, thiserror::Error)]
#[error("the user was removed, or has no permission for this any more")]
struct TakenAway;

impl Permit {
    /// A body that breaks off when the permission is taken away.
    fn over(self, body: Body) -> Body {
        if body.is_end_stream() { body } else { Body::new(Permitted { permit: self, body }) }
    }

    fn holds(&mut self) -> bool {
        self.access.renew(&mut self.identity);
        self.identity.permissions().has(self.needed)
    }
}

/// A body as long as its permission holds.
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

/// What a request says of whoever sends it.
struct Shown {
    access: Arc<Access>,
    token: Option<String>,
    from: IpAddr,
}

impl Shown {
    fn of(request: &Request) -> Self {
        let gate = request.extensions().get::<Gate>();
        let Gate(access) = gate.expect("every route is behind the layer that adds it");
        let told = request.headers().get(header::AUTHORIZATION);
        let token = told.and_then(|told| told.to_str().ok()).and_then(|told| {
            let (scheme, token) = told.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
        });
        let from = request.extensions().get::<From>();
        let from = from.map_or(IpAddr::from([0, 0, 0, 0]), |from| from.0);
        Self { access: Arc::clone(access), token, from }
    }

    async fn identity(self) -> Result<Identity, Problem> {
        if self.access.is_open() {
            return Ok(self.access.stranger());
        }
        let refuse = |status, code, detail: &str| Problem::new(status, code, detail);
        let Some(token) = self.token else {
            let detail = "a token is needed: authorization: Bearer TOKEN";
            return Err(refuse(StatusCode::UNAUTHORIZED, "token", detail));
        };
        self.access.bearer(&token, self.from).await.map_err(|error| match error {
            LoginError::TooMany => {
                refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", &error.to_string())
            }
            _ => refuse(StatusCode::UNAUTHORIZED, "token", "this token is nobody's"),
        })
    }
}
