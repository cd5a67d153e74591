//! Deleting everything: what paper 4's algorithm 3 leaves behind, and what umbel leaves.
//!
//! A key that several components claim cannot be removed by the filter alone; algorithm 3
//! keeps it. umbel's catalogue remembers the component, so that nothing is left. Both ways on
//! the same names, for table 1 and figures 5 and 6.

use umbel::filter::{ComponentId, Removal};
use umbel::model::dynamic as model;
use umbel::{Digest, DynamicFilter};

use super::super::{formula, setting, simulated};
use super::{BITS, CAPACITY, HASHES, claimed, dynamic, papers, spreads};
use crate::home::{Keys, shape};
use crate::names;
use crate::plan::{Bench, Sampling};
use crate::random::Random;
use crate::report::Table;
use crate::spread::Spread;

/// A dynamic filter with its members, and the component of each.
pub(super) struct Grown {
    pub(super) filter: DynamicFilter,
    members: Vec<(Digest, ComponentId)>,
}

impl Grown {
    /// A filter filled with file names.
    pub(super) fn of_files(keys: &Keys, random: &mut Random, items: u64) -> Self {
        let filter = dynamic(keys, shape(BITS, HASHES), CAPACITY);
        let mut grown = Self { filter, members: Vec::new() };
        for number in 0..items {
            let name = names::file(number, random);
            let digest = grown.filter.scheme().digest(name.as_bytes());
            grown.members.push((digest, grown.filter.insert_digest(digest)));
        }
        grown
    }

    /// Adds keys.
    pub(super) fn add(&mut self, digests: &[Digest]) {
        for digest in digests {
            self.members.push((*digest, self.filter.insert_digest(*digest)));
        }
    }

    /// Clears the list of members after they were deleted. Those that algorithm 3 kept stay in the
    /// filter.
    pub(super) fn forget(&mut self) {
        self.members.clear();
    }

    /// The share of members that several components claim, percent.
    pub(super) fn claimed_twice(&self) -> f64 {
        let digests: Vec<Digest> = self.members.iter().map(|(digest, _)| *digest).collect();
        claimed(&digests, |digest| self.filter.claimants(digest).len() > 1)
    }

    /// Removes every member by algorithm 3, merging as it says; returns the share that is
    /// still there, percent.
    pub(super) fn delete_by_claims(&mut self) -> f64 {
        let mut kept = 0;
        for (digest, _) in &self.members {
            match self.filter.remove_digest(*digest) {
                Removal::Removed(_) => _ = self.filter.shrink(),
                Removal::Kept => kept += 1,
                Removal::Absent => unreachable!("a member is claimed by its component"),
            }
        }
        100.0 * f64::from(kept) / self.members.len() as f64
    }

    /// Removes every member from the component to which it was added; returns the share that is
    /// still there, in percent.
    pub(super) fn delete_by_catalogue(&mut self) -> f64 {
        for (digest, component) in &self.members {
            let was_there = self.filter.remove_digest_from(*component, *digest);
            assert!(was_there, "a member is claimed by its component");
            self.filter.shrink();
        }
        100.0 * self.filter.items() as f64 / self.members.len() as f64
    }
}

/// A set of some capacities, percent.
pub(super) struct Row {
    pub(super) capacities: u64,
    /// `f2(n)` of equation 10, the paper's estimated upper bound.
    pub(super) bound: f64,
    /// Equations 9 and 10, each for the keys to which it applies.
    pub(super) expected: f64,
    /// Equation 3.
    pub(super) rate: f64,
    /// Members that several components claim: the paper's experimental upper bound.
    pub(super) twice: Spread,
    /// Left by algorithm 3: the paper's real value of r.
    pub(super) left: Spread,
    /// Left when the component is remembered.
    pub(super) left_by_catalogue: Spread,
    /// False positives before the deletion.
    pub(super) found_rate: Spread,
}

/// Sets of one to ten capacities that are deleted completely.
pub(super) fn rows(bench: &Bench<'_>) -> Vec<Row> {
    let trials = bench.trials(|random| trial(random, bench.asked(), bench.times(ROUNDS)));
    let row = |(capacities, found): (u64, [Spread; 4])| {
        let twice = model::claimed_twice(papers(), capacities * CAPACITY);
        let s = capacities as f64;
        let [twice_found, left, left_by_catalogue, found_rate] = found;
        Row {
            capacities,
            bound: 100.0 * twice.last,
            expected: 100.0 * ((s - 1.0) * twice.first + twice.last) / s,
            rate: 100.0 * model::false_positive(papers(), capacities * CAPACITY),
            twice: twice_found,
            left,
            left_by_catalogue,
            found_rate,
        }
    };
    (1..).zip(spreads(&trials)).map(row).collect()
}

pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        setting("n_over_c"),
        formula("bound_f2_percent", 3),
        formula("expected_percent", 3),
        simulated("claimed_twice_percent", 3),
        simulated("left_by_algorithm_3_percent", 3),
        simulated("left_low_percent", 3),
        simulated("left_high_percent", 3),
        simulated("left_by_catalogue_percent", 3),
        formula("rate_formula_percent", 3),
        simulated("rate_simulated_percent", 3),
    ]);
    for row in rows {
        table.push([
            row.capacities.into(),
            row.bound.into(),
            row.expected.into(),
            row.twice.mean.into(),
            row.left.mean.into(),
            row.left.low.into(),
            row.left.high.into(),
            row.left_by_catalogue.mean.into(),
            row.rate.into(),
            row.found_rate.mean.into(),
        ]);
    }
    table
}

/// How shares of the members are sampled: those of the largest set, in every round.
pub(super) fn sampling(bench: &Bench<'_>) -> Sampling {
    let asked = bench.times(ROUNDS) * CAPACITIES * CAPACITY;
    Sampling { asked: asked as usize, ..bench.sampling() }
}

/// Rounds in each trial: with 20 trials, the paper's 100.
const ROUNDS: u64 = 5;
const CAPACITIES: u64 = 10;

/// Claimed twice, left by algorithm 3, left by the catalogue, false positives: percent, means
/// of some rounds.
fn trial(mut random: Random, asked: usize, rounds: u64) -> Vec<[f64; 4]> {
    let asked = asked / rounds as usize;
    let rounds: Vec<Vec<[f64; 4]>> = (0..rounds).map(|_| round(&mut random, asked)).collect();
    spreads(&rounds).iter().map(|row| row.map(|spread| spread.mean)).collect()
}

fn round(random: &mut Random, asked: usize) -> Vec<[f64; 4]> {
    let mut keys = Keys::new(random);
    let asked = keys.draw_many(asked);
    let each = |capacities: u64| {
        let mut grown = Grown::of_files(&keys, random, capacities * CAPACITY);
        let mut exact = Grown { filter: grown.filter.clone(), members: grown.members.clone() };
        let twice = grown.claimed_twice();
        let false_positive = claimed(&asked, |key| grown.filter.contains_digest(key));
        [twice, grown.delete_by_claims(), exact.delete_by_catalogue(), false_positive]
    };
    (1..=CAPACITIES).map(each).collect()
}
