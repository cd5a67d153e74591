//! Equation 11: k positions from two random numbers, against k independent ones.
//!
//! The paper: `h_i(x) = (g1(x) + i·g2(x)) mod m`; "Kirsch and Mitzenmacher show that this method does
//! not increase the probability of false positives".
//!
//! Ours: filters of 64 to 20,480 bits filled to a rate of 1 % (9.6 bits a key, 7 hashes) and of 0.01 % (19.2
//! bits, 13 hashes): independent positions, equation 11 as printed, and the positions of umbel's
//! filters, whose step changes from position to position. New keys for every thousand that are asked.
//!
//! Left open: the text speaks of all sizes; the theorem that it cites is about long filters.

use umbel::Shape;
use umbel::model::standard;

use super::super::{Column, formula, setting, simulated};
use crate::Experiment;
use crate::home::{Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Origin, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dbf-hashing",
    source: "Guo and others, paper 4, equation 11",
    title: "Rates of filters whose positions come from two numbers",
    find,
};

const BITS: [u64; 6] = [64, 160, 320, 1280, 5120, 20_480];
/// Bits a key in tenths, and hashes.
const FILLS: [(u64, u32); 2] = [(96, 7), (192, 13)];
/// Random keys asked of one filter.
const ASKED: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Independent,
    Double,
    Umbel,
}

impl Way {
    const ALL: [Self; 3] = [Self::Independent, Self::Double, Self::Umbel];

    /// Calls `each` with the positions of a random key until it returns `false`.
    fn positions(
        self,
        random: &mut Random,
        keys: &mut Keys,
        shape: Shape,
        mut each: impl FnMut(usize) -> bool,
    ) {
        let bits = shape.bits() as usize;
        match self {
            Self::Independent => _ = (0..shape.hashes()).all(|_| each(random.below(bits))),
            Self::Double => {
                let (first, step) = (random.below(bits), random.below(bits));
                _ = (0..shape.hashes() as usize).all(|i| each((first + i * step) % bits));
            }
            Self::Umbel => _ = keys.draw().positions(&shape).all(|at| each(at as usize)),
        }
    }

    fn rate(
        self,
        random: &mut Random,
        keys: &mut Keys,
        shape: Shape,
        items: u64,
        rounds: usize,
    ) -> f64 {
        let mut claimed = 0_u64;
        for _ in 0..rounds {
            let mut bits = vec![false; shape.bits() as usize];
            for _ in 0..items {
                self.positions(random, keys, shape, |at| {
                    bits[at] = true;
                    true
                });
            }
            for _ in 0..ASKED {
                let mut is_claimed = true;
                self.positions(random, keys, shape, |at| {
                    is_claimed = bits[at];
                    is_claimed
                });
                claimed += u64::from(is_claimed);
            }
        }
        claimed as f64 / (rounds * ASKED) as f64
    }
}

struct Row {
    shape: Shape,
    items: u64,
    formula: f64,
    found: [Spread; 3],
}

fn setups() -> impl Iterator<Item = (Shape, u64)> {
    FILLS.into_iter().flat_map(|(tenths, hashes)| {
        BITS.into_iter().map(move |bits| (shape(bits, hashes), (10 * bits).div_ceil(tenths)))
    })
}

