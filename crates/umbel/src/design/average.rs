//! The rate of a filter averaged over sets of keys. Designs of short filters need it.
//!
//! The papers' `p^k` ([`crate::model::standard::false_positive`]) assumes that every filter has the
//! mean fill and that all positions are independent. Both make short filters look better than they
//! are: a filter for one key, designed for 10^-5, would claim 23 times as many absent keys. Three
//! effects are missing in the formula, and [`average_rate`] adds them:
//!
//! * **Fills scatter**, and the mean of a power is above the power of the mean. With `λ = kn/m`
//!   the number of ones has the variance `m e^-λ (1 - (1+λ) e^-λ)`, so that to the second order
//!   `E[fill^k] = p^k (1 + k(k-1)/2 · v/m)`, `v = (1 - λ/(e^λ-1)) / (e^λ-1)`. Taken as an
//!   exponential it is above the exact expectation: by less than 1 % from ten keys on, and by
//!   up to 40 % for one.
//! * **Walks fold.** Position `i` of a digest is a quadratic in `i` on a circle
//!   (`crate::key_hash`), and a parabola is symmetric: one walk in about `m` has its vertex so
//!   close to the middle that it comes back over the positions it came by. Of its `k`
//!   positions only half are tested anew. (The first three are free: no folds below `k = 4`.)
//! * **Walks circle.** One in about `m²` has step and bend both so close to simple fractions of
//!   the circle that it keeps returning to a few positions.
//!
//! The weights of the last two (0.8, `k/4`; falling as `k^-2` and `k^-3` above 17 hashes, since
//! a longer walk must be closer to the vertex or fraction) are measured and rounded up:
//! `cargo test -p umbel --release table_of -- --ignored --nocapture` prints the share of it that
//! was needed, and the rates of filters designed so.
//!
//! Not here: digests that are equal, of which [`DigestBits::for_target`] leaves one in a
//! thousand false positives at most, unless 64 bits are too few for the rate.
//!
//! [`DigestBits::for_target`]: crate::params::DigestBits::for_target

use crate::model::standard::{false_positive, fill_exact, load, power};
use crate::params::{Hashes, ParamError, Rate, Shape};

/// How far the average may be above the rate: about as much as equal digests may add. With this
/// tolerance the closed form is good enough from some hundred keys on, and long filters get no
/// extra bits.
const SLACK: f64 = 0.002;

/// For walks of more hashes than this: the longer they are, the more rarely they fold and circle.
const LONG_WALK: f64 = 17.0;

/// The probability that a filter of `items` random keys claims an absent key, averaged over such
/// filters. An upper bound: tight from ten keys on; for one key it costs a bit or two.
///
/// ```
/// use umbel::{Shape, design::average_rate, model::standard::false_positive};
///
/// let (short, long) = (Shape::new(10, 5)?, Shape::new(9593, 7)?);
/// assert!(average_rate(short, 1) > 1.8 * false_positive(short, 1));
/// assert!(average_rate(long, 1000) < 1.002 * false_positive(long, 1000));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
#[must_use]
pub fn average_rate(shape: Shape, items: u64) -> f64 {
    if items == 0 {
        return 0.0;
    }
    let (m, k) = (shape.bits() as f64, f64::from(shape.hashes()));
    let (p, lambda) = (fill_exact(shape, items), load(&shape, items as f64));
    let odds = lambda.exp_m1();
    let variance = (1.0 - lambda / odds) / odds;
    let scattered = power(p, shape.hashes()) * (k * (k - 1.0) / 2.0 * variance / m).exp();
    (scattered + folded(p, m, shape.hashes())).min(1.0)
}

