//! Lifetimes of keys in requests: seconds, or `none` for keys that do not expire.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use super::problem::Problem;
use crate::Lifetime;

/// A lifetime in a body: a number of seconds, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "a lifetime is a number of seconds, or \"none\"")]
pub(super) enum Seconds {
    Number(f64),
    Word(Word),
}

/// The word for an unlimited lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    None,
}

const MIN: f64 = 0.001;
const MAX: f64 = 1e9;

impl Seconds {
    /// Parses a lifetime in a query, where everything is text.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "none" => Ok(Self::Word(Word::None)),
            _ => text.parse().map(Self::Number).map_err(|_| refused()),
        }
    }

    /// The lifetime, if it is in the permitted range.
    pub(super) fn lifetime(self) -> Result<Lifetime, Problem> {
        match self {
            Self::Word(Word::None) => Ok(Lifetime::Forever),
            Self::Number(seconds) if (MIN..=MAX).contains(&seconds) => {
                Ok(Lifetime::For(Duration::from_secs_f64(seconds)))
            }
            Self::Number(_) => Err(refused()),
        }
    }
}

fn refused() -> Problem {
    Problem::bad("lifetime", "a lifetime is a number of seconds from 0.001 to 10^9, or 'none'")
}

impl PartialSchema for Seconds {
    fn schema() -> RefOr<Schema> {
        let of = |kind| ObjectBuilder::new().schema_type(SchemaType::new(kind));
        let number = of(Type::Number).minimum(Some(MIN)).maximum(Some(MAX));
        let word = of(Type::String).enum_values(Some(["none"]));
        OneOfBuilder::new().item(number).item(word).into()
    }
}

impl ToSchema for Seconds {}
