//! Who confirms a claim: the catalogue, or the cache whose objects it lists.
//!
//! ```text
//! none                                  the catalogue's
//! [HEAD|GET] URL                        the cache's: 2xx, it holds the object; 404 or 410, it does not
//! ```
//!
//! In the URL `{advertise}` stands for the address from which the host's objects are fetched,
//! `{set}` for the set, `{key}` for the key with everything percent-encoded except letters, digits
//! and `-._~/`, and `{key64}` for the key in base64 with the URL-safe alphabet.
//!
//! Always true of a [`Template`]: the server that is asked does not depend on set or key, and is
//! either the host's own (`{advertise}`) or the one in the template. A host permits only the
//! servers in its configuration: otherwise an admin could make a host send requests to any address
//! that it reaches, and learn from the answers of `LOCATE` what is there.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Who confirms a claim.
///
/// ```
/// use umbel_node::Confirm;
///
/// let confirm: Confirm = "HEAD {advertise}/objects/{key}".parse()?;
/// let Confirm::Cache(template) = &confirm else { unreachable!() };
/// let url = template.url("http://cache-1:8080", "images", b"cat 1.png");
/// assert_eq!(url.as_deref(), Some("http://cache-1:8080/objects/cat%201.png"));
/// # Ok::<(), umbel_node::ConfirmError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confirm {
    /// The catalogue.
    #[default]
    Catalogue,
    /// The cache itself, asked over HTTP.
    Cache(Template),
}

/// How to ask a cache for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Whether to request the object itself, for caches that do not support `HEAD`.
    whole: bool,
    url: Arc<str>,
}

/// The text is not a valid setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "'none' is needed, or a URL with {{key}} or {{key64}}, such as 'HEAD {{advertise}}/{{key}}', of at most 255 bytes"
)]
pub struct ConfirmError;

const PLACES: [&str; 4] = ["{advertise}", "{set}", "{key}", "{key64}"];

impl FromStr for Confirm {
    type Err = ConfirmError;

    fn from_str(text: &str) -> Result<Self, ConfirmError> {
        if text == "none" {
            return Ok(Self::Catalogue);
        }
        let (method, url) = text.split_once(' ').unwrap_or(("HEAD", text));
        let bare = PLACES.iter().fold(url.to_owned(), |url, place| url.replace(place, ""));
        let is_valid = matches!(method, "HEAD" | "GET")
            && has_valid_server(url)
            && (url.contains("{key}") || url.contains("{key64}"))
            && !bare.contains(['{', '}'])
            && url.len() <= 255
            && url.chars().all(|c| c.is_ascii_graphic());
        let template = Template { whole: method == "GET", url: url.into() };
        if is_valid { Ok(Self::Cache(template)) } else { Err(ConfirmError) }
    }
}

/// Whether a URL begins with `{advertise}`, or with the address of one server.
fn has_valid_server(url: &str) -> bool {
    match url.strip_prefix("{advertise}") {
        // Anything else would extend the name of the server.
        Some(rest) => rest.starts_with(['/', '?']) && !rest.contains("{advertise}"),
        None => origin(url).is_some() && !url.contains("{advertise}"),
    }
}

/// Scheme and server of a URL, such as `http://cache-1:8080`, in lower case; `None` if it is not an
/// HTTP URL, or its server is not a single name or address.
pub(crate) fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let server = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let is_valid =
        ["http", "https"].contains(&&*scheme) && !server.is_empty() && server.chars().all(is_plain);
    is_valid.then(|| format!("{scheme}://{}", server.to_ascii_lowercase()))
}

