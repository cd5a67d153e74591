//! Tables of prefixes give the answers of a plain trie, whatever happened to them before.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use umbel::prefix::{AnyTable, Ipv4Prefix, Ipv6Prefix, Labelled, Name, ParseError, Prefix, Table};

use crate::random::Random;

/// A binary trie, node by node.
#[derive(Default)]
struct Trie {
    nodes: Vec<Node>,
}

#[derive(Default, Clone, Copy)]
struct Node {
    children: [u32; 2],
    value: Option<u32>,
}

impl Trie {
    fn node(&mut self, bits: u128, length: u8) -> &mut Node {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = 0;
        for depth in 0..length {
            let bit = (bits >> (127 - depth) & 1) as usize;
            if self.nodes[at].children[bit] == 0 {
                self.nodes[at].children[bit] = self.nodes.len() as u32;
                self.nodes.push(Node::default());
            }
            at = self.nodes[at].children[bit] as usize;
        }
        &mut self.nodes[at]
    }

    fn lookup(&self, bits: u128) -> Option<(u8, u32)> {
        let (mut at, mut best) = (0, None);
        for depth in 0..=128u8 {
            best = self.nodes.get(at)?.value.map(|value| (depth, value)).or(best);
            let bit = if depth < 128 { (bits >> (127 - depth) & 1) as usize } else { 0 };
            at = self.nodes[at].children[bit] as usize;
            if at == 0 {
                break;
            }
        }
        best
    }
}

fn address_bits(random: &mut Random) -> u128 {
    u128::from(random.next()) << 64 | u128::from(random.next())
}

/// An address family, its first bit highest.
trait Bits: Prefix<Address: Copy> {
    const LENGTHS: &'static [u8];
    fn prefix(bits: u128, length: u8) -> Self;
    fn address(bits: u128) -> Self::Address;
    fn bits(&self) -> u128;
}

impl Bits for Ipv4Prefix {
    const LENGTHS: &'static [u8] = &[8, 12, 16, 16, 18, 19, 20, 21, 22, 22, 23, 24, 24, 24, 28, 32];
    fn prefix(bits: u128, length: u8) -> Self {
        Self::of(&<Self as Bits>::address(bits), length)
    }
    fn address(bits: u128) -> Self::Address {
        ((bits >> 96) as u32).into()
    }
    fn bits(&self) -> u128 {
        u128::from(u32::from(Ipv4Prefix::address(self))) << 96
    }
}

impl Bits for Ipv6Prefix {
    const LENGTHS: &'static [u8] =
        &[19, 28, 29, 32, 32, 33, 36, 40, 42, 44, 46, 47, 48, 48, 48, 48, 56, 64, 65, 127, 128];
    fn prefix(bits: u128, length: u8) -> Self {
        Self::of(&<Self as Bits>::address(bits), length)
    }
    fn address(bits: u128) -> Self::Address {
        bits.into()
    }
    fn bits(&self) -> u128 {
        Ipv6Prefix::address(self).into()
    }
}

/// Prefixes of which half lie below others, as real ones do.
fn routes<P: Bits>(count: usize) -> Vec<P> {
    let mut random = Random(7);
    let mut routes: Vec<P> = Vec::new();
    while routes.len() < count {
        let length = P::LENGTHS[random.below(P::LENGTHS.len())];
        let mut bits = address_bits(&mut random);
        if !routes.is_empty() && random.below(2) == 0 {
            let above = &routes[random.below(routes.len())];
            let kept = u128::MAX.checked_shr(above.length().into()).unwrap_or(0);
            bits = above.bits() & !kept | bits & kept;
        } else {
            // A few beginnings, so that they are crowded.
            bits = bits >> 16 & !(0xFF << 104) | (random.below(64) as u128) << 120;
        }
        routes.push(P::prefix(bits, length));
    }
    routes
}

