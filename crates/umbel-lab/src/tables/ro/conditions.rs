//! What the paper leaves to future work: topology, how keys are dealt, popularity, staleness.
//!
//! The paper: "we plan to evaluate the impact of the topological properties, data distribution among
//! the nodes, and the popularity of queries".
//!
//! Ours: receiver-oriented CUBF and ABF, σ = 0.001, 30 keys a node on average, entries planned
//! for as many filters as come over a link on average. `ro-topology`: five networks of 500
//! nodes. `ro-popularity`: keys dealt by Zipf's law, asked for by it, popular ones copied elsewhere.
//! `ro-staleness`: a share of each node's keys that came after its filter was published, no walk.

use umbel::model::standard;
use umbel::route::{EntryKind, Plan};

use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::overlay::{Design, Outcome, Setting, Stock, Topology, run};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const TOPOLOGY: Experiment = Experiment {
    name: "ro-topology",
    source: "Guo, He and Yang, paper 5, section 6 (future work)",
    title: "Routing over networks of different kinds",
    find: |bench| find(bench, &topologies(), Focus::Topology),
};

pub(crate) const POPULARITY: Experiment = Experiment {
    name: "ro-popularity",
    source: "Guo, He and Yang, paper 5, section 6 (future work)",
    title: "Routing with keys that are dealt unevenly, and popular ones copied",
    find: |bench| find(bench, &stocks(), Focus::Popularity),
};

pub(crate) const STALENESS: Experiment = Experiment {
    name: "ro-staleness",
    source: "Guo, He and Yang, paper 5, section 6; papers 1 and 3 on staleness",
    title: "Routing by filters that are stale",
    find: |bench| find(bench, &stale(), Focus::Staleness),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Topology,
    Popularity,
    Staleness,
}

