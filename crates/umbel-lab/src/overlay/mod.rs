//! Large overlays: filters travel `d` hops, queries follow them, all from a seed.
//!
//! Hosts have the routing tables and visits of `umbel::route`, with real filters; messages take
//! one unit of time and none is lost (worlds that lose some are tests of the router itself). All
//! of a network's filters travel first, then queries are asked, each from a random host for a
//! key of a random other one.
//!
//! Always true: the same setting gives the same outcome to the last digit, on any number of
//! threads.

mod homes;
mod search;
mod spreading;
#[cfg(test)]
mod tests;
mod topology;

use std::num::NonZeroUsize;
use std::thread;

use serde::Serialize;
use umbel::Rate;
use umbel::design::papers_standard;
use umbel::route::{EntryKind, Plan};

pub(crate) use homes::Homes;
pub use homes::Stock;
pub(crate) use search::{Count, Network, Question, Tables, ask};
pub(crate) use spreading::{Entries, survey};
pub use topology::{Graph, Topology};

use crate::home::shape;
use crate::random::Random;

/// How a home's filter is designed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// For the entry that it ends up in, which refuses what it has no room for.
    ReceiverOriented,
    /// For itself alone, and entries take everything.
    Traditional,
}

/// A network and what it is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Who is linked with whom.
    pub topology: Topology,
    /// Hosts.
    pub nodes: usize,
    /// Links of a host on average, where the topology leaves a choice.
    pub degree: usize,
    /// Hops that filters travel.
    pub depth: u8,
    /// How a link's entry keeps them.
    pub entry: EntryKind,
    /// How filters are designed.
    pub design: Design,
    /// What homes hold.
    pub stock: Stock,
    /// Chance that an entry claims a stranger (of the traditional design: that a filter does).
    pub false_positive: f64,
    /// Filters that an entry is planned for; `None`: as many as come over a link on average.
    pub filters: Option<u64>,
    /// Queries.
    pub queries: u64,
    /// Steps of the random walk outside every range.
    pub walk: u32,
    /// Where all randomness comes from.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outcome {
    /// Share of queries that reached a holder.
    pub success: f64,
    /// Hops to the holder, of those that did.
    pub hops_mean: f64,
    /// Queries and answers sent for one query, hop by hop.
    pub messages_per_query: f64,
    /// Forwards, of all queries, over links that claimed the key by mistake.
    pub wrong_forwards: u64,
    /// The same if everybody passed a query on to all its neighbours.
    pub flood_messages_per_query: f64,
    /// Bytes of all messages that carry every filter once to everybody in range.
    pub advertisement_bytes: u64,
    /// Bytes of a host's table, and of the filters that it keeps to tell them on.
    pub memory_bytes_per_node: f64,
    /// What is not printed as JSON.
    #[serde(skip)]
    pub details: Details,
}

/// Numbers behind an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Details {
    /// Filters that come over a link, on average.
    pub filters_per_link: f64,
    /// Filters that entries were planned for.
    pub planned_filters: u64,
    /// Bits of a filter.
    pub bits: u64,
    /// Hashes of a filter.
    pub hashes: u32,
    /// Share of offered filters that entries refused.
    pub refused: f64,
    /// Links asked for a key that none of their homes has, where a query was asked or walked.
    pub strange_decisions: u64,
    /// Share of these that claimed it.
    pub wrong_decisions: f64,
}

/// Filters that may travel before a network is refused: what fits into memory.
const MOST_OFFERS: u64 = 400_000_000;
/// Memory for routing tables, of all threads together.
const TABLE_BYTES: u64 = 6 << 30;
/// Memory for all else that grows with network and depth.
const MOST_BYTES: u64 = 8 << 30;
/// Hosts whose memory is measured.
const MEASURED: usize = 500;

/// Runs one setting; `done` is told of every query.
///
/// # Errors
/// In one line, if there is no such network or it is too large to simulate.
pub fn run(setting: &Setting, done: impl Fn() + Sync) -> Result<Outcome, String> {
    let graph = Graph::new(setting.topology, setting.nodes, setting.degree, setting.seed)?;
    run_on(&graph, setting, done)
}

