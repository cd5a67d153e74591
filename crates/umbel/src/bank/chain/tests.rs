//! Depths against the claims of plain filters, key by key.

use proptest::prelude::*;

use super::super::claims::Claims;
use super::super::group::Group;
use super::*;
use crate::bits::BitVector;
use crate::params::Shape;
use crate::{KeyHasher, StandardFilter};

/// What a filter says of every key of a chain.
fn claims(filter: &StandardFilter, chain: &[KeyHash]) -> Vec<bool> {
    chain.iter().map(|hash| filter.contains_digest(filter.scheme().digest_of(*hash))).collect()
}

/// A key of a chain: chains of different numbers share the first `shared` keys.
fn key(chain: u64, shared: u64, place: u64) -> u64 {
    let chain = if place < shared { 0 } else { chain };
    (chain << 32 | place).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn hashes(bank: &Bank, keys: impl Iterator<Item = u64>) -> Vec<KeyHash> {
    keys.map(|key| bank.hash(&key.to_le_bytes())).collect()
}

fn insert(filter: &mut StandardFilter, keys: impl Iterator<Item = u64>) {
    keys.for_each(|key| _ = filter.insert(key.to_le_bytes()));
}

/// Every promise about the depth of one column.
fn check_depth(claimed: &[bool], how: ChainSearch, depth: usize) {
    let first_denied = claimed.iter().position(|claimed| !claimed).unwrap_or(claimed.len());
    let (step, last) = (how.step(), claimed.len() / how.step() * how.step());
    assert_eq!(depth % step, 0);
    assert!(depth >= first_denied / step * step, "depth {depth}, first denied {first_denied}");
    if how.is_walk() {
        assert_eq!(depth, first_denied / step * step);
    }
    let window = how.window().min(depth);
    assert!(claimed[depth - window..depth].iter().all(|claimed| *claimed), "before {depth}");
    if depth < last {
        assert!(claimed[depth..depth + step].contains(&false), "after {depth}");
    }
}

/// Compares a bank with its filters, with and without AVX2.
fn check(bank: &Bank, filters: &[(ColumnId, StandardFilter)], chain: &[KeyHash], how: ChainSearch) {
    check_after(&Depths::new(), bank, filters, chain, how);
}

/// The same with what an earlier search remembered. Returns what this one does.
fn check_after(
    before: &Depths,
    bank: &Bank,
    filters: &[(ColumnId, StandardFilter)],
    chain: &[KeyHash],
    how: ChainSearch,
) -> Depths {
    let mut plain = bank.clone();
    plain.groups.iter_mut().for_each(Group::forget_simd);
    let (mut depths, mut again) = (before.clone(), before.clone());
    bank.chain(chain, how, &mut depths);
    plain.chain(chain, how, &mut again);
    assert_eq!(depths.iter().collect::<Vec<_>>(), again.iter().collect::<Vec<_>>());
    let mut by_column = vec![0; filters.len() + 1];
    for (column, depth) in depths.iter() {
        assert_eq!(by_column[column.get() as usize], 0, "each column once");
        by_column[column.get() as usize] = depth;
    }
    assert_eq!(depths.deepest(), by_column.iter().copied().max().unwrap());
    for (column, filter) in filters {
        let depth = by_column[column.get() as usize] as usize;
        check_depth(&claims(filter, chain), how, depth);
    }
    depths
}

/// A column: the exponent of its length, how many other keys it holds, and of which chains it holds
/// how many leading keys.
type Held = (u32, u64, Vec<(u64, u64)>);

/// A bank of loose filters on different rungs.
fn bank_of(columns: &[Held]) -> (Bank, Vec<(ColumnId, StandardFilter)>) {
    let mut bank = Bank::new(KeyHasher::default());
    let mut filters = Vec::new();
    for (index, (exponent, others, held)) in columns.iter().enumerate() {
        let shape = Shape::new(1 << exponent, 3).unwrap();
        let mut filter = StandardFilter::with_shape(shape).unwrap();
        let noise = (0..*others).map(|other| key(1000 + index as u64, 0, other));
        insert(&mut filter, noise);
        for (chain, depth) in held {
            insert(&mut filter, (0..*depth).map(|place| key(*chain, 20, place)));
        }
        filters.push((bank.add(filter.scheme(), filter.bits()).unwrap(), filter));
    }
    (bank, filters)
}

fn columns() -> impl Strategy<Value = Vec<Held>> {
    let held = prop::collection::vec((0u64..4, 0u64..160), 0..3);
    prop::collection::vec((10u32..13, 0u64..600, held), 1..90)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..crate::model::seeded() })]

    #[test]
    fn depths_are_never_too_small_and_always_have_their_window(
        columns in columns(), length in 0u64..200, window in 1u32..14, step in 1u32..17,
    ) {
        let (bank, filters) = bank_of(&columns);
        let mut before = Depths::new();
        for (chain, length) in [(0, length), (1, length / 2), (2, length * 2), (3, length)] {
            let chain = hashes(&bank, (0..length).map(|place| key(chain, 20, place)));
            let how = ChainSearch::new(window, step);
            before = check_after(&before, &bank, &filters, &chain, how);
            check(&bank, &filters, &chain, ChainSearch::walk(step));
        }
    }
}