/// Random existing, uniform and Zipf traffic, 10^6 addresses each (fewer from the third seed
/// on), against the trie.
fn same_answers<P: Bits>(table: &Table<P, u32>, trie: &Trie, routes: &[P], seed: u64) {
    let rounds = if seed < 3 { 250 } else { 20 };
    let mut random = Random(seed);
    let mut found = Vec::new();
    for kind in 0..3 {
        for _ in 0..rounds {
            let questions: Vec<u128> = (0..4000)
                .map(|_| {
                    let index = match kind {
                        0 => random.below(routes.len()),
                        1 => return address_bits(&mut random),
                        _ => {
                            let share = random.next() as f64 / 2f64.powi(64);
                            (routes.len() as f64).powf(share) as usize - 1
                        }
                    };
                    let kept = u128::MAX.checked_shr(routes[index].length().into()).unwrap_or(0);
                    routes[index].bits() & !kept | address_bits(&mut random) & kept
                })
                .map(|bits| bits >> (128 - u32::from(P::LONGEST)) << (128 - u32::from(P::LONGEST)))
                .collect();
            let addresses: Vec<P::Address> =
                questions.iter().map(|bits| P::address(*bits)).collect();
            table.lookup_batch(&addresses, &mut found);
            for ((bits, address), found) in questions.iter().zip(&addresses).zip(&found) {
                let expected = trie.lookup(*bits);
                assert_eq!(found.map(|f| (f.length, *f.value)), expected, "{bits:x}");
                assert_eq!(table.lookup(address), *found, "{bits:x}");
            }
        }
    }
}

fn agrees_with_a_trie<P: Bits>()
where
    Table<P, u32>: Clone,
{
    let routes = routes::<P>(60_000);
    let mut trie = Trie::default();
    for (value, route) in (0..).zip(&routes) {
        trie.node(route.bits(), route.length()).value = Some(value);
    }
    let mut table: Table<P, u32> = routes.iter().cloned().zip(0..).collect();
    table.validate();
    same_answers(&table, &trie, &routes, 1);
    let mut random = Random(99);
    for value in 0..100_000 {
        let route = &routes[random.below(routes.len())];
        let node = trie.node(route.bits(), route.length());
        if random.below(5) < 2 {
            assert_eq!(table.remove(route), node.value.take());
        } else {
            assert_eq!(table.insert(route.clone(), value), node.value.replace(value));
        }
    }
    table.validate();
    same_answers(&table, &trie, &routes, 2);
    // Many at once, there and back.
    let some: Vec<P> = table.iter().step_by(3).map(|(prefix, _)| prefix).collect();
    let (held, mut values) = (table.len(), Vec::new());
    table.remove_each(&some, |value| values.push(value.unwrap()));
    assert_eq!(table.len(), held - some.len());
    table.validate();
    table.extend(some.into_iter().zip(values));
    table.validate();
    same_answers(&table, &trie, &routes[..1000], 4);
    same_answers(&table.without_simd(), &trie, &routes[..1000], 3);
}

#[test]
fn ipv4_answers_are_those_of_a_plain_trie_before_and_after_updates() {
    agrees_with_a_trie::<Ipv4Prefix>();
}

#[test]
fn ipv6_answers_are_those_of_a_plain_trie_before_and_after_updates() {
    agrees_with_a_trie::<Ipv6Prefix>();
}

/// Tables that suit this design least, some thousand prefixes each.
fn bad_cases() -> Vec<(&'static str, Vec<Ipv6Prefix>)> {
    let mut random = Random(5);
    let mut any = |length| Ipv6Prefix::prefix(address_bits(&mut random) >> 3 | 1 << 125, length);
    let chain = |bits: u128| (0..=128).map(move |length| Ipv6Prefix::prefix(bits, length));
    let all = (0..=128).flat_map(|length| vec![length; 40]).map(&mut any).collect();
    let hosts = (0..5000).map(|_| any(128)).collect();
    let networks = (0..5000).map(|_| any(64)).collect();
    let chains = (0..40).map(|_| any(128)).flat_map(|host| chain(Bits::bits(&host))).collect();
    let dense = (0..5000).map(|network| Ipv6Prefix::prefix(1 << 125 | network << 64, 64));
    vec![
        ("all lengths alike", all),
        ("only /128", hosts),
        ("only /64", networks),
        ("nested 128 deep", chains),
        ("a dense /32 of /64s", dense.collect()),
        ("one prefix", vec![any(48)]),
        ("empty", Vec::new()),
    ]
}

