//! The rivals, each behind the same few methods.

use std::net::{Ipv4Addr, Ipv6Addr};

use ip_network_table_deps_treebitmap::IpLookupTable;
use poptrie::Poptrie;
use prefix_trie::PrefixMap;
use umbel::prefix::{Ipv4Prefix, Ipv6Prefix, Prefix};

use super::route::Route;
use crate::harness::Goal;

/// A table that answers; 0 is "no route".
pub(crate) trait Lookup<P: Family> {
    fn name(&self) -> &'static str;
    fn get(&self, address: &P::Address) -> u16;
    /// All answers together: the loop is inside, so that it may be inlined.
    fn sum(&self, addresses: &[P::Address]) -> u64;
    /// Each lookup waits for the one before.
    fn chase(&self, addresses: &[P::Address], zero: u64) -> u64;
    /// How many of `wanted` updates it can be given in reasonable time.
    fn updates(&self, wanted: usize) -> usize {
        wanted
    }
    fn insert(&mut self, prefix: &P, value: u16);
    fn remove(&mut self, prefix: &P);
    /// Whether it was given all updates.
    fn is_current(&self) -> bool {
        true
    }
}

/// Builds a rival.
pub(crate) type Make<P> = fn(&[Route<P>]) -> Box<dyn Lookup<P>>;

/// What the rows of a family need.
pub(crate) trait Family: Prefix<Address: Copy> + 'static {
    const RIVALS: &'static [Make<Self>];
    const GOALS: &'static [Goal];
    /// Of addresses that match nothing.
    const MISSED_GOALS: &'static [Goal];
    /// The prefix of a length whose bits these begin with.
    fn from_bits(bits: u128, length: u8) -> Self;
    /// An address anywhere.
    fn anywhere(random: u128) -> Self::Address;
    /// The address, moved by a number that is always zero.
    fn shifted(address: &Self::Address, zero: u64) -> Self::Address;
}

macro_rules! sums {
    ($address:ty, $prefix:ty) => {
        fn sum(&self, addresses: &[$address]) -> u64 {
            addresses.iter().map(|address| u64::from(self.get(address))).sum()
        }

        fn chase(&self, addresses: &[$address], zero: u64) -> u64 {
            let mut last = 0;
            for address in addresses {
                last = self.get(&<$prefix as Family>::shifted(address, last & zero)).into();
            }
            last
        }
    };
}

macro_rules! tries {
    ($prefix:ty, $address:ty, $bits:ty, $trie:ident, $tree:ident, $pop:ident) => {
        struct $trie(PrefixMap<($bits, u8), u16>);

        impl Lookup<$prefix> for $trie {
            fn name(&self) -> &'static str {
                "prefix-trie"
            }
            #[inline]
            fn get(&self, address: &$address) -> u16 {
                let longest = (<$bits>::from(*address), <$bits>::BITS as u8);
                self.0.get_lpm(&longest).map_or(0, |(_, value)| *value)
            }
            sums!($address, $prefix);
            fn insert(&mut self, prefix: &$prefix, value: u16) {
                self.0.insert((prefix.address().into(), prefix.length()), value);
            }
            fn remove(&mut self, prefix: &$prefix) {
                self.0.remove(&(prefix.address().into(), prefix.length()));
            }
        }

        struct $tree(IpLookupTable<$address, u16>);

        impl Lookup<$prefix> for $tree {
            fn name(&self) -> &'static str {
                "treebitmap"
            }
            #[inline]
            fn get(&self, address: &$address) -> u16 {
                self.0.longest_match(*address).map_or(0, |(_, _, value)| *value)
            }
            sums!($address, $prefix);
            fn insert(&mut self, prefix: &$prefix, value: u16) {
                self.0.insert(prefix.address(), prefix.length().into(), value);
            }
            fn remove(&mut self, prefix: &$prefix) {
                self.0.remove(prefix.address(), prefix.length().into());
            }
        }

        struct $pop(Poptrie<($bits, u8), u16>);

        impl Lookup<$prefix> for $pop {
            fn name(&self) -> &'static str {
                "poptrie"
            }
            #[inline]
            fn get(&self, address: &$address) -> u16 {
                self.0.lookup(<$bits>::from(*address)).map_or(0, |value| *value)
            }
            sums!($address, $prefix);
            fn updates(&self, _: usize) -> usize {
                // Milliseconds each.
                20
            }
            fn insert(&mut self, prefix: &$prefix, value: u16) {
                self.0.insert((prefix.address().into(), prefix.length()), value);
            }
            fn remove(&mut self, prefix: &$prefix) {
                self.0.remove((prefix.address().into(), prefix.length()));
            }
        }
    };
}

tries!(Ipv4Prefix, Ipv4Addr, u32, Trie4, Tree4, Pop4);
tries!(Ipv6Prefix, Ipv6Addr, u128, Trie6, Tree6, Pop6);

