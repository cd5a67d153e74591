//! A running host: the replica protocol on a network, a catalogue that survives restarts,
//! and ports for Redis clients and health checks.

#[cfg(feature = "resp")]
pub mod resp;
pub mod settings;

pub use settings::{Settings, SettingsError};
