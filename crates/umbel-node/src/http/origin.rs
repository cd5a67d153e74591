//! Prevents web pages of other origins from changing anything.
//!
//! A browser sends simple requests of any page to any address, including this machine's loopback,
//! without asking first. It sends the page's origin: if that is not the target of the request, a
//! change is refused. Clients that are not browsers send no origin.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;

/// Lets a request pass unless it is a change that a page of another origin has caused.
pub(super) async fn check(request: Request, next: Next) -> Response {
    let asks_only = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if asks_only || is_own(request.headers()) {
        return next.run(request).await;
    }
    let detail = "a web page of another origin may not change anything here";
    Problem::new(StatusCode::FORBIDDEN, "origin", detail).into_response()
}

/// Whether the origin in the request, if any, is this host.
fn is_own(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Some(host) = headers.get(header::HOST) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| origin.as_bytes().eq_ignore_ascii_case(host.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_elsewhere_are_refused() {
        for (host, origin, own) in [
            ("localhost:7441", None, true),
            ("localhost:7441", Some("http://localhost:7441"), true),
            ("cache-1", Some("https://CACHE-1"), true),
            ("localhost:7441", Some("http://localhost:80"), false),
            ("localhost:7441", Some("https://evil.example"), false),
            ("localhost:7441", Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(is_own(&headers), own, "{origin:?}");
        }
    }
}
