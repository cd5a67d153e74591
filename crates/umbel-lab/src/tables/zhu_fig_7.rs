//! Figure 7: the false positive rate of a replica when its home's filter is optimal.
//!
//! The paper: theorem 4, `f+ = (p + δ0 - δ1)^k`. The text says nothing about the figure.
//!
//! Ours: 8, 12 and 16 bits an item, δ0 and δ1 of 0, 5 and 10 %; the closed form with the
//! real best k (fill 1/2) and with the nearest whole one. Simulated: homes that end with
//! 10,000 keys after a history that leads to those dirty bits, ten times the usual number
//! of keys asked, since the rates are small.
//!
//! Left open: the figure's axes, ranges and points.

use umbel::model::stale::{Dirty, Replica};
use umbel::model::standard;

use super::closeness::{VERY_CLOSE, close};
use super::{ITEMS, MATCHED, OPTIMAL, formula, points_of, setting, simulated};
use crate::Experiment;
use crate::home::{History, Home, Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zhu-fig-7",
    source: "Zhu and Jiang, paper 1, figure 7 and theorem 4; paper 3, theorem 4",
    title: "False positive rate of a replica whose home is optimal",
    find,
};

/// Shares of dirty bits, percent.
const DIRTY: [u64; 3] = [0, 5, 10];

struct Row {
    setup: Setup,
    best: f64,
    formula: f64,
    miss: f64,
    found: Spread,
    found_ones: Spread,
    found_zeros: Spread,
    found_miss: Spread,
}

#[derive(Clone, Copy)]
struct Setup {
    bits_per_item: u64,
    hashes: u32,
    zeros: u64,
    ones: u64,
}

impl Setup {
    fn all() -> impl Iterator<Item = Self> {
        OPTIMAL.into_iter().flat_map(|(bits_per_item, hashes)| {
            DIRTY.into_iter().flat_map(move |zeros| {
                DIRTY.into_iter().map(move |ones| Self { bits_per_item, hashes, zeros, ones })
            })
        })
    }

    fn shape(&self) -> umbel::Shape {
        shape(self.bits_per_item * ITEMS, self.hashes)
    }

    fn dirty(&self) -> Dirty {
        Dirty { ones: self.ones as f64 / 100.0, zeros: self.zeros as f64 / 100.0 }
    }

    fn history(&self) -> History {
        History::towards(self.shape(), ITEMS, self.dirty())
    }
}

struct Counts {
    false_positive: f64,
    dirty: Dirty,
    miss: f64,
}

fn trial(mut random: Random, asked: usize) -> Vec<Counts> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let count = |setup: Setup| {
        let home = Home::aged(setup.shape(), &mut keys, &mut random, &setup.history());
        let false_positive = home.false_positive(&asked);
        Counts { false_positive, dirty: home.dirty(), miss: home.miss() }
    };
    Setup::all().map(count).collect()
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, 10 * bench.asked()));
    let row = |(i, setup): (usize, Setup)| {
        let of = |value: fn(&Counts) -> f64| Spread::of_row(&trials, i, value).percent();
        let Dirty { ones, zeros } = setup.dirty();
        let replica = Replica::new(setup.shape(), ITEMS, setup.dirty()).expect("within the fill");
        Row {
            setup,
            best: 100.0 * (0.5 + zeros - ones).powf(standard::best_hashes(setup.bits_per_item, 1)),
            formula: 100.0 * replica.false_positive(),
            miss: 100.0 * setup.history().miss(setup.shape()),
            found: of(|counts| counts.false_positive),
            found_ones: of(|counts| counts.dirty.ones),
            found_zeros: of(|counts| counts.dirty.zeros),
            found_miss: of(|counts| counts.miss),
        }
    };
    let rows: Vec<Row> = Setup::all().enumerate().map(row).collect();
    let claims = vec![
        close(
            Claim::paper(MATCHED, "f+ of theorem 4"),
            VERY_CLOSE,
            rows.iter().map(|row| (row.formula, row.found)),
            bench.sampling(),
        ),
        points_of("figure 7"),
    ];
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("bits_per_item"),
        setting("k"),
        setting("dirty_zeros_percent"),
        setting("dirty_ones_percent"),
        formula("best_k_formula_percent", 5),
        formula("formula_percent", 5),
        simulated("simulated_dirty_zeros_percent", 2),
        simulated("simulated_dirty_ones_percent", 2),
        simulated("simulated_percent", 5),
        simulated("simulated_low_percent", 5),
        simulated("simulated_high_percent", 5),
        formula("formula_miss_percent", 2),
        simulated("simulated_miss_percent", 2),
    ]);
    for row in rows {
        table.push([
            row.setup.bits_per_item.into(),
            row.setup.hashes.into(),
            row.setup.zeros.into(),
            row.setup.ones.into(),
            row.best.into(),
            row.formula.into(),
            row.found_zeros.mean.into(),
            row.found_ones.mean.into(),
            row.found.mean.into(),
            row.found.low.into(),
            row.found.high.into(),
            row.miss.into(),
            row.found_miss.mean.into(),
        ]);
    }
    table
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |(bits_per_item, hashes): (u64, u32)| {
        let title = format!("m/n = {bits_per_item}, k = {hashes}");
        let mut panel = Panel::new(title, "dirty zeros δ0, %", "f+, %").log();
        for (colour, ones) in DIRTY.into_iter().enumerate() {
            let is = move |row: &&Row| {
                (row.setup.bits_per_item, row.setup.ones) == (bits_per_item, ones)
            };
            let points = |y: fn(&Row) -> f64| {
                rows.iter().filter(is).map(|row| (row.setup.zeros as f64, y(row))).collect()
            };
            panel = panel
                .line(&format!("δ1 = {ones} %, closed form"), colour, points(|row| row.formula))
                .dots(&format!("δ1 = {ones} %, simulated"), colour, points(|row| row.found.mean));
        }
        panel
    };
    Plot::of(OPTIMAL.map(panel))
}
