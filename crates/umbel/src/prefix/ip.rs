//! Prefixes of addresses: `10.0.0.0/8`, `2001:db8::/32`.
//!
//! Always true: no bit is set behind the length.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::buckets::{Line24, Line48};
use super::filters::{Group, Point, Spot, mix};
use super::kind::{BitStore, Bits, Kind, Query};
use super::simd::Asker;
use super::{ParseError, Prefix};

macro_rules! prefix {
    ($name:ident, $address:ty, $bits:ty, $line:ty, $filter_bits:literal, $says:literal, $example:literal) => {
        #[doc = concat!("An ", $says, " prefix, such as `", $example, "`.")]
        ///
        /// ```
        #[doc = concat!("use umbel::prefix::", stringify!($name), ";")]
        ///
        #[doc = concat!("let prefix: ", stringify!($name), " = \"", $example, "\".parse()?;")]
        #[doc = concat!("assert_eq!(prefix.to_string(), \"", $example, "\");")]
        /// # Ok::<(), umbel::prefix::ParseError>(())
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            bits: $bits,
            length: u8,
        }

        impl $name {
            /// The prefix of `length` bits that begins with `address`.
            ///
            /// # Errors
            /// If the length is too long, or bits are set behind it.
            pub fn new(address: $address, length: u8) -> Result<Self, ParseError> {
                let bits = <$bits>::from(address);
                if u32::from(length) > <$bits>::BITS {
                    return Err(ParseError::Length { length, longest: <$bits>::BITS as u8 });
                }
                if bits != cut(bits, length) {
                    return Err(ParseError::HostBits);
                }
                Ok(Self { bits, length })
            }

            /// Its first address.
            #[must_use]
            pub fn address(&self) -> $address {
                self.bits.into()
            }
        }

        const fn cut(bits: $bits, length: u8) -> $bits {
            match <$bits>::BITS - length as u32 {
                <$bits>::BITS => 0,
                behind => bits >> behind << behind,
            }
        }

        impl Prefix for $name {
            type Address = $address;
            const NAME: &str = $says;
            const LONGEST: u8 = <$bits>::BITS as u8;

            fn of(address: &$address, length: u8) -> Self {
                assert!(length <= Self::LONGEST, "a prefix is no longer than its address");
                Self { bits: cut((*address).into(), length), length }
            }

            fn length(&self) -> u8 {
                self.length
            }

            fn within(&self, filler: u128) -> $address {
                let filler = (filler >> (128 - <$bits>::BITS)) as $bits;
                (self.bits | filler.checked_shr(self.length.into()).unwrap_or(0)).into()
            }

            #[inline(always)]
            fn query(address: &$address) -> BitQuery {
                let bits = <$bits>::from(*address);
                BitQuery(u128::from(bits) << (128 - <$bits>::BITS))
            }
        }

        impl Kind for $name {
            type Query<'a> = BitQuery;
            type Store<V: Default> = BitStore<Self, $line, V>;
            const SPANS: usize = 2;
            const FILTER_BITS: usize = $filter_bits;

            #[inline(always)]
            fn as_query(&self) -> BitQuery {
                BitQuery(self.to_bits().1)
            }
        }

        impl Bits for $name {
            #[inline(always)]
            fn to_bits(self) -> (u8, u128) {
                (self.length, u128::from(self.bits) << (128 - <$bits>::BITS))
            }

            #[inline(always)]
            fn from_bits(length: u8, bits: u128) -> Self {
                Self { bits: cut((bits >> (128 - <$bits>::BITS)) as $bits, length), length }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.address(), self.length)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let malformed = ParseError::Malformed($says);
                let (address, length) = text.split_once('/').ok_or(malformed)?;
                let address: $address = address.parse().map_err(|_| malformed)?;
                // Digits alone: the standard parser takes a sign as well.
                let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
                let length = length.parse().ok().filter(|_| digits).ok_or(malformed)?;
                Self::new(address, length)
            }
        }
    };
}

mod v4 {
    use super::*;
    prefix!(Ipv4Prefix, Ipv4Addr, u32, Line24, 12, "IPv4", "10.0.0.0/8");
}
mod v6 {
    use super::*;
    prefix!(Ipv6Prefix, Ipv6Addr, u128, Line48, 20, "IPv6", "2001:db8::/32");
}
pub use v4::Ipv4Prefix;
pub use v6::Ipv6Prefix;

/// An address, its first bit highest.
#[derive(Debug, Clone, Copy)]
pub struct BitQuery(u128);

impl BitQuery {
    #[inline(always)]
    pub(super) const fn bits(&self) -> u128 {
        self.0
    }

    /// A hash of the first `level` bits, at least one.
    #[inline(always)]
    const fn anchor(&self, level: u8) -> u64 {
        let high = (self.0 >> 64) as u64;
        if level <= 64 {
            mix(high >> (64 - level))
        } else {
            mix(mix(high) ^ ((self.0 as u64) >> (128 - level)))
        }
    }

    /// The four bits behind the first `level`.
    #[inline(always)]
    const fn nibble(&self, level: u8) -> u32 {
        let half = if level < 64 { (self.0 >> 64) as u64 } else { self.0 as u64 };
        (half >> (60 - level % 64)) as u32 & 15
    }
}

#[inline(always)]
const fn pick(anchor: u64) -> u32 {
    (anchor >> 32) as u32
}

impl Query for BitQuery {
    /// Hashes of the bits before each span.
    type Ready = [u64; 2];

    #[inline(always)]
    fn length(&self) -> u8 {
        128
    }

    #[inline(always)]
    fn front(&self) -> Option<u16> {
        Some((self.0 >> 112) as u16)
    }

    #[inline]
    fn spot(&self, length: u8) -> Spot {
        let level = (length - 1) & !3;
        let anchor = self.anchor(level);
        let point = Point::below(anchor as u32, (length - level).into(), self.nibble(level));
        Spot { pick: pick(anchor), point }
    }

    #[inline(always)]
    fn mark(&self, length: u8) -> Spot {
        let anchor = self.anchor(length);
        Spot { pick: pick(anchor), point: Point::of_hash(anchor as u32) }
    }

    #[inline(always)]
    fn ready(&self, group: &Group) -> [u64; 2] {
        [self.anchor(group.base), self.anchor(group.base + 4)]
    }

    #[inline(always)]
    fn prefetch(&self, group: &Group, anchors: [u64; 2]) {
        group.blocks.prefetch(0, pick(anchors[0]));
        group.blocks.prefetch(1, pick(anchors[1]));
    }

    #[inline(always)]
    fn ask_ready(&self, asker: impl Asker, group: &Group, anchors: [u64; 2]) -> u32 {
        // Spelled out: a closure given to `map` may stay a function of its own.
        let [first, second] = anchors;
        let blocks = [group.blocks.block(0, pick(first)), group.blocks.block(1, pick(second))];
        let nibbles = [self.nibble(group.base), self.nibble(group.base + 4)];
        asker.claims(blocks, [first as u32, second as u32], nibbles)
    }
}
