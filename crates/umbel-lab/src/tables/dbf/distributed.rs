//! Sets of many hosts: bits of all filters together, when all must share one shape.
//!
//! The paper: section 4.4. With standard filters "nodes with small sets sacrifice more space";
//! with dynamic ones "the total number of bits used by DBFs at all nodes is minimized", by the
//! form of section 4.2.
//!
//! Ours: 200 hosts with up to 1330 keys, a bound of 0.0098, the five distributions; the shape from
//! the distribution; bits in memory and bytes on the wire of real filters of all hosts.
//!
//! Left open: nothing is measured in the paper.

use umbel::codec::encode;
use umbel::design::dynamic::{PapersBounded, papers_bounded};

use super::super::{formula, setting, simulated};
use super::memory::Sizes;
use super::{BOUND, MAX, count, grown, memory, rate, spreads};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-distributed",
    source: "Guo and others, paper 4, section 4.4",
    title: "Sets of many hosts: bits and bytes of all filters together",
    find,
};

const HOSTS: u64 = 200;

struct Row {
    sizes: Sizes,
    plan: PapersBounded,
    /// Bits of all hosts; bytes on the wire, dynamic and standard.
    found: [Spread; 3],
}

impl Row {
    fn total_bits(&self) -> f64 {
        self.plan.expected_bits * HOSTS as f64
    }

    fn standard_total_bits(&self) -> f64 {
        self.plan.standard_bits as f64 * HOSTS as f64
    }
}

fn plan(sizes: Sizes) -> PapersBounded {
    papers_bounded(rate(BOUND), &sizes.papers(MAX)).expect("small filters")
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(trial);
    let row = |(sizes, found)| Row { sizes, plan: plan(sizes), found };
    let rows: Vec<Row> = Sizes::ALL.into_iter().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn trial(mut random: Random) -> Vec<[f64; 3]> {
    let mut keys = Keys::new(&mut random);
    let each = |sizes: Sizes| {
        let (distribution, plan) = (sizes.papers(MAX), plan(sizes));
        let small = shape(plan.component.bits, plan.component.hashes);
        let large = shape(plan.standard_bits, super::HASHES);
        let mut all = [0.0; 3];
        for _ in 0..HOSTS {
            let share = random.below(1 << 30) as f64 / (1 << 30) as f64;
            let items = memory::at(&distribution, share);
            let filter = grown(&mut keys, small, plan.capacity, items);
            let mut standard = keys.standard(large);
            standard.insert_digests(&keys.draw_many(items as usize));
            all[0] += (filter.components().len() as u64 * plan.component.bits) as f64;
            all[1] += encode(&filter).len() as f64;
            all[2] += encode(&standard).len() as f64;
        }
        all
    };
    Sizes::ALL.into_iter().map(each).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("distribution"),
        formula("s", 0),
        formula("total_bits", 0),
        simulated("simulated_total_bits", 0),
        formula("standard_total_bits", 0),
        formula("ratio", 4),
        simulated("simulated_ratio", 4),
        simulated("wire_dynamic_bytes", 0),
        simulated("wire_standard_bytes", 0),
    ]);
    for row in rows {
        let standard = row.standard_total_bits();
        table.push([
            Cell::from(row.sizes.name()),
            row.plan.components.into(),
            row.total_bits().into(),
            row.found[0].mean.into(),
            standard.into(),
            (row.total_bits() / standard).into(),
            (row.found[0].mean / standard).into(),
            row.found[1].mean.into(),
            row.found[2].mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let fewer = |row: &Row| row.found[0].mean < row.standard_total_bits();
    let wire = Spread::of(rows.iter().map(|row| row.found[1].mean / row.found[2].mean));
    vec![
        Claim::paper("the total number of bits used by DBFs at all nodes is minimized in distributed applications", "all filters together take fewer bits than standard ones (distributions)").unit("distributions")
            .stated(5.0)
            .formula(count(rows.iter().map(|row| row.total_bits() < row.standard_total_bits())))
            .simulated(count(rows.iter().map(fewer)), seeds)
            .within(0.0),
        Claim::paper("causing large transmission", "standard filters cause large transmission overhead (bytes, dynamic over standard, mean)").unit("dynamic over standard")
            .stated(1.0)
            .simulated(wire.mean, seeds)
            .note(format!(
                "large: holds if dynamic filters take a tenth less on average. Coded, they take {:.2} to \
                 {:.2} times the bytes: empty bits cost next to nothing on the wire, so that a long \
                 sparse filter is hardly longer to send. In memory the overhead is there",
                wire.low, wire.high
            ))
            .judged(wire.mean <= 0.9),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points =
        |of: fn(&Row) -> f64| (1..).zip(rows).map(|(x, row)| (f64::from(x), of(row))).collect();
    let panel = Panel::new("200 hosts", "distribution (row of the table)", "of standard filters'")
        .line("bits, formula", 0, points(|row| row.total_bits() / row.standard_total_bits()))
        .dots("bits, simulated", 0, points(|row| row.found[0].mean / row.standard_total_bits()))
        .dots("bytes on the wire", 1, points(|row| row.found[1].mean / row.found[2].mean));
    Plot::of([panel])
}
