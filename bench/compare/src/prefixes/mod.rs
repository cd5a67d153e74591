//! Longest-prefix match beside tries, on tables of several kinds.
//!
//! `--prefixes NAME` names a table and may be repeated: a file (lines of prefixes, plain or gzip), or
//! one of the kinds that are made here (`kinds`: routes, ranges, hosts, mixed). Without it all four
//! kinds are measured. Section `prefixes-bad` measures umbel alone, on the tables that suit
//! it least (`bad`).
//!
//! Every structure is asked for the same addresses and must give umbel's answers before it is
//! measured, and again after it was changed; one that does not is named and left out. Umbel's own
//! are compared with a plain model's.

mod bad;
mod kinds;
mod rivals;
mod route;
mod tables;
mod traffic;

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

use umbel::params::Rate;
use umbel::prefix::{Ipv4Prefix, Ipv6Prefix, Prefix as _, Table as PrefixTable};

pub(crate) use bad::run as run_bad;

use crate::harness::{Goal, Mix, Table};
use rivals::{Family, Lookup};
use route::Route;
use tables::Tables;
use traffic::Traffic;

/// Lookups of one run.
const LOOKUPS: usize = 400_000;
/// Prefixes that are taken out and put back.
const UPDATES: usize = 100_000;
/// A batch, as a packet processor would have it.
const BATCH: usize = 256;
/// Bytes of an IPv6 prefix, at most.
const MAX_BYTES: f64 = 24.0;

/// All tables that are named, both families of each.
pub(crate) fn run() {
    let mut names: Vec<String> = named().collect();
    if names.is_empty() {
        names = kinds::KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    }
    for name in names {
        let Tables { source, ipv4, ipv6 } = tables::load(&name).unwrap_or_else(|error| {
            eprintln!("compare: {error}");
            std::process::exit(2);
        });
        println!("\nprefixes: {source}");
        measure::<Ipv4Prefix>(&ipv4);
        measure::<Ipv6Prefix>(&ipv6);
    }
}

/// What `--prefixes` names, each time it is given.
fn named() -> impl Iterator<Item = String> {
    let options = std::env::args().zip(std::env::args().skip(1));
    options.filter(|(option, _)| option == "--prefixes").map(|(_, name)| name)
}

struct Built<P: Family> {
    umbel: PrefixTable<P, u16>,
    rivals: Vec<Box<dyn Lookup<P>>>,
}

fn measure<P: Family + Hash>(routes: &[Route<P>]) {
    if routes.is_empty() {
        println!("\n# {}: no prefixes", P::NAME);
        return;
    }
    println!("\n# {}: {} prefixes\n", P::NAME, routes.len());
    let mut built = build(routes);
    let traffic = traffic::of(&built.umbel, routes, LOOKUPS);
    check_plainly(&built.umbel, routes, &traffic);
    built.check(&traffic);
    println!("* groups of lengths: {}", groups(&built.umbel));
    per_length(&built.umbel);
    probes(&built.umbel, &traffic);
    for Traffic { name, addresses } in &traffic {
        lookups(&built, name, addresses);
    }
    dependent(&built, &traffic[0].addresses);
    updates(&mut built, routes);
    built.check(&traffic);
    check_plainly(&built.umbel, routes, &traffic);
    println!("* verified: umbel's answers are those of a plain model before and after the updates");
}

/// Builds all structures and says what each one takes.
fn build<P: Family>(routes: &[Route<P>]) -> Built<P> {
    let bytes =
        |before: usize| (crate::ALLOCATED.current_usage() - before) as f64 / routes.len() as f64;
    println!("| structure | bytes a prefix |\n|---|---:|");
    let before = crate::ALLOCATED.current_usage();
    let umbel: PrefixTable<P, u16> =
        routes.iter().map(|route| (route.prefix.clone(), route.value)).collect();
    let own = bytes(before);
    println!("| umbel | {own:.2} |");
    let mut rivals = Vec::new();
    for make in P::RIVALS {
        let before = crate::ALLOCATED.current_usage();
        let rival = make(routes);
        println!("| {} | {:.2} |", rival.name(), bytes(before));
        rivals.push(rival);
    }
    let counted = umbel.memory_bytes() as f64 / routes.len() as f64;
    println!("\n* umbel's own count: {counted:.2} bytes a prefix");
    if P::LONGEST == Ipv6Prefix::LONGEST {
        let verdict = if own <= MAX_BYTES { "met" } else { "MISSED" };
        println!("* {verdict}: umbel takes {own:.2} bytes a prefix (goal {MAX_BYTES:.0})");
    }
    Built { umbel, rivals }
}

