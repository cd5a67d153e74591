//! A 64×64 bit matrix, transposed in place: 64 columns' words become 64 rows' words.

/// Rounds of a transposition.
pub(super) const ROUNDS: usize = 6;

/// Swaps rows and columns: afterwards bit `j` of word `i` is what bit `i` of word `j` was.
/// `meanwhile` is called once in every round, for work that can overlap with it.
///
/// Works recursively: swaps the off-diagonal 32×32 blocks, then the 16×16 blocks within each block,
/// and so on; six rounds of 32 exchanges.
#[inline(always)]
pub(super) fn transpose(words: &mut [u64; 64], mut meanwhile: impl FnMut(usize)) {
    exchange::<32>(words);
    meanwhile(0);
    exchange::<16>(words);
    meanwhile(1);
    exchange::<8>(words);
    meanwhile(2);
    exchange::<4>(words);
    meanwhile(3);
    exchange::<2>(words);
    meanwhile(4);
    exchange::<1>(words);
    meanwhile(5);
}

/// One round. With the width known at compile time, exchanges become vector code.
#[inline(always)]
fn exchange<const WIDTH: usize>(words: &mut [u64; 64]) {
    // The low half of every 2 · WIDTH bits.
    let mask = u64::MAX / ((1 << WIDTH) + 1);
    for pair in words.chunks_exact_mut(2 * WIDTH) {
        let (upper, lower) = pair.split_at_mut(WIDTH);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let swapped = ((*upper >> WIDTH) ^ *lower) & mask;
            *upper ^= swapped << WIDTH;
            *lower ^= swapped;
        }
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
        let mut rounds = Vec::new();
        transpose(&mut transposed, |round| rounds.push(round));
        assert_eq!(rounds, Vec::from_iter(0..ROUNDS));
        for (i, row) in transposed.iter().enumerate() {
            for (j, column) in words.iter().enumerate() {
                assert_eq!(row >> j & 1, column >> i & 1, "row {i}, column {j}");
            }
        }
        transpose(&mut transposed, |_| ());
        assert_eq!(transposed, words);
    }
}
