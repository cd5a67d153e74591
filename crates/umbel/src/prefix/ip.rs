//! Prefixes of addresses: `10.0.0.0/8`, `2001:db8::/32`.
//!
//! Always true: no bit is set behind the length.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::buckets::{Line24, Line32, Line48, Line64, Line128};
use super::filters::{Group, Point, Spot, mix};
use super::kind::{BitStore, Bits, Kind, Query};
use super::simd::Asker;
use super::{ParseError, Prefix};

macro_rules! prefix {
    ($name:ident, $address:ty, $bits:ty, [$($line:ty),+], $filter_bits:literal, $says:literal, $example:literal) => {
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
                if bits != truncate(bits, length) {
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

        const fn truncate(bits: $bits, length: u8) -> $bits {
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
                Self { bits: truncate((*address).into(), length), length }
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
            type Store<V: Default> = BitStore<Self, $($line),+, V>;
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
                Self { bits: truncate((bits >> (128 - <$bits>::BITS)) as $bits, length), length }
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
    prefix!(Ipv4Prefix, Ipv4Addr, u32, [Line24, Line32, Line32], 12, "IPv4", "10.0.0.0/8");
}
mod v6 {
    use super::*;
    prefix!(Ipv6Prefix, Ipv6Addr, u128, [Line48, Line64, Line128], 16, "IPv6", "2001:db8::/32");
}
pub use v4::Ipv4Prefix;
pub use v6::Ipv6Prefix;

/// An address, its first bit highest.
#[derive(Debug, Clone, Copy)]
pub struct BitQuery(u128);

impl BitQuery {
    #[inline(always)]
    pub(super) const fn address(&self) -> u128 {
        self.0
    }

    #[inline(always)]
    const fn high(&self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// A hash of the first `level` bits, at least one.
    #[inline(always)]
    const fn anchor(&self, level: u8) -> u64 {
        if level <= 64 {
            mix(self.high() >> (64 - level))
        } else {
            mix(mix(self.high()) ^ self.0 as u64 >> (128 - level))
        }
    }

    /// The eight bits behind the first `level`.
    #[inline(always)]
    const fn behind(&self, level: u8) -> u32 {
        ((self.0 << level) >> 120) as u32
    }
}

impl Query for BitQuery {
    /// For each span a block, and the seed of the points in it.
    type Ready = [(u32, u32); 2];

    #[inline(always)]
    fn length(&self) -> u8 {
        128
    }

    #[inline(always)]
    fn front(&self) -> Option<u16> {
        Some((self.0 >> 112) as u16)
    }

    #[inline(always)]
    fn bits(&self) -> Option<u128> {
        Some(self.0)
    }

    #[inline(always)]
    fn spot(&self, base: u8, length: u8) -> Spot {
        let level = base + ((length - base - 1) & !3);
        let anchor = self.anchor(level);
        let nibble = self.behind(level) >> 4;
        let point = Point::below(anchor as u32, (length - level).into(), nibble);
        Spot { pick: (anchor >> 32) as u32, point }
    }

    #[inline(always)]
    fn mark(&self, length: u8) -> u64 {
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        let beginning = if length <= 64 {
            self.high() >> (64 - length)
        } else {
            self.high().wrapping_mul(SPREAD).rotate_left(32) ^ self.0 as u64 >> (128 - length)
        };
        beginning.wrapping_mul(SPREAD)
    }

    #[inline(always)]
    fn ready(&self, group: &Group) -> Self::Ready {
        let base = group.lengths.base;
        // A second span that is not there has any block.
        let [first, second] = [self.anchor(base), self.anchor((base + 4).min(128))];
        [
            (group.blocks.place(0, (first >> 32) as u32), first as u32),
            (group.blocks.place(1, (second >> 32) as u32), second as u32),
        ]
    }

    #[inline(always)]
    fn prefetch(&self, group: &Group, [(first, _), (second, _)]: Self::Ready) {
        group.blocks.prefetch(first);
        group.blocks.prefetch(second);
    }

    #[inline(always)]
    fn ask_ready(&self, asker: impl Asker, group: &Group, ready: Self::Ready) -> u32 {
        // Spelled out: a closure given to `map` may stay a function of its own.
        let [(first, first_seed), (second, second_seed)] = ready;
        let blocks = [group.blocks.at(first), group.blocks.at(second)];
        asker.claims(blocks, [first_seed, second_seed], self.behind(group.lengths.base))
            & group.lanes
    }
}