/// What walks that fold or circle add: they test a half or a quarter of their positions.
fn folded(p: f64, m: f64, hashes: u32) -> f64 {
    if hashes < 4 {
        return 0.0;
    }
    let k = f64::from(hashes);
    let close = (LONG_WALK / k).min(1.0).powi(2);
    let folds = 0.8 * close / m;
    let circles = k / 4.0 * (close / m).powi(2);
    folds * power(p, hashes.div_ceil(2)) + circles * power(p, hashes.div_ceil(4).min(5))
}

/// Whether filters of this shape keep the rate with `items` keys: each by the formula, and all
/// on average.
pub(super) fn keeps(shape: Shape, items: u64, rate: Rate) -> bool {
    false_positive(shape, items) <= rate.get()
        && average_rate(shape, items) <= rate.get() * (1.0 + SLACK)
}

/// The shortest shape that keeps the rate, `at_least` being the shortest by the formula.
///
/// # Errors
/// If the filter would be longer than [`crate::params::Bits::MAX`].
pub(super) fn shortest(at_least: Shape, items: u64, rate: Rate) -> Result<Shape, ParamError> {
    if keeps(at_least, items, rate) {
        return Ok(at_least);
    }
    // Exponential search for a length that is enough, then binary search for the shortest.
    let (mut short, mut step) = (at_least.bits(), 1);
    let mut found = loop {
        match best_of(short + step, items, rate)? {
            Some(shape) => break shape,
            None => (short, step) = (short + step, step * 2),
        }
    };
    while found.bits() - short > 1 {
        let middle = short.midpoint(found.bits());
        match best_of(middle, items, rate)? {
            Some(shape) => found = shape,
            None => short = middle,
        }
    }
    Ok(found)
}

