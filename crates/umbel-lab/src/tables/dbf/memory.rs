//! Expected memory of a dynamic filter for sets whose sizes are distributed: figures 10 to 16.
//!
//! A filter is planned for the distribution (`design::dynamic::papers_bounded`); sets of sizes drawn
//! from it are put into real filters of that plan and the bits that these take are counted.
//! One more set, as large as it can be, shows that the rate is kept.
//!
//! Left open by the paper: the deviation of its normal distribution for other N than 1330;
//! ours is always the same share of N.

use umbel::design::Distribution;
use umbel::design::dynamic::{PapersBounded, papers_bounded};
use umbel::model::dynamic::{Component, false_positive};

use super::super::{Column, formula, setting, simulated};
use super::{MAX, claimed, grown, rate, spreads};
use crate::home::{Keys, shape};
use crate::plan::Bench;
use crate::plot::Panel;
use crate::random::Random;
use crate::report::{Cell, Table};
use crate::spread::Spread;

/// The five distributions of section 4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sizes {
    Uniform,
    Normal,
    ZipfRandom,
    ZipfMin,
    ZipfMax,
}

impl Sizes {
    pub(super) const ALL: [Self; 5] =
        [Self::ZipfMax, Self::ZipfRandom, Self::Uniform, Self::Normal, Self::ZipfMin];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::ZipfRandom => "random Zipf",
            Self::ZipfMin => "minimum Zipf",
            Self::ZipfMax => "maximum Zipf",
        }
    }

    /// Of up to `max` keys, with a Zipf parameter or the deviation of 1330 keys.
    pub(super) fn of(self, max: u64, zipf: f64, deviation: f64) -> Distribution {
        let share = max as f64 / MAX as f64;
        let distribution = match self {
            Self::Uniform => Ok(Distribution::uniform(max)),
            Self::Normal => Distribution::normal(max, (max as f64 / 2.0).ceil(), deviation * share),
            Self::ZipfRandom => Distribution::zipf_random(max, zipf, 1),
            Self::ZipfMin => Distribution::zipf_min(max, zipf),
            Self::ZipfMax => Distribution::zipf_max(max, zipf),
        };
        distribution.expect("numbers of the paper")
    }

    /// With the paper's parameters.
    pub(super) fn papers(self, max: u64) -> Distribution {
        self.of(max, ZIPF, DEVIATION)
    }
}

/// The paper's Zipf parameter, and its deviation, which it calls a variance.
pub(super) const ZIPF: f64 = 0.4;
pub(super) const DEVIATION: f64 = 20.0;

/// A distribution with a plan for it.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) sizes: Sizes,
    /// What is varied.
    pub(super) x: f64,
    pub(super) bound: f64,
    pub(super) distribution: Distribution,
    pub(super) plan: PapersBounded,
}

impl Setup {
    /// The setup with the number of components that needs the fewest bits.
    pub(super) fn best(sizes: Sizes, x: f64, bound: f64, distribution: Distribution) -> Self {
        let plan = papers_bounded(rate(bound), &distribution).expect("small filters");
        Self { sizes, x, bound, distribution, plan }
    }
}

pub(super) struct Row {
    pub(super) setup: Setup,
    /// Bits, on average over the sizes.
    pub(super) found: Spread,
    /// The rate of a set of maximum size, in percent.
    pub(super) found_rate: Spread,
}

impl Row {
    pub(super) fn bits(&self) -> f64 {
        self.setup.plan.expected_bits
    }

    /// The rate of a set of maximum size, by formula.
    pub(super) fn full_rate(&self) -> f64 {
        let PapersBounded { component, capacity, .. } = self.setup.plan;
        let component = Component::new(shape(component.bits, component.hashes), capacity);
        false_positive(component, self.setup.distribution.max_items())
    }

    pub(super) fn ratio(&self) -> f64 {
        self.setup.plan.ratio()
    }

    pub(super) fn found_ratio(&self) -> f64 {
        self.found.mean / self.setup.plan.standard_bits as f64
    }
}

