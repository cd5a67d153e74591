//! All integration tests of this crate in one binary: it links once, and common code compiles once.
//! A new file needs a line here; `cargo xtask modules` reports files that no line names.

mod access;
mod backup;
mod chain;
mod coverage;
mod filters;
mod hammer;
mod http;
mod lifetimes;
mod lookups;
mod names;
mod overlay;
mod own_network;
mod redis_clients;
mod resp;
mod second_host;
mod secured;
mod transactions;
