//! What the fuzz targets run, apart from what needs a host (`umbel_node::fuzzing`).
//!
//! Tests of `umbel`, `umbel-kv` and `umbel-store` include the files of this crate and replay `seeds/` with them, so that every
//! build runs every target on an ordinary toolchain.

pub mod events;
pub mod replica;
pub mod store;
