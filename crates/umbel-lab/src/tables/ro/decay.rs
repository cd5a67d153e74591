//! What the paper leaves to future work: weak state routing with decay filters.
//!
//! The paper: "weak state routing using decay BFs is another potential research direction [6]". It says no more; [6]
//! (Kumar, Xu and Zegura, 2005) is about filters whose information decays exponentially with the number of hops.
//!
//! Ours, after that idea: a host tells a neighbour the OR of its own filter and of what it received over its other links,
//! of which each one bit is kept with probability 1/D. So there is one filter a link, and no end to how far it reaches: h hops
//! away a key has k/D^(h-1) of its k bits, above the noise. A query goes to the neighbour that has most bits of the key and was
//! not asked yet, up to 64 steps. Random regular networks of 500 nodes with four links each, 30 keys a node, k = 32, eight
//! rounds; as many bits a link as a receiver-oriented ABF for d = 3 takes (σ = 0.001). Beside it that ABF, a CUBF, and a walk
//! that knows nothing, with the same networks and questions.

use umbel::route::{EntryKind, Plan};
use umbel::{HashId, KeyHash, KeyHasher, Scheme, Seed, StandardFilter};

use super::super::{formula, setting, simulated};
use crate::Experiment;
use crate::home::shape;
use crate::overlay::{Design, Graph, Outcome, Setting, Stock, Topology, run_on};
use crate::plan::Bench;
use crate::plot::{Panel, Plot};
use crate::random::Random;
use crate::report::{Cell, Claim, Findings, Table};
use crate::spread::Spread;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "ro-decay",
    source: "Guo, He and Yang, paper 5, section 6 (future work)",
    title: "Weak state: filters that decay with every hop, beside filters that travel three",
    find,
};

const SIGMA: f64 = 0.001;
const KEYS: u64 = 30;
const DEGREE: usize = 4;
const HASHES: u32 = 32;
const ROUNDS: u32 = 8;
const STEPS: u32 = 64;
/// Distances at which decisions are counted.
const DISTANCES: usize = 4;

/// D as a power of two: each one bit is kept with probability 2^-exponent.
const DECAYS: [(&str, u32); 3] = [("decay, D = 2", 1), ("decay, D = 4", 2), ("decay, D = 8", 3)];
const OTHERS: [(&str, EntryKind); 2] =
    [("ABF, d = 3", EntryKind::Abf), ("CUBF, d = 3", EntryKind::Cubf)];
const WALK: &str = "walk alone";

/// Results of the queries.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    fill: f64,
    success: f64,
    hops: f64,
    messages: f64,
    /// For each distance: how many of the first decisions led nearer, and how many there were.
    nearer: [(f64, f64); DISTANCES],
}

impl Found {
    fn of(outcome: &Outcome) -> Self {
        let Outcome { success, hops_mean, messages_per_query, .. } = *outcome;
        Self { success, hops: hops_mean, messages: messages_per_query, ..Self::default() }
    }
}

fn base(nodes: usize, queries: u64, seed: u64, entry: EntryKind) -> Setting {
    Setting {
        topology: Topology::RandomRegular,
        nodes,
        degree: DEGREE,
        depth: 3,
        entry,
        design: Design::ReceiverOriented,
        stock: Stock::equal(KEYS),
        false_positive: SIGMA,
        filters: None,
        queries,
        walk: STEPS,
        seed,
    }
}

/// As many bits as an ABF of 1 + 3 + 9 filters needs.
fn bits() -> u64 {
    let plan =
        Plan { kind: EntryKind::Abf, depth: 3, items: KEYS, filters: 13, false_positive: SIGMA };
    plan.shape().expect("in range").bits()
}

/// The share of ones of a link's filter: a host's own bits, and what decays of the filters of its three other links, round by
/// round.
fn fill(decay: f64) -> f64 {
    let own = 1.0 - (-f64::from(HASHES) * KEYS as f64 / bits() as f64).exp();
    let others = (DEGREE - 1) as i32;
    (0..ROUNDS).fold(0.0, |fill, _| 1.0 - (1.0 - own) * (1.0 - fill / decay).powi(others))
}

/// Filters of all links in both directions, by the host that receives them and its link.
struct Decaying<'a> {
    graph: &'a Graph,
    scheme: Scheme,
    /// What each host received over each link, in the order of the network's links.
    received: Vec<Vec<Vec<u64>>>,
}