#[test]
fn rows_of_every_width_answer() {
    for count in [1, 7, 8, 20, 40, 64, 65, 130, 300, 600, 1030, 1600] {
        let columns: Vec<_> = (0..count as u64)
            .map(|column| (10, 150, vec![(column % 3, column * 7 % 90)]))
            .collect();
        let (bank, filters) = bank_of(&columns);
        let mut before = Depths::new();
        for chain in 0..4 {
            let chain = hashes(&bank, (0..100).map(|place| key(chain, 20, place)));
            before = check_after(&before, &bank, &filters, &chain, ChainSearch::new(6, 4));
        }
    }
}

/// Exact filters: nothing is wrongly claimed, so every depth is the true one.
#[test]
fn tight_filters_give_exact_depths() {
    let mut bank = Bank::new(KeyHasher::default());
    let chain = hashes(&bank, (0..1000).map(|place| key(1, 0, place)));
    let mut expected = Vec::new();
    for depth in [0u64, 1, 2, 63, 64, 500, 777, 999, 1000, 1000] {
        let mut filter = StandardFilter::for_target(1000, 1e-9).unwrap();
        insert(&mut filter, (0..depth).map(|place| key(1, 0, place)));
        let column = bank.add(filter.scheme(), filter.bits()).unwrap();
        expected.extend((depth > 0).then_some((column, depth as u32)));
    }
    let mut depths = Depths::new();
    bank.chain(&chain, ChainSearch::new(3, 1), &mut depths);
    let mut found: Vec<_> = depths.iter().collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    bank.chain(&chain, ChainSearch::new(3, 0), &mut depths);
    assert_eq!(depths.deepest(), 1000, "a step of none is a step of one");
    bank.chain(&[], ChainSearch::new(3, 1), &mut depths);
    assert_eq!((depths.iter().count(), depths.deepest()), (0, 0));
    Bank::<crate::bank::HeapRows>::new(KeyHasher::default()).chain(
        &chain,
        ChainSearch::new(3, 1),
        &mut depths,
    );
    assert_eq!(depths.iter().count(), 0, "an empty bank names nobody");
}

/// A cache that lost keys in the middle: the search may overlook the hole, the walk does not.
#[test]
fn a_hole_is_seen_by_a_walk_and_never_lowers_a_depth_below_it() {
    let mut bank = Bank::new(KeyHasher::default());
    let chain = hashes(&bank, (0..512).map(|place| key(1, 0, place)));
    let mut filters = Vec::new();
    for hole in (0..500).step_by(9) {
        let mut filter = StandardFilter::for_target(1000, 0.1).unwrap();
        insert(&mut filter, (0..400).filter(|at| *at != hole).map(|place| key(1, 0, place)));
        filters.push((bank.add(filter.scheme(), filter.bits()).unwrap(), filter));
    }
    check(&bank, &filters, &chain, ChainSearch::new(8, 8));
    check(&bank, &filters, &chain, ChainSearch::walk(8));
    let mut depths = Depths::new();
    bank.chain(&chain, ChainSearch::new(8, 8), &mut depths);
    assert!(depths.iter().any(|(_, depth)| depth == 400), "some hole is overlooked");
}

/// A column that claims everything, and columns that claim short runs everywhere: the answer is
/// bounded work, and keeps its promises.
#[test]
fn hostile_columns_are_walked_after_some_searches() {
    let mut bank = Bank::new(KeyHasher::default());
    let chain = hashes(&bank, (0..2000).map(|place| key(1, 0, place)));
    let shape = Shape::new(1 << 16, 3).unwrap();
    let mut filters = Vec::new();
    for period in 2..14u64 {
        let mut filter = StandardFilter::with_shape(shape).unwrap();
        insert(&mut filter, (0..2000).filter(|at| at % period != 1).map(|at| key(1, 0, at)));
        filters.push((bank.add(filter.scheme(), filter.bits()).unwrap(), filter));
    }
    check(&bank, &filters, &chain, ChainSearch::new(12, 8));
    let mut full = BitVector::zeros(crate::params::Bits::new(1 << 16).unwrap()).unwrap();
    (0..1 << 16).for_each(|bit| _ = full.set(bit));
    let column = bank.add(filters[0].1.scheme(), &full).unwrap();
    let mut depths = Depths::new();
    bank.chain(&chain, ChainSearch::new(12, 8), &mut depths);
    assert!(depths.iter().any(|found| found == (column, 2000)));
}

