//! Encodes the change from one bit vector to another in few bytes.
//!
//! ```text
//! change = 0, subset of the base's zeros that are set,   subset of its ones that are cleared
//!        | 1, subset of all digests: those of added keys, subset of its ones that are cleared
//! ```
//!
//! The receiver has the base, so bits that are set are encoded by their ranks among its zeros, and
//! bits that are cleared by their ranks among its ones. If the digests of the added keys are known
//! and the keys are few, sending the digests is shorter still: one digest gives `k` positions
//! (formulas: `b - log2 a + 1.44` bits per key). Both are encoded and the shorter one is sent.
//!
//! Always true: decoding a change with the same base gives exactly the new bits. Digests that do
//! not explain the set bits are never sent: bits are sent instead.

use std::ops::Range;

use super::DecodeError;
use super::bytes::Reader;
use super::ranks::{Among, Differing, Flip};
use super::subset::{self, Sink, Source};
use crate::bits::BitVector;
use crate::key_hash::Digest;
use crate::params::Shape;

/// Bits to flip: first the ones to set, then the ones to clear, both ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flips {
    /// Zeros of the base that become ones.
    pub sets: Vec<u64>,
    /// Ones of the base that become zeros.
    pub clears: Vec<u64>,
}

impl Flips {
    /// The flips that lead from `base` to `new`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn between(base: &BitVector, new: &BitVector) -> Self {
        Self {
            sets: new.positions_beyond(base).collect(),
            clears: base.positions_beyond(new).collect(),
        }
    }

    /// Flips the bits: sets before clears.
    ///
    /// # Panics
    /// If a position is not below the length of `bits`.
    pub fn apply(&self, bits: &mut BitVector) {
        self.sets.iter().for_each(|position| {
            bits.set(*position);
        });
        self.clears.iter().for_each(|position| {
            bits.clear(*position);
        });
    }

    /// The checksum after these flips, given the base and its checksum. Computed without applying
    /// the flips and without a pass over the bits.
    ///
    /// # Panics
    /// If a position lies past the last word of `base`.
    #[must_use]
    pub fn checksum_after(&self, base: &BitVector, checksum: u64) -> u64 {
        let mut all: Vec<u64> = self.sets.iter().chain(&self.clears).copied().collect();
        all.sort_unstable();
        base.checksum_after(checksum, &all)
    }
}

/// Appends the change from `base` to `new`. `added` are the digests of all keys added
/// since the base, in any order, repeats allowed, or none if they are not known.
///
/// # Panics
/// If the lengths differ from the shape's.
pub fn encode_change(
    out: &mut Vec<u8>,
    shape: &Shape,
    base: &BitVector,
    new: &BitVector,
    added: &[Digest],
) {
    assert_eq!(base.len(), shape.bits(), "the base has the length of its shape");
    assert_eq!(new.len(), shape.bits(), "the new bits have the length of their shape");
    let start = out.len();
    out.push(BY_BITS);
    encode_differing(out, base, new, Among::Zeros);
    let digests = Digests::distinct(added);
    if !digests.0.is_empty() && digests.explain(shape, base, new) {
        let mut shorter = vec![BY_DIGESTS];
        digests.encode(&mut shorter, shape);
        if shorter.len() < out.len() - start {
            out.truncate(start);
            out.append(&mut shorter);
        }
    }
    encode_differing(out, base, new, Among::Ones);
}

/// Reads a change of `base` and applies it to `new`, which must be equal to `base`. After an error
/// `new` must be discarded.
pub(super) fn decode_change(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: &BitVector,
    new: &mut BitVector,
) -> Result<(), DecodeError> {
    match reader.byte()? {
        BY_BITS => decode_differing(reader, base, Among::Zeros, new)?,
        BY_DIGESTS => decode_digests(reader, shape, new)?,
        _ => return Err(DecodeError::Malformed("unknown kind of a change")),
    }
    decode_differing(reader, base, Among::Ones, new)
}

const BY_BITS: u8 = 0;
const BY_DIGESTS: u8 = 1;

/// Encodes the counted bits of `base` that differ in `other`, by their ranks.
pub(crate) fn encode_differing(
    out: &mut Vec<u8>,
    base: &BitVector,
    other: &BitVector,
    among: Among,
) {
    let count = match among {
        Among::Ones => base.count_beyond(other),
        Among::Zeros => other.count_beyond(base),
    };
    let differing = Differing { base, other, among };
    subset::encode(out, among.count(base).into(), count, &differing);
}

/// Reads what [`encode_differing`] wrote and flips those bits in `target`.
pub(crate) fn decode_differing(
    reader: &mut Reader<'_>,
    base: &BitVector,
    among: Among,
    target: &mut BitVector,
) -> Result<(), DecodeError> {
    let universe = among.count(base);
    subset::decode(reader, universe.into(), universe, &mut Flip::new(base, among, target))
}

