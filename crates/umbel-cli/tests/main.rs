//! All integration tests of this crate in one binary: it links once, and common code compiles once.
//! A new file needs a line here; `cargo xtask modules` reports files that no line names.

mod cluster;
mod config;
mod demo;
mod doctor;
mod filter;
mod help;
mod host;
mod lab;
mod lab_chain;
mod lab_overlay;
mod lab_policies;
mod model;
mod partition;
mod plan;
mod prefix;
mod run;
mod store;
