//! Simulates queries, one at a time, with the visits that a real router keeps.
//!
//! Messages take one unit of time each, so the nearest answers arrive first. A link's decision is
//! wrong if it claims a key that no home of its entry holds: a false positive of the filters.

use std::collections::{HashMap, VecDeque};

use umbel::route::{Asked, HomeId, LinkId, Plan, RouteTable, Visit};

use super::homes::Homes;
use super::places::Places;
use super::spreading::Entries;
use super::topology::Graph;
use crate::random::Random;

/// A network that is ready for queries.
#[derive(Debug)]
pub(crate) struct Network<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) homes: &'a Homes,
    pub(crate) entries: &'a Entries,
    pub(crate) plan: Plan,
    /// Steps of the random walk where no filter claims the key.
    pub(crate) walk: u32,
    /// Places of hosts in the underlying network, if that is measured.
    pub(crate) below: Option<&'a Places>,
}

impl Network<'_> {
    /// Links of the underlying network between two hosts; 0 if there is none.
    pub(crate) fn distance_below(&self, a: u32, b: u32) -> u64 {
        self.below.map_or(0, |places| places.distance(a, b))
    }
}

/// A query: the key, and the host that asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup {
    pub(crate) at: u32,
    pub(crate) home: u32,
    pub(crate) number: u32,
}

/// Results of queries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) queries: u64,
    pub(crate) found: u64,
    /// Hops of the first answer, summed over the queries that found the key.
    pub(crate) hops: u64,
    /// Messages: queries and answers, counted per hop.
    pub(crate) messages: u64,
    /// The same, in links of the underlying network.
    pub(crate) messages_below: u64,
    /// Links of the underlying network on the way of the first answer, summed over the queries that
    /// found the key.
    pub(crate) way_below: u64,
    pub(crate) claimed_forwards: u64,
    pub(crate) wrong_forwards: u64,
    /// Number of times a link was checked for a key that none of its homes has, at hosts that a
    /// query reached by chance.
    pub(crate) strange_decisions: u64,
    /// Of these, how many claimed the key.
    pub(crate) wrong_decisions: u64,
}

impl Count {
    pub(crate) const fn add(&mut self, other: &Self) {
        self.queries += other.queries;
        self.found += other.found;
        self.hops += other.hops;
        self.messages += other.messages;
        self.messages_below += other.messages_below;
        self.way_below += other.way_below;
        self.claimed_forwards += other.claimed_forwards;
        self.wrong_forwards += other.wrong_forwards;
        self.strange_decisions += other.strange_decisions;
        self.wrong_decisions += other.wrong_decisions;
    }

    /// Share of these decisions that were wrong.
    pub(crate) fn wrong_share(&self) -> f64 {
        self.wrong_decisions as f64 / self.strange_decisions.max(1) as f64
    }
}

/// Cache of routing tables, built when a host is first queried; cleared when they take too much
/// memory.
#[derive(Debug)]
pub(crate) struct Tables {
    built: HashMap<u32, RouteTable>,
    bytes: u64,
    limit: u64,
}

impl Tables {
    pub(crate) fn new(limit: u64) -> Self {
        Self { built: HashMap::new(), bytes: 0, limit }
    }

    pub(crate) fn of(&mut self, network: &Network<'_>, node: u32) -> &RouteTable {
        if !self.built.contains_key(&node) {
            let table = network.entries.table(network.graph, network.homes, &network.plan, node);
            if self.bytes + table.memory_bytes() > self.limit {
                self.built.clear();
                self.bytes = 0;
            }
            self.bytes += table.memory_bytes();
            self.built.insert(node, table);
        }
        &self.built[&node]
    }
}

enum Message {
    Query { hops: u8, walk: u32, claimed: bool },
    Reply { walk: u32, way: Way, found: bool, done: bool },
}

/// The distance that an answer has travelled.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    hops: u32,
    /// Links of the network below.
    below: u64,
}

/// One running query.
struct Search<'a> {
    network: &'a Network<'a>,
    question: Lookup,
    visits: HashMap<u32, Visit>,
    flights: VecDeque<(u32, u32, Message)>,
    random: Random,
    count: Count,
}

/// Runs one query; `random` determines the random walk.
pub(crate) fn ask(
    network: &Network<'_>,
    tables: &mut Tables,
    question: Lookup,
    random: Random,
) -> Count {
    let count = Count { queries: 1, ..Count::default() };
    let (visits, flights) = (HashMap::new(), VecDeque::new());
    let mut search = Search { network, question, visits, flights, random, count };
    if network.homes.holds(question.at, question.home, question.number) {
        search.count.found = 1;
        return search.count;
    }
    let hops = network.plan.depth;
    let asked = Asked { from: None, hops, limit: hops, walk: network.walk };
    search.arrive(tables, question.at, asked, false);
    while let Some((from, to, message)) = search.flights.pop_front() {
        search.count.messages += 1;
        search.count.messages_below += network.distance_below(from, to);
        match message {
            Message::Query { hops, walk, claimed } => {
                let limit = network.plan.depth;
                let link = LinkId(network.graph.link(to, from) as u32);
                let asked = Asked { from: Some(link), hops, limit, walk };
                search.query(tables, from, to, asked, claimed);
            }
            Message::Reply { walk, way, found, done } => {
                let way =
                    Way { hops: way.hops + 1, below: way.below + network.distance_below(from, to) };
                search.reply((from, to), walk, way, found, done);
            }
        }
    }
    search.count
}

