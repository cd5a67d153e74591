//! Simulates how filters spread: what every link's entry contains, round by round.
//!
//! A filter travels one hop per round. This does for all hosts at once what a router does. A host
//! forwards what it learnt in one round over all its links in the next, except over the link from
//! which it has it (of several, the first), and not to the home itself. An entry rejects what it
//! has no room for, and a filter that no entry of a host accepted goes no farther. A test compares
//! it with real routers.

use umbel::bits::BitVector;
use umbel::model::routing::ABF_FULL;
use umbel::route::{EntryKind, HomeId, LinkId, Plan, RouteTable};

use super::homes::Homes;
use super::topology::Graph;

/// What every link's entry holds.
#[derive(Debug)]
pub(crate) struct Entries {
    /// Homes of a link in the order of their arrival, grouped by distance.
    homes: Vec<Vec<u32>>,
    /// Where the homes of each distance end.
    ends: Vec<Vec<u32>>,
    /// Filters that were offered to all entries together, including rejected ones.
    pub(crate) offered: u64,
    pub(crate) refused: u64,
    /// Bytes of all messages.
    pub(crate) bytes: u64,
}

/// Whether an entry has room.
#[derive(Debug, Clone)]
struct Gate {
    filters: u64,
    /// Probability that all separate filters, and all complete ORs, deny a key that they do not
    /// contain.
    denies: f64,
    union: Option<BitVector>,
}

/// What a host learnt in a round: home, and the link over which it arrived.
type Learnt = Vec<(u32, u32)>;

/// How many filters would travel over all links, and over each on average, if nothing were
/// rejected: a property of the network. Stops counting at `max`.
pub(crate) fn survey(graph: &Graph, depth: u8, max: u64) -> (u64, f64) {
    let nodes = graph.nodes();
    let mut total = 0u64;
    let (mut seen, mut open, mut next) = (vec![u32::MAX; nodes], Vec::new(), Vec::new());
    for node in 0..nodes as u32 {
        let links = graph.neighbours(node).len() as u64;
        let mut ball = 0u64;
        open.clear();
        open.push(node);
        seen[node as usize] = node;
        for _ in 1..depth {
            next.clear();
            for other in open.iter().flat_map(|open| graph.neighbours(*open)) {
                if seen[*other as usize] != node {
                    seen[*other as usize] = node;
                    next.push(*other);
                }
            }
            ball += next.len() as u64;
            std::mem::swap(&mut open, &mut next);
        }
        total += links + ball * links.saturating_sub(1);
        if total > max {
            break;
        }
    }
    (total, total as f64 / graph.directed_links().max(1) as f64)
}

impl Entries {
    /// Spreads all filters. Without a limit nothing is rejected.
    pub(crate) fn spread(graph: &Graph, homes: &Homes, plan: &Plan, limited: bool) -> Self {
        let (nodes, links) = (graph.nodes(), graph.directed_links());
        let mut entries = Self {
            homes: vec![Vec::new(); links],
            ends: vec![Vec::new(); links],
            offered: 0,
            refused: 0,
            bytes: 0,
        };
        let gate = Gate { filters: 0, denies: 1.0, union: None };
        let mut gates = vec![gate; if limited { links } else { 0 }];
        // In the first round every host advertises its own filter, which arrived over no link.
        let mut learnt: Vec<Learnt> =
            (0..nodes as u32).map(|node| vec![(node, u32::MAX)]).collect();
        let mut known: Vec<Vec<u32>> = (0..nodes as u32).map(|node| vec![node]).collect();
        for _ in 0..plan.depth {
            let mut fresh: Vec<Learnt> = vec![Vec::new(); nodes];
            for node in 0..nodes as u32 {
                let first = graph.first_link(node);
                let mut arrived: Learnt = Vec::new();
                for (link, neighbour) in graph.neighbours(node).iter().enumerate() {
                    let back = graph.link(*neighbour, node) as u32;
                    let place = first + link;
                    for (home, by) in &learnt[*neighbour as usize] {
                        if *by == back || *home == node {
                            continue;
                        }
                        entries.offered += u64::from(homes.components(*home));
                        // Skip neighbours that already advertised this filter to us.
                        let has_it = known[node as usize].binary_search(home).is_ok()
                            && learnt[node as usize]
                                .binary_search_by_key(home, |(other, _)| *other)
                                .is_err();
                        let sizes = if has_it { &homes.reach } else { &homes.advert };
                        entries.bytes += u64::from(sizes[*home as usize]);
                        if limited && !gates[place].admits(homes, plan, *home) {
                            entries.refused += u64::from(homes.components(*home));
                            continue;
                        }
                        entries.homes[place].push(*home);
                        arrived.push((*home, link as u32));
                    }
                    entries.ends[place].push(entries.homes[place].len() as u32);
                    if limited {
                        gates[place].next_round(homes, plan);
                    }
                }
                arrived.sort_unstable();
                arrived.dedup_by_key(|(home, _)| *home);
                arrived.retain(|(home, _)| known[node as usize].binary_search(home).is_err());
                fresh[node as usize] = arrived;
            }
            for (known, fresh) in known.iter_mut().zip(&fresh) {
                known.extend(fresh.iter().map(|(home, _)| *home));
                known.sort_unstable();
            }
            learnt = fresh;
        }
        entries
    }

