//! Keys with several attributes: how often a query that no key matches is claimed.
//!
//! Each value that no key has must be claimed by its attribute's filter, and where the combination
//! is checked, the combination too: independent events, so their product. The worst query has
//! values that all exist, but in different keys: its rate is that of the combination.

/// `Π f_i · f_c`: `f_i` the rates of the attributes whose value no key has, `f_c` that of the
/// combinations, if the query's combination is checked.
///
/// ```
/// use umbel::model::attributes::false_positive;
///
/// // An invented combination of existing values, and one of which a value does not exist.
/// assert_eq!(false_positive(&[], Some(0.001)), 0.001);
/// assert!((false_positive(&[0.01], Some(0.001)) - 0.00001).abs() < 1e-12);
/// // Without a check, whatever exists apart is claimed together.
/// assert_eq!(false_positive(&[], None), 1.0);
/// ```
#[must_use]
pub fn false_positive(unknown_values: &[f64], combination: Option<f64>) -> f64 {
    unknown_values.iter().product::<f64>() * combination.unwrap_or(1.0)
}
