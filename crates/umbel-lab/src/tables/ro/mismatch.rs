//! What the paper leaves to future work: overlays that do not match the network below.
//!
//! The paper: "we will study the impact of the topology mismatch problem [28–30] on this work". It says no more.
//! By the titles of its references the problem is that neighbours of an overlay are far from each other in the network
//! below.
//!
//! Ours: hosts have places in a square of rows and columns, the overlay is a grid of them. All are where their links are
//! short, half of them at random places, or all. So the overlay is the same, and only the lengths of its links differ. 900
//! hosts of 30 keys, d = 3, a walk of 32 steps, σ = 0.001; messages are counted in links of the network below.

use umbel::route::EntryKind;

use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::overlay::{
    Built, Count, Design, Graph, Places, Setting, Stock, Tables, Topology, ask, mean_distance,
    question,
};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "ro-mismatch",
    source: "Guo, He and Yang, paper 5, section 6 (future work)",
    title: "Routing over links that are short or long in the network below",
    find,
};

/// How many hosts are at random places, of how many.
const MOVED: [(&str, usize, usize); 3] =
    [("none moved", 0, 1), ("half moved", 1, 2), ("all moved", 1, 1)];

const DESIGNS: [(&str, Design); 2] =
    [("receiver-oriented", Design::ReceiverOriented), ("traditional", Design::Traditional)];

/// Results of the queries, and how far holders were from the hosts that asked.
#[derive(Debug, Clone, Copy)]
struct Found {
    count: Count,
    /// Links of the underlying network on the direct path to the key's home, for the queries that
    /// found it.
    straight: u64,
}

fn base(design: Design, nodes: usize, seed: u64) -> Setting {
    Setting {
        topology: Topology::Grid,
        nodes,
        degree: 4,
        depth: 3,
        entry: EntryKind::Cubf,
        design,
        stock: Stock::equal(30),
        false_positive: 0.001,
        filters: None,
        queries: 0,
        walk: 32,
        seed,
    }
}

/// All designs, each with all places: the same questions.
fn trial(mut random: Random, nodes: usize, queries: u64) -> Vec<Found> {
    let seed = random.next();
    let graph = Graph::new(Topology::Grid, nodes, 4, seed).expect("a network");
    let places = MOVED.map(|(_, moved, of)| Places::new(nodes, nodes * moved / of, &mut random));
    let mut all = Vec::new();
    for (_, design) in DESIGNS {
        let setting = base(design, nodes, seed);
        let built = Built::new(&graph, &setting).expect("a small network");
        for places in &places {
            let network = built.network(&graph, setting.walk, Some(places));
            let mut tables = Tables::new(1 << 30);
            let mut found = Found { count: Count::default(), straight: 0 };
            for number in 0..queries {
                let (question, random) = question(&network, seed, number);
                let count = ask(&network, &mut tables, question, random);
                let straight = network.distance_below(question.at, question.home);
                found.straight += count.found * straight;
                found.count.add(&count);
            }
            all.push(found);
        }
    }
    all
}

impl Found {
    fn per_query(&self, value: u64) -> f64 {
        value as f64 / self.count.queries as f64
    }

    fn below(&self) -> f64 {
        self.per_query(self.count.messages_below)
    }

    fn mean_link(&self) -> f64 {
        self.count.messages_below as f64 / self.count.messages as f64
    }

    /// Length of the path of answers, divided by that of the direct path.
    fn stretch(&self) -> f64 {
        self.count.way_below as f64 / self.straight.max(1) as f64
    }
}

/// Mean length of a link, of which a share of the hosts is at random places: both ends must be in theirs for a link of
/// one hop.
fn mean_link(width: f64, moved: f64) -> f64 {
    let stays = (1.0 - moved) * (1.0 - moved);
    stays + (1.0 - stays) * mean_distance(width)
}