/// What is tried: a name, and the setting without seed and size.
type Case = (&'static str, Setting);

const ENTRIES: [EntryKind; 2] = [EntryKind::Cubf, EntryKind::Abf];

fn base(entry: EntryKind) -> Setting {
    Setting {
        topology: Topology::RandomRegular,
        nodes: 500,
        degree: 4,
        depth: 3,
        entry,
        design: Design::ReceiverOriented,
        stock: Stock::equal(30),
        false_positive: 0.001,
        filters: None,
        queries: 0,
        walk: 32,
        seed: 0,
    }
}

fn topologies() -> Vec<Case> {
    let of = |topology: Topology| {
        ENTRIES.map(|entry| (topology.name(), Setting { topology, ..base(entry) }))
    };
    Topology::ALL.into_iter().flat_map(of).collect()
}

fn stocks() -> Vec<Case> {
    let stock = Stock::equal(30);
    let kinds = [
        ("equal", stock),
        ("zipf 0.5", Stock { skew: 0.5, ..stock }),
        ("zipf 1.0", Stock { skew: 1.0, ..stock }),
        ("popular asked", Stock { popularity: 1.0, ..stock }),
        ("popular copied", Stock { copies: 20, ..stock }),
        ("popular asked and copied", Stock { popularity: 1.0, copies: 20, ..stock }),
    ];
    let of = |(name, stock)| ENTRIES.map(|entry| (name, Setting { stock, ..base(entry) }));
    kinds.into_iter().flat_map(of).collect()
}

const STALE: [(&str, f64); 5] =
    [("fresh", 0.0), ("1 % new", 0.01), ("10 % new", 0.1), ("30 % new", 0.3), ("60 % new", 0.6)];

/// A line on which all hosts are in range of each other, without a random walk: a missed key stays
/// missed.
fn stale() -> Vec<Case> {
    let of = |(name, stale)| {
        ENTRIES.map(|entry| {
            let stock = Stock { stale, ..Stock::equal(100) };
            let setting = Setting {
                topology: Topology::Line,
                nodes: 100,
                depth: 100,
                filters: Some(100),
                stock,
                walk: 0,
                ..base(entry)
            };
            (name, setting)
        })
    };
    STALE.into_iter().flat_map(of).collect()
}

fn find(bench: &Bench<'_>, cases: &[Case], focus: Focus) -> Findings {
    let queries = (bench.asked() / 200) as u64;
    let is_reduced = bench.asked() < 50_000;
    let trials = bench.trials(|mut random| {
        let seed = random.next();
        let one = |(_, setting): &Case| {
            let nodes = if is_reduced { setting.nodes / 5 } else { setting.nodes };
            run(&Setting { nodes, queries, seed, ..*setting }, || {}).expect("a small network")
        };
        cases.iter().map(one).collect::<Vec<Outcome>>()
    });
    let mut table = Table::new([
        setting("case"),
        setting("entry"),
        formula("success_in_range_formula_percent", 2),
        simulated("success_percent", 2),
        simulated("hops_mean", 2),
        simulated("messages_per_query", 1),
        simulated("flood_messages_per_query", 0),
        simulated("filters_per_link", 1),
        simulated("refused_percent", 2),
        simulated("wrong_decisions_percent", 4),
        simulated("advertisement_bytes_per_node", 0),
        simulated("memory_bytes_per_node", 0),
    ]);
    for (i, (name, setting)) in cases.iter().enumerate() {
        let of =
            |value: &dyn Fn(&Outcome) -> f64| Spread::of(trials.iter().map(|t| value(&t[i]))).mean;
        let entry = if setting.entry == EntryKind::Cubf { "cubf" } else { "abf" };
        let nodes = if is_reduced { setting.nodes / 5 } else { setting.nodes } as f64;
        table.push([
            (*name).into(),
            entry.into(),
            closed_form(setting).map_or(Cell::Nothing, |success| (100.0 * success).into()),
            (100.0 * of(&|o| o.success)).into(),
            of(&|o| o.hops_mean).into(),
            of(&|o| o.messages_per_query).into(),
            of(&|o| o.flood_messages_per_query).into(),
            of(&|o| o.details.filters_per_link).into(),
            (100.0 * of(&|o| o.details.refused)).into(),
            (100.0 * of(&|o| o.details.wrong_decisions)).into(),
            of(&|o| o.advertisement_bytes as f64 / nodes).into(),
            of(&|o| o.memory_bytes_per_node).into(),
        ]);
    }
    let claims = claims(cases, &trials, focus, bench.seeds());
    Findings { table, claims, plot: plot(cases, &trials) }
}

/// If all hosts are in range and there is no random walk, a key is found only if it was published,
/// or if its home's filter claims it by chance.
fn closed_form(setting: &Setting) -> Option<f64> {
    if setting.walk > 0 {
        return None;
    }
    let Setting { entry: kind, depth, stock, false_positive, filters, .. } = *setting;
    let plan = Plan { kind, depth, items: stock.items, filters: filters?, false_positive };
    let by_chance = standard::false_positive(plan.shape().ok()?, stock.items);
    Some(1.0 - stock.stale * (1.0 - by_chance))
}

fn claims(cases: &[Case], trials: &[Vec<Outcome>], focus: Focus, seeds: u64) -> Vec<Claim> {
    let mean =
        |i: usize, value: &dyn Fn(&Outcome) -> f64| Spread::of(trials.iter().map(|t| value(&t[i])));
    let worst =
        (0..cases.len()).map(|i| mean(i, &|o| o.details.wrong_decisions).mean).fold(0.0, f64::max);
    let mut claims = vec![
        Claim::paper(
            "of each routing entry always does not exceed",
            "the bound σ = 0.1 % on wrong link decisions holds in every case (largest)",
        )
        .stated(0.1)
        .simulated(100.0 * worst, seeds)
        .judged(worst <= 0.001),
    ];
    let at = |name: &str, entry: EntryKind| {
        cases
            .iter()
            .position(|(other, setting)| *other == name && setting.entry == entry)
            .expect("a case")
    };
    match focus {
        Focus::Topology => {
            let refused =
                |name| 100.0 * mean(at(name, EntryKind::Cubf), &|o| o.details.refused).mean;
            let (alike, uneven) = (refused("random-regular"), refused("scale-free"));
            claims.push(
                Claim::ours(
                    "planning for the average number of filters a link suits networks whose \
                     links are alike, and no others (refused on a scale-free network: above)",
                )
                .stated(10.0)
                .simulated(uneven, seeds)
                .note(format!(
                    "{alike:.2} % are refused on a random regular network; where few links carry \
                     most filters, plan for more (--filters)"
                ))
                .judged(alike < 1.0 && uneven > 10.0),
            );
        }
        Focus::Popularity => {
            let success = |name| mean(at(name, EntryKind::Cubf), &|o| o.success).mean;
            let (asked, copied) = (success("popular asked"), success("popular asked and copied"));
            claims.push(
                Claim::ours(
                    "copies of popular keys make them easier to find (success over that \
                     without copies, both asked for by Zipf's law)",
                )
                .unit("times")
                .stated(1.0)
                .simulated(copied / asked, seeds)
                .above(),
            );
        }
        Focus::Staleness => {
            for entry in ENTRIES {
                let i = at("30 % new", entry);
                let (formula, found) =
                    (closed_form(&cases[i].1).unwrap_or(0.0), mean(i, &|o| o.success));
                claims.push(
                    Claim::ours(format!("{entry}: 30 % of the keys came after the filter, and as many are missed (success in range, percent)"))
                        .stated(70.0)
                        .formula(100.0 * formula)
                        .simulated(100.0 * found.mean, seeds)
                        .rounded_and_simulated(0.1, 100.0 * found.standard_error()),
                );
            }
        }
    }
    claims
}

fn plot(cases: &[Case], trials: &[Vec<Outcome>]) -> Plot {
    let panel = |(colour, entry): (usize, EntryKind)| {
        let mine: Vec<(usize, &Case)> =
            cases.iter().enumerate().filter(|(_, (_, setting))| setting.entry == entry).collect();
        let success = |(place, (i, _)): (usize, &(usize, &Case))| {
            let success = Spread::of(trials.iter().map(|trial| trial[*i].success)).percent();
            (place as f64, success.mean)
        };
        let names = mine.iter().map(|(_, (name, _))| (*name).to_owned()).collect();
        Panel::new(entry.to_string(), "", "queries that succeed, %").categories(names).dots(
            "simulated",
            colour,
            mine.iter().enumerate().map(success).collect(),
        )
    };
    Plot::of([panel((0, ENTRIES[0])), panel((1, ENTRIES[1]))])
}
