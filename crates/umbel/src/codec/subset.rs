//! The coder that all messages use: encodes an ascending list of distinct numbers below a universe,
//! in close to the minimal number of bits (`U·H(a/U)`).
//!
//! Ones of a filter, bits set among a base's zeros, bits cleared among its ones, digests of added
//! keys: all are subsets of a universe, and are encoded here.
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
//! Both sides compute the symbol frequencies from `count` and the universe in integer arithmetic,
//! so that every platform gets the same result.
//!
//! Always true: decoding takes time in proportion to the bytes read and to the memory of the
//! receiver of the numbers, even if the bytes are hostile. Every encoded number takes at least a
//! bit, every byte of a bitmap at least an eighth of a bit, and numbers that are not encoded are
//! passed on in runs.

use std::ops::Range;

use super::DecodeError;
use super::ans::{Model, Symbols, TOTAL, put_symbols};
use super::bytes::{Reader, put_varint};
use super::low_bits::{BitReader, BitWriter};

/// An ascending list of distinct numbers, to be encoded.
pub(crate) trait Source {
    /// Calls `found` for each number, ascending.
    fn each(&self, found: impl FnMut(u64));

    /// The numbers as bits, number 0 in the lowest bit of the first byte.
    fn bitmap(&self, universe: u64) -> Vec<u8> {
        let mut bytes = vec![0; universe.div_ceil(8) as usize];
        self.each(|number| bytes[(number >> 3) as usize] |= 1 << (number & 7));
        bytes
    }
}

/// Receives decoded numbers, ascending.
pub(crate) trait Sink {
    /// Receives a number.
    fn put(&mut self, number: u64);

    /// Receives all numbers of a range. Ranges take no bytes in the message, so a sink that may
    /// receive long ones must process them faster than one by one.
    fn run(&mut self, numbers: Range<u64>);

    /// Receives the eight numbers from `8·index` on, as bits.
    #[inline]
    fn byte(&mut self, index: u64, mut byte: u8) {
        while byte != 0 {
            self.put(index * 8 + u64::from(byte.trailing_zeros()));
            byte &= byte - 1;
        }
    }
}

/// Appends an ascending list of `count` distinct numbers below `universe`.
pub(crate) fn encode(out: &mut Vec<u8>, universe: u128, count: u64, numbers: &impl Source) {
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
        let complement = Complement { numbers, universe };
        encode_coded(out, universe, absent as u64, &complement, COMPLEMENT);
    }
}

/// Reads what [`encode`] wrote and passes the numbers to `sink`, ascending. More than `max` numbers
/// are rejected before the first is passed on.
///
/// After an error, the numbers passed on before it must be discarded.
pub(crate) fn decode(
    reader: &mut Reader<'_>,
    universe: u128,
    max: u64,
    sink: &mut impl Sink,
) -> Result<(), DecodeError> {
    let count = reader.varint()?;
    if count > max || u128::from(count) > universe {
        return Err(DecodeError::Malformed("more numbers than there can be"));
    }
    let absent = universe - u128::from(count);
    if count == 0 {
        return Ok(());
    }
    if absent == 0 {
        sink.run(0..count);
        return Ok(());
    }
    let mode = reader.byte()?;
    let fewer = u128::from(count) <= absent;
    if (mode & COMPLEMENT == 0) != fewer {
        return Err(DecodeError::Malformed("a subset codes its larger half"));
    }
    if fewer {
        return decode_coded(reader, universe, count, mode, sink);
    }
    // More than half of the numbers are counted, and they fit 64 bits: so does the universe.
    let universe = u64::try_from(universe).map_err(|_| UNKNOWN_MODE)?;
    let mut holes = Holes { sink, next: 0, universe };
    decode_coded(reader, universe.into(), absent as u64, mode & !COMPLEMENT, &mut holes)?;
    holes.finish();
    Ok(())
}

const RAW: u8 = 0;
const GAPS: u8 = 1;
const BITS: u8 = 2;
const COMPLEMENT: u8 = 0x80;

const UNKNOWN_MODE: DecodeError = DecodeError::Malformed("unknown mode of a subset");
const OUTSIDE: DecodeError = DecodeError::Malformed("a number lies outside its universe");

/// For universes up to this size all modes are tried; for larger ones the density decides.
const SMALL: u128 = 1 << 12;

/// No filter has a bitmap larger than this.
const LARGEST_BITMAP: u128 = 1 << 40;

/// Encodes at most half of the universe, in the mode that suits its density.
///
/// Gaps and bits both take at most a tenth of a percent more than the entropy. From a density of
/// one number in eight on, bits need no more symbols than gaps. At a density of almost one half,
/// bits save less than their model costs.
fn encode_coded(out: &mut Vec<u8>, universe: u128, count: u64, numbers: &impl Source, flags: u8) {
    if universe <= SMALL {
        encode_small(out, universe as u64, count, numbers, flags);
    } else if u128::from(count) * 8 <= universe {
        out.push(GAPS | flags);
        encode_gaps(out, universe, count, numbers);
    } else {
        let (universe, start) = (universe as u64, out.len());
        let bitmap = numbers.bitmap(universe);
        if (universe - 2 * count) * 64 >= universe {
            out.push(BITS | flags);
            encode_bits(out, universe, count, &bitmap);
            if out.len() - start <= bitmap.len() {
                return;
            }
            out.truncate(start);
        }
        out.push(RAW | flags);
        out.extend_from_slice(&bitmap);
    }
}