fn find(bench: &Bench<'_>) -> Findings {
    let rounds = (bench.asked() / ASKED).max(1);
    let trials = bench.trials(|mut random| {
        let mut keys = Keys::new(&mut random);
        let mut rates = |(shape, items): (Shape, u64)| {
            // Long filters take more time to fill, and their rates vary less: fewer rounds are
            // enough.
            let rounds = if shape.bits() > 2000 { rounds.div_ceil(4) } else { rounds };
            Way::ALL.map(|way| way.rate(&mut random, &mut keys, shape, items, rounds))
        };
        setups().map(&mut rates).collect::<Vec<_>>()
    });
    let row = |(i, (shape, items)): (usize, (Shape, u64))| Row {
        shape,
        items,
        formula: 100.0 * standard::false_positive(shape, items),
        found: [0, 1, 2].map(|way| Spread::of(trials.iter().map(|trial| trial[i][way])).percent()),
    };
    let rows: Vec<Row> = setups().enumerate().map(row).collect();
    let claims = claims(&rows, bench.seeds());
    Findings { table: table(&rows), claims, plot: plot(&rows) }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("bits"),
        setting("hashes"),
        setting("keys"),
        formula("formula_percent", 5),
        simulated("independent_percent", 5),
        simulated("equation_11_percent", 5),
        simulated("umbel_percent", 5),
        Column::new(Origin::Simulated, "equation_11_over_independent", 2),
        Column::new(Origin::Simulated, "umbel_over_independent", 2),
    ]);
    for row in rows {
        let [independent, double, umbel] = row.found.map(|found| found.mean);
        table.push([
            row.shape.bits().into(),
            row.shape.hashes().into(),
            row.items.into(),
            row.formula.into(),
            independent.into(),
            double.into(),
            umbel.into(),
            (double / independent).into(),
            (umbel / independent).into(),
        ]);
    }
    table
}

fn claims(rows: &[Row], seeds: u64) -> Vec<Claim> {
    let over = |row: &Row, way: usize| row.found[way].mean / row.found[0].mean;
    let at = |bits: u64, hashes: u32| {
        let is = |row: &&Row| (row.shape.bits(), row.shape.hashes()) == (bits, hashes);
        rows.iter().find(is).expect("a row")
    };
    const QUOTE: &str = "this method does not increase the probability of false positives";
    let claim = |row: &Row, way: usize, draft: crate::report::Draft| {
        let error = row.found[way].error_of_difference(&row.found[0]);
        draft
            .unit("times")
            .stated(1.0)
            .simulated(over(row, way), seeds)
            .note("holds if within a tenth and three standard errors")
            .judged(row.found[way].mean <= 1.1 * row.found[0].mean + 3.0 * error)
    };
    vec![
        claim(
            at(20_480, 7),
            1,
            Claim::paper(
                QUOTE,
                "20,480 bits, 1 %: rate of equation 11 over that of independent positions",
            ),
        ),
        claim(
            at(1280, 7),
            1,
            Claim::paper(QUOTE, "1,280 bits, 1 %, the paper's components: the same"),
        ),
        claim(at(320, 7), 1, Claim::paper(QUOTE, "320 bits, 1 %: the same").finding(SHORT)),
        claim(at(1280, 13), 1, Claim::paper(QUOTE, "1,280 bits, 0.01 %: the same").finding(SHORT)),
        claim(
            at(1280, 7),
            2,
            Claim::ours(
                "1,280 bits, 1 %: rate of umbel's filters over that of independent positions",
            ),
        ),
        claim(at(1280, 13), 2, Claim::ours("1,280 bits, 0.01 %: the same")),
    ]
}

/// What short filters show together.
const SHORT: &str = "equation 11 claims more strangers than independent positions do where filters are short or rates small";

fn plot(rows: &[Row]) -> Plot {
    let panel = |(tenths, hashes): (u64, u32)| {
        let title = format!("{} bits a key, k = {hashes}", tenths as f64 / 10.0);
        let of = |way: usize| {
            let rows = rows.iter().filter(|row| row.shape.hashes() == hashes);
            let point =
                |row: &Row| (row.shape.bits() as f64, row.found[way].mean / row.found[0].mean);
            rows.map(point).filter(|(_, y)| y.is_finite()).collect()
        };
        Panel::new(title, "bits m", "rate over that of independent positions")
            .log_x()
            .dots("equation 11", 1, of(1))
            .crosses("umbel", 2, of(2))
            .line("independent", 0, of(0))
    };
    Plot::of(FILLS.map(panel))
}
