//! Many keys in a body that is read completely: one key per line, or a JSON array.
//!
//! The content type decides: `application/json` is an array of strings, or an object whose only
//! field `keys` is one; any other type is read as lines.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::key_text::Encoding;
use super::lines::Lines;
use super::problem::Problem;

/// Keys as JSON: an array, or an object that contains one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it stands in the description; `read_array` reads it")]
pub(super) enum KeyArray {
    /// An array.
    Bare(Vec<KeyText>),
    /// An object with no other field.
    Named(NamedKeys),
}

/// An object with an array of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamedKeys {
    /// In the encoding that the query gives.
    #[schema(example = json!(["cat.png", "dog.png"]))]
    keys: Vec<KeyText>,
}

/// A key: a string, or with `encoding=number` also a number.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum KeyText {
    /// In the encoding that the query gives.
    Text(String),
    /// A number of 64 bits, with `encoding=number`.
    Positive(u64),
    /// A negative one.
    Negative(i64),
}

impl KeyText {
    /// The key as it would be written in a line.
    pub(super) fn written(self, encoding: Encoding) -> Result<String, Problem> {
        match (self, encoding) {
            (Self::Text(text), _) => Ok(text),
            (Self::Positive(number), Encoding::Number) => Ok(number.to_string()),
            (Self::Negative(number), Encoding::Number) => Ok(number.to_string()),
            _ => Err(Problem::bad("body", "a key is a text; numbers need ?encoding=number")),
        }
    }
}

/// Whether a body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// The keys of a JSON array.
pub(super) fn read_array(body: &[u8]) -> Result<Vec<KeyText>, Problem> {
    let array = match serde_json::from_slice(body) {
        Ok(Value::Array(keys)) => Some(keys),
        Ok(Value::Object(mut fields)) if fields.len() == 1 => match fields.remove("keys") {
            Some(Value::Array(keys)) => Some(keys),
            _ => None,
        },
        _ => None,
    };
    let keys = array.map(|keys| keys.into_iter().map(key_text).collect::<Option<_>>());
    keys.flatten().ok_or_else(|| {
        Problem::bad("body", "JSON with keys is an array of texts, or {\"keys\": [...]}")
    })
}

fn key_text(value: Value) -> Option<KeyText> {
    match value {
        Value::String(text) => Some(KeyText::Text(text)),
        Value::Number(number) => {
            let positive = number.as_u64().map(KeyText::Positive);
            positive.or_else(|| number.as_i64().map(KeyText::Negative))
        }
        _ => None,
    }
}

/// A body of many keys.
#[derive(Debug)]
pub(super) struct KeyList {
    pub(super) body: Bytes,
    is_json: bool,
}

impl<S: Send + Sync> FromRequest<S> for KeyList {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let is_json = is_json(request.headers());
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(IntoResponse::into_response)?;
        Ok(Self { body, is_json })
    }
}

impl KeyList {
    /// The keys. One that is invalid, or cannot be written in the answer, is an error.
    pub(super) fn keys(&self, encoding: Encoding) -> Result<Vec<Vec<u8>>, Problem> {
        if self.is_json { self.array(encoding) } else { self.lines(encoding) }
    }

    fn array(&self, encoding: Encoding) -> Result<Vec<Vec<u8>>, Problem> {
        let key = |(number, key): (usize, KeyText)| {
            let written = key.written(encoding)?;
            key_of(written.as_bytes(), encoding)
                .map_err(|problem| problem.after(&format!("key {number} of the array")))
        };
        (1..).zip(read_array(&self.body)?).map(key).collect()
    }

    fn lines(&self, encoding: Encoding) -> Result<Vec<Vec<u8>>, Problem> {
        let (mut lines, mut cut, mut last) =
            (Lines::new(encoding.longest_line()), Vec::new(), Vec::new());
        lines.split(&self.body, &mut cut);
        let mut keys = Vec::with_capacity(cut.len() + 1);
        let mut push = |number: u64, line: Result<&[u8], usize>| {
            let max = encoding.longest_line();
            let too_long = |given| {
                Problem::bad("key_length", format!("a line has at most {max} bytes, not {given}"))
            };
            let key = line.map_err(too_long).and_then(|line| key_of(line, encoding));
            keys.push(key.map_err(|problem| problem.after(&format!("line {number}")))?);
            Ok::<_, Problem>(())
        };
        cut.drain(..).try_for_each(|(number, line)| push(number, line))?;
        lines.finish(&mut last);
        last.into_iter().try_for_each(|(number, line)| push(number, line))?;
        Ok(keys)
    }
}

/// A key that can be written in an answer.
fn key_of(written: &[u8], encoding: Encoding) -> Result<Vec<u8>, Problem> {
    let key = encoding.decode(written)?;
    encoding.encode(&key)?;
    Ok(key.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn list(body: &'static str, is_json: bool) -> KeyList {
        KeyList { body: Bytes::from_static(body.as_bytes()), is_json }
    }

    #[test]
    fn arrays_and_lines_have_the_same_keys() {
        let lines = list("a\nb\n", false).keys(Encoding::Text).unwrap();
        for body in [r#"["a","b"]"#, r#"{"keys":["a","b"]}"#, " [ \"a\" , \"b\" ] "] {
            assert_eq!(list(body, true).keys(Encoding::Text).unwrap(), lines, "{body}");
        }
        assert_eq!(list(r#"["a\nb"]"#, true).keys(Encoding::Text).unwrap(), [b"a\nb"]);
        let numbers = list("[1,-1,\"2\"]", true).keys(Encoding::Number).unwrap();
        assert_eq!(numbers, list("1\n-1\n2", false).keys(Encoding::Number).unwrap());
        assert!(list("[]", true).keys(Encoding::Text).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_array_of_keys_is_refused() {
        for body in [
            "",
            "{",
            "null",
            "\"a\"",
            "1",
            "{}",
            "[1]",
            "[null]",
            "[[\"a\"]]",
            "[\"\"]",
            r#"{"keys":"a"}"#,
            r#"{"keys":["a"],"more":1}"#,
            r#"{"key":["a"]}"#,
        ] {
            assert!(list(body, true).keys(Encoding::Text).is_err(), "{body}");
        }
    }

    #[test]
    fn the_content_type_says_what_is_json() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/vnd.api+json", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonlines", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            assert_eq!(is_json(&headers), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