    /// The homes that a link's entry holds, with distances.
    pub(crate) fn of(&self, place: usize) -> impl Iterator<Item = (u32, u8)> {
        let ends = &self.ends[place];
        self.homes[place].iter().zip(0u32..).map(|(home, index)| {
            let hops = ends.partition_point(|end| *end <= index) as u8 + 1;
            (*home, hops)
        })
    }

    /// A host's routing table.
    pub(crate) fn table(&self, graph: &Graph, homes: &Homes, plan: &Plan, node: u32) -> RouteTable {
        let mut table = RouteTable::unlimited(plan, *homes.scheme.hasher());
        for link in 0..graph.neighbours(node).len() {
            for (home, hops) in self.of(graph.first_link(node) + link) {
                let offered = table.offer(LinkId(link as u32), HomeId(home), hops, &homes.of(home));
                offered.expect("a table without limits takes all filters of one shape");
            }
        }
        table
    }
}

impl Gate {
    /// Accepts a filter if there is room, by the rule of a routing table.
    fn admits(&mut self, homes: &Homes, plan: &Plan, home: u32) -> bool {
        let within = |denies: f64| 1.0 - denies <= plan.false_positive * (1.0 + 1e-9);
        let more = u64::from(homes.components(home));
        if plan.kind == EntryKind::Cubf {
            let denies = self.denies * homes.denies[home as usize];
            if self.filters + more > plan.filters || !within(denies) {
                return false;
            }
            (self.filters, self.denies) = (self.filters + more, denies);
            return true;
        }
        let filters = homes.of(home);
        let Some(union) = &mut self.union else {
            let mut union = filters.components[0].clone();
            filters.components[1..].iter().for_each(|bits| union.union_with(bits));
            let admitted = within(self.denies * denies(homes, union.ones()));
            self.union = admitted.then_some(union);
            return admitted;
        };
        let ones = match &*filters.components {
            [only] => union.ones() + only.count_beyond(union),
            several => {
                let mut joined = union.clone();
                several.iter().for_each(|bits| joined.union_with(bits));
                joined.ones()
            }
        };
        if union.fill() >= ABF_FULL || !within(self.denies * denies(homes, ones)) {
            return false;
        }
        filters.components.iter().for_each(|bits| union.union_with(bits));
        true
    }

    /// Starts the next round: its filters are one hop farther away, and belong to another OR of an
    /// attenuated entry.
    fn next_round(&mut self, homes: &Homes, plan: &Plan) {
        if plan.kind == EntryKind::Attenuated
            && let Some(union) = self.union.take()
        {
            self.denies *= denies(homes, union.ones());
        }
    }
}

/// Probability that a filter with this many ones denies a key that it does not contain.
fn denies(homes: &Homes, ones: u64) -> f64 {
    let shape = homes.scheme.shape();
    1.0 - (ones as f64 / shape.bits() as f64).powi(shape.hashes() as i32)
}
