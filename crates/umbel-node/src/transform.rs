//! From the name under which an object is asked for to the key that a set holds.
//!
//! ```text
//! transform = step { "|" step }                      each takes what the one before it made
//! step      = "md5" | "sha256"                       the digest, in lower case hex
//!           | "path"                                 the path of a URI: decoded, without query and leading /
//!           | "template:" text                       with {key} for what came in, {key[A..B]} for a part of it
//! ```
//!
//! A negative position in a part counts from the end; a part that is longer than its text is cut.
//! So `template:/{key}|md5` is how nginx names the file of `proxy_cache_key $uri`.

use std::fmt;
use std::str::FromStr;

use md5::{Digest as _, Md5};
use percent_encoding::percent_decode;
use sha2::Sha256;

/// How a set's keys are made from the names that clients ask for.
///
/// ```
/// use umbel_node::Transform;
///
/// let nginx: Transform = "template:/{key}|md5".parse()?;
/// assert_eq!(nginx.key(b"cat.png"), b"8ded4a2dde88c77bb9d08c603a3a4f09");
/// let registry: Transform = "template:sha256/{key[7..9]}/{key[7..]}/data".parse()?;
/// assert_eq!(registry.key(b"sha256:0a1b2c"), b"sha256/0a/0a1b2c/data");
/// # Ok::<(), umbel_node::TransformError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transform {
    steps: Vec<Step>,
}

/// The text is not a transform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "steps with | between them are needed, each md5, sha256, path or template:TEXT with {{key}} or {{key[A..B]}} in it, such as 'template:/{{key}}|md5'"
)]
pub struct TransformError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Md5,
    Sha256,
    Path,
    Template(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A part of what came in; `None`: its beginning or its end.
    Key(Option<i32>, Option<i32>),
}

impl Transform {
    /// The key of what is asked for under this name.
    #[must_use]
    pub fn key(&self, name: &[u8]) -> Vec<u8> {
        self.steps.iter().fold(name.to_vec(), |text, step| step.apply(&text))
    }
}

impl Step {
    fn apply(&self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => hex(Md5::digest(text).as_slice()),
            Self::Sha256 => hex(Sha256::digest(text).as_slice()),
            Self::Path => path(text),
            Self::Template(parts) => parts.iter().fold(Vec::new(), |mut made, part| {
                made.extend_from_slice(part.of(text));
                made
            }),
        }
    }
}

impl Part {
    fn of<'a>(&'a self, text: &'a [u8]) -> &'a [u8] {
        let (from, to) = match self {
            Self::Text(text) => return text.as_bytes(),
            Self::Key(from, to) => (*from, *to),
        };
        let place = |at: i32| match usize::try_from(at) {
            Ok(at) => at.min(text.len()),
            Err(_) => text.len().saturating_sub(at.unsigned_abs() as usize),
        };
        let (from, to) = (from.map_or(0, place), to.map_or(text.len(), place));
        text.get(from..to).unwrap_or_default()
    }
}

fn hex(digest: &[u8]) -> Vec<u8> {
    digest.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// The path of a URI, or of a request's target.
fn path(uri: &[u8]) -> Vec<u8> {
    let end = uri.iter().position(|byte| b"?#".contains(byte)).unwrap_or(uri.len());
    let uri = &uri[..end];
    let after_scheme = uri.windows(3).position(|part| part == b"://").map(|at| &uri[at + 3..]);
    let path = match after_scheme {
        Some(rest) => rest.iter().position(|byte| *byte == b'/').map_or(&b""[..], |at| &rest[at..]),
        None => uri,
    };
    let begin = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    percent_decode(&path[begin..]).collect()
}

impl FromStr for Transform {
    type Err = TransformError;

    fn from_str(text: &str) -> Result<Self, TransformError> {
        let is_valid = text.len() <= 255 && text.chars().all(|c| !c.is_control());
        if !is_valid {
            return Err(TransformError);
        }
        let steps = text.split('|').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }
}

impl FromStr for Step {
    type Err = TransformError;

    fn from_str(text: &str) -> Result<Self, TransformError> {
        match text.split_once(':') {
            None if text == "md5" => Ok(Self::Md5),
            None if text == "sha256" => Ok(Self::Sha256),
            None if text == "path" => Ok(Self::Path),
            Some(("template", text)) => template(text).map(Self::Template),
            _ => Err(TransformError),
        }
    }
}

/// The parts of a template, one of which is the key or a part of it: otherwise all names would have
/// the same key.
fn template(mut text: &str) -> Result<Vec<Part>, TransformError> {
    let mut parts = Vec::new();
    while let Some((before, rest)) = text.split_once('{') {
        let (inner, after) = rest.split_once('}').ok_or(TransformError)?;
        parts.push(Part::Text(before.to_owned()));
        parts.push(placeholder(inner)?);
        text = after;
    }
    let has_key = !parts.is_empty();
    parts.push(Part::Text(text.to_owned()));
    parts.retain(|part| *part != Part::Text(String::new()));
    let is_closed =
        !parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('}')));
    if has_key && is_closed { Ok(parts) } else { Err(TransformError) }
}