impl fmt::Display for Confirm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogue => f.write_str("none"),
            Self::Cache(Template { whole, url }) => {
                write!(f, "{} {url}", if *whole { "GET" } else { "HEAD" })
            }
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl Template {
    /// Whether the object itself is requested and not only its headers.
    #[must_use]
    pub const fn asks_for_the_whole(&self) -> bool {
        self.whole
    }

    /// Whether it needs the host's `advertise` to locate the cache.
    #[must_use]
    pub fn needs_advertise(&self) -> bool {
        self.url.contains("{advertise}")
    }

    /// The server in the template; `None`: the host's own.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        if self.needs_advertise() { None } else { origin(&self.url) }
    }

    /// The address of an object; `None` for a key with a component `.` or `..`, which would lead
    /// out of the directory.
    #[must_use]
    pub fn url(&self, advertise: &str, set: &str, key: &[u8]) -> Option<String> {
        let leads_out = |part: &[u8]| part == b"." || part == b"..";
        if self.url.contains("{key}") && key.split(|byte| *byte == b'/').any(leads_out) {
            return None;
        }
        let text = |bytes| percent_encode(bytes, IN_ADDRESS).to_string();
        // `{advertise}` first, and keys last, so that nothing in a key is taken for a placeholder.
        let url = self.url.replace("{advertise}", advertise.trim_end_matches('/'));
        let url = url.replace("{set}", &text(set.as_bytes()));
        let url = url.replace("{key64}", &URL_SAFE_NO_PAD.encode(key));
        Some(url.replace("{key}", &text(key)))
    }
}

/// The characters that are not encoded: RFC 3986's unreserved ones, and `/`.
const IN_ADDRESS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The address of a key's object at a host that advertises this URL.
pub(crate) fn object_address(
    confirm: &Confirm,
    advertise: &str,
    set: &str,
    key: &[u8],
) -> Option<String> {
    match confirm {
        Confirm::Cache(template) if template.needs_advertise() => template.url(advertise, set, key),
        _ => {
            let template = Template { whole: false, url: "{advertise}/{key}".into() };
            template.url(advertise, set, key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_back() {
        for (text, written) in [
            ("none", "none"),
            ("HEAD {advertise}/{key}", "HEAD {advertise}/{key}"),
            ("{advertise}/{key}", "HEAD {advertise}/{key}"),
            ("GET https://cache/{set}?o={key64}", "GET https://cache/{set}?o={key64}"),
            ("{advertise}?o={key64}", "HEAD {advertise}?o={key64}"),
        ] {
            assert_eq!(text.parse::<Confirm>().unwrap().to_string(), written);
        }
        let long = format!("http://a/{{key}}{}", "x".repeat(255));
        for text in [
            "",
            "HEAD",
            "HEAD {advertise}",
            "PUT {advertise}/{key}",
            "ftp://a/{key}",
            "a/{key}",
            "http://a/{key}/{what}",
            "http://a b/{key}",
            "http://a/{key}\n",
            "{advertise}.evil.example/{key}",
            "{advertise}@evil.example/{key}",
            "{advertise}{key}",
            "http://{key}/x",
            "http://{set}.example/{key}",
            "http://a@b/{key}",
            "http:///{key}",
            "http://a/{advertise}/{key}",
            &long,
        ] {
            assert_eq!(text.parse::<Confirm>(), Err(ConfirmError), "{text}");
        }
    }

    #[test]
    fn keys_cannot_change_what_is_asked() {
        let template = |text: &str| match text.parse().unwrap() {
            Confirm::Cache(template) => template,
            Confirm::Catalogue => unreachable!(),
        };
        let by_key = template("{advertise}/o/{set}/{key}");
        let url = |key: &[u8]| by_key.url("http://a/", "s s", key);
        assert_eq!(url(b"x/y").as_deref(), Some("http://a/o/s%20s/x/y"));
        assert_eq!(url(b"a?b#c{key}").as_deref(), Some("http://a/o/s%20s/a%3Fb%23c%7Bkey%7D"));
        for key in [&b".."[..], b"../secret", b"a/../b", b"."] {
            assert_eq!(url(key), None, "{key:?}");
        }
        let by_64 = template("http://c/{key64}");
        assert_eq!(by_64.url("", "s", b"../\xff").as_deref(), Some("http://c/Li4v_w"));
    }
}
