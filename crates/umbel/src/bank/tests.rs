//! The bank against its naive twin: a list of filters asked one by one.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{HashId, Seed, StandardFilter};

/// Columns as plain filters, by id.
type Twin = BTreeMap<ColumnId, StandardFilter>;

fn check(bank: &Bank, twin: &Twin) {
    check_answers(bank, twin);
    check_answers(&without_simd(bank), twin);
    for (id, filter) in twin {
        assert_eq!(bank.bits(*id).unwrap(), filter.bits());
    }
    bank.validate();
    assert_eq!(bank.columns(), twin.len());
}

fn check_answers(bank: &Bank, twin: &Twin) {
    let hashes: Vec<KeyHash> = (0..120u64).map(|key| bank.hash(&key.to_le_bytes())).collect();
    let mut batch = BatchCandidates::new();
    bank.who_batch(&hashes, &mut batch);
    assert_eq!(batch.len(), hashes.len());
    let mut candidates = Candidates::new();
    for (hash, ids) in hashes.iter().zip(batch.iter()) {
        let claims =
            |filter: &StandardFilter| filter.contains_digest(filter.scheme().digest_of(*hash));
        let expected: Vec<ColumnId> =
            twin.iter().filter(|(_, filter)| claims(filter)).map(|(id, _)| *id).collect();
        assert_eq!(sorted(ids), expected);
        bank.who(*hash, &mut candidates);
        let mut emitted = Vec::new();
        candidates.extend_ids(&mut emitted);
        assert_eq!(sorted(&emitted), expected);
        assert_eq!(candidates.len(), expected.len());
        assert_eq!(candidates.is_empty(), expected.is_empty());
    }
    let mut asked = 0;
    bank.who_each(&hashes, &mut candidates, |index, found| {
        assert_eq!(index, asked);
        let mut emitted = vec![ColumnId(9)];
        found.extend_ids(&mut emitted);
        assert_eq!(emitted[1..], *batch.of(index), "ids are appended");
        asked += 1;
    });
    assert_eq!(asked, hashes.len());
}

fn sorted(ids: &[ColumnId]) -> Vec<ColumnId> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

/// The same bank, asked without AVX2.
fn without_simd(bank: &Bank) -> Bank {
    let mut bank = bank.clone();
    bank.groups.iter_mut().for_each(Group::forget_simd);
    bank
}

fn filter(shape: Shape, keys: &[u64]) -> StandardFilter {
    let mut filter = StandardFilter::with_shape(shape).unwrap();
    for key in keys {
        filter.insert(key.to_le_bytes());
    }
    filter
}

