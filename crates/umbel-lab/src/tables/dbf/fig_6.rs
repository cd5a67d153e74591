//! Figure 6: rates of filters that were emptied and filled again.
//!
//! The paper: sets of 10c, 8c and 5c are deleted whole by algorithm 3, then new keys are
//! added; what remained raises the rate: "the more remaining items there are, the greater the
//! false positive probability", which "still maintains a lower, more stable level".
//!
//! Ours: the same with generated names of files, and beside it sets that were deleted through
//! the remembered component, whose rate is that of a new filter (equation 3).
//!
//! Left open: the figure's points.

use umbel::model::dynamic as model;

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{formula, points_of, setting, simulated};
use super::deletion::Grown;
use super::{CAPACITY, claimed, count, papers, spreads};
use crate::Experiment;
use crate::home::Keys;
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-6",
    source: "Guo and others, paper 4, figure 6",
    title: "Rates of filters that were emptied and filled again",
    find,
};

/// Capacities that were deleted.
const DELETED: [u64; 3] = [10, 8, 5];
/// Half capacities that are added.
const STEPS: u64 = 20;

struct Row {
    items: u64,
    formula: f64,
    /// After algorithm 3, one for each of the deleted sizes.
    after: [Spread; 3],
    /// After exact removal of the largest.
    exact: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let row = |(step, [a, b, c, exact]): (u64, [Spread; 4])| Row {
        items: items(step),
        formula: 100.0 * model::false_positive(papers(), items(step)),
        after: [a, b, c],
        exact,
    };
    let rows: Vec<Row> = (1..).zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.sampling());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn items(step: u64) -> u64 {
    step * CAPACITY / 2
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 4]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let mut emptied = DELETED.map(|capacities| {
        let mut grown = Grown::of_files(&keys, &mut random, capacities * CAPACITY);
        grown.delete_by_claims();
        grown.filter
    });
    let mut exact = Grown::of_files(&keys, &mut random, DELETED[0] * CAPACITY);
    exact.delete_by_catalogue();
    let mut rows = Vec::new();
    for step in 1..=STEPS {
        let more = keys.draw_many((items(step) - items(step - 1)) as usize);
        emptied.iter_mut().chain([&mut exact.filter]).for_each(|f| f.insert_digests(&more));
        let rate =
            |filter: &umbel::DynamicFilter| claimed(&asked, |key| filter.contains_digest(key));
        let [a, b, c] = [0, 1, 2].map(|i| rate(&emptied[i]));
        rows.push([a, b, c, rate(&exact.filter)]);
    }
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("n"),
        formula("formula_percent", 4),
        simulated("after_10c_percent", 4),
        simulated("after_8c_percent", 4),
        simulated("after_5c_percent", 4),
        simulated("exact_after_10c_percent", 4),
        simulated("exact_low_percent", 4),
        simulated("exact_high_percent", 4),
    ]);
    for row in rows {
        table.push([
            row.items.into(),
            row.formula.into(),
            row.after[0].mean.into(),
            row.after[1].mean.into(),
            row.after[2].mean.into(),
            row.exact.mean.into(),
            row.exact.low.into(),
            row.exact.high.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let all = rows.len() as f64;
    let ordered = |row: &Row| {
        let [ten, eight, five] = row.after.map(|after| after.mean);
        let error = row.after[0].standard_error().max(row.after[2].standard_error());
        ten >= eight - 3.0 * error && eight >= five - 3.0 * error
    };
    let last = rows.last().expect("there are rows");
    vec![
        Claim::paper("the more remaining items there are, the greater the false positive probability will be", "the more keys remain, the higher the rate (rows)").unit("rows")
            .stated(all)
            .simulated(count(rows.iter().map(ordered)), seeds)
            .note("10c at least 8c at least 5c, but for three standard errors; at whole multiples of c what remained makes no difference, and 10c may come out lowest")
            .within(0.0),
        Claim::paper("the false positive probability of the DBF is always larger than the theoretical value", "the rate is larger than the expected value (rows, after 10c)").unit("rows")
            .stated(all)
            .simulated(count(rows.iter().map(|row| row.after[0].mean > row.formula)), seeds)
            .note(
                 "rows in which it is not stand at whole multiples of c: all that remained has done \
                 there is to begin one more component, which claims next to nothing yet",
            )
            .within(0.0),
        Claim::paper("the difference between the real value and theoretical value is small", "the difference is small: at n = 10c, rate after the deletion of 10c over equation 3 (times)").unit("times")
            .stated(1.0)
            .simulated(last.after[0].mean / last.formula, seeds)
            .note("small: holds if below a tenth")
            .within(0.1),
        Claim::ours("exact removal leaves no trace: the rate is not above that of a new filter (rows)").unit("rows")
            .stated(all)
            .simulated(
                count(rows.iter().map(|row| {
                    row.exact.mean <= row.formula + 4.0 * row.exact.standard_error()
                })),
                seeds,
            )
            .note("but for four standard errors: a row of twenty passes three by chance now and then")
            .within(0.0),
        close(Claim::ours("equation 3, after exact removal"), VERY_CLOSE, rows.iter().map(|r| (r.formula, r.exact)), sampling),
        points_of("figure 6"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points = |y: fn(&Row) -> f64| rows.iter().map(|row| (row.items as f64, y(row))).collect();
    let panel = Panel::new("deleted whole, then filled again", "new keys n", "false positive, %")
        .line("new filter, equation 3", 0, points(|row| row.formula))
        .dots("exact removal of 10c", 2, points(|row| row.exact.mean))
        .dots("after 10c", 1, points(|row| row.after[0].mean))
        .dots("after 8c", 4, points(|row| row.after[1].mean))
        .dots("after 5c", 3, points(|row| row.after[2].mean));
    Plot::of([panel])
}
