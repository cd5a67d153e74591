//! Longest-prefix match beside tries, on a whole Internet routing table.
//!
//! The table is read from the file that `--prefixes FILE` names (lines of prefixes, plain or
//! gzip), else from `../shared/data/prefixes.txt.gz` if that is there, else made with the same
//! number of prefixes of each length.
//!
//! Every structure is asked for the same addresses and must give the same answers before it is
//! measured, and again after it was changed.

mod rivals;
mod tables;
mod traffic;

use std::cell::RefCell;

use umbel::prefix::{Ipv4Prefix, Ipv6Prefix, Table as PrefixTable};

use crate::harness::{Goal, Mix, Table};
use rivals::{Family, Lookup};
use tables::Route;
use traffic::Traffic;

/// Lookups of one run.
const LOOKUPS: usize = 1_000_000;
/// Prefixes that are taken out and put back.
const UPDATES: usize = 100_000;
/// A batch, as a packet processor would have it.
const BATCH: usize = 256;

/// Both families.
pub(crate) fn run() {
    let tables = tables::load();
    println!("\nprefixes: {}", tables.source);
    measure::<Ipv4Prefix>(&tables.ipv4);
    measure::<Ipv6Prefix>(&tables.ipv6);
}

struct Built<P: Family> {
    umbel: PrefixTable<P, u16>,
    rivals: Vec<Box<dyn Lookup<P>>>,
}

fn measure<P: Family>(routes: &[Route<P>]) {
    println!("\n# {}: {} prefixes\n", P::NAME, routes.len());
    let mut built = build(routes);
    let traffic = traffic::of(routes, LOOKUPS);
    built.check(&traffic);
    probes(&built.umbel, &traffic);
    for Traffic { name, addresses } in &traffic {
        lookups(&built, name, addresses);
    }
    dependent(&built, &traffic[0].addresses);
    updates(&mut built, routes);
    built.check(&traffic);
    println!("* verified: all answers are the same before and after the updates");
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
    Built { umbel, rivals }
}

impl<P: Family> Built<P> {
    /// A bench that measures wrong answers measures nothing.
    fn check(&self, traffic: &[Traffic<P>]) {
        for Traffic { name, addresses } in traffic {
            let mut batch = Vec::new();
            self.umbel.lookup_batch(addresses, &mut batch);
            for (address, found) in addresses.iter().zip(&batch) {
                assert_eq!(self.umbel.lookup(address), *found, "{name}");
                let value = found.map_or(0, |found| *found.value);
                for rival in self.rivals.iter().filter(|rival| rival.is_current()) {
                    assert_eq!(rival.get(address), value, "{name}, {}", rival.name());
                }
            }
        }
    }
}

fn probes<P: Family>(umbel: &PrefixTable<P, u16>, traffic: &[Traffic<P>]) {
    for Traffic { name, addresses } in traffic {
        let found = umbel.probes(addresses);
        println!(
            "* probes, {name}: {:.4} measured, {:.4} by the formula",
            found.measured, found.expected
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
    table.measure(7, if name == "existing" { P::GOALS } else { &[] });
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
    table.measure(5, &[]);
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
            Goal::faster("umbel, remove", 3.0, "prefix-trie, remove"),
            Goal::faster("umbel, insert", 3.0, "prefix-trie, insert"),
            Goal::faster("umbel, remove, batched", 3.0, "prefix-trie, remove"),
            Goal::faster("umbel, insert, batched", 3.0, "prefix-trie, insert"),
        ],
    );
}
