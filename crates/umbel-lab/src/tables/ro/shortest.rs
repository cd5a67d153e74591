//! Attenuated filters and shortest paths, of which the paper says a sentence.
//!
//! The paper, of attenuated Bloom filters: one "usually finds files within at most d hops along a single path, but it
//! is likely to find the shortest path to a file replica if many such paths exist". It leaves open what it compares this with.
//!
//! Ours: random regular networks of 200 nodes with four links each, 30 keys a node, d = 3. A key of each node has six
//! copies, and questions are for such keys, with at least two holders in range and none at the node that asks. No walk: a
//! query follows filters alone. Entries have room for twice as many filters as come on average, for the copies.

use std::collections::BTreeSet;

use umbel::model::routing;
use umbel::route::EntryKind;
use umbel::{Rate, Shape};

use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::home::shape;
use crate::overlay::{Built, Design, Graph, Lookup, Setting, Stock, Tables, Topology, ask};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "ro-attenuated",
    source: "Guo, He and Yang, paper 5, section 3.1 (a claim without a figure)",
    title: "Whether attenuated filters find the nearest copy, and along a single path",
    find,
};

const SIGMA: f64 = 0.001;
const DEPTH: u8 = 3;
const KEYS: u64 = 30;
/// Twice the filters of a tree: 1 + 3 + 9.
const FILTERS: u64 = 26;

const CASES: [(&str, EntryKind, Design); 4] = [
    ("receiver-oriented attenuated", EntryKind::Attenuated, Design::ReceiverOriented),
    ("traditional attenuated", EntryKind::Attenuated, Design::Traditional),
    ("receiver-oriented CUBF", EntryKind::Cubf, Design::ReceiverOriented),
    ("receiver-oriented ABF", EntryKind::Abf, Design::ReceiverOriented),
];

/// Shares of the questions.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    asked: f64,
    found: f64,
    shortest: f64,
    /// Share of queries without any message except those on the path to the holder and back.
    single: f64,
    messages: f64,
}

fn base(nodes: usize, seed: u64, entry: EntryKind, design: Design) -> Setting {
    Setting {
        topology: Topology::RandomRegular,
        nodes,
        degree: 4,
        depth: DEPTH,
        entry,
        design,
        stock: Stock { copies: 6, ..Stock::equal(KEYS) },
        false_positive: SIGMA,
        filters: Some(FILTERS),
        queries: 0,
        walk: 0,
        seed,
    }
}

/// How far the nearest of these hosts is, and how many of them are within [`DEPTH`] hops.
fn nearest(graph: &Graph, at: u32, holders: &BTreeSet<u32>) -> (u64, usize) {
    let (mut seen, mut open) = (BTreeSet::from([at]), vec![at]);
    let (mut first, mut count) = (0, 0);
    for hops in 1..=u64::from(DEPTH) {
        let next: BTreeSet<u32> =
            open.iter().flat_map(|node| graph.neighbours(*node)).copied().collect();
        open = next.difference(&seen).copied().collect();
        seen.extend(&open);
        let here = open.iter().filter(|node| holders.contains(node)).count();
        count += here;
        if first == 0 && here > 0 {
            first = hops;
        }
    }
    (first, count)
}

fn trial(mut random: Random, nodes: usize, queries: u64) -> Vec<Found> {
    let seed = random.next();
    let graph = Graph::new(Topology::RandomRegular, nodes, 4, seed).expect("a network");
    let one = |(_, entry, design): (&str, EntryKind, Design)| {
        let built = Built::new(&graph, &base(nodes, seed, entry, design)).expect("a small network");
        let network = built.network(&graph, 0, None);
        let (mut tables, mut found) = (Tables::new(1 << 30), Found::default());
        for number in 0..queries {
            let mut random = Random::of_trial(seed, "shortest", number);
            let question = Lookup {
                at: random.below(nodes) as u32,
                home: random.below(nodes) as u32,
                number: 0,
            };
            let holders: BTreeSet<u32> = network.homes.holders(question.home, 0).collect();
            let (distance, in_range) = nearest(&graph, question.at, &holders);
            if holders.contains(&question.at) || in_range < 2 {
                continue;
            }
            let count = ask(&network, &mut tables, question, random);
            let is = |yes: bool| f64::from(u8::from(yes));
            found.asked += 1.0;
            found.found += count.found as f64;
            found.shortest += is(count.found == 1 && count.hops == distance);
            found.single += is(count.found == 1 && count.messages == 2 * count.hops);
            found.messages += count.messages as f64;
        }
        found
    };
    CASES.into_iter().map(one).collect()
}

fn shape_for(kind: EntryKind, design: Design) -> Shape {
    let plan = umbel::route::Plan {
        kind,
        depth: DEPTH,
        items: KEYS,
        filters: FILTERS,
        false_positive: SIGMA,
    };
    if design == Design::ReceiverOriented {
        return plan.shape().expect("in range");
    }
    let rate = Rate::new(SIGMA).expect("in range");
    let paper = umbel::design::papers_standard(KEYS, rate).expect("in range");
    shape(paper.bits, paper.hashes)
}