/// Umbel against a map that is asked length by length, for some of the addresses.
///
/// # Panics
/// If an answer differs: a bench that measures wrong answers measures nothing.
fn check_plainly<P: Family + Hash>(
    umbel: &PrefixTable<P, u16>,
    routes: &[Route<P>],
    traffic: &[Traffic<P>],
) {
    let model: HashMap<&P, u16> = routes.iter().map(|r| (&r.prefix, r.value)).collect();
    let longest = |address| {
        let lengths = (0..=P::LONGEST).rev();
        lengths.filter_map(|l| Some((l, *model.get(&P::of(address, l))?))).next()
    };
    for Traffic { name, addresses } in traffic {
        for address in addresses.iter().take(LOOKUPS / 20) {
            let found = umbel.lookup(address).map(|found| (found.length, *found.value));
            assert_eq!(found, longest(address), "{name}");
        }
    }
}

impl<P: Family> Built<P> {
    /// Drops rivals whose answers are not umbel's.
    fn check(&mut self, traffic: &[Traffic<P>]) {
        let mut answers = Vec::new();
        for Traffic { addresses, .. } in traffic {
            let mut batch = Vec::new();
            self.umbel.lookup_batch(addresses, &mut batch);
            for (address, found) in addresses.iter().zip(batch) {
                assert_eq!(self.umbel.lookup(address), found, "alone and in a batch");
                answers.push((*address, found.map_or(0, |found| *found.value)));
            }
        }
        self.rivals.retain(|rival| {
            let wrong = answers.iter().filter(|(address, value)| rival.get(address) != *value);
            let wrong = if rival.is_current() { wrong.count() } else { 0 };
            if wrong > 0 {
                let (name, all) = (rival.name(), answers.len());
                println!("* LEFT OUT: {name} answers {wrong} of {all} addresses wrongly");
            }
            wrong == 0
        });
    }
}

/// What a filter and a table for each length would cost, as the slides have it: all filters are asked,
/// each at a rate of one in a hundred.
fn per_length<P: Family>(umbel: &PrefixTable<P, u16>) {
    let counts = (0..).zip(umbel.per_length()).map(|(length, count)| (length, *count as u64));
    let counts: Vec<(u8, u64)> = counts.filter(|(_, count)| *count > 0).collect();
    let rate = Rate::new(0.01).expect("between 0 and 1");
    let plan = umbel::design::prefix::counted(&counts, rate).expect("there are prefixes");
    println!(
        "* a filter per length: {} filters asked, {:.2} tables read ({:.1} without filters), {:.1} filter bits a prefix",
        counts.len(),
        plan.expected_probes,
        plan.probes_without_filters,
        plan.bits as f64 / umbel.len() as f64
    );
}

/// The groups of lengths that the table has chosen.
fn groups<P: Family>(umbel: &PrefixTable<P, u16>) -> String {
    let text = |lengths: std::ops::RangeInclusive<u8>| match lengths.clone().count() {
        1 => lengths.start().to_string(),
        _ => format!("{}-{}", lengths.start(), lengths.end()),
    };
    umbel.groups().map(text).collect::<Vec<_>>().join(", ")
}

fn probes<P: Family>(umbel: &PrefixTable<P, u16>, traffic: &[Traffic<P>]) {
    for Traffic { name, addresses } in traffic {
        let found = umbel.probes(addresses);
        println!(
            "* probes, {name}: {:.4} measured, {:.4} by the formula; lines {:.2}",
            found.measured, found.expected, found.lines
        );
    }
}

