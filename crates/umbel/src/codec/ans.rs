//! The entropy coder: writes symbols of known frequencies in close to the minimal number of bits.
//!
//! A range ANS coder with a 64-bit state and 32-bit words. Its output is identical, bit for bit, to
//! that of the `constriction` crate (the tests compare the two). It uses a lookup table where that
//! crate searches, and reads words without copying them. It starts at state 2^16, so that every
//! symbol costs its share of bits from the first one on: hostile bytes cannot encode many symbols
//! for free, and decoding must end exactly in the state where encoding began.
//!
//! ```text
//! symbols = varint state, varint number of words, words of four bytes
//! ```

use super::DecodeError;
use super::bytes::{Reader, put_varint};

/// Frequencies are shares of 2^16.
const PRECISION: u32 = 16;
/// The sum of all frequencies of a model.
pub(super) const TOTAL: u32 = 1 << PRECISION;
/// The state in which encoding begins and decoding must end. In a smaller state a symbol could cost
/// nothing.
const FIRST_STATE: u64 = 1 << PRECISION;
/// Quantiles are looked up by their top bits; a bucket rarely has more than one symbol.
const BUCKET_BITS: u32 = 6;
const BUCKETS: usize = 1 << (PRECISION - BUCKET_BITS);

/// How frequent each symbol is.
#[derive(Debug)]
pub(super) struct Model {
    /// For each symbol, the sum of the frequencies of all symbols before it; after the last one,
    /// the total.
    before: [u32; 257],
}

impl Model {
    /// A model of up to 256 symbols. Each frequency must be above zero; their sum must be
    /// [`TOTAL`].
    pub(super) fn new(frequencies: impl Iterator<Item = u32>) -> Self {
        let mut before = [TOTAL; 257];
        let mut sum = 0;
        for (before, frequency) in before.iter_mut().zip(frequencies) {
            debug_assert!(frequency > 0);
            *before = sum;
            sum += frequency;
        }
        assert_eq!(sum, TOTAL, "frequencies add up to the total");
        Self { before }
    }
}

/// Appends entropy-coded symbols.
pub(super) fn put_symbols(out: &mut Vec<u8>, symbols: &[u8], model: &Model) {
    let mut state = FIRST_STATE;
    let mut words = Vec::new();
    // Last in, first out: encode backwards, so that decoding reads forwards.
    for symbol in symbols.iter().rev() {
        let before = model.before[usize::from(*symbol)];
        let frequency = u64::from(model.before[usize::from(*symbol) + 1] - before);
        if state >> (64 - PRECISION) >= frequency {
            words.push(state as u32);
            state >>= 32;
        }
        state = ((state / frequency) << PRECISION) + u64::from(before) + state % frequency;
    }
    put_varint(out, state);
    put_varint(out, words.len() as u64);
    out.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
}

/// Symbols being read.
#[derive(Debug)]
pub(super) struct Symbols<'a> {
    state: u64,
    words: &'a [[u8; 4]],
    model: Model,
    /// The symbol that the first quantile of each bucket belongs to.
    first: [u8; BUCKETS],
}

impl<'a> Symbols<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, model: Model) -> Result<Self, DecodeError> {
        let state = reader.varint()?;
        let count = reader.varint()?;
        let bytes = reader.take(count.checked_mul(4).ok_or(DecodeError::Truncated)?)?;
        if state < FIRST_STATE || (count > 0 && state >> 32 == 0) {
            return Err(DecodeError::Malformed("the state of the entropy coder is too small"));
        }
        let (words, _) = bytes.as_chunks();
        let mut first = [0; BUCKETS];
        let mut symbol = 0;
        for (bucket, first) in first.iter_mut().enumerate() {
            while model.before[usize::from(symbol) + 1] as usize <= bucket << BUCKET_BITS {
                symbol += 1;
            }
            *first = symbol;
        }
        Ok(Self { state, words, model, first })
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<u8, DecodeError> {
        let quantile = (self.state & u64::from(TOTAL - 1)) as u32;
        let mut symbol = self.first[(quantile >> BUCKET_BITS) as usize];
        while self.model.before[usize::from(symbol) + 1] <= quantile {
            symbol += 1;
        }
        let before = self.model.before[usize::from(symbol)];
        let frequency = self.model.before[usize::from(symbol) + 1] - before;
        self.state =
            (self.state >> PRECISION) * u64::from(frequency) + u64::from(quantile - before);
        if self.state >> 32 == 0 {
            self.refill()?;
        }
        Ok(symbol)
    }

    #[inline]
    fn refill(&mut self) -> Result<(), DecodeError> {
        if let Some((word, rest)) = self.words.split_first() {
            self.state = self.state << 32 | u64::from(u32::from_le_bytes(*word));
            self.words = rest;
        } else if self.state < FIRST_STATE {
            return Err(DecodeError::Malformed("more symbols than were coded"));
        }
        Ok(())
    }

    /// Checks that the coder is back in its first state and all words were read.
    pub(super) fn end(&self) -> Result<(), DecodeError> {
        if self.state == FIRST_STATE && self.words.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Malformed("fewer symbols than were coded"))
        }
    }
}

