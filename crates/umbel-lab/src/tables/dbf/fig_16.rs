//! Figure 16: the impact of the standard deviation.
//!
//! The paper: normal distribution, N = 1330, a bound of 0.0098. The larger the deviation, the
//! more memory; "however, they always outperform SBFs".
//!
//! Ours: deviations from 5 to 400 round 665, the best number of components for each.
//!
//! Left open: the figure's range and points.

use super::super::{points_of, setting};
use super::memory::{self, Row, Setup, Sizes, ZIPF, curves};
use super::{BOUND, MAX, count, rises};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-16",
    source: "Guo and others, paper 4, figure 16",
    title: "The impact of the standard deviation on memory",
    find,
};

const DEVIATIONS: [f64; 10] = [5.0, 10.0, 20.0, 40.0, 70.0, 100.0, 150.0, 200.0, 300.0, 400.0];

fn find(bench: &Bench<'_>) -> Findings {
    let setup = |deviation| {
        Setup::best(Sizes::Normal, deviation, BOUND, Sizes::Normal.of(MAX, ZIPF, deviation))
    };
    let rows = memory::rows(bench, DEVIATIONS.map(setup).to_vec());
    let claims = claims(&rows, bench.seeds());
    Findings { table: memory::table(setting("deviation"), &rows), claims, plot: plot(&rows) }
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    vec![
        Claim::paper(
            "DBFs with normal distribution use more memory as the value of … increases",
            "memory rises with the deviation",
        )
        .unit("")
        .stated(1.0)
        .formula(count([rises(rows.iter().map(Row::bits))]))
        .within(0.0),
        Claim::paper(
            "however, they always outperform SBFs",
            "always below a standard filter (rows)",
        )
        .unit("rows")
        .stated(rows.len() as f64)
        .formula(count(rows.iter().map(|row| row.ratio() < 1.0)))
        .simulated(count(rows.iter().map(|row| row.found_ratio() < 1.0)), seeds)
        .within(0.0),
        super::fig_10::kept(rows, seeds),
        points_of("figure 16"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = Panel::new(
        "N = 1330, mean 665, ε = 0.0098",
        "standard deviation",
        "of a standard filter's bits",
    );
    Plot::of([curves(panel, rows, Row::ratio, Row::found_ratio)])
}
