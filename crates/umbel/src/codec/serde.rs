//! Serde support: a filter is serialized as the bytes of [`encode`], in human-readable formats as
//! hexadecimal text.
//!
//! A filter with a secret seed is written with the seed's fingerprint and read back locked: call
//! `unlock` with its seed. A filter that is read takes at most [`Decoder::LIMIT`] bytes of memory.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{AnyFilter, Decoder, encode};
use crate::filter::{BlockedFilter, CountingFilter, DynamicFilter, StandardFilter};

fn write<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return serializer.serialize_bytes(bytes);
    }
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    serializer.serialize_str(&text)
}

/// Visitor for the bytes of a filter, in any of these forms.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter, or hexadecimal text of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).map(|half| half as u8);
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.ok_or_else(|| E::custom("a filter is written as pairs of hexadecimal digits"))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Vec<u8>, A::Error> {
        let mut read = Vec::new();
        while let Some(byte) = bytes.next_element()? {
            read.push(byte);
        }
        Ok(read)
    }
}

impl Serialize for AnyFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(&self.encode(), serializer)
    }
}

impl<'de> Deserialize<'de> for AnyFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(Bytes)?,
            false => deserializer.deserialize_byte_buf(Bytes)?,
        };
        Decoder::new().accept_locked().filter(&bytes).map_err(D::Error::custom)
    }
}

macro_rules! filter {
    ($filter:ty, $what:literal) => {
        impl Serialize for $filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                write(&encode(self), serializer)
            }
        }

        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let any = AnyFilter::deserialize(deserializer)?;
                Self::try_from(any).map_err(|other| {
                    D::Error::custom(format_args!("{} was expected, not {}", $what, other.kind()))
                })
            }
        }
    };
}

filter!(StandardFilter, "a standard filter");
filter!(BlockedFilter, "a blocked filter");
filter!(CountingFilter, "a counting filter");
filter!(DynamicFilter, "a dynamic filter");
filter!(DynamicFilter<StandardFilter>, "a dynamic filter of plain components");
