//! Slides "Bloom Filter Design" to "Optimal h": how often the filter errs.
//!
//! The paper: `p(u) = (1-1/n)^u · [1-(1-1/m)^(uh)]^h ~ e^(-u/n) (1-e^(-uh/m))^h`, for n ≫ u; the best
//! h is `(ln 2) m/u`: 1.386 for m = 10^6, u = 10^6/2 ("use h = 1 or h = 2"), 2.772 for m = 2·10^6 ("use h = 2 or
//! h = 3"). The example: m = 11, `f1 = k mod 11`, `f2 = 2k mod 11`, keys 15 and 17; key 6 is a filter error.
//!
//! Ours: a tenth of the slides' sizes (m = 10^5 and 2·10^5, u = 5·10^4) over five million
//! records, h from 1 to 6; then up to 150,000 updates of 100,000 records, where n ≫ u fails: a
//! record that changes again sets no new bits, so that the filter holds `n (1-(1-1/n)^u)` keys.
//!
//! Left open: n.

use std::collections::BTreeSet;

use umbel::model::differential::{
    Files, best_hashes, best_whole_hashes, filter_error_exact, filter_error_of_changed,
};
use umbel::{Shape, StandardFilter};

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sahni-filter-error",
    source: "Sahni, paper 2, slides \"Bloom Filter Design\", \"Example\", \"Probability Of Filter Error\", \"Optimal h\"",
    title: "Filter errors over hash functions and over updates",
    find,
};

const LENGTHS: [u64; 2] = [100_000, 200_000];
const UPDATES: u64 = 50_000;
const MANY: u64 = 5_000_000;
const MAX_HASHES: u32 = 6;
/// Records that are changed again and again.
const FEW: u64 = 100_000;
const FEW_SHAPE: (u64, u32) = (500_000, 5);
const OVER: [u64; 8] = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 150_000];

#[derive(Clone, Copy)]
struct Setup {
    shape: Shape,
    files: Files,
}

struct Row {
    setup: Setup,
    slides: f64,
    changed: f64,
    found: Spread,
}

fn over_hashes() -> impl Iterator<Item = Setup> {
    let files = Files { records: MANY, updates: UPDATES };
    LENGTHS.into_iter().flat_map(move |bits| {
        (1..=MAX_HASHES).map(move |hashes| Setup { shape: shape(bits, hashes), files })
    })
}

fn over_updates() -> impl Iterator<Item = Setup> {
    OVER.into_iter().map(|updates| Setup {
        shape: shape(FEW_SHAPE.0, FEW_SHAPE.1),
        files: Files { records: FEW, updates },
    })
}

