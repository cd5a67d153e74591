//! Figure 4: rates of dynamic filters of four lengths as their sets grow.
//!
//! The paper: k = 7, a bound of 0.0098; longer components have the lower rate, whatever n.
//!
//! Ours: the lengths of figure 2, each with the capacity of the bound; sets of up to 5320 keys.
//!
//! Left open: the four lengths and the figure's points.

use umbel::model::dynamic::{Component, false_positive};

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{formula, points_of, setting, simulated};
use super::fig_2::LENGTHS;
use super::{HASHES, capacity_of, claimed, count, dynamic, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-4",
    source: "Guo and others, paper 4, figure 4",
    title: "Rates of dynamic filters of four lengths",
    find,
};

const STEP: u64 = 266;
const STEPS: u64 = 20;

struct Row {
    bits: u64,
    items: u64,
    formula: f64,
    found: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let row = |((bits, items), [found]): ((u64, u64), [Spread; 1])| {
        let component = Component::new(shape(bits, HASHES), capacity_of(bits));
        Row { bits, items, formula: 100.0 * false_positive(component, items), found }
    };
    let rows: Vec<Row> = setups().zip(spreads(&trials)).map(row).collect();
    let claims = vec![
        longer_is_lower(&rows, bench.seeds()),
        close(
            Claim::paper(
                "the probability that all the counters of … in at least one SBF of the DBF are set to a nonzero value can be denoted as",
                "equation 3, components of four lengths",
            ),
            VERY_CLOSE,
            rows.iter().map(|r| (r.formula, r.found)),
            bench.sampling(),
        ),
        points_of("figure 4"),
    ];
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn setups() -> impl Iterator<Item = (u64, u64)> {
    LENGTHS.into_iter().flat_map(|bits| (1..=STEPS).map(move |step| (bits, step * STEP)))
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 1]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let mut rows = Vec::new();
    for bits in LENGTHS {
        let mut filter =
            dynamic::<umbel::StandardFilter>(&keys, shape(bits, HASHES), capacity_of(bits));
        for _ in 0..STEPS {
            filter.insert_digests(&keys.draw_many(STEP as usize));
            rows.push([claimed(&asked, |key| filter.contains_digest(key))]);
        }
    }
    rows
}

fn longer_is_lower(rows: &[Row], seeds: u64) -> Claim {
    let lower = |of: &dyn Fn(&Row, &Row) -> bool| {
        let pairs = rows.iter().flat_map(|row| {
            let longer = |other: &&Row| other.items == row.items && other.bits == 2 * row.bits;
            rows.iter().filter(longer).map(move |longer| (row, longer))
        });
        pairs.map(|(row, longer)| of(row, longer)).collect::<Vec<bool>>()
    };
    let formula = lower(&|row, longer| longer.formula < row.formula);
    let found = lower(&|row, longer| {
        let error = row.found.error_of_difference(&longer.found);
        longer.found.mean < row.found.mean + 3.0 * error
    });
    Claim::paper(
        "is always lower than the curve of",
        "twice as long components always have the lower rate (pairs of rows)",
    )
    .unit("pairs of rows")
    .stated(formula.len() as f64)
    .formula(count(formula))
    .simulated(count(found), seeds)
    .note("simulated: not higher by three standard errors")
    .within(0.0)
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("bits"),
        setting("n"),
        formula("formula_percent", 4),
        simulated("simulated_percent", 4),
        simulated("simulated_low_percent", 4),
        simulated("simulated_high_percent", 4),
    ]);
    for row in rows {
        table.push([
            row.bits.into(),
            row.items.into(),
            row.formula.into(),
            row.found.mean.into(),
            row.found.low.into(),
            row.found.high.into(),
        ]);
    }
    table
}

fn plot(rows: &[Row]) -> Plot {
    let mut panel = Panel::new("k = 7, bound 0.0098 a component", "keys n", "false positive, %");
    for (colour, bits) in LENGTHS.into_iter().enumerate() {
        let of = || rows.iter().filter(move |row| row.bits == bits);
        panel = panel
            .line(
                &format!("m = {bits}"),
                colour,
                of().map(|r| (r.items as f64, r.formula)).collect(),
            )
            .dots(
                &format!("m = {bits}, simulated"),
                colour,
                of().map(|r| (r.items as f64, r.found.mean)).collect(),
            );
    }
    Plot::of([panel])
}
