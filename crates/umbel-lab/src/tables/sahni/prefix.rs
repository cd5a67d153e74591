//! Slides "Longest Matching Prefix": tables read by a lookup, with filters and without.
//!
//! The paper: "Create W Bloom filters, one for each length", and W hash tables; "Query Bloom filters
//! to get list of hash tables that may have matching prefix. Query hash tables in decreasing order of
//! length".
//!
//! Ours: prefixes with the lengths of a full IPv4 routing table of 2024, one in thirty; all 25
//! lengths, the nine from 16 to 24, or four of them; filters at five rates. Lookups ask for an
//! address within a random prefix and no longer one. By formula `1 + Σ f` over the lengths longer
//! than the match; without filters every longer length is read.
//!
//! Left open: everything but the idea.

use std::collections::HashSet;

use umbel::design::prefix::counted;
use umbel::{Rate, StandardFilter, design};

use super::super::closeness::{CLOSE, close};
use super::super::{Column, formula, setting, simulated};
use crate::Experiment;
use crate::home::Keys;
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Origin, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sahni-prefix",
    source: "Sahni, paper 2, slides \"Longest Matching Prefix\"",
    title: "Longest-prefix match: tables read with filters and without",
    find,
};

/// Prefixes of each length in a full table of 2024.
const TABLE: [(u8, u64); 25] = [
    (8, 16),
    (9, 13),
    (10, 38),
    (11, 103),
    (12, 299),
    (13, 581),
    (14, 1203),
    (15, 2100),
    (16, 13_490),
    (17, 8235),
    (18, 13_798),
    (19, 24_870),
    (20, 42_611),
    (21, 50_750),
    (22, 108_623),
    (23, 96_510),
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
/// One prefix in this many is used.
const ONE_IN: u64 = 30;
const RATES: [f64; 5] = [0.2, 0.1, 0.05, 0.01, 0.001];
const LENGTHS: [&[u8]; 3] = [
    &[16, 20, 22, 24],
    &[16, 17, 18, 19, 20, 21, 22, 23, 24],
    &[
        8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 32,
    ],
];

/// The prefixes of some lengths, in the reduced table.
fn counts(lengths: &[u8]) -> Vec<(u8, u64)> {
    let taken = TABLE.iter().filter(|(length, _)| lengths.contains(length));
    taken.map(|(length, count)| (*length, count.div_ceil(ONE_IN))).collect()
}

struct Row {
    lengths: usize,
    rate: f64,
    formula: f64,
    without_formula: f64,
    bits_per_prefix: f64,
    found: Spread,
    without: Spread,
    right: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let asked = bench.asked() / 20;
    let trials = bench.trials(|random| trial(random, asked));
    let setups = LENGTHS.into_iter().flat_map(|lengths| RATES.map(|rate| (lengths, rate)));
    let row = |(i, (lengths, rate)): (usize, (&[u8], f64))| {
        let counts = counts(lengths);
        let plan = counted(&counts, Rate::new(rate).expect("a rate")).expect("small filters");
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let of = |which: usize| Spread::of(trials.iter().map(|trial| trial[i][which]));
        Row {
            lengths: lengths.len(),
            rate,
            formula: plan.expected_probes,
            without_formula: plan.probes_without_filters,
            bits_per_prefix: plan.bits as f64 / all as f64,
            found: of(0),
            without: of(1),
            right: of(2),
        }
    };
    let rows: Vec<Row> = setups.enumerate().map(row).collect();
    let claims = claims(&rows, Sampling { asked, ..bench.sampling() });
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

/// Prefixes by length, longest first, each with its filter.
struct Prefixes {
    lengths: Vec<(u8, HashSet<u32>, StandardFilter)>,
    all: Vec<(u8, u32)>,
}

/// A prefix of an address.
const fn truncate(address: u32, length: u8) -> u32 {
    address >> (32 - length as u32)
}

fn key(length: u8, prefix: u32) -> [u8; 5] {
    let [a, b, c, d] = prefix.to_le_bytes();
    [length, a, b, c, d]
}

impl Prefixes {
    /// Random prefixes, as many of each length as a table has.
    fn draw(random: &mut Random, lengths: &[u8]) -> Vec<(u8, HashSet<u32>)> {
        let mut made = Vec::new();
        for (length, count) in counts(lengths).into_iter().rev() {
            let mut prefixes = HashSet::new();
            while (prefixes.len() as u64) < count {
                prefixes.insert(truncate(random.next() as u32, length));
            }
            made.push((length, prefixes));
        }
        made
    }

    fn with_filters(keys: &Keys, prefixes: &[(u8, HashSet<u32>)], rate: f64) -> Self {
        let rate = Rate::new(rate).expect("a rate");
        let of = |(length, prefixes): &(u8, HashSet<u32>)| {
            let shape = design::standard(prefixes.len() as u64, rate).expect("a small filter");
            let mut filter = keys.standard(shape);
            for prefix in prefixes {
                filter.insert(key(*length, *prefix));
            }
            (*length, prefixes.clone(), filter)
        };
        let lengths: Vec<_> = prefixes.iter().map(of).collect();
        let mut all: Vec<(u8, u32)> = prefixes
            .iter()
            .flat_map(|(length, prefixes)| prefixes.iter().map(|prefix| (*length, *prefix)))
            .collect();
        // A set has no order of its own.
        all.sort_unstable();
        Self { lengths, all }
    }

    /// The longest prefix of an address, looked for in every table.
    fn longest(&self, address: u32) -> Option<u8> {
        let matches = |(length, prefixes, _): &&(u8, HashSet<u32>, StandardFilter)| {
            prefixes.contains(&truncate(address, *length))
        };
        self.lengths.iter().find(matches).map(|(length, ..)| *length)
    }

    /// An address whose longest match is a random prefix; `None` if longer prefixes cover it.
    fn address(&self, random: &mut Random) -> Option<(u32, u8)> {
        let (length, prefix) = self.all[random.below(self.all.len())];
        let rest = u32::MAX.checked_shr(length.into()).unwrap_or(0);
        let address = || prefix << (32 - u32::from(length)) | random.next() as u32 & rest;
        let address = std::iter::repeat_with(address).take(20);
        address.map(|a| (a, length)).find(|(a, length)| self.longest(*a) == Some(*length))
    }

    /// Tables read from the longest claimed length down, and the length that matched.
    fn lookup(&self, address: u32) -> (u64, Option<u8>) {
        let mut read = 0;
        for (length, prefixes, filter) in &self.lengths {
            let prefix = truncate(address, *length);
            if filter.contains(key(*length, prefix)) {
                read += 1;
                if prefixes.contains(&prefix) {
                    return (read, Some(*length));
                }
            }
        }
        (read, None)
    }
}

/// Tables read with filters and without, and answers that are right, for each setup.
fn trial(mut random: Random, asked: usize) -> Vec<[f64; 3]> {
    let keys = Keys::new(&mut random);
    let mut rows = Vec::new();
    for lengths in LENGTHS {
        let prefixes = Prefixes::draw(&mut random, lengths);
        for rate in RATES {
            let prefixes = Prefixes::with_filters(&keys, &prefixes, rate);
            let (mut lookups, mut read, mut without, mut right) = (0_u64, 0_u64, 0_u64, 0_u64);
            for _ in 0..asked {
                let Some((address, length)) = prefixes.address(&mut random) else { continue };
                let (tables, found) = prefixes.lookup(address);
                let rank = prefixes.lengths.iter().position(|(other, ..)| *other == length);
                lookups += 1;
                read += tables;
                without += 1 + rank.unwrap_or(0) as u64;
                right += u64::from(found == Some(length));
            }
            rows.push([read, without, right].map(|count| count as f64 / lookups as f64));
        }
    }
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("lengths"),
        Column::new(Origin::Setting, "filter_rate_percent", 1),
        formula("bits_per_prefix", 2),
        formula("probes_formula", 4),
        simulated("probes_simulated", 4),
        formula("probes_without_filters_formula", 4),
        simulated("probes_without_filters", 4),
        simulated("right_percent", 1),
    ]);
    for row in rows {
        table.push([
            (row.lengths as u64).into(),
            (100.0 * row.rate).into(),
            row.bits_per_prefix.into(),
            row.formula.into(),
            row.found.mean.into(),
            row.without_formula.into(),
            row.without.mean.into(),
            (100.0 * row.right.mean).into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let at = |lengths: usize, rate: f64| {
        rows.iter().find(|row| (row.lengths, row.rate) == (lengths, rate)).expect("a row")
    };
    let all = at(25, 0.01);
    let right = rows.iter().map(|row| row.right.low).fold(1.0, f64::min);
    vec![
        Claim::paper(
            "to find longest matching prefix",
            "the longest claimed length that has a match is the longest match (worst row and seed)",
        )
        .stated(100.0)
        .simulated(100.0 * right, seeds)
        .within(0.0),
        Claim::paper(
            "Query Bloom filters to get list of hash tables that may have matching prefix",
            "25 lengths, filters at 1 %: tables read by a lookup, those without filters stated",
        )
        .unit("tables")
        .stated(all.without_formula)
        .formula(all.formula)
        .simulated(all.found.mean, seeds)
        .note(format!(
            "{:.1} times fewer, for {:.1} bits a prefix",
            all.without.mean / all.found.mean,
            all.bits_per_prefix
        ))
        .judged(all.found.mean < all.without.mean),
        close(
            Claim::ours(
                "tables read in vain are those of 1 + Σ f over the lengths longer than the match",
            ),
            CLOSE,
            rows.iter().map(|row| (100.0 * (row.formula - 1.0), row.found.less(1.0).percent())),
            sampling,
        ),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let mut panel =
        Panel::new("IPv4 lengths of 2024", "rate of each filter, %", "tables read by a lookup")
            .log_x();
    for (colour, lengths) in LENGTHS.into_iter().enumerate() {
        let of = |y: fn(&Row) -> f64| {
            let rows = rows.iter().filter(|row| row.lengths == lengths.len());
            rows.map(|row| (100.0 * row.rate, y(row))).collect()
        };
        let name = |what: &str| format!("{} lengths, {what}", lengths.len());
        panel = panel
            .line(&name("1 + Σ f"), colour, of(|row| row.formula))
            .dots(&name("simulated"), colour, of(|row| row.found.mean))
            .dashed(&name("no filters"), colour, of(|row| row.without.mean));
    }
    Plot::of([panel])
}
