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

    #[inline(always)]
    const fn high(&self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Hashes of the first `level` bits, at least one, and of four more. All that is asked of
    /// a group is on one side of bit 64, so that one branch is enough.
    #[inline(always)]
    const fn anchors(&self, level: u8) -> [u64; 2] {
        if level < 64 {
            [mix(self.high() >> (64 - level)), mix(self.high() >> (60 - level))]
        } else {
            self.far_anchors(level)
        }
    }

    #[cold]
    const fn far_anchors(&self, level: u8) -> [u64; 2] {
        let (high, low) = (mix(self.high()), self.0 as u64);
        // In two steps, as a shift by all 64 bits is none.
        [mix(high ^ (low >> 1) >> (127 - level)), mix(high ^ low >> (124 - level))]
    }

    /// The eight bits behind the first `level`, a multiple of eight.
    #[inline(always)]
    const fn behind(&self, level: u8) -> u32 {
        let half = if level < 64 { self.high() } else { self.0 as u64 };
        (half >> (56 - level % 64)) as u32 & 255
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
    fn spot(&self, length: u8) -> Spot {
        let level = (length - 1) & !3;
        let [anchor, _] = self.anchors(level);
        let nibble = self.behind(level & !7) >> (4 - level % 8) & 15;
        let point = Point::below(anchor as u32, (length - level).into(), nibble);
        Spot { pick: (anchor >> 32) as u32, point }
    }

    #[inline(always)]
    fn mark(&self, length: u8) -> u64 {
        (self.high() >> 64u8.saturating_sub(length)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[inline(always)]
    fn ready(&self, group: &Group) -> Self::Ready {
        let [first, second] = self.anchors(group.base);
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
        asker.claims(blocks, [first_seed, second_seed], self.behind(group.base))
    }
}
