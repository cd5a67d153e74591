//! Four kinds of tables, made the same way in every run.
//!
//! * `routes`: as many prefixes of each length as a full routing table has, three in four below a
//!   shorter one.
//! * `ranges`: address ranges with random ends, split into the fewest prefixes that cover them, as
//!   geolocation, access lists and cloud address ranges are: every length is in use, hardly
//!   any prefix lies below another.
//! * `hosts`: whole addresses in many small networks, with some of these networks.
//! * `mixed`: parts of all three.

use std::collections::{BTreeMap, BTreeSet};

use umbel::prefix::{Ipv4Prefix, Ipv6Prefix};

use super::rivals::Family;
use crate::harness::Mix;

type Both = (Vec<Ipv4Prefix>, Vec<Ipv6Prefix>);

/// A kind and what makes it.
type Kind = (&'static str, fn() -> Both);

pub(crate) const KINDS: [Kind; 4] = [
    ("routes", || (family(&routes(&V4, &IPV4)), family(&routes(&V6, &IPV6)))),
    ("ranges", || (family(&ranges(&V4, 564_580)), family(&ranges(&V6, 167_903)))),
    ("hosts", || (family(&hosts(&V4, 500_000)), family(&hosts(&V6, 160_000)))),
    ("mixed", || (family(&mixed(&V4, &IPV4, 600_000)), family(&mixed(&V6, &IPV6, 180_000)))),
];

/// Bits from the highest on, and a length.
pub(super) type Bits = (u128, u8);

/// What addresses of a family look like.
struct Shape {
    longest: u8,
    /// The blocks that registries give out.
    blocks: &'static [Bits],
    /// Length of what one owner of such a block has, at least and at most.
    owned: (u8, u8),
    /// Lengths on which ranges end; each is as likely as it is often here.
    ends: &'static [u8],
    /// Length of a network of hosts.
    network: u8,
}

const V4: Shape = Shape {
    longest: 32,
    blocks: &[(0, 0)],
    owned: (12, 20),
    ends: &[24, 24, 24, 26, 27, 28, 29, 30, 32],
    network: 24,
};

/// Most IPv6 addresses in use begin so.
const V6: Shape = Shape {
    longest: 128,
    blocks: &[
        (0x2001 << 112, 16),
        (0x2400 << 112, 12),
        (0x2600 << 112, 12),
        (0x2800 << 112, 12),
        (0x2A00 << 112, 12),
        (0x2C00 << 112, 12),
    ],
    owned: (28, 32),
    ends: &[
        36, 40, 44, 48, 48, 52, 56, 56, 60, 60, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
        64, 64, 64, 64, 64, 64, 128,
    ],
    network: 64,
};

impl Shape {
    /// What some owner has.
    fn owner(&self, random: &mut Random) -> Bits {
        let (block, kept) = self.blocks[random.below(self.blocks.len())];
        let (shortest, longest) = self.owned;
        let length = shortest + random.below(usize::from(longest - shortest) + 1) as u8;
        (cut(block | random.bits() & behind(kept), length), length)
    }
}

pub(super) struct Random(pub(super) Mix);

impl Random {
    pub(super) fn bits(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }

    fn word(&mut self) -> u64 {
        self.0.next().expect("it never ends")
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.word() % end as u64) as usize
    }
}

/// All bits behind a length.
pub(super) fn behind(length: u8) -> u128 {
    u128::MAX.checked_shr(length.into()).unwrap_or(0)
}

pub(super) fn cut(bits: u128, length: u8) -> u128 {
    bits & !behind(length)
}

pub(super) fn family<P: Family>(prefixes: &[Bits]) -> Vec<P> {
    prefixes.iter().map(|(bits, length)| P::from_bits(*bits, *length)).collect()
}

/// Ranges of owners who have distinct blocks, a few in each, split into prefixes.
fn ranges(shape: &Shape, count: usize) -> Vec<Bits> {
    let (mut random, mut owners, mut all) = (Random(Mix(6)), BTreeMap::new(), BTreeSet::new());
    while all.len() < count {
        let (block, length) = shape.owner(&mut random);
        // Of nested owners the second one is left out.
        let (first, last) = (block, block | behind(length));
        if owners.range(..=last).next_back().is_some_and(|(_, last)| *last >= first) {
            continue;
        }
        owners.insert(first, last);
        let mut ends: Vec<u128> = (0..2 * (1 + random.below(4)))
            .map(|_| {
                let end = shape.ends[random.below(shape.ends.len())].max(length);
                cut(block | random.bits() & behind(length), end)
            })
            .collect();
        ends.sort_unstable();
        for range in ends.chunks(2) {
            split(range[0], range[1], shape.longest, &mut all);
        }
    }
    all.into_iter().take(count).collect()
}

