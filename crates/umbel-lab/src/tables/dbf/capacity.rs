//! Section 3.4.2: the real capacity of a filter that has been emptied again and again.
//!
//! The paper: "the real capacity of a DBF decreases with the number of those remaining items. Applications can
//! use the change in the real capacity as a metric to evaluate the influence of the item deletion operation
//! and decide whether to represent the updated set again."
//!
//! Ours: a set of ten capacities is put in and deleted by algorithm 3 up to eight times. Items that
//! remain, the room that ten components have left for others, the rate when the set is there
//! once more; and the same with removal through the remembered component.
//!
//! Left open: at what loss to represent the set again; the rows say what each costs.

use super::super::{formula, setting, simulated};
use super::deletion::Grown;
use super::{CAPACITY, claimed, papers, spreads};
use crate::Experiment;
use crate::home::Keys;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-capacity",
    source: "Guo and others, paper 4, section 3.4.2",
    title: "Real capacity as a signal to represent a set again",
    find,
};

const ROUNDS: u64 = 8;
const SET: u64 = 10 * CAPACITY;

struct Row {
    round: u64,
    /// Percent of the set that remains after this many deletions.
    remaining: Spread,
    rate: Spread,
    components: Spread,
    exact: Spread,
}

impl Row {
    /// Percent of ten components that is left for others.
    fn capacity(&self) -> f64 {
        100.0 - self.remaining.mean
    }
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked() / 5));
    let row = |(round, [remaining, rate, components, exact]): (u64, [Spread; 4])| Row {
        round,
        remaining,
        rate,
        components,
        exact,
    };
    let rows: Vec<Row> = (0..).zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 4]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let mut grown = Grown::of_files(&keys, &mut random, 0);
    let mut exact = Grown::of_files(&keys, &mut random, 0);
    let mut rows = Vec::new();
    for round in 0..=ROUNDS {
        let remaining = 100.0 * grown.filter.items() as f64 / SET as f64;
        let set = keys.draw_many(SET as usize);
        grown.add(&set);
        exact.add(&set);
        rows.push([
            remaining,
            claimed(&asked, |key| grown.filter.contains_digest(key)),
            grown.filter.components().len() as f64,
            claimed(&asked, |key| exact.filter.contains_digest(key)),
        ]);
        if round < ROUNDS {
            grown.delete_by_claims();
            exact.delete_by_catalogue();
            grown.forget();
            exact.forget();
        }
    }
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("deletions"),
        formula("rate_formula_percent", 3),
        simulated("remaining_percent", 2),
        simulated("real_capacity_percent", 2),
        simulated("components", 1),
        simulated("rate_percent", 3),
        simulated("exact_rate_percent", 3),
    ]);
    let fresh = 100.0 * umbel::model::dynamic::false_positive(papers(), SET);
    for row in rows {
        table.push([
            row.round.into(),
            fresh.into(),
            row.remaining.mean.into(),
            row.capacity().into(),
            row.components.mean.into(),
            row.rate.mean.into(),
            row.exact.mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let (first, last) = (&rows[0], rows.last().expect("rows"));
    let falls = rows.windows(2).filter(|pair| pair[1].capacity() < pair[0].capacity()).count();
    let error = last.exact.error_of_difference(&first.exact);
    vec![
        Claim::paper(
            "the real capacity of a DBF decreases with the number of those remaining items",
            "rounds of deletion after which less room is left than before",
        )
        .unit("rounds")
        .stated(ROUNDS as f64)
        .simulated(falls as f64, seeds)
        .note(format!(
            "after {ROUNDS} rounds {:.1} % of the room of ten components is left",
            last.capacity()
        ))
        .within(0.0),
        Claim::paper(
            "use the change in the real capacity as a metric to evaluate the influence of the item deletion",
            "the rate of the same set rises as the capacity falls: rate after the last deletion over that before the first",
        )
        .unit("times")
        .stated(1.0)
        .simulated(last.rate.mean / first.rate.mean, seeds)
        .note(format!(
            "{:.0} % of the capacity lost, the rate is {:.0} % higher: the signal comes before the harm",
            100.0 - last.capacity(),
            100.0 * (last.rate.mean / first.rate.mean - 1.0)
        ))
        .above(),
        Claim::ours("removal through the remembered component: the rate after the last deletion over the first")
            .unit("times")
            .stated(1.0)
            .simulated(last.exact.mean / first.exact.mean, seeds)
            .rounded_and_simulated(0.02, error / first.exact.mean),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let of = |y: fn(&Row) -> f64| rows.iter().map(|row| (row.round as f64, y(row))).collect();
    Plot::of([
        Panel::new("Room for others", "times that the set was deleted", "real capacity, %").line(
            "algorithm 3",
            1,
            of(Row::capacity),
        ),
        Panel::new("Rate of the same set", "times that the set was deleted", "false positive, %")
            .line("algorithm 3", 1, of(|row| row.rate.mean))
            .line("remembered component", 2, of(|row| row.exact.mean)),
    ])
}