/// Of the shapes of this length that keep the rate, the one with the lowest average rate.
fn best_of(bits: u64, items: u64, rate: Rate) -> Result<Option<Shape>, ParamError> {
    let shapes: Result<Vec<_>, _> = (1..=Hashes::MAX).map(|k| Shape::new(bits, k)).collect();
    let keeping = shapes?.into_iter().filter(|shape| keeps(*shape, items, rate));
    Ok(keeping.min_by(|a, b| average_rate(*a, items).total_cmp(&average_rate(*b, items))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key_hash::KeyHash;
    use crate::params::DigestBits;

    /// `E[fill^k]` with all positions thrown apart, exactly: the `k` positions of an absent key
    /// fall on `d` bits, and all of those are among the `kn` throws.
    fn thrown_apart(shape: Shape, items: u64) -> f64 {
        let (m, k) = (shape.bits() as f64, shape.hashes() as usize);
        // all_set[d]: chance that d given bits are set; throw after throw.
        let mut all_set = vec![0.0; k + 1];
        all_set[0] = 1.0;
        for _ in 0..k as u64 * items {
            for d in (1..=k).rev() {
                let hit = (d as f64 / m).min(1.0);
                all_set[d] += hit * (all_set[d - 1] - all_set[d]);
            }
        }
        on_bits(shape).iter().zip(&all_set).map(|(on, set)| on * set).sum()
    }

    /// The chances that `k` positions thrown apart are on 0, 1, 2 … different bits.
    fn on_bits(shape: Shape) -> Vec<f64> {
        let (m, k) = (shape.bits() as f64, shape.hashes() as usize);
        let mut on = vec![0.0; k + 1];
        on[0] = 1.0;
        for _ in 0..k {
            for d in (1..=k).rev() {
                on[d] = on[d] * d as f64 / m + on[d - 1] * (1.0 - (d as f64 - 1.0) / m);
            }
            on[0] = 0.0;
        }
        on
    }

    /// How often an absent key is claimed by a filter of fill `p` whose bits are set apart, as
    /// `E[p^d]` over the number of bits that its walk visits: measured, the standard error, and
    /// what is allowed for.
    fn walked(shape: Shape, p: f64, walks: u32) -> [f64; 3] {
        let (mut sum, mut squares, mut state) = (0.0, 0.0, shape.bits());
        let mut visited = vec![0; shape.bits() as usize];
        for walk in 1..=walks {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mixed = (state ^ state >> 32).wrapping_mul(0x94D0_49BB_1331_11EB);
            let digest = KeyHash::from_raw(mixed ^ mixed >> 31).digest(DigestBits::FULL);
            let new = |position| std::mem::replace(&mut visited[position as usize], walk) != walk;
            let bits = digest.positions(&shape).map(new).filter(|new| *new).count();
            let claimed = power(p, bits as u32);
            sum += claimed;
            squares += claimed * claimed;
        }
        let (n, mean) = (f64::from(walks), sum / f64::from(walks));
        let apart: f64 = (0..).zip(on_bits(shape)).map(|(d, on)| on * power(p, d)).sum();
        let allowed = apart + folded(p, shape.bits() as f64, shape.hashes());
        [mean, ((squares / n - mean * mean) / n).sqrt(), allowed]
    }

    #[test]
    fn walks_fold_and_circle_no_more_often_than_allowed_for() {
        for hashes in [3, 4, 5, 7, 10, 13, 17, 20, 24, 30, 40] {
            for bits in [30, 60, 120, 500] {
                let shape = Shape::new(bits, hashes).unwrap();
                let [mean, error, allowed] = walked(shape, 0.5, 50_000);
                assert!(mean <= allowed + 4.0 * error, "{shape:?}: {mean} ± {error}, {allowed}");
            }
        }
    }

    #[test]
    #[ignore = "a measurement of minutes, to read"]
    fn table_of_walks_that_fold_and_circle() {
        for p in [0.5, 0.35] {
            println!("claims of a random filter of fill {p}, measured over allowed for");
            for hashes in [4, 5, 7, 9, 10, 13, 16, 17, 20, 21, 24, 30, 40] {
                print!("k={hashes:2}");
                for bits in [20, 40, 80, 160, 320, 640, 1280, 5120] {
                    let shape = Shape::new(bits, hashes).unwrap();
                    let [mean, error, allowed] = walked(shape, p, 4_000_000);
                    print!("  {:.3} ± {:.3}", mean / allowed, error / allowed);
                }
                println!();
            }
        }
    }

    #[test]
    fn the_scatter_of_fills_is_bounded_closely_from_above() {
        for (items, max) in [(1, 1.4), (2, 1.12), (3, 1.06), (5, 1.03), (10, 1.01), (50, 1.001)] {
            for hashes in [1, 2, 3, 5, 7, 10, 13, 17] {
                let bits = (1.6 * f64::from(hashes) * items as f64).ceil() as u64;
                let shape = Shape::new(bits, hashes).unwrap();
                let walks = folded(fill_exact(shape, items), bits as f64, hashes);
                let ratio = (average_rate(shape, items) - walks) / thrown_apart(shape, items);
                assert!((1.0 - 1e-9..max).contains(&ratio), "n={items} {shape:?}: {ratio}");
            }
        }
    }

    #[test]
    fn nothing_is_claimed_by_nothing_and_everything_by_all_ones() {
        let shape = Shape::new(1, 64).unwrap();
        assert_eq!(average_rate(shape, 0), 0.0);
        assert_eq!(average_rate(shape, 1), 1.0);
        assert_eq!(average_rate(shape, u64::MAX), 1.0);
    }

    proptest! {
        #![proptest_config(crate::model::seeded())]

        #[test]
        fn the_average_is_a_rate_and_no_lower_than_the_formula(
            bits in 1_u64..1 << 40, hashes in 1_u32..=64, load in 0.0_f64..4.0,
        ) {
            let shape = Shape::new(bits, hashes).unwrap();
            let items = (load * bits as f64 / f64::from(hashes)) as u64;
            let average = average_rate(shape, items);
            prop_assert!((0.0..=1.0).contains(&average));
            prop_assert!(average >= false_positive(shape, items) * (1.0 - 1e-9));
        }
    }
}
