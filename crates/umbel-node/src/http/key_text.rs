//! Keys are arbitrary bytes: their encoding in paths, bodies and answers.
//!
//! In a path a key is percent-encoded; everything after `/keys/` is the key, so that `/` need not
//! be encoded. In a body a key is one line, without any encoding. With `?encoding=base64` a key is
//! base64 with the URL-safe alphabet (RFC 4648 section 5) in all three places, with or without
//! padding. With `?encoding=number` it is an integer in all three places, and stands for 8 bytes.
//! Answers contain keys as text. So queries whose answers contain keys accept only UTF-8 keys,
//! unless another encoding is used.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use umbel::replica::Name;
use utoipa::{IntoParams, ToSchema};

use super::problem::Problem;
use crate::{Host, HostError};

/// How keys are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encoding {
    /// Not encoded: percent-encoded in a path, one per line in a body.
    #[default]
    Text,
    /// Base64 with the URL-safe alphabet, with or without padding.
    Base64,
    /// An integer from -2^63 to 2^64 - 1: the key is its 8 bytes, little-endian. For hashes of
    /// blocks.
    Number,
}

/// The query of routes that take a key and nothing else.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EncodingQuery {
    /// How keys are encoded in the path, in the body and in the answer.
    #[serde(default)]
    #[param(inline)]
    pub(super) encoding: Encoding,
}

impl Encoding {
    /// The maximum length of a line with a key.
    pub(super) const fn longest_line(self) -> usize {
        match self {
            Self::Text => Host::MAX_KEY,
            Self::Base64 => Host::MAX_KEY.div_ceil(3) * 4,
            Self::Number => 20,
        }
    }

    /// Decodes a key from a path or a line.
    pub(super) fn decode<'a>(self, written: &'a [u8]) -> Result<Cow<'a, [u8]>, Problem> {
        let key = match self {
            Self::Text => Cow::Borrowed(written),
            Self::Number => Cow::Owned(number(written)?.to_le_bytes().to_vec()),
            Self::Base64 => {
                let decoded = URL_SAFE_NO_PAD.decode(without_padding(written));
                Cow::Owned(decoded.map_err(|_| {
                    Problem::bad(
                        "base64",
                        "a key in base64 has letters, digits, '-' and '_' only (RFC 4648 section 5)",
                    )
                })?)
            }
        };
        match key.len() {
            1..=Host::MAX_KEY => Ok(key),
            given => Err(HostError::KeyLength { given, max: Host::MAX_KEY }.into()),
        }
    }

    /// Encodes a key for an answer.
    pub(super) fn encode<'a>(self, key: &'a [u8]) -> Result<Cow<'a, str>, Problem> {
        match self {
            Self::Base64 => Ok(Cow::Owned(URL_SAFE_NO_PAD.encode(key))),
            Self::Number => match <[u8; 8]>::try_from(key) {
                Ok(bytes) => Ok(Cow::Owned(u64::from_le_bytes(bytes).to_string())),
                Err(_) => {
                    Err(Problem::bad("number", "only a key of 8 bytes can be written as a number"))
                }
            },
            Self::Text => str::from_utf8(key).map(Cow::Borrowed).map_err(|_| {
                Problem::bad(
                    "not_text",
                    "a key that is no UTF-8 text cannot stand in the answer: use ?encoding=base64",
                )
            }),
        }
    }
}

/// An unsigned number, or a signed one in two's complement.
fn number(written: &[u8]) -> Result<u64, Problem> {
    let text = str::from_utf8(written).ok();
    let unsigned = text.and_then(|text| text.parse().ok());
    let signed = || text.and_then(|text| text.parse::<i64>().ok()).map(|number| number as u64);
    unsigned.or_else(signed).ok_or_else(|| {
        Problem::bad("number", "a key as a number is a whole number from -2^63 to 2^64 - 1")
    })
}

/// Removes the padding of at most two bytes.
fn without_padding(written: &[u8]) -> &[u8] {
    let bare = |written: &'_ [u8]| written.strip_suffix(b"=").map(<[u8]>::len);
    let one = bare(written).unwrap_or(written.len());
    let two = bare(&written[..one]).unwrap_or(one);
    &written[..two]
}

/// The set in a path: `/v1/sets/{set}…`.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SetPath {
    /// Name of the set: 1 to 255 bytes of printable text without spaces.
    #[param(min_length = 1, max_length = 255, pattern = r"^[!-~]+$", example = "images")]
    pub(super) set: String,
}

