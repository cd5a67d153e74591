//! Figures 1 to 3: the example of eight nodes A to H.
//!
//! The paper: A receives the filters of B, C, D, E, F, G and H over its link to B (d = 3, s = 7). With
//! m = 33, k = 3 and n = 3 keys a node, `f_BF` = 0.0136, `f_CUBF` = 0.0914, `f_ABF` = 0.618: a query at E
//! for an item at A, which should go along E, C, B, A, goes to G and H as well (figure 1b). With
//! the receiver-oriented design it does not (figure 1a).
//!
//! Ours: the tree A-B, B-C, B-D, C-E, C-F, D-G, D-H, routing tables with real filters, every node
//! asking for every key of every other node.
//!
//! Left open: the figure's links; this tree has the paths that the text names.

use umbel::model::{routing, standard};
use umbel::route::{EntryKind, Plan};

use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::home::shape;
use crate::overlay::{Count, Entries, Graph, Homes, Lookup, Network, Stock, Tables, ask};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "ro-fig-1",
    source: "Guo, He and Yang, paper 5, figures 1 to 3",
    title: "The example of eight nodes: where a query at E for an item at A goes",
    find,
};

const LINKS: [(usize, usize); 7] = [(0, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7)];
const ITEMS: u64 = 3;
const FILTERS: u64 = 7;
const SIGMA: f64 = 0.01;

const DESIGNS: [(&str, EntryKind, bool); 4] = [
    ("traditional CUBF", EntryKind::Cubf, false),
    ("traditional ABF", EntryKind::Abf, false),
    ("receiver-oriented CUBF", EntryKind::Cubf, true),
    ("receiver-oriented ABF", EntryKind::Abf, true),
];

struct Found {
    /// Share of wrong claims among all links that were asked for a key they do not lead to.
    wrong: f64,
    /// Of the query at E for items at A: forwards, and whether it arrived.
    forwards: f64,
    success: f64,
}

fn plan(kind: EntryKind) -> Plan {
    Plan { kind, depth: 3, items: ITEMS, filters: FILTERS, false_positive: SIGMA }
}

fn shape_for(kind: EntryKind, is_receiver_oriented: bool) -> umbel::Shape {
    if is_receiver_oriented { plan(kind).shape().expect("in range") } else { shape(33, 3) }
}

fn trial(random: &mut Random, rounds: u64) -> Vec<Found> {
    let graph = Graph::of(8, &LINKS);
    let of = |(_, kind, is_receiver_oriented): (&str, EntryKind, bool)| {
        let (mut all, mut from_e) = (Count::default(), Count::default());
        for _ in 0..rounds {
            let (plan, seed) = (plan(kind), random.next());
            let shape = shape_for(kind, is_receiver_oriented);
            let homes =
                Homes::new(8, Stock::equal(ITEMS), &plan, shape, seed).expect("small filters");
            let entries = Entries::spread(&graph, &homes, &plan, is_receiver_oriented);
            let network = Network {
                graph: &graph,
                homes: &homes,
                entries: &entries,
                plan,
                walk: 0,
                below: None,
            };
            let mut tables = Tables::new(1 << 30);
            for (at, home) in (0..8).flat_map(|at| (0..8).map(move |home| (at, home))) {
                for number in 0..ITEMS as u32 {
                    let question = Lookup { at, home, number };
                    if at == home {
                        continue;
                    }
                    let count = ask(&network, &mut tables, question, random.clone());
                    all.add(&count);
                    if (at, home) == (4, 0) {
                        from_e.add(&count);
                    }
                }
            }
        }
        Found {
            wrong: all.wrong_decisions as f64 / all.strange_decisions.max(1) as f64,
            forwards: from_e.claimed_forwards as f64 / from_e.queries as f64,
            success: from_e.found as f64 / from_e.queries as f64,
        }
    };
    DESIGNS.into_iter().map(of).collect()
}

fn find(bench: &Bench<'_>) -> Findings {
    let rounds = (bench.asked() / 1000).max(5) as u64;
    let trials = bench.trials(|mut random| trial(&mut random, rounds));
    let mut table = Table::new([
        setting("design"),
        setting("bits"),
        setting("k"),
        formula("entry_of_seven_formula_percent", 2),
        simulated("wrong_decisions_percent", 2),
        simulated("forwards_from_e_to_a", 2),
        simulated("success_from_e_to_a_percent", 1),
    ]);
    let mut points = Vec::new();
    for (i, (name, kind, is_receiver_oriented)) in DESIGNS.into_iter().enumerate() {
        let of = |value: fn(&Found) -> f64| Spread::of(trials.iter().map(|t| value(&t[i])));
        let shape = shape_for(kind, is_receiver_oriented);
        let rate = if kind == EntryKind::Cubf { routing::cubf } else { routing::abf };
        let forwards = of(|found| found.forwards).mean;
        points.push((i as f64, forwards));
        table.push([
            name.into(),
            shape.bits().into(),
            shape.hashes().into(),
            (100.0 * rate(shape, ITEMS, FILTERS)).into(),
            (100.0 * of(|found| found.wrong).mean).into(),
            forwards.into(),
            (100.0 * of(|found| found.success).mean).into(),
        ]);
    }
    let panel =
        Panel::new("three are needed: E, C, B", "", "forwards of a query at E for an item at A")
            .categories(DESIGNS.map(|(name, ..)| name.to_owned()).to_vec());
    let plot = Plot::of([panel.dots("simulated", 0, points.clone())]);
    Findings { table, claims: claims(&points, bench.seeds()), plot }
}

fn claims(forwards: &[(f64, f64)], seeds: u64) -> Vec<Claim> {
    let small = shape(33, 3);
    vec![
        Claim::paper("yielding a false positive judgment with very low probability of 0.0136", "m = 33, n = 3, k = 3: f_BF")
            .stated(1.36)
            .formula(100.0 * standard::false_positive(small, ITEMS))
            .within(0.005),
        Claim::paper("The false positive probabilities of the resulting CUBF and ABF, however, are 0.0914 and 0.618", "f_CUBF of seven filters")
            .stated(9.14)
            .formula(100.0 * routing::cubf(small, ITEMS, FILTERS))
            .within(0.005),
        Claim::paper("The false positive probabilities of the resulting CUBF and ABF, however, are 0.0914 and 0.618", "f_ABF of seven filters")
            .stated(61.8)
            .formula(100.0 * routing::abf(small, ITEMS, FILTERS))
            .within(0.05),
        Claim::paper("is routed to both the right destination node and other two nodes G and H which do not hold the desired data item", "figure 1b: with traditional filters a query at E for an item at A goes to other nodes as well (forwards of an ABF, three needed)").unit("forwards")
            .stated(3.0)
            .simulated(forwards[1].1, seeds)
            .above(),
        Claim::paper("is routed to the right destination node along a single path", "figure 1a: with the receiver-oriented design it goes along E, C, B, A alone (forwards of a CUBF)").unit("forwards")
            .stated(3.0)
            .simulated(forwards[2].1, seeds)
            .note("within what σ = 1 % at each of a handful of links lets through")
            .within(0.06),
        Claim::paper("is routed to the right destination node along a single path", "the same with an ABF (forwards)").unit("forwards")
            .stated(3.0)
            .simulated(forwards[3].1, seeds)
            .within(0.06),
    ]
}
