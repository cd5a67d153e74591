//! Where objects are fetched from that no host holds.

use std::fmt;
use std::str::FromStr;

use crate::{Confirm, Template};

/// An origin of objects: of one set, or of all sets without an origin of their own.
///
/// Written `images=http://origin.example/{key}`, or without a set's name. The server is part of
/// the configuration: neither a set's name nor a key can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectOrigin {
    set: Option<String>,
    template: Template,
}

impl ObjectOrigin {
    /// The set that it belongs to; `None`: all others.
    #[must_use]
    pub fn set(&self) -> Option<&str> {
        self.set.as_deref()
    }

    /// The template of an object's address.
    #[must_use]
    pub const fn template(&self) -> &Template {
        &self.template
    }
}

impl FromStr for ObjectOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = "a URL of a server with {key} or {key64} is needed, such as \
                     http://origin.example/{key}, after SET= for one set";
        let (set, url) = split(text);
        let sound_set = set.is_none_or(|set| umbel::replica::Name::new(set).is_some());
        match format!("GET {url}").parse() {
            Ok(Confirm::Cache(template)) if sound_set && !template.needs_advertise() => {
                Ok(Self { set: set.map(str::to_owned), template })
            }
            _ => Err(range.to_owned()),
        }
    }
}

/// The name of the set, if there is one, and the URL.
fn split(text: &str) -> (Option<&str>, &str) {
    if text.starts_with("http://") || text.starts_with("https://") {
        return (None, text);
    }
    let first = ["=http://", "=https://"].iter().filter_map(|start| text.find(start)).min();
    match first {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    }
}

impl fmt::Display for ObjectOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.set {
            Some(set) => write!(f, "{set}={}", self.template),
            None => write!(f, "{}", self.template),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_and_written_back() {
        for (text, set) in [
            ("http://origin.example/{key}", None),
            ("images=https://origin.example:8443/o/{set}/{key64}", Some("images")),
            ("a=b=http://origin.example/?u=http://x/{key}", Some("a=b")),
        ] {
            let origin: ObjectOrigin = text.parse().unwrap();
            assert_eq!((origin.set(), origin.to_string().as_str()), (set, text));
        }
    }

    #[test]
    fn what_would_let_a_request_choose_the_server_is_refused() {
        for text in [
            "",
            "images",
            "images=",
            "images=origin.example/{key}",
            "http://origin.example/",
            "http://{key}/",
            "http://{set}.example/{key}",
            "http://origin.example@{key}",
            "{advertise}/{key}",
            "images={advertise}/{key}",
            "=http://origin.example/{key}",
            "a b=http://origin.example/{key}",
            "ftp://origin.example/{key}",
            "http://origin.example/{key}\n",
        ] {
            assert!(text.parse::<ObjectOrigin>().is_err(), "{text}");
        }
    }
}