/// The same on a network that is there already.
pub(crate) fn run_on(
    graph: &Graph,
    setting: &Setting,
    done: impl Fn() + Sync,
) -> Result<Outcome, String> {
    let (offers, filters_per_link) = survey(graph, setting.depth, MOST_OFFERS);
    if offers > MOST_OFFERS {
        return Err(format!(
            "more than {MOST_OFFERS} filters would travel: take a smaller --depth or fewer --nodes"
        ));
    }
    let filters = setting.filters.unwrap_or_else(|| filters_per_link.ceil().max(1.0) as u64);
    let Setting { entry: kind, depth, false_positive, stock, .. } = *setting;
    let plan = Plan { kind, depth, items: stock.items, filters, false_positive };
    let error = |error: umbel::params::ParamError| error.to_string();
    let shape = match setting.design {
        Design::ReceiverOriented => plan.shape().map_err(error)?,
        Design::Traditional => {
            let rate = Rate::new(false_positive).map_err(error)?;
            let paper = papers_standard(stock.items, rate).map_err(error)?;
            shape(paper.bits, paper.hashes)
        }
    };
    check_memory(graph, &plan, shape.bits(), offers)?;
    let limited = setting.design == Design::ReceiverOriented;
    let homes = Homes::new(graph.nodes(), stock, &plan, shape, setting.seed).map_err(error)?;
    let entries = Entries::spread(graph, &homes, &plan, limited);
    let network = Network { graph, homes: &homes, entries: &entries, plan, walk: setting.walk };
    let count = ask_all(&network, setting, &done);
    let details = Details {
        filters_per_link,
        planned_filters: filters,
        bits: shape.bits(),
        hashes: shape.hashes(),
        refused: entries.refused as f64 / entries.offered.max(1) as f64,
        strange_decisions: count.strange_decisions,
        wrong_decisions: count.wrong_decisions as f64 / count.strange_decisions.max(1) as f64,
    };
    let queries = count.queries.max(1) as f64;
    Ok(Outcome {
        success: count.found as f64 / queries,
        hops_mean: count.hops as f64 / count.found.max(1) as f64,
        messages_per_query: count.messages as f64 / queries,
        wrong_forwards: count.wrong_forwards,
        flood_messages_per_query: flood(graph, setting),
        advertisement_bytes: entries.bytes,
        memory_bytes_per_node: memory(&network),
        details,
    })
}

fn check_memory(graph: &Graph, plan: &Plan, bits: u64, offers: u64) -> Result<(), String> {
    // Lists of homes, twice while they grow, and an OR for each link while filters travel.
    let lists = offers * 16;
    let unions = match plan.kind {
        EntryKind::Cubf => 0,
        _ => graph.directed_links() as u64 * bits / 8,
    };
    let filters = graph.nodes() as u64 * bits / 8;
    let needed = lists + unions + filters;
    if needed > MOST_BYTES {
        return Err(format!(
            "this takes about {} GB for lists and filters, and {} GB are the most: take a smaller --depth, fewer --nodes or --items, or cubf entries",
            needed / 1_000_000_000,
            MOST_BYTES / 1_000_000_000
        ));
    }
    Ok(())
}

/// The questions of a setting: each from a random host for a key of a random other one.
fn question(network: &Network<'_>, seed: u64, number: u64) -> (Question, Random) {
    let mut random = Random::of_trial(seed, "query", number);
    let nodes = network.graph.nodes();
    let at = random.below(nodes);
    let home = (at + 1 + random.below(nodes - 1)) % nodes;
    let key = network.homes.pick(home as u32, &mut random);
    (Question { at: at as u32, home: home as u32, number: key }, random)
}

fn ask_all(network: &Network<'_>, setting: &Setting, done: &(impl Fn() + Sync)) -> Count {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(8) as u64;
    let work = |thread: u64| {
        let mut tables = Tables::new(TABLE_BYTES / threads);
        let mut count = Count::default();
        for number in (thread..setting.queries).step_by(threads as usize) {
            let (question, random) = question(network, setting.seed, number);
            count.add(&ask(network, &mut tables, question, random));
            done();
        }
        count
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut count = work(0);
        others.into_iter().for_each(|other| count.add(&other.join().expect("no query panics")));
        count
    })
}

/// Messages of a query that everybody passes on to all its neighbours but the one it came from:
/// over every link once in each direction, but for one direction of the links by which it comes
/// first; and the answer's way back.
fn flood(graph: &Graph, setting: &Setting) -> f64 {
    let parts = graph.parts();
    let mut links = vec![0u64; graph.nodes()];
    for (node, (part, _)) in parts.iter().enumerate() {
        links[*part as usize] += graph.neighbours(node as u32).len() as u64;
    }
    let mut total = 0;
    for number in 0..setting.queries {
        let mut random = Random::of_trial(setting.seed, "query", number);
        let (part, size) = parts[random.below(graph.nodes())];
        total += links[part as usize] - (size as u64 - 1);
    }
    total as f64 / setting.queries.max(1) as f64
}

/// Mean bytes of a host's table and of the coded filters that it keeps to tell them on.
fn memory(network: &Network<'_>) -> f64 {
    let nodes = network.graph.nodes();
    let measured = nodes.min(MEASURED);
    let mut total = 0;
    for index in 0..measured {
        let node = (index * nodes / measured) as u32;
        let table = network.entries.table(network.graph, network.homes, &network.plan, node);
        let first = network.graph.first_link(node);
        let links = network.graph.neighbours(node).len();
        let mut kept: Vec<u32> = (first..first + links)
            .flat_map(|place| network.entries.of(place).map(|(home, _)| home))
            .collect();
        kept.sort_unstable();
        kept.dedup();
        total += table.memory_bytes();
        total +=
            kept.iter().map(|home| u64::from(network.homes.advert[*home as usize])).sum::<u64>();
    }
    total as f64 / measured as f64
}
