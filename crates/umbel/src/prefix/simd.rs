//! Eight lengths asked in one register, and a line of keys compared at once: one of the crate's
//! three pieces of `unsafe` (the others are `prefetch` and `processor`).
//!
//! A group's two filters are asked for four lengths each. Per length: mix the seed of the
//! address's anchor with the bits behind it, pick one of the block's eight words, test three
//! bits in it. [`Scalar`] does that lane by lane and is the oracle of [`Avx2`], which does it
//! for all lanes at once: twice as fast a lookup in `cargo bench -p umbel --bench prefix`.
//!
//! Always true: both give the same answers. An [`Avx2`] exists only where the processor has
//! been asked, so that its methods are safe to call; no memory is read but through slices.

use super::filters::{Block, Point};
use crate::processor::{self, Avx2};

/// How groups are asked.
pub trait Asker: Copy {
    /// Which of eight lengths the two blocks claim: bits 0 to 3 for the first, shortest
    /// lowest, 4 to 7 for the second; `behind` are the eight bits that the lengths end in.
    fn claims(self, blocks: [&Block; 2], seeds: [u32; 2], behind: u32) -> u32;
}

/// Work that asks groups. Whoever does it marks `by` as `inline(always)`: only what is inlined
/// is compiled for the processor that was found.
pub(super) trait Work {
    /// What comes of it.
    type Done;
    /// Does it.
    fn by(self, asker: impl Asker) -> Self::Done;
}

/// Does `work` in the fastest way there is.
#[inline]
pub(super) fn run<W: Work>(avx2: Option<Avx2>, work: W) -> W::Done {
    match avx2 {
        Some(avx2) => avx2.run(By(avx2, work)),
        None => work.by(Scalar),
    }
}

/// Work that asks groups by AVX2.
struct By<W>(Avx2, W);

impl<W: Work> processor::Work for By<W> {
    type Done = W::Done;

    #[inline(always)]
    fn done(self) -> W::Done {
        self.1.by(self.0)
    }
}

/// One lane after the other, on any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar;

impl Asker for Scalar {
    #[inline]
    fn claims(self, blocks: [&Block; 2], seeds: [u32; 2], behind: u32) -> u32 {
        let nibbles = [behind >> 4, behind & 15];
        (0..8).fold(0, |claims, lane: usize| {
            let (half, bits) = (lane / 4, lane as u32 % 4 + 1);
            let point = Point::below(seeds[half], bits, nibbles[half]);
            claims | u32::from(point.is_claimed(blocks[half])) << lane
        })
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_blend_epi32, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
        _mm256_movemask_ps, _mm256_mullo_epi32, _mm256_or_si256, _mm256_permutevar8x32_epi32,
        _mm256_set1_epi32, _mm256_setr_epi32, _mm256_sllv_epi32, _mm256_srli_epi32,
        _mm256_srlv_epi32, _mm256_xor_si256,
    };

    use super::super::filters::{Block, FIRST, SECOND, WORD_SHIFT};
    use super::{Asker, Avx2};

    impl Asker for Avx2 {
        #[inline(always)]
        #[expect(unsafe_code, reason = "only we know that the processor was asked")]
        fn claims(self, blocks: [&Block; 2], seeds: [u32; 2], behind: u32) -> u32 {
            // SAFETY: an `Avx2` exists only if `detect` found every feature of `claims`.
            unsafe { claims(blocks, seeds, behind) }
        }
    }

