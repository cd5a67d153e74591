//! The one coder behind every message: an ascending list of distinct numbers below a
//! universe, in about as few bits as there are such lists (`U·H(a/U)`).
//!
//! Ones of a filter, bits set among a base's zeros, bits cleared among its ones, digests
//! of added keys: all are subsets of a universe, and come here.
//!
//! ```text
//! subset  = varint count, then nothing if count is 0 or the whole universe, else
//!           mode byte (1 gaps, 2 bits, 0 raw; +0x80: what is coded is the complement)
//! gaps    = gap before each number, split as quotient · 2^s + low bits: quotients are
//!           geometric and entropy-coded, low bits almost uniform and written as they are
//! bits    = eight numbers' presence a symbol, for dense subsets: an eighth of the symbols
//! raw     = the bitmap itself, when nothing helps
//! ```
//!
//! Both sides derive the symbol frequencies from `count` and the universe in integers
//! alone, so that every platform derives the same.
//!
//! The entropy coder is constriction's ANS coder (64-bit state, 32-bit words), started at
//! state 2^16 so that every symbol costs its true share: hostile bytes cannot name many
//! numbers for free, and decoding must end exactly where encoding began.

use constriction::stream::model::ContiguousCategoricalEntropyModel;
use constriction::stream::stack::DefaultAnsCoder;
use constriction::stream::{Code, Decode, Encode};

use super::DecodeError;
use super::bytes::{Reader, put_varint};

/// Appends an ascending list of `count` distinct numbers below `universe`.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    universe: u128,
    count: u64,
    numbers: impl Iterator<Item = u64>,
) {
    debug_assert!(u128::from(count) <= universe);
    put_varint(out, count);
    let absent = universe - u128::from(count);
    if count == 0 || absent == 0 {
        return;
    }
    if u128::from(count) <= absent {
        encode_coded(out, universe, count, numbers, 0);
    } else {
        // More than half are present, so that the absent ones are fewer and fit 64 bits.
        let complement = Complement { numbers, next: None, at: 0, end: universe }.start();
        encode_coded(out, universe, absent as u64, complement, COMPLEMENT);
    }
}

/// Reads what [`encode`] wrote and hands out the numbers, ascending; more than `most` of
/// them are refused before the first is handed out.
///
/// On an error, the numbers handed out before it are to be thrown away.
pub(crate) fn decode(
    reader: &mut Reader<'_>,
    universe: u128,
    most: u64,
    mut found: impl FnMut(u64),
) -> Result<(), DecodeError> {
    let count = reader.varint()?;
    if count > most {
        return Err(DecodeError::Malformed("more numbers than there can be"));
    }
    let absent = universe
        .checked_sub(count.into())
        .ok_or(DecodeError::Malformed("more numbers than their universe holds"))?;
    if count == 0 {
        return Ok(());
    }
    if absent == 0 {
        // A universe of 2^64 cannot be full: the count would not fit.
        (0..universe as u64).for_each(found);
        return Ok(());
    }
    let mode = reader.byte()?;
    let fewer = u128::from(count) <= absent;
    if (mode & COMPLEMENT == 0) != fewer {
        return Err(DecodeError::Malformed("a subset codes its larger half"));
    }
    if fewer {
        return decode_coded(reader, universe, count, mode, found);
    }
    let mut next = 0;
    decode_coded(reader, universe, absent as u64, mode & !COMPLEMENT, |hole| {
        (next..hole).for_each(&mut found);
        next = hole + 1;
    })?;
    (next..universe as u64).for_each(&mut found);
    Ok(())
}

const RAW: u8 = 0;
const GAPS: u8 = 1;
const BITS: u8 = 2;
const COMPLEMENT: u8 = 0x80;

/// Codes at most half of the universe, in the mode that suits its density.
fn encode_coded(
    out: &mut Vec<u8>,
    universe: u128,
    count: u64,
    numbers: impl Iterator<Item = u64>,
    flags: u8,
) {
    let start = out.len();
    // Both come within a tenth of a percent of the entropy; where one number in eight is
    // present, bits need half the symbols of gaps, and from there on ever fewer.
    if u128::from(count) * 8 <= universe {
        out.push(GAPS | flags);
        encode_gaps(out, universe, count, numbers);
    } else {
        let bitmap = bitmap(universe as u64, numbers);
        out.push(BITS | flags);
        encode_bits(out, universe as u64, count, &bitmap);
        if out.len() - start > bitmap.len() {
            out.truncate(start);
            out.push(RAW | flags);
            out.extend_from_slice(&bitmap);
        }
    }
}

