//! Figure 9: overall false rates of five hosts that only add.
//!
//! The paper: 5 hosts, m = 1200, k of 6, 8 and 11 (paper 3, figure 5: 6 and 8), 25, 75, 150
//! and 300 objects at first; "the number of new objects on each host increases from 50 to
//! 300 with a step size of 50"; "we only added new objects without deleting any existing
//! items so that δ0 is kept zero".
//!
//! Ours: the same; the closed form is the host rate of equation 16 with the dirty bits to
//! expect. A host is wrong about a random key when its own filter or a replica claims it, or
//! a replica denies what its home claims.
//!
//! The column `exclusive` mends equation 16, which multiplies two events of one replica
//! that exclude each other.
//!
//! Left open: the figure's points, and how many runs they are made of.

use umbel::Shape;

use super::closeness::{VERY_CLOSE, close};
use super::{BITS, MATCHED, exclusive_host, formula, points_of, replica, setting, simulated};
use crate::Experiment;
use crate::home::{History, Home, Keys, shape};
use crate::hosts::Hosts;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zhu-fig-9",
    source: "Zhu and Jiang, paper 1, figure 9; paper 3, figure 5",
    title: "Overall false rates of five hosts that only add",
    find,
};

const HOSTS: usize = 5;
const HASHES: [u32; 3] = [6, 8, 11];
const START: [u64; 4] = [25, 75, 150, 300];
const ADDED: [u64; 6] = [50, 100, 150, 200, 250, 300];

struct Row {
    hashes: u32,
    start: u64,
    added: u64,
    dirty_ones: f64,
    formula: f64,
    exclusive: f64,
    miss: f64,
    found_ones: Spread,
    found: Spread,
    found_miss: Spread,
}

/// Means over the five hosts.
struct Counts {
    dirty_ones: f64,
    dirty_zeros: f64,
    wrong: f64,
    miss: f64,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let mut rows = Vec::new();
    for hashes in HASHES {
        for start in START {
            for added in ADDED {
                rows.push(row(shape(BITS, hashes), (start, added), &trials, rows.len()));
            }
        }
    }
    let zeros = trials.iter().flatten().map(|counts| counts.dirty_zeros).fold(0.0, f64::max);
    let claims = vec![
        close(
            Claim::paper(MATCHED, "the host rate of equation 16"),
            VERY_CLOSE,
            rows.iter().map(|row| (row.formula, row.found)),
            bench.sampling(),
        ),
        close(
            Claim::ours("equation 16 with f+ and f- of one replica exclusive"),
            VERY_CLOSE,
            rows.iter().map(|row| (row.exclusive, row.found)),
            bench.sampling(),
        ),
        Claim::paper(
            "we only added new objects without deleting any existing items so that … is kept zero",
            "only additions, so that δ0 is kept zero",
        )
        .stated(0.0)
        .formula(0.0)
        .simulated(100.0 * zeros, bench.seeds())
        .within(0.0),
        staleness(&rows, bench.seeds()),
        points_of("figure 9"),
    ];
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

/// Two ways to 450 objects: only one of them with most objects published.
fn staleness(rows: &[Row], seeds: u64) -> Claim {
    let at = |start, added| {
        let is = |row: &&Row| (row.hashes, row.start, row.added) == (6, start, added);
        rows.iter().find(is).expect("every configuration has a row")
    };
    let (stale, fresher) = (at(150, 300), at(300, 150));
    let error = stale.found.error_of_difference(&fresher.found);
    Claim::paper("a large threshold increases the false rate", "sets that grow: of 450 objects (k = 6), replicas that know 150 have a higher overall rate \
         than those that know 300 (by how many points)",).unit("points")
    .stated(0.0)
    .formula(stale.exclusive - fresher.exclusive)
    .simulated(stale.found.mean - fresher.found.mean, seeds)
    .tolerance(3.0 * error)
    .note(format!(
        "holds if higher by three standard errors. Without deletions f+ + f- = p^k however stale \
         the replica is, so the overall rate does not see it; members denied: {:.0} % against {:.0} %",
        stale.found_miss.mean, fresher.found_miss.mean
    ))
    .judged(stale.found.mean > fresher.found.mean + 3.0 * error)
}

fn row(shape: Shape, (start, added): (u64, u64), trials: &[Vec<Counts>], i: usize) -> Row {
    let of = |value: fn(&Counts) -> f64| Spread::of_row(trials, i, value).percent();
    let history = History { kept: start, removed: 0, added };
    let dirty = history.dirty(shape);
    let stale = replica(shape, start + added, dirty);
    Row {
        hashes: shape.hashes(),
        start,
        added,
        dirty_ones: 100.0 * dirty.ones,
        formula: 100.0 * stale.host(HOSTS as u64).overall,
        exclusive: 100.0 * exclusive_host(shape, start + added, &stale, HOSTS as u64),
        miss: 100.0 * history.miss(shape),
        found_ones: of(|counts| counts.dirty_ones),
        found: of(|counts| counts.wrong),
        found_miss: of(|counts| counts.miss),
    }
}

fn trial(mut random: Random, asked: usize) -> Vec<Counts> {
    let mut keys = Keys::new(&mut random);
    let mut rows = Vec::new();
    for hashes in HASHES {
        for start in START {
            let mut hosts = Hosts::new((HOSTS, start), shape(BITS, hashes), &mut keys, asked);
            let mut before = 0;
            for added in ADDED {
                hosts.add(&mut keys, added - before);
                before = added;
                rows.push(Counts {
                    dirty_ones: hosts.mean(|home| home.dirty().ones),
                    dirty_zeros: hosts.mean(|home| home.dirty().zeros),
                    wrong: hosts.wrong(),
                    miss: hosts.mean(Home::miss),
                });
            }
        }
    }
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("k"),
        setting("start"),
        setting("added"),
        formula("dirty_ones_percent", 2),
        formula("formula_percent", 4),
        formula("exclusive_formula_percent", 4),
        simulated("simulated_dirty_ones_percent", 2),
        simulated("simulated_percent", 4),
        simulated("simulated_low_percent", 4),
        simulated("simulated_high_percent", 4),
        formula("formula_miss_percent", 2),
        simulated("simulated_miss_percent", 2),
    ]);
    for row in rows {
        table.push([
            row.hashes.into(),
            row.start.into(),
            row.added.into(),
            row.dirty_ones.into(),
            row.formula.into(),
            row.exclusive.into(),
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
    let panel = |hashes: u32| {
        let title = format!("k = {hashes}");
        let mut panel = Panel::new(title, "objects added on each host", "overall false rate, %");
        for (colour, start) in START.into_iter().enumerate() {
            let is = move |row: &&Row| (row.hashes, row.start) == (hashes, start);
            let points = |y: fn(&Row) -> f64| {
                rows.iter().filter(is).map(|row| (row.added as f64, y(row))).collect()
            };
            panel = panel
                .line(&format!("n = {start}, closed form"), colour, points(|row| row.formula))
                .dots(&format!("n = {start}, simulated"), colour, points(|row| row.found.mean));
        }
        panel
    };
    Plot::of(HASHES.map(panel))
}