/// Shapes of their own, and rungs of a ladder.
fn shapes() -> [Shape; 8] {
    let digest = crate::DigestBits::new(33).unwrap();
    let rung = |exponent: u32| Shape::new(1 << exponent, 4).unwrap();
    [
        Shape::new(130, 3).unwrap(),
        Shape::new(257, 2).unwrap(),
        Shape::new(130, 3).unwrap().with_digest_bits(digest),
        rung(10),
        rung(11),
        rung(13),
        rung(10).with_digest_bits(digest),
        rung(12),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Add(usize, Vec<u64>),
    AddMany(usize, Vec<Vec<u64>>),
    Replace(usize, Vec<u64>),
    Remove(usize),
    Update(usize, Vec<u64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let keys = || prop::collection::vec(0u64..120, 0..25);
    let step = prop_oneof![
        4 => (0usize..8, keys()).prop_map(|(shape, keys)| Step::Add(shape, keys)),
        2 => (0usize..8, prop::collection::vec(keys(), 0..40))
            .prop_map(|(shape, many)| Step::AddMany(shape, many)),
        2 => (any::<usize>(), keys()).prop_map(|(column, keys)| Step::Replace(column, keys)),
        3 => any::<usize>().prop_map(Step::Remove),
        3 => (any::<usize>(), keys()).prop_map(|(column, keys)| Step::Update(column, keys)),
    ];
    prop::collection::vec(step, 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..crate::model::seeded() })]

    #[test]
    fn a_bank_answers_like_its_filters_one_by_one(steps in steps()) {
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let mut twin = Twin::new();
        for step in steps {
            let pick = |index: usize| twin.keys().nth(index % twin.len().max(1)).copied();
            match step {
                Step::Add(shape, keys) => {
                    let new = filter(shapes()[shape], &keys);
                    let id = bank.add(new.scheme(), new.bits()).unwrap();
                    prop_assert!(twin.insert(id, new).is_none(), "an id is given once at a time");
                }
                Step::AddMany(shape, many) => {
                    let new: Vec<_> = many.iter().map(|keys| filter(shapes()[shape], keys)).collect();
                    let bits: Vec<_> = new.iter().map(StandardFilter::bits).collect();
                    let ids = bank.add_many(&shapes()[shape].into(), &bits).unwrap();
                    twin.extend(ids.into_iter().zip(new));
                }
                Step::Replace(index, keys) => if let Some(id) = pick(index) {
                    let new = filter(*twin[&id].scheme().shape(), &keys);
                    bank.replace(id, new.bits()).unwrap();
                    twin.insert(id, new);
                },
                Step::Remove(index) => if let Some(id) = pick(index) {
                    bank.remove(id).unwrap();
                    twin.remove(&id);
                    prop_assert_eq!(bank.bits(id), Err(BankError::NoColumn(id)));
                },
                Step::Update(index, keys) => if let Some(id) = pick(index) {
                    let new = filter(*twin[&id].scheme().shape(), &keys);
                    bank.apply(id, &Flips::between(twin[&id].bits(), new.bits())).unwrap();
                    twin.insert(id, new);
                },
            }
        }
        check(&bank, &twin);
    }
}

#[test]
fn a_bank_grows_past_a_cache_line_of_columns() {
    let shape = shapes()[0];
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let mut twin = Twin::new();
    for column in 0..1700u64 {
        let new = filter(shape, &[column % 120, column % 7]);
        let id = bank.add(new.scheme(), new.bits()).unwrap();
        twin.insert(id, new);
        if [1, 64, 65, 128, 129, 512, 513, 1024, 1025, 1600].contains(&(column + 1)) {
            check(&bank, &twin);
        }
    }
    check(&bank, &twin);
}

#[test]
fn many_columns_are_replaced_at_once() {
    // Less than a cache line of every column, and more than two, the last row in a short block.
    for shape in [shapes()[1], Shape::new(1300, 2).unwrap()] {
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let mut twin = Twin::new();
        for column in 0..200u64 {
            let new = filter(shape, &[column % 120]);
            let id = bank.add(new.scheme(), new.bits()).unwrap();
            twin.insert(id, new);
        }
        let chosen: Vec<ColumnId> = twin.keys().copied().skip(50).take(100).collect();
        let new: Vec<_> =
            (0..100u64).map(|column| filter(shape, &[column, 119 - column])).collect();
        let pairs: Vec<_> =
            chosen.iter().copied().zip(new.iter().map(StandardFilter::bits)).collect();
        let mut plain = without_simd(&bank);
        plain.replace_many(&pairs).unwrap();
        bank.replace_many(&pairs).unwrap();
        twin.extend(chosen.iter().copied().zip(new.iter().cloned()));
        check(&plain, &twin);
        check(&bank, &twin);
    }
}

/// Rows of more lines than have code of their own, and of more words than a mask of the words
/// with candidates has bits.
#[test]
fn a_bank_answers_with_thousands_of_columns() {
    let shape = shapes()[0];
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let mut twin = Twin::new();
    let kinds: Vec<_> = (0..40).map(|key| filter(shape, &[key, key + 1, 3 * key])).collect();
    for columns in [2100, 2500] {
        let new: Vec<_> = kinds.iter().cycle().take(columns).collect();
        let bits: Vec<_> = new.iter().map(|filter| filter.bits()).collect();
        let ids = bank.add_many(&shape.into(), &bits).unwrap();
        twin.extend(ids.into_iter().zip(new.into_iter().cloned()));
        check(&bank, &twin);
    }
}

