//! A column of a lower rung as it stands in the rows of a higher one: every bit `2^steps` times.

use std::borrow::Cow;
use std::ops::Range;

use crate::bits::even_bits;

/// A part of a column's words, every bit repeated `2^steps` times; the part is counted in words of
/// the result.
pub(super) fn stretched(words: &[u64], steps: u32, part: Range<usize>) -> Cow<'_, [u64]> {
    match steps {
        0 => Cow::Borrowed(&words[part]),
        1..=6 => part.map(|index| few(words, steps, index)).collect(),
        _ => {
            let whole =
                |index: usize| match words[index >> steps] >> (index >> (steps - 6) & 63) & 1 {
                    0 => 0,
                    _ => u64::MAX,
                };
            part.map(whole).collect()
        }
    }
}

/// A word of the result, for `steps` up to 6: such a word holds at least one whole repeated bit.
fn few(words: &[u64], steps: u32, index: usize) -> u64 {
    let bits = 64 >> steps;
    let start = index * bits;
    let chunk = words[start / 64] >> (start % 64);
    (0..steps).fold(chunk, |chunk, _| doubled(chunk))
}

/// The low 32 bits, each twice.
const fn doubled(word: u64) -> u64 {
    let mut bits = word & 0xFFFF_FFFF;
    bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF;
    bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF;
    bits = (bits | bits << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    bits = (bits | bits << 1) & 0x5555_5555_5555_5555;
    debug_assert!(even_bits(bits) == word & 0xFFFF_FFFF);
    bits | bits << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_stands_in_as_many_rows_as_it_should() {
        let words: Vec<u64> =
            (1..=4u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7)).collect();
        for steps in 0..=8 {
            let rows = stretched(&words, steps, 0..words.len() << steps);
            for row in 0..rows.len() * 64 {
                let position = row >> steps;
                let expected = words[position / 64] >> (position % 64) & 1;
                assert_eq!(rows[row / 64] >> (row % 64) & 1, expected, "row {row}, {steps} steps");
            }
            assert_eq!(*stretched(&words, steps, 1..3), rows[1..3]);
        }
    }
}
