//! Blocked filters: keys are spread over blocks, each of which is a small filter.
//!
//! Some blocks get more keys than others by chance, and the fullest blocks claim most absent keys.
//! The rate is an average over the number of keys per block, which is above that of an unblocked
//! filter of the same length.

/// Bits of a block: half a cache line, one vector register.
pub const BLOCK_BITS: u64 = 256;
/// Words of a block, of 32 bits each. A key has one bit in every word.
pub const BLOCK_WORDS: u32 = 8;

/// From this many keys per block on, the rate of the average block is used: it is close to one.
const MANY: f64 = 500.0;

/// The probability that a blocked filter claims an absent key: the average over all numbers of keys
/// that a block may have, `Σ_j P(j) (1 - (31/32)^j)^8`, where `j` is binomial with `n` tries and a
/// chance of `1/blocks`.
///
/// ```
/// // 10.67 bits per key: an unblocked filter would claim 0.6 %.
/// let rate = umbel::model::blocked::false_positive(1000, 24_000);
/// assert!((0.008..0.010).contains(&rate), "{rate}");
/// ```
#[must_use]
pub fn false_positive(blocks: u64, items: u64) -> f64 {
    let mean = items as f64 / blocks.max(1) as f64;
    if blocks <= 1 || mean > MANY {
        return block_rate(mean);
    }
    let share = 1.0 / blocks as f64;
    let odds = share / (1.0 - share);
    let mut chance = (items as f64 * (-share).ln_1p()).exp();
    let (mut rate, mut seen, mut keys) = (0.0, 0.0, 0.0);
    // The terms grow up to the mean and become negligible soon after it.
    while keys <= items as f64 && (keys < mean || chance > f64::EPSILON * seen) {
        rate += chance * block_rate(keys);
        seen += chance;
        chance *= (items as f64 - keys) / (keys + 1.0) * odds;
        keys += 1.0;
    }
    (rate / seen).clamp(0.0, 1.0)
}

/// The probability that a block of this many keys claims an absent key.
fn block_rate(keys: f64) -> f64 {
    let zero = (keys * (-1.0 / 32.0_f64).ln_1p()).exp();
    (1.0 - zero).powi(BLOCK_WORDS as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_and_very_full_blocks_have_a_rate_too() {
        assert_eq!(false_positive(1000, 0), 0.0);
        assert!((false_positive(1, 1) - (1.0f64 / 32.0).powi(8)).abs() < 1e-15);
        assert!(false_positive(1, 1_000_000) > 0.999_999);
        assert!(false_positive(1 << 32, u64::MAX) > 0.999_999);
        assert!(false_positive(10, 4999) > 0.999_99);
    }

    #[test]
    fn the_rate_grows_with_keys_and_falls_with_blocks() {
        let rates: Vec<f64> = (0..200).map(|items| false_positive(7, items)).collect();
        assert!(rates.is_sorted() && rates.iter().all(|rate| (0.0..=1.0).contains(rate)));
        let rates: Vec<f64> = (1..200).map(|blocks| false_positive(blocks, 1000)).collect();
        assert!(rates.iter().rev().is_sorted());
    }

    /// The average over a thousand ways to throw keys into blocks.
    #[test]
    fn it_is_the_average_over_blocks() {
        let (blocks, items) = (50u64, 1200u64);
        let mut random = 1u64;
        let mut sum = 0.0;
        for _ in 0..1000 {
            let mut keys = vec![0u32; blocks as usize];
            for _ in 0..items {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                keys[(((random >> 32) * blocks) >> 32) as usize] += 1;
            }
            sum += keys.iter().map(|keys| block_rate((*keys).into())).sum::<f64>();
        }
        let average = sum / (1000 * blocks) as f64;
        assert!((average / false_positive(blocks, items) - 1.0).abs() < 0.01, "{average}");
    }
}
