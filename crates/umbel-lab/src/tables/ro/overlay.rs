//! Not in the paper: what its designs do to queries, on the same networks and with the same seeds.
//!
//! The paper: the receiver-oriented design "apparently outperforms the existing approaches in
//! terms of the success probability of routing and network traffic cost". It shows rates and sizes.
//!
//! Ours: random regular networks of 2,000 nodes with four links each, 30 keys a node, filters
//! travel 3 hops, a walk of up to 64 steps outside every range, σ = 0.001; each design with the
//! same networks, keys and questions; and flooding, to everybody.

use umbel::design::papers_standard;
use umbel::model::routing;
use umbel::route::{EntryKind, Plan};
use umbel::{Rate, Shape};

use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::home::shape;
use crate::overlay::{Design, Graph, Outcome, Setting, Stock, Topology, run_on};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "ro-overlay",
    source: "Guo, He and Yang, paper 5, sections 3 and 6 (claims without a figure)",
    title: "Success, messages and wrong decisions of entries and designs, against flooding",
    find,
};

const SIGMA: f64 = 0.001;

const DESIGNS: [(&str, EntryKind, Design); 6] = [
    ("receiver-oriented CUBF", EntryKind::Cubf, Design::ReceiverOriented),
    ("receiver-oriented ABF", EntryKind::Abf, Design::ReceiverOriented),
    ("receiver-oriented attenuated", EntryKind::Attenuated, Design::ReceiverOriented),
    ("traditional CUBF", EntryKind::Cubf, Design::Traditional),
    ("traditional ABF", EntryKind::Abf, Design::Traditional),
    ("traditional attenuated", EntryKind::Attenuated, Design::Traditional),
];

fn base(seed: u64, queries: u64, nodes: usize) -> Setting {
    Setting {
        topology: Topology::RandomRegular,
        nodes,
        degree: 4,
        depth: 3,
        entry: EntryKind::Cubf,
        design: Design::ReceiverOriented,
        stock: Stock::equal(30),
        false_positive: SIGMA,
        filters: None,
        queries,
        walk: 64,
        seed,
    }
}

fn find(bench: &Bench<'_>) -> Findings {
    let is_reduced = bench.asked() < 50_000;
    let (queries, nodes) = (bench.asked() as u64 / 250, if is_reduced { 300 } else { 2000 });
    let trials = bench.trials(|mut random| {
        let base = base(random.next(), queries, nodes);
        let graph = Graph::new(base.topology, nodes, base.degree, base.seed).expect("a network");
        let one = |(_, entry, design)| {
            run_on(&graph, &Setting { entry, design, ..base }, || {}).expect("a small network")
        };
        DESIGNS.map(one).to_vec()
    });
    let mut table = Table::new([
        setting("design"),
        setting("filter_bits"),
        formula("wrong_decisions_formula_percent", 4),
        simulated("wrong_decisions_percent", 4),
        simulated("success_percent", 2),
        simulated("hops_mean", 2),
        simulated("messages_per_query", 1),
        simulated("wrong_forwards_per_query", 3),
        simulated("advertisement_bytes_per_node", 0),
        simulated("memory_bytes_per_node", 0),
    ]);
    for (i, (name, entry, design)) in DESIGNS.into_iter().enumerate() {
        let of =
            |value: &dyn Fn(&Outcome) -> f64| Spread::of(trials.iter().map(|t| value(&t[i]))).mean;
        let shape = shape_for(entry, design);
        table.push([
            name.into(),
            shape.bits().into(),
            (100.0 * closed_form(entry, shape)).into(),
            (100.0 * of(&|outcome| outcome.details.wrong_decisions)).into(),
            (100.0 * of(&|outcome| outcome.success)).into(),
            of(&|outcome| outcome.hops_mean).into(),
            of(&|outcome| outcome.messages_per_query).into(),
            of(&|outcome| outcome.wrong_forwards as f64 / queries as f64).into(),
            of(&|outcome| outcome.advertisement_bytes as f64 / nodes as f64).into(),
            of(&|outcome| outcome.memory_bytes_per_node).into(),
        ]);
    }
    let flood = Spread::of(trials.iter().map(|t| t[0].flood_messages_per_query)).mean;
    let nothing = || Cell::Nothing;
    table.push([
        "flooding".into(),
        0u64.into(),
        nothing(),
        nothing(),
        100.0.into(),
        nothing(),
        flood.into(),
        nothing(),
        nothing(),
        nothing(),
    ]);
    Findings { table, claims: claims(&trials, flood, bench.seeds()), plot: plot(&trials, flood) }
}

/// Four links, three hops: a tree gives each entry 1 + 3 + 9 filters.
const TREE: u64 = 13;

fn shape_for(kind: EntryKind, design: Design) -> Shape {
    let plan = Plan { kind, depth: 3, items: 30, filters: TREE, false_positive: SIGMA };
    if design == Design::ReceiverOriented {
        return plan.shape().expect("in range");
    }
    let paper = papers_standard(30, Rate::new(SIGMA).expect("in range")).expect("in range");
    shape(paper.bits, paper.hashes)
}

