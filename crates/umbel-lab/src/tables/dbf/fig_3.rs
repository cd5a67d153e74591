//! Figure 3: unions. How much lower the rate is when dynamic filters are joined.
//!
//! The paper: m = 1280, k = 7, c = 133. The union of two dynamic filters keeps all components
//! of both (equation 4); that of two standard filters is their OR. Theorem 4: the union's rate
//! is larger than each part's. Theorem 5: for sets below c the dynamic union has the lower
//! rate; by figure 3 "even though the size of A and B exceeds c".
//!
//! Ours: sets of 33 to 665 keys, joined for real.
//!
//! Left open: the points of the surface, and its range.

use umbel::model::dynamic::{false_positive, union_false_positive};
use umbel::model::standard;

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{formula, points_of, setting, simulated};
use super::{BITS, CAPACITY, HASHES, claimed, count, grown, papers, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-3",
    source: "Guo and others, paper 4, figure 3, theorems 4 and 5, equation 4",
    title: "Rates of unions of standard and of dynamic filters",
    find,
};

const SIZES: [u64; 7] = [33, 66, 132, 200, 266, 399, 665];

struct Row {
    a: u64,
    b: u64,
    standard: f64,
    dynamic: f64,
    /// Standard, dynamic, their difference.
    found: [Spread; 3],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let row = |((a, b), found): ((u64, u64), [Spread; 3])| Row {
        a,
        b,
        standard: 100.0 * standard::false_positive(shape(BITS, HASHES), a + b),
        dynamic: 100.0 * union_false_positive(papers(), a, b),
        found,
    };
    let rows: Vec<Row> = setups().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.sampling());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn setups() -> impl Iterator<Item = (u64, u64)> {
    SIZES.into_iter().flat_map(|a| SIZES.into_iter().filter(move |b| *b >= a).map(move |b| (a, b)))
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 3]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let shape = shape(BITS, HASHES);
    let union = |(a, b): (u64, u64)| {
        let mut both = grown(&mut keys, shape, CAPACITY, a);
        both.union_with(&grown(&mut keys, shape, CAPACITY, b)).expect("one scheme");
        let (mut one, mut other) = (keys.standard(shape), keys.standard(shape));
        one.insert_digests(&keys.draw_many(a as usize));
        other.insert_digests(&keys.draw_many(b as usize));
        one.union_with(&other).expect("one scheme");
        let standard = claimed(&asked, |key| one.contains_digest(key));
        let dynamic = claimed(&asked, |key| both.contains_digest(key));
        [standard, dynamic, standard - dynamic]
    };
    setups().map(union).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("n_a"),
        setting("n_b"),
        formula("standard_formula_percent", 4),
        simulated("standard_simulated_percent", 4),
        formula("dynamic_formula_percent", 4),
        simulated("dynamic_simulated_percent", 4),
        formula("difference_formula_percent", 4),
        simulated("difference_simulated_percent", 4),
    ]);
    for row in rows {
        table.push([
            row.a.into(),
            row.b.into(),
            row.standard.into(),
            row.found[0].mean.into(),
            row.dynamic.into(),
            row.found[1].mean.into(),
            (row.standard - row.dynamic).into(),
            row.found[2].mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let below = || rows.iter().filter(|row| row.b < CAPACITY);
    // Differences smaller than the sampling error may have the wrong sign by chance.
    let lower = |row: &Row| row.found[2].mean > -3.0 * row.found[2].standard_error();
    let larger = |row: &Row| {
        let part = false_positive(papers(), row.a).max(false_positive(papers(), row.b));
        row.dynamic > 100.0 * part
    };
    vec![
        Claim::paper(
            "is larger than that of … as well as",
            "theorem 4: the rate of a union is larger than that of either part (rows)",
        )
        .unit("rows")
        .stated(rows.len() as f64)
        .formula(count(rows.iter().map(larger)))
        .within(0.0),
        Claim::paper(
            "is less than that value of",
            "theorem 5: for sets below c the dynamic union has the lower rate (rows)",
        )
        .unit("rows")
        .stated(below().count() as f64)
        .formula(count(below().map(|row| row.dynamic < row.standard)))
        .simulated(count(below().map(lower)), seeds)
        .note("simulated: not higher by three standard errors")
        .within(0.0),
        Claim::paper(
            "even though the size of A and B exceeds c",
            "the same holds for sets beyond c (rows)",
        )
        .unit("rows")
        .stated(rows.len() as f64)
        .formula(count(rows.iter().map(|row| row.dynamic < row.standard)))
        .simulated(count(rows.iter().map(lower)), seeds)
        .note("simulated: not higher by three standard errors")
        .within(0.0),
        close(
            Claim::paper("The false positive probability of … is:", "equation 4, of a union"),
            VERY_CLOSE,
            rows.iter().map(|row| (row.dynamic, row.found[1])),
            sampling,
        ),
        points_of("figure 3"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let mut panel = Panel::new(
        "rate of the OR minus that of the components",
        "keys of B",
        "difference, points",
    );
    for (colour, a) in [33, 132, 266, 399].into_iter().enumerate() {
        let of = || rows.iter().filter(move |row| row.a == a);
        panel = panel
            .line(
                &format!("A = {a}"),
                colour,
                of().map(|r| (r.b as f64, r.standard - r.dynamic)).collect(),
            )
            .dots(
                &format!("A = {a}, simulated"),
                colour,
                of().map(|r| (r.b as f64, r.found[2].mean)).collect(),
            );
    }
    Plot::of([panel])
}
