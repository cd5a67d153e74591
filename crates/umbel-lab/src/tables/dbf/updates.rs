//! Updates of a replicated dynamic filter: changes against sending it again.
//!
//! The paper: section 4.4. A component that changed is sent as the XOR with its last version, a
//! new one whole, all "compressed using arithmetic coding".
//!
//! Ours: components of 10,000 keys at 1 %, 55,000 keys published; then some keys are added and as
//! many random ones removed. Bytes of the paper's way at its entropy bound (XOR coded without
//! looking at the base, new components whole), of umbel's delta, which is decoded and compared,
//! and of the whole filter.
//!
//! Left open: nothing is measured in the paper.

use umbel::codec::{AnyFilter, Decoder, encode, encode_delta};
use umbel::filter::ComponentId;
use umbel::model::churn::bits_of_these_only;
use umbel::model::limits::{self, Flips};
use umbel::model::standard;
use umbel::{Digest, DigestBits, DynamicFilter, Shape, StandardFilter, design};

use super::super::{formula, setting, simulated};
use super::{dynamic, rate, spreads};
use crate::Experiment;
use crate::home::Keys;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-updates",
    source: "Guo and others, paper 4, section 4.4; measured beyond it",
    title: "Updates of a dynamic filter: changes against resending",
    find,
};

const CAPACITY: u64 = 10_000;
const ITEMS: u64 = 55_000;
/// Keys added, and as many removed, between two updates.
const CHANGED: [u64; 6] = [10, 100, 1000, 3000, 10_000, 20_000];