/// Addresses within prefixes, beside them and anywhere, against the trie.
fn same_answers_near<P: Bits>(what: &str, table: &Table<P, u32>, trie: &Trie, routes: &[P]) {
    let mut random = Random(12);
    let anywhere: Vec<u128> = (0..1000).map(|_| address_bits(&mut random)).collect();
    let near = routes.iter().flat_map(|route| {
        let behind = u128::MAX.checked_shr(route.length().into()).unwrap_or(0);
        let inside = route.bits() | address_bits(&mut random) & behind;
        [inside, inside ^ 1 << random.below(128), inside ^ (behind.wrapping_add(1))]
    });
    let unused = 128 - u32::from(P::LONGEST);
    let asked: Vec<u128> = near.chain(anywhere).map(|bits| bits >> unused << unused).collect();
    let addresses: Vec<P::Address> = asked.iter().map(|bits| P::address(*bits)).collect();
    let mut found = Vec::new();
    table.lookup_batch(&addresses, &mut found);
    for ((bits, address), found) in asked.iter().zip(&addresses).zip(&found) {
        assert_eq!(found.map(|f| (f.length, *f.value)), trie.lookup(*bits), "{what}: {bits:x}");
        assert_eq!(table.lookup(address), *found, "{what}: {bits:x}");
    }
}

#[test]
fn bad_cases_are_answered_as_by_a_plain_trie_and_read_few_lines() {
    for (what, routes) in bad_cases() {
        let mut trie = Trie::default();
        for (value, route) in (0..).zip(&routes) {
            trie.node(Bits::bits(route), route.length()).value = Some(value);
        }
        let mut grown = Table::<Ipv6Prefix, u32>::new();
        (0..).zip(&routes).for_each(|(value, route)| _ = grown.insert(*route, value));
        let mut table: Table<Ipv6Prefix, u32> = routes.iter().copied().zip(0..).collect();
        for table in [&table, &grown] {
            table.validate();
            same_answers_near(what, table, &trie, &routes);
        }
        // A routing table reads about three.
        let lines = table.probes_within().lines;
        assert!(lines <= 6.0, "{what}: {lines} lines");
        for route in routes.iter().step_by(2) {
            let there = trie.node(Bits::bits(route), route.length()).value.take();
            assert_eq!((table.remove(route), grown.remove(route)), (there, there), "{what}");
        }
        table.replan();
        for table in [table, grown] {
            table.validate();
            same_answers_near(what, &table, &trie, &routes);
        }
    }
}

#[test]
fn groups_follow_the_lengths_when_these_change() {
    let mut random = Random(3);
    let mut any = |length| Ipv6Prefix::prefix(address_bits(&mut random), length);
    let lengths = [33, 34, 35, 36, 48];
    let routes: Vec<Ipv6Prefix> = (0..10_000).map(|n| any(lengths[n % lengths.len()])).collect();
    let mut table: Table<Ipv6Prefix, u32> = routes.iter().copied().zip(0..).collect();
    assert!(
        table.groups().any(|group| group == (48..=48)),
        "{:?}",
        table.groups().collect::<Vec<_>>()
    );
    let mut trie = Trie::default();
    // Ranges take their place, of all lengths.
    let later: Vec<Ipv6Prefix> = (0..10_000).map(|n| any(49 + (n % 16) as u8)).collect();
    for (value, (gone, come)) in (0..).zip(routes.iter().zip(&later)) {
        table.remove(gone);
        table.insert(*come, value);
        trie.node(Bits::bits(come), come.length()).value = Some(value);
    }
    let groups: Vec<_> = table.groups().collect();
    assert!(groups.iter().any(|group| group.contains(&56)), "{groups:?}");
    assert!(groups.iter().filter(|group| *group.start() > 48).count() <= 6, "{groups:?}");
    table.validate();
    same_answers_near("drifted", &table, &trie, &later);
    // What is asked most gets a group of its own.
    let mut traffic = vec![0; 129];
    traffic[64] = 1000;
    table.set_traffic(&traffic);
    table.replan();
    assert!(table.groups().any(|group| group == (64..=64)));
    table.validate();
    same_answers_near("replanned", &table, &trie, &later);
}

