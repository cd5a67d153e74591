//! Bloom filters that travel.
//!
//! umbel tells any host which hosts hold an object, from its own memory, within a false rate
//! that the operator sets. This crate is all of it that needs no system: no files, sockets,
//! threads, clock or randomness of its own.
//!
//! | to | see |
//! |---|---|
//! | add keys and ask for them | [`StandardFilter`] |
//! | remove them again | [`CountingFilter`] |
//! | fill one filter from several threads | [`ConcurrentFilter`] |
//! | ask one filter alone, as fast as possible | [`BlockedFilter`] |
//! | map a filter file into memory | [`codec::MappedFilter`] |
//! | hash a key once for many filters, with a seed of one's own | [`key_hash`] |
//! | grow and shrink | [`DynamicFilter`] |
//! | keep a rate while growing without bound | [`elastic::ElasticFilter`] |
//! | ask by any of several attributes | [`filter::AttributeFilter`] |
//! | keep the exact keys beside a filter | [`catalogue`] |
//! | ask many filters at once | [`bank::Bank`] |
//! | write, read, send changes | [`codec`] |
//! | choose parameters for a target | [`design`] |
//! | choose a length for a set that grows and shrinks | [`design::ladder`] |
//! | know what a filter will do | [`model`] |
//! | keep replicas fresh at other hosts | [`mesh`], made of [`replica`] |
//! | find an object hop by hop, where hosts know their neighbours only | [`route`] |
//! | find the longest prefix of an address or a name | [`prefix`] |
//!
//! ```
//! use umbel::StandardFilter;
//!
//! let mut filter = StandardFilter::for_target(10_000, 0.01)?;
//! filter.insert("apple");
//! assert!(filter.contains("apple"));
//! # Ok::<(), umbel::params::ParamError>(())
//! ```
//!
//! Feature `serde` (off by default): `Serialize` and `Deserialize` for filters.
//!
//! Which side can be wrong: a claim ("may contain") is wrong for an absent key with the
//! filter's false positive rate; a denial is certain. Keys are bytes and are hashed once,
//! where they enter ([`key_hash`]).

pub mod bank;
pub mod bits;
pub mod catalogue;
pub mod codec;
pub mod coverage;
pub mod design;
pub mod duration;
pub mod elastic;
pub mod filter;
pub mod key_hash;
pub mod mesh;
pub mod model;
pub mod number;
pub mod overlay;
pub mod params;
mod prefetch;
pub mod prefix;
mod processor;
pub mod protocol;
pub mod replica;
pub mod route;
pub mod scheme;
mod sync;
pub mod text;

pub use filter::{
    BlockedFilter, ConcurrentFilter, CountingFilter, DynamicFilter, Membership, StandardFilter,
};
pub use key_hash::{Digest, HashId, KeyHash, KeyHasher, Seed};
pub use params::{DigestBits, Rate, Shape};
pub use scheme::{Mismatch, Scheme};

/// The README's example runs with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
