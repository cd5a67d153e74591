//! What an update costs the receiver: a delta into one column, 64 columns refreshed.
//!
//! The limit is memory: a bit of each row that a delta changes, and a word of every row for 64
//! columns, read and written in as much memory without anything else being done.

use umbel::StandardFilter;
use umbel::bank::{Bank, ColumnId, Rows};
use umbel::codec::Flips;

use crate::harness::{Mix, Table};
use crate::huge::HugeRows;
use crate::who::{bank_of, shape};

/// A bank of 1024 columns of 2^20 bits.
pub(crate) fn run() {
    let filters: Vec<StandardFilter> = (0..1024).map(filter).collect();
    let (bank, ids): (Bank<HugeRows>, Vec<ColumnId>) = bank_of(&filters);
    let column = ids[500];
    let (old, new) = (&filters[500], one_percent_changed(&filters[500]));
    let (there, back) = (Flips::between(old.bits(), &new), Flips::between(&new, old.bits()));
    let flips = there.sets.len() + there.clears.len();
    let block: Vec<_> = (0..64u64).map(|host| filter(host + 5000)).collect();
    let pairs: Vec<_> =
        ids[64..128].iter().copied().zip(block.iter().map(StandardFilter::bits)).collect();

    let bank = std::cell::RefCell::new(bank);
    let rows = HugeRows::zeroed(2 << 20).expect("memory");
    let rows = std::cell::RefCell::new(rows);
    let mut table = Table::new("a bank of 1024 columns of 2^20 bits");
    table.case(format!("1 % delta, {flips} flips"), 2, || {
        let mut bank = bank.borrow_mut();
        bank.apply(column, &there).expect("a column");
        bank.apply(column, &back).expect("a column");
        1
    });
    table.case("64 columns refreshed, each", 64, || {
        bank.borrow_mut().replace_many(&pairs).expect("columns");
        1
    });
    table.case("the limit: a bit of as many rows", 2, || {
        let mut rows = rows.borrow_mut();
        let rows: &mut [[u64; 16]] = bytemuck::cast_slice_mut(rows.lines_mut());
        for flips in [&there, &back] {
            for position in flips.sets.iter().chain(&flips.clears) {
                rows[*position as usize][7] ^= 1 << 52;
            }
        }
        1
    });
    table.case("the limit: a word of every row, a 64th", 64, || {
        let mut rows = rows.borrow_mut();
        let rows: &mut [[u64; 16]] = bytemuck::cast_slice_mut(rows.lines_mut());
        rows.iter_mut().for_each(|row| row[1] ^= u64::MAX);
        1
    });
    table.case("one column replaced", 1, || {
        bank.borrow_mut().replace(column, old.bits()).expect("a column");
        1
    });
    let results = table.measure(9, &[]);
    for ((name, nanoseconds), (limit, unit)) in
        results.iter().zip([(100e3, "100 µs"), (200e3, "0.2 ms")])
    {
        let verdict = if *nanoseconds <= limit { "met" } else { "MISSED" };
        println!("* {verdict}: {name} takes {:.1} µs (goal {unit})", nanoseconds / 1e3);
    }
    for ((name, cost), (_, limit)) in results.iter().zip(&results[2..4]) {
        println!("  {name}: {:.2} times the limit", cost / limit);
    }
    assert_eq!(bank.borrow().bits(column).expect("a column"), old.bits());
}

fn filter(host: u64) -> StandardFilter {
    let mut filter = StandardFilter::with_shape(shape()).expect("memory");
    for hash in Mix(host + 1).take((1 << 20) / 10) {
        filter.insert_digest(umbel::KeyHash::from_raw(hash).digest(umbel::DigestBits::FULL));
    }
    filter
}

fn one_percent_changed(filter: &StandardFilter) -> umbel::bits::BitVector {
    let mut bits = filter.bits().clone();
    for position in Mix(77).map(|number| number >> 44).take((1 << 20) / 100) {
        if bits.set(position) == 0 {
            bits.clear(position);
        }
    }
    bits
}