/// Rows are whole cache lines, which have room for positions past the length, and a position
/// times the words of a row may exceed 64 bits and come out small.
#[test]
fn positions_outside_a_column_are_refused() {
    let old = filter(shapes()[0], &[1, 2, 3]);
    for position in [130, 1 << 61, u64::MAX] {
        for change in [Bank::set, Bank::clear] {
            let mut bank: Bank = Bank::new(KeyHasher::default());
            let ids = bank.add_many(old.scheme(), &vec![old.bits(); 500]).unwrap();
            let positions = [&[0, 1, 2][..], &[position; 30]].concat();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                change(&mut bank, ids[0], &positions)
            }));
            let message = *outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(message, format!("position {position} of 130 bits"));
            assert!(ids[1..].iter().all(|id| bank.bits(*id).unwrap() == old.bits()));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let shape = shapes()[0];
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let mut twin = Twin::new();
    let first = filter(shape, &[1, 2, 3]);
    let id = bank.add(first.scheme(), first.bits()).unwrap();
    twin.insert(id, first.clone());

    let other_hash = Scheme::new(shape, KeyHasher::new(HashId::SipHash13, Seed::default()));
    assert!(matches!(bank.add(&other_hash, first.bits()), Err(BankError::Mismatch(_))));
    let other_seed = Scheme::new(shape, KeyHasher::new(HashId::Xxh3, Seed::from_number(1)));
    assert!(matches!(bank.add(&other_seed, first.bits()), Err(BankError::Mismatch(_))));
    let longer = filter(shapes()[1], &[]);
    assert!(matches!(bank.add(first.scheme(), longer.bits()), Err(BankError::Length { .. })));
    assert!(matches!(bank.replace(id, longer.bits()), Err(BankError::Length { .. })));
    let gone = ColumnId(9);
    assert_eq!(bank.set(gone, &[0]), Err(BankError::NoColumn(gone)));
    assert_eq!(bank.clear(gone, &[0]), Err(BankError::NoColumn(gone)));
    assert_eq!(bank.remove(gone), Err(BankError::NoColumn(gone)));
    check(&bank, &twin);

    let vast = Shape::new(crate::params::Bits::MAX, 3).unwrap();
    let mut unlimited: Bank = Bank::new(KeyHasher::default());
    let refused = unlimited.add(&vast.into(), first.bits());
    assert!(matches!(refused, Err(BankError::Length { .. })));
}

/// Rows of a caller who has no memory for more than 32 lines.
#[derive(Clone)]
struct Scarce(HeapRows);

impl Rows for Scarce {
    fn zeroed(lines: usize) -> Option<Self> {
        if lines > 32 { None } else { HeapRows::zeroed(lines).map(Self) }
    }
    fn lines(&self) -> &[Line] {
        self.0.lines()
    }
    fn lines_mut(&mut self) -> &mut [Line] {
        self.0.lines_mut()
    }
}

/// Without memory for rows, columns are asked one by one.
#[test]
fn a_bank_without_memory_for_rows_answers_all_the_same() {
    let shape = shapes()[0];
    let new = filter(shape, &[1, 2, 3]);
    let mut bank: Bank<Scarce> = Bank::new(KeyHasher::default());
    let mut ids = bank.add_many(new.scheme(), &[new.bits(); 64]).unwrap();
    assert_eq!(bank.groups(), 1);
    // Twice as wide rows would take 48 lines.
    for _ in 0..40 {
        ids.push(bank.add(new.scheme(), new.bits()).unwrap());
    }
    assert_eq!((bank.groups(), bank.columns()), (1, 104));
    let mut who = BatchCandidates::new();
    bank.who_batch(&[bank.hash(&2u64.to_le_bytes())], &mut who);
    assert_eq!(sorted(who.of(0)), ids);
    bank.validate();
}

#[test]
fn a_bank_without_columns_takes_no_memory() {
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let filters = shapes().map(|shape| filter(shape, &[1, 2, 3]));
    let ids: Vec<_> = filters
        .iter()
        .flat_map(|new| bank.add_many(new.scheme(), &[new.bits(); 20]).unwrap())
        .collect();
    assert!(bank.groups() > 0);
    for id in ids {
        assert!(bank.memory_bytes() > 0);
        bank.remove(id).unwrap();
    }
    assert_eq!((bank.memory_bytes(), bank.columns(), bank.groups()), (0, 0, 0));
}

