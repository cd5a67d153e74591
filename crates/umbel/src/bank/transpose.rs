//! A 64×64 bit matrix, transposed in place: 64 columns' words become 64 rows' words.

/// Swaps rows and columns: afterwards bit `j` of word `i` is what bit `i` of word `j` was.
///
/// By halves: the off-diagonal 32×32 blocks change places, then the 16×16 blocks within
/// each, and so on; six rounds of 32 exchanges.
pub(super) fn transpose(words: &mut [u64; 64]) {
    let mut width = 32;
    let mut mask = u64::MAX >> 32;
    while width != 0 {
        for block in (0..64).step_by(2 * width) {
            for row in block..block + width {
                let swapped = ((words[row] >> width) ^ words[row + width]) & mask;
                words[row] ^= swapped << width;
                words[row + width] ^= swapped;
            }
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_changes_places() {
        let mut state = 7u64;
        let words: [u64; 64] = std::array::from_fn(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        });
        let mut transposed = words;
        transpose(&mut transposed);
        for (i, row) in transposed.iter().enumerate() {
            for (j, column) in words.iter().enumerate() {
                assert_eq!(row >> j & 1, column >> i & 1, "row {i}, column {j}");
            }
        }
        transpose(&mut transposed);
        assert_eq!(transposed, words);
    }
}