fn find(bench: &Bench<'_>) -> Findings {
    let width = if bench.asked() < 50_000 { 10 } else { 30 };
    let (nodes, queries) = (width * width, bench.asked() as u64 / 200);
    let trials = bench.trials(|random| trial(random, nodes, queries));
    let mut table = Table::new([
        setting("design"),
        setting("places"),
        formula("mean_link_formula", 2),
        simulated("mean_link", 2),
        simulated("success_percent", 2),
        simulated("wrong_decisions_percent", 4),
        simulated("hops_mean", 2),
        simulated("messages_per_query", 1),
        simulated("messages_below_per_query", 1),
        simulated("way_over_straight_way", 2),
    ]);
    for (i, (design, _)) in DESIGNS.into_iter().enumerate() {
        for (j, (places, moved, of)) in MOVED.into_iter().enumerate() {
            let row = i * MOVED.len() + j;
            let mean = |value: &dyn Fn(&Found) -> f64| Spread::of_row(&trials, row, value).mean;
            table.push([
                design.into(),
                places.into(),
                mean_link(width as f64, moved as f64 / of as f64).into(),
                mean(&Found::mean_link).into(),
                (100.0 * mean(&|found| found.per_query(found.count.found))).into(),
                (100.0 * mean(&|found| found.count.wrong_share())).into(),
                mean(&|found| found.count.hops as f64 / found.count.found.max(1) as f64).into(),
                mean(&|found| found.per_query(found.count.messages)).into(),
                mean(&Found::below).into(),
                mean(&Found::stretch).into(),
            ]);
        }
    }
    let claims = claims(&trials, width as f64, bench.seeds());
    Findings { table, claims, plot: plot(&trials) }
}

fn claims(trials: &[Vec<Found>], width: f64, seeds: u64) -> Vec<Claim> {
    let of = |row, value: &dyn Fn(&Found) -> f64| Spread::of_row(trials, row, value);
    let (matched, all) = (0, MOVED.len() - 1);
    let decisions =
        |row| of(row, &|found| found.per_query(found.count.found) + found.count.wrong_share()).mean;
    let link = of(all, &Found::mean_link);
    let saved = |row: usize| {
        let traditional = of(row + MOVED.len(), &Found::below).mean;
        100.0 * of(row, &Found::below).mean / traditional
    };
    vec![
        Claim::ours(
            "a mismatch changes neither success nor wrong decisions of the receiver-oriented design (difference, points)",
        )
        .unit("points")
        .stated(0.0)
        .simulated(100.0 * (decisions(all) - decisions(matched)), seeds)
        .note("filters travel hops of the overlay, and know nothing of the network below")
        .within(0.0),
        Claim::ours(
            "messages pass as many more links of the network below as links of the overlay are longer (mean length, all hosts moved)",
        )
        .unit("links")
        .stated(mean_link(width, 1.0))
        .formula(mean_link(width, 1.0))
        .simulated(link.mean, seeds)
        .note("two thirds of the square's width; links at its edge are asked less often, and are as long as any")
        .rounded_and_simulated(0.1 * mean_link(width, 1.0), link.standard_error()),
        Claim::ours(
            "the receiver-oriented design saves as much where the overlay does not match (its traffic below over that of the traditional design, all hosts moved over none moved)",
        )
        .unit("times")
        .stated(1.0)
        .simulated(saved(all) / saved(matched), seeds)
        .note("a false claim costs a message more, whose length is that of any other")
        .within(0.05),
    ]
}

fn plot(trials: &[Vec<Found>]) -> Plot {
    let names = || MOVED.map(|(name, ..)| name.to_owned()).to_vec();
    let points = |design: usize, value: fn(&Found) -> f64| {
        let point =
            |j: usize| (j as f64, Spread::of_row(trials, design * MOVED.len() + j, value).mean);
        (0..MOVED.len()).map(point).collect::<Vec<_>>()
    };
    let panel = |title: &str, y: &'static str, value: fn(&Found) -> f64| {
        Panel::new(title, "", y).categories(names()).dots(DESIGNS[0].0, 0, points(0, value)).dots(
            DESIGNS[1].0,
            1,
            points(1, value),
        )
    };
    Plot::of([
        panel("Traffic", "links of the network below a query", Found::below),
        panel("Ways", "way of an answer over the straight one", Found::stretch),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_their_places_pass_one_link_a_message() {
        let all = trial(Random::of_trial(1, "mismatch", 0), 100, 20);
        assert_eq!(all[0].count.messages, all[0].count.messages_below);
        assert_eq!(all[0].count.hops, all[0].count.way_below);
        assert!(all[2].count.messages_below > 4 * all[2].count.messages);
        assert_eq!(all[0].count.messages, all[2].count.messages, "the overlay is the same");
    }
}