/// Appends digests of the shape's length, in any order, repeats allowed. Returns whether that was
/// possible: more digests than a receiver accepts are not written.
pub(crate) fn encode_digests(out: &mut Vec<u8>, shape: &Shape, digests: &[Digest]) -> bool {
    let digests = Digests::distinct(digests);
    let fits = digests.fit(shape);
    if fits {
        digests.encode(out, shape);
    }
    fits
}

/// Reads what [`encode_digests`] wrote and sets the bits of those digests.
pub(crate) fn decode_digests(
    reader: &mut Reader<'_>,
    shape: &Shape,
    bits: &mut BitVector,
) -> Result<(), DecodeError> {
    subset::decode(reader, universe(shape), max_digests(shape), &mut Set { shape, bits })
}

/// Reads what [`encode_digests`] wrote, as the positions of those digests' bits, in any order.
/// Returns `None` and reads nothing if there may be more than `max_positions`.
pub(crate) fn decode_positions(
    reader: &mut Reader<'_>,
    shape: &Shape,
    max_positions: u64,
) -> Result<Option<Vec<u64>>, DecodeError> {
    let mut ahead = reader.clone();
    let max_digests = max_digests(shape).min(max_positions / u64::from(shape.hashes()));
    if ahead.clone().varint()? > max_digests {
        return Ok(None);
    }
    let mut sink = Positions { shape, positions: Vec::new() };
    subset::decode(&mut ahead, universe(shape), max_digests, &mut sink)?;
    *reader = ahead;
    Ok(Some(sink.positions))
}

/// Number of possible digests.
fn universe(shape: &Shape) -> u128 {
    1 << shape.digest_bits().get()
}

/// The most digests that are accepted. A filter never has more keys than bits. If more than half of
/// all digests were added, the missing ones would be encoded instead, so that a short message could
/// cause too much work.
fn max_digests(shape: &Shape) -> u64 {
    shape.bits().min((universe(shape) / 2) as u64)
}

/// Digests of added keys, ascending, each once.
struct Digests(Vec<Digest>);

impl Digests {
    fn distinct(digests: &[Digest]) -> Self {
        let mut digests = digests.to_vec();
        digests.sort_unstable();
        digests.dedup();
        Self(digests)
    }

    fn encode(&self, out: &mut Vec<u8>, shape: &Shape) {
        subset::encode(out, universe(shape), self.0.len() as u64, self);
    }

    /// Whether each is a digest of the shape, and a receiver accepts this many.
    fn fit(&self, shape: &Shape) -> bool {
        let ours = |digest: &Digest| u128::from(digest.get()) < universe(shape);
        self.0.len() as u64 <= max_digests(shape) && self.0.iter().all(ours)
    }

    /// Whether these digests describe the same change as the bits: each is a digest of the shape,
    /// all their positions are ones in `new`, and they include every one that `new` has beyond
    /// `base`.
    fn explain(&self, shape: &Shape, base: &BitVector, new: &BitVector) -> bool {
        if !self.fit(shape) {
            return false;
        }
        let mut set = 0;
        let mut reached = base.clone();
        for digest in &self.0 {
            for position in digest.positions(shape) {
                if new.get(position) == 0 {
                    return false;
                }
                set += reached.set(position);
            }
        }
        set == new.count_beyond(base)
    }
}

impl Source for Digests {
    fn each(&self, found: impl FnMut(u64)) {
        self.0.iter().map(|digest| digest.get()).for_each(found);
    }
}

/// Collects the positions of digests.
struct Positions<'a> {
    shape: &'a Shape,
    positions: Vec<u64>,
}

impl Sink for Positions<'_> {
    fn put(&mut self, number: u64) {
        let digest = Digest::from_raw(number, self.shape.digest_bits());
        self.positions.extend(digest.into_iter().flat_map(|digest| digest.positions(self.shape)));
    }

    // Runs are never long: see `Set`.
    fn run(&mut self, numbers: Range<u64>) {
        numbers.for_each(|number| self.put(number));
    }
}

/// Sets the bits of digests.
struct Set<'a> {
    shape: &'a Shape,
    bits: &'a mut BitVector,
}

impl Sink for Set<'_> {
    fn put(&mut self, number: u64) {
        let digest = Digest::from_raw(number, self.shape.digest_bits());
        for position in digest.into_iter().flat_map(|digest| digest.positions(self.shape)) {
            self.bits.set(position);
        }
    }

    // Runs are never long: at most half of all digests are accepted, so each one is encoded.
    fn run(&mut self, numbers: Range<u64>) {
        numbers.for_each(|number| self.put(number));
    }
}
