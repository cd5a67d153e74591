//! Table 1: keys that remain after everything was deleted.
//!
//! The paper: sets of i·c names of files for i from 1 to 10, m = 1280, k = 7, c = 133; r is
//! the share of keys that algorithm 3 keeps, because several components claim them.
//! "Experimental upper bound": keys with several addresses before the deletion. Means of 100
//! rounds. `f2(n) = 1 - (1 - f(c))^(s-1)` (equation 10) is the estimated upper bound.
//!
//! Ours: the same with generated names of files, algorithm 3 with its merging, and beside it
//! removal through the remembered component, which leaves nothing (r = 0).
//!
//! Left open: the numbers of the table are not in the text we have.

use super::super::points_of;
use super::deletion::{self, Row};
use super::{count, rises};
use crate::Experiment;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Claim, Findings};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-table-1",
    source: "Guo and others, paper 4, table 1 and equations 9 and 10",
    title: "Keys that remain after everything was deleted",
    find,
};

fn find(bench: &Bench<'_>) -> Findings {
    let rows = deletion::rows(bench);
    let claims = claims(&rows, bench.seeds());
    Findings { table: deletion::table(&rows), claims, plot: plot(&rows) }
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let several = || rows.iter().filter(|row| row.capacities > 1);
    let above = |row: &Row| row.twice.mean - row.bound;
    let worst = rows.iter().map(|row| row.left_by_catalogue.high).fold(0.0, f64::max);
    vec![
        Claim::paper("Our experimental results show that the real number is less than the estimated upper bound", "equation 10 bounds the keys with several addresses (rows)").unit("rows")
            .stated(several().count() as f64)
            .simulated(count(several().map(|row| row.twice.mean < row.bound)), seeds)
            .note(format!(
                "rows with s > 1. For whole multiples of c the bound is the expected value itself \
                 (f1 = f2), so that it is passed about as often as not, and {:.0} times by more than \
                 three standard errors; largest excess {:.1} % of the bound",
                count(several().map(|row| above(row) > 3.0 * row.twice.standard_error())),
                several().map(|row| 100.0 * above(row) / row.bound).fold(0.0, f64::max)
            ))
            .within(0.0),
        Claim::paper("the real value of r is less than the experimental upper bound", "fewer keys remain than have several addresses (rows with s > 1)").unit("rows")
            .stated(several().count() as f64)
            .simulated(count(several().map(|row| row.left.mean < row.twice.mean)), seeds)
            .note("as other keys go, components stop claiming by chance")
            .within(0.0),
        Claim::paper("The curve for the real value r increases smoothly", "r rises with the set").unit("")
            .stated(1.0)
            .simulated(count([rises(rows.iter().map(|row| row.left.mean))]), seeds)
            .within(0.0),
        Claim::ours("removal through the remembered component leaves no key (worst seed)")
            .stated(0.0)
            .simulated(worst, seeds)
            .within(0.0),
        points_of("table 1"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points = |y: fn(&Row) -> f64| rows.iter().map(|r| (r.capacities as f64, y(r))).collect();
    let panel = Panel::new("after deleting every key", "n/c", "keys that remain, %")
        .line("equation 10", 0, points(|row| row.bound))
        .dots("claimed by several before", 0, points(|row| row.twice.mean))
        .dots("left by algorithm 3", 1, points(|row| row.left.mean))
        .dashed("left by the catalogue", 2, points(|row| row.left_by_catalogue.mean));
    Plot::of([panel])
}
