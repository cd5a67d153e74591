//! Decodes replies of a host.
//!
//! Always true: a reply of an unexpected type is an error.

use anyhow::anyhow;
use redis::Value;

use super::Address;
use crate::output::JsonKey;

/// The error for a reply of an unexpected type.
pub(crate) fn wrong_answer(address: &Address, answer: &Value) -> anyhow::Error {
    let kind = match answer {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) | Value::SimpleString(_) | Value::Okay => "a text",
        Value::Array(_) => "another list",
        Value::Map(_) => "a map",
        _ => "something else",
    };
    anyhow!(
        "{address} answered {kind} where a host of umbel would not: \
         are this umbel and that one of different versions?"
    )
}

/// One yes or no per key.
pub(crate) fn flags(answer: &Value, keys: usize) -> Option<impl Iterator<Item = bool>> {
    let Value::Array(values) = answer else { return None };
    let flag = |value: &Value| match value {
        Value::Int(0) | Value::Boolean(false) => Some(false),
        Value::Int(1) | Value::Boolean(true) => Some(true),
        _ => None,
    };
    let is_valid = values.len() == keys && values.iter().all(|value| flag(value).is_some());
    is_valid.then(|| values.iter().filter_map(flag))
}

/// A text or the bytes of a key.
pub(crate) fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// A list of texts.
pub(crate) fn texts(value: &Value) -> Option<Vec<&[u8]>> {
    let (Value::Array(values) | Value::Set(values)) = value else { return None };
    values.iter().map(text).collect()
}

/// A page of keys: the next cursor, and some keys.
pub(crate) fn page(answer: &Value) -> Option<(&[u8], Vec<&[u8]>)> {
    match answer {
        Value::Array(parts) => match &parts[..] {
            [cursor, keys] => Some((text(cursor)?, texts(keys)?)),
            _ => None,
        },
        _ => None,
    }
}

/// The fields of a map, in the host's order.
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a Value)>);

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value) -> Option<Self> {
        let name = |value: &'a Value| text(value).and_then(|name| str::from_utf8(name).ok());
        let fields: Option<Vec<_>> = match value {
            Value::Map(pairs) => {
                pairs.iter().map(|(key, value)| Some((name(key)?, value))).collect()
            }
            Value::Array(flat) if flat.len().is_multiple_of(2) => {
                flat.chunks_exact(2).map(|pair| Some((name(&pair[0])?, &pair[1]))).collect()
            }
            _ => None,
        };
        fields.map(Self)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0.iter().copied()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, value)| *value)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(text).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// A list of texts; empty if the host does not send the field.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let values = self.get(name).and_then(texts).unwrap_or_default();
        values.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Int(number) => Some(*number as f64),
            Value::Double(number) => Some(*number),
            other => text(other).and_then(|text| str::from_utf8(text).ok()?.parse().ok()),
        }
    }
}

/// A reply as JSON: maps keep the host's order, bytes that are not text become hex.
pub(crate) fn json(answer: &Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match answer {
        Value::Int(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Okay => "OK".into(),
        Value::SimpleString(text) => text.as_str().into(),
        Value::VerbatimString { text, .. } => text.as_str().into(),
        Value::BulkString(bytes) => serde_json::to_value(JsonKey::of(bytes)).unwrap_or(Json::Null),
        Value::Array(values) | Value::Set(values) => values.iter().map(json).collect(),
        Value::Map(pairs) => {
            let field = |(key, value): &(Value, Value)| {
                (String::from_utf8_lossy(text(key).unwrap_or_default()).into_owned(), json(value))
            };
            Json::Object(pairs.iter().map(field).collect())
        }
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_another_kind_are_none() {
        let answer = Value::Array(vec![Value::Int(1), Value::Int(0)]);
        assert_eq!(flags(&answer, 2).unwrap().collect::<Vec<_>>(), [true, false]);
        assert!(flags(&answer, 3).is_none(), "one answer a key");
        assert!(flags(&Value::Array(vec![Value::Int(2)]), 1).is_none());
        assert!(flags(&Value::Okay, 0).is_none());
        assert!(texts(&answer).is_none());
        assert!(Fields::of(&Value::Array(vec![Value::Okay])).is_none());
    }
}