/// Filters side by side that count the keys whose memory is requested.
struct Counted<'a> {
    filters: &'a [StandardFilter],
    keys: std::cell::Cell<u64>,
}

impl Claims<1> for Counted<'_> {
    fn hashes(&self) -> u32 {
        3
    }

    fn fetch(&self, _: usize, _: KeyHash) {
        self.keys.set(self.keys.get() + 1);
    }

    fn and(&self, _: usize, hash: KeyHash, columns: &mut [u64; 1]) {
        for (column, filter) in self.filters.iter().enumerate() {
            if !filter.contains_digest(filter.scheme().digest_of(hash)) {
                columns[0] &= !(1 << column);
            }
        }
    }
}

/// Filters at their capacity, one of which holds a part of every chain: a search asks for as many
/// keys as the model says.
#[test]
fn searches_read_what_the_model_says() {
    let design = crate::design::chain::ChainPromise::default().design().unwrap();
    let ladder = design.ladder();
    let rung = crate::design::ladder::Rung::new(13).unwrap();
    let capacity = ladder.capacity(rung, 1);
    for (hosts, length) in [(1usize, 400u64), (16, 400), (64, 400), (64, 100)] {
        let (mut keys, rounds) = (0, 40);
        for round in 0..rounds {
            let chain = |place: u64| key(1 << 20 | round, 0, place);
            let depth = (round * 2 + 1) * length / (2 * rounds);
            let mut filters = Vec::new();
            for host in 0..hosts as u64 {
                let mut filter = StandardFilter::with_shape(ladder.shape(rung)).unwrap();
                let held = if host == 7 % hosts as u64 { depth } else { 0 };
                insert(&mut filter, (0..held).map(chain));
                let other = (held..capacity).map(|other| key(1000 * (round + 1) + host, 0, other));
                insert(&mut filter, other);
                filters.push(filter);
            }
            let hasher = KeyHasher::default();
            let chain: Vec<_> =
                (0..length).map(|place| hasher.hash(&chain(place).to_le_bytes())).collect();
            let counted = Counted { filters: &filters, keys: std::cell::Cell::new(0) };
            let (mut memory, mut depths) = (Memory::default(), [0; 64]);
            let live = [u64::MAX >> (64 - hosts)];
            Search::run(&counted, &chain, design.search(), &live, &mut memory, &mut depths);
            keys += counted.keys.get();
        }
        let read = keys as f64 / rounds as f64;
        let (window, step) = (design.window, design.step);
        let model = crate::model::chain::effort(0.1, hosts as u64, 3, length, (window, step)).keys;
        assert!((read / model - 1.0).abs() < 0.25, "{hosts} hosts, {length} keys: {read}, {model}");
    }
}

/// Chains that share their beginning, which all columns hold: a second search asks for fewer keys.
#[test]
fn a_search_tries_first_where_most_columns_ended_before() {
    let filters: Vec<StandardFilter> = (0..64u64)
        .map(|host| {
            let mut filter = StandardFilter::for_target(2000, 0.1).unwrap();
            insert(&mut filter, (0..88).map(|place| key(0, 0, place)));
            insert(&mut filter, (88..2000).map(|place| key(1000 + host, 0, place)));
            filter
        })
        .collect();
    let hasher = KeyHasher::default();
    let (mut memory, mut read) = (Memory::default(), Vec::new());
    for number in 1..4 {
        let place = |place: u64| key(number, 88, place);
        let chain: Vec<_> = (0..400).map(|at| hasher.hash(&place(at).to_le_bytes())).collect();
        let counted = Counted { filters: &filters, keys: std::cell::Cell::new(0) };
        let mut depths = [0; 64];
        memory.begin();
        let how = ChainSearch::new(13, 8);
        Search::run(&counted, &chain, how, &[u64::MAX], &mut memory, &mut depths);
        memory.end();
        assert_eq!(depths, [88; 64]);
        read.push(counted.keys.get());
    }
    assert!(read[1] < read[0] && read[2] < read[0], "{read:?}");
}
