//! Figure 8: bits of a standard filter over those of a dynamic one at the same rate.
//!
//! The paper: equation 13, `m1/(s·m) = -kc / (m ln(1 - (1-(1-y)^s)^(1/k)))` with `y = f(c)`,
//! m = 1280, k = 7, c = 133. Equal bits for n <= c, fewer in the standard filter for n > c;
//! "the difference of bits is small if s is not too large".
//!
//! Ours: a standard filter of exactly that length, and the rates of both measured.
//!
//! Left open: the figure's points, and what counts as small.

use umbel::model::dynamic::{false_positive, standard_over_dynamic};

use super::super::{formula, points_of, setting, simulated};
use super::{BITS, CAPACITY, HASHES, claimed, count, grown, papers, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-8",
    source: "Guo and others, paper 4, figure 8 and equation 13",
    title: "Bits of a standard filter over a dynamic one's at the same rate",
    find,
};

const COMPONENTS: u64 = 20;

struct Row {
    components: u64,
    ratio: f64,
    rate: f64,
    /// Standard, dynamic, their difference.
    found: [Spread; 3],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let row = |(components, found): (u64, [Spread; 3])| Row {
        components,
        ratio: standard_over_dynamic(papers(), components),
        rate: 100.0 * false_positive(papers(), components * CAPACITY),
        found,
    };
    let rows: Vec<Row> = (1..).zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn standard_bits(components: u64) -> u64 {
    (standard_over_dynamic(papers(), components) * (components * BITS) as f64).round() as u64
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 3]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let each = |components: u64| {
        let items = components * CAPACITY;
        let several = grown(&mut keys, shape(BITS, HASHES), CAPACITY, items);
        let mut one = keys.standard(shape(standard_bits(components), HASHES));
        one.insert_digests(&keys.draw_many(items as usize));
        let one = claimed(&asked, |key| one.contains_digest(key));
        let several = claimed(&asked, |key| several.contains_digest(key));
        [one, several, one - several]
    };
    (1..=COMPONENTS).map(each).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("s"),
        formula("formula_ratio", 4),
        formula("standard_bits", 0),
        formula("dynamic_bits", 0),
        formula("formula_percent", 4),
        simulated("standard_simulated_percent", 4),
        simulated("dynamic_simulated_percent", 4),
    ]);
    for row in rows {
        table.push([
            row.components.into(),
            row.ratio.into(),
            (standard_bits(row.components) as f64).into(),
            ((row.components * BITS) as f64).into(),
            row.rate.into(),
            row.found[0].mean.into(),
            row.found[1].mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let same = |row: &Row| {
        let allowed = 3.0 * row.found[2].standard_error() + 0.05 * row.rate;
        row.found[2].mean.abs() <= allowed
    };
    let ten = rows.iter().find(|row| row.components == 10).expect("a row of ten components");
    vec![
        Claim::paper("DBF use the same bits to represent X if", "n <= c: both take the same bits (ratio)").unit("ratio")
            .stated(1.0)
            .formula(rows[0].ratio)
            .within(1e-9),
        Claim::paper("the SBF consumes fewer bits than the DBF if n > c", "n > c: the standard filter takes fewer bits (rows)").unit("rows")
            .stated((rows.len() - 1) as f64)
            .formula(count(rows[1..].iter().map(|row| row.ratio < 1.0)))
            .within(0.0),
        Claim::paper("how many bits it must consume in order to achieve the same false positive probability as the DBF", "a standard filter of that length has the same rate (rows)").unit("rows")
            .stated(rows.len() as f64)
            .simulated(count(rows.iter().map(same)), seeds)
            .note("the same: within a twentieth and three standard errors of the seeds")
            .within(0.0),
        Claim::paper("The difference of bits used by DBF and SBF is small if s is not too large", "the difference of bits is small if s is not too large (ratio at s = 10)").unit("ratio")
            .formula(ten.ratio)
            .note("the text says neither what is small nor what is too large")
            .unverifiable(),
        points_of("figure 8"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points = |y: fn(&Row) -> f64| rows.iter().map(|r| (r.components as f64, y(r))).collect();
    let bits = Panel::new("bits at the same rate", "components s", "standard over dynamic").line(
        "equation 13",
        0,
        points(|row| row.ratio),
    );
    let rates = Panel::new("rates at these lengths", "components s", "false positive, %")
        .line("equation 12", 0, points(|row| row.rate))
        .dots("standard, simulated", 1, points(|row| row.found[0].mean))
        .dots("dynamic, simulated", 0, points(|row| row.found[1].mean));
    Plot::of([bits, rates])
}
