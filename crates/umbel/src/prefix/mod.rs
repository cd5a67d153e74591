//! Longest-prefix match with one filter per length, for IPv4, IPv6 and names.
//!
//! A [`Table`] maps prefixes to values and finds, for an address, the longest prefix that
//! begins it. All filters of a group of up to eight lengths are asked at once, in one register where
//! the processor has AVX2; which lengths are a group follows from what the table holds. The prefixes themselves are then read from the longest claimed
//! length down, so that the answer is always exact and a false claim costs a read.
//!
//! ```
//! use umbel::prefix::{Ipv4Prefix, Table};
//!
//! let mut routes: Table<Ipv4Prefix, u16> = Table::new();
//! routes.insert("10.0.0.0/8".parse()?, 1);
//! routes.insert("10.1.0.0/20".parse()?, 2);
//! let found = routes.lookup(&"10.1.2.3".parse()?).expect("two prefixes cover it");
//! assert_eq!((found.length, *found.value), (20, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From the outside in: `table` (what users see), `front` (the first sixteen bits), `lengths` with `plan`
//! and `marks` (which groups of lengths there are, and which of them an address asks), `filters` with
//! `simd` (which lengths of a group may match), `kind` with `buckets` (the prefixes themselves);
//! `ip` and `name` are the kinds, [`AnyTable`] is a file. The same question over the replicas
//! of a host is asked with [`Name::prefixes`].
//!
//! Paper 2, "Longest Matching Prefix"; what is done differently and why is in docs/papers.md.

mod any;
mod batch;
mod buckets;
mod codec;
mod filters;
mod front;
mod ip;
mod kind;
mod lengths;
mod marks;
mod name;
mod plan;
mod probes;
mod simd;
mod table;

pub use any::{AnyTable, Labelled};
pub use codec::FileKind;
pub use ip::{Ipv4Prefix, Ipv6Prefix};
pub use name::Name;
pub use probes::Probes;
pub use table::{Match, Table};

use std::fmt::{Debug, Display};
use std::str::FromStr;

/// A kind of prefix that a [`Table`] can hold: [`Ipv4Prefix`], [`Ipv6Prefix`] or [`Name`].
pub trait Prefix:
    kind::Kind + kind::Coded + Clone + Ord + Debug + Display + FromStr<Err = ParseError>
{
    /// What is looked up.
    type Address;

    /// What such prefixes are called in messages.
    const NAME: &str;

    /// Length of the longest one: bits, or components.
    const LONGEST: u8;

    /// The prefix of an address that has this length.
    ///
    /// # Panics
    /// If the address is shorter.
    #[must_use]
    fn of(address: &Self::Address, length: u8) -> Self;

    /// Bits, or components.
    #[must_use]
    fn length(&self) -> u8;

    /// An address that begins with this prefix and goes on with the highest bits of `filler`;
    /// a name is one itself.
    #[must_use]
    fn within(&self, filler: u128) -> Self::Address;

    #[doc(hidden)]
    fn query(address: &Self::Address) -> Self::Query<'_>;
}

/// Why a text is no prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// It is no address with a length behind it.
    #[error("this is no {0} prefix")]
    Malformed(&'static str),
    /// The length is beyond what an address has.
    #[error("the length {length} is beyond {longest}")]
    Length {
        /// What was given.
        length: u8,
        /// What an address has.
        longest: u8,
    },
    /// `10.0.0.1/8`: an address in a prefix, not a prefix.
    #[error("bits are set behind the prefix length")]
    HostBits,
    /// `a/b`: a name that does not begin at the root.
    #[error("a name begins with '/'")]
    NoSlash,
    /// `/a//b`.
    #[error("a name has no empty component: '//' is one too many")]
    Empty,
    /// `/a/../b`: what it means is for its writer to say.
    #[error("a name has no component '.' or '..': resolve them first")]
    Dots,
    /// `/a b`.
    #[error("a name has no white space or control characters: encode them")]
    Blank,
    /// A name with more components or bytes than there may be.
    #[error("a name has at most {} components and {} bytes", Name::LONGEST, Name::BYTES)]
    TooLong,
}
