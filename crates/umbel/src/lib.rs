//! Bloom filters that travel.
//!
//! umbel tells any host which hosts hold an object, from its own memory, within a false
//! rate that the operator sets.

pub mod design;
pub mod key_hash;
pub mod params;

pub use key_hash::{Digest, HashId, KeyHash, KeyHasher, Seed};
pub use params::{DigestBits, Rate, Shape};