impl<'a> Decaying<'a> {
    fn new(graph: &'a Graph, exponent: u32, random: &mut Random) -> Self {
        let hasher = KeyHasher::new(HashId::Xxh3, Seed::from_number(random.next()));
        let scheme = Scheme::new(shape(bits(), HASHES), hasher);
        let nodes = graph.nodes() as u32;
        let own: Vec<Vec<u64>> = (0..nodes).map(|node| own_filter(&scheme, node)).collect();
        let empty = vec![0; own[0].len()];
        let links = |node| graph.neighbours(node).len();
        let mut received: Vec<Vec<Vec<u64>>> =
            (0..nodes).map(|node| vec![empty.clone(); links(node)]).collect();
        for _ in 0..ROUNDS {
            for filter in received.iter_mut().flatten() {
                decay(filter, exponent, random);
            }
            let sent = |from: u32, to: u32| {
                let mut all = own[from as usize].clone();
                for (other, filter) in graph.neighbours(from).iter().zip(&received[from as usize]) {
                    if *other != to {
                        all.iter_mut().zip(filter).for_each(|(all, word)| *all |= word);
                    }
                }
                all
            };
            received = (0..nodes)
                .map(|node| graph.neighbours(node).iter().map(|from| sent(*from, node)).collect())
                .collect();
        }
        Self { graph, scheme, received }
    }

    fn fill(&self) -> f64 {
        let ones =
            |filter: &Vec<u64>| filter.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let (sum, count) = self
            .received
            .iter()
            .flatten()
            .fold((0, 0), |(sum, count), filter| (sum + ones(filter), count + 1));
        sum as f64 / (count * self.scheme.shape().bits()) as f64
    }

    /// How many bits of a key each link of a host has.
    fn bits_of(&self, node: u32, positions: &[u64]) -> Vec<u32> {
        let has = |filter: &Vec<u64>| {
            let is_one = |at: &&u64| filter[(**at / 64) as usize] >> (**at % 64) & 1 == 1;
            positions.iter().filter(is_one).count() as u32
        };
        self.received[node as usize].iter().map(has).collect()
    }

    /// Queries for a key of a home, step by step; without filters all links are equally good.
    fn ask(&self, at: u32, home: u32, random: &mut Random, uses_filters: bool) -> Found {
        let digest =
            self.scheme.digest_of(key(&self.scheme, home, random.below(KEYS as usize) as u32));
        let positions: Vec<u64> = digest.positions(self.scheme.shape()).collect();
        let distances = distances(self.graph, home);
        let (mut found, mut visited, mut node) = (Found::default(), vec![at], at);
        for step in 1..=STEPS {
            let neighbours = self.graph.neighbours(node);
            let bits = match uses_filters {
                true => self.bits_of(node, &positions),
                false => vec![0; neighbours.len()],
            };
            // The link with the most bits among neighbours not asked yet; ties are broken at
            // random.
            let best = (0..neighbours.len())
                .map(|link| (!visited.contains(&neighbours[link]), bits[link], random.next(), link))
                .max();
            let next = best.map_or(node, |(.., link)| neighbours[link]);
            let distance = distances[node as usize] as usize;
            if step == 1 && (1..=DISTANCES).contains(&distance) {
                let is_nearer = distances[next as usize] < distances[node as usize];
                found.nearer[distance - 1] = (f64::from(u8::from(is_nearer)), 1.0);
            }
            node = next;
            visited.push(node);
            found.messages += 2.0;
            if node == home {
                (found.success, found.hops) = (1.0, f64::from(step));
                break;
            }
        }
        found
    }
}

fn key(scheme: &Scheme, home: u32, number: u32) -> KeyHash {
    scheme.hasher().hash(&(u64::from(home) << 32 | u64::from(number)).to_le_bytes())
}

fn own_filter(scheme: &Scheme, node: u32) -> Vec<u64> {
    let mut filter = StandardFilter::new(*scheme).expect("memory for a small filter");
    for number in 0..KEYS as u32 {
        filter.insert_digest(scheme.digest_of(key(scheme, node, number)));
    }
    filter.bits().words().to_vec()
}

/// Keeps each one bit with probability 2^-exponent.
fn decay(filter: &mut [u64], exponent: u32, random: &mut Random) {
    for word in filter {
        for _ in 0..exponent {
            *word &= random.next();
        }
    }
}

/// Hops of every host to a home.
fn distances(graph: &Graph, home: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; graph.nodes()];
    hops[home as usize] = 0;
    let mut open = vec![home];
    while !open.is_empty() {
        let mut next = Vec::new();
        for node in open {
            for other in graph.neighbours(node) {
                if hops[*other as usize] == u32::MAX {
                    hops[*other as usize] = hops[node as usize] + 1;
                    next.push(*other);
                }
            }
        }
        open = next;
    }
    hops
}

