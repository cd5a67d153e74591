//! Theorems 1 to 3: unions and intersections of standard filters.
//!
//! The paper: `BF(A ∪ B) = BF(A) ∪ BF(B)` (theorem 1), whose rate is not below that of either
//! (theorem 2); `BF(A ∩ B) = BF(A) ∩ BF(B)` with probability
//! `(1 - 1/m)^(k²·|A - A∩B|·|B - A∩B|)` (theorem 3).
//!
//! Ours: sets that share 20 keys and have 1 to 10 of their own, m = 1280, k = 7; how often the
//! AND of the filters is the filter of the shared keys.
//!
//! The column `mended` takes from theorem 3 what it counts too much: a bit that keys of both
//! sides set by chance is no harm where a shared key sets it too.
//!
//! Left open: nothing; the theorems are about formulas, and these are held against filters.

use umbel::model::standard::{Apart, fill, intersection_exact};

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{formula, setting, simulated};
use super::{BITS, HASHES, claimed, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-theorems",
    source: "Guo and others, paper 4, theorems 1 to 3 (section 2.2)",
    title: "Unions and intersections of standard filters",
    find,
};

/// Keys that only A has and keys that only B has.
const APART: [(u64, u64); 7] = [(1, 1), (1, 2), (2, 2), (2, 4), (3, 3), (5, 5), (10, 10)];
const SHARED: u64 = 20;
/// Pairs of sets in a trial.
const PAIRS: u64 = 500;

struct Row {
    apart: (u64, u64),
    formula: f64,
    /// Our correction: a bit that both sides set by chance does no harm if a shared key sets it
    /// too.
    mended: f64,
    /// Percent of intersections that are exact; unions that are; rates in order.
    found: [Spread; 3],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.times(PAIRS)));
    let row = |((a, b), found): ((u64, u64), [Spread; 3])| Row {
        apart: (a, b),
        formula: 100.0 * theorem_3(a, b),
        mended: 100.0 * theorem_3(a, b).powf(1.0 - fill(shape(BITS, HASHES), SHARED)),
        found,
    };
    let rows: Vec<Row> = APART.into_iter().zip(spreads(&trials)).map(row).collect();
    let min = |which: usize| rows.iter().map(|row| row.found[which].low).fold(100.0, f64::min);
    let sampling = Sampling { asked: bench.times(PAIRS) as usize, ..bench.sampling() };
    let claims = vec![
        Claim::paper(
            "If … use the same m and hash functions, then",
            "theorem 1: the OR of two filters is the filter of the union (worst row)",
        )
        .stated(100.0)
        .simulated(min(1), bench.seeds())
        .within(0.0),
        Claim::paper(
            "is not less than that of both",
            "theorem 2: the rate of a union is not below that of either (worst row)",
        )
        .stated(100.0)
        .simulated(min(2), bench.seeds())
        .within(0.0),
        close(
            Claim::paper(
                "with probability",
                "theorem 3: how often the AND of two filters is the filter of the intersection",
            ),
            VERY_CLOSE,
            rows.iter().map(|row| (row.formula, row.found[0])),
            sampling,
        ),
        close(
            Claim::ours("theorem 3 without the bits that shared keys set anyway"),
            VERY_CLOSE,
            rows.iter().map(|row| (row.mended, row.found[0])),
            sampling,
        ),
    ];
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn theorem_3(only_a: u64, only_b: u64) -> f64 {
    intersection_exact(shape(BITS, HASHES), Apart { only_a, only_b })
}

fn trial(mut random: Random, pairs: u64) -> Vec<[f64; 3]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(200);
    let each = |(only_a, only_b): (u64, u64)| {
        let mut exact = [0_u64; 3];
        for _ in 0..pairs {
            let mut of = |items: u64| {
                let mut filter = keys.standard(shape(BITS, HASHES));
                filter.insert_digests(&keys.draw_many(items as usize));
                filter
            };
            let (shared, a, b) = (of(SHARED), of(only_a), of(only_b));
            let (mut a_and, mut b_and) = (shared.clone(), shared.clone());
            a_and.union_with(&a).expect("one scheme");
            b_and.union_with(&b).expect("one scheme");
            let mut both = a_and.clone();
            both.intersect_with(&b_and).expect("one scheme");
            exact[0] += u64::from(both.bits() == shared.bits());
            let mut union = a_and.clone();
            union.union_with(&b_and).expect("one scheme");
            let mut in_turn = b.clone();
            in_turn.union_with(&a).expect("one scheme");
            in_turn.union_with(&shared).expect("one scheme");
            exact[1] += u64::from(union.bits() == in_turn.bits());
            let rate =
                |filter: &umbel::StandardFilter| claimed(&asked, |key| filter.contains_digest(key));
            exact[2] += u64::from(rate(&union) >= rate(&a_and).max(rate(&b_and)));
        }
        exact.map(|count| 100.0 * count as f64 / pairs as f64)
    };
    APART.into_iter().map(each).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("only_a"),
        setting("only_b"),
        formula("exact_formula_percent", 3),
        formula("exact_mended_percent", 3),
        simulated("exact_simulated_percent", 3),
        simulated("exact_low_percent", 3),
        simulated("exact_high_percent", 3),
    ]);
    for row in rows {
        table.push([
            row.apart.0.into(),
            row.apart.1.into(),
            row.formula.into(),
            row.mended.into(),
            row.found[0].mean.into(),
            row.found[0].low.into(),
            row.found[0].high.into(),
        ]);
    }
    table
}

fn plot(rows: &[Row]) -> Plot {
    let x = |row: &Row| (row.apart.0 * row.apart.1) as f64;
    let panel = Panel::new("m = 1280, k = 7", "|A - A∩B| · |B - A∩B|", "exact intersections, %")
        .line("theorem 3", 0, rows.iter().map(|row| (x(row), row.formula)).collect())
        .dashed("mended", 2, rows.iter().map(|row| (x(row), row.mended)).collect())
        .dots("simulated", 0, rows.iter().map(|row| (x(row), row.found[0].mean)).collect());
    Plot::of([panel])
}
