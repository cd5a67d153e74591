//! Figure 2: the expected false positive rate of a standard filter.
//!
//! The paper: `f+ = (1 - e^(-kn/m))^k`, smallest at `k = (m/n) ln 2`, where it is
//! `0.6185^(m/n)`; "when the bit-element ratio is 8 and the number of hash functions is 6,
//! the expected false positive rate is only 0.0216"; "4 bits per counter will guarantee the
//! probability of overflow minuscule even with several hundred million elements".
//!
//! Ours: filters of 10,000 keys with 8, 12 and 16 bits a key and 1 to 16 hashes.
//!
//! Left open: which configurations the figure draws, and its points. What "minuscule" is:
//! we take less than one overflow in a thousand filters of 500 million keys.

use umbel::model::{LN_06185, standard};

use super::{ITEMS, OPTIMAL, formula, points_of, setting, simulated};
use crate::Experiment;
use crate::home::{Home, Keys, shape};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zhu-fig-2",
    source: "Zhu and Jiang, paper 1, figure 2 and section 1; paper 3, section 2",
    title: "Expected false positive rate of a standard filter",
    find,
};

const MAX_HASHES: u32 = 16;

struct Row {
    bits_per_item: u64,
    hashes: u32,
    formula: f64,
    found: Spread,
}

fn find(bench: &Bench<'_>) -> Findings {
    let trials = bench.trials(|random| trial(random, bench.asked()));
    let rows: Vec<Row> = configurations()
        .enumerate()
        .map(|(i, (bits_per_item, hashes))| Row {
            bits_per_item,
            hashes,
            formula: 100.0 * standard::false_positive(shape(bits_per_item * ITEMS, hashes), ITEMS),
            found: Spread::of(trials.iter().map(|trial| trial.rates[i])).percent(),
        })
        .collect();
    let mut table = Table::new([
        setting("bits_per_item"),
        setting("k"),
        formula("formula_percent", 4),
        simulated("simulated_percent", 4),
        simulated("simulated_low_percent", 4),
        simulated("simulated_high_percent", 4),
    ]);
    for row in &rows {
        table.push([
            row.bits_per_item.into(),
            row.hashes.into(),
            row.formula.into(),
            row.found.mean.into(),
            row.found.low.into(),
            row.found.high.into(),
        ]);
    }
    let stuck = trials.iter().map(|trial| trial.stuck).sum();
    Findings { table, claims: claims(&rows, stuck, bench.seeds()), plot: plot(&rows) }
}

fn configurations() -> impl Iterator<Item = (u64, u32)> {
    OPTIMAL
        .into_iter()
        .flat_map(|(bits_per_item, _)| (1..=MAX_HASHES).map(move |k| (bits_per_item, k)))
}

struct Trial {
    rates: Vec<f64>,
    stuck: u64,
}

fn trial(mut random: Random, asked: usize) -> Trial {
    let mut keys = Keys::new(&mut random);
    let members = keys.draw_many(ITEMS as usize);
    let asked = keys.draw_many(asked);
    let rate = |(bits_per_item, hashes)| {
        let mut filter = keys.standard(shape(bits_per_item * ITEMS, hashes));
        filter.insert_digests(&members);
        let claimed = asked.iter().filter(|key| filter.contains_digest(**key)).count();
        claimed as f64 / asked.len() as f64
    };
    let rates = configurations().map(rate).collect();
    let counting = Home::new(shape(8 * 10 * ITEMS, 6), &mut keys, 10 * ITEMS);
    Trial { rates, stuck: counting.stuck_counters() }
}

fn claims(rows: &[Row], stuck: u64, seeds: u64) -> Vec<Claim> {
    let at = |bits_per_item, hashes| {
        let is = |row: &&Row| (row.bits_per_item, row.hashes) == (bits_per_item, hashes);
        rows.iter().find(is).expect("every configuration has a row")
    };
    let example = at(8, 6);
    let mut claims = vec![
        Claim::paper("when the bit-element ratio is 8 and the number of hash functions is 6, the expected false positive rate is only 0.0216", "m/n = 8, k = 6: the expected false positive rate is 0.0216")
            .stated(2.16)
            .formula(example.formula)
            .simulated(example.found.mean, seeds)
            .rounded_and_simulated(0.005, example.found.standard_error()),
        Claim::paper("the minimal false positive rate is, as has been shown", "the smallest rate is 0.6185^(m/n) (the constant)").unit("the constant")
            .stated(0.6185)
            .formula(LN_06185.exp())
            .within(0.000_05),
    ];
    for (bits_per_item, hashes) in OPTIMAL {
        let best = standard::best_hashes(bits_per_item, 1);
        let of_ratio = || rows.iter().filter(|row| row.bits_per_item == bits_per_item);
        let lowest = of_ratio().min_by(|a, b| a.found.mean.total_cmp(&b.found.mean));
        let lowest = lowest.expect("every ratio has rows");
        let near = at(bits_per_item, hashes);
        let apart = near.found.error_of_difference(&lowest.found);
        claims.push(
            Claim::paper("is minimized when", format!(
                "m/n = {bits_per_item}: the rate is smallest at k = (m/n) ln 2 (hashes, not percent)"
            )).unit("hashes")
            .stated(best)
            .formula(best)
            .simulated(lowest.hashes.into(), seeds)
            .note(format!(
                "holds if no number of hashes is better than {hashes} by more than three standard \
                 errors; the curve is flat there"
            ))
            .judged(near.found.mean <= lowest.found.mean + 3.0 * apart),
        );
    }
    claims.push(
        Claim::paper("4 bits per counter will guarantee the probability of overflow minuscule even with several hundred million elements in a BF", "4-bit counters overflow with minuscule probability, even with several hundred million elements (expected overflows, not percent)").unit("overflows")
            .stated(0.0)
            .formula(expected_overflows(500_000_000))
            .simulated(stuck as f64, seeds)
            .note("formula: 500 million elements, m/n = 8, k = 6; simulated: 100,000 elements a seed; tolerance ours")
            .within(0.001),
    );
    claims.push(points_of("figure 2"));
    claims
}

/// Counters past 15 in a filter with 8 bits an item and 6 hashes: hits are Poisson.
fn expected_overflows(items: u64) -> f64 {
    let load: f64 = 6.0 / 8.0;
    // P(16), then P(n+1) = P(n) load/(n+1); terms past 32 are below the last digit.
    let sixteen = (1..=16).fold((-load).exp(), |p, n| p * load / f64::from(n));
    let tail = (17..=32).scan(sixteen, |p, n| {
        *p *= load / f64::from(n);
        Some(*p)
    });
    (sixteen + tail.sum::<f64>()) * 8.0 * items as f64
}

fn plot(rows: &[Row]) -> Plot {
    let panel = |(bits_per_item, _)| {
        let of = || rows.iter().filter(move |row| row.bits_per_item == bits_per_item);
        let x = |row: &Row| f64::from(row.hashes);
        Panel::new(format!("m/n = {bits_per_item}"), "hashes k", "false positive, %")
            .log()
            .line("closed form", 0, of().map(|row| (x(row), row.formula)).collect())
            .bars(
                "spread of the seeds",
                1,
                of().map(|row| (x(row), row.found.low, row.found.high)).collect(),
            )
            .dots("simulated", 1, of().map(|row| (x(row), row.found.mean)).collect())
    };
    Plot::of(OPTIMAL.map(panel))
}
