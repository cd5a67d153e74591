//! A running host: the replica protocol on a network, a catalogue that survives restarts,
//! and ports for Redis clients and for HTTP.
//!
//! [`Host::builder`] starts one inside a Rust program; `umbel serve` is a host of its own.
//! [`Host`] is the handle to both.
//!
//! Features, all on by default: `zenoh` (hosts that reach each other over a network; without
//! it, hosts of one process only), `resp` (a port for Redis clients), `http` (the HTTP API,
//! its description, metrics and health checks),
//! `tls` (certificates on those ports).

// Text may come from outside: it is logged, and whoever writes the log makes it safe.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod access;
mod build_info;
mod catalogue;
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
mod lifetimes;
#[cfg(any(feature = "resp", feature = "http"))]
mod listen;
mod memory;
pub mod modes;
pub mod network;
mod priority;
mod protocol;
mod question;
#[cfg(feature = "resp")]
pub mod resp;
mod rivals;
pub mod settings;
mod start;
#[cfg(feature = "tls")]
pub mod tls;
mod value;

pub use catalogue::{KeyPage, OwnCatalogue, Ticket};
pub use confirm::{Confirm, ConfirmError, Template};
pub use error::{HostError, StartError};
pub use host::{
    Addresses, Announced, Change, Coverage, Happened, Host, HostInfo, Lifetime, Missing,
    MissingHost, Readiness, Reserve, Routing, SetInfo, Status,
};
pub use network::LocalNetwork;
pub use priority::runtime;
pub use settings::{Settings, SettingsError};
pub use start::Builder;
pub use value::{Fields, Value};
