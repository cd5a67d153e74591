//! Sets of unknown size: how often a filter must be rebuilt between two limits.
//!
//! The paper: section 4.3. Starting with a guess n0 at rate ε, a filter is rebuilt before its rate
//! passes γ: the standard one past `n0 ln ε / ln γ` keys, the dynamic one past
//! `n0·ceil(ln(1-γ)/ln(1-ε))`. "The adjustment frequency of DBF is lower than that of SBF".
//!
//! Ours: n0 = 500, ε = 0.01, γ = 0.1, a set that grows to 100,000 keys; after a rebuild the filter
//! is made for the keys it holds. Standard filters at the paper's limit and at the true one,
//! `-(m/k) ln(1 - γ^(1/k))`; dynamic ones at the paper's limit and as `ElasticFilter` does. The
//! rate that was measured just before each rebuild, on average.
//!
//! Left open: by how much n0 grows at a rebuild ("at least").

use umbel::design::dynamic::unbounded;
use umbel::{DigestBits, DynamicFilter, StandardFilter, design};

use super::super::{formula, setting, simulated};
use super::{claimed, rate, spreads};
use crate::Experiment;
use crate::home::Keys;
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-unbounded",
    source: "Guo and others, paper 4, section 4.3",
    title: "Sets of unknown size: rebuilds between two limits",
    find,
};

const GUESS: u64 = 500;
const LEFT: f64 = 0.01;
const RIGHT: f64 = 0.1;
const ITEMS: u64 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    PapersStandard,
    Standard,
    PapersDynamic,
    Dynamic,
}

const WAYS: [(&str, Way); 4] = [
    ("standard, paper's limit", Way::PapersStandard),
    ("standard, true limit", Way::Standard),
    ("dynamic, paper's limit", Way::PapersDynamic),
    ("dynamic, limit kept", Way::Dynamic),
];

impl Way {
    /// Maximum number of keys of a filter that was designed for `guess` keys.
    fn limit(self, guess: u64) -> u64 {
        let plan = unbounded(guess, rate(LEFT), rate(RIGHT)).expect("limits in order");
        (match self {
            Self::PapersStandard => plan.papers_standard_rebuild_at,
            Self::Standard => plan.standard_rebuild_at,
            Self::PapersDynamic => plan.papers_dynamic_rebuild_at,
            Self::Dynamic => plan.dynamic_rebuild_at,
        }) as u64
    }

    const fn is_dynamic(self) -> bool {
        matches!(self, Self::PapersDynamic | Self::Dynamic)
    }

    /// The limits of the filters that a growing set goes through.
    fn limits(self) -> Vec<u64> {
        let mut limits = vec![self.limit(GUESS)];
        while let Some(last) = limits.last().copied().filter(|last| *last < ITEMS) {
            limits.push(self.limit(last + 1));
        }
        limits
    }

    /// The rate at the limit of the first filter, percent.
    fn formula(self) -> f64 {
        let shape = design::standard_by_formula(GUESS, rate(LEFT)).expect("a small filter");
        let items = self.limit(GUESS);
        100.0
            * if self.is_dynamic() {
                let component = umbel::model::dynamic::Component::new(shape, GUESS);
                umbel::model::dynamic::false_positive(component, items)
            } else {
                umbel::model::standard::false_positive(shape, items)
            }
    }
}

