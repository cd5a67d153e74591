//! Gives the parameters for a target: the shapes that keep a promised rate.
//!
//! Where the papers round `m` and `k` up each on their own and overshoot the target by
//! up to 3 %, these designs keep it: the rate by formula is never above what was asked.
//!
//! Not here: the closed forms themselves (`model`); the filters (`filter`).

use crate::params::{DigestBits, Hashes, ParamError, Rate, Shape};

/// The shortest standard filter that holds `items` keys at a false positive rate of at
/// most `rate`: the smallest `m = ceil(-k·n / ln(1 - ε^(1/k)))` over all `k`.
///
/// ```
/// let shape = umbel::design::standard(1000, umbel::Rate::new(0.01)?)?;
/// assert_eq!((shape.bits(), shape.hashes()), (9593, 7));
/// # Ok::<(), umbel::params::ParamError>(())
/// ```
///
/// # Errors
/// If `items` is zero, or the filter would be longer than [`crate::params::Bits::MAX`].
pub fn standard(items: u64, rate: Rate) -> Result<Shape, ParamError> {
    if items == 0 {
        return Err(ParamError::Items(items));
    }
    let bits_with = |k: u32| {
        let k = f64::from(k);
        let fill = rate.get().powf(1.0 / k);
        (-k * items as f64 / (-fill).ln_1p()).ceil()
    };
    let sizes = (2..=Hashes::MAX).map(|k| (bits_with(k), k));
    let (bits, hashes) =
        sizes.fold((bits_with(1), 1), |best, size| if size.0 < best.0 { size } else { best });
    let shape = Shape::new(bits as u64, hashes)?;
    Ok(shape.with_digest_bits(DigestBits::for_target(items, rate)))
}

/// The shape of one component of a dynamic filter, such that `max_components` full ones
/// together stay within `rate`: each is designed for `β = 1 - (1 - ε)^(1/s_max)`.
///
/// # Errors
/// If a number is outside its range.
pub fn dynamic_component(
    capacity: u64,
    rate: Rate,
    max_components: u32,
) -> Result<Shape, ParamError> {
    if max_components == 0 {
        return Err(ParamError::Components(0));
    }
    let share = (-rate.get()).ln_1p() / f64::from(max_components);
    standard(capacity, Rate::new(-share.exp_m1())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_design_has_the_reference_values() {
        for (items, rate, bits, hashes) in
            [(1000, 0.01, 9593, 7), (1_000_000, 0.001, 14_377_640, 10), (12_345, 0.03, 90_104, 5)]
        {
            let shape = standard(items, Rate::new(rate).unwrap()).unwrap();
            assert_eq!((shape.bits(), shape.hashes()), (bits, hashes), "n={items} ε={rate}");
        }
    }

    #[test]
    fn a_filter_for_nothing_or_beyond_the_limit_is_refused() {
        let rate = Rate::new(0.01).unwrap();
        assert!(matches!(standard(0, rate), Err(ParamError::Items(0))));
        assert!(matches!(standard(u64::MAX, rate), Err(ParamError::Bits(_))));
    }
}