/// Chance that no other link claims a key at a smaller distance, on the whole way from three hops away: a bound, since most
/// questions begin nearer. Where all claiming links are followed at once, the nearest holder replies first.
fn at_least(kind: EntryKind, design: Design) -> f64 {
    if kind != EntryKind::Attenuated {
        return 1.0;
    }
    let shape = shape_for(kind, design);
    // A holder j hops away: filters of fewer hops at the three other links; of four links at the first host.
    let denied = |hops: u32| (1.0 - routing::abf(shape, KEYS, 3_u64.pow(hops - 1))).powi(3);
    let way = |hops: u32| (1..hops).map(denied).product::<f64>();
    (2..=u32::from(DEPTH)).map(way).product()
}

fn find(bench: &Bench<'_>) -> Findings {
    let nodes = if bench.asked() < 50_000 { 100 } else { 200 };
    let queries = bench.asked() as u64 / 50;
    let trials = bench.trials(|random| trial(random, nodes, queries));
    let mut table = Table::new([
        setting("entry"),
        setting("filter_bits"),
        formula("shortest_at_least_formula_percent", 2),
        simulated("shortest_percent", 2),
        simulated("found_percent", 2),
        simulated("single_path_percent", 2),
        simulated("messages_per_query", 2),
    ]);
    for (i, (name, kind, design)) in CASES.into_iter().enumerate() {
        let share = |value: fn(&Found) -> f64| mean(&trials, i, value);
        table.push([
            name.into(),
            shape_for(kind, design).bits().into(),
            (100.0 * at_least(kind, design)).into(),
            (100.0 * share(|found| found.shortest)).into(),
            (100.0 * share(|found| found.found)).into(),
            (100.0 * share(|found| found.single)).into(),
            share(|found| found.messages).into(),
        ]);
    }
    Findings { table, claims: claims(&trials, bench.seeds()), plot: plot(&trials) }
}

/// A mean of all questions.
fn mean(trials: &[Vec<Found>], i: usize, value: fn(&Found) -> f64) -> f64 {
    let sum = |value: fn(&Found) -> f64| trials.iter().map(|trial| value(&trial[i])).sum::<f64>();
    sum(value) / sum(|found| found.asked).max(1.0)
}

fn claims(trials: &[Vec<Found>], seeds: u64) -> Vec<Claim> {
    const USUALLY: &str = "usually finds files within at most d hops along a single path";
    const SHORTEST: &str =
        "it is likely to find the shortest path to a file replica if many such paths exist";
    let percent = |i, value: fn(&Found) -> f64| 100.0 * mean(trials, i, value);
    let mut claims = Vec::new();
    for (i, (name, ..)) in CASES.into_iter().enumerate().take(2) {
        claims.push(
            Claim::paper(
                USUALLY,
                format!(
                    "{name}: more than half of the questions are answered from within d = 3 hops"
                ),
            )
            .stated(50.0)
            .simulated(percent(i, |found| found.found), seeds)
            .note("all of them have holders in range")
            .above(),
        );
        claims.push(
            Claim::paper(USUALLY, format!("{name}: more than half of the questions take no message but those of one path and back"))
                .stated(50.0)
                .simulated(percent(i, |found| found.single), seeds)
                .note("one link is asked at a time, the nearest first; a false claim is a path that is left again")
                .above(),
        );
        claims.push(
            Claim::paper(SHORTEST, format!("{name}: more than half of the questions are answered by the nearest of two or more holders"))
                .stated(50.0)
                .simulated(percent(i, |found| found.shortest), seeds)
                .note("an entry that claims a key by mistake at a smaller distance is followed first")
                .above(),
        );
    }
    let messages = |i| mean(trials, i, |found| found.messages);
    claims.push(
        Claim::ours("attenuated filters take fewer messages than a CUBF, which asks all links that claim a key at once (receiver-oriented, over those of the CUBF)")
            .unit("over the CUBF")
            .stated(1.0)
            .simulated(messages(0) / messages(2), seeds)
            .judged(messages(0) < messages(2)),
    );
    claims
}

fn plot(trials: &[Vec<Found>]) -> Plot {
    let names = || CASES.map(|(name, ..)| name.to_owned()).to_vec();
    let points = |scale: f64, value: fn(&Found) -> f64| {
        (0..CASES.len()).map(|i| (i as f64, scale * mean(trials, i, value))).collect::<Vec<_>>()
    };
    Plot::of([
        Panel::new("Shortest and single paths", "", "of the questions, %")
            .categories(names())
            .dots("nearest holder", 0, points(100.0, |found| found.shortest))
            .dots("one path", 1, points(100.0, |found| found.single)),
        Panel::new("Messages", "", "messages a query").categories(names()).dots(
            "of a query",
            0,
            points(1.0, |found| found.messages),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_holder_and_those_in_range_are_counted() {
        // 0 - 1 - 2 - 3 - 4
        let line = Graph::new(Topology::Line, 5, 2, 1).unwrap();
        assert_eq!(nearest(&line, 0, &BTreeSet::from([2, 3, 4])), (2, 2));
        assert_eq!(nearest(&line, 0, &BTreeSet::from([4])), (0, 0));
    }

    #[test]
    fn all_claiming_links_at_once_find_the_nearest_holder() {
        let all = trial(Random::of_trial(1, "shortest", 0), 100, 200);
        for cubf in &all[2..] {
            assert!(cubf.asked > 20.0);
            assert_eq!(cubf.shortest, cubf.found);
        }
    }
}