/// Runs every setup.
pub(super) fn rows(bench: &Bench<'_>, setups: Vec<Setup>) -> Vec<Row> {
    let trials =
        bench.trials(|random| trial(random, &setups, (bench.asked() / 10, bench.times(DRAWN))));
    let found = spreads(&trials);
    let row = |(setup, [found, found_rate]): (Setup, [Spread; 2])| Row { setup, found, found_rate };
    setups.into_iter().zip(found).map(row).collect()
}

/// Sets drawn in a trial, one from each of as many equal shares of the distribution.
const DRAWN: u64 = 20;

fn trial(mut random: Random, setups: &[Setup], (asked, drawn): (usize, u64)) -> Vec<[f64; 2]> {
    let mut keys = Keys::new(&mut random);
    let asked = keys.draw_many(asked);
    let each = |setup: &Setup| {
        let PapersBounded { component, capacity, .. } = setup.plan;
        let shape = shape(component.bits, component.hashes);
        let mut bits = 0;
        for i in 0..drawn {
            let share = (i as f64 + random.below(1 << 30) as f64 / (1 << 30) as f64) / drawn as f64;
            let filter = grown(&mut keys, shape, capacity, at(&setup.distribution, share));
            bits += filter.components().len() as u64 * component.bits;
        }
        let full = grown(&mut keys, shape, capacity, setup.distribution.max_items());
        [bits as f64 / drawn as f64, claimed(&asked, |key| full.contains_digest(key))]
    };
    setups.iter().map(each).collect()
}

/// The size that is exceeded with probability `share`.
pub(super) fn at(distribution: &Distribution, share: f64) -> u64 {
    let (mut low, mut high) = (1, distribution.max_items());
    while low < high {
        let middle = low + (high - low) / 2;
        if distribution.beyond(middle) <= share { high = middle } else { low = middle + 1 }
    }
    low
}

pub(super) fn table(x: Column, rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("distribution"),
        x,
        formula("s", 0),
        formula("bits", 0),
        formula("hashes", 0),
        formula("capacity", 0),
        formula("expected_bits", 1),
        simulated("simulated_bits", 1),
        formula("standard_bits", 0),
        formula("ratio", 4),
        simulated("simulated_ratio", 4),
        simulated("full_rate_percent", 4),
    ]);
    for row in rows {
        let plan = row.setup.plan;
        table.push([
            Cell::from(row.setup.sizes.name()),
            row.setup.x.into(),
            plan.components.into(),
            plan.component.bits.into(),
            plan.component.hashes.into(),
            plan.capacity.into(),
            plan.expected_bits.into(),
            row.found.mean.into(),
            plan.standard_bits.into(),
            plan.ratio().into(),
            row.found_ratio().into(),
            row.found_rate.mean.into(),
        ]);
    }
    table
}

/// One line and its dots for each distribution.
pub(super) fn curves(
    mut panel: Panel,
    rows: &[Row],
    formula: fn(&Row) -> f64,
    found: fn(&Row) -> f64,
) -> Panel {
    for (colour, sizes) in Sizes::ALL.into_iter().enumerate() {
        let of = || rows.iter().filter(move |row| row.setup.sizes == sizes);
        if of().next().is_none() {
            continue;
        }
        panel = panel
            .line(sizes.name(), colour, of().map(|row| (row.setup.x, formula(row))).collect())
            .dots("simulated", colour, of().map(|row| (row.setup.x, found(row))).collect());
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_drawn_as_they_are_distributed() {
        let uniform = Distribution::uniform(100);
        assert_eq!((at(&uniform, 0.0), at(&uniform, 0.999), at(&uniform, 0.5)), (100, 1, 50));
        let observed = Distribution::observed(50, vec![(7, 1.0), (30, 1.0)]).unwrap();
        assert_eq!((at(&observed, 0.2), at(&observed, 0.8)), (30, 7));
    }
}
