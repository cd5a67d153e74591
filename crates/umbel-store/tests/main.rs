//! All integration tests of this crate in one binary: it links once, and common code compiles once.
//! A new file needs a line here; `cargo xtask modules` reports files that no line names.

mod backup;
mod behaviour;
mod common;
mod crash;
mod kill;
mod model;
mod reader;
mod seeds;