#[test]
fn probes_are_what_the_formula_says() {
    let table: Table<Ipv6Prefix, u32> = routes(60_000).into_iter().zip(0..).collect();
    let probes = table.probes_within();
    // The standard error of 60 000 lookups is below 0.002.
    assert!((probes.measured - probes.expected).abs() < 0.01, "{probes:?}");
    // Lengths without a filter are read in vain now and then.
    assert!((1.0..1.5).contains(&probes.measured), "{probes:?}");
}

/// Prefixes of a small universe: everything overlaps.
fn small(bits: u32, length: u8, shift: u32) -> (u128, u8) {
    (u128::from(bits) << (128 - 8 - shift), length)
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u32, u8, u32),
    Remove(u32, u8),
}

fn changes(longest: u8) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (0u32..256, 0..=longest, any::<u32>()).prop_map(|(b, l, v)| Change::Insert(b, l, v)),
        2 => (0u32..256, 0..=longest).prop_map(|(b, l)| Change::Remove(b, l)),
    ];
    vec(change, 0..120)
}

/// A sorted map, asked length by length.
fn longest_of<P: Prefix>(map: &BTreeMap<P, u32>, address: &P::Address) -> Option<(u8, u32)> {
    let lengths = (0..=P::LONGEST).rev();
    lengths.filter_map(|l| Some((l, *map.get(&P::of(address, l))?))).next()
}