fn decode_coded(
    reader: &mut Reader<'_>,
    universe: u128,
    count: u64,
    mode: u8,
    mut found: impl FnMut(u64),
) -> Result<(), DecodeError> {
    let dense = u128::from(count) * 8 > universe;
    let mut seen = 0;
    match mode {
        GAPS if !dense => return decode_gaps(reader, universe, count, found),
        BITS if dense => decode_bits(reader, universe as u64, count, |number| {
            seen += 1;
            found(number);
        })?,
        RAW if dense => {
            for (byte, index) in reader.take((universe as u64).div_ceil(8))?.iter().zip(0..) {
                hand_out(*byte, index, universe as u64, |number| {
                    seen += 1;
                    found(number);
                })?;
            }
        }
        _ => return Err(DecodeError::Malformed("unknown mode of a subset")),
    }
    if seen == count { Ok(()) } else { Err(DecodeError::Malformed("a subset's count is wrong")) }
}

// ---- gaps

/// Quotients up to here have a symbol of their own; the last symbol says "go on from here".
const QUOTIENTS: u64 = 96;

/// How gaps are split, and how likely each quotient is: derived alike on both sides.
struct GapModel {
    low_bits: u32,
    model: Model,
}

impl GapModel {
    /// For `count` numbers in `universe`, at most one in eight.
    fn new(universe: u128, count: u64) -> Self {
        // Low bits as long as a gap of 2^s is at most an eighth of a mean gap: their
        // distribution is then so flat that writing them plainly costs 0.1 % of a bit.
        let mut low_bits = 0;
        while u128::from(count) << (low_bits + 4) <= universe {
            low_bits += 1;
        }
        // The chance that a quotient ends here, 1 - (1 - p)^(2^s), by repeated squaring of
        // 1 - p; from 2^8 on the steps are so small that eight squarings suffice.
        let squarings = low_bits.min(8);
        let p = (u128::from(count) << (low_bits - squarings)) * ONE / universe;
        let mut stay = ONE - p;
        for _ in 0..squarings {
            stay = stay * stay / ONE;
        }
        Self { low_bits, model: Self::frequencies(stay) }
    }

    /// Cumulative chances `1 - stay^i`, rounded down, with one added to each symbol so that
    /// none is impossible.
    fn frequencies(stay: u128) -> Model {
        let spread = u128::from(TOTAL - (QUOTIENTS as u32 + 1));
        let mut beyond = ONE;
        let mut below = 0;
        let mut frequencies = Vec::with_capacity(QUOTIENTS as usize + 1);
        for _ in 0..QUOTIENTS {
            beyond = beyond * stay / ONE;
            let reached = ((ONE - beyond) * spread / ONE) as u32;
            frequencies.push(reached - below + 1);
            below = reached;
        }
        frequencies.push(spread as u32 - below + 1);
        model(&frequencies)
    }
}

fn encode_gaps(out: &mut Vec<u8>, universe: u128, count: u64, numbers: impl Iterator<Item = u64>) {
    let GapModel { low_bits, model } = GapModel::new(universe, count);
    let mut symbols = Vec::with_capacity(count as usize);
    let mut low = BitWriter::default();
    let mut next = 0u64;
    for number in numbers {
        let gap = number - next;
        let mut quotient = gap >> low_bits;
        while quotient >= QUOTIENTS {
            symbols.push(QUOTIENTS as u8);
            quotient -= QUOTIENTS;
        }
        symbols.push(quotient as u8);
        low.put(gap & ((1 << low_bits) - 1), low_bits);
        // The largest number of a universe of 2^64 has no successor, and needs none.
        next = number.wrapping_add(1);
    }
    put_symbols(out, &symbols, &model);
    low.finish(out);
}

fn decode_gaps(
    reader: &mut Reader<'_>,
    universe: u128,
    count: u64,
    mut found: impl FnMut(u64),
) -> Result<(), DecodeError> {
    let GapModel { low_bits, model } = GapModel::new(universe, count);
    let mut symbols = Symbols::read(reader)?;
    let low_bytes = (u128::from(count) * u128::from(low_bits)).div_ceil(8);
    let low_bytes = u64::try_from(low_bytes).map_err(|_| DecodeError::Truncated)?;
    let mut low = BitReader::new(reader.take(low_bytes)?);
    let mut next = 0u128;
    for _ in 0..count {
        let mut quotient = 0u128;
        loop {
            let symbol = symbols.next(&model)? as u64;
            quotient += u128::from(symbol);
            if symbol < QUOTIENTS {
                break;
            }
        }
        let number = next + (quotient << low_bits) + u128::from(low.take(low_bits));
        if number >= universe {
            return Err(DecodeError::Malformed("a number lies outside its universe"));
        }
        found(number as u64);
        next = number + 1;
    }
    symbols.end()
}