/// Tries every mode and keeps the shortest.
fn encode_small(out: &mut Vec<u8>, universe: u64, count: u64, numbers: &impl Source, flags: u8) {
    let bitmap = numbers.bitmap(universe);
    let mut shortest = vec![RAW | flags];
    shortest.extend_from_slice(&bitmap);
    let mut bits = vec![BITS | flags];
    if bits_allowed(universe.into(), count) {
        encode_bits(&mut bits, universe, count, &bitmap);
        if bits.len() < shortest.len() {
            shortest = bits;
        }
    }
    let mut gaps = vec![GAPS | flags];
    encode_gaps(&mut gaps, universe.into(), count, numbers);
    if gaps.len() < shortest.len() {
        shortest = gaps;
    }
    out.append(&mut shortest);
}

fn decode_coded(
    reader: &mut Reader<'_>,
    universe: u128,
    count: u64,
    mode: u8,
    sink: &mut impl Sink,
) -> Result<(), DecodeError> {
    match mode {
        GAPS => decode_gaps(reader, universe, count, sink),
        BITS if bits_allowed(universe, count) => decode_bits(reader, universe as u64, count, sink),
        RAW if universe <= LARGEST_BITMAP => decode_raw(reader, universe as u64, count, sink),
        _ => Err(UNKNOWN_MODE),
    }
}

/// Bits are allowed only for densities of at least one number in 64. In sparser subsets the empty
/// pattern would cost almost nothing, so that a short message could take a long time to decode.
fn bits_allowed(universe: u128, count: u64) -> bool {
    universe <= LARGEST_BITMAP && u128::from(count) * 64 >= universe
}

// ---- gaps

/// Quotients below this have their own symbol. The last symbol means: add this many and read on.
const QUOTIENTS: u8 = 96;

/// How gaps are split, and how likely each quotient is. Both sides compute the same model.
struct GapModel {
    low_bits: u32,
    model: Model,
}

impl GapModel {
    /// For `count` numbers in `universe`, at most half of it.
    fn new(universe: u128, count: u64) -> Self {
        // Use as many low bits as keep 2^s at most an eighth of the mean gap: their distribution is
        // then so flat that writing them plainly costs 0.1 % of a bit.
        let mut low_bits = 0;
        while u128::from(count) << (low_bits + 4) <= universe {
            low_bits += 1;
        }
        // The probability that a quotient ends here, 1 - (1 - p)^(2^s), by repeated squaring of 1 -
        // p. From 2^8 on the steps are so small that eight squarings suffice.
        let squarings = low_bits.min(8);
        let p = (u128::from(count) << (low_bits - squarings)) * ONE / universe;
        let mut stay = ONE - p;
        for _ in 0..squarings {
            stay = stay * stay / ONE;
        }
        Self { low_bits, model: Self::frequencies(stay) }
    }

    /// Cumulative probabilities `1 - stay^i`, rounded down, with one added to each symbol so that
    /// none is impossible.
    fn frequencies(stay: u128) -> Model {
        let spread = u128::from(TOTAL - (u32::from(QUOTIENTS) + 1));
        let mut beyond = ONE;
        let mut below = 0;
        let quotients = (0..QUOTIENTS).map(|_| {
            beyond = beyond * stay / ONE;
            (ONE - beyond) * spread / ONE
        });
        let reached = quotients.chain([spread]);
        Model::new(reached.map(|reached| {
            let frequency = reached as u32 - below + 1;
            below = reached as u32;
            frequency
        }))
    }
}

fn encode_gaps(out: &mut Vec<u8>, universe: u128, count: u64, numbers: &impl Source) {
    let GapModel { low_bits, model } = GapModel::new(universe, count);
    let mut symbols = Vec::with_capacity(count as usize);
    let mut low = BitWriter::default();
    let mut next = 0u64;
    numbers.each(|number| {
        let gap = number - next;
        let mut quotient = gap >> low_bits;
        while quotient >= u64::from(QUOTIENTS) {
            symbols.push(QUOTIENTS);
            quotient -= u64::from(QUOTIENTS);
        }
        symbols.push(quotient as u8);
        low.put(gap & ((1 << low_bits) - 1), low_bits);
        // The largest number of a universe of 2^64 has no successor, and needs none.
        next = number.wrapping_add(1);
    });
    put_symbols(out, &symbols, &model);
    low.finish(out);
}

