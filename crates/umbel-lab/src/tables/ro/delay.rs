//! Sections 4.2 and 5.2: what a routing decision reads and stores, as strings, slices and an ABF.
//!
//! The paper: as strings "a full scan of the s BFs is required"; "the bit slice method only needs to load a few bit
//! slices", so that "the delay for making a routing decision at a node is decreased". "The storage cost of ABF is
//! much lower than that of CUBF"; ABF outperforms CUBF in "the delay of each routing decision"; but also: ABF "incurs a bit
//! higher storage cost".
//!
//! Ours: entries for n = 30 and σ = 0.001 with 10 to 100 filters, asked for strangers: words of 64
//! bits that are read until the decision is made. Strings leave a filter at its first zero, or are read whole
//! as the paper says; slices end when no filter is left; an ABF ends at its first zero.
//!
//! Left open: delays in seconds; memory is read, and a word is a word.

use umbel::model::standard;

use super::super::{formula, setting, simulated};
use super::independent::Independent;
use super::{ITEMS, papers, shape_of};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "ro-delay",
    source: "Guo, He and Yang, paper 5, sections 4.2, 5.2 and 5.3",
    title: "What a routing decision reads and stores: strings, slices, one union",
    find,
};

const FILTERS: [u64; 5] = [10, 20, 50, 70, 100];
const SIGMA: f64 = 0.001;

struct Row {
    filters: u64,
    cubf_bits: u64,
    abf_bits: u64,
    /// Words of a full scan of the strings.
    scan: f64,
    /// Bits read from strings, each until its first zero.
    strings: f64,
    found_strings: Spread,
    found_slices: Spread,
    found_abf: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let asked = bench.asked() / 10;
    let trials = bench.trials(|mut random| {
        let row = |filters: &u64| {
            let papers = papers(*filters, SIGMA);
            let apart = Independent::new(&mut random, shape_of(papers.cubf), *filters);
            let joined = Independent::new(&mut random, shape_of(papers.abf), *filters);
            let mut sum = [0_u64; 3];
            for _ in 0..asked {
                let key = random.next();
                sum[0] += apart.read_as_strings(key, *filters);
                sum[1] += apart.read_as_slices(key, *filters);
                sum[2] += joined.read_as_union(key);
            }
            sum.map(|sum| sum as f64 / asked as f64)
        };
        FILTERS.iter().map(row).collect::<Vec<_>>()
    });
    let row = |(i, filters): (usize, u64)| {
        let papers = papers(filters, SIGMA);
        let of = |which: usize| Spread::of(trials.iter().map(|trial| trial[i][which]));
        let fill = standard::fill(shape_of(papers.cubf), ITEMS);
        let each: f64 = (0..papers.cubf.hashes).map(|i| fill.powi(i as i32)).sum();
        Row {
            filters,
            cubf_bits: filters * papers.cubf.bits,
            abf_bits: papers.abf.bits,
            scan: filters as f64 * papers.cubf.bits.div_ceil(64) as f64,
            strings: filters as f64 * each,
            found_strings: of(0),
            found_slices: of(1),
            found_abf: of(2),
        }
    };
    let rows: Vec<Row> = FILTERS.into_iter().enumerate().map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("filters"),
        formula("full_scan_words", 0),
        formula("strings_words_formula", 1),
        simulated("strings_words", 1),
        simulated("slices_words", 2),
        simulated("abf_words", 2),
        formula("cubf_bits", 0),
        formula("abf_bits", 0),
    ]);
    for row in rows {
        table.push([
            row.filters.into(),
            row.scan.into(),
            row.strings.into(),
            row.found_strings.mean.into(),
            row.found_slices.mean.into(),
            row.found_abf.mean.into(),
            row.cubf_bits.into(),
            row.abf_bits.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let last = rows.last().expect("rows");
    let storage = last.abf_bits as f64 / last.cubf_bits as f64;
    vec![
        Claim::paper(
            "The delay for making a routing decision at a node is decreased as well",
            "100 filters: words read as slices, those of strings that are left at the first zero stated",
        )
        .unit("words")
        .stated(last.strings)
        .simulated(last.found_slices.mean, seeds)
        .note(format!(
            "{:.0} times fewer; a full scan, as the paper says of strings, would read {:.0}",
            last.found_strings.mean / last.found_slices.mean,
            last.scan
        ))
        .judged(last.found_slices.mean < last.found_strings.mean),
        Claim::paper(
            "a full scan of the",
            "100 filters as strings: words that a decision reads, those of a full scan stated",
        )
        .unit("words")
        .stated(last.scan)
        .formula(last.strings)
        .simulated(last.found_strings.mean, seeds)
        .note("every filter is asked, but left at its first zero: about two bits each")
        .within(0.05 * last.scan),
        Claim::paper(
            "ABF outperforms CUBF in terms of false positive probability, as shown in Fig. 8, and the delay of each routing decision",
            "100 filters: words read of an ABF over those of a CUBF in slices",
        )
        .unit("times")
        .stated(1.0)
        .simulated(last.found_abf.mean / last.found_slices.mean, seeds)
        .judged(last.found_abf.mean < last.found_slices.mean),
        Claim::paper(
            "the storage cost of ABF is much lower than that of CUBF",
            "much lower: at most half; bits of an entry of 100 filters, ABF over CUBF",
        )
        .unit("times")
        .stated(0.5)
        .formula(storage)
        .note("lower, but by two fifths: an ABF of s filters is s times as long as a traditional filter, a CUBF of s filters s times log2(s/σ)/log2(1/σ)")
        .judged(storage <= 0.5),
        Claim::paper(
            "despite that it incurs a bit higher storage cost",
            "a bit higher: above 1; bits of an entry of 100 filters, ABF over CUBF",
        )
        .unit("times")
        .stated(1.0)
        .formula(storage)
        .note("the paper says both; what is higher is the transmission")
        .above(),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let of = |y: fn(&Row) -> f64| rows.iter().map(|row| (row.filters as f64, y(row))).collect();
    Plot::of([
        Panel::new("What a decision reads", "filters of an entry s", "words of 64 bits")
            .log()
            .line("strings, full scan", 0, of(|row| row.scan))
            .line("strings, to the first zero", 1, of(|row| row.found_strings.mean))
            .line("slices", 2, of(|row| row.found_slices.mean))
            .line("ABF", 3, of(|row| row.found_abf.mean)),
        Panel::new("What an entry takes", "filters of an entry s", "bits")
            .line("CUBF", 2, of(|row| row.cubf_bits as f64))
            .line("ABF", 3, of(|row| row.abf_bits as f64)),
    ])
}
