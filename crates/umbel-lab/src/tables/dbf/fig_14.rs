//! Figure 14: the share of memory that is taken, over the bound on the rate.
//!
//! The paper: N = 13,300. The ratio to a standard filter rises with the bound; it is "always
//! less than 1 when the false match probability is not larger than 5 percent" and "will reach,
//! at most, 1" beyond.
//!
//! Ours: as figure 13.
//!
//! Left open: the figure's points.

use super::super::{formula, points_of};
use super::memory::{self, Row, Sizes, curves};
use super::{count, fig_13, rises};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-14",
    source: "Guo and others, paper 4, figure 14",
    title: "Memory over a standard filter's, by the bound on the rate",
    find,
};

fn find(bench: &Bench<'_>) -> Findings {
    let rows = memory::rows(bench, fig_13::setups());
    let claims = claims(&rows, bench.seeds());
    Findings { table: memory::table(formula("bound", 4), &rows), claims, plot: plot(&rows) }
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let of = |sizes: Sizes| rows.iter().filter(move |row| row.setup.sizes == sizes);
    let small = || rows.iter().filter(|row| row.setup.bound <= 0.05);
    let highest = |ratio: fn(&Row) -> f64| rows.iter().map(ratio).fold(0.0, f64::max);
    vec![
        Claim::paper("the ratio increases as the false match probability increases", "the ratio rises with the bound (distributions)").unit("distributions")
            .stated(5.0)
            .formula(count(Sizes::ALL.map(|sizes| rises(of(sizes).map(Row::ratio)))))
            .within(0.0),
        Claim::paper("it will always be less than 1 when the false match probability is not larger than 5 percent", "the ratio is below one up to a bound of 5 percent (rows)").unit("rows")
            .stated(small().count() as f64)
            .formula(count(small().map(|row| row.ratio() < 1.0)))
            .simulated(count(small().map(|row| row.found_ratio() < 1.0)), seeds)
            .note("maximum Zipf at 5 %: one component is the best choice already, so that the ratio is exactly one")
            .within(0.0),
        Claim::paper("the ratio for each DBF will reach, at most, 1 when the false match probability exceeds 5 percent", "beyond, the ratio is at most one (highest)").unit("ratio")
            .stated(1.0)
            .formula(highest(Row::ratio))
            .simulated(highest(Row::found_ratio), seeds)
            .note("one component is a standard filter, so the best choice never takes more")
            .judged(highest(Row::ratio) <= 1.0 && highest(Row::found_ratio) <= 1.0),
        points_of("figure 14"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel =
        Panel::new("N = 13,300", "bound on the rate", "of a standard filter's bits").log_x();
    Plot::of([curves(panel, rows, Row::ratio, Row::found_ratio)])
}