/// The set and the key in a path, the key only percent-decoded: `/v1/sets/{set}/…/{key}`.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct KeyPath {
    /// Name of the set: 1 to 255 bytes of printable text without spaces.
    #[param(min_length = 1, max_length = 255, pattern = r"^[!-~]+$", example = "images")]
    pub(super) set: String,
    /// The key: any bytes, percent-encoded; with `encoding=base64`, base64 with the URL-safe
    /// alphabet. A `/` need not be encoded. At most 32 KiB.
    #[param(rename = "key", value_type = String, min_length = 1, example = "cat.png")]
    pub(super) written: Vec<u8>,
}

fn set_of(path: &str) -> Result<String, Problem> {
    let segment = path.split('/').nth(3).unwrap_or_default();
    let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| HostError::SetName)?;
    Name::new(&decoded).ok_or(HostError::SetName)?;
    Ok(decoded.into_owned())
}

impl<S: Sync> FromRequestParts<S> for SetPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self { set: set_of(parts.uri.path())? })
    }
}

impl<S: Sync> FromRequestParts<S> for KeyPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // axum's own path parameters must be UTF-8; keys need not be.
        let path = parts.uri.path();
        let written = path.splitn(6, '/').nth(5).unwrap_or_default();
        Ok(Self { set: set_of(path)?, written: percent_decode_str(written).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(uri: &str) -> Parts {
        axum::http::Request::builder().uri(uri).body(()).unwrap().into_parts().0
    }

    #[tokio::test]
    async fn paths_name_any_key() {
        for (path, set, key) in [
            ("/v1/sets/images/keys/cat.png", "images", &b"cat.png"[..]),
            ("/v1/sets/images/who/layer/4f53", "images", b"layer/4f53"),
            ("/v1/sets/images/who/layer%2F4f53?x=/y", "images", b"layer/4f53"),
            ("/v1/sets/a%2Fb%C3%BC/keys/%00%FF+%20/", "a/bü", b"\0\xff+ /"),
        ] {
            let found = KeyPath::from_request_parts(&mut parts(path), &()).await.unwrap();
            assert_eq!((found.set.as_str(), &found.written[..]), (set, key));
        }
        for path in ["/v1/sets/a%20b", "/v1/sets/%FF", "/v1/sets/%00/keys/x"] {
            let refused = SetPath::from_request_parts(&mut parts(path), &()).await.unwrap_err();
            assert_eq!(refused, HostError::SetName.into());
        }
    }

    #[test]
    fn what_is_no_key_is_told_so() {
        for (encoding, written) in [
            (Encoding::Text, &b""[..]),
            (Encoding::Text, &[b'x'; Host::MAX_KEY + 1]),
            (Encoding::Base64, b""),
            (Encoding::Base64, b"=="),
            (Encoding::Base64, b"a"),
            (Encoding::Base64, b"YQ==="),
            (Encoding::Base64, b"Y Q"),
            (Encoding::Base64, b"+/+/"),
            (Encoding::Number, b""),
            (Encoding::Number, b"x"),
            (Encoding::Number, b"1.5"),
            (Encoding::Number, b"18446744073709551616"),
            (Encoding::Number, b"-9223372036854775809"),
        ] {
            assert!(encoding.decode(written).is_err(), "{written:?}");
        }
        assert_eq!(Encoding::Base64.decode(b"YQ==").unwrap(), &b"a"[..]);
        assert!(Encoding::Text.encode(b"\xff").is_err());
        assert!(Encoding::Number.encode(b"1234567").is_err());
    }

    #[test]
    fn numbers_are_eight_bytes_little_endian() {
        let key = |written: &str| Encoding::Number.decode(written.as_bytes()).unwrap().into_owned();
        assert_eq!(key("258"), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(key("-1"), [0xff; 8]);
        assert_eq!(key(&u64::MAX.to_string()), [0xff; 8]);
        assert_eq!(
            Encoding::Number.encode(&key("-9223372036854775808")).unwrap(),
            (1u64 << 63).to_string()
        );
    }

    proptest! {
        #[test]
        fn base64_carries_any_key(key in prop::collection::vec(any::<u8>(), 1..200)) {
            let written = Encoding::Base64.encode(&key).unwrap().into_owned();
            prop_assert_eq!(Encoding::Base64.decode(written.as_bytes()).unwrap(), &key[..]);
            prop_assert!(written.len() <= Encoding::Base64.longest_line());
        }
    }
}
