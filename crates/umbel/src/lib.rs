//! Bloom filters that travel.
//!
//! umbel tells any host which hosts hold an object, from its own memory, within a false
//! rate that the operator sets.

pub mod bank;
pub mod bits;
pub mod catalogue;
pub mod codec;
pub mod design;
pub mod filter;
pub mod key_hash;
pub mod model;
pub mod params;
mod prefetch;
pub mod replica;
pub mod scheme;

pub use filter::{CountingFilter, DynamicFilter, Membership, StandardFilter};
pub use key_hash::{Digest, HashId, KeyHash, KeyHasher, Seed};
pub use params::{DigestBits, Rate, Shape};
pub use scheme::{Mismatch, Scheme};