fn lookups<P: Family>(built: &Built<P>, name: &str, addresses: &[P::Address]) {
    let umbel = &built.umbel;
    let mut table = Table::new(format!("{}, {name} addresses", P::NAME));
    table.case("umbel, batched", addresses.len(), || {
        let mut sum = 0;
        for batch in addresses.chunks(BATCH) {
            umbel.lookup_each(batch, |found| sum += found.map_or(0, |found| (*found.value).into()));
        }
        sum
    });
    table.case("umbel", addresses.len(), || {
        let value = |address| umbel.lookup(address).map_or(0, |found| (*found.value).into());
        addresses.iter().map(value).sum()
    });
    for rival in &built.rivals {
        table.case(rival.name(), addresses.len(), || rival.sum(addresses));
    }
    table.measure(5, if name == "unmatched" { P::MISSED_GOALS } else { P::GOALS });
}

/// Each lookup waits for the one before: the latency.
fn dependent<P: Family>(built: &Built<P>, addresses: &[P::Address]) {
    let mut table = Table::new(format!("{}, existing addresses, each after the other", P::NAME));
    table.case("umbel", addresses.len(), || {
        let mut last = 0u64;
        for address in addresses {
            let address = P::shifted(address, last & zero());
            last = built.umbel.lookup(&address).map_or(0, |found| (*found.value).into());
        }
        last
    });
    for rival in &built.rivals {
        table.case(rival.name(), addresses.len(), || rival.chase(addresses, zero()));
    }
    table.measure(3, &[]);
}

/// Zero, though the compiler does not know it.
fn zero() -> u64 {
    std::hint::black_box(0)
}

fn updates<P: Family>(built: &mut Built<P>, routes: &[Route<P>]) {
    let mut order: Vec<usize> = (0..routes.len()).collect();
    for (last, random) in (1..order.len()).rev().zip(Mix(99)) {
        order.swap(last, (random % (last as u64 + 1)) as usize);
    }
    // Copies, side by side: finding the next change in memory is no part of making it.
    let changed: Vec<Route<P>> =
        order.iter().take(UPDATES).map(|index| routes[*index].clone()).collect();
    let prefixes: Vec<P> = changed.iter().map(|route| route.prefix.clone()).collect();
    let umbel = RefCell::new(&mut built.umbel);
    let mut table = Table::new(format!(
        "{}, {} random prefixes removed, then inserted again",
        P::NAME,
        changed.len()
    ));
    table.case("umbel, remove", changed.len(), || {
        let mut umbel = umbel.borrow_mut();
        changed
            .iter()
            .map(|route| u64::from(umbel.remove(&route.prefix).expect("it is there")))
            .sum()
    });
    table.case("umbel, insert", changed.len(), || {
        let mut umbel = umbel.borrow_mut();
        changed
            .iter()
            .map(|route| u64::from(umbel.insert(route.prefix.clone(), route.value).is_none()))
            .sum()
    });
    table.case("umbel, remove, batched", changed.len(), || {
        let mut sum = 0;
        umbel.borrow_mut().remove_each(&prefixes, |value| {
            sum += u64::from(value.expect("it is there"));
        });
        sum
    });
    table.case("umbel, insert, batched", changed.len(), || {
        umbel.borrow_mut().extend(changed.iter().map(|r| (r.prefix.clone(), r.value)));
        1
    });
    for rival in &mut built.rivals {
        let few = rival.updates(changed.len());
        if few > 0 {
            let (name, changed) = (rival.name(), &changed[..few]);
            let rival = std::rc::Rc::new(RefCell::new(rival));
            let again = rival.clone();
            table.case(format!("{name}, remove"), few, move || {
                changed.iter().for_each(|route| rival.borrow_mut().remove(&route.prefix));
                1
            });
            table.case(format!("{name}, insert"), few, move || {
                changed.iter().for_each(|r| again.borrow_mut().insert(&r.prefix, r.value));
                1
            });
        }
    }
    table.measure(
        5,
        &[
            Goal::faster("umbel, remove", 2.0, "prefix-trie, remove"),
            Goal::faster("umbel, insert", 2.0, "prefix-trie, insert"),
            Goal::faster("umbel, remove, batched", 3.0, "prefix-trie, remove"),
            Goal::faster("umbel, insert, batched", 3.0, "prefix-trie, insert"),
        ],
    );
}