fn placeholder(inner: &str) -> Result<Part, TransformError> {
    if inner == "key" {
        return Ok(Part::Key(None, None));
    }
    let range = inner.strip_prefix("key[").and_then(|range| range.strip_suffix(']'));
    let (from, to) = range.and_then(|range| range.split_once("..")).ok_or(TransformError)?;
    let place = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| TransformError),
    };
    Ok(Part::Key(place(from)?, place(to)?))
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.steps.iter().enumerate() {
            if place > 0 {
                f.write_str("|")?;
            }
            write!(f, "{step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Self::Md5 => return f.write_str("md5"),
            Self::Sha256 => return f.write_str("sha256"),
            Self::Path => return f.write_str("path"),
            Self::Template(parts) => parts,
        };
        f.write_str("template:")?;
        let place = |place: &Option<i32>| place.map(|place| place.to_string()).unwrap_or_default();
        for part in parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Key(None, None) => f.write_str("{key}")?,
                Part::Key(from, to) => write!(f, "{{key[{}..{}]}}", place(from), place(to))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(transform: &str, name: &str) -> String {
        let parsed: Transform = transform.parse().unwrap();
        assert_eq!(parsed.to_string(), transform, "it is written back");
        String::from_utf8(parsed.key(name.as_bytes())).unwrap()
    }

    #[test]
    fn names_become_keys() {
        let hash = "8ded4a2dde88c77bb9d08c603a3a4f09"; // printf /cat.png | md5sum
        let levels = "template:/{key}|md5|template:{key[-1..]}/{key[-3..-1]}/{key}";
        for (transform, name, expected) in [
            ("md5", "/cat.png", hash),
            ("template:/{key}|md5", "cat.png", hash),
            (levels, "cat.png", &*format!("9/f0/{hash}")),
            (
                "sha256",
                "", // sha256sum < /dev/null
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            ("path", "https://origin.example/a/b%20c.png?x=1#y", "a/b c.png"),
            ("path", "/a/b?c", "a/b"),
            ("path", "a", "a"),
            ("path", "https://origin.example", ""),
            ("path|template:{key}.gz", "/a", "a.gz"),
            ("template:{key[7..9]}/{key[7..]}", "sha256:0a1b", "0a/0a1b"),
            ("template:{key[..2]}|template:<{key[1..]}>", "abc", "<b>"),
            // Parts beyond the end are empty.
            ("template:{key[7..9]}/{key[-9..]}{key[2..1]}", "abc", "/abc"),
        ] {
            assert_eq!(key(transform, name), expected, "{transform} of {name}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "",
            "md4",
            "md5|",
            "|md5",
            "md5:",
            "template",
            "template:",
            "template:always the same",
            "template:{name}",
            "template:{key",
            "template:key}{key}",
            "template:{key[1]}",
            "template:{key[a..]}",
            "template:{key[1..99999999999]}",
            "template:{key}\n",
            &format!("template:{{key}}{}", "x".repeat(255)),
        ] {
            assert_eq!(text.parse::<Transform>(), Err(TransformError), "{text}");
        }
    }
}