/// Bytes of a bank of equal columns, copies included, over the columns' bits.
#[test]
fn banks_of_equal_homes_take_at_most_three_times_their_bits() {
    for (homes, max) in
        [(1, 1.0), (7, 1.0), (8, 2.0), (10, 2.6), (32, 2.0), (50, 2.28), (100, 2.28)]
    {
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let column = filter(shapes()[5], &[1, 2, 3]);
        for _ in 0..homes {
            bank.add(column.scheme(), column.bits()).unwrap();
        }
        let over = bank.memory_bytes() as f64 / (f64::from(homes) * 1024.0);
        assert!(over <= max + 1e-9, "{homes} homes: {over}");
    }
}

/// Homes of 10^2 to 10^6 keys that grow, shrink and come back: few groups, little memory.
#[test]
fn banks_of_unequal_homes_have_few_groups_and_little_memory() {
    let ladder = crate::design::ladder::Ladder::new(crate::Rate::new(0.01).unwrap());
    let mut state = 5u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for homes in [8, 32, 50, 100, 1000] {
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let mut ids = Vec::new();
        for step in 0..homes * 3 {
            // A thousand homes of 10^6 keys would take long to write: shorter by a factor.
            let keys = 10f64.powf(2.0 + 4.0 * uniform()) / if homes > 100 { 32.0 } else { 8.0 };
            let rung = ladder.rung_for(keys as u64, homes as u32).unwrap();
            let scheme = Scheme::from(ladder.shape(rung));
            let bits = BitVector::zeros(crate::params::Bits::new(rung.bits()).unwrap()).unwrap();
            // As replicas do it: the new column first, then the old one goes.
            let new = bank.insert(&scheme, bits).unwrap();
            if step < homes {
                ids.push(new);
            } else {
                let place = (uniform() * homes as f64) as usize;
                bank.take_out(std::mem::replace(&mut ids[place], new)).unwrap();
            }
            bank.settle();
            if step >= homes {
                let bits: u64 = ids.iter().map(|id| bank.bits(*id).unwrap().len()).sum();
                let over = bank.memory_bytes() as f64 / (bits as f64 / 8.0);
                assert!(over <= 3.001, "{homes} homes, step {step}: {over}");
                assert!(bank.groups() <= 4, "{homes} homes, step {step}: {} groups", bank.groups());
            }
        }
        bank.validate();
    }
}

/// A buffer is fitted to the bank that is asked; nothing of an earlier one is left in it.
#[test]
fn one_buffer_serves_banks_of_any_size() {
    let full = filter(shapes()[0], &(0..120).collect::<Vec<_>>());
    let (mut large, mut small): (Bank, Bank) =
        (Bank::new(KeyHasher::default()), Bank::new(KeyHasher::default()));
    large.add_many(full.scheme(), &[full.bits(); 600]).unwrap();
    small.add(full.scheme(), full.bits()).unwrap();
    let (mut candidates, hash) = (Candidates::new(), small.hash(&7u64.to_le_bytes()));
    for (bank, columns) in [(&small, 1), (&large, 600), (&small, 1)] {
        bank.who(hash, &mut candidates);
        assert_eq!(candidates.len(), columns);
        let mut seen = 0;
        bank.who_each(&[hash], &mut candidates, |_, found| seen = found.len());
        assert_eq!(seen, columns);
    }
}

#[test]
fn sets_before_clears_never_deny_what_both_states_claim() {
    let shape = shapes()[0];
    let (old, new) =
        (filter(shape, &(0..12).collect::<Vec<_>>()), filter(shape, &(6..18).collect::<Vec<_>>()));
    let flips = Flips::between(old.bits(), new.bits());
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let id = bank.add(old.scheme(), old.bits()).unwrap();
    let kept: Vec<_> = (0..120u64)
        .filter(|key| old.contains(key.to_le_bytes()) && new.contains(key.to_le_bytes()))
        .map(|key| bank.hash(&key.to_le_bytes()))
        .collect();
    assert!(kept.len() >= 6);
    let mut who = BatchCandidates::new();
    let mut check = |bank: &Bank| {
        bank.who_batch(&kept, &mut who);
        assert!(who.iter().all(|ids| ids == [id]));
    };
    for position in &flips.sets {
        bank.set(id, &[*position]).unwrap();
        check(&bank);
    }
    for position in &flips.clears {
        bank.clear(id, &[*position]).unwrap();
        check(&bank);
    }
    assert_eq!(bank.bits(id).unwrap(), new.bits());
}

