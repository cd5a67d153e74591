//! The tables that suit umbel least, beside one like a routing table: IPv6, umbel alone.

use umbel::prefix::{Ipv6Prefix, Table as PrefixTable};

use super::kinds::{self, Bits, Random, behind, cut};
use super::route::{self, Route};
use super::traffic::{self, Traffic};
use crate::harness::{Mix, Table};

/// Prefixes of each table, about.
const PREFIXES: usize = 160_000;
/// Lookups of one run.
const LOOKUPS: usize = 200_000;
/// Changes of one run.
const CHANGES: usize = 10_000;
/// All addresses in use begin with 001.
const FAMILY: u128 = 1 << 125;

struct Case {
    name: &'static str,
    routes: Vec<Route<Ipv6Prefix>>,
    table: PrefixTable<Ipv6Prefix, u16>,
    traffic: Vec<Traffic<Ipv6Prefix>>,
}

/// Bytes, probes and times of each table.
pub(crate) fn run() {
    let [(_, routes), ..] = kinds::KINDS;
    let mut cases = vec![case("like a routing table", routes().1)];
    cases.extend(bad().into_iter().map(|(name, bits)| case(name, kinds::family(&bits))));
    println!("\n# IPv6, bad cases\n");
    println!("| table | prefixes | bytes | a prefix | groups | probes | lines |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for Case { name, table, traffic, .. } in &cases {
        let (bytes, prefixes) = (table.memory_bytes(), table.len());
        let probes = table.probes(&traffic[0].addresses);
        println!(
            "| {name} | {prefixes} | {bytes} | {:.1} | {} | {:.3} | {:.2} |",
            bytes as f64 / prefixes.max(1) as f64,
            table.groups().count(),
            probes.measured,
            probes.lines
        );
    }
    for index in 0..cases[0].traffic.len() {
        lookups(&cases, index);
    }
    changes(&mut cases);
}

fn case(name: &'static str, prefixes: Vec<Ipv6Prefix>) -> Case {
    let routes = route::routes(prefixes);
    let table: PrefixTable<Ipv6Prefix, u16> =
        routes.iter().map(|route| (route.prefix, route.value)).collect();
    let traffic = traffic::of(&table, &routes, LOOKUPS);
    Case { name, routes, table, traffic }
}

fn bad() -> Vec<(&'static str, Vec<Bits>)> {
    let mut random = Random(Mix(11));
    let mut any = |length: u8| (cut(FAMILY | random.bits() & behind(3), length), length);
    let each = PREFIXES / 128;
    let all = (17..=128).flat_map(|length| [length; PREFIXES / 112]).map(&mut any).collect();
    let hosts = (0..PREFIXES).map(|_| any(128)).collect();
    let networks = (0..PREFIXES).map(|_| any(64)).collect();
    let addresses: Vec<u128> = (0..each).map(|_| any(128).0).collect();
    let chains =
        addresses.iter().flat_map(|bits| (1..=128).map(|length| (cut(*bits, length), length)));
    let dense = (0..PREFIXES as u128).map(|network| (FAMILY | network << 64, 64)).collect();
    vec![
        ("all lengths alike", unique(all)),
        ("only /128", hosts),
        ("only /64", networks),
        ("nested 128 deep", unique(chains.collect())),
        ("a dense /32 of /64s", dense),
        ("one prefix", vec![(FAMILY, 48)]),
        ("empty", Vec::new()),
    ]
}

fn unique(mut prefixes: Vec<Bits>) -> Vec<Bits> {
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

fn lookups(cases: &[Case], index: usize) {
    let name = cases[0].traffic[index].name;
    for is_batched in [true, false] {
        let how = if is_batched { "batched" } else { "one at a time" };
        let mut rows = Table::new(format!("{name} addresses, {how}"));
        for Case { name, table, traffic, .. } in cases {
            let addresses = &traffic[index].addresses;
            if addresses.is_empty() {
                continue;
            }
            rows.case(*name, addresses.len(), move || {
                let mut sum = 0;
                if is_batched {
                    let value = |found: Option<umbel::prefix::Match<'_, u16>>| {
                        sum += found.map_or(0, |found| u64::from(*found.value));
                    };
                    table.lookup_each(addresses, value);
                } else {
                    for address in addresses {
                        sum += table.lookup(address).map_or(0, |found| u64::from(*found.value));
                    }
                }
                sum
            });
        }
        rows.measure(5, &[]);
    }
}

fn changes(cases: &mut [Case]) {
    let mut rows = Table::new("removed and inserted again, one by one");
    for Case { name, table, routes, .. } in cases {
        let changed = &routes[..routes.len().min(CHANGES)];
        if changed.is_empty() {
            continue;
        }
        rows.case(*name, 2 * changed.len(), move || {
            changed.iter().for_each(|route| _ = table.remove(&route.prefix));
            changed.iter().for_each(|route| _ = table.insert(route.prefix, route.value));
            1
        });
    }
    rows.measure(5, &[]);
}
