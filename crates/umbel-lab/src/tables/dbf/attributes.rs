//! Keys with attributes: how often a question that no key answers is claimed.
//!
//! The paper: names multi-dimension dynamic filters (section 3.5.2) without saying more; they
//! are those of its conference version: a filter for each attribute, and one more for the
//! dependency between them.
//!
//! Ours: 2000 keys of three attributes with 2000, 1000 and 500 distinct values, filters made for
//! 20 % (with all eight components full; here one is). Questions with values that no key has, and with values of different keys. By formula
//! `Π f_i · f_c` over the values that no key has, with `f_c` where the combination is checked;
//! the rates are those of the fills.
//!
//! Left open: everything but the idea.

use umbel::filter::{Answer, AttributeFilter, Combinations};

use super::super::closeness::{VERY_CLOSE, close};
use super::super::{setting, simulated};
use super::spreads;
use crate::Experiment;
use crate::home::Keys;
use crate::plan::{Bench, Sampling};
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-attributes",
    source: "Guo and others, paper 4, section 3.5.2 (MDDBF); measured beyond it",
    title: "Keys with attributes: combinations that were never there",
    find,
};

const NAMES: [&str; 3] = ["object", "folder", "owner"];
const KEYS: u64 = 2000;
const PROMISE: f64 = 0.2;

/// The queries: attributes with values that no key has, and attributes with values of different
/// keys.
const QUESTIONS: [(&str, &[usize], &[usize]); 7] = [
    ("object unknown", &[0], &[]),
    ("folder unknown", &[1], &[]),
    ("object, folder unknown", &[0, 1], &[]),
    ("object unknown, owner known", &[0], &[2]),
    ("object, folder of different keys", &[], &[0, 1]),
    ("folder, owner of different keys", &[], &[1, 2]),
    ("all three of different keys", &[], &[0, 1, 2]),
];

const CHECKED: [(&str, Combinations); 2] =
    [("every combination", Combinations::Every), ("whole keys", Combinations::Whole)];

struct Row {
    checked: &'static str,
    question: &'static str,
    /// Claimed by formula from the fills; claimed in simulation; share of members denied.
    found: [Spread; 3],
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked() / 4));
    let setups = CHECKED.into_iter().flat_map(|(checked, _)| {
        QUESTIONS.into_iter().map(move |(question, ..)| (checked, question))
    });
    let row = |((checked, question), found)| Row { checked, question, found };
    let rows: Vec<Row> = setups.zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, Sampling { asked: bench.asked() / 4, ..bench.sampling() });
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

/// The value of an attribute of a key.
fn value(key: u64, attribute: usize) -> [u8; 8] {
    [key, key / 2, key / 4][attribute].to_le_bytes()
}

fn trial(mut random: Random, asked: usize) -> Vec<[f64; 3]> {
    let hasher = *Keys::new(&mut random).scheme(crate::home::shape(64, 1)).hasher();
    let mut rows = Vec::new();
    for (_, checked) in CHECKED {
        let set = AttributeFilter::with_hasher(&NAMES, checked, (KEYS, PROMISE), hasher);
        let mut set = set.expect("three names");
        for key in 0..KEYS {
            set.insert(&[0, 1, 2].map(|i| value(key, i))).expect("three values");
        }
        for (_, unknown, known) in QUESTIONS {
            let names = |which: &[usize]| which.iter().map(|i| NAMES[*i]).collect::<Vec<_>>();
            let formula = set.false_positive(&names(unknown), &names(known)).expect("known names");
            let wrong = (0..asked).filter(|_| claims_vainly(&set, &mut random, unknown, known));
            let wrong = wrong.count() as f64 / asked as f64;
            let denied = (0..KEYS).filter(|key| denies(&set, *key, unknown, known)).count();
            rows.push([100.0 * formula, 100.0 * wrong, denied as f64]);
        }
    }
    rows
}