#[test]
fn an_empty_bank_names_nobody() {
    let bank: Bank = Bank::new(KeyHasher::default());
    let (mut candidates, mut batch) = (Candidates::new(), BatchCandidates::new());
    bank.who(bank.hash(b"key"), &mut candidates);
    bank.who_batch(&[bank.hash(b"key")], &mut batch);
    assert!(candidates.is_empty());
    assert!(batch.of(0).is_empty());
}

/// Every addition listed all columns anew, so that many took the square of their number.
#[test]
fn columns_are_listed_anew_only_when_rows_are_built() {
    let filter = StandardFilter::with_shape(Shape::new(64, 3).unwrap()).unwrap();
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let mut lists = vec![Arc::as_ptr(&bank.slots)];
    let mut ids = Vec::new();
    for _ in 0..3000 {
        ids.push(bank.add(filter.scheme(), filter.bits()).unwrap());
        if lists.last() != Some(&Arc::as_ptr(&bank.slots)) {
            lists.push(Arc::as_ptr(&bank.slots));
        }
    }
    assert!(lists.len() < 40, "{} lists for 3000 columns", lists.len());
    bank.validate();
    // A buffer that has the list keeps it: the bank goes on with another.
    let mut candidates = Candidates::new();
    bank.who(bank.hash(b"a"), &mut candidates);
    let kept = candidates.slots.clone();
    bank.remove(ids[7]).unwrap();
    assert_eq!(bank.add(filter.scheme(), filter.bits()).unwrap(), ids[7]);
    assert_eq!(*candidates.slots, *kept);
    bank.validate();
}

/// Rows were built anew, from all columns, for every other 512 of them.
#[test]
fn rows_of_many_columns_are_built_a_few_times_for_each_doubling() {
    let filter = StandardFilter::with_shape(Shape::new(64, 3).unwrap()).unwrap();
    let mut bank: Bank = Bank::new(KeyHasher::default());
    let mut widths = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        bank.add(filter.scheme(), filter.bits()).unwrap();
        widths.extend(bank.groups.iter().map(Group::width));
    }
    let wide = widths.range(8193..=16_384).count();
    assert!(wide <= 8, "{wide} widths from 8192 to 16384 columns: {widths:?}");
    // An eighth too much at most.
    let (columns, width) = (bank.columns(), bank.groups[0].width());
    assert!(width <= columns + columns / 8, "{columns} columns in rows for {width}");
    bank.validate();
}

/// Columns that are asked alone, some of which stay in the cache while a batch is asked.
#[test]
fn batches_over_many_shapes_are_answered_as_single_keys_are() {
    let (mut bank, mut twin): (Bank, Twin) = (Bank::new(KeyHasher::default()), Twin::new());
    for (column, bits) in (0..).zip([100, 1000, 5001, 1 << 20, (1 << 20) + 1, 1 << 21, 70]) {
        for hashes in [3, 5, 12] {
            let shape = Shape::new(bits, hashes).unwrap();
            let mut filter = StandardFilter::with_shape(shape).unwrap();
            (0..40u64).filter(|key| key % 7 != column).for_each(|key| {
                filter.insert(key.to_le_bytes());
            });
            twin.insert(bank.add(filter.scheme(), filter.bits()).unwrap(), filter);
        }
    }
    assert_eq!(bank.groups(), 0);
    check_answers(&bank, &twin);
    let first = *twin.keys().next().unwrap();
    twin.remove(&first);
    bank.remove(first).unwrap();
    check_answers(&bank, &twin);
    bank.validate();
}