fn decode_gaps(
    reader: &mut Reader<'_>,
    universe: u128,
    count: u64,
    sink: &mut impl Sink,
) -> Result<(), DecodeError> {
    let GapModel { low_bits, model } = GapModel::new(universe, count);
    let mut symbols = Symbols::read(reader, model)?;
    let low_bytes = (u128::from(count) * u128::from(low_bits)).div_ceil(8);
    let low_bytes = u64::try_from(low_bytes).map_err(|_| DecodeError::Truncated)?;
    let mut low = BitReader::new(reader.take(low_bytes)?);
    let last = (universe - 1) as u64;
    // The largest possible gap: the largest number of the universe minus the next candidate.
    let mut left = Some(last);
    for _ in 0..count {
        let mut quotient = 0u64;
        loop {
            let symbol = symbols.next()?;
            quotient += u64::from(symbol);
            if symbol < QUOTIENTS {
                break;
            }
        }
        let room = left.ok_or(OUTSIDE)?;
        if quotient > room >> low_bits {
            return Err(OUTSIDE);
        }
        let gap = quotient << low_bits | low.take(low_bits);
        let after = room.checked_sub(gap).ok_or(OUTSIDE)?;
        sink.put(last - after);
        left = after.checked_sub(1);
    }
    low.end()?;
    symbols.end()
}

// ---- bits

/// Frequencies of the 256 patterns of eight bits, where each bit is one with probability
/// `count/universe`.
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
    // The remainder from rounding goes to the most frequent pattern.
    let lost = TOTAL - (0..=u8::MAX).map(frequency).sum::<u32>();
    let extra = |byte: u8| if byte == 0 { lost } else { 0 };
    Model::new((0..=u8::MAX).map(|byte| frequency(byte) + extra(byte)))
}

fn encode_bits(out: &mut Vec<u8>, universe: u64, count: u64, bitmap: &[u8]) {
    put_symbols(out, bitmap, &bits_model(universe, count));
}

fn decode_bits(
    reader: &mut Reader<'_>,
    universe: u64,
    count: u64,
    sink: &mut impl Sink,
) -> Result<(), DecodeError> {
    let model = bits_model(universe, count);
    let mut symbols = Symbols::read(reader, model)?;
    let mut bitmap = Bitmap { universe, left: count, sink };
    for index in 0..universe.div_ceil(8) {
        bitmap.byte(index, symbols.next()?)?;
    }
    bitmap.end()?;
    symbols.end()
}

fn decode_raw(
    reader: &mut Reader<'_>,
    universe: u64,
    count: u64,
    sink: &mut impl Sink,
) -> Result<(), DecodeError> {
    let mut bitmap = Bitmap { universe, left: count, sink };
    for (index, byte) in (0..).zip(reader.take(universe.div_ceil(8))?) {
        bitmap.byte(index, *byte)?;
    }
    bitmap.end()
}

/// A bitmap being read, byte by byte.
struct Bitmap<'a, S> {
    universe: u64,
    left: u64,
    sink: &'a mut S,
}

impl<S: Sink> Bitmap<'_, S> {
    #[inline]
    fn byte(&mut self, index: u64, byte: u8) -> Result<(), DecodeError> {
        let room = self.universe - index * 8;
        if room < 8 && byte >> room != 0 {
            return Err(OUTSIDE);
        }
        let ones = byte.count_ones().into();
        self.left = self.left.checked_sub(ones).ok_or(WRONG_COUNT)?;
        self.sink.byte(index, byte);
        Ok(())
    }

    fn end(&self) -> Result<(), DecodeError> {
        if self.left == 0 { Ok(()) } else { Err(WRONG_COUNT) }
    }
}

const WRONG_COUNT: DecodeError = DecodeError::Malformed("a subset's count is wrong");

/// One, as a fixed-point number that squares without overflow.
const ONE: u128 = 1 << 62;

// ---- complement

/// The numbers of a universe that a source leaves out.
struct Complement<'a, S> {
    numbers: &'a S,
    universe: u128,
}

impl<S: Source> Source for Complement<'_, S> {
    fn each(&self, mut found: impl FnMut(u64)) {
        let mut next = 0;
        self.numbers.each(|number| {
            (next..number).for_each(&mut found);
            next = number + 1;
        });
        (next..self.universe as u64).for_each(found);
    }

    fn bitmap(&self, universe: u64) -> Vec<u8> {
        let mut bytes = self.numbers.bitmap(universe);
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        if let Some(last) = bytes.last_mut() {
            *last &= u8::MAX >> (universe.wrapping_neg() & 7);
        }
        bytes
    }
}

/// Receives the numbers that are absent, and passes on all others below the universe.
struct Holes<'a, S> {
    sink: &'a mut S,
    next: u64,
    universe: u64,
}

impl<S: Sink> Holes<'_, S> {
    fn finish(self) {
        self.sink.run(self.next..self.universe);
    }
}

impl<S: Sink> Sink for Holes<'_, S> {
    #[inline]
    fn put(&mut self, hole: u64) {
        self.sink.run(self.next..hole);
        self.next = hole + 1;
    }

    fn run(&mut self, holes: Range<u64>) {
        self.sink.run(self.next..holes.start);
        self.next = holes.end;
    }

    #[inline]
    fn byte(&mut self, index: u64, holes: u8) {
        let room = (self.universe - index * 8).min(8);
        self.sink.byte(index, !holes & (u8::MAX >> (8 - room)));
        self.next = index * 8 + room;
    }
}

#[cfg(test)]
mod tests;