// ---- bits

/// Frequencies of the 256 patterns of eight bits, each one with chance `count/universe`.
fn bits_model(universe: u64, count: u64) -> Model {
    let p = u128::from(count) * ONE / u128::from(universe);
    let mut by_ones = [ONE; 9];
    for (ones, chance) in by_ones.iter_mut().enumerate() {
        for bit in 0..8 {
            *chance = *chance * if bit < ones { p } else { ONE - p } / ONE;
        }
    }
    let spread = u128::from(TOTAL - 256);
    let frequency = |byte: u8| (by_ones[byte.count_ones() as usize] * spread / ONE) as u32 + 1;
    let mut frequencies: Vec<u32> = (0..=u8::MAX).map(frequency).collect();
    // What rounding lost goes to the commonest pattern.
    frequencies[0] += TOTAL - frequencies.iter().sum::<u32>();
    model(&frequencies)
}

fn bitmap(universe: u64, numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = vec![0; universe.div_ceil(8) as usize];
    for number in numbers {
        bytes[(number >> 3) as usize] |= 1 << (number & 7);
    }
    bytes
}

fn encode_bits(out: &mut Vec<u8>, universe: u64, count: u64, bitmap: &[u8]) {
    put_symbols(out, bitmap, &bits_model(universe, count));
}

fn decode_bits(
    reader: &mut Reader<'_>,
    universe: u64,
    count: u64,
    mut found: impl FnMut(u64),
) -> Result<(), DecodeError> {
    let model = bits_model(universe, count);
    let mut symbols = Symbols::read(reader)?;
    for index in 0..universe.div_ceil(8) {
        hand_out(symbols.next(&model)? as u8, index, universe, &mut found)?;
    }
    symbols.end()
}

/// Hands out the numbers of one byte of a bitmap.
fn hand_out(
    mut byte: u8,
    index: u64,
    universe: u64,
    mut found: impl FnMut(u64),
) -> Result<(), DecodeError> {
    while byte != 0 {
        let number = index * 8 + u64::from(byte.trailing_zeros());
        if number >= universe {
            return Err(DecodeError::Malformed("a number lies outside its universe"));
        }
        found(number);
        byte &= byte - 1;
    }
    Ok(())
}

// ---- symbols

/// Frequencies are shares of 2^16.
const PRECISION: usize = 16;
const TOTAL: u32 = 1 << PRECISION;
/// One, as a fixed-point number that squares without overflow.
const ONE: u128 = 1 << 62;
/// Where the coder's state begins and must end: below it a symbol could be free.
const FIRST_STATE: u64 = 1 << PRECISION;

type Model = ContiguousCategoricalEntropyModel<u32, Vec<u32>, PRECISION>;

fn model(frequencies: &[u32]) -> Model {
    ContiguousCategoricalEntropyModel::from_nonzero_fixed_point_probabilities(frequencies, false)
        .expect("frequencies are nonzero and add up to the total")
}

/// Appends entropy-coded symbols: varint state, varint number of words, words.
fn put_symbols(out: &mut Vec<u8>, symbols: &[u8], model: &Model) {
    let mut coder = DefaultAnsCoder::from_raw_parts(Vec::new(), FIRST_STATE);
    // Last in, first out: coded backwards, read forwards.
    for symbol in symbols.iter().rev() {
        coder.encode_symbol(usize::from(*symbol), model).expect("every symbol has a frequency");
    }
    let (words, state) = coder.into_raw_parts();
    put_varint(out, state);
    put_varint(out, words.len() as u64);
    out.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
}

/// Symbols being read.
struct Symbols {
    coder: DefaultAnsCoder,
}

impl Symbols {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let state = reader.varint()?;
        let words = reader.varint()?;
        let bytes = reader.take(words.checked_mul(4).ok_or(DecodeError::Truncated)?)?;
        if state < FIRST_STATE || (words > 0 && state >> 32 == 0) {
            return Err(DecodeError::Malformed("the state of the entropy coder is too small"));
        }
        let words = bytes
            .rchunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("chunks of four bytes")));
        Ok(Self { coder: DefaultAnsCoder::from_raw_parts(words.collect(), state) })
    }

    #[inline]
    fn next(&mut self, model: &Model) -> Result<usize, DecodeError> {
        let symbol = self.coder.decode_symbol(model).expect("decoding from memory cannot fail");
        if self.coder.state() < FIRST_STATE {
            return Err(DecodeError::Malformed("more symbols than were coded"));
        }
        Ok(symbol)
    }

    /// That the coder is back where it began.
    fn end(&self) -> Result<(), DecodeError> {
        if self.coder.state() == FIRST_STATE && self.coder.bulk().is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Malformed("fewer symbols than were coded"))
        }
    }
}