/// All rows of the table: decays, other entries, a walk that knows nothing.
fn trial(mut random: Random, nodes: usize, queries: u64) -> Vec<Found> {
    let seed = random.next();
    let graph = Graph::new(Topology::RandomRegular, nodes, DEGREE, seed).expect("a network");
    let ask_all = |decaying: &Decaying<'_>, uses_filters: bool| {
        let mut all = Found { fill: decaying.fill(), ..Found::default() };
        for number in 0..queries {
            let mut random = Random::of_trial(seed, "decay", number);
            let at = random.below(nodes);
            let home = (at + 1 + random.below(nodes - 1)) % nodes;
            let found = decaying.ask(at as u32, home as u32, &mut random, uses_filters);
            all.success += found.success / queries as f64;
            all.hops += found.hops;
            all.messages += found.messages / queries as f64;
            for (all, found) in all.nearer.iter_mut().zip(found.nearer) {
                *all = (all.0 + found.0, all.1 + found.1);
            }
        }
        all.hops /= (all.success * queries as f64).max(1.0);
        all
    };
    let mut all = Vec::new();
    let mut last = None;
    for (_, exponent) in DECAYS {
        let decaying = Decaying::new(&graph, exponent, &mut random);
        all.push(ask_all(&decaying, true));
        last = Some(decaying);
    }
    for (_, entry) in OTHERS {
        let outcome = run_on(&graph, &base(nodes, queries, seed, entry), || {});
        all.push(Found::of(&outcome.expect("a small network")));
    }
    all.extend(last.map(|decaying| Found { fill: 0.0, ..ask_all(&decaying, false) }));
    all
}

fn find(bench: &Bench<'_>) -> Findings {
    let (nodes, queries) =
        (if bench.asked() < 50_000 { 100 } else { 500 }, bench.asked() as u64 / 200);
    let trials = bench.trials(|random| trial(random, nodes, queries));
    let mut table = Table::new([
        setting("entry"),
        formula("fill_formula_percent", 1),
        simulated("fill_percent", 1),
        simulated("nearer_from_1_percent", 1),
        simulated("nearer_from_2_percent", 1),
        simulated("nearer_from_3_percent", 1),
        simulated("nearer_from_4_percent", 1),
        simulated("success_percent", 1),
        simulated("hops_mean", 1),
        simulated("messages_per_query", 1),
    ]);
    for (i, name) in names().enumerate() {
        let mean = |value: fn(&Found) -> f64| Spread::of_row(&trials, i, value).mean;
        let decay = DECAYS.get(i).map(|(_, exponent)| f64::from(1 << exponent));
        let is_of_steps = decay.is_some() || name == WALK;
        let nearer = |distance| match is_of_steps {
            true => (100.0 * nearer(&trials, i, distance)).into(),
            false => Cell::Nothing,
        };
        table.push([
            name.into(),
            decay.map_or(Cell::Nothing, |decay| (100.0 * fill(decay)).into()),
            decay.map_or(Cell::Nothing, |_| (100.0 * mean(|found| found.fill)).into()),
            nearer(1),
            nearer(2),
            nearer(3),
            nearer(4),
            (100.0 * mean(|found| found.success)).into(),
            mean(|found| found.hops).into(),
            mean(|found| found.messages).into(),
        ]);
    }
    Findings { table, claims: claims(&trials, bench.seeds()), plot: plot(&trials) }
}

fn names() -> impl Iterator<Item = &'static str> {
    DECAYS.iter().map(|(name, _)| *name).chain(OTHERS.iter().map(|(name, _)| *name)).chain([WALK])
}

/// The share of first decisions, so many hops from the home, that led nearer.
fn nearer(trials: &[Vec<Found>], i: usize, distance: usize) -> f64 {
    let sum = |value: fn(&(f64, f64)) -> f64| {
        trials.iter().map(|trial| value(&trial[i].nearer[distance - 1])).sum::<f64>()
    };
    sum(|(nearer, _)| *nearer) / sum(|(_, count)| *count).max(1.0)
}

/// D = 4, the ABF and the walk among the rows.
const FOUR: usize = 1;
const ABF: usize = DECAYS.len();
const ALONE: usize = DECAYS.len() + OTHERS.len();

