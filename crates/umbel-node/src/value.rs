//! Values in reports about a host, as ports and commands show them.

use serde::{Serialize, Serializer};

/// One value that RESP, HTTP and the command line can all show.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// An unsigned integer.
    Whole(u64),
    /// A rate or a time.
    Real(f64),
    /// A boolean.
    Flag(bool),
    /// Unknown, or not applicable.
    Nothing,
    /// A list.
    List(Vec<Self>),
}

/// Named values, in the order in which they are shown.
pub type Fields = Vec<(&'static str, Value)>;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Nothing => serializer.serialize_none(),
            Self::List(values) => serializer.collect_seq(values),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}
