//! Bit slices: what one question reads of s components, all at once and one after the other.
//!
//! The paper: section 3.5.3. Stored as strings, "all s × m bits need to be retrieved on a
//! query"; stored as slices, "only a fraction of the bit slices".
//!
//! Ours: probes counted for absent keys. The list asks component after component and leaves
//! each at the first zero: `Σ p^i` probes a full component; the slices read k bytes for every
//! eight components, whatever they hold. Both must answer alike. Nanoseconds are not here,
//! since a report repeats to the last digit: `cargo bench -p umbel --bench filter -- dynamic`
//! measures them.
//!
//! Left open: nothing is measured in the paper.

use umbel::model::standard;
use umbel::{Digest, DynamicFilter, StandardFilter};

use super::super::{formula, setting, simulated};
use super::{BITS, CAPACITY, HASHES, grown, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-sliced",
    source: "Guo and others, paper 4, section 3.5.3; measured beyond it",
    title: "What one question reads: slices against the list",
    find,
};

const COMPONENTS: [u64; 8] = [1, 2, 4, 6, 8, 12, 16, 24];

struct Row {
    components: u64,
    list: f64,
    slices: f64,
    /// Probes of the list, answers that differ.
    found: [Spread; 2],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let row = |(components, found): (u64, [Spread; 2])| Row {
        components,
        list: list_probes(HASHES, standard::fill(shape(BITS, HASHES), CAPACITY))
            * components as f64,
        slices: (components.div_ceil(8) * u64::from(HASHES)) as f64,
        found,
    };
    let rows: Vec<Row> = COMPONENTS.into_iter().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

/// Expected number of probes until the first zero, for an absent key: `Σ p^i` for i below k.
pub(super) fn list_probes(hashes: u32, fill: f64) -> f64 {
    (0..hashes).map(|i| fill.powi(i as i32)).sum()
}

/// Probes that the list takes for a key: all components, each until its first zero, unless
/// one claims the key.
pub(super) fn probes(filter: &DynamicFilter<StandardFilter>, key: Digest) -> u64 {
    let mut probes = 0;
    for (_, component) in filter.components() {
        let mut positions = key.positions(filter.scheme().shape());
        let zero = positions.position(|position| component.bits().get(position) == 0);
        probes += zero.map_or(u64::from(filter.scheme().shape().hashes()), |at| at as u64 + 1);
        if zero.is_none() {
            break;
        }
    }
    probes
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 2]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let each = |components: u64| {
        let filter = grown(&mut keys, shape(BITS, HASHES), CAPACITY, components * CAPACITY);
        let mean = asked.iter().map(|key| probes(&filter, *key)).sum::<u64>() as f64;
        let differ =
            |key: &&Digest| filter.contains_digest(**key) != filter.contains_digest_listed(**key);
        [mean / asked.len() as f64, asked.iter().filter(differ).count() as f64]
    };
    COMPONENTS.into_iter().map(each).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("s"),
        formula("list_formula_probes", 3),
        simulated("list_simulated_probes", 3),
        formula("slices_bytes", 0),
        simulated("times_fewer", 2),
        simulated("answers_that_differ", 0),
    ]);
    for row in rows {
        table.push([
            row.components.into(),
            row.list.into(),
            row.found[0].mean.into(),
            row.slices.into(),
            (row.found[0].mean / row.slices).into(),
            row.found[1].high.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let differ = rows.iter().map(|row| row.found[1].high).fold(0.0, f64::max);
    let last = rows.last().expect("there are rows");
    let ratio = |row: &Row| row.found[0].mean / row.slices;
    let eight = rows.iter().find(|row| row.components == 8).expect("a row of eight");
    vec![
        Claim::paper("only a fraction of the bit slices need to be retrieved on a query", "only a fraction of the slices is read (percent of the m slices, 24 components)")
            .stated(100.0)
            .formula(100.0 * f64::from(HASHES) / BITS as f64)
            .judged(true),
        Claim::paper("bits need to be retrieved on a", "as strings, all bits must be retrieved (stated: bits of 24 components; simulated: probes)").unit("bits")
            .stated((24 * BITS) as f64)
            .formula(last.list)
            .simulated(last.found[0].mean, seeds)
            .note("a list reads k positions of each string at most, and leaves it at the first zero: about two")
            .within(0.0),
        Claim::ours("slices answer as the list does (answers that differ)").unit("answers")
            .stated(0.0)
            .simulated(differ, seeds)
            .within(0.0),
        Claim::ours("slices read fewer words than the list from eight components on (times fewer at 8)").unit("times")
            .stated(1.0)
            .formula(eight.list / eight.slices)
            .simulated(ratio(eight), seeds)
            .note("below four components the list reads fewer: it stops at the first zero, a slice does not")
            .above(),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points = |y: fn(&Row) -> f64| rows.iter().map(|r| (r.components as f64, y(r))).collect();
    let panel = Panel::new("m = 1280, k = 7, absent keys", "components s", "reads a question")
        .line("list, formula", 1, points(|row| row.list))
        .dots("list, counted", 1, points(|row| row.found[0].mean))
        .line("slices", 0, points(|row| row.slices));
    Plot::of([panel])
}
