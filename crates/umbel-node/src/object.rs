//! Messages for the transfer of an object between two hosts, piece by piece.
//!
//! ```text
//! reply = 0                                      the cache does not hold the object
//!       | 1, flags, headers, bytes of the piece   flag 1: this is the last piece
//!       | 2                                      no reply from the cache, or an unknown transfer
//!       | 3, u64 limit                           the object is longer than the host passes on
//!       | 4                                      the host passes on as many objects as it may
//! headers: u32 length, lines of "name: value\n"; only those of HEADERS, in every piece
//! ```
//!
//! The receiver requests one piece after the other, by its offset. So a receiver that stops reading
//! stops the transfer, and a lost piece is requested again.
//!
//! Always true of a decoded reply: its headers are among [`HEADERS`] and valid, so that a host
//! cannot make another one send a cookie or a redirect.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Maximum length of a piece, in bytes.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Maximum length of all headers together, in bytes; those that do not fit are left out.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// Headers that are sent with an object: its type, and how long it stays fresh.
const HEADERS: [HeaderName; 10] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::CACHE_CONTROL,
    header::EXPIRES,
    header::AGE,
    header::VARY,
];

/// A piece of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    pub(crate) is_last: bool,
}

/// The reply to a request for a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceReply {
    Absent,
    Piece(Piece),
    Unknown,
    TooLarge { limit: u64 },
    Busy,
}

const ABSENT: u8 = 0;
const PIECE: u8 = 1;
const UNKNOWN: u8 = 2;
const TOO_LARGE: u8 = 3;
const BUSY: u8 = 4;
const LAST: u8 = 1;

impl PieceReply {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Absent => vec![ABSENT],
            Self::Unknown => vec![UNKNOWN],
            Self::Busy => vec![BUSY],
            Self::TooLarge { limit } => [&[TOO_LARGE], &limit.to_le_bytes()[..]].concat(),
            Self::Piece(Piece { headers, bytes, is_last }) => {
                let headers = write_headers(headers);
                let length = (headers.len() as u32).to_le_bytes();
                let flags = if *is_last { LAST } else { 0 };
                [&[PIECE, flags], &length[..], &headers, bytes].concat()
            }
        }
    }

    /// Decodes a reply; `None` if it is invalid.
    pub(crate) fn decode(reply: Vec<u8>) -> Option<Self> {
        let mut rest = Bytes::from(reply);
        let kind = *rest.first()?;
        match kind {
            ABSENT if rest.len() == 1 => Some(Self::Absent),
            UNKNOWN if rest.len() == 1 => Some(Self::Unknown),
            BUSY if rest.len() == 1 => Some(Self::Busy),
            TOO_LARGE => {
                let limit = u64::from_le_bytes(rest[1..].try_into().ok()?);
                Some(Self::TooLarge { limit })
            }
            PIECE => {
                let flags = *rest.get(1)?;
                let length = u32::from_le_bytes(rest.get(2..6)?.try_into().ok()?) as usize;
                if flags > LAST || length > rest.len() - 6 || length > MAX_HEADER_BYTES {
                    return None;
                }
                let bytes = rest.split_off(6 + length);
                let headers = read_headers(&rest[6..])?;
                let fits = bytes.len() <= PIECE_BYTES;
                fits.then_some(Self::Piece(Piece { headers, bytes, is_last: flags == LAST }))
            }
            _ => None,
        }
    }
}

/// Selects those of a cache's headers that are sent with its object.
pub(crate) fn chosen(headers: &HeaderMap) -> HeaderMap {
    let mut chosen = HeaderMap::new();
    let mut room = MAX_HEADER_BYTES;
    for name in HEADERS {
        let Some(value) = headers.get(&name) else { continue };
        let length = name.as_str().len() + value.len() + 3;
        if length <= room {
            room -= length;
            chosen.insert(name, value.clone());
        }
    }
    chosen
}

fn write_headers(headers: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.push(b'\n');
    }
    out
}

fn read_headers(text: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n")?;
        let colon = line.windows(2).position(|two| two == b": ")?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(&line[colon + 2..]).ok()?;
        if !HEADERS.contains(&name) {
            return None;
        }
        headers.insert(name, value);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(bytes: &'static [u8]) -> PieceReply {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
        headers.insert(header::ETAG, HeaderValue::from_static("\"a: b\""));
        PieceReply::Piece(Piece { headers, bytes: Bytes::from_static(bytes), is_last: true })
    }

    #[test]
    fn replies_are_understood() {
        for reply in [
            PieceReply::Absent,
            PieceReply::Unknown,
            PieceReply::Busy,
            PieceReply::TooLarge { limit: 7 },
            piece(b""),
            piece(b"some bytes\n"),
        ] {
            assert_eq!(PieceReply::decode(reply.encode()).as_ref(), Some(&reply));
        }
    }

    #[test]
    fn a_host_cannot_make_another_one_send_other_headers() {
        let reply = |headers: &str| {
            let length = (headers.len() as u32).to_le_bytes();
            PieceReply::decode([&[1, 0], &length[..], headers.as_bytes(), b"x"].concat())
        };
        assert!(reply("content-type: text/plain\n").is_some());
        for headers in [
            "set-cookie: a=b\n",
            "location: http://evil.example\n",
            "content-type: a",
            "content-type\n",
            "content-type: a\r\n",
            "\n",
        ] {
            assert_eq!(reply(headers), None, "{headers:?}");
        }
    }

    #[test]
    fn a_cache_with_long_headers_loses_those_that_do_not_fit() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, HeaderValue::try_from("e".repeat(9000)).unwrap());
        headers.insert(header::SET_COOKIE, HeaderValue::from_static("a=b"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("3"));
        let names: Vec<_> = chosen(&headers).keys().cloned().collect();
        assert_eq!(names, [header::CONTENT_LENGTH]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = PieceReply::decode(bytes.clone());
            let _ = PieceReply::decode([&[PIECE, 1], &bytes[..]].concat());
        }
    }
}
