//! Figure 13: least expected memory over the bound on the rate.
//!
//! The paper: N = 13,300. Maximum Zipf takes the most and minimum Zipf the least (its text
//! says "Fig. 11" here and means this one); all less than a standard filter whatever the
//! bound; memory falls as the bound rises.
//!
//! Ours: bounds from 0.0001 to 0.2, the best number of components for each, real filters.
//!
//! Left open: the figure's range and points.

use super::super::{formula, points_of};
use super::memory::{self, Row, Setup, Sizes, curves};
use super::{MAX, count, rises};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-13",
    source: "Guo and others, paper 4, figure 13",
    title: "Least expected memory over the bound on the rate",
    find,
};

const BOUNDS: [f64; 8] = [0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];

/// Every distribution at every bound, for figures 13 and 14.
pub(super) fn setups() -> Vec<Setup> {
    let each = |sizes: Sizes| {
        let distribution = sizes.papers(10 * MAX);
        BOUNDS.map(|bound| Setup::best(sizes, bound, bound, distribution.clone()))
    };
    Sizes::ALL.into_iter().flat_map(each).collect()
}

fn find(bench: &Bench<'_>) -> Findings {
    let rows = memory::rows(bench, setups());
    let claims = claims(&rows, bench.seeds());
    Findings { table: memory::table(formula("bound", 4), &rows), claims, plot: plot(&rows) }
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let of = |sizes: Sizes| rows.iter().filter(move |row| row.setup.sizes == sizes);
    let extreme = |row: &Row| {
        let at =
            |sizes: Sizes| of(sizes).find(|r| r.setup.x == row.setup.x).map_or(f64::NAN, Row::bits);
        (at(Sizes::ZipfMin)..=at(Sizes::ZipfMax)).contains(&row.bits())
    };
    let falls = |sizes: Sizes| rises(of(sizes).map(|row| -row.bits()));
    let found = |sizes: Sizes| rises(of(sizes).map(|row| -row.found.mean));
    vec![
        Claim::paper("DBFs with maximum and minimum Zipf distributions consume the most and least memory among the five DBFs", "minimum Zipf takes the least and maximum Zipf the most (rows in between)").unit("rows")
            .stated(rows.len() as f64)
            .formula(count(rows.iter().map(extreme)))
            .within(0.0),
        Claim::paper("the memory size decreases as the false match probability increases", "memory falls as the bound rises (distributions)").unit("distributions")
            .stated(5.0)
            .formula(count(Sizes::ALL.map(falls)))
            .simulated(count(Sizes::ALL.map(found)), seeds)
            .within(0.0),
        super::fig_10::kept(rows, seeds),
        points_of("figure 13"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = Panel::new("N = 13,300", "bound on the rate", "bits, on average").log_x();
    let panel = curves(panel, rows, Row::bits, |row| row.found.mean);
    let standard = rows.iter().filter(|row| row.setup.sizes == Sizes::Uniform);
    let standard = standard.map(|row| (row.setup.x, row.setup.plan.standard_bits as f64)).collect();
    Plot::of([panel.dashed("standard filter", 6, standard)])
}