/// Whether a query that no key matches is claimed.
fn claims_vainly(
    set: &AttributeFilter,
    random: &mut Random,
    unknown: &[usize],
    known: &[usize],
) -> bool {
    let mut question: Vec<(&str, [u8; 8])> = Vec::new();
    for attribute in unknown {
        question.push((NAMES[*attribute], (random.next() | 1 << 63).to_le_bytes()));
    }
    // Take the values from keys that are about `KEYS / 4` apart, so that no key has all of them.
    let first = random.below(KEYS as usize) as u64;
    for (i, attribute) in known.iter().enumerate() {
        let key = (first + (i as u64) * (KEYS / 4) + random.below(100) as u64) % KEYS;
        question.push((NAMES[*attribute], value(key, *attribute)));
    }
    set.ask(&question).expect("known names") != Answer::No
}

/// Whether a query that this key matches is denied.
fn denies(set: &AttributeFilter, key: u64, unknown: &[usize], known: &[usize]) -> bool {
    let asked = unknown.iter().chain(known);
    let question: Vec<_> = asked.map(|i| (NAMES[*i], value(key, *i))).collect();
    set.ask(&question).expect("known names") == Answer::No
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("checked"),
        setting("question"),
        simulated("formula_percent", 4),
        simulated("claimed_percent", 4),
        simulated("claimed_low_percent", 4),
        simulated("claimed_high_percent", 4),
        simulated("members_denied", 0),
    ]);
    for row in rows {
        table.push([
            Cell::from(row.checked),
            row.question.into(),
            row.found[0].mean.into(),
            row.found[1].mean.into(),
            row.found[1].low.into(),
            row.found[1].high.into(),
            row.found[2].high.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], sampling: Sampling) -> Vec<Claim> {
    let seeds = sampling.seeds;
    let of = |checked: &'static str| rows.iter().filter(move |row| row.checked == checked);
    let invented = |checked| of(checked).find(|row| row.question == QUESTIONS[4].0).expect("a row");
    let (every, whole) = (invented(CHECKED[0].0), invented(CHECKED[1].0));
    let whole_key = of(CHECKED[1].0).next_back().expect("a row");
    let denied = rows.iter().map(|row| row.found[2].high).fold(0.0, f64::max);
    vec![
        Claim::ours("a question that some key answers is never denied (denied)")
            .stated(0.0)
            .simulated(denied, seeds)
            .within(0.0),
        Claim::ours("combinations of values of different keys are claimed no more often than promised")
            .stated(100.0 * PROMISE)
            .simulated(every.found[1].mean, seeds)
            .judged(every.found[1].mean <= 100.0 * PROMISE),
        Claim::ours("with whole keys checked, invented keys are claimed no more often than promised")
            .stated(100.0 * PROMISE)
            .simulated(whole_key.found[1].mean, seeds)
            .judged(whole_key.found[1].mean <= 100.0 * PROMISE),
        Claim::ours("one filter for whole keys tells parts of keys from invented ones too")
            .stated(100.0 * PROMISE)
            .simulated(whole.found[1].mean, seeds)
            .note("it cannot: the answer is then \"apart\", each value exists; keeping every combination can")
            .judged(whole.found[1].mean <= 100.0 * PROMISE),
        close(Claim::ours("the product of the rates of the filters"), VERY_CLOSE, rows.iter().map(|row| (row.found[0].mean, row.found[1])), sampling),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |(checked, _): (&'static str, Combinations)| {
        let of = || (1..).zip(rows.iter().filter(move |row| row.checked == checked));
        let points = |i: usize| of().map(|(x, row)| (f64::from(x), row.found[i].mean)).collect();
        Panel::new(format!("{checked} checked"), "question (row of the table)", "claimed, %")
            .log()
            .dashed("product of the rates", 0, points(0))
            .dots("claimed", 1, points(1))
    };
    Plot::of(CHECKED.map(panel))
}
