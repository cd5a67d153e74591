//! A running host: the replica protocol on a network, a catalogue that survives restarts,
//! and ports for Redis clients and for HTTP.
//!
//! [`Host::builder`] starts a host inside a Rust program; `umbel serve` runs one as a process.
//! [`Host`] is the handle to both.
//!
//! Features, all enabled by default: `zenoh` (a network between hosts; without it, only hosts of
//! one process reach each other), `resp` (a port for Redis clients), `http` (the HTTP API, its
//! description, metrics and health checks), `tls` (certificates on those ports). Not enabled by
//! default: `otel` (export of traces by OpenTelemetry's protocol).

// Text may come from outside: it must go through the log, whose writer makes it safe to display.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod access;
mod backup;
mod build_info;
mod catalogue;
#[cfg(any(feature = "resp", feature = "http"))]
mod client_counts;
mod confirm;
#[cfg_attr(
    not(feature = "resp"),
    expect(dead_code, reason = "only the port for Redis clients makes filters")
)]
mod counts;
#[cfg(any(feature = "resp", feature = "http"))]
mod descriptors;
mod driver;
mod error;
#[cfg_attr(
    not(feature = "resp"),
    expect(dead_code, reason = "only the port for Redis clients makes filters")
)]
mod filter_kind;
#[cfg(all(any(test, feature = "fuzzing"), feature = "resp", feature = "http"))]
#[doc(hidden)]
pub mod fuzzing;
mod hello;
mod host;
#[cfg(feature = "http")]
pub mod http;
mod huge_rows;
mod introductions;
mod latency;
mod lifetimes;
#[cfg(any(feature = "resp", feature = "http"))]
mod listen;
mod memory;
pub mod modes;
pub mod network;
#[cfg(feature = "http")]
mod object;
mod peer_request;
mod priority;
mod protocol;
#[cfg(feature = "resp")]
pub mod resp;
mod rivals;
pub mod settings;
mod start;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "otel")]
pub mod traces;
mod transform;
mod value;
pub mod watch;

pub use backup::{Backup, BackupLabel, RestoreError, restore};
pub use catalogue::{KeyPage, OwnCatalogue, Ticket};
pub use confirm::{Confirm, ConfirmError, Template};
pub use error::{HostError, StartError};
pub use host::{
    Addresses, Announced, ChainQuery, Change, Coverage, Fetch, Host, HostEvent, HostInfo, Lifetime,
    Missing, MissingHost, Readiness, Reserve, RestartNeeded, Routing, SetInfo, Status,
};
pub use network::LocalNetwork;
pub use priority::runtime;
pub use settings::{Settings, SettingsError};
pub use start::Builder;
pub use transform::{Transform, TransformError};
pub use value::{Fields, Value};