    /// Four lanes of one number, four of the other.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn halves([low, high]: [u32; 2]) -> __m256i {
        let (low, high) = (low.cast_signed(), high.cast_signed());
        _mm256_blend_epi32::<0b1111_0000>(_mm256_set1_epi32(low), _mm256_set1_epi32(high))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn all(number: u32) -> __m256i {
        _mm256_set1_epi32(number.cast_signed())
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn claims(blocks: [&Block; 2], seeds: [u32; 2], behind: u32) -> u32 {
        // `Point::below`, for one to four bits of each nibble, behind a one.
        let shifted = _mm256_srlv_epi32(all(behind), _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
        let bits = _mm256_and_si256(shifted, _mm256_setr_epi32(1, 3, 7, 15, 1, 3, 7, 15));
        let sub = _mm256_or_si256(bits, _mm256_setr_epi32(2, 4, 8, 16, 2, 4, 8, 16));
        let mixed = _mm256_mullo_epi32(_mm256_xor_si256(halves(seeds), sub), all(FIRST));
        let mixed = _mm256_xor_si256(mixed, _mm256_srli_epi32::<15>(mixed));
        let hash = _mm256_mullo_epi32(mixed, all(SECOND));
        // `Point::mask`.
        let (one, low) = (all(1), all(31));
        let bit = |shifted| _mm256_sllv_epi32(one, _mm256_and_si256(shifted, low));
        let two =
            _mm256_or_si256(bit(_mm256_srli_epi32::<24>(hash)), bit(_mm256_srli_epi32::<19>(hash)));
        let mask = _mm256_or_si256(two, bit(_mm256_srli_epi32::<14>(hash)));
        // The word that each lane picks, of its own block.
        let pick = _mm256_srli_epi32::<{ WORD_SHIFT.cast_signed() }>(hash);
        let words = _mm256_blend_epi32::<0b1111_0000>(
            _mm256_permutevar8x32_epi32(bytemuck::cast(*blocks[0]), pick),
            _mm256_permutevar8x32_epi32(bytemuck::cast(*blocks[1]), pick),
        );
        let claimed = _mm256_cmpeq_epi32(_mm256_and_si256(words, mask), mask);
        _mm256_movemask_ps(_mm256_castsi256_ps(claimed)).cast_unsigned()
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
impl Asker for Avx2 {
    fn claims(self, blocks: [&Block; 2], seeds: [u32; 2], behind: u32) -> u32 {
        Scalar.claims(blocks, seeds, behind)
    }
}

/// Which of the first 24 numbers of a line equal one: a bit each.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[expect(unsafe_code, reason = "SSE2 has no safe form, though every x86_64 has it")]
pub(super) fn equal_u16s(line: &[u16; 32], number: u16) -> u32 {
    // SAFETY: SSE2 is part of the x86_64 baseline.
    unsafe { sse2::equal_u16s(line, number) }
}

/// Which of the first twelve numbers of a line equal one: a bit each.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[expect(unsafe_code, reason = "SSE2 has no safe form, though every x86_64 has it")]
pub(super) fn equal_u32s(line: &[u32; 16], number: u32) -> u32 {
    // SAFETY: SSE2 is part of the x86_64 baseline.
    unsafe { sse2::equal_u32s(line, number) }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_castsi128_ps, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_movemask_epi8,
        _mm_movemask_ps, _mm_packs_epi16, _mm_set1_epi16, _mm_set1_epi32,
    };

    #[target_feature(enable = "sse2")]
    #[inline]
    pub(super) fn equal_u16s(line: &[u16; 32], number: u16) -> u32 {
        let wanted = _mm_set1_epi16(number.cast_signed());
        let line: [__m128i; 4] = bytemuck::cast(*line);
        let [first, second, third] = [0, 1, 2].map(|i: usize| _mm_cmpeq_epi16(line[i], wanted));
        let low = _mm_movemask_epi8(_mm_packs_epi16(first, second)).cast_unsigned();
        low | _mm_movemask_epi8(_mm_packs_epi16(third, third)).cast_unsigned() << 16
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    pub(super) fn equal_u32s(line: &[u32; 16], number: u32) -> u32 {
        let wanted = _mm_set1_epi32(number.cast_signed());
        let line: [__m128i; 4] = bytemuck::cast(*line);
        let mask = |part| _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(part, wanted)));
        let [first, second, third] = [0, 1, 2].map(|i: usize| mask(line[i]).cast_unsigned());
        first | second << 4 | third << 8
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(super) use twin::{equal_u16s, equal_u32s};

/// The same comparisons, number by number.
#[cfg(any(test, not(target_arch = "x86_64"), miri))]
mod twin {
    pub(crate) fn equal_u16s(line: &[u16; 32], number: u16) -> u32 {
        (0..24).fold(0, |found, slot| found | u32::from(line[slot] == number) << slot)
    }

    pub(crate) fn equal_u32s(line: &[u32; 16], number: u32) -> u32 {
        (0..12).fold(0, |found, slot| found | u32::from(line[slot] == number) << slot)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn avx2_claims_what_its_scalar_twin_claims(
            blocks in any::<[[u32; 8]; 2]>(),
            fill in any::<[[u32; 8]; 2]>(),
            seeds in any::<[u32; 2]>(),
            behind in 0u32..256,
        ) {
            let Some(avx2) = Avx2::detect() else { return Ok(()) };
            let dense = [0, 1].map(|i: usize| [0, 1, 2, 3, 4, 5, 6, 7].map(|w: usize| blocks[i][w] | fill[i][w]));
            for blocks in [[&blocks[0], &blocks[1]], [&dense[0], &dense[1]]] {
                prop_assert_eq!(
                    avx2.claims(blocks, seeds, behind),
                    Scalar.claims(blocks, seeds, behind)
                );
            }
        }

        #[test]
        fn lines_are_compared_as_number_by_number(
            narrow in proptest::array::uniform32(0u16..3),
            wide in proptest::array::uniform16(0u32..3),
            number in 0u32..3,
        ) {
            let found = equal_u16s(&narrow, number as u16) & 0xFF_FFFF;
            prop_assert_eq!(found, twin::equal_u16s(&narrow, number as u16));
            prop_assert_eq!(equal_u32s(&wide, number), twin::equal_u32s(&wide, number));
        }
    }
}