// ---- low bits

/// Writes numbers of a fixed width, lowest bit first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    held: u128,
    width: u32,
}

impl BitWriter {
    #[inline]
    fn put(&mut self, value: u64, width: u32) {
        self.held |= u128::from(value) << self.width;
        self.width += width;
        if self.width >= 64 {
            self.bytes.extend_from_slice(&(self.held as u64).to_le_bytes());
            self.held >>= 64;
            self.width -= 64;
        }
    }

    fn finish(mut self, out: &mut Vec<u8>) {
        let left = &self.held.to_le_bytes()[..self.width.div_ceil(8) as usize];
        self.bytes.extend_from_slice(left);
        out.append(&mut self.bytes);
    }
}

/// Reads what a [`BitWriter`] wrote; past the end there are zeros.
struct BitReader<'a> {
    bytes: &'a [u8],
    held: u128,
    width: u32,
}

impl<'a> BitReader<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, held: 0, width: 0 }
    }

    #[inline]
    fn take(&mut self, width: u32) -> u64 {
        if self.width < width {
            self.refill();
        }
        let value = (self.held & ((1u128 << width) - 1)) as u64;
        self.held >>= width;
        self.width = self.width.saturating_sub(width);
        value
    }

    fn refill(&mut self) {
        let (word, rest) = match self.bytes.split_first_chunk() {
            Some((word, rest)) => (u64::from_le_bytes(*word), rest),
            None => {
                let mut word = [0; 8];
                word[..self.bytes.len()].copy_from_slice(self.bytes);
                (u64::from_le_bytes(word), &[][..])
            }
        };
        self.held |= u128::from(word) << self.width;
        self.width += 64;
        self.bytes = rest;
    }
}

// ---- complement

/// The numbers below `end` that an ascending list leaves out.
struct Complement<I> {
    numbers: I,
    next: Option<u64>,
    at: u64,
    end: u128,
}

impl<I: Iterator<Item = u64>> Complement<I> {
    fn start(mut self) -> Self {
        self.next = self.numbers.next();
        self
    }
}

impl<I: Iterator<Item = u64>> Iterator for Complement<I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.next == Some(self.at) {
            self.at += 1;
            self.next = self.numbers.next();
        }
        let absent = self.at;
        self.at += 1;
        (u128::from(absent) < self.end).then_some(absent)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn round_trip(universe: u128, numbers: &BTreeSet<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes, universe, numbers.len() as u64, numbers.iter().copied());
        let mut reader = Reader::new(&bytes);
        let mut found = Vec::new();
        decode(&mut reader, universe, u64::MAX, |number| found.push(number)).unwrap();
        reader.end().unwrap();
        assert!(found.iter().eq(numbers.iter()), "universe {universe}");
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn subsets_of_any_density_come_back(
            universe in 1u64..3000,
            wanted in prop::collection::btree_set(any::<u64>(), 0..400),
            narrow in 1u64..3000,
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
            let mut last = None;
            let outcome = decode(&mut Reader::new(&bytes), universe.into(), universe, |number| {
                assert!(number < universe && last.is_none_or(|last| last < number));
                last = Some(number);
            });
            // Whatever came out ascends and stays below the universe, also before an error.
            let _ = outcome;
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
        round_trip(1 << 16, &(0..(1 << 13)).collect());
    }

    #[test]
    fn size_comes_close_to_the_entropy_at_any_density() {
        let universe = 1u64 << 20;
        let mut state = 1u64;
        for share in [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.12, 0.13, 0.2, 0.3, 0.4, 0.5, 0.7, 0.95] {
            let numbers: BTreeSet<u64> = (0..universe)
                .filter(|_| {
                    state =
                        state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 11) as f64 / (1u64 << 53) as f64 <= share
                })
                .collect();
            let p = numbers.len() as f64 / universe as f64;
            let entropy = -(p * p.log2() + (1.0 - p) * (1.0 - p).log2()) * universe as f64 / 8.0;
            let bytes = round_trip(universe.into(), &numbers).len() as f64;
            assert!(bytes <= entropy * 1.005 + 16.0, "share {share}: {bytes} of {entropy} bytes");
        }
    }
}
