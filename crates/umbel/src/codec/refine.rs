//! Encodes the step from a filter to the one of the same keys that is twice as long.
//!
//! ```text
//! refinement = subset of the base's ones whose lower child is not set,
//!              subset of the others whose upper child is not set
//! ```
//!
//! Rungs are nested (`design::ladder`): every one of the base has at least one child that is one,
//! and the children of a zero are zeros. So the lower children are a subset of the base's ones. If
//! the lower child is set, the upper one may be set; if it is not, the upper one must be set. At
//! the usual fill this takes 0.73 bits per position of the base instead of 1.73 for all new bits.
//!
//! Always true: decoding with the same base gives exactly the new bits.

use super::DecodeError;
use super::bytes::Reader;
use super::change::{decode_differing, encode_differing};
use super::ranks::Among;
use crate::bits::{BitVector, even_bits};
use crate::params::Bits;

/// Appends the step from the fold of `new` to `new`.
pub(crate) fn encode_refinement(out: &mut Vec<u8>, new: &BitVector) {
    let (lower, upper) = children(new);
    let (mut base, mut both) = (lower.clone(), lower.clone());
    base.union_with(&upper);
    both.intersect_with(&upper);
    encode_differing(out, &base, &lower, Among::Ones);
    encode_differing(out, &lower, &both, Among::Ones);
}

/// Reads the vector whose fold is `base`, and which is twice as long.
pub(crate) fn decode_refinement(
    reader: &mut Reader<'_>,
    base: &BitVector,
) -> Result<BitVector, DecodeError> {
    let mut lower = base.clone();
    decode_differing(reader, base, Among::Ones, &mut lower)?;
    let mut upper = lower.clone();
    decode_differing(reader, &lower, Among::Ones, &mut upper)?;
    let mut alone = base.clone();
    alone.difference_with(&lower);
    upper.union_with(&alone);
    Ok(of_children(&lower, &upper))
}

/// The bits at even positions, and those at odd ones. The halves must be whole numbers of words.
fn children(bits: &BitVector) -> (BitVector, BitVector) {
    assert!(bits.len().is_multiple_of(128), "halves are whole numbers of words");
    let len = Bits::new(bits.len() / 2).expect("half of a valid length");
    let half = |shift: u32| {
        let word =
            |[low, high]: &[u64; 2]| even_bits(low >> shift) | even_bits(high >> shift) << 32;
        BitVector::from_words(len, bits.words().as_chunks().0.iter().map(word).collect())
    };
    (half(0), half(1))
}

/// The vector with these bits at even and odd positions: the inverse of [`children`]. Both must
/// have the same length, at most half of the maximal one.
fn of_children(even: &BitVector, odd: &BitVector) -> BitVector {
    let len = Bits::new(even.len() * 2).expect("a valid length");
    let pairs = even.words().iter().zip(odd.words());
    let words = pairs.flat_map(|(even, odd)| {
        let both = |shift: u32| apart(even >> shift) | apart(odd >> shift) << 1;
        [both(0), both(32)]
    });
    BitVector::from_words(len, words.collect())
}

/// The low 32 bits, moved to even positions: the inverse of [`even_bits`].
const fn apart(word: u64) -> u64 {
    let mut bits = word & 0xFFFF_FFFF;
    bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF;
    bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF;
    bits = (bits | bits << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::design::ladder::{Ladder, Rung};
    use crate::key_hash::KeyHash;
    use crate::{Rate, StandardFilter};

    fn filter(exponent: u32, keys: impl Iterator<Item = u64>) -> StandardFilter {
        let ladder = Ladder::new(Rate::new(0.01).unwrap());
        let shape = ladder.shape(Rung::new(exponent).unwrap());
        let mut filter = StandardFilter::with_shape(shape).unwrap();
        keys.for_each(|key| _ = filter.insert(key.to_le_bytes()));
        filter
    }

    /// A full rung of 2^16 bits: some 6200 bytes, where the new bits take some 14400.
    #[test]
    fn a_refinement_takes_less_than_half_of_the_new_bits() {
        let ladder = Ladder::new(Rate::new(0.01).unwrap());
        let keys = ladder.takes(Rung::new(16).unwrap(), 32);
        let new = filter(17, 0..keys);
        let mut refinement = Vec::new();
        encode_refinement(&mut refinement, new.bits());
        let mut whole = Vec::new();
        super::super::subset::encode(
            &mut whole,
            new.bits().len().into(),
            new.bits().ones(),
            new.bits(),
        );
        assert!((6100..6350).contains(&refinement.len()), "{}", refinement.len());
        assert!((14_200..14_600).contains(&whole.len()), "{}", whole.len());
        let base = filter(16, 0..keys);
        let decoded = decode_refinement(&mut Reader::new(&refinement), base.bits()).unwrap();
        assert!(decoded == *new.bits());
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn a_refinement_leads_from_the_fold_to_the_filter(
            hashes in prop::collection::vec(any::<u64>(), 0..400), exponent in 10u32..15,
        ) {
            let (mut low, mut high) = (filter(exponent, 0..0), filter(exponent + 1, 0..0));
            for hash in &hashes {
                let hash = KeyHash::from_raw(*hash);
                low.insert_digest(low.scheme().digest_of(hash));
                high.insert_digest(high.scheme().digest_of(hash));
            }
            let mut bytes = Vec::new();
            encode_refinement(&mut bytes, high.bits());
            let mut reader = Reader::new(&bytes);
            let decoded = decode_refinement(&mut reader, low.bits()).unwrap();
            prop_assert!(reader.end().is_ok());
            decoded.validate();
            prop_assert!(decoded == *high.bits());
        }

        #[test]
        fn any_bytes_refine_a_base_or_are_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200), keys in 0u64..60,
        ) {
            let base = filter(10, 0..keys);
            if let Ok(bits) = decode_refinement(&mut Reader::new(&bytes), base.bits()) {
                bits.validate();
                prop_assert!(bits.folded(1) == *base.bits());
            }
        }
    }
}