fn find(bench: &Bench<'_>) -> Findings {
    let asked = bench.asked() / 2;
    let trials = bench.trials(|random| trial(random, asked));
    let row = |(i, setup): (usize, Setup)| Row {
        setup,
        slides: 100.0 * filter_error_exact(setup.shape, setup.files),
        changed: 100.0 * filter_error_of_changed(setup.shape, setup.files),
        found: Spread::of(trials.iter().map(|trial| trial[i])).percent(),
    };
    let rows: Vec<Row> = over_hashes().chain(over_updates()).enumerate().map(row).collect();
    let claims = claims(&rows, Sampling { asked, ..bench.sampling() });
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn trial(mut random: Random, asked: usize) -> Vec<f64> {
    let keys = Keys::new(&mut random);
    let mut errors = Vec::new();
    let mut many = Updated::new(MANY);
    many.update(&mut random, UPDATES);
    for setup in over_hashes() {
        let filter = many.filter(keys.standard(setup.shape), 0);
        errors.push(many.errors(&filter, &mut random, asked));
    }
    let mut few = Updated::new(FEW);
    let mut filter = keys.standard(shape(FEW_SHAPE.0, FEW_SHAPE.1));
    for updates in OVER {
        let before = few.updates.len();
        few.update(&mut random, updates);
        filter = few.filter(filter, before);
        errors.push(few.errors(&filter, &mut random, asked));
    }
    errors
}

/// Records, of which some are changed.
struct Updated {
    changed: Vec<bool>,
    /// The record of every update.
    updates: Vec<u64>,
}

impl Updated {
    fn new(records: u64) -> Self {
        Self { changed: vec![false; records as usize], updates: Vec::new() }
    }

    fn update(&mut self, random: &mut Random, updates: u64) {
        while (self.updates.len() as u64) < updates {
            let record = random.below(self.changed.len());
            self.changed[record] = true;
            self.updates.push(record as u64);
        }
    }

    /// The filter with the updates from this one on.
    fn filter(&self, mut filter: StandardFilter, from: usize) -> StandardFilter {
        for record in &self.updates[from..] {
            filter.insert(record.to_le_bytes());
        }
        filter
    }

    /// The share of requests for random records that are unchanged and claimed.
    fn errors(&self, filter: &StandardFilter, random: &mut Random, asked: usize) -> f64 {
        let errs = |_: &usize| {
            let record = random.below(self.changed.len());
            !self.changed[record] && filter.contains((record as u64).to_le_bytes())
        };
        (0..asked).filter(errs).count() as f64 / asked as f64
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("bits"),
        setting("hashes"),
        setting("records"),
        setting("updates"),
        formula("p_of_u_percent", 4),
        formula("p_of_changed_percent", 4),
        simulated("simulated_percent", 4),
        simulated("simulated_low_percent", 4),
        simulated("simulated_high_percent", 4),
    ]);
    for row in rows {
        table.push([
            row.setup.shape.bits().into(),
            row.setup.shape.hashes().into(),
            row.setup.files.records.into(),
            row.setup.files.updates.into(),
            row.slides.into(),
            row.changed.into(),
            row.found.mean.into(),
            row.found.low.into(),
            row.found.high.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let (by_hashes, by_updates) = rows.split_at(rows.len() - OVER.len());
    let of = |bits: u64| by_hashes.iter().filter(move |row| row.setup.shape.bits() == bits);
    let best =
        |bits: u64| of(bits).min_by(|a, b| a.found.mean.total_cmp(&b.found.mean)).expect("rows");
    let at = |bits: u64, hashes: u32| {
        of(bits).find(|row| row.setup.shape.hashes() == hashes).expect("a row")
    };
    let mut claims = Vec::new();
    for (bits, stated, quote, neighbours) in [
        (LENGTHS[0], 1.386, "Use h = 1 or h = 2", [1, 2]),
        (LENGTHS[1], 2.772, "Use h = 2 or h = 3", [2, 3]),
    ] {
        let found = best(bits).setup.shape.hashes();
        claims.push(
            Claim::paper("0.693m/u", format!("m/u = {}: best h", bits / UPDATES))
                .unit("hashes")
                .stated(stated)
                .formula(best_hashes(bits, UPDATES))
                .note("the slides cut 2.77259 to 2.772")
                .within(0.001),
        );
        claims.push(
            Claim::paper(
                quote,
                format!("m/u = {}: h with the fewest filter errors", bits / UPDATES),
            )
            .unit("hashes")
            .formula(best_whole_hashes(bits, UPDATES) as f64)
            .simulated(found.into(), seeds)
            .note(format!(
                "{} hashes {:.2} %, {} hashes {:.2} %",
                neighbours[0],
                at(bits, neighbours[0]).found.mean,
                neighbours[1],
                at(bits, neighbours[1]).found.mean
            ))
            .judged(neighbours.contains(&found)),
        );
    }
    let longer = |hashes| at(LENGTHS[1], hashes).found.mean < at(LENGTHS[0], hashes).found.mean;
    claims.push(
        Claim::paper("fewer filter errors", "twice the bits, the same h: fewer errors (rows)")
            .unit("rows")
            .stated(MAX_HASHES.into())
            .simulated((1..=MAX_HASHES).filter(|h| longer(*h)).count() as f64, seeds)
            .within(0.0),
    );
    claims.push(
        Claim::paper(
            "filter becomes filled with ones too soon",
            "h too large: 6 hashes of m/u = 2 err more often than the best",
        )
        .stated(at(LENGTHS[0], best_whole_hashes(LENGTHS[0], UPDATES) as u32).slides)
        .formula(at(LENGTHS[0], MAX_HASHES).slides)
        .simulated(at(LENGTHS[0], MAX_HASHES).found.mean, seeds)
        .above(),
    );
    claims.push(close(
        Claim::paper(
            "probability of a filter error after u updates",
            "p(u), as long as n is at least ten times u",
        ),
        VERY_CLOSE,
        rows.iter().filter(|row| is_small(row)).map(|row| (row.slides, row.found)),
        sampling,
    ));
    claims.push(close(
        Claim::ours("p(u) of the records that are changed, each once, however many updates"),
        VERY_CLOSE,
        rows.iter().map(|row| (row.changed, row.found)),
        sampling,
    ));
    let last = by_updates.last().expect("rows");
    claims.push(
        Claim::ours(
            "p(u) holds without n ≫ u: 150,000 updates of 100,000 records (formula: p(u); stated: of \
             the records that are changed)",
        )
        .stated(last.changed)
        .formula(last.slides)
        .simulated(last.found.mean, seeds)
        .note("the slides assume n ≫ u, where the two are the same")
        .judged((last.slides - last.found.mean).abs() <= VERY_CLOSE * last.slides),
    );
    claims.extend(example());
    claims
}

fn is_small(row: &Row) -> bool {
    10 * row.setup.files.updates <= row.setup.files.records
}

/// The worked example, with the slides' own hash functions.
fn example() -> [Claim; 2] {
    let signature = |key: u64| [key % 11, 2 * key % 11];
    let bits: BTreeSet<u64> = [15, 17].into_iter().flat_map(signature).collect();
    let picture: BTreeSet<u64> = [1, 4, 6, 8].into();
    let claims_key = |key: u64| signature(key).iter().all(|bit| bits.contains(bit));
    let errors: Vec<u64> =
        (0..22).filter(|key| ![15, 17].contains(key) && claims_key(*key)).collect();
    [
        Claim::paper(
            "DI has",
            "the example, keys 15 and 17: bits that are set in the picture (1, 4, 6, 8) and no others",
        )
        .unit("bits")
        .stated(4.0)
        .formula(bits.intersection(&picture).count() as f64)
        .judged(bits == picture),
        Claim::paper("filter error", "the example: key 6 is a filter error")
            .unit("")
            .stated(1.0)
            .formula(f64::from(u8::from(claims_key(6))))
            .note(format!("filter errors among the keys 0 to 21: {errors:?}"))
            .within(0.0),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let (by_hashes, by_updates) = rows.split_at(rows.len() - OVER.len());
    let mut hashes = Panel::new("m/u = 2 and 4", "hashes h", "filter errors, %");
    for (colour, bits) in LENGTHS.into_iter().enumerate() {
        let of = |y: fn(&Row) -> f64| {
            let rows = by_hashes.iter().filter(|row| row.setup.shape.bits() == bits);
            rows.map(|row| (row.setup.shape.hashes().into(), y(row))).collect()
        };
        hashes = hashes
            .line(&format!("m/u = {}, p(u)", bits / UPDATES), colour, of(|row| row.slides))
            .dots(
                &format!("m/u = {}, simulated", bits / UPDATES),
                colour,
                of(|row| row.found.mean),
            );
    }
    let of = |y: fn(&Row) -> f64| {
        by_updates.iter().map(|row| (row.setup.files.updates as f64, y(row))).collect()
    };
    let updates =
        Panel::new("100,000 records, m = 500,000, h = 5", "updates u", "filter errors, %")
            .line("p(u) of the slides, n ≫ u", 0, of(|row| row.slides))
            .dashed("p of the records changed", 2, of(|row| row.changed))
            .dots("simulated", 2, of(|row| row.found.mean));
    Plot::of([hashes, updates])
}
