//! A span that has been sampled: what is recorded while it is open, and exported when it closes.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, Instant, SystemTime};

use tracing::field::{Field, Visit};

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
}

/// What `tracing` records of a span: attributes, and the fields that steer the export.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) name: Option<String>,
    pub(super) kind: Kind,
    pub(super) traceparent: Option<String>,
    pub(super) attributes: Vec<(&'static str, Value)>,
}

/// Who waits for whom. The numbers are those of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    #[default]
    Internal = 1,
    Server = 2,
    Client = 3,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match (field.name(), value) {
            ("otel.name", name) => self.name = Some(name.to_owned()),
            ("otel.kind", "server") => self.kind = Kind::Server,
            ("otel.kind", "client") => self.kind = Kind::Client,
            ("traceparent", parent) => self.traceparent = Some(parent.to_owned()),
            (name, text) => self.attributes.push((name, Value::Text(text.to_owned()))),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.push((field.name(), Value::Whole(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_i64(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A span that is open or closed.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: u128,
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: SystemTime,
    begun: Instant,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
}

impl Span {
    /// Begins a span now.
    pub(super) fn begin(trace: u128, parent: Option<u64>, name: &str, fields: Fields) -> Self {
        Self {
            trace,
            id: random_id(),
            parent,
            name: fields.name.unwrap_or_else(|| name.to_owned()),
            kind: fields.kind,
            start: SystemTime::now(),
            begun: Instant::now(),
            took: Duration::ZERO,
            attributes: fields.attributes,
        }
    }

    /// Ends it now.
    pub(super) fn end(&mut self) {
        self.took = self.begun.elapsed();
    }
}

/// A random number. The standard library's hashers are keyed by the system's randomness, each
/// differently.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A random number that is not zero, which the protocol does not permit.
pub(super) fn random_id() -> u64 {
    random().max(1)
}

/// The number of a new trace.
pub(super) fn random_trace() -> u128 {
    u128::from(random_id()) << 64 | u128::from(random())
}
