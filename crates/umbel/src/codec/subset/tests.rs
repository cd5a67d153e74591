//! Subsets of every density come back, in few bytes; anything else is refused.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

impl Source for BTreeSet<u64> {
    fn each(&self, found: impl FnMut(u64)) {
        self.iter().copied().for_each(found);
    }
}

impl Sink for Vec<u64> {
    fn put(&mut self, number: u64) {
        self.push(number);
    }

    fn run(&mut self, numbers: Range<u64>) {
        self.extend(numbers);
    }
}

fn round_trip(universe: u128, numbers: &BTreeSet<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, universe, numbers.len() as u64, numbers);
    let mut reader = Reader::new(&bytes);
    let mut found = Vec::new();
    decode(&mut reader, universe, u64::MAX, &mut found).unwrap();
    reader.end().unwrap();
    assert!(found.iter().eq(numbers), "universe {universe}");
    bytes
}

proptest! {
    #![proptest_config(crate::model::seeded())]

    #[test]
    fn subsets_of_any_density_come_back(
        universe in 1u64..9000,
        wanted in prop::collection::btree_set(any::<u64>(), 0..1500),
        narrow in 1u64..9000,
    ) {
        // Crowded into a corner, the gaps are not what the model expects.
        let corner = narrow.min(universe);
        let numbers = wanted.iter().map(|number| number % corner).collect();
        round_trip(universe.into(), &numbers);
        let spread = wanted.iter().map(|number| number % universe).collect();
        round_trip(universe.into(), &spread);
        let absent = (0..universe).filter(|number| !numbers.contains(number)).collect();
        round_trip(universe.into(), &absent);
    }

    #[test]
    fn subsets_of_any_large_universe_come_back(
        bits in 12u32..=64,
        wanted in prop::collection::btree_set(any::<u64>(), 0..100),
    ) {
        let numbers = wanted.iter().map(|number| number >> (64 - bits)).collect();
        round_trip(1 << bits, &numbers);
    }

    #[test]
    fn any_bytes_decode_or_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        universe in 0u64..5000,
    ) {
        // Whatever came out ascends and stays below the universe, also before an error.
        let mut found = Vec::new();
        let _ = decode(&mut Reader::new(&bytes), universe.into(), universe, &mut found);
        prop_assert!(found.is_sorted_by(|a, b| a < b));
        prop_assert!(found.last().is_none_or(|last| *last < universe));
    }

    #[test]
    fn small_subsets_take_the_shortest_of_all_modes(
        universe in 1u64..=4096,
        wanted in prop::collection::vec(any::<u64>(), 1..3000),
    ) {
        let numbers: BTreeSet<u64> = wanted.iter().map(|number| number % universe).collect();
        let count = numbers.len() as u64;
        prop_assume!(count * 2 <= universe);
        let (mut chosen, mut head, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        encode(&mut chosen, universe.into(), count, &numbers);
        put_varint(&mut head, count);
        encode_gaps(&mut gaps, universe.into(), count, &numbers);
        let bitmap = numbers.bitmap(universe);
        let mut bits = Vec::new();
        encode_bits(&mut bits, universe, count, &bitmap);
        prop_assert!(chosen.len() - head.len() - 1 <= gaps.len().min(bitmap.len()));
        prop_assert!(
            !bits_allowed(universe.into(), count)
                || chosen.len() - head.len() - 1 <= bits.len()
        );
    }
}

#[test]
fn ends_of_universes_hold() {
    let set = |numbers: &[u64]| numbers.iter().copied().collect::<BTreeSet<u64>>();
    round_trip(1, &set(&[]));
    round_trip(1, &set(&[0]));
    round_trip(1 << 64, &set(&[0, u64::MAX]));
    round_trip(1 << 64, &set(&[u64::MAX]));
    round_trip(1 << 40, &set(&[(1 << 40) - 1]));
    round_trip(4096, &(0..4096).collect());
    round_trip(4096, &(1..4096).collect());
    round_trip(4097, &(1..4097).collect());
    round_trip(1 << 16, &(0..(1 << 13)).collect());
    round_trip(1 << 16, &(0..(1 << 15)).collect());
}

#[test]
fn size_comes_close_to_the_entropy_at_any_density() {
    let universe = 1u64 << 20;
    let mut state = 1u64;
    for share in [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.12, 0.13, 0.2, 0.3, 0.4, 0.5, 0.7, 0.95] {
        let numbers: BTreeSet<u64> = (0..universe)
            .filter(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1u64 << 53) as f64 <= share
            })
            .collect();
        let p = numbers.len() as f64 / universe as f64;
        let entropy = -(p * p.log2() + (1.0 - p) * (1.0 - p).log2()) * universe as f64 / 8.0;
        let bytes = round_trip(universe.into(), &numbers).len() as f64;
        assert!(bytes <= entropy * 1.005 + 16.0, "share {share}: {bytes} of {entropy} bytes");
    }
}

/// Counts how numbers arrive.
#[derive(Default)]
struct Arrivals {
    singly: u64,
    runs: u64,
    in_runs: u64,
}

impl Sink for Arrivals {
    fn put(&mut self, _number: u64) {
        self.singly += 1;
    }

    fn run(&mut self, numbers: Range<u64>) {
        self.runs += 1;
        self.in_runs += numbers.end - numbers.start;
    }
}