impl Search<'_> {
    fn query(&mut self, tables: &mut Tables, from: u32, to: u32, asked: Asked, claimed: bool) {
        let Lookup { home, number, .. } = self.question;
        let found = self.network.homes.holds(to, home, number);
        if found || self.visits.contains_key(&to) {
            let way = Way::default();
            let answer = Message::Reply { walk: asked.walk, way, found, done: true };
            self.flights.push_back((to, from, answer));
        } else {
            self.arrive(tables, to, asked, claimed);
        }
    }

    /// Handles a query at a host that does not hold the key and has not seen the query.
    ///
    /// Decisions are counted only where the query arrived by chance: after a false claim the next
    /// links claim the key too, since it is the same filter.
    fn arrive(&mut self, tables: &mut Tables, node: u32, asked: Asked, claimed: bool) {
        let Lookup { home, number, .. } = self.question;
        let table = tables.of(self.network, node);
        let matches = table.matches(self.network.homes.hash(home, number));
        let is_right = |link: LinkId| {
            let mut holders = self.network.homes.holders(home, number);
            holders.any(|holder| table.distance(link, HomeId(holder)).is_some())
        };
        for link in 0..self.network.graph.neighbours(node).len() as u32 {
            if !claimed && Some(LinkId(link)) != asked.from && !is_right(LinkId(link)) {
                self.count.strange_decisions += 1;
                let claims = matches.iter().any(|found| found.link == LinkId(link));
                self.count.wrong_decisions += u64::from(claims);
            }
        }
        let mut visit = Visit::new(asked, &matches, self.network.plan.kind);
        self.forward(node, &mut visit);
        let is_done = visit.is_idle();
        self.visits.insert(node, visit);
        if is_done {
            self.answer(node, Way::default());
        }
    }

    fn forward(&mut self, node: u32, visit: &mut Visit) {
        let neighbours = self.network.graph.neighbours(node);
        let links: Vec<LinkId> = (0..neighbours.len() as u32).map(LinkId).collect();
        for sent in visit.forward(&links, |below| self.random.below(below)) {
            if sent.claimed {
                self.count.claimed_forwards += 1;
                self.count.wrong_forwards += u64::from(self.is_wrong(node, sent.link));
            }
            let to = neighbours[sent.link.0 as usize];
            self.flights.push_back((
                node,
                to,
                Message::Query { hops: sent.hops, walk: sent.walk, claimed: sent.claimed },
            ));
        }
    }

    /// Handles an answer that travelled this distance.
    fn reply(&mut self, (from, to): (u32, u32), walk: u32, way: Way, found: bool, done: bool) {
        let link = LinkId(self.network.graph.link(to, from) as u32);
        let Some(mut visit) = self.visits.remove(&to) else { return };
        let first = found && !visit.is_found();
        if found {
            visit.found();
        }
        if done {
            visit.answered(link, walk, found);
        }
        if first && visit.asked().from.is_none() {
            self.count.found = 1;
            self.count.hops += u64::from(way.hops);
            self.count.way_below += way.below;
        }
        self.forward(to, &mut visit);
        let idle = visit.is_idle();
        if first
            && !idle
            && let Some(link) = visit.asked().from
        {
            let up = self.network.graph.neighbours(to)[link.0 as usize];
            let more = Message::Reply { walk: 0, way, found: true, done: false };
            self.flights.push_back((to, up, more));
        }
        self.visits.insert(to, visit);
        if idle {
            self.answer(to, way);
        }
    }

    /// Whether no home of a link's entry has the key.
    fn is_wrong(&self, node: u32, link: LinkId) -> bool {
        let Lookup { home, number, .. } = self.question;
        let place = self.network.graph.first_link(node) + link.0 as usize;
        let mut holders = self.network.homes.holders(home, number);
        !holders.any(|holder| self.network.entries.of(place).any(|(home, _)| home == holder))
    }

    /// Replies to the host from which the query came that it is finished here.
    fn answer(&mut self, node: u32, way: Way) {
        let visit = &self.visits[&node];
        let Some(link) = visit.asked().from else { return };
        let up = self.network.graph.neighbours(node)[link.0 as usize];
        let (walk, found) = (visit.walk(), visit.is_found());
        self.flights.push_back((node, up, Message::Reply { walk, way, found, done: true }));
    }
}
