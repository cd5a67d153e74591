//! Tables against a list of filters that is asked one by one.

use proptest::prelude::*;

use super::*;
use crate::StandardFilter;
use crate::bits::BitVector;
use crate::scheme::Scheme;

/// Everything that a table is to know, kept simply.
struct Naive {
    scheme: Scheme,
    filters: Vec<StandardFilter>,
    members: BTreeMap<(LinkId, HomeId), u8>,
}

impl Stored for Naive {
    fn load(&self, home: HomeId) -> Option<(Scheme, Vec<BitVector>)> {
        Some((self.scheme, vec![self.filters[home.0 as usize].bits().clone()]))
    }
}

impl Naive {
    fn new(plan: &Plan, homes: usize, items: u64) -> Self {
        let scheme = Scheme::new(plan.shape().unwrap(), KeyHasher::default());
        let filter = |home: usize| {
            let mut filter = StandardFilter::new(scheme).unwrap();
            for key in 0..items {
                filter.insert(format!("{home} {key}"));
            }
            filter
        };
        Self { scheme, filters: (0..homes).map(filter).collect(), members: BTreeMap::new() }
    }

    fn filter(&self, home: HomeId) -> Filters<'_> {
        let bits = self.filters[home.0 as usize].bits();
        Filters { scheme: &self.scheme, components: vec![bits] }
    }

    /// The links that claim a key, with the nearest distance as far as the kind knows it.
    fn matches(&self, kind: EntryKind, key: &str) -> Vec<RouteMatch> {
        let mut found = Vec::new();
        let links: BTreeSet<LinkId> = self.members.keys().map(|(link, _)| *link).collect();
        for link in links {
            let of = |level: Option<u8>| {
                let is = move |((other, _), hops): &(&(LinkId, HomeId), &u8)| {
                    *other == link && level.is_none_or(|level| **hops == level)
                };
                self.members.iter().filter(is).map(|((_, home), hops)| (*home, *hops))
            };
            let union = |level: Option<u8>| {
                let mut union = StandardFilter::new(self.scheme).unwrap();
                of(level).for_each(|(home, _)| {
                    union.union_with(&self.filters[home.0 as usize]).unwrap();
                });
                union.contains(key)
            };
            let hops = match kind {
                EntryKind::Cubf => of(None)
                    .filter(|(home, _)| self.filters[home.0 as usize].contains(key))
                    .map(|(_, hops)| Some(hops))
                    .min(),
                EntryKind::Abf => union(None).then_some(None),
                EntryKind::Attenuated => (1..=9).find(|level| union(Some(*level))).map(Some),
            };
            found.extend(hops.map(|hops| RouteMatch { link, hops }));
        }
        found.sort_by_key(|found| (found.hops, found.link));
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_table_answers_as_its_filters_do_one_by_one(
        kind in prop::sample::select(EntryKind::ALL.to_vec()),
        steps in prop::collection::vec((0u32..4, 0u32..12, 1u8..=3, 0u8..10), 1..60),
        limited in any::<bool>(),
    ) {
        // A high rate, so that false claims are compared too.
        let plan = Plan { kind, depth: 3, items: 8, filters: 5, false_positive: 0.2 };
        let mut naive = Naive::new(&plan, 12, 8);
        let mut table = if limited { RouteTable::new(&plan, KeyHasher::default()) } else { RouteTable::unlimited(&plan, KeyHasher::default()) };
        for (link, home, hops, what) in steps {
            let (link, home) = (LinkId(link), HomeId(home));
            match what {
                0..=5 => {
                    let known = naive.members.contains_key(&(link, home));
                    let offered = table.offer(link, home, hops, &naive.filter(home));
                    prop_assert!(limited || offered.is_ok());
                    if offered.is_ok() && !(known && kind == EntryKind::Attenuated) {
                        naive.members.insert((link, home), hops);
                    }
                }
                6..=7 => {
                    naive.members.remove(&(link, home));
                    table.withdraw(link, home, &naive);
                }
                8 => {
                    let key = format!("{} more {hops}", home.0);
                    naive.filters[home.0 as usize].insert(key);
                    for link in table.update(home, &naive.filter(home), hops > 1, &naive) {
                        naive.members.remove(&(link, home));
                    }
                }
                _ => {
                    naive.members.retain(|(other, _), _| *other != link);
                    table.remove_link(link);
                }
            }
            table.validate();
            for link in 0..4 {
                let here = naive.members.keys().filter(|(other, _)| *other == LinkId(link)).count();
                prop_assert_eq!(table.filters(LinkId(link)), here as u64);
            }
        }
        for home in 0..12 {
            for key in [format!("{home} 0"), format!("{home} 7"), format!("{home} absent")] {
                let found = table.matches(KeyHasher::default().hash(key.as_bytes()));
                prop_assert_eq!(found, naive.matches(kind, &key));
            }
        }
    }
}

#[test]
fn a_cubf_refuses_filters_beyond_the_first_s() {
    let plan = plan(EntryKind::Cubf, 3, 30, 3);
    let naive = Naive::new(&plan, 5, 30);
    let mut table = RouteTable::new(&plan, KeyHasher::default());
    let mut offer = |home| table.offer(LinkId(0), HomeId(home), 1, &naive.filter(HomeId(home)));
    assert_eq!([offer(0), offer(1), offer(2), offer(0)], [Ok(()); 4]);
    assert_eq!(offer(3), Err(Refusal::Filters));
    assert_eq!(table.offer(LinkId(1), HomeId(3), 1, &naive.filter(HomeId(3))), Ok(()));
}

#[test]
fn an_abf_refuses_filters_once_it_is_half_full_and_never_passes_its_rate() {
    let plan = Plan { false_positive: 0.001, ..plan(EntryKind::Abf, 3, 30, 10) };
    let naive = Naive::new(&plan, 40, 30);
    let mut table = RouteTable::new(&plan, KeyHasher::default());
    let offers: Vec<_> = (0..40)
        .map(|home| table.offer(LinkId(0), HomeId(home), 1, &naive.filter(HomeId(home))))
        .collect();
    let admitted = table.filters(LinkId(0));
    assert!((10..=11).contains(&admitted), "{admitted}");
    assert!(offers[10..].iter().any(|offer| matches!(offer, Err(Refusal::Fill | Refusal::Rate))));
    assert!(table.false_positive(LinkId(0)) <= 0.001);
}

#[test]
fn a_crowded_home_does_not_break_the_rate_of_a_cubf() {
    let plan = plan(EntryKind::Cubf, 3, 30, 10);
    let (naive, crowded) = (Naive::new(&plan, 2, 30), Naive::new(&plan, 2, 300));
    let mut table = RouteTable::new(&plan, KeyHasher::default());
    assert_eq!(table.offer(LinkId(0), HomeId(0), 1, &naive.filter(HomeId(0))), Ok(()));
    let offered = table.offer(LinkId(0), HomeId(1), 1, &crowded.filter(HomeId(1)));
    assert_eq!(offered, Err(Refusal::Rate));
    let short = StandardFilter::for_target(10, 0.1).unwrap();
    let odd = Filters { scheme: &naive.scheme, components: vec![short.bits()] };
    assert_eq!(table.offer(LinkId(0), HomeId(3), 1, &odd), Err(Refusal::Unfit));
    table.validate();
}
