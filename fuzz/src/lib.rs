//! What the fuzz targets run, apart from what needs a host (`umbel_node::fuzzing`).
//!
//! Tests of `umbel` and `umbel-store` include the files of this crate and replay `seeds/` with them, so that every
//! build runs every target on an ordinary toolchain.

pub mod replica;
pub mod store;