#[cfg(test)]
mod tests {
    use constriction::stream::Encode;
    use constriction::stream::model::ContiguousCategoricalEntropyModel;
    use constriction::stream::stack::DefaultAnsCoder;
    use proptest::prelude::*;

    use super::*;

    /// Frequencies in the proportions of the weights, none of them zero.
    fn frequencies(weights: &[u16]) -> Vec<u32> {
        let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>().max(1);
        let spread = u64::from(TOTAL) - weights.len() as u64;
        let share = |weight: &u16| (u64::from(*weight) * spread / sum) as u32 + 1;
        let mut shares: Vec<u32> = weights.iter().map(share).collect();
        shares[0] += TOTAL - shares.iter().sum::<u32>();
        shares
    }

    fn by_constriction(symbols: &[u8], frequencies: &[u32]) -> (u64, Vec<u32>) {
        type Categorical = ContiguousCategoricalEntropyModel<u32, Vec<u32>, 16>;
        let model = Categorical::from_nonzero_fixed_point_probabilities(frequencies, false);
        let model = model.unwrap();
        let mut coder = DefaultAnsCoder::from_raw_parts(Vec::new(), FIRST_STATE);
        for symbol in symbols.iter().rev() {
            coder.encode_symbol(usize::from(*symbol), &model).unwrap();
        }
        let (words, state) = coder.into_raw_parts();
        (state, words)
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn symbols_are_coded_as_by_the_twin_and_come_back(
            weights in prop::collection::vec(any::<u16>(), 2..=256),
            picks in prop::collection::vec(any::<usize>(), 0..300),
        ) {
            let frequencies = frequencies(&weights);
            let model = Model::new(frequencies.iter().copied());
            let symbols: Vec<u8> = picks.iter().map(|pick| (pick % weights.len()) as u8).collect();
            let mut bytes = Vec::new();
            put_symbols(&mut bytes, &symbols, &model);

            let mut expected = Vec::new();
            let (state, words) = by_constriction(&symbols, &frequencies);
            put_varint(&mut expected, state);
            put_varint(&mut expected, words.len() as u64);
            expected.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
            prop_assert_eq!(&bytes, &expected);

            let mut reader = Reader::new(&bytes);
            let mut coded = Symbols::read(&mut reader, model).unwrap();
            for symbol in symbols {
                prop_assert_eq!(coded.next().unwrap(), symbol);
            }
            prop_assert!(coded.end().is_ok());
            prop_assert!(reader.end().is_ok());
            if !picks.is_empty() {
                let model = Model::new(frequencies.iter().copied());
                let mut fewer = Symbols::read(&mut Reader::new(&bytes), model).unwrap();
                (1..picks.len()).for_each(|_| {
                    fewer.next().unwrap();
                });
                prop_assert!(fewer.end().is_err(), "one symbol is left");
            }
            // Past the end only a few more symbols can be read, if any.
            prop_assert!((0..1 << 17).any(|_| coded.next().is_err()));
        }
    }

    /// States that are too small are rejected: with them one message would have several encodings,
    /// or a symbol would cost no bits.
    #[test]
    fn states_that_no_writer_leaves_are_refused() {
        let read = |state: u64, words: &[u32]| {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, state);
            put_varint(&mut bytes, words.len() as u64);
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            let model = Model::new([TOTAL / 2, TOTAL / 2].into_iter());
            Symbols::read(&mut Reader::new(&bytes), model).err()
        };
        let refused = Some(DecodeError::Malformed("the state of the entropy coder is too small"));
        assert_eq!(read(FIRST_STATE, &[]), None);
        assert_eq!(read(FIRST_STATE - 1, &[]), refused);
        assert_eq!(read((1 << 32) - 1, &[7]), refused);
        assert_eq!(read(1 << 32, &[7]), None);
    }
}