fn small_universe<P: Bits>(changes: &[Change], shift: u32) {
    let (mut table, mut map) = (Table::<P, u32>::new(), BTreeMap::new());
    for change in changes {
        match *change {
            Change::Insert(bits, length, value) => {
                let (bits, length) = small(bits, length, shift);
                let prefix = P::prefix(bits, length);
                assert_eq!(table.insert(prefix.clone(), value), map.insert(prefix, value));
            }
            Change::Remove(bits, length) => {
                let (bits, length) = small(bits, length, shift);
                let prefix = P::prefix(bits, length);
                assert_eq!(table.get(&prefix), map.get(&prefix));
                assert_eq!(table.remove(&prefix), map.remove(&prefix));
            }
        }
    }
    table.validate();
    assert_eq!(table.len(), map.len());
    let held: BTreeMap<P, u32> = table.iter().map(|(prefix, value)| (prefix, *value)).collect();
    assert_eq!(held, map);
    let addresses: Vec<P::Address> =
        (0..256).map(|bits| P::address(small(bits, 0, shift).0 | 0x5A)).collect();
    let mut found = Vec::new();
    table.lookup_batch(&addresses, &mut found);
    for (address, found) in addresses.iter().zip(found) {
        assert_eq!(found.map(|f| (f.length, *f.value)), longest_of(&map, address));
        assert_eq!(table.lookup(address), found);
    }
    let bytes = table.encode(|value| value.to_le_bytes());
    let read = Table::<P, u32>::decode(&bytes, 1 << 20, |value| {
        value.try_into().ok().map(u32::from_le_bytes)
    })
    .unwrap();
    assert_eq!(read.iter().map(|(p, v)| (p, *v)).collect::<BTreeMap<_, _>>(), map);
    assert_eq!(read.encode(|value| value.to_le_bytes()), bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn small_universes_of_ipv4_agree_with_a_map(changes in changes(32), shift in 0u32..24) {
        small_universe::<Ipv4Prefix>(&changes, shift);
    }

    #[test]
    fn small_universes_of_ipv6_agree_with_a_map(changes in changes(128), shift in 0u32..120) {
        small_universe::<Ipv6Prefix>(&changes, shift);
    }

    #[test]
    fn tables_of_a_few_lengths_agree_with_a_map(
        lengths in vec(0u8..=128, 1..5),
        steps in vec((any::<u16>(), 0usize..5, 0u8..3), 0..400),
    ) {
        let (mut table, mut map) = (Table::<Ipv6Prefix, u32>::new(), BTreeMap::new());
        for (value, (bits, length, change)) in (0..).zip(&steps) {
            // Some bits decide the beginning, others the end of the prefix.
            let (high, low) = (u128::from(bits & 0x70F), u128::from(bits >> 11));
            let bits = high << 112 | low << 62 | low << 60 | low;
            let prefix = Ipv6Prefix::prefix(bits, lengths[length % lengths.len()]);
            if *change == 0 {
                prop_assert_eq!(table.remove(&prefix), map.remove(&prefix));
            } else {
                prop_assert_eq!(table.insert(prefix, value), map.insert(prefix, value));
            }
            let address = Ipv6Prefix::address(&Ipv6Prefix::prefix(bits ^ low << 61, 128));
            let found = table.lookup(&address).map(|f| (f.length, *f.value));
            prop_assert_eq!(found, longest_of(&map, &address));
        }
        table.replan();
        table.validate();
        let held: BTreeMap<Ipv6Prefix, u32> = table.iter().map(|(p, v)| (p, *v)).collect();
        prop_assert_eq!(held, map);
    }

    #[test]
    fn names_agree_with_a_map(
        held in vec((vec(0u8..3, 0..12), any::<u32>()), 0..60),
        gone in vec(vec(0u8..3, 0..12), 0..30),
        asked in vec(vec(0u8..3, 0..14), 1..60),
    ) {
        let (mut table, mut map) = (Table::<Name, u32>::new(), BTreeMap::new());
        for (parts, value) in &held {
            prop_assert_eq!(table.insert(name(parts), *value), map.insert(name(parts), *value));
        }
        for parts in &gone {
            prop_assert_eq!(table.remove(&name(parts)), map.remove(&name(parts)));
        }
        table.validate();
        for parts in &asked {
            let asked = name(parts);
            let lengths = (0..=asked.length()).rev();
            let expected = lengths.filter_map(|l| Some((l, *map.get(&Name::of(&asked, l))?))).next();
            prop_assert_eq!(table.lookup(&asked).map(|f| (f.length, *f.value)), expected);
        }
    }

    #[test]
    fn junk_is_refused_or_read_as_a_table_that_is_written_again(mut bytes in vec(any::<u8>(), 0..200)) {
        let body = [&b"UMBL\x01"[..], &[0x20 + bytes.len() as u8 % 3]].concat();
        bytes.splice(..0, body);
        let checksum = crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        if let Ok(table) = AnyTable::decode(&bytes, 1 << 20) {
            let again = table.encode();
            prop_assert_eq!(AnyTable::decode(&again, 1 << 20).unwrap().encode(), again);
        }
    }
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn name(parts: &[u8]) -> Name {
    let text: String = parts.iter().map(|part| format!("/{part}")).collect();
    if text.is_empty() { "/" } else { &text }.parse().unwrap()
}

#[test]
fn what_is_no_prefix_is_refused() {
    for text in ["", "10.0.0.0", "10.0.0/8", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/x", "::/0"] {
        assert_eq!(text.parse::<Ipv4Prefix>(), Err(ParseError::Malformed("IPv4")), "{text}");
    }
    assert_eq!("10.0.0.1/8".parse::<Ipv4Prefix>(), Err(ParseError::HostBits));
    let too_long = Err(ParseError::Length { length: 33, longest: 32 });
    assert_eq!("10.0.0.0/33".parse::<Ipv4Prefix>(), too_long);
    assert_eq!("2001:db8::1/64".parse::<Ipv6Prefix>(), Err(ParseError::HostBits));
    assert!("2001:db8::/129".parse::<Ipv6Prefix>().is_err());
    for (texts, why) in [
        (&["", "a", "a/b", " /a"][..], ParseError::NoSlash),
        (&["//", "///", "//a", "/a//", "/a//b"], ParseError::Empty),
        (&["/.", "/..", "/a/../b", "/a/./"], ParseError::Dots),
        (&["/a b", "/a\tb", "/a\n", "/\u{2003}", "/a\0"], ParseError::Blank),
        (
            &[&"/a".repeat(65), &"/".repeat(4098), &format!("/{}", "a".repeat(4096))],
            ParseError::TooLong,
        ),
    ] {
        for text in texts {
            assert_eq!(text.parse::<Name>(), Err(why), "{text}");
        }
    }
}

#[test]
fn a_name_has_one_text() {
    let longest = format!("/{}", "a".repeat(4095));
    for (text, canonical) in [
        ("/", "/"),
        ("/a/", "/a"),
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/...", "/..."),
        ("/a%2F/B", "/a%2F/B"),
        (&"/ä".repeat(64), &"/ä".repeat(64)),
        (&format!("{longest}/"), &longest),
    ] {
        let name: Name = text.parse().unwrap();
        assert_eq!(name.as_str(), canonical);
        assert_eq!(name.as_str().parse(), Ok(name.clone()));
        let prefixes: Vec<&str> = name.prefixes().collect();
        assert_eq!(prefixes.len(), usize::from(name.length()) + 1);
        for (length, prefix) in (0..=name.length()).rev().zip(prefixes) {
            assert_eq!(Name::of(&name, length).as_str(), prefix, "{text}");
        }
    }
}

#[test]
fn the_default_route_and_hosts_are_prefixes_too() {
    let table: Table<Ipv4Prefix, u32> =
        [("0.0.0.0/0", 1), ("10.0.0.0/8", 2), ("10.1.2.3/32", 3), ("10.1.2.0/24", 4)]
            .into_iter()
            .map(|(prefix, value)| (prefix.parse().unwrap(), value))
            .collect();
    for (address, expected) in
        [("192.0.2.1", (0, 1)), ("10.9.9.9", (8, 2)), ("10.1.2.3", (32, 3)), ("10.1.2.4", (24, 4))]
    {
        let found = table.lookup(&address.parse().unwrap()).unwrap();
        assert_eq!((found.length, *found.value), expected, "{address}");
    }
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let mut table = Labelled::<Ipv4Prefix>::with_room(&[]);
    assert!(table.insert_new("10.0.0.0/8".parse().unwrap(), "lab"));
    assert!(!table.insert_new("10.0.0.0/8".parse().unwrap(), "office"));
    assert!(table.insert_new("10.1.2.0/24".parse().unwrap(), "lab"));
    let bytes = AnyTable::Ipv4(table).encode();
    for end in 0..bytes.len() {
        assert!(AnyTable::decode(&bytes[..end], 1 << 20).is_err(), "cut at {end}");
        let mut flipped = bytes.clone();
        flipped[end] ^= 4;
        assert!(AnyTable::decode(&flipped, 1 << 20).is_err(), "flipped at {end}");
    }
    assert!(AnyTable::decode(&bytes, 100).unwrap_err().to_string().contains("limit"));
    assert!(Table::<Ipv6Prefix, u32>::decode(&bytes, 1 << 20, |_| Some(1)).is_err());
    let filter = umbel::codec::encode(&umbel::StandardFilter::for_target(10, 0.1).unwrap());
    assert!(AnyTable::decode(&filter, 1 << 20).unwrap_err().to_string().contains("no table"));
}
