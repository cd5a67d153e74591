//! Figure 5: the share of keys that remain, beside its bounds and the filter's rate.
//!
//! The paper: the real r is below the experimental upper bound, the estimated upper bound `f2`
//! and the dynamic filter's false positive rate; "all four curves increase", r smoothly and at
//! a low level.
//!
//! Ours: as table 1, with generated names of files; the rate with random keys.
//!
//! Left open: the figure's points.

use super::super::closeness::{VERY_CLOSE, close};
use super::super::points_of;
use super::deletion::{self, Row};
use super::{count, rises};
use crate::Experiment;
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-5",
    source: "Guo and others, paper 4, figure 5",
    title: "Keys that remain, their bounds, and the rate of the filter",
    find,
};

fn find(bench: &Bench<'_>) -> Findings {
    let rows = deletion::rows(bench);
    let claims = claims(&rows, deletion::sampling(bench));
    Findings { table: deletion::table(&rows), claims, plot: plot(&rows) }
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let several = || rows.iter().filter(|row| row.capacities > 1);
    let below = |name: &str, other: fn(&Row) -> f64| {
        Claim::paper("the real value of r is less than the experimental upper bound, the estimated upper bound, and the false positive probability of a DBF", format!("the real r is below {name} (rows with s > 1)")).unit("rows")
            .stated(several().count() as f64)
            .simulated(count(several().map(|row| row.left.mean < other(row))), seeds)
            .within(0.0)
    };
    let curves: [fn(&Row) -> f64; 4] =
        [|row| row.bound, |row| row.twice.mean, |row| row.left.mean, |row| row.found_rate.mean];
    let rising = curves.map(|curve| rises(rows.iter().map(curve)));
    let last = rows.last().expect("there are rows");
    vec![
        below("the experimental upper bound", |row| row.twice.mean),
        below("the estimated upper bound", |row| row.bound),
        below("the rate of the dynamic filter", |row| row.found_rate.mean),
        Claim::paper("All four curves increase as the size of the dynamic set increases", "all four curves rise (curves)").unit("curves")
            .stated(4.0)
            .simulated(count(rising), seeds)
            .within(0.0),
        Claim::paper("The curve for the real value r increases smoothly and maintains a low level when the real size of the set is less than 10 times that of the estimated threshold", "r stays at a low level up to n = 10c (below the filter's rate there)")
            .stated(last.rate)
            .simulated(last.left.mean, seeds)
            .judged(last.left.mean < last.rate),
        close(Claim::paper("are very similar to the experimental results", "the share of keys with several addresses, by equations 9 and 10"), VERY_CLOSE, rows.iter().map(|row| (row.expected, row.twice)), sampling),
        points_of("figure 5"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points = |y: fn(&Row) -> f64| rows.iter().map(|r| (r.capacities as f64, y(r))).collect();
    let panel = Panel::new("m = 1280, k = 7, c = 133", "n/c", "%")
        .line("rate, equation 3", 3, points(|row| row.rate))
        .dots("rate, simulated", 3, points(|row| row.found_rate.mean))
        .line("bound, equation 10", 0, points(|row| row.bound))
        .dots("claimed by several", 0, points(|row| row.twice.mean))
        .dots("real r", 1, points(|row| row.left.mean))
        .bars(
            "real r, seeds",
            1,
            rows.iter().map(|r| (r.capacities as f64, r.left.low, r.left.high)).collect(),
        );
    Plot::of([panel])
}
