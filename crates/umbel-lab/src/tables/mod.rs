//! One module per table or figure of a paper.
//!
//! Each header starts with the paper's claim, our parameters and what the paper leaves open. All
//! numbers are percentages unless a name says otherwise. Papers 1 (chapter) and 3 (conference) by
//! Zhu and Jiang describe the same experiments; where both print a number, it is the same.

mod closeness;
pub(crate) mod dbf;
pub(crate) mod ro;
pub(crate) mod sahni;
pub(crate) mod zhu_assumptions;
pub(crate) mod zhu_fig_10;
pub(crate) mod zhu_fig_2;
pub(crate) mod zhu_fig_6;
pub(crate) mod zhu_fig_7;
pub(crate) mod zhu_fig_8;
pub(crate) mod zhu_fig_9;
pub(crate) mod zhu_rates;
pub(crate) mod zhu_table_1;
pub(crate) mod zhu_table_2;
pub(crate) mod zhu_thresholds;
pub(crate) mod zhu_triggers;

use umbel::Shape;
use umbel::model::stale::{Dirty, Replica, Weights};
use umbel::model::{any_of, standard};

use crate::report::{Claim, Column, Origin};
use crate::spread::Spread;

/// Bits of all filters of papers 1 and 3 that are not drawn from formulas alone.
const BITS: u64 = 1200;

/// Items in filters for which the papers give only the bits per item.
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

/// The closed forms of a replica, for measured shares of dirty bits. By chance these may be a
/// little larger than the expected fill allows; they are then reduced to it.
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

/// A claim about the points of a figure, which the text does not give.
fn points_of(figure: &str) -> Claim {
    Claim::paper("", format!("the points of {figure}"))
        .finding(POINTS)
        .note("the text gives none of their values, and the picture is not part of it")
        .unverifiable()
}

/// What the claims about bounds of papers 4 and 5 show together.
const ROUNDING: &str =
    "designs of papers 4 and 5 pass their bound, because m and k are each rounded on their own";

/// What [`points_of`] all figures shows together.
pub(crate) const POINTS: &str = "the points of figures of which only the text is known";

/// Quote about all figures and tables of papers 1 and 3.
const MATCHED: &str = "All the analytical results have been very closely matched by their real \
                       (experimental) counterparts consistently";

/// What the printed columns of tables 1 and 2 show together.
const PRINTED_APART: &str = "Estimated and Experimental of tables 1 and 2 are up to 42 % apart";

/// The definition of a false negative, to which theorem 3 then gives f-.
const FALSE_NEGATIVE: &str = "A false negative occurs when a BF replica answers \"no\" to the \
                              membership query for an element while that element actually exists \
                              in its host";
const NO_MISS_RATE: &str = "f- is not the share of existing elements that a replica denies";

fn definition(where_: &str, disagreement_percent: f64, miss: (f64, Spread), seeds: u64) -> Claim {
    let (formula, found) = miss;
    Claim::paper(
        FALSE_NEGATIVE,
        format!(
            "{where_}: f- of theorem 3 is how often that happens (stated: f-; formula, simulated: \
             members denied)"
        ),
    )
    .finding(NO_MISS_RATE)
    .stated(disagreement_percent)
    .formula(formula)
    .simulated(found.mean, seeds)
    .note(
        "f- is the chance that home and replica differ on a random key; members that were \
         added since the publication are denied nearly always",
    )
    .within(0.5 * disagreement_percent)
}