/// The rate of an entry of a tree; of an attenuated one that of any of its ORs.
fn closed_form(kind: EntryKind, shape: Shape) -> f64 {
    match kind {
        EntryKind::Cubf => routing::cubf(shape, 30, TREE),
        EntryKind::Abf => routing::abf(shape, 30, TREE),
        EntryKind::Attenuated => {
            1.0 - [1, 3, 9]
                .map(|filters| 1.0 - routing::abf(shape, 30, filters))
                .iter()
                .product::<f64>()
        }
    }
}

fn claims(trials: &[Vec<Outcome>], flood: f64, seeds: u64) -> Vec<Claim> {
    let sum = |i: usize, value: &dyn Fn(&Outcome) -> f64| {
        trials.iter().map(|t| value(&t[i])).sum::<f64>()
    };
    let mean = |i: usize, value: &dyn Fn(&Outcome) -> f64| sum(i, value) / trials.len() as f64;
    let mut claims = Vec::new();
    for (i, (name, ..)) in DESIGNS.into_iter().enumerate().take(3) {
        let decisions = sum(i, &|outcome| outcome.details.strange_decisions as f64);
        let wrong = sum(i, &|outcome| {
            outcome.details.wrong_decisions * outcome.details.strange_decisions as f64
        });
        claims.push(
            Claim::paper("guarantees that the probability of making a wrong routing decision at any given node is sufficiently low", format!("{name}: the rate of wrong link decisions is at most σ = 0.1 %"))
                .stated(100.0 * SIGMA)
                .simulated(100.0 * wrong / decisions.max(1.0), seeds)
                .note(format!("{wrong:.0} of {decisions:.0} links asked for a key that none of their homes has"))
                .judged(wrong <= SIGMA * decisions),
        );
    }
    for (receiver, traditional, name) in [(0, 3, "CUBF"), (1, 4, "ABF")] {
        let messages = |i| mean(i, &|outcome| outcome.messages_per_query);
        let success = |i| mean(i, &|outcome| outcome.success);
        let cost = |i| messages(i) / success(i);
        claims.push(
            Claim::paper("apparently outperforms the existing approaches in terms of the success probability of routing and network traffic cost", format!(
                "{name}: the receiver-oriented design takes less traffic than the traditional one \
                 (messages a query, over those of the traditional)"
            )).unit("over the traditional")
            .stated(1.0)
            .simulated(messages(receiver) / messages(traditional), seeds)
            .note(format!(
                "{:.1} against {:.1}; for each query that succeeds {:.1} against {:.1}",
                messages(receiver),
                messages(traditional),
                cost(receiver),
                cost(traditional)
            ))
            .judged(messages(receiver) < messages(traditional)),
        );
        claims.push(
            Claim::paper("apparently outperforms the existing approaches in terms of the success probability of routing and network traffic cost", format!(
                "{name}: the receiver-oriented design has a higher success probability (over that \
                 of the traditional)"
            )).unit("over the traditional")
            .stated(1.0)
            .simulated(success(receiver) / success(traditional), seeds)
            .note(
                "a little noise sends queries to more hosts, which finds as much at more cost; where \
                 every link claims every key, queries flood their range and no link is left to walk on",
            )
            .judged(success(receiver) > success(traditional)),
        );
    }
    let share = mean(0, &|outcome| outcome.messages_per_query) / flood;
    claims.push(
        Claim::ours(
            "receiver-oriented CUBF takes fewer messages than flooding (over those of flooding)",
        )
        .unit("over flooding")
        .stated(1.0)
        .simulated(share, seeds)
        .judged(share < 1.0),
    );
    claims
}

fn plot(trials: &[Vec<Outcome>], flood: f64) -> Plot {
    let mean =
        |i: usize, value: fn(&Outcome) -> f64| Spread::of(trials.iter().map(|t| value(&t[i]))).mean;
    let points = |value: fn(&Outcome) -> f64| {
        (0..DESIGNS.len()).map(|i| (i as f64, mean(i, value))).collect::<Vec<_>>()
    };
    let panel = |title: &str, y| {
        Panel::new(title, "", y).categories(DESIGNS.map(|(name, ..)| name.to_owned()).to_vec())
    };
    let ends = vec![(0.0, flood), (DESIGNS.len() as f64 - 1.0, flood)];
    Plot::of([
        panel("Messages", "messages a query")
            .log()
            .dots("of a query", 0, points(|o| o.messages_per_query))
            .dashed("flooding", 6, ends),
        panel("Success", "queries that succeed, %").dots(
            "within the walk",
            0,
            points(|o| 100.0 * o.success),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::survey;

    #[test]
    fn entries_of_the_network_are_nearly_those_of_a_tree() {
        let graph = Graph::new(Topology::RandomRegular, 2000, 4, 1).unwrap();
        let (_, filters) = survey(&graph, 3, u64::MAX);
        assert!((filters - TREE as f64).abs() < 0.3, "{filters}");
    }
}