/// The fewest prefixes that cover all addresses from `first` on and before `end`.
fn split(mut first: u128, end: u128, longest: u8, all: &mut BTreeSet<Bits>) {
    while first < end {
        let aligned = 128 - first.trailing_zeros().min(127) as u8;
        let mut length = aligned;
        while length < longest && behind(length) > end - first - 1 {
            length += 1;
        }
        all.insert((first, length));
        match first.checked_add(behind(length) + 1) {
            Some(next) => first = next,
            None => return,
        }
    }
}

/// Four hosts in each network, at low or random numbers; one prefix in twenty is a network.
fn hosts(shape: &Shape, count: usize) -> Vec<Bits> {
    let (mut random, mut all) = (Random(Mix(7)), BTreeSet::new());
    while all.len() < count {
        let (owned, length) = shape.owner(&mut random);
        // Networks of one site lie side by side.
        let site = cut(owned | random.bits() & behind(length), shape.network - 4);
        for _ in 0..8 {
            let network = cut(site | random.bits() & behind(shape.network - 4), shape.network);
            if random.below(5) == 0 {
                all.insert((network, shape.network));
            }
            for _ in 0..4 {
                let spread = if random.below(2) == 0 { shape.longest - 8 } else { shape.network };
                let host = cut(random.bits() & behind(spread), shape.longest);
                all.insert((network | host, shape.longest));
            }
        }
    }
    let mut all: Vec<Bits> = all.into_iter().collect();
    // Not the highest addresses, but any.
    while all.len() > count {
        let gone = random.below(all.len());
        all.swap_remove(gone);
    }
    all
}

/// Half routes, a quarter each of ranges and hosts.
fn mixed(shape: &Shape, lengths: &[(u8, usize)], count: usize) -> Vec<Bits> {
    let routes = routes(shape, lengths);
    let one_in = (routes.len() / (count / 2)).max(1);
    let mut all: BTreeSet<Bits> = routes.into_iter().step_by(one_in).take(count / 2).collect();
    all.extend(ranges(shape, count / 4));
    all.extend(hosts(shape, count / 4));
    all.into_iter().collect()
}

/// Prefixes of each length in a full table of 2024.
const IPV4: [(u8, usize); 25] = [
    (8, 16),
    (9, 13),
    (10, 38),
    (11, 103),
    (12, 299),
    (13, 581),
    (14, 1203),
    (15, 2100),
    (16, 13490),
    (17, 8235),
    (18, 13798),
    (19, 24870),
    (20, 42611),
    (21, 50750),
    (22, 108_623),
    (23, 96510),
    (24, 537_698),
    (25, 20),
    (26, 3),
    (27, 11),
    (28, 18),
    (29, 17),
    (30, 3),
    (31, 3),
    (32, 886),
];
const IPV6: [(u8, usize); 39] = [
    (16, 1),
    (19, 1),
    (20, 16),
    (21, 3),
    (22, 7),
    (23, 8),
    (24, 30),
    (25, 8),
    (26, 15),
    (27, 20),
    (28, 193),
    (29, 4371),
    (30, 650),
    (31, 284),
    (32, 22548),
    (33, 2926),
    (34, 2603),
    (35, 1043),
    (36, 5996),
    (37, 880),
    (38, 1617),
    (39, 1377),
    (40, 13418),
    (41, 903),
    (42, 2301),
    (43, 1001),
    (44, 14365),
    (45, 1553),
    (46, 3039),
    (47, 3153),
    (48, 75488),
    (49, 11),
    (52, 1),
    (56, 24),
    (58, 20),
    (64, 184),
    (112, 2),
    (127, 42),
    (128, 6),
];

/// Prefixes of each length: three in four below a shorter one, as real ones are.
fn routes(shape: &Shape, lengths: &[(u8, usize)]) -> Vec<Bits> {
    let (mut random, mut seen, mut all) = (Random(Mix(5)), BTreeSet::new(), Vec::new());
    for (length, count) in lengths {
        let (shorter, whole) = (all.len(), all.len() + count);
        while all.len() < whole {
            let fresh = random.bits();
            let (base, kept): Bits = if shorter > 0 && random.below(4) > 0 {
                all[random.below(shorter)]
            } else {
                shape.blocks[random.below(shape.blocks.len())]
            };
            let new = (cut(base | fresh & behind(kept), *length), *length);
            if seen.insert(new) {
                all.push(new);
            }
        }
    }
    all
}
