//! Figure 12: the share of memory that is saved, for sets of different largest size.
//!
//! The paper: maximum Zipf, random Zipf, normal and minimum Zipf save "about 5, 19, 20 and 35
//! percent"; the largest size "has a trivial impact on the ratio".
//!
//! Ours: as figure 11. The stated savings are held against N = 1330.
//!
//! Left open: the figure's points.

use super::super::{points_of, setting};
use super::memory::{self, Row, Sizes, curves};
use super::{MAX, fig_11};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-12",
    source: "Guo and others, paper 4, figure 12",
    title: "Memory of a dynamic filter over a standard one's",
    find,
};

/// What the text says is saved, percent.
const SAVED: [(Sizes, f64); 4] = [
    (Sizes::ZipfMax, 5.0),
    (Sizes::ZipfRandom, 19.0),
    (Sizes::Normal, 20.0),
    (Sizes::ZipfMin, 35.0),
];

fn find(bench: &Bench<'_>) -> Findings {
    let rows = memory::rows(bench, fig_11::setups());
    let claims = claims(&rows, bench.seeds());
    Findings { table: memory::table(setting("max_items"), &rows), claims, plot: plot(&rows) }
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let of = |sizes: Sizes| rows.iter().filter(move |row| row.setup.sizes == sizes);
    let saves = |(sizes, stated): (Sizes, f64)| {
        let row = of(sizes).find(|row| row.setup.x == MAX as f64).expect("a row of 1330 keys");
        Claim::paper("DBFs with maximum Zipf distribution, random Zipf distribution, normal distribution, and minimum Zipf distribution can save about 5, 19, 20, and 35 percent of the memory used by SBF", format!("{}: about {stated} % of the memory are saved", sizes.name()))
            .stated(stated)
            .formula(100.0 * (1.0 - row.ratio()))
            .simulated(100.0 * (1.0 - row.found_ratio()), seeds)
            .note("about: within 1.5 points")
            .within(1.5)
    };
    let mut claims: Vec<Claim> = SAVED.map(saves).to_vec();
    let moved = |sizes: Sizes, ratio: fn(&Row) -> f64| {
        let spread = Spread::of(of(sizes).map(ratio));
        100.0 * (spread.high - spread.low)
    };
    let max = |ratio: fn(&Row) -> f64| {
        Sizes::ALL.map(|sizes| moved(sizes, ratio)).into_iter().fold(0.0, f64::max)
    };
    claims.push(
        Claim::paper("the set cardinality has a trivial impact on the ratio of the memory size of DBF to that", "the largest size has a trivial impact on the ratio (largest move, points)").unit("points")
            .stated(0.0)
            .formula(max(Row::ratio))
            .simulated(max(Row::found_ratio), seeds)
            .note("trivial: below three points")
            .within(3.0),
    );
    claims.push(points_of("figure 12"));
    claims
}

fn plot(rows: &[Row]) -> Plot {
    let panel = Panel::new("ε = 0.0098", "largest size N", "of a standard filter's bits");
    let mut panel = curves(panel, rows, Row::ratio, Row::found_ratio);
    let stated = SAVED.map(|(_, saved)| (MAX as f64, 1.0 - saved / 100.0));
    panel = panel.crosses("the paper's savings", 6, stated.to_vec());
    Plot::of([panel])
}