fn claims(trials: &[Vec<Found>], seeds: u64) -> Vec<Claim> {
    let of = |i, value: fn(&Found) -> f64| Spread::of_row(trials, i, value);
    let found = of(FOUR, |found| found.fill).percent();
    let success = |i| 100.0 * of(i, |found| found.success).mean;
    let cost = |i| of(i, |found| found.messages).mean / of(i, |found| found.success).mean;
    vec![
        Claim::ours("D = 4: ones of a link's filter")
            .stated(100.0 * fill(4.0))
            .formula(100.0 * fill(4.0))
            .simulated(found.mean, seeds)
            .note("the formula takes filters of different links for independent of each other")
            .rounded_and_simulated(5.0 * fill(4.0), found.standard_error()),
        Claim::ours("D = 4: from two hops away, more decisions lead nearer than those of a walk that knows nothing (over the walk's)")
            .unit("times")
            .stated(1.0)
            .simulated(nearer(trials, FOUR, 2) / nearer(trials, ALONE, 2), seeds)
            .above(),
        Claim::ours("D = 4: from four hops away, where a key has half a bit of 32 above the noise, decisions are no better than chance (more than the walk's, points)")
            .unit("points")
            .stated(0.0)
            .simulated(100.0 * (nearer(trials, FOUR, 4) - nearer(trials, ALONE, 4)), seeds)
            .note("half a bit tips the balance a little; the tolerance is 10 points")
            .within(10.0),
        Claim::ours("decay filters of as many bits find more than an ABF that travels three hops (D = 4, success over that of the ABF)")
            .unit("times")
            .stated(1.0)
            .simulated(success(FOUR) / success(ABF), seeds)
            .note(format!(
                "messages for each query that succeeds: {:.0} against {:.0}; a walk alone finds {:.0} % for {:.0}",
                cost(FOUR),
                cost(ABF),
                success(ALONE),
                cost(ALONE)
            ))
            .above(),
    ]
}

fn plot(trials: &[Vec<Found>]) -> Plot {
    let points = |value: &dyn Fn(&Found) -> f64| {
        let point = |(i, _): (usize, &str)| (i as f64, Spread::of_row(trials, i, value).mean);
        names().enumerate().map(point).collect::<Vec<_>>()
    };
    let panel = |title: &str, y: &'static str| {
        Panel::new(title, "", y).categories(names().map(str::to_owned).collect())
    };
    let by_distance = |i: usize| {
        let point = |hops| (hops as f64, 100.0 * nearer(trials, i, hops));
        (1..=DISTANCES).map(point).collect::<Vec<_>>()
    };
    let mut decisions = Panel::new("Decisions", "hops to the home", "that lead nearer, %");
    for (i, (name, _)) in DECAYS.into_iter().enumerate() {
        decisions = decisions.line(name, i, by_distance(i));
    }
    Plot::of([
        panel("Success", "queries that succeed, %").dots(
            "within 64 steps",
            0,
            points(&|found| 100.0 * found.success),
        ),
        panel("Messages", "messages a query").dots(
            "of a query",
            0,
            points(&|found| found.messages),
        ),
        decisions.dashed(WALK, 6, by_distance(ALONE)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_has_all_bits_of_a_key_and_half_of_them_go_with_every_hop() {
        let line = Graph::new(Topology::Line, 5, 2, 1).unwrap();
        let mut random = Random::of_trial(1, "decay", 0);
        let decaying = Decaying::new(&line, 1, &mut random);
        let mut bits = [0; 5];
        for number in 0..KEYS as u32 {
            let digest = decaying.scheme.digest_of(key(&decaying.scheme, 4, number));
            let positions: Vec<u64> = digest.positions(decaying.scheme.shape()).collect();
            for node in 0..4 {
                let link = line.neighbours(node).len() - 1;
                bits[node as usize] += decaying.bits_of(node, &positions)[link];
            }
        }
        let all = KEYS as u32 * HASHES;
        assert_eq!(bits[3], all, "the neighbour's filter came whole");
        for node in 0..3 {
            assert!(bits[node] < bits[node + 1], "{bits:?}");
        }
    }

    #[test]
    fn one_bit_in_four_stays() {
        let mut filter = vec![u64::MAX; 1000];
        decay(&mut filter, 2, &mut Random::of_trial(1, "decay", 0));
        let ones: u32 = filter.iter().map(|word| word.count_ones()).sum();
        assert!((15_500..16_500).contains(&ones), "{ones}");
    }

    #[test]
    fn hops_are_counted_from_the_home() {
        let line = Graph::new(Topology::Line, 4, 2, 1).unwrap();
        assert_eq!(distances(&line, 1), [1, 0, 1, 2]);
    }
}
