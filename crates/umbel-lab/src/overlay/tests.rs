//! Compares the lab's overlays with real routers, and checks their promises.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use umbel::catalogue::MemoryCatalogue;
use umbel::replica::{Incarnation, Name};
use umbel::route::{HomeId, LinkId, RouteTable, Router, RouterConfig, RouterEvent, Transmit};

use super::*;

fn setting(topology: Topology, entry: EntryKind) -> Setting {
    Setting {
        topology,
        nodes: 60,
        degree: 4,
        depth: 3,
        entry,
        design: Design::ReceiverOriented,
        stock: Stock::equal(5),
        false_positive: 0.001,
        filters: None,
        queries: 200,
        walk: 0,
        seed: 1,
    }
}

fn name(node: usize) -> Name {
    Name::new(&format!("n{node:02}")).unwrap()
}

/// Real routers on a network, with the keys that the lab's homes have.
struct Routers {
    now: Duration,
    all: Vec<Router<MemoryCatalogue>>,
    /// Messages of queries, and bytes of adverts.
    messages: u64,
    events: Vec<RouterEvent>,
}

impl Routers {
    fn new(graph: &Graph, homes: &Homes, plan: Plan) -> Self {
        let now = Duration::from_secs(1);
        let router = |node: usize| {
            let hasher = *homes.scheme.hasher();
            let set = Name::new("set").unwrap();
            let mut config = RouterConfig::new(name(node), Incarnation(1), set, hasher, plan);
            config.walk = 0;
            let mut router = Router::new(now, config, MemoryCatalogue::new()).unwrap();
            let keys: Vec<[u8; 8]> = (0..homes.items(node as u32))
                .map(|number| ((node as u64) << 32 | number).to_le_bytes())
                .collect();
            router.add_many(now, &keys, |_| ());
            router.publish(now);
            router
        };
        let all = (0..graph.nodes()).map(router).collect();
        let mut routers = Self { now, all, messages: 0, events: Vec::new() };
        for node in 0..graph.nodes() {
            for other in graph.neighbours(node as u32) {
                routers.all[node].handle_link_up(now, &name(*other as usize));
            }
        }
        routers.run();
        routers
    }

    /// Runs until no message is in flight. Messages arrive in the order in which they are sent.
    fn run(&mut self) {
        let places: BTreeMap<Name, usize> = (0..self.all.len()).map(|n| (name(n), n)).collect();
        let mut flights = VecDeque::new();
        let mut take = |flights: &mut VecDeque<_>, all: &mut [Router<_>], node: usize| {
            while let Some(Transmit { to, bytes }) = all[node].poll_transmit() {
                self.messages += u64::from(bytes[1] >= 20);
                flights.push_back((node, places[&to], bytes));
            }
            while let Some(event) = all[node].poll_event() {
                self.events.push(event);
            }
        };
        (0..self.all.len()).for_each(|node| take(&mut flights, &mut self.all, node));
        while let Some((from, to, bytes)) = flights.pop_front() {
            self.now += Duration::from_micros(1);
            self.all[to].handle_message(self.now, &name(from), &bytes);
            take(&mut flights, &mut self.all, to);
        }
    }
}

#[test]
fn the_lab_spreads_filters_and_routes_queries_as_routers_do() {
    for topology in [Topology::RandomRegular, Topology::Grid, Topology::SmallWorld] {
        for entry in EntryKind::ALL {
            // Room for all filters, so that the order of arrival does not matter; a high false
            // positive rate, so that wrong forwards are compared too.
            let setting = Setting { false_positive: 0.2, ..setting(topology, entry) };
            let graph = Graph::new(topology, setting.nodes, 4, 1).unwrap();
            let plan = Plan { kind: entry, depth: 3, items: 5, filters: 60, false_positive: 0.2 };
            let homes = Homes::new(60, setting.stock, &plan, plan.shape().unwrap(), 1).unwrap();
            let entries = Entries::spread(&graph, &homes, &plan, true);
            assert_eq!(entries.refused, 0);
            let mut routers = Routers::new(&graph, &homes, plan);
            let network = Network {
                graph: &graph,
                homes: &homes,
                entries: &entries,
                plan,
                walk: 0,
                below: None,
            };
            for node in 0..60 {
                let table = network.entries.table(&graph, &homes, &plan, node);
                for (link, other) in graph.neighbours(node).iter().enumerate() {
                    let real = routers.all[node as usize].entry(&name(*other as usize));
                    let (filters, rate) = real.unwrap_or_default();
                    assert_eq!(table.filters(LinkId(link as u32)), filters, "{topology} {entry}");
                    assert!((table.false_positive(LinkId(link as u32)) - rate).abs() < 1e-9);
                }
            }
            let bytes: u64 = routers.all.iter().map(|r| r.counters().advert_bytes_sent).sum();
            // Routers advertise at once, and withdraw what a shorter path makes unnecessary.
            let lab = entries.bytes;
            assert!(bytes >= lab && bytes < lab + lab / 5, "{topology} {entry}: {lab} {bytes}");
            let mut tables = Tables::new(1 << 30);
            for number in 0..60 {
                let (question, random) = question(&network, 1, number);
                let Lookup { at, home, number } = question;
                let count = ask(&network, &mut tables, question, random);
                (routers.messages, routers.events) = (0, Vec::new());
                let key = (u64::from(home) << 32 | u64::from(number)).to_le_bytes();
                routers.all[at as usize].locate(routers.now, &key, None);
                routers.run();
                let located = routers.events.iter().find_map(|event| match event {
                    RouterEvent::Located(located) => Some(located.clone()),
                    _ => None,
                });
                let located = located.expect("every query ends");
                assert_eq!(located.holders.len() as u64, count.found, "{topology} {entry}");
                assert_eq!(routers.messages, count.messages, "{topology} {entry} {question:?}");
                if entry != EntryKind::Attenuated {
                    let hops = located.holders.first().map_or(0, |holder| u64::from(holder.hops()));
                    assert_eq!(hops, count.hops, "{topology} {entry}");
                }
            }
        }
    }
}

