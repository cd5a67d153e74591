//! Figure 1: the rates of a standard and a dynamic filter as their set grows.
//!
//! The paper: m = 1280, k = 7, c = 133. Equation 1, `(1 - e^(-kn/m))^k`, against equation 3,
//! `1 - (1 - f(c))^floor(n/c) · (1 - f(n mod c))`. At n = 10c "about 100 times larger than
//! f(c)" for the standard filter, "about 10 times" for the dynamic one.
//!
//! Ours: the same filters, filled with random keys, and random keys asked.
//!
//! Left open: the figure's points, and how far its axis goes; we go to 20 capacities.

use umbel::model::{dynamic as model, standard};

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{formula, points_of, setting, simulated};
use super::{BITS, CAPACITY, HASHES, claimed, count, dynamic, full_percent, papers, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-1",
    source: "Guo and others, paper 4, figure 1 and equations 1 and 3",
    title: "Rates of a standard and a dynamic filter as their set grows",
    find,
};

/// Half capacities.
const STEPS: u64 = 40;

struct Row {
    items: u64,
    standard: f64,
    dynamic: f64,
    found: [Spread; 2],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let found = spreads(&trials);
    let row = |(step, found): (u64, &[Spread; 2])| {
        let items = items(step);
        Row {
            items,
            standard: 100.0 * standard::false_positive(shape(BITS, HASHES), items),
            dynamic: 100.0 * model::false_positive(papers(), items),
            found: *found,
        }
    };
    let rows: Vec<Row> = (1..).zip(&found).map(row).collect();
    let claims = claims(&rows, bench.sampling());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn items(step: u64) -> u64 {
    step * CAPACITY / 2
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 2]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let mut standard = keys.standard(shape(BITS, HASHES));
    let mut growing = dynamic::<umbel::StandardFilter>(&keys, shape(BITS, HASHES), CAPACITY);
    let mut rows = Vec::new();
    for step in 1..=STEPS {
        let more = keys.draw_many((items(step) - items(step - 1)) as usize);
        standard.insert_digests(&more);
        growing.insert_digests(&more);
        rows.push([
            claimed(&asked, |key| standard.contains_digest(key)),
            claimed(&asked, |key| growing.contains_digest(key)),
        ]);
    }
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("n"),
        formula("n_over_c", 1),
        formula("standard_formula_percent", 4),
        simulated("standard_simulated_percent", 4),
        formula("dynamic_formula_percent", 4),
        simulated("dynamic_simulated_percent", 4),
        simulated("dynamic_low_percent", 4),
        simulated("dynamic_high_percent", 4),
    ]);
    for row in rows {
        table.push([
            row.items.into(),
            (row.items as f64 / CAPACITY as f64).into(),
            row.standard.into(),
            row.found[0].mean.into(),
            row.dynamic.into(),
            row.found[1].mean.into(),
            row.found[1].low.into(),
            row.found[1].high.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let ten = rows.iter().find(|row| row.items == 10 * CAPACITY).expect("a row at ten capacities");
    let times = |which: usize| ten.found[which].mean / full_percent();
    let larger = || rows.iter().filter(|row| row.items > CAPACITY);
    let last = rows.last().expect("there are rows");
    vec![
        Claim::paper("when n reaches 10 … becomes about 100 times larger than", "n = 10c: the standard filter's rate is about 100 times f(c) (times)").unit("times")
            .stated(100.0)
            .formula(ten.standard / full_percent())
            .simulated(times(0), seeds)
            .within(10.0),
        Claim::paper("is about 10 times larger than", "n = 10c: the dynamic filter's rate is about 10 times f(c) (times)").unit("times")
            .stated(10.0)
            .formula(ten.dynamic / full_percent())
            .simulated(times(1), seeds)
            .note("9.57 by formula: claims of several components overlap")
            .within(1.0),
        Claim::paper("the false positive probability of DBF equals that of SBF", "for n <= c both filters have the same rate (largest difference)").unit("points")
            .stated(0.0)
            .formula(largest(rows, |row| row.standard - row.dynamic))
            .simulated(largest(rows, |row| row.found[0].mean - row.found[1].mean), seeds)
            .within(1e-9),
        Claim::paper("the false positive probability of the DBF increases gradually with n, while that of the SBF increases quickly to a high value", "for n > c the dynamic filter's rate is the lower one (rows)").unit("rows")
            .stated(count(larger().map(|_| true)))
            .formula(count(larger().map(|row| row.dynamic < row.standard)))
            .simulated(count(larger().map(|row| row.found[1].mean < row.found[0].mean)), seeds)
            .within(0.0),
        Claim::paper("and then, slowly increases to almost one", "the standard filter's rate rises to almost one (at n = 20c)")
            .stated(100.0)
            .formula(last.standard)
            .simulated(last.found[0].mean, seeds)
            .within(1.0),
        close(Claim::paper("the probability that all the counters of … in at least one SBF of the DBF are set to a nonzero value can be denoted as", "equation 3"), VERY_CLOSE, rows.iter().map(|row| (row.dynamic, row.found[1])), sampling),
        points_of("figure 1"),
    ]
}

fn largest(rows: &[Row], of: impl Fn(&Row) -> f64) -> f64 {
    let up_to_capacity = rows.iter().filter(|row| row.items <= CAPACITY);
    up_to_capacity.map(|row| of(row).abs()).fold(0.0, f64::max)
}

fn plot(rows: &[Row]) -> Plot {
    let points = |y: fn(&Row) -> f64| rows.iter().map(|row| (row.items as f64, y(row))).collect();
    let panel = Panel::new("m = 1280, k = 7, c = 133", "keys n", "false positive, %")
        .line("standard, equation 1", 1, points(|row| row.standard))
        .dots("standard, simulated", 1, points(|row| row.found[0].mean))
        .line("dynamic, equation 3", 0, points(|row| row.dynamic))
        .dots("dynamic, simulated", 0, points(|row| row.found[1].mean));
    Plot::of([panel.clone(), panel.log()])
}
