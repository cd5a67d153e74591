//! The files of the dashboard's page, and the headers that keep a browser from loading anything
//! else.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::problem::{Problem, no_such_path};

/// A file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal $kind:ident),+ $(,)?) => {
        [$(Asset { name: $name, kind: $kind, text: include_str!(concat!("assets/", $name)) }),+]
    };
}

/// All files except the page itself.
static ASSETS: [Asset; 16] = assets![
    "style.css" CSS,
    "icon.svg" SVG,
    "app.js" SCRIPT,
    "api.js" SCRIPT,
    "chart.js" SCRIPT,
    "dom.js" SCRIPT,
    "format.js" SCRIPT,
    "host_map.js" SCRIPT,
    "store.js" SCRIPT,
    "login.js" SCRIPT,
    "overview.js" SCRIPT,
    "freshness.js" SCRIPT,
    "traffic.js" SCRIPT,
    "ask.js" SCRIPT,
    "set.js" SCRIPT,
    "plan.js" SCRIPT,
];

static PAGE: Asset =
    Asset { name: "index.html", kind: HTML, text: include_str!("assets/index.html") };

/// The page.
pub(super) async fn page(headers: HeaderMap) -> Response {
    PAGE.answer(&headers)
}

/// One of its files.
pub(super) async fn file(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => Ok(asset.answer(&headers)),
        None => Err(no_such_path().await),
    }
}

impl Asset {
    /// The file, or status 304 if the browser has it already.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let tag = self.tag();
        let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let known = known.is_some_and(|tags| tags.split(',').any(|one| one.trim() == tag));
        // The browser must revalidate every time, so that a page never mixes files of two versions.
        let caching = [(header::CACHE_CONTROL, "no-cache".to_owned()), (header::ETAG, tag)];
        match known {
            true => (StatusCode::NOT_MODIFIED, caching).into_response(),
            false => (caching, [(header::CONTENT_TYPE, self.kind)], self.text).into_response(),
        }
    }

    fn tag(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        format!("\"{:016x}\"", hasher.finish())
    }
}

/// Headers of all responses of the dashboard: only its own scripts run, no page may frame it, no
/// text becomes a script.
const PROTECTION: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Adds the headers; browsers must not store data.
pub(super) async fn protect(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in PROTECTION {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let caching = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(caching);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first view: the page and everything that it loads. The feed's first event is extra, see
    /// `rows`.
    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let all = || ASSETS.iter().chain([&PAGE]);
        let bytes: usize = all().map(|asset| asset.text.len()).sum();
        assert!(bytes < 100 << 10, "{bytes} bytes");
        for asset in all() {
            let svg = "http://www.w3.org/2000/svg";
            let text = asset.text.replace(svg, "");
            for word in
                ["http://", "https://", "//cdn", "@import", "innerHTML", "eval(", "style=\""]
            {
                let is_example = word == "http://" && asset.name == "plan.js";
                assert!(is_example || !text.contains(word), "{}: {word}", asset.name);
            }
        }
        assert!(!PAGE.text.contains("onclick"));
        let named = PAGE.text.matches("/dashboard/assets/").count();
        assert!(named >= 3, "style, icon and script");
    }

    #[test]
    fn every_import_is_a_file_of_the_page() {
        for asset in &ASSETS {
            for part in asset.text.split("from \"./").skip(1) {
                let name = part.split('"').next().unwrap();
                assert!(ASSETS.iter().any(|other| other.name == name), "{} {name}", asset.name);
            }
        }
    }
}
