//! Figure 8: false negative rates of a replica, estimated and measured.
//!
//! The paper: m = 1200, k of 6, 8 and 11 (paper 3, figure 4: 6 and 8), 25, 75, 150 and 300
//! objects at first; f- as a function of δ1. "Since the false negative rates are independent
//! of δ0, only object deletions are performed in B." 100,000 random objects are asked.
//!
//! Ours: keys are **added** (25 to 300) after the publication, since deletions leave no
//! dirty ones at all; deletions alone are simulated too, to show it. The closed form takes
//! the dirty ones to expect. The column `independent` is the same with k independent hash
//! functions, which the papers assume, in place of the filters' own walk.
//!
//! Left open: how many objects were changed, and the figure's points.

use umbel::model::stale::Dirty;

use super::closeness::{VERY_CLOSE, close};
use super::{BITS, MATCHED, definition, formula, points_of, replica, setting, simulated};
use crate::Experiment;
use crate::home::{Hashing, History, Home, Keys, shape};
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zhu-fig-8",
    source: "Zhu and Jiang, paper 1, figure 8; paper 3, figure 4",
    title: "False negative rates of a replica, estimated and measured",
    find,
};

const HASHES: [u32; 3] = [6, 8, 11];
const START: [u64; 4] = [25, 75, 150, 300];
const ADDED: [u64; 6] = [25, 50, 100, 150, 200, 300];

#[derive(Clone, Copy)]
struct Setup {
    hashes: u32,
    start: u64,
    added: u64,
}

impl Setup {
    fn all() -> impl Iterator<Item = Self> {
        HASHES.into_iter().flat_map(|hashes| {
            START.into_iter().flat_map(move |start| {
                ADDED.into_iter().map(move |added| Self { hashes, start, added })
            })
        })
    }

    fn shape(&self) -> umbel::Shape {
        shape(BITS, self.hashes)
    }

    fn history(&self) -> History {
        History { kept: self.start, removed: 0, added: self.added }
    }
}

struct Row {
    setup: Setup,
    dirty_ones: f64,
    formula: f64,
    miss: f64,
    found_ones: Spread,
    found: Spread,
    found_independent: Spread,
    found_miss: Spread,
}

