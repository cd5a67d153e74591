//! Simulates large overlays: filters travel `d` hops and queries follow them, all from a seed.
//!
//! Hosts use the routing tables and visits of `umbel::route`, with real filters. Messages take one
//! unit of time and none is lost (simulations with loss are tests of the router itself). First all
//! filters of a network travel; then queries are sent, each from a random host for a key of another
//! random one.
//!
//! Always true: the same setting gives the same outcome to the last digit, on any number of
//! threads.

mod homes;
mod places;
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
pub(crate) use places::{Places, mean_distance};
pub(crate) use search::{Count, Lookup, Network, Tables, ask};
pub(crate) use spreading::{Entries, survey};
pub use topology::{Graph, Topology};

use crate::home::shape;
use crate::random::Random;

/// How a home's filter is designed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// For the entry in which it is combined with others; an entry rejects what it has no room for.
    ReceiverOriented,
    /// For itself only; entries accept everything.
    Traditional,
}

/// A network and its queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Which hosts are linked.
    pub topology: Topology,
    /// Hosts.
    pub nodes: usize,
    /// Average number of links per host, if the topology does not determine it.
    pub degree: usize,
    /// Hops that filters travel.
    pub depth: u8,
    /// How a link's entry keeps them.
    pub entry: EntryKind,
    /// How filters are designed.
    pub design: Design,
    /// Which keys homes hold.
    pub stock: Stock,
    /// Probability that an entry claims a key that it does not contain (in the traditional design:
    /// that a single filter does).
    pub false_positive: f64,
    /// Filters that an entry is planned for; `None` means the average number that arrive over a
    /// link.
    pub filters: Option<u64>,
    /// Queries.
    pub queries: u64,
    /// Steps of the random walk where no filter claims the key.
    pub walk: u32,
    /// Seed of all randomness.
    pub seed: u64,
}

/// Result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outcome {
    /// Share of queries that reached a holder.
    pub success: f64,
    /// Hops to the holder, of those that did.
    pub hops_mean: f64,
    /// Messages per query: queries and answers, counted per hop.
    pub messages_per_query: f64,
    /// Forwards, of all queries, over links that claimed the key by mistake.
    pub wrong_forwards: u64,
    /// The same if every host forwarded a query to all its neighbours.
    pub flood_messages_per_query: f64,
    /// Bytes of all messages that carry every filter once to every host in range.
    pub advertisement_bytes: u64,
    /// Bytes of a host's table, and of the filters that it keeps to forward them.
    pub memory_bytes_per_node: f64,
    /// What is not printed as JSON.
    #[serde(skip)]
    pub details: Details,
}

/// Numbers behind an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Details {
    /// Average number of filters that arrive over a link.
    pub filters_per_link: f64,
    /// Filters that entries were planned for.
    pub planned_filters: u64,
    /// Bits of a filter.
    pub bits: u64,
    /// Hashes of a filter.
    pub hashes: u32,
    /// Share of offered filters that entries rejected.
    pub refused: f64,
    /// Number of times a link was checked for a key that none of its homes has, at hosts where a
    /// query started or arrived by a random walk.
    pub strange_decisions: u64,
    /// Share of these in which the link claimed the key.
    pub wrong_decisions: f64,
}

/// Maximum number of filters that travel; a larger network would not fit into memory.
const MAX_OFFERS: u64 = 400_000_000;
/// Memory for routing tables, of all threads together.
const TABLE_BYTES: u64 = 6 << 30;
/// Memory for everything else that grows with network and depth.
const MAX_BYTES: u64 = 8 << 30;
/// Hosts whose memory is measured.
const MEASURED: usize = 500;

/// Runs one setting; calls `done` after every query.
///
/// # Errors
/// In one line, if there is no such network or it is too large to simulate.
pub fn run(setting: &Setting, done: impl Fn() + Sync) -> Result<Outcome, String> {
    let graph = Graph::new(setting.topology, setting.nodes, setting.degree, setting.seed)?;
    run_on(&graph, setting, done)
}

/// A network whose filters have travelled.
#[derive(Debug)]
pub(crate) struct Built {
    homes: Homes,
    entries: Entries,
    plan: Plan,
    filters_per_link: f64,
}

impl Built {
    /// Sends the filters of a setting through a network.
    ///
    /// # Errors
    /// In one line, if it is too large to simulate.
    pub(crate) fn new(graph: &Graph, setting: &Setting) -> Result<Self, String> {
        let (offers, filters_per_link) = survey(graph, setting.depth, MAX_OFFERS);
        if offers > MAX_OFFERS {
            return Err(format!(
                "more than {MAX_OFFERS} filters would travel: take a smaller --depth or fewer --nodes"
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
        Ok(Self { homes, entries, plan, filters_per_link })
    }

    /// The network, ready for queries with random walks of this many steps. Hosts may have places
    /// in an underlying network.
    pub(crate) const fn network<'a>(
        &'a self,
        graph: &'a Graph,
        walk: u32,
        below: Option<&'a Places>,
    ) -> Network<'a> {
        Network { graph, homes: &self.homes, entries: &self.entries, plan: self.plan, walk, below }
    }
}

/// The same, on an existing network.
pub(crate) fn run_on(
    graph: &Graph,
    setting: &Setting,
    done: impl Fn() + Sync,
) -> Result<Outcome, String> {
    let built = Built::new(graph, setting)?;
    let network = built.network(graph, setting.walk, None);
    let count = ask_all(&network, setting, &done);
    let (entries, shape) = (&built.entries, built.homes.scheme.shape());
    let details = Details {
        filters_per_link: built.filters_per_link,
        planned_filters: built.plan.filters,
        bits: shape.bits(),
        hashes: shape.hashes(),
        refused: entries.refused as f64 / entries.offered.max(1) as f64,
        strange_decisions: count.strange_decisions,
        wrong_decisions: count.wrong_share(),
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
    // Lists of homes (doubled while they grow), and one OR per link while filters travel.
    let lists = offers * 16;
    let unions = match plan.kind {
        EntryKind::Cubf => 0,
        _ => graph.directed_links() as u64 * bits / 8,
    };
    let filters = graph.nodes() as u64 * bits / 8;
    let needed = lists + unions + filters;
    if needed > MAX_BYTES {
        return Err(format!(
            "this takes about {} GB for lists and filters, and {} GB are the most: take a smaller --depth, fewer --nodes or --items, or cubf entries",
            needed / 1_000_000_000,
            MAX_BYTES / 1_000_000_000
        ));
    }
    Ok(())
}

/// A query of a setting: from a random host for a key of another random one.
pub(crate) fn question(network: &Network<'_>, seed: u64, number: u64) -> (Lookup, Random) {
    let mut random = Random::of_trial(seed, "query", number);
    let nodes = network.graph.nodes();
    let at = random.below(nodes);
    let home = (at + 1 + random.below(nodes - 1)) % nodes;
    let key = network.homes.pick(home as u32, &mut random);
    (Lookup { at: at as u32, home: home as u32, number: key }, random)
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

/// Messages of a query that every host forwards to all its neighbours except the one it came from:
/// one over every link in each direction, except one direction of the links by which it first
/// arrives; plus the way back of the answer.
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

/// Mean bytes of a host's table, and of the encoded filters that it keeps to forward them.
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
