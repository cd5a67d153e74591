//! All integration tests of this crate in one binary: it links once, and common code compiles once.
//! A new file needs a line here; `cargo xtask modules` reports files that no line names.

mod codec;
mod concurrent;
mod golden;
mod mapped;
mod positions_golden;
mod prefix;
mod random;
mod rates;
mod recorded;
mod replica_plan;
mod seeds;
#[cfg(feature = "serde")]
mod serde;
mod sizes;