struct Trial {
    /// Dirty bits, f- and misses.
    rows: Vec<(Dirty, f64, f64)>,
    /// f- of the same rows with independent hash functions.
    independent: Vec<f64>,
    /// Most dirty ones that deletions alone have left.
    after_deletions: f64,
    /// f- at the same n and δ1, without and with dirty zeros.
    without_zeros: f64,
    with_zeros: f64,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let row = |(i, setup): (usize, Setup)| {
        let of = |value: fn(&(Dirty, f64, f64)) -> f64| {
            Spread::of(trials.iter().map(|trial| value(&trial.rows[i]))).percent()
        };
        let dirty = setup.history().dirty(setup.shape());
        let stale = replica(setup.shape(), setup.start + setup.added, dirty);
        Row {
            setup,
            dirty_ones: 100.0 * dirty.ones,
            formula: 100.0 * stale.disagreement(),
            miss: 100.0 * setup.history().miss(setup.shape()),
            found_ones: of(|(dirty, ..)| dirty.ones),
            found: of(|(_, disagreement, _)| *disagreement),
            found_independent: Spread::of(trials.iter().map(|trial| trial.independent[i]))
                .percent(),
            found_miss: of(|(.., miss)| *miss),
        }
    };
    let rows: Vec<Row> = Setup::all().enumerate().map(row).collect();
    let claims = claims(&rows, &trials, bench.sampling());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn trial(mut random: Random, asked: usize) -> Trial {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let (mut rows, mut independent) = (Vec::new(), Vec::new());
    let mut after_deletions = 0.0_f64;
    for hashes in HASHES {
        for start in START {
            let shape = shape(BITS, hashes);
            let mut home = Home::new(shape, &mut keys, start);
            let mut twin = Home::hashed(Hashing::Independent, shape, &mut keys, start);
            let mut deleted = home.clone();
            deleted.remove(&mut random, start / 2);
            after_deletions = after_deletions.max(deleted.dirty().ones);
            for added in ADDED {
                home.add(&mut keys, start + added - home.items());
                rows.push((home.dirty(), home.disagreement(&asked), home.miss()));
                twin.add(&mut keys, start + added - twin.items());
                independent.push(twin.disagreement(&asked));
            }
        }
    }
    let mut aged = |zeros| {
        let history = History::towards(LARGER.0, LARGER.1, Dirty { ones: 0.1, zeros });
        let home = Home::aged(LARGER.0, &mut keys, &mut random, &history);
        home.disagreement(&asked)
    };
    let (without_zeros, with_zeros) = (aged(0.0), aged(0.1));
    Trial { rows, independent, after_deletions, without_zeros, with_zeros }
}

/// Ten times the papers' filter, so that whole numbers of keys come close to a given δ1.
const LARGER: (umbel::Shape, u64) = match umbel::Shape::new(10 * BITS, 6) {
    Ok(shape) => (shape, 2000),
    Err(_) => panic!("a shape in range"),
};

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("k"),
        setting("start"),
        setting("added"),
        formula("dirty_ones_percent", 2),
        formula("formula_percent", 4),
        simulated("simulated_dirty_ones_percent", 2),
        simulated("simulated_percent", 4),
        simulated("simulated_low_percent", 4),
        simulated("simulated_high_percent", 4),
        simulated("independent_percent", 4),
        formula("formula_miss_percent", 2),
        simulated("simulated_miss_percent", 2),
    ]);
    for row in rows {
        table.push([
            row.setup.hashes.into(),
            row.setup.start.into(),
            row.setup.added.into(),
            row.dirty_ones.into(),
            row.formula.into(),
            row.found_ones.mean.into(),
            row.found.mean.into(),
            row.found.low.into(),
            row.found.high.into(),
            row.found_independent.mean.into(),
            row.miss.into(),
            row.found_miss.mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], trials: &[Trial], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let after_deletions = trials.iter().map(|trial| trial.after_deletions).fold(0.0, f64::max);
    let spread = |of: fn(&Trial) -> f64| Spread::of(trials.iter().map(of)).percent();
    let (without, with) = (spread(|t| t.without_zeros), spread(|t| t.with_zeros));
    let same = replica(LARGER.0, LARGER.1, Dirty { ones: 0.1, zeros: 0.0 });
    let is_example =
        |row: &&Row| (row.setup.hashes, row.setup.start, row.setup.added) == (6, 150, 100);
    let example = rows.iter().find(is_example).expect("the example has a row");
    vec![
        Claim::paper("only object deletions are performed in", "that changes δ1 (formula, simulated: dirty ones after deletions alone)",)
        .formula(0.0)
        .simulated(100.0 * after_deletions, seeds)
        .note("deletions only clear bits at home: they leave dirty zeros, and f- stays 0; the experiment must have added objects, as figure 9 did")
        .judged(after_deletions > 0.0),
        Claim::paper("the false negative rates are independent of", "f- is independent of δ0 (m = 12000, n = 2000, k = 6, δ1 = 10 %; simulated: δ0 = 10 %)")
            .stated(100.0 * same.disagreement())
            .formula(100.0 * same.disagreement())
            .simulated(with.mean, seeds)
            .note(format!("with δ0 = 0: {:.4}", without.mean))
            .rounded_and_simulated(0.0, with.standard_error()),
        close(Claim::paper(MATCHED, "f- of theorem 3, k independent hash functions"), VERY_CLOSE, rows.iter().map(|row| (row.formula, row.found_independent)), sampling),
        close(Claim::ours("f- of theorem 3 with the positions that umbel's filters use"), VERY_CLOSE, rows.iter().map(|row| (row.formula, row.found)), sampling),
        definition(
            "k = 6, 150 objects, 100 added",
            example.formula,
            (example.miss, example.found_miss),
            seeds,
        ),
        points_of("figure 8"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |hashes: u32| {
        let mut panel = Panel::new(format!("k = {hashes}"), "dirty ones δ1, %", "f-, %");
        for (colour, start) in START.into_iter().enumerate() {
            let of = || {
                rows.iter()
                    .filter(move |row| (row.setup.hashes, row.setup.start) == (hashes, start))
            };
            panel = panel
                .line(
                    &format!("n = {start}, closed form"),
                    colour,
                    of().map(|row| (row.dirty_ones, row.formula)).collect(),
                )
                .dots(
                    &format!("n = {start}, simulated"),
                    colour,
                    of().map(|row| (row.found_ones.mean, row.found.mean)).collect(),
                );
        }
        panel
    };
    Plot::of(HASHES.map(panel))
}
