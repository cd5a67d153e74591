//! Updates of a replicated dynamic filter: changes against sending it again.
//!
//! The paper: section 4.4. A component that changed is sent as the XOR with its last version, a
//! new one whole, all "compressed using arithmetic coding".
//!
//! Ours: components of 10,000 keys at 1 %, 55,000 keys published; then keys are added and random
//! ones removed. Bytes of the paper's way at its entropy bound (XOR coded without looking at the
//! base, new components whole), of the bound when ones and zeros of the base are coded apart, of
//! umbel's delta, which is decoded and compared, and of the whole filter.
//!
//! Left open: nothing is measured in the paper.

use umbel::codec::{AnyFilter, Decoder, encode, encode_delta};
use umbel::filter::ComponentId;
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
/// Keys added and keys removed between two updates.
const CHANGED: [(u64, u64); 8] = [
    (10, 10),
    (100, 100),
    (1000, 1000),
    (10_000, 10_000),
    (10, 0),
    (100, 0),
    (1000, 0),
    (10_000, 0),
];

struct Row {
    added: u64,
    removed: u64,
    whole: f64,
    /// Bytes: bound of the XOR, ours, whole, bound with the base known; then whether ours
    /// decoded to the new filter.
    found: [Spread; 5],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(trial);
    let shape = component();
    let full = limits::snapshot_bytes(shape, standard::fill(shape, CAPACITY));
    let half = limits::snapshot_bytes(shape, standard::fill(shape, ITEMS % CAPACITY));
    let whole = (ITEMS / CAPACITY) as f64 * full + half;
    let row =
        |((added, removed), found): ((u64, u64), [Spread; 5])| Row { added, removed, whole, found };
    let rows: Vec<Row> = CHANGED.into_iter().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn component() -> Shape {
    let shape = design::standard(CAPACITY, rate(0.01)).expect("a small filter");
    shape.with_digest_bits(DigestBits::FULL)
}

fn trial(mut random: Random) -> Vec<[f64; 5]> {
    let mut keys = Keys::new(&mut random);
    let mut start: DynamicFilter = dynamic(&keys, component(), CAPACITY);
    let members: Vec<(Digest, ComponentId)> = keys
        .draw_many(ITEMS as usize)
        .into_iter()
        .map(|digest| (digest, start.insert_digest(digest)))
        .collect();
    let published = start.to_standard();
    let each = |(added, removed): (u64, u64)| {
        let (mut filter, mut members) = (start.clone(), members.clone());
        for _ in 0..removed {
            let (digest, component) = members.swap_remove(random.below(members.len()));
            assert!(filter.remove_digest_from(component, digest), "a member is claimed");
        }
        let added = keys.draw_many(added as usize);
        filter.insert_digests(&added);
        let new = filter.to_standard();
        let delta = encode_delta(&published, &new, &added).expect("one scheme");
        let base = AnyFilter::PlainDynamic(published.clone());
        let applied = Decoder::new().apply(&base, &delta);
        let is_same = applied.is_ok_and(|applied| applied == AnyFilter::PlainDynamic(new.clone()));
        [
            bound(&published, &new, limits::blind_delta_bytes),
            delta.len() as f64,
            encode(&new).len() as f64,
            bound(&published, &new, limits::delta_bytes),
            f64::from(u8::from(is_same)),
        ]
    };
    CHANGED.map(each).to_vec()
}

/// The entropy bound of changes: of the bits that differ in a changed component, new ones whole.
fn bound(
    old: &DynamicFilter<StandardFilter>,
    new: &DynamicFilter<StandardFilter>,
    changed: fn(Flips) -> f64,
) -> f64 {
    let bytes = |(id, component): &(ComponentId, StandardFilter)| {
        let bits = component.bits();
        match old.components().iter().find(|(other, _)| other == id) {
            Some((_, before)) => changed(Flips {
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

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("added"),
        setting("removed"),
        simulated("delta_bytes", 0),
        simulated("base_known_bound_bytes", 0),
        simulated("xor_bound_bytes", 0),
        formula("whole_formula_bytes", 0),
        simulated("whole_bytes", 0),
        simulated("whole_over_delta", 1),
    ]);
    for row in rows {
        let [xor, delta, whole, known, _] = row.found.map(|found| found.mean);
        table.push([
            row.added.into(),
            row.removed.into(),
            delta.into(),
            known.into(),
            xor.into(),
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
    let thousand = rows.iter().find(|row| row.added == 1000).expect("a row of 1000");
    vec![
        Claim::paper("its previous SBF is modified suitably by computing its bitwise xor with the new update", "the receiver's XOR gives the sender's filter (percent of updates)")
            .stated(100.0)
            .simulated(100.0 * rows.iter().map(|row| row.found[4].low).fold(1.0, f64::min), seeds)
            .within(0.0),
        Claim::paper("we adopt an incremental update procedure by only sending those SBFs which are changed", "sending changes takes fewer bytes than sending the filter again (rows)").unit("rows")
            .stated(all)
            .simulated(super::count(rows.iter().map(|row| fewer(row, 2))), seeds)
            .note(format!(
                "{:.0} times fewer for {} keys of {ITEMS} replaced, {:.1} times for {}",
                first.found[2].mean / first.found[1].mean,
                first.added,
                thousand.found[2].mean / thousand.found[1].mean,
                thousand.added
            ))
            .within(0.0),
        Claim::ours("coding ones and zeros of the base apart takes fewer bytes than an XOR (rows, bounds)").unit("rows")
            .stated(all)
            .simulated(super::count(rows.iter().map(|row| row.found[3].mean < row.found[0].mean)), seeds)
            .within(0.0),
        Claim::ours("umbel's delta takes fewer bytes than the bound of the XOR (rows)").unit("rows")
            .stated(all)
            .simulated(super::count(rows.iter().map(|row| fewer(row, 0))), seeds)
            .note(
                "the real delta has 100 to 180 bytes of headers, checksums and tables, which the bound \
                 does not count: they decide for small changes, and where as many keys go as come, \
                 since the base then tells next to nothing",
            )
            .within(0.0),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |title: &str, replaced: bool| {
        let of = |i: usize| {
            let rows = rows.iter().filter(move |row| (row.removed > 0) == replaced);
            rows.map(|row| (row.added as f64, row.found[i].mean)).collect::<Vec<_>>()
        };
        Panel::new(title, "keys added", "bytes")
            .log()
            .log_x()
            .dashed("XOR, bound", 1, of(0))
            .line("base known, bound", 0, of(3))
            .dots("delta, umbel", 0, of(1))
            .dots("whole filter", 2, of(2))
    };
    Plot::of([panel("as many removed", true), panel("none removed", false)])
}