#[test]
fn the_lab_refuses_filters_as_a_routing_table_does() {
    for entry in EntryKind::ALL {
        let setting = setting(Topology::ScaleFree, entry);
        let graph = Graph::new(setting.topology, 60, 4, 1).unwrap();
        let plan = Plan { kind: entry, depth: 3, items: 5, filters: 12, false_positive: 0.001 };
        let homes = Homes::new(60, setting.stock, &plan, plan.shape().unwrap(), 1).unwrap();
        let all = Entries::spread(&graph, &homes, &plan, false);
        let some = Entries::spread(&graph, &homes, &plan, true);
        assert!(some.refused > 0 && all.refused == 0);
        for place in 0..graph.directed_links() {
            let mut table = RouteTable::new(&plan, *homes.scheme.hasher());
            for (home, hops) in some.of(place) {
                let offered = table.offer(LinkId(0), HomeId(home), hops, &homes.of(home));
                assert_eq!(offered, Ok(()), "{entry}: what the lab admits, a table does");
            }
            table.validate();
        }
    }
}

#[test]
fn everything_within_range_is_found_and_the_same_seed_gives_the_same_digits() {
    for entry in EntryKind::ALL {
        let mut setting = setting(Topology::Line, entry);
        (setting.depth, setting.filters) = (60, Some(60));
        let outcome = run(&setting, || {}).unwrap();
        assert_eq!(outcome.success, 1.0, "{entry}: {outcome:?}");
        assert!((outcome.hops_mean - 20.0).abs() < 3.0, "{entry}: a third of the line");
        assert_eq!(outcome.flood_messages_per_query, 2.0 * 59.0 - 59.0);
        assert_eq!(run(&setting, || {}).unwrap(), outcome);
    }
}

#[test]
fn a_walk_finds_more_and_wrong_decisions_stay_within_the_rate() {
    let mut setting = setting(Topology::RandomRegular, EntryKind::Cubf);
    (setting.nodes, setting.queries, setting.stock) = (2000, 250, Stock::equal(30));
    let without = run(&setting, || {}).unwrap();
    setting.walk = 128;
    let with = run(&setting, || {}).unwrap();
    assert!(with.success > 5.0 * without.success, "{} {}", with.success, without.success);
    assert!(with.details.strange_decisions > 40_000);
    assert!(with.details.wrong_decisions <= 0.001, "{:?}", with.details);
    setting.design = Design::Traditional;
    let traditional = run(&setting, || {}).unwrap();
    assert!(traditional.wrong_forwards > 5 * with.wrong_forwards.max(1), "{traditional:?}");
}

#[test]
fn keys_that_came_after_the_filter_are_found_by_walks_alone() {
    let mut setting = setting(Topology::Line, EntryKind::Cubf);
    (setting.depth, setting.filters, setting.stock.items) = (60, Some(60), 20);
    setting.stock.stale = 0.5;
    let outcome = run(&setting, || {}).unwrap();
    assert!((outcome.success - 0.5).abs() < 0.12, "{outcome:?}");
}

#[test]
fn networks_too_large_to_simulate_are_refused() {
    let mut setting = setting(Topology::RandomRegular, EntryKind::Abf);
    (setting.nodes, setting.depth, setting.stock.items) = (100_000, 4, 1_000_000);
    assert!(run(&setting, || {}).unwrap_err().contains("GB"));
}