struct Row {
    name: &'static str,
    way: Way,
    rebuilds: u64,
    rebuilt_keys: u64,
    found: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked() / 4));
    let row = |((name, way), [found]): ((&'static str, Way), [Spread; 1])| {
        let limits = way.limits();
        let rebuilds = limits.len() as u64 - 1;
        let rebuilt_keys = limits[..rebuilds as usize].iter().sum();
        Row { name, way, rebuilds, rebuilt_keys, found }
    };
    let rows: Vec<Row> = WAYS.into_iter().zip(spreads(&trials)).map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

/// The rate just before a rebuild, mean of all rebuilds.
fn trial(mut random: Random, asked: usize) -> Vec<[f64; 1]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let each = |(_, way): (&str, Way)| {
        let limits = way.limits();
        let mut guess = GUESS;
        let mut rates = Vec::new();
        for limit in &limits[..limits.len() - 1] {
            let shape = design::standard_by_formula(guess, rate(LEFT)).expect("a small filter");
            let shape = shape.with_digest_bits(DigestBits::FULL);
            let capacity = if way.is_dynamic() { guess } else { u64::MAX };
            let mut filter: DynamicFilter<StandardFilter> = super::dynamic(&keys, shape, capacity);
            filter.insert_digests(&keys.draw_many(*limit as usize));
            rates.push(claimed(&asked, |key| filter.contains_digest(key)));
            guess = limit + 1;
        }
        [Spread::of(rates).mean]
    };
    WAYS.into_iter().map(each).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("way"),
        formula("first_limit_keys", 0),
        formula("rebuilds", 0),
        formula("rebuilt_keys", 0),
        formula("rate_at_limit_percent", 3),
        simulated("rate_before_rebuild_percent", 3),
    ]);
    for row in rows {
        table.push([
            Cell::from(row.name),
            row.way.limit(GUESS).into(),
            row.rebuilds.into(),
            row.rebuilt_keys.into(),
            row.way.formula().into(),
            row.found.mean.into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let of = |way: Way| rows.iter().find(|row| row.way == way).expect("a row for every way");
    let keeps = |way: Way, quote: &'static str, what: &str, note: &str| {
        let row = of(way);
        let what = format!("{what} (rate there)");
        let error = 4.0 * row.found.standard_error();
        if quote.is_empty() { Claim::ours(what) } else { Claim::paper(quote, what) }
            .stated(100.0 * RIGHT)
            .formula(row.way.formula())
            .simulated(row.found.mean, seeds)
            .note(note)
            .judged(
                row.way.formula() <= 100.0 * RIGHT
                    && row.found.mean <= 100.0 * RIGHT * 1.02 + error,
            )
    };
    let close = unbounded(GUESS, rate(LEFT), rate(1.1 * LEFT));
    let close = close.expect("limits in order");
    let far = unbounded(GUESS, rate(LEFT), rate(RIGHT)).expect("in order");
    let more = |plan: umbel::design::dynamic::Unbounded| {
        plan.dynamic_rebuild_at / plan.standard_rebuild_at
    };
    vec![
        Claim::paper(
            "the benefit of our approach using left and right bounds on the false match probability becomes trivial",
            "γ = 1.1 ε: keys that a dynamic filter carries before it is rebuilt, over those of a standard one",
        )
        .unit("times")
        .stated(1.0)
        .formula(more(close))
        .note(format!(
            "trivial: at most a tenth more; with γ = 10 ε it carries {:.1} times as many. umbel plan \
             unbounded then says that the standard filter is the better one, and names the plan of section 4.2",
            more(far)
        ))
        .judged(more(close) <= 1.1),
        Claim::paper(
            "the adjustment frequency of DBF is lower than that of SBF",
            "dynamic filters are rebuilt less often (stated: standard; formula: dynamic)",
        )
        .unit("rebuilds")
        .stated(of(Way::Standard).rebuilds as f64)
        .formula(of(Way::Dynamic).rebuilds as f64)
        .judged(of(Way::Dynamic).rebuilds < of(Way::Standard).rebuilds),
        keeps(
            Way::PapersStandard,
            "the false match probability exceeds … once the set cardinality is greater than",
            "a standard filter keeps the right limit up to n0 ln ε / ln γ keys",
            "that form chooses k anew for every n; a filter's k stays what it was",
        ),
        keeps(
            Way::Standard,
            "",
            "a standard filter keeps it up to -(m/k) ln(1 - γ^(1/k)) keys",
            "",
        ),
        keeps(
            Way::PapersDynamic,
            "The false match probability exceeds … once the set cardinality is greater than",
            "a dynamic filter keeps it up to n0·ceil(ln(1-γ)/ln(1-ε)) keys",
            "rounded up, the last component is one too many",
        ),
        keeps(
            Way::Dynamic,
            "",
            "a dynamic filter keeps it up to n0·floor(ln(1-γ)/ln(1-ε)) keys",
            "",
        ),
    ]
}

fn plot(rows: &[Row]) -> Plot {
    let mut panel = Panel::new("growing from 500 to 100,000 keys", "rebuild", "keys rebuilt").log();
    for (colour, row) in rows.iter().enumerate() {
        let limits = row.way.limits();
        let points = limits[..limits.len() - 1].iter().zip(1..);
        panel =
            panel.line(row.name, colour, points.map(|(n, i)| (f64::from(i), *n as f64)).collect());
    }
    Plot::of([panel])
}