/// Numbers that cost their writer nothing come in runs, whose number follows from what was
/// paid for: a few bytes cannot keep a reader busy.
#[test]
fn numbers_that_are_not_coded_come_in_runs() {
    let universe = 1 << 40;
    for holes in [&[][..], &[0], &[universe - 1], &[5, 6, 1 << 39]] {
        let count = universe - holes.len() as u64;
        let mut bytes = Vec::new();
        put_varint(&mut bytes, count);
        if !holes.is_empty() {
            bytes.push(GAPS | COMPLEMENT);
            let holes: BTreeSet<u64> = holes.iter().copied().collect();
            encode_gaps(&mut bytes, universe.into(), holes.len() as u64, &holes);
        }
        let mut arrivals = Arrivals::default();
        decode(&mut Reader::new(&bytes), universe.into(), universe, &mut arrivals).unwrap();
        assert_eq!((arrivals.singly, arrivals.in_runs), (0, count));
        assert_eq!(arrivals.runs, holes.len() as u64 + 1);
    }
}

/// A bitmap of 2^64 numbers once took zero bytes, since the universe was cut to 64 bits.
#[test]
fn a_bitmap_of_all_digests_is_refused() {
    for mode in [RAW, BITS, RAW | COMPLEMENT, BITS | COMPLEMENT] {
        let mut found = Vec::new();
        let outcome = decode(&mut Reader::new(&[1, mode, 0]), 1 << 64, 1 << 20, &mut found);
        assert!(outcome.is_err(), "mode {mode}");
    }
}

/// Decodes a subset of which mode and body were made by hand.
fn crafted(universe: u128, count: u64, mode: u8, body: &[u8]) -> Result<Vec<u64>, DecodeError> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, count);
    bytes.push(mode);
    bytes.extend_from_slice(body);
    let (mut reader, mut found) = (Reader::new(&bytes), Vec::new());
    decode(&mut reader, universe, u64::MAX, &mut found)?;
    reader.end()?;
    Ok(found)
}

/// Gaps of these quotients, the low bits all zeros.
fn gaps(universe: u128, quotients: &[u8]) -> Vec<u8> {
    let count = quotients.iter().filter(|symbol| **symbol < QUOTIENTS).count();
    let GapModel { low_bits, model } = GapModel::new(universe, count as u64);
    let mut bytes = Vec::new();
    put_symbols(&mut bytes, quotients, &model);
    bytes.resize(bytes.len() + (count * low_bits as usize).div_ceil(8), 0);
    bytes
}

#[test]
fn gaps_that_lead_outside_the_universe_are_refused() {
    // The low bits of a single number among 2^64 are 61: from 8 on quotients pass 64 bits,
    // and would come out as small numbers.
    let universe = 1 << 64;
    assert_eq!(crafted(universe, 1, GAPS, &gaps(universe, &[7])), Ok(vec![7 << 61]));
    for quotients in [&[8][..], &[9], &[95], &[QUOTIENTS, 0], &[QUOTIENTS, QUOTIENTS, 1]] {
        let outcome = crafted(universe, 1, GAPS, &gaps(universe, quotients));
        assert_eq!(outcome, Err(OUTSIDE), "{quotients:?}");
    }
    // One after the last number of a universe without low bits.
    assert_eq!(crafted(6, 3, GAPS, &gaps(6, &[3, 0, 0])), Ok(vec![3, 4, 5]));
    assert_eq!(crafted(6, 3, GAPS, &gaps(6, &[3, 0, 1])), Err(OUTSIDE));
    assert_eq!(crafted(6, 3, GAPS, &gaps(6, &[5, 0, 0])), Err(OUTSIDE));
}

#[test]
fn a_bitmap_holds_what_its_count_says_and_nothing_past_its_universe() {
    let coded = |universe, count, bitmap: &[u8]| {
        let mut bits = Vec::new();
        encode_bits(&mut bits, universe, count, bitmap);
        bits
    };
    for (bitmap, expected) in [
        ([0b101, 0], Ok(vec![0, 2])),
        ([1, 0b1000], Ok(vec![0, 11])),
        ([1, 0], Err(WRONG_COUNT)),
        ([0b111, 0], Err(WRONG_COUNT)),
        ([1, 0b1_0000], Err(OUTSIDE)),
    ] {
        assert_eq!(crafted(12, 2, RAW, &bitmap), expected, "{bitmap:?}");
        assert_eq!(crafted(12, 2, BITS, &coded(12, 2, &bitmap)), expected, "{bitmap:?}");
    }
}

#[test]
fn a_mode_that_does_not_suit_the_count_is_refused() {
    let larger = Err(DecodeError::Malformed("a subset codes its larger half"));
    assert_eq!(crafted(8, 6, RAW, &[0b11]), larger);
    assert_eq!(crafted(8, 2, RAW | COMPLEMENT, &[0b11]), larger);
    assert_eq!(crafted(8, 6, RAW | COMPLEMENT, &[0b11]), Ok(vec![2, 3, 4, 5, 6, 7]));
    assert_eq!(crafted(8, 2, 3, &[0b11]), Err(UNKNOWN_MODE));
    // One number in 65 is too few for bits: their symbols would cost next to nothing.
    let sparse = |universe: u64, count| {
        let mut bitmap = vec![0; universe.div_ceil(8) as usize];
        bitmap[0] = 1;
        let mut bits = Vec::new();
        encode_bits(&mut bits, universe, count, &bitmap);
        crafted(universe.into(), count, BITS, &bits)
    };
    assert_eq!(sparse(64, 1), Ok(vec![0]));
    assert_eq!(sparse(65, 1), Err(UNKNOWN_MODE));
}

/// Bits that fill up the last byte of low bits were not looked at, so that a subset had
/// several encodings.
#[test]
fn stray_bits_after_the_last_low_bits_are_refused() {
    let mut bytes = round_trip(1 << 20, &BTreeSet::from([77]));
    let last = bytes.last_mut().unwrap();
    *last |= 0x80;
    let outcome = decode(&mut Reader::new(&bytes), 1 << 20, 10, &mut Vec::new());
    assert_eq!(outcome, Err(DecodeError::Malformed("stray bits")));
}
