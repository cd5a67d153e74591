//! One module for each table or figure of a paper.
//!
//! Each opens with the paper's claim, our parameters and what the paper leaves open. All
//! numbers are percent unless a name says otherwise. Papers 1 (chapter) and 3 (conference)
//! by Zhu and Jiang describe the same experiments; where both print a number, it is the same.

pub(crate) mod dbf;
pub(crate) mod ro;
pub(crate) mod zhu_assumptions;
pub(crate) mod zhu_fig_10;
pub(crate) mod zhu_fig_2;
pub(crate) mod zhu_fig_6;
pub(crate) mod zhu_fig_7;
pub(crate) mod zhu_fig_8;
pub(crate) mod zhu_fig_9;
pub(crate) mod zhu_table_1;
pub(crate) mod zhu_table_2;

use umbel::Shape;
use umbel::model::stale::{Dirty, Replica, Weights};
use umbel::model::{any_of, standard};

use crate::report::{Claim, Column, Origin};
use crate::spread::Spread;

/// Bits of all filters of papers 1 and 3 that are not drawn from formulas alone.
const BITS: u64 = 1200;

/// Items in filters of which the papers say no more than their bits per item.
const ITEMS: u64 = 10_000;

/// Bits per item, and the hashes next to `(m/n) ln 2`, of figures 6 and 7.
const OPTIMAL: [(u64, u32); 3] = [(8, 6), (12, 8), (16, 11)];

const fn setting(name: &'static str) -> Column {
    Column::new(Origin::Setting, name, 0)
}

const fn paper(name: &'static str, decimals: usize) -> Column {
    Column::new(Origin::Paper, name, decimals)
}

const fn formula(name: &'static str, decimals: usize) -> Column {
    Column::new(Origin::Formula, name, decimals)
}

const fn simulated(name: &'static str, decimals: usize) -> Column {
    Column::new(Origin::Simulated, name, decimals)
}

/// The closed forms of a replica, for shares of dirty bits that were measured: chance may
/// make them a little larger than the expected fill allows, which is no reason to stop.
fn replica(shape: Shape, items: u64, dirty: Dirty) -> Replica {
    let ones = dirty.ones.min(standard::fill(shape, items));
    let zeros = dirty.zeros.min(standard::fill(shape, items).mul_add(-1.0, 1.0));
    Replica::new(shape, items, Dirty { ones, zeros }).expect("shares are within the fill")
}

/// The host rate of equations 14 to 16 without treating f+ and f- of one replica as
/// independent: they exclude each other, as section 3.2 itself says before equation 13, so
/// `1 - (1 - f) (1 - f+ - f-)^(γ-1)`.
fn exclusive_host(shape: Shape, items: u64, stale: &Replica, hosts: u64) -> f64 {
    let own = standard::false_positive(shape, items);
    let replicas = any_of(stale.overall(Weights::default()), hosts as f64 - 1.0);
    1.0 - (1.0 - own) * (1.0 - replicas)
}

/// The points of a figure, which the text does not give.
fn points_of(figure: &str) -> Claim {
    Claim::about(format!("the points drawn in {figure}"))
        .note("the text gives none of their values")
        .unverifiable()
}

/// "All the analytical results have been very closely matched by their real (experimental)
/// counterparts": true here if every closed form lies within the spread of the seeds.
fn matched(what: &str, rows: impl Iterator<Item = (f64, Spread)>, seeds: u64) -> Claim {
    let rows: Vec<(f64, Spread)> = rows.collect();
    let (inside, outside): (Vec<_>, Vec<_>) =
        rows.iter().partition(|(formula, spread)| spread.contains(*formula));
    let apart = rows.iter().map(|(formula, spread)| (formula - spread.mean).abs());
    let worst = apart.fold(0.0, f64::max);
    Claim::about(format!(
        "{what}: the analytical results are very closely matched by the experimental ones \
         (rows whose closed form lies within the spread of the seeds)"
    ))
    .stated(rows.len() as f64)
    .simulated(inside.len() as f64, seeds)
    .note(format!(
        "closed form and mean of the seeds are at most {worst:.2} points apart{}",
        range_of(&outside)
    ))
    .within(0.0)
}

/// Which rows are outside: by their closed forms, percent.
fn range_of(rows: &[&(f64, Spread)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let formulas = Spread::of(rows.iter().map(|(formula, _)| *formula));
    format!("; rows outside have closed forms from {:.5} to {:.5}", formulas.low, formulas.high)
}

/// Papers 1 and 3 define a false negative as a replica that denies an element "while that
/// element actually exists in its host"; theorem 3 then gives f-.
fn definition(where_: &str, disagreement_percent: f64, miss: (f64, Spread), seeds: u64) -> Claim {
    let (formula, found) = miss;
    Claim::about(format!(
        "{where_}: f- of theorem 3 is how often a replica denies an element that exists in its \
         host (stated: f-; formula, simulated: members denied)"
    ))
    .stated(disagreement_percent)
    .formula(formula)
    .simulated(found.mean, seeds)
    .note(
        "f- is the chance that home and replica differ on a random key; members that were \
         added since the publication are denied nearly always",
    )
    .within(0.5 * disagreement_percent)
}