struct Row {
    changed: u64,
    whole: f64,
    /// Bytes: the paper's way, ours, whole; then whether ours decoded to the new filter.
    found: [Spread; 4],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(trial);
    let shape = component();
    let full = limits::snapshot_bytes(shape, standard::fill(shape, CAPACITY));
    let half = limits::snapshot_bytes(shape, standard::fill(shape, ITEMS % CAPACITY));
    let whole = (ITEMS / CAPACITY) as f64 * full + half;
    let row = |(changed, found): (u64, [Spread; 4])| Row { changed, whole, found };
    let rows: Vec<Row> = CHANGED.into_iter().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn component() -> Shape {
    let shape = design::standard(CAPACITY, rate(0.01)).expect("a small filter");
    shape.with_digest_bits(DigestBits::FULL)
}

fn trial(mut random: Random) -> Vec<[f64; 4]> {
    let mut keys = Keys::new(&mut random);
    let mut start: DynamicFilter = dynamic(&keys, component(), CAPACITY);
    let members: Vec<(Digest, ComponentId)> = keys
        .draw_many(ITEMS as usize)
        .into_iter()
        .map(|digest| (digest, start.insert_digest(digest)))
        .collect();
    let published = start.to_standard();
    let each = |changed: u64| {
        let (mut filter, mut members) = (start.clone(), members.clone());
        for _ in 0..changed {
            let (digest, component) = members.swap_remove(random.below(members.len()));
            assert!(filter.remove_digest_from(component, digest), "a member is claimed");
        }
        let added = keys.draw_many(changed as usize);
        filter.insert_digests(&added);
        let new = filter.to_standard();
        let delta = encode_delta(&published, &new, &added).expect("one scheme");
        let base = AnyFilter::PlainDynamic(published.clone());
        let applied = Decoder::new().apply(&base, &delta);
        let is_same = applied.is_ok_and(|applied| applied == AnyFilter::PlainDynamic(new.clone()));
        [
            papers_bytes(&published, &new),
            delta.len() as f64,
            encode(&new).len() as f64,
            f64::from(u8::from(is_same)),
        ]
    };
    CHANGED.map(each).to_vec()
}

/// The entropy bound of section 4.4: XOR of changed components, new ones whole.
fn papers_bytes(old: &DynamicFilter<StandardFilter>, new: &DynamicFilter<StandardFilter>) -> f64 {
    let bytes = |(id, component): &(ComponentId, StandardFilter)| {
        let bits = component.bits();
        match old.components().iter().find(|(other, _)| other == id) {
            Some((_, before)) => limits::blind_delta_bytes(Flips {
                zeros: (bits.len() - before.bits().ones()) as f64,
                ones: before.bits().ones() as f64,
                set: bits.count_beyond(before.bits()) as f64,
                cleared: before.bits().count_beyond(bits) as f64,
            }),
            None => limits::snapshot_bytes(*new.scheme().shape(), bits.fill()),
        }
    };
    new.components().iter().map(bytes).sum()
}

/// Bits of the keys removed and added in a component that held `CAPACITY`, by formula.
fn flips(changed: u64) -> Flips {
    let (shape, each) = (component(), changed as f64 * CAPACITY as f64 / ITEMS as f64);
    let ones = standard::fill(shape, CAPACITY) * shape.bits() as f64;
    let kept = CAPACITY as f64 - each;
    Flips {
        zeros: shape.bits() as f64 - ones,
        ones,
        set: bits_of_these_only(shape, CAPACITY as f64, each),
        cleared: bits_of_these_only(shape, kept + each, each),
    }
}

/// All components changed alike: what the delta of umbel may take at best.
fn expected(changed: u64) -> f64 {
    limits::delta_bytes(flips(changed)) * ITEMS as f64 / CAPACITY as f64
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("changed"),
        formula("delta_formula_bytes", 0),
        simulated("delta_bytes", 0),
        simulated("papers_bound_bytes", 0),
        formula("whole_formula_bytes", 0),
        simulated("whole_bytes", 0),
        simulated("whole_over_delta", 1),
    ]);
    for row in rows {
        let [papers, delta, whole, _] = row.found.map(|found| found.mean);
        table.push([
            row.changed.into(),
            expected(row.changed).into(),
            delta.into(),
            papers.into(),
            row.whole.into(),
            whole.into(),
            (whole / delta).into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let all = rows.len() as f64;
    let fewer = |row: &Row, than: usize| row.found[1].mean < row.found[than].mean;
    let first = rows.first().expect("there are rows");
    let thousand = rows.iter().find(|row| row.changed == 1000).expect("a row of 1000");
    vec![
        Claim::about("the receiver's XOR gives the sender's filter (percent of updates)")
            .stated(100.0)
            .simulated(100.0 * rows.iter().map(|row| row.found[3].low).fold(1.0, f64::min), seeds)
            .within(0.0),
        Claim::about("sending changes takes fewer bytes than sending the filter again (rows)")
            .stated(all)
            .simulated(super::count(rows.iter().map(|row| fewer(row, 2))), seeds)
            .note(format!(
                "{:.0} times fewer for {} keys of {ITEMS} changed, {:.1} times for {}",
                first.found[2].mean / first.found[1].mean,
                first.changed,
                thousand.found[2].mean / thousand.found[1].mean,
                thousand.changed
            ))
            .within(0.0),
        Claim::about("umbel's delta takes fewer bytes than the bound of the paper's coding (ours; rows)")
            .stated(all)
            .simulated(super::count(rows.iter().map(|row| fewer(row, 0))), seeds)
            .note("by formula it would (first column), since ones and zeros of the base are coded apart, which an XOR alone cannot do; but the real delta has headers, checksums and tables, some 25 to 75 bytes a component, which the bound of the XOR does not count")
            .within(0.0),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let points = |i: usize| rows.iter().map(|r| (r.changed as f64, r.found[i].mean)).collect();
    let panel = Panel::new("55,000 keys in 6 components", "keys added and removed", "bytes")
        .log()
        .log_x()
        .line(
            "delta, bound",
            0,
            rows.iter().map(|r| (r.changed as f64, expected(r.changed))).collect(),
        )
        .dots("delta, umbel", 0, points(1))
        .dashed("XOR of the paper, bound", 1, points(0))
        .dots("whole filter", 2, points(2));
    Plot::of([panel])
}
