//! Figure 7: when it pays to ask before a key is inserted.
//!
//! The paper: keys that are claimed already need no room. Asking first pays once
//! `n·f2(n)/c >= 1`, when "Algorithm 1 causes at least one unnecessary SBF"; the ratio is
//! always below one for f <= 0.01, s <= 10 and for f <= 0.001, s <= 20.
//!
//! Ours: the ratio, and two real filters of plain components, one of which asks first: how many
//! keys it was spared and how many components. Components of 133 keys.
//!
//! Left open: the figure's points. The ratio counts keys that have several addresses *in the
//! end*; an early key that a later component claims was not claimed when it came, so that the
//! keys really spared are about half as many.

use umbel::model::dynamic::{Component, claimed_twice};
use umbel::{Shape, design};

use super::super::{formula, points_of, setting, simulated};
use super::{CAPACITY, count, dynamic, rate, spreads};
use crate::Experiment;
use crate::home::Keys;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-fig-7",
    source: "Guo and others, paper 4, figure 7 and section 3.5.1",
    title: "When asking before inserting pays",
    find,
};

/// Bounds on the rate of a component, percent: 1, 0.1.
const BOUNDS: [f64; 2] = [0.01, 0.001];
const COMPONENTS: u64 = 40;

struct Row {
    bound: f64,
    components: u64,
    ratio: f64,
    /// Keys not inserted because of asking first, divided by c.
    expected: f64,
    spared: Spread,
    saved: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(trial);
    let row = |((bound, components), [spared, saved]): ((f64, u64), [Spread; 2])| {
        let component = Component::new(shape_for(bound), CAPACITY);
        let ratio = |s: u64| s as f64 * claimed_twice(component, s * CAPACITY).last;
        // The i-th group of c keys is checked against i - 1 full components and, on average, half
        // of its own component.
        let met = (1..=components).map(|i| claimed_twice(component, i * CAPACITY).last);
        Row { bound, components, ratio: ratio(components), expected: met.sum(), spared, saved }
    };
    let rows: Vec<Row> = setups().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn setups() -> impl Iterator<Item = (f64, u64)> {
    BOUNDS.into_iter().flat_map(|bound| (1..=COMPONENTS).map(move |s| (bound, s)))
}

fn shape_for(bound: f64) -> Shape {
    let shape = design::standard_by_formula(CAPACITY, rate(bound)).expect("a small filter");
    shape.with_digest_bits(umbel::DigestBits::FULL)
}

fn trial(mut random: Random) -> Vec<[f64; 2]> {
    let mut keys = Keys::new(&mut random);
    let mut rows = Vec::new();
    for bound in BOUNDS {
        let shape = shape_for(bound);
        let mut asking = dynamic::<umbel::StandardFilter>(&keys, shape, CAPACITY);
        let mut spared = 0;
        for components in 1..=COMPONENTS {
            for digest in keys.draw_many(CAPACITY as usize) {
                if asking.contains_digest(digest) {
                    spared += 1;
                } else {
                    asking.insert_digest(digest);
                }
            }
            let saved = components - asking.components().len() as u64;
            rows.push([f64::from(spared) / CAPACITY as f64, saved as f64]);
        }
    }
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        formula("bound_percent", 1),
        setting("s"),
        formula("papers_ratio", 3),
        formula("expected_spared_over_c", 3),
        simulated("spared_over_c", 3),
        simulated("components_saved", 2),
    ]);
    for row in rows {
        table.push([
            Cell::from(100.0 * row.bound),
            row.components.into(),
            row.ratio.into(),
            row.expected.into(),
            row.spared.mean.into(),
            row.saved.mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let of = |bound: f64| rows.iter().filter(move |row| row.bound == bound);
    let below = |bound: f64, max: u64| {
        let rows = || of(bound).filter(|row| row.components <= max);
        Claim::paper(
            "the value of ratio is always less than one if",
            format!("f <= {bound}, s <= {max}: the ratio is below one (rows)"),
        )
        .unit("rows")
        .stated(max as f64)
        .formula(count(rows().map(|row| row.ratio < 1.0)))
        .simulated(count(rows().map(|row| row.saved.high < 1.0)), seeds)
        .note("simulated: no seed saves a component")
        .within(0.0)
    };
    let first = |bound: f64, reached: fn(&Row) -> bool| {
        of(bound).find(|row| reached(row)).map_or(f64::NAN, |row| row.components as f64)
    };
    vec![
        below(0.01, 10),
        below(0.001, 20),
        Claim::paper(
            "Algorithm 1 incurs at least one unnecessary SBF",
            "once the ratio is one, algorithm 1 causes an unnecessary component (f = 0.01; stated: \
             s at which the ratio reaches one; simulated: s at which every seed saves one)",
        )
        .unit("components")
        .stated(first(0.01, |row| row.ratio >= 1.0))
        .formula(first(0.01, |row| row.expected >= 1.0))
        .simulated(first(0.01, |row| row.saved.low >= 1.0), seeds)
        .note(
            "the ratio counts keys that several components claim in the end; those that are \
             claimed when they come are about half as many, so asking pays later",
        )
        .within(1.0),
        points_of("figure 7"),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |bound: f64| {
        let points = |y: fn(&Row) -> f64| {
            let of = rows.iter().filter(move |row| row.bound == bound);
            of.map(|row| (row.components as f64, y(row))).collect()
        };
        Panel::new(format!("f = {bound}"), "components s", "components' worth of keys")
            .line("the paper's ratio", 0, points(|row| row.ratio))
            .dashed("spared, expected", 1, points(|row| row.expected))
            .dots("spared, simulated", 1, points(|row| row.spared.mean))
            .dots("components saved", 2, points(|row| row.saved.mean))
    };
    Plot::of(BOUNDS.map(panel))
}
