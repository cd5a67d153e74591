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

pub mod access;
mod catalogue;
mod confirm;
mod driver;
mod error;
mod hello;
mod host;
#[cfg(feature = "http")]
pub mod http;
mod huge_rows;
mod lifetimes;
#[cfg(any(feature = "resp", feature = "http"))]
mod listen;
pub mod network;
mod overlay;
mod protocol;
mod question;
#[cfg(feature = "resp")]
pub mod resp;
pub mod settings;
#[cfg(feature = "tls")]
pub mod tls;
mod value;

pub use catalogue::{OwnCatalogue, Ticket};
pub use confirm::{Confirm, ConfirmError, Template};
pub use error::{HostError, StartError};
pub use host::{
    Addresses, Announced, Builder, Change, Coverage, Happened, Host, HostInfo, KeyPage, Lifetime,
    Readiness, Reserve, Routing, SetInfo, Status,
};
pub use network::LocalNetwork;
pub use settings::{Settings, SettingsError};
pub use value::{Fields, Value};

/// For which system this was built, and how.
pub(crate) fn build() -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let how = if cfg!(debug_assertions) { "debug" } else { "release" };
    let told = option_env!("UMBEL_BUILD").map(|told| format!(" {told}")).unwrap_or_default();
    format!("{arch}-{os} {how}{told}")
}
