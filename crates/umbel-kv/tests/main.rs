//! All integration tests of this crate in one binary: it links once, and common code compiles once.
//! A new file needs a line here; `cargo xtask modules` reports files that no line names.

mod hostile;
mod libzmq;
mod live;
mod memory_sink;
mod recorded;
mod seeds;
