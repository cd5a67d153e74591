//! What turns one bit vector into another, in the fewest bytes.
//!
//! ```text
//! change = 0, subset of the base's zeros that are set,   subset of its ones that are cleared
//!        | 1, subset of all digests: those of added keys, subset of its ones that are cleared
//! ```
//!
//! The receiver has the base, so set bits are named among its zeros and cleared ones among
//! its ones. Where the added keys' digests are known, naming them is shorter still while
//! few keys were added: `k` positions follow from one digest (formulas: `b - log2 a + 1.44`
//! bits a key). Both are coded and the shorter is sent.
//!
//! Always true: reading what was written against the same base gives exactly the new bits.
//! Digests that do not explain the set bits are never sent: bits are sent instead.

use super::DecodeError;
use super::bytes::Reader;
use super::ranks::{Among, Ranks};
use super::subset;
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
    pub fn apply(&self, bits: &mut BitVector) {
        self.sets.iter().for_each(|position| {
            bits.set(*position);
        });
        self.clears.iter().for_each(|position| {
            bits.clear(*position);
        });
    }

    /// The checksum that these flips lead to, given the base and its checksum.
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
    encode_flipped(out, new, base, base, Among::Zeros);
    let digests = distinct(added);
    if !digests.is_empty() && explain(&digests, shape, base, new) {
        let mut shorter = Vec::new();
        let universe = 1u128 << shape.digest_bits().get();
        let numbers = digests.iter().map(|digest| digest.get());
        subset::encode(&mut shorter, universe, digests.len() as u64, numbers);
        if shorter.len() < out.len() - start - 1 {
            out.truncate(start);
            out.push(BY_DIGESTS);
            out.append(&mut shorter);
        }
    }
    encode_flipped(out, base, new, base, Among::Ones);
}

/// Reads a change against `base`. Nothing is changed by it.
///
/// # Errors
/// If the bytes are not a change of a vector like `base`.
pub(crate) fn decode_change(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: &BitVector,
) -> Result<Flips, DecodeError> {
    let sets = match reader.byte()? {
        BY_BITS => decode_flipped(reader, base, Among::Zeros)?,
        BY_DIGESTS => decode_digests(reader, shape, base)?,
        _ => return Err(DecodeError::Malformed("unknown kind of a change")),
    };
    let clears = decode_flipped(reader, base, Among::Ones)?;
    Ok(Flips { sets, clears })
}

const BY_BITS: u8 = 0;
const BY_DIGESTS: u8 = 1;

/// Codes the ones of `of` that `beyond` lacks, by their rank in `base`.
pub(crate) fn encode_flipped(
    out: &mut Vec<u8>,
    of: &BitVector,
    beyond: &BitVector,
    base: &BitVector,
    among: Among,
) {
    let mut ranks = Ranks::new(base, among);
    let count = of.count_beyond(beyond);
    let flipped = of.positions_beyond(beyond).map(|position| ranks.rank(position));
    subset::encode(out, among.count(base).into(), count, flipped);
}

pub(crate) fn decode_flipped(
    reader: &mut Reader<'_>,
    base: &BitVector,
    among: Among,
) -> Result<Vec<u64>, DecodeError> {
    let universe = among.count(base);
    let mut ranks = Ranks::new(base, among);
    let mut positions = Vec::new();
    subset::decode(reader, universe.into(), universe, |rank| positions.push(ranks.position(rank)))?;
    Ok(positions)
}

/// Reads digests and turns them into the zeros of `base` that they set.
fn decode_digests(
    reader: &mut Reader<'_>,
    shape: &Shape,
    base: &BitVector,
) -> Result<Vec<u64>, DecodeError> {
    let universe = 1u128 << shape.digest_bits().get();
    let mut sets = Vec::new();
    // More keys than bits make no filter.
    subset::decode(reader, universe, shape.bits(), |number| {
        let digest = Digest::from_raw(number, shape.digest_bits());
        let positions = digest.into_iter().flat_map(|digest| digest.positions(shape));
        sets.extend(positions.filter(|position| base.get(*position) == 0));
    })?;
    sets.sort_unstable();
    sets.dedup();
    Ok(sets)
}

fn distinct(digests: &[Digest]) -> Vec<Digest> {
    let mut digests = digests.to_vec();
    digests.sort_unstable();
    digests.dedup();
    digests
}

/// Whether the digests' positions are ones of the new bits, and all that `new` has beyond
/// `base` are among them.
fn explain(digests: &[Digest], shape: &Shape, base: &BitVector, new: &BitVector) -> bool {
    let mut set = 0;
    let mut reached = base.clone();
    for digest in digests {
        for position in digest.positions(shape) {
            if new.get(position) == 0 {
                return false;
            }
            set += reached.set(position);
        }
    }
    set == new.count_beyond(base)
}