fn filled<P: Family, L: Lookup<P> + 'static>(
    mut empty: L,
    routes: &[Route<P>],
) -> Box<dyn Lookup<P>> {
    routes.iter().for_each(|route| empty.insert(&route.prefix, route.value));
    Box::new(empty)
}

impl Family for Ipv4Prefix {
    const RIVALS: &'static [Make<Self>] = &[
        |routes| filled(Trie4(PrefixMap::new()), routes),
        |routes| filled(Tree4(IpLookupTable::new()), routes),
        |routes| {
            let routes =
                routes.iter().map(|r| ((r.prefix.address().into(), r.prefix.length()), r.value));
            Box::new(Pop4(routes.collect()))
        },
        |routes| Box::new(Dir24::new(routes)),
    ];
    const GOALS: &'static [Goal] = &[
        Goal::faster("umbel, batched", 1.3, "prefix-trie"),
        Goal::faster("umbel", 1.3, "prefix-trie"),
        Goal::at_most("umbel, batched", f64::INFINITY, "DIR-24-8"),
    ];
    const MISSED_GOALS: &'static [Goal] = &[];

    fn from_bits(bits: u128, length: u8) -> Self {
        Self::of(&((bits >> 96) as u32).into(), length)
    }

    fn anywhere(random: u128) -> Ipv4Addr {
        (random as u32).into()
    }

    #[inline]
    fn shifted(address: &Ipv4Addr, zero: u64) -> Ipv4Addr {
        (u32::from(*address) ^ zero as u32).into()
    }
}

impl Family for Ipv6Prefix {
    const RIVALS: &'static [Make<Self>] = &[
        |routes| filled(Trie6(PrefixMap::new()), routes),
        |routes| filled(Tree6(IpLookupTable::new()), routes),
        |routes| {
            let routes =
                routes.iter().map(|r| ((r.prefix.address().into(), r.prefix.length()), r.value));
            Box::new(Pop6(routes.collect()))
        },
    ];
    const GOALS: &'static [Goal] =
        &[Goal::faster("umbel, batched", 2.0, "poptrie"), Goal::faster("umbel", 1.3, "poptrie")];
    const MISSED_GOALS: &'static [Goal] =
        &[Goal::at_most("umbel, batched", 1.0, "poptrie"), Goal::at_most("umbel", 1.0, "poptrie")];

    fn from_bits(bits: u128, length: u8) -> Self {
        Self::of(&bits.into(), length)
    }

    /// Within `2000::/3`, where all of today's addresses are.
    fn anywhere(random: u128) -> Ipv6Addr {
        (random >> 3 | 1 << 125).into()
    }

    #[inline]
    fn shifted(address: &Ipv6Addr, zero: u64) -> Ipv6Addr {
        (u128::from(*address) ^ u128::from(zero)).into()
    }
}

/// Two reads at most, for 32 MiB: the limit. A table of 2^24 entries, each a value or (highest
/// bit) a chunk of 256 values. Tables with more than 2^15 chunks get wrong answers and are left out.
pub(crate) struct Dir24 {
    first: Vec<u16>,
    chunks: Vec<u16>,
    built: bool,
}

const CHUNK: u16 = 1 << 15;

impl Dir24 {
    fn new(routes: &[Route<Ipv4Prefix>]) -> Self {
        let mut table = Self { first: vec![0; 1 << 24], chunks: Vec::new(), built: true };
        let mut sorted: Vec<_> = routes.iter().collect();
        sorted.sort_by_key(|route| route.prefix.length());
        sorted.iter().for_each(|route| table.insert(&route.prefix, route.value));
        table
    }
}

impl Lookup<Ipv4Prefix> for Dir24 {
    fn name(&self) -> &'static str {
        "DIR-24-8"
    }

    #[inline]
    fn get(&self, address: &Ipv4Addr) -> u16 {
        let address = u32::from(*address);
        let entry = self.first[(address >> 8) as usize];
        if entry < CHUNK {
            return entry;
        }
        self.chunks[usize::from(entry - CHUNK) * 256 + (address & 255) as usize]
    }

    sums!(Ipv4Addr, Ipv4Prefix);

    fn updates(&self, _: usize) -> usize {
        0
    }

    /// Longer prefixes must come after shorter ones.
    fn insert(&mut self, prefix: &Ipv4Prefix, value: u16) {
        let address = u32::from(prefix.address());
        let first = (address >> 8) as usize;
        if prefix.length() <= 24 {
            self.first[first..first + (1 << (24 - prefix.length()))].fill(value);
            return;
        }
        if self.first[first] < CHUNK {
            let chunk = (self.chunks.len() / 256) as u16;
            self.chunks.extend([self.first[first]; 256]);
            self.first[first] = CHUNK + chunk;
        }
        let start = usize::from(self.first[first] - CHUNK) * 256 + (address & 255) as usize;
        self.chunks[start..start + (1 << (32 - prefix.length()))].fill(value);
    }

    fn remove(&mut self, _: &Ipv4Prefix) {
        self.built = false;
    }

    fn is_current(&self) -> bool {
        self.built
    }
}
